//! The same question asked twice. A client says so with a key; OpenAI's own clients send none, but count their tries.

use axum::http::HeaderMap;
use polyclaw_domain::hex::encode_hex;
use polyclaw_domain::job::JobState;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{Tx, jobs, messages};
use sha2::{Digest, Sha256};

use crate::error::Result;
use crate::openai::content::ClientConversation;
use crate::state::AppState;

/// What OpenAI's clients count their tries in, from 0 on.
const RETRY_COUNT_HEADER: &str = "x-stainless-retry-count";
/// They pause for eight seconds at most between two tries.
const MAX_RETRY_AGE_MS: i64 = 60 * 1000;

/// How a client marks a question it may ask again.
#[derive(Debug, PartialEq, Eq)]
pub enum RepeatMarker {
    /// It says nothing: every question is a new one.
    Never,
    Key(String),
    /// It was tried so often before.
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

    /// A key the client chose itself.
    pub fn client_key(&self) -> Option<&str> {
        match self {
            Self::Key(key) => Some(key),
            _ => None,
        }
    }

    /// The key a question is stored with. The first try of a client that counts gets one nobody else has; a later try
    /// of the same words gets the one of the try before, if that arrived and its turn did not fail.
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
            // The same words further back were another question.
            let Some(key) = messages::find_last_key(tx, &session)?.filter(|key| key.starts_with(&begin))
            else {
                return Ok(None);
            };
            let Some((_, turn)) = messages::find_by_key(tx, &session, &key)? else { return Ok(None) };
            // A turn that failed is no answer: who tries again then wants another. One that ended well long ago was
            // heard: who says the same now says it again.
            let is_repeat = jobs::find_answering(tx, &turn)?.is_none_or(|job| match job.state {
                JobState::Failed => false,
                _ => job.ended_at.is_none_or(|ended| ended >= since),
            });
            Ok(Some(key).filter(|_| is_repeat))
        };
        Ok(Some(app.engine.db().read(look).await?.unwrap_or(fresh)))
    }
}

/// Of all that is new in a question.
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
