//! Detects repeated requests: by an idempotency key, or by the retry count that OpenAI's own clients send.

use axum::http::HeaderMap;
use polyclaw_domain::hex::encode_hex;
use polyclaw_domain::job::JobState;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{Tx, jobs, messages};
use sha2::{Digest, Sha256};

use crate::error::Result;
use crate::openai::content::ClientConversation;
use crate::state::AppState;

/// The header in which OpenAI clients count retries, from 0.
const RETRY_COUNT_HEADER: &str = "x-stainless-retry-count";
/// How old an answered request may be for a retry to match it. OpenAI clients pause at most eight seconds between
/// retries.
const MAX_RETRY_AGE_MS: i64 = 60 * 1000;

/// How a client marks a request that it may repeat.
#[derive(Debug, PartialEq, Eq)]
pub enum RepeatMarker {
    /// Not at all: every request is new.
    Never,
    Key(String),
    /// The number of earlier tries.
    Tries(u32),
}

impl RepeatMarker {
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        match (text("idempotency-key"), text(RETRY_COUNT_HEADER).and_then(|tries| tries.parse().ok())) {
            (Some(key), _) => Self::Key(key.to_owned()),
            (None, Some(tries)) => Self::Tries(tries),
            (None, None) => Self::Never,
        }
    }

    /// The idempotency key of the client.
    pub fn client_key(&self) -> Option<&str> {
        match self {
            Self::Key(key) => Some(key),
            _ => None,
        }
    }

    /// Returns the key to store the request with. The first try of a counting client gets a unique key. A retry with
    /// the same content gets the key of the previous try, if that was accepted and its turn did not fail.
    pub async fn idempotency_key(
        &self,
        app: &AppState,
        session: &SessionKey,
        asked: &ClientConversation,
    ) -> Result<Option<String>> {
        let tries = match self {
            Self::Never => return Ok(None),
            Self::Key(key) => return Ok(Some(key.clone())),
            Self::Tries(tries) => *tries,
        };
        let begin = format!("tried-{}-", conversation_digest(asked));
        let fresh = format!("{begin}{}", app.engine.next_id());
        if tries == 0 {
            return Ok(Some(fresh));
        }
        let (session, since) = (session.clone(), app.engine.now().minus(MAX_RETRY_AGE_MS));
        let look = move |tx: &mut Tx<'_>| {
            // Only the last request is compared: the same words further back were another request.
            let Some(key) = messages::find_last_key(tx, &session)?.filter(|key| key.starts_with(&begin))
            else {
                return Ok(None);
            };
            let Some((_, turn)) = messages::find_by_key(tx, &session, &key)? else { return Ok(None) };
            // A retry of a failed turn wants a new turn. If the turn ended well long ago, its reply was received, so
            // the same words are a new request.
            let is_repeat = jobs::find_answering(tx, &turn)?.is_none_or(|job| match job.state {
                JobState::Failed => false,
                _ => job.ended_at.is_none_or(|ended| ended >= since),
            });
            Ok(Some(key).filter(|_| is_repeat))
        };
        Ok(Some(app.engine.db().read(look).await?.unwrap_or(fresh)))
    }
}

/// Hashes the new input of a request.
fn conversation_digest(asked: &ClientConversation) -> String {
    let mut digest = Sha256::new();
    let results = asked.results.iter().flat_map(|(id, content)| [id.as_str(), content.as_str()]);
    let text = asked.new_text();
    for part in results.chain([text.as_str()]).chain(asked.new_image_hashes()) {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    encode_hex(&digest.finalize()[..16])
}
