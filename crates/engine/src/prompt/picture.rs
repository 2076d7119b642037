//! The images of a conversation, read when a prompt shows them.

use polyclaw_domain::media::MediaHash;
use polyclaw_domain::prompt;
use polyclaw_store::{Tx, media};

use super::Context;
use crate::core::Engine;
use crate::turn::{Driven, Halt};

impl Context {
    /// Has at hand what the next prompt shows, and nothing more.
    pub async fn look_at_images(&mut self, engine: &Engine) -> Driven<()> {
        let shown: Vec<MediaHash> = prompt::newest_images(&self.lines).into_iter().cloned().collect();
        self.gallery.retain(|hash, _| shown.contains(hash));
        let missing: Vec<_> = shown.into_iter().filter(|hash| !self.gallery.contains_key(hash)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let read = move |tx: &mut Tx<'_>| {
            let found: polyclaw_store::Result<Vec<_>> =
                missing.iter().map(|hash| media::load(tx, hash)).collect();
            found
        };
        let found = engine.db().read(read).await.map_err(|error| Halt::Lost(error.into()))?;
        self.gallery.extend(found.into_iter().flatten().map(|image| (image.hash().clone(), image)));
        Ok(())
    }
}
