//! The three classes of message: orchestration input, event, tool protocol. Only the first and the last are messages
//! here; an event is a row of its own (`event.rs`) and can never reach a prompt.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::AgentId;
use crate::media::{AttachmentImage, Image};
use crate::tool::ToolCall;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    User,
    Assistant,
    Tool,
}

impl MessageRole {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::User, Self::Assistant, Self::Tool].into_iter().find(|role| role.as_str() == text)
    }
}

/// Who caused a message. Set by the runtime, never derived from the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageOrigin {
    User,
    Agent(AgentId),
    /// An agent of another instance, as that instance names it.
    Remote {
        instance: String,
        agent: String,
    },
    Cron,
    Hook,
    System,
}

impl MessageOrigin {
    /// Only a person's message steers a running turn and resets the budget of automatic turns.
    pub fn is_person(&self) -> bool {
        matches!(self, Self::User)
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "user" => Some(Self::User),
            "cron" => Some(Self::Cron),
            "hook" => Some(Self::Hook),
            "system" => Some(Self::System),
            _ => Self::parse_agent(text.strip_prefix("agent:")?),
        }
    }

    /// Parses `<agent>` or `<instance>/<agent>`.
    fn parse_agent(text: &str) -> Option<Self> {
        let Some((instance, agent)) = text.split_once('/') else {
            return AgentId::parse(text).ok().map(Self::Agent);
        };
        let is_name = |name: &str| crate::instance::InstanceName::parse(name).is_ok();
        let (instance, known) =
            (is_name(instance).then(|| instance.to_owned())?, AgentId::parse(agent).is_ok());
        known.then(|| Self::Remote { instance, agent: agent.to_owned() })
    }
}

impl fmt::Display for MessageOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Agent(id) => write!(f, "agent:{id}"),
            Self::Remote { instance, agent } => write!(f, "agent:{instance}/{agent}"),
            Self::Cron => f.write_str("cron"),
            Self::Hook => f.write_str("hook"),
            Self::System => f.write_str("system"),
        }
    }
}

impl Serialize for MessageOrigin {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MessageOrigin {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("'{text}' is not an origin")))
    }
}

/// A structured part of a message. The plain text is stored separately.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MessagePart {
    /// A call made by the model, in its order.
    ToolCall(ToolCall),
    /// The one result of a call. `unknown` and `skipped` results are errors to the model.
    ToolResult {
        call_id: String,
        name: String,
        is_error: bool,
    },
    Attachment(MessageAttachment),
}

/// An attachment of a message: its text, URL or image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageAttachment {
    pub name: String,
    pub media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<AttachmentImage>,
}

impl MessageAttachment {
    pub fn from_image(name: impl Into<String>, image: Image) -> Self {
        Self {
            name: name.into(),
            media_type: image.media_type().to_owned(),
            url: None,
            text: None,
            media: Some(AttachmentImage::Fresh(image)),
        }
    }
}

pub fn attachments(parts: &[MessagePart]) -> impl Iterator<Item = &MessageAttachment> {
    parts.iter().filter_map(|part| match part {
        MessagePart::Attachment(attachment) => Some(attachment),
        _ => None,
    })
}

/// Returns the attachments that are images.
pub fn attached_images(parts: &[MessagePart]) -> impl DoubleEndedIterator<Item = &AttachmentImage> {
    parts.iter().filter_map(|part| match part {
        MessagePart::Attachment(attachment) => attachment.media.as_ref(),
        _ => None,
    })
}

/// Returns the parts as they are stored: each image is replaced by its hash.
pub fn to_stored_parts(parts: &[MessagePart]) -> Vec<MessagePart> {
    let mut parts = parts.to_vec();
    for part in &mut parts {
        if let MessagePart::Attachment(MessageAttachment { media: Some(media), .. }) = part {
            *media = media.to_stored();
        }
    }
    parts
}

pub fn tool_calls(parts: &[MessagePart]) -> impl Iterator<Item = &ToolCall> {
    parts.iter().filter_map(|part| match part {
        MessagePart::ToolCall(call) => Some(call),
        _ => None,
    })
}

impl schemars::JsonSchema for MessageOrigin {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Origin".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}
