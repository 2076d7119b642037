//! Images by the hash of their bytes. Each is stored once, as long as a message or an open broadcast uses it.

use polyclaw_domain::id::MessageId;
use polyclaw_domain::media::{AttachmentImage, Image, MediaHash};
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::Tx;

/// Stores an image used by a message.
pub(crate) fn attach_to_message(
    tx: &mut Tx<'_>,
    message: &MessageId,
    media: &AttachmentImage,
    now: Millis,
) -> Result<()> {
    const INSERT_MESSAGE_USE: &str = "INSERT INTO message_media (message_id, hash)
        SELECT CAST($1 AS TEXT), m.hash FROM media m WHERE m.hash = $2 ON CONFLICT (message_id, hash) DO NOTHING";
    upsert_image(tx, media, now)?;
    tx.execute(INSERT_MESSAGE_USE, params![message, media.hash()]).map(drop)
}

/// Stores an image used by a broadcast until it is closed. Its agents get the message, with the image, one after the
/// other.
pub(crate) fn attach_to_broadcast(
    tx: &mut Tx<'_>,
    round: &str,
    media: &AttachmentImage,
    now: Millis,
) -> Result<()> {
    const INSERT_BROADCAST_USE: &str = "INSERT INTO broadcast_media (broadcast_id, hash)
        SELECT CAST($1 AS TEXT), m.hash FROM media m WHERE m.hash = $2 ON CONFLICT (broadcast_id, hash) DO NOTHING";
    upsert_image(tx, media, now)?;
    tx.execute(INSERT_BROADCAST_USE, params![round, media.hash()]).map(drop)
}

/// Removes a closed broadcast's uses. The messages of its agents keep the image from now on.
pub(crate) fn detach_from_broadcast(tx: &mut Tx<'_>, round: &str) -> Result<()> {
    tx.execute("DELETE FROM broadcast_media WHERE broadcast_id = $1", params![round]).map(drop)
}

fn upsert_image(tx: &mut Tx<'_>, media: &AttachmentImage, now: Millis) -> Result<()> {
    const UPSERT_IMAGE: &str =
        "INSERT INTO media (hash, media_type, bytes, created_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (hash) DO UPDATE SET created_at = excluded.created_at";
    let AttachmentImage::Fresh(image) = media else { return Ok(()) };
    // An existing row is updated too, so that its lock keeps others from removing it before it is used.
    tx.execute(UPSERT_IMAGE, params![image.hash(), image.media_type(), image.bytes(), now]).map(drop)
}

/// Returns the image with this hash, if it is still valid.
pub fn load_image(tx: &mut Tx<'_>, hash: &MediaHash) -> Result<Option<Image>> {
    const SQL: &str = "SELECT bytes FROM media WHERE hash = $1";
    let found =
        tx.query_one(SQL, params![hash], |row| row.bytes(0, |bytes| Image::from_bytes(bytes).ok()))?;
    Ok(found.flatten())
}

/// Removes unused images and returns their number. The row lock waits for transactions that are about to use one, and
/// the second check sees their use.
pub fn remove_unused(tx: &mut Tx<'_>) -> Result<usize> {
    const FIND_UNUSED: &str = "SELECT m.hash FROM media m
        WHERE NOT EXISTS (SELECT 1 FROM message_media u WHERE u.hash = m.hash)
          AND NOT EXISTS (SELECT 1 FROM broadcast_media r WHERE r.hash = m.hash) LIMIT 1000 /* lock */";
    const DELETE_IF_UNUSED: &str = "DELETE FROM media
        WHERE hash = $1 AND NOT EXISTS (SELECT 1 FROM message_media u WHERE u.hash = $1)
          AND NOT EXISTS (SELECT 1 FROM broadcast_media r WHERE r.hash = $1)";
    let mut removed = 0;
    for hash in tx.query(FIND_UNUSED, params![], |row| row.text(0))? {
        removed += tx.execute(DELETE_IF_UNUSED, params![&hash])?;
    }
    Ok(removed)
}
