//! What people attach to a message. Text goes to the model and a link is named to it; what no model would be shown
//! is refused, not silently left out.

use polyclaw_domain::message::{self, Part};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::{Error, Result};

/// Most attachments of one message.
const MOST: usize = 20;
/// Most characters of their texts together.
const CHARS: usize = 500_000;
const NAME_CHARS: usize = 255;
const TYPE_BYTES: usize = 127;
const URL_BYTES: usize = 2048;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    name: String,
    /// What it is, for example `text/markdown`. Images, audio and video are refused.
    media_type: String,
    /// What it says: the model reads it. At most 500,000 characters over all attachments of a message.
    text: Option<String>,
    /// Or where it is on the web: the model is told the address.
    url: Option<String>,
}

/// The attachments of one message, if all of them can be taken.
pub fn take(attachments: Vec<Attachment>) -> Result<Vec<Part>> {
    if attachments.len() > MOST {
        return Err(Error::AttachmentTooLarge(format!("{} attachments, at most {MOST}", attachments.len())));
    }
    let chars: usize =
        attachments.iter().filter_map(|one| one.text.as_ref()).map(|text| text.chars().count()).sum();
    if chars > CHARS {
        return Err(Error::AttachmentTooLarge(format!("{chars} characters of text, at most {CHARS}")));
    }
    attachments.into_iter().map(Attachment::check).collect()
}

impl Attachment {
    fn check(self) -> Result<Part> {
        let kind = self.media_type.to_ascii_lowercase();
        let is_plain = kind.len() <= TYPE_BYTES && kind.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain || !kind.contains('/') {
            return Err(Error::invalid("attachments", "a media_type is like text/plain"));
        }
        if ["image/", "audio/", "video/"].iter().any(|family| kind.starts_with(family)) {
            return Err(Error::AttachmentNotTaken(kind.chars().take(80).collect()));
        }
        if self.name.is_empty() || self.name.chars().count() > NAME_CHARS {
            return Err(Error::invalid("attachments", format!("a name has 1 to {NAME_CHARS} characters")));
        }
        match (&self.text, &self.url) {
            (Some(_), None) => {}
            (None, Some(url)) if is_on_the_web(url) => {}
            (None, Some(_)) => {
                return Err(Error::invalid("attachments", "a url begins with http:// or https://"));
            }
            _ => return Err(Error::invalid("attachments", "give text or url, one of them")),
        }
        Ok(Part::Attachment(message::Attachment {
            name: self.name,
            media_type: self.media_type,
            url: self.url,
            text: self.text,
        }))
    }
}

fn is_on_the_web(url: &str) -> bool {
    let known = url.starts_with("http://") || url.starts_with("https://");
    known && url.len() <= URL_BYTES && !url.chars().any(|c| c.is_control() || c.is_whitespace())
}
