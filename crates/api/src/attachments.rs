//! Attachments of a message. Text is given to the model, an image is shown to it, and a link is passed on as its URL.
//! Anything a model could not see is rejected instead of silently dropped.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachmentBody {
    /// The file name.
    pub name: String,
    /// The media type, for example `text/markdown`. Audio and video are rejected. The actual type of an image is
    /// detected from its data.
    pub media_type: String,
    /// The text content, given to the model. At most 500,000 characters over all attachments of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A URL instead of content. The model gets the URL, not what it points to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A base64-encoded image instead: PNG, JPEG, GIF or WebP, at most 5 MB each and 10 per message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}
