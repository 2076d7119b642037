//! The images of a conversation, read when a prompt shows them.

use polyclaw_domain::media::{Image, MAX_SHOWN_IMAGE_BYTES, MediaHash};
use polyclaw_domain::prompt;
use polyclaw_store::media;

use super::Context;
use crate::core::Engine;
use crate::turn::{Driven, Halt};

impl Context {
    /// Has at hand what the next prompt shows, and at most one more: the first for which there is no room, so that it
    /// is not read again each time.
    pub async fn look_at_images(&mut self, engine: &Engine) -> Driven<()> {
        let newest: Vec<MediaHash> = prompt::newest_images(&self.lines).into_iter().cloned().collect();
        let known = std::mem::take(&mut self.gallery);
        let mut bytes = 0;
        for hash in newest {
            if bytes > MAX_SHOWN_IMAGE_BYTES {
                break;
            }
            let found = match known.get(&hash).or_else(|| self.gallery.get(&hash)) {
                Some(image) => Some(image.clone()),
                None => load(engine, hash).await?,
            };
            if let Some(image) = found {
                bytes += image.bytes().len();
                self.gallery.insert(image.hash().clone(), image);
            }
        }
        Ok(())
    }
}

/// One at a time: a read that took them all would keep others waiting.
async fn load(engine: &Engine, hash: MediaHash) -> Driven<Option<Image>> {
    engine.db().read(move |tx| media::load_image(tx, &hash)).await.map_err(|error| Halt::Lost(error.into()))
}
