//! Attachments of Telegram messages. File URLs contain the bot's token, so no message includes them. Small text files
//! and images are read here; any other file is included by name and type only.

use polyclaw_domain::channel::AttachmentRef;
use polyclaw_domain::media::MAX_IMAGE_BYTES;
use serde_json::{Value, json};

use super::api::TelegramApi;
use super::update::{TelegramMedia, TelegramMessage};
use crate::attachment::{self, AttachmentContent};

pub(super) fn attachment_refs(message: &TelegramMessage) -> Vec<AttachmentRef> {
    let attached = |(media, name, media_type): (&TelegramMedia, &str, &str)| AttachmentRef {
        name: media.file_name.clone().unwrap_or_else(|| name.to_owned()),
        media_type: media.mime_type.clone().unwrap_or_else(|| media_type.to_owned()),
        size: media.file_size,
        url: None,
        handle: Some(media.file_id.clone()),
    };
    media_files(message).map(attached).collect()
}

pub(super) async fn fetch_attachment(
    api: &TelegramApi,
    attached: &AttachmentRef,
) -> Option<AttachmentContent> {
    let found = api.call("getFile", &json!({ "file_id": attached.handle.as_ref()? }), None).await.ok()?;
    attachment::read_attachment(
        attached,
        api.download_request(found.get("file_path").and_then(Value::as_str)?),
    )
    .await
}

/// Lists the media of a message, each with the name and type to use if Telegram gives none.
fn media_files(
    message: &TelegramMessage,
) -> impl Iterator<Item = (&TelegramMedia, &'static str, &'static str)> {
    let named = |media, name, media_type| (media, name, media_type);
    let photo = largest_photo(&message.photo).map(|media| named(media, "photo.jpg", "image/jpeg"));
    let document = message.document.as_ref().map(|media| named(media, "file", ""));
    let audio = message.audio.as_ref().map(|media| named(media, "audio", "audio/mpeg"));
    let voice = message.voice.as_ref().map(|media| named(media, "voice.ogg", "audio/ogg"));
    let video = message.video.as_ref().map(|media| named(media, "video.mp4", "video/mp4"));
    let note = message.video_note.as_ref().map(|media| named(media, "video.mp4", "video/mp4"));
    [photo, document, audio, voice, video, note].into_iter().flatten()
}

/// Returns the largest size of a photo that is within the limit, else the largest. Sizes are ordered from small to
/// large.
fn largest_photo(sizes: &[TelegramMedia]) -> Option<&TelegramMedia> {
    let is_taken = |size: &&TelegramMedia| size.file_size.is_none_or(|bytes| bytes <= MAX_IMAGE_BYTES as u64);
    sizes.iter().rev().find(is_taken).or(sizes.last())
}
