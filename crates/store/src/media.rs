//! Images by the hash of their bytes, each kept once for as long as a message or an open round shows it.

use polyclaw_domain::id::MessageId;
use polyclaw_domain::media::{AttachmentImage, Image, MediaHash};
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::Tx;

/// Keeps what a message shows, with the message.
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

/// Keeps what a round shows until it is closed: its agents are given the message one after the other, and from the round.
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

/// Every agent of the round has its copy, and that keeps the image from now on.
pub(crate) fn detach_from_broadcast(tx: &mut Tx<'_>, round: &str) -> Result<()> {
    tx.execute("DELETE FROM broadcast_media WHERE broadcast_id = $1", params![round]).map(drop)
}

fn upsert_image(tx: &mut Tx<'_>, media: &AttachmentImage, now: Millis) -> Result<()> {
    const UPSERT_IMAGE: &str =
        "INSERT INTO media (hash, media_type, bytes, created_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (hash) DO UPDATE SET created_at = excluded.created_at";
    let AttachmentImage::Fresh(image) = media else { return Ok(()) };
    // One that is there is written to as well, so that nobody removes it before it is used.
    tx.execute(UPSERT_IMAGE, params![image.hash(), image.media_type(), image.bytes(), now]).map(drop)
}

/// What is there under a hash, if it still is an image.
pub fn load_image(tx: &mut Tx<'_>, hash: &MediaHash) -> Result<Option<Image>> {
    const SQL: &str = "SELECT bytes FROM media WHERE hash = $1";
    let found =
        tx.query_one(SQL, params![hash], |row| row.bytes(0, |bytes| Image::from_bytes(bytes).ok()))?;
    Ok(found.flatten())
}

/// Removes what nothing shows any more and says how many there were. Whoever is just about to show one is waited for:
/// the second look sees what they have stored.
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
