//! Message attachments. A small text file is read into the message and an image is sent to the model with it. Any other
//! file is included by name, type and, unless it is secret, URL. Files are fetched only when the engine asks for them.

use std::time::Duration;

use polyclaw_domain::channel::AttachmentRef;
use polyclaw_domain::media::{Image, MAX_IMAGE_BYTES};
use polyclaw_domain::message::MessageAttachment;
use reqwest::RequestBuilder;

use crate::response;

/// Maximum size of a file that is read into a message.
pub(crate) const MAX_TEXT_FILE_BYTES: usize = 64 * 1024;
/// Timeout of one download. Later messages of the conversation wait for it.
const ATTACHMENT_FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum attachments handled per message.
pub(crate) const MAX_ATTACHMENTS: usize = 10;

const TEXT_MEDIA_TYPES: [&str; 7] = ["json", "xml", "yaml", "toml", "javascript", "x-sh", "sql"];
const TEXT_FILE_EXTENSIONS: [&str; 22] = [
    "txt", "md", "csv", "tsv", "log", "json", "jsonl", "xml", "yaml", "yml", "toml", "ini", "rs", "py", "js",
    "ts", "go", "c", "h", "java", "sh", "sql",
];

/// Image subtypes and file extensions that models accept. Other images are not fetched.
const IMAGE_FORMATS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// The kind of content that is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttachmentKind {
    Text,
    Image,
}

/// Attachment content that is passed to a model.
pub enum AttachmentContent {
    Text(String),
    Image(Image),
}

/// Whether the attachment is worth fetching: text or an image by media type, or by extension if the media type says
/// nothing, and not too large.
pub(crate) fn should_fetch(attached: &AttachmentRef) -> bool {
    let fits = |kind: AttachmentKind, size| usize::try_from(size).is_ok_and(|size| size <= kind.max_bytes());
    attachment_kind(attached).is_some_and(|kind| attached.size.is_none_or(|size| fits(kind, size)))
}

/// Guesses the kind from the media type and name that the platform reports.
fn attachment_kind(attached: &AttachmentRef) -> Option<AttachmentKind> {
    let media_type = media_type_essence(&attached.media_type);
    match is_text(&media_type, &attached.name) {
        true => Some(AttachmentKind::Text),
        false => is_image(&media_type, &attached.name).then_some(AttachmentKind::Image),
    }
}

/// Downloads an attachment. Returns `None` if the download is incomplete or too large, or if the content is neither
/// text nor an image.
pub(crate) async fn read_attachment(
    attached: &AttachmentRef,
    request: RequestBuilder,
) -> Option<AttachmentContent> {
    let kind = attachment_kind(attached)?;
    // A platform that requires a login redirects to a login page, which is not the file.
    let response = request
        .timeout(ATTACHMENT_FETCH_TIMEOUT)
        .send()
        .await
        .ok()
        .filter(|response| response.status().is_success())?;
    let bytes = response::read_bounded_body(response, kind.max_bytes()).await?;
    match kind {
        AttachmentKind::Text => {
            let text = String::from_utf8(bytes).ok()?;
            (!text.contains('\0')).then_some(AttachmentContent::Text(text))
        }
        AttachmentKind::Image => Image::from_bytes(bytes).ok().map(AttachmentContent::Image),
    }
}

/// Builds the message attachment. `content` is the downloaded content, if any.
pub(crate) fn to_attachment(
    attached: &AttachmentRef,
    content: Option<AttachmentContent>,
) -> MessageAttachment {
    match content {
        Some(AttachmentContent::Image(image)) => MessageAttachment {
            url: attached.url.clone(),
            ..MessageAttachment::from_image(&*attached.name, image)
        },
        Some(AttachmentContent::Text(text)) => {
            MessageAttachment { text: Some(text), ..attached.to_attachment() }
        }
        None => attached.to_attachment(),
    }
}

impl AttachmentKind {
    fn max_bytes(self) -> usize {
        match self {
            Self::Text => MAX_TEXT_FILE_BYTES,
            Self::Image => MAX_IMAGE_BYTES,
        }
    }
}

/// Returns the media type in lower case, without parameters.
fn media_type_essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_image(media_type: &str, name: &str) -> bool {
    match media_type.split_once('/') {
        Some(("image", kind)) => IMAGE_FORMATS.contains(&kind),
        Some(("application", "octet-stream")) | None => has_extension(name, &IMAGE_FORMATS),
        Some(_) => false,
    }
}

fn has_extension(name: &str, endings: &[&str]) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| endings.contains(&ending.as_str()))
}

fn is_text(media_type: &str, name: &str) -> bool {
    match media_type.split_once('/') {
        Some(("text", _)) => true,
        Some(("application", kind)) if kind != "octet-stream" => {
            TEXT_MEDIA_TYPES.iter().any(|text| kind == *text || kind.ends_with(&format!("+{text}")))
        }
        Some(("application", _)) | None => has_extension(name, &TEXT_FILE_EXTENSIONS),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachment_type_and_size_decide_fetching() {
        let wanted = |media_type: &str, name: &str, size| {
            let (name, media_type) = (name.to_owned(), media_type.to_owned());
            should_fetch(&AttachmentRef { name, media_type, size: Some(size), url: None, handle: None })
        };
        for (media_type, name, size, expected) in [
            ("image/jpeg", "photo", 5 << 20, true),
            ("image/jpeg", "photo", (5 << 20) + 1, false),
            ("", "photo.JPG", 9, true),
            ("application/octet-stream", "a.webp", 9, true),
            ("application/pdf", "a.png", 9, false),
            ("video/mp4", "a.png", 9, false),
            ("image/PNG; charset=binary", "a", 9, true),
            ("image/jpg", "a", 9, true),
            ("image/svg+xml", "a.svg", 9, false),
            ("image/heic", "a.heic", 9, false),
            ("Text/Plain", "a", 9, true),
            ("text/plain", "a.png", 9, true),
            ("text/plain", "a.txt", 64 << 10, true),
            ("text/plain", "a.txt", (64 << 10) + 1, false),
        ] {
            assert_eq!(wanted(media_type, name, size), expected, "{media_type} {name} {size}");
        }
    }

    #[test]
    fn text_files_are_detected_by_type_or_name() {
        let table = [
            ("text/plain", "x", true),
            ("text/csv; charset=utf-8", "x", true),
            ("application/json", "x", true),
            ("application/ld+json", "x", true),
            ("application/pdf", "notes.txt", false),
            ("image/png", "notes.txt", false),
            ("application/octet-stream", "main.RS", true),
            ("", "notes.md", true),
            ("", "notes", false),
            ("", "photo.jpg", false),
        ];
        for (media_type, name, expected) in table {
            assert_eq!(is_text(&media_type_essence(media_type), name), expected, "{media_type} {name}");
        }
    }
}
