//! Images of a conversation, read when a prompt shows them.

use polyclaw_domain::media::{Image, MAX_SHOWN_IMAGE_BYTES, MediaHash};
use polyclaw_domain::prompt;
use polyclaw_store::media;

use super::TurnContext;
use crate::core::Engine;
use crate::turn::{TurnAbort, TurnResult};

impl TurnContext {
    /// Loads the images that the next prompt shows and at most one more: the first that does not fit, so that it is not
    /// read again for each prompt.
    pub async fn load_images(&mut self, engine: &Engine) -> TurnResult<()> {
        let newest: Vec<MediaHash> = prompt::newest_images(&self.lines).into_iter().cloned().collect();
        let known = std::mem::take(&mut self.images);
        let mut bytes = 0;
        for hash in newest {
            if bytes > MAX_SHOWN_IMAGE_BYTES {
                break;
            }
            let found = match known.get(&hash).or_else(|| self.images.get(&hash)) {
                Some(image) => Some(image.clone()),
                None => load_image(engine, hash).await?,
            };
            if let Some(image) = found {
                bytes += image.bytes().len();
                self.images.insert(image.hash().clone(), image);
            }
        }
        Ok(())
    }
}

/// Reads one image at a time, because reading all of them in one query would block other readers.
async fn load_image(engine: &Engine, hash: MediaHash) -> TurnResult<Option<Image>> {
    engine
        .db()
        .read(move |tx| media::load_image(tx, &hash))
        .await
        .map_err(|error| TurnAbort::Lost(error.into()))
}
