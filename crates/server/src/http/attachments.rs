//! Attachments of a message. Text is given to the model, an image is shown to it, and a link is passed on as its URL.
//! Anything a model could not see is rejected instead of silently dropped.

use polyclaw_api::attachments::AttachmentBody;
use polyclaw_domain::media::{self, Image, UnsupportedImage};
use polyclaw_domain::message::{self, MessagePart, attached_images};
use polyclaw_domain::redact::quote_safely;

use crate::error::{Error, Result};

/// The number of attachments per message.
const MAX_ATTACHMENTS: usize = 20;
/// The characters of all text attachments together.
const MAX_TOTAL_TEXT_CHARS: usize = 500_000;
const MAX_NAME_CHARS: usize = 255;
const MAX_MEDIA_TYPE_BYTES: usize = 127;
const MAX_URL_BYTES: usize = 2048;

/// Parses the attachments of a message. Fails if any of them is unsupported.
pub fn parse_attachments(attachments: Vec<AttachmentBody>) -> Result<Vec<MessagePart>> {
    if attachments.len() > MAX_ATTACHMENTS {
        return Err(Error::AttachmentTooLarge(format!(
            "{} attachments, but at most {MAX_ATTACHMENTS} are allowed",
            attachments.len()
        )));
    }
    let chars: usize =
        attachments.iter().filter_map(|one| one.text.as_ref()).map(|text| text.chars().count()).sum();
    if chars > MAX_TOTAL_TEXT_CHARS {
        return Err(Error::AttachmentTooLarge(format!(
            "{chars} characters of text, but at most {MAX_TOTAL_TEXT_CHARS} are allowed"
        )));
    }
    check_image_count(attachments.into_iter().map(attachment_part).collect::<Result<_>>()?)
}

/// Checks that the parts do not contain too many images.
pub fn check_image_count(parts: Vec<MessagePart>) -> Result<Vec<MessagePart>> {
    match attached_images(&parts).count() {
        count if count > media::MAX_IMAGES_PER_MESSAGE => Err(Error::AttachmentTooLarge(format!(
            "{count} images, but at most {} are allowed",
            media::MAX_IMAGES_PER_MESSAGE
        ))),
        _ => Ok(parts),
    }
}

/// Decodes a base64 image. The type is detected from the data, not from the stated media type.
pub fn image_part(name: &str, media_type: &str, data: &str) -> Result<MessagePart> {
    let image = Image::from_base64(data).map_err(|refusal| match refusal {
        UnsupportedImage::Unknown => Error::AttachmentNotTaken(quote_safely(media_type)),
        UnsupportedImage::TooLarge(_) => Error::AttachmentTooLarge(refusal.to_string()),
        UnsupportedImage::Encoding => Error::invalid_field("attachments", "data must be base64"),
    })?;
    Ok(MessagePart::Attachment(message::MessageAttachment::from_image(name, image)))
}

fn attachment_part(attachment: AttachmentBody) -> Result<MessagePart> {
    let kind = attachment.media_type.to_ascii_lowercase();
    let is_plain = kind.len() <= MAX_MEDIA_TYPE_BYTES && kind.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_plain || !kind.contains('/') {
        return Err(Error::invalid_field("attachments", "media_type must be like text/plain"));
    }
    let is_seen = kind.starts_with("image/");
    if ["audio/", "video/"].iter().any(|node_name| kind.starts_with(node_name))
        || (is_seen && attachment.data.is_none())
    {
        return Err(Error::AttachmentNotTaken(quote_safely(&kind)));
    }
    if attachment.name.is_empty() || attachment.name.chars().count() > MAX_NAME_CHARS {
        return Err(Error::invalid_field(
            "attachments",
            format!("name must have 1 to {MAX_NAME_CHARS} characters"),
        ));
    }
    match (&attachment.text, &attachment.url, &attachment.data) {
        (Some(_), None, None) => {}
        (None, Some(url), None) if is_web_url(url) => {}
        (None, Some(_), None) => {
            return Err(Error::invalid_field("attachments", "url must start with http:// or https://"));
        }
        (None, None, Some(data)) => return image_part(&attachment.name, &kind, data),
        _ => {
            return Err(Error::invalid_field("attachments", "exactly one of text, url and data is required"));
        }
    }
    Ok(MessagePart::Attachment(message::MessageAttachment {
        name: attachment.name,
        media_type: attachment.media_type,
        url: attachment.url,
        text: attachment.text,
        media: None,
    }))
}

fn is_web_url(url: &str) -> bool {
    let known = url.starts_with("http://") || url.starts_with("https://");
    known && url.len() <= MAX_URL_BYTES && !url.chars().any(|c| c.is_control() || c.is_whitespace())
}
