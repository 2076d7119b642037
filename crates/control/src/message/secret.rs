//! Secrets a sender has of its own: its token, what its config names, and the tokens of this control plane, whose
//! hashes alone are kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use polyclaw_domain::audit::content_hash;
use polyclaw_domain::envelope::MAX_PAYLOAD_BYTES;
use polyclaw_domain::id::InstanceId;
use polyclaw_domain::redact::{Redactor, TOKEN_HEX_DIGITS};
use polyclaw_store::Tx;
use polyclaw_store::registry::tokens;

use super::send::Letter;
use crate::control::{Control, Loader};
use crate::file;
use crate::place::Place;

/// Of each file that secrets come from.
type Stamp = [Option<file::Stamp>; 3];

#[derive(Default)]
pub(super) struct Senders(Mutex<HashMap<InstanceId, (Stamp, Arc<Redactor>)>>);

impl Senders {
    fn get(&self, id: &InstanceId, stamp: &Stamp) -> Option<Arc<Redactor>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(id).filter(|(of, _)| of == stamp).map(|(_, redactor)| Arc::clone(redactor))
    }

    fn put(&self, id: InstanceId, stamp: Stamp, redactor: &Arc<Redactor>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, (stamp, Arc::clone(redactor)));
    }
}

impl Control {
    /// What must not be in this message, beside what looks like a secret by itself.
    pub(super) async fn known_to(&self, from: &str, letter: &Letter) -> Vec<Arc<Redactor>> {
        let (own, given_out) = tokio::join!(self.secrets_of(from), self.tokens_in(letter));
        own.into_iter().chain(given_out).collect()
    }

    /// Read again only where a file changed. Nothing of a sender that is not there: its message is refused.
    async fn secrets_of(&self, from: &str) -> Option<Arc<Redactor>> {
        let one = self.row(from).await.ok()?;
        let place = self.place(&one);
        let stamp = stamp(&place);
        if let Some(known) = self.broker.senders.get(&one.id, &stamp) {
            return Some(known);
        }
        let load = Arc::clone(&self.load);
        let redactor = tokio::task::spawn_blocking(move || Arc::new(read(&load, &place))).await.ok()?;
        self.broker.senders.put(one.id, stamp, &redactor);
        Some(redactor)
    }

    /// The tokens of this control plane that a message holds.
    async fn tokens_in(&self, letter: &Letter) -> Option<Arc<Redactor>> {
        let payload = Some(letter.payload.to_string()).filter(|written| written.len() <= MAX_PAYLOAD_BYTES);
        let words = [letter.correlation.as_ref(), letter.key.as_ref(), letter.trace.as_ref()];
        let texts = [Some(&letter.kind), payload.as_ref()].into_iter().chain(words);
        let candidates: Vec<String> = texts.flatten().flat_map(|text| like_tokens(text)).collect();
        if candidates.is_empty() {
            return None;
        }
        let look = move |tx: &mut Tx<'_>| {
            let mut found = Vec::new();
            for one in &candidates {
                if tokens::find_by_hash(tx, &content_hash(one.as_bytes()))?.is_some() {
                    found.push(one.clone());
                }
            }
            Ok(found)
        };
        let found = self.db.read(look).await.ok()?;
        Some(Arc::new(Redactor::new(found)))
    }
}

fn like_tokens(text: &str) -> impl Iterator<Item = String> {
    let runs = text.split(|c: char| !c.is_ascii_hexdigit());
    runs.filter(|run| run.len() == TOKEN_HEX_DIGITS).map(str::to_owned)
}

fn stamp(place: &Place) -> Stamp {
    [place.config(), place.token_file(), place.secrets_file()].map(|path| file::stamp(&path))
}

/// A config that can not be read names nothing; the token is hidden all the same.
fn read(load: &Loader, place: &Place) -> Redactor {
    let text = file::read_text(&place.config(), file::LARGEST_CONFIG);
    let config = text.ok().and_then(|text| load(place.path(), &text).ok());
    let named = config.iter().flat_map(|config| &config.secrets).map(|secret| secret.expose().to_owned());
    Redactor::new(named.chain(file::read_text(&place.token_file(), file::SMALL)))
}
