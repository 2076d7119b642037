//! Secrets that a sender may leak: its token, the secrets of its config, and the control plane's tokens, which are
//! stored as hashes only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use polyclaw_domain::audit::content_hash;
use polyclaw_domain::envelope::MAX_PAYLOAD_BYTES;
use polyclaw_domain::id::InstanceId;
use polyclaw_domain::redact::{Redactor, TOKEN_HEX_DIGITS};
use polyclaw_store::Tx;
use polyclaw_store::registry::tokens;

use super::send::NewEnvelope;
use crate::control::{ConfigLoader, Control};
use crate::file;
use crate::instance_paths::InstancePaths;

/// The stamps of the files that secrets come from.
type SecretFilesStamp = [Option<file::FileStamp>; 3];

#[derive(Default)]
pub(super) struct SenderRedactors(Mutex<HashMap<InstanceId, (SecretFilesStamp, Arc<Redactor>)>>);

impl SenderRedactors {
    fn get(&self, id: &InstanceId, stamp: &SecretFilesStamp) -> Option<Arc<Redactor>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(id).filter(|(of, _)| of == stamp).map(|(_, redactor)| Arc::clone(redactor))
    }

    fn insert(&self, id: InstanceId, stamp: SecretFilesStamp, redactor: &Arc<Redactor>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, (stamp, Arc::clone(redactor)));
    }
}

impl Control {
    /// Returns redactors for the secrets that must not appear in this message, in addition to texts that look like
    /// secrets.
    pub(super) async fn redactors_for(&self, from: &str, envelope: &NewEnvelope) -> Vec<Arc<Redactor>> {
        let (own, given_out) =
            tokio::join!(self.redactor_for_sender(from), self.redactor_for_tokens(envelope));
        own.into_iter().chain(given_out).collect()
    }

    /// Returns the sender's redactor and reloads it when a file changed. `None` for an unknown sender, whose message
    /// is rejected.
    async fn redactor_for_sender(&self, from: &str) -> Option<Arc<Redactor>> {
        let one = self.find_instance(from).await.ok()?;
        let place = self.instance_paths(&one);
        let stamp = secret_files_stamp(&place);
        if let Some(known) = self.broker.senders.get(&one.id, &stamp) {
            return Some(known);
        }
        let load = Arc::clone(&self.load);
        let redactor =
            tokio::task::spawn_blocking(move || Arc::new(load_redactor(&load, &place))).await.ok()?;
        self.broker.senders.insert(one.id, stamp, &redactor);
        Some(redactor)
    }

    /// Returns a redactor for control plane tokens in the message.
    async fn redactor_for_tokens(&self, envelope: &NewEnvelope) -> Option<Arc<Redactor>> {
        let payload = Some(envelope.payload.to_string()).filter(|written| written.len() <= MAX_PAYLOAD_BYTES);
        let words = [envelope.correlation.as_ref(), envelope.key.as_ref(), envelope.trace.as_ref()];
        let texts = [Some(&envelope.kind), payload.as_ref()].into_iter().chain(words);
        let candidates: Vec<String> = texts.flatten().flat_map(|text| find_token_candidates(text)).collect();
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

fn find_token_candidates(text: &str) -> impl Iterator<Item = String> {
    let runs = text.split(|c: char| !c.is_ascii_hexdigit());
    runs.filter(|run| run.len() == TOKEN_HEX_DIGITS).map(str::to_owned)
}

fn secret_files_stamp(place: &InstancePaths) -> SecretFilesStamp {
    [place.config_file(), place.token_file(), place.secrets_file()].map(|path| file::read_stamp(&path))
}

/// Loads the secrets of an instance. If the config is unreadable, only the token is redacted.
fn load_redactor(load: &ConfigLoader, place: &InstancePaths) -> Redactor {
    let text = file::read_text(&place.config_file(), file::MAX_CONFIG_BYTES);
    let config = text.ok().and_then(|text| load(place.path(), &text).ok());
    let named = config.iter().flat_map(|config| &config.secrets).map(|secret| secret.expose().to_owned());
    Redactor::new(named.chain(file::read_text(&place.token_file(), file::MAX_SMALL_FILE_BYTES)))
}
