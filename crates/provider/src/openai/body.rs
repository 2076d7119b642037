//! Serializes a prompt as a request body.

use polyclaw_domain::media::Image;
use polyclaw_domain::provider::{Prompt, PromptMessage, ReasoningEffort};
use polyclaw_domain::tool::{ToolCall, ToolSpec};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

use crate::error_class::ModelCallError;
use crate::tool_calls::replayed_arguments;

/// Fields that stay the same from call to call come first, because providers cache the common prefix.
#[derive(Serialize)]
struct ChatCompletionBody<'a> {
    model: &'a str,
    stream: bool,
    stream_options: ChatStreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<ReasoningEffort>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<FunctionTool<'a>>,
    messages: WireMessages<'a>,
}

#[derive(Serialize)]
struct ChatStreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", content = "function", rename_all = "lowercase")]
enum FunctionTool<'a> {
    Function { name: &'a str, description: &'a str, parameters: &'a Value },
}

struct WireMessages<'a>(&'a Prompt);

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum WireMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: WireContent<'a>,
    },
    Assistant {
        content: &'a str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireToolCall<'a>>,
    },
    Tool {
        content: &'a str,
        tool_call_id: &'a str,
    },
}

/// Text alone is a string, because not every server accepts it as a part.
struct WireContent<'a> {
    text: &'a str,
    images: &'a [Image],
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: DataUrl<'a> },
}

struct DataUrl<'a>(&'a Image);

#[derive(Serialize)]
struct WireToolCall<'a> {
    r#type: &'static str,
    id: &'a str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    arguments: String,
}

pub(super) fn request_bytes(model: &str, prompt: &Prompt) -> Result<Vec<u8>, ModelCallError> {
    let (max_tokens, max_completion_tokens) = if needs_max_completion_tokens(model) {
        (None, prompt.max_tokens)
    } else {
        (prompt.max_tokens, None)
    };
    let body = ChatCompletionBody {
        model,
        stream: true,
        stream_options: ChatStreamOptions { include_usage: true },
        temperature: prompt.temperature,
        max_tokens,
        max_completion_tokens,
        reasoning_effort: prompt.reasoning_effort,
        tools: prompt.tools.iter().map(|spec| FunctionTool::from_spec(spec)).collect(),
        messages: WireMessages(prompt),
    };
    serde_json::to_vec(&body).map_err(|_| ModelCallError::malformed("cannot serialize the request to JSON"))
}

/// OpenAI's reasoning models reject `max_tokens`, which counts only visible tokens.
fn needs_max_completion_tokens(model: &str) -> bool {
    ["gpt-5", "gpt-6", "o1", "o3", "o4"].iter().any(|node_name| model.starts_with(node_name))
}

impl<'a> FunctionTool<'a> {
    fn from_spec(spec: &'a ToolSpec) -> Self {
        Self::Function { name: &spec.name, description: &spec.description, parameters: &spec.parameters }
    }
}

impl Serialize for WireMessages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        if !self.0.system.is_empty() {
            list.serialize_element(&WireMessage::System { content: &self.0.system })?;
        }
        for message in self.0.messages.iter().filter_map(WireMessage::from_message) {
            list.serialize_element(&message)?;
        }
        list.end()
    }
}

impl<'a> WireMessage<'a> {
    fn from_message(message: &'a PromptMessage) -> Option<Self> {
        match message {
            PromptMessage::User { text, images } => {
                Some(Self::User { content: WireContent { text, images } })
            }
            // Providers reject an assistant message without content.
            PromptMessage::Assistant { text, calls } if text.is_empty() && calls.is_empty() => None,
            PromptMessage::Assistant { text, calls } => Some(Self::Assistant {
                content: text,
                tool_calls: calls.iter().map(WireToolCall::from_call).collect(),
            }),
            PromptMessage::ToolResult { call_id, content, .. } => {
                Some(Self::Tool { content, tool_call_id: call_id })
            }
        }
    }
}

impl Serialize for WireContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.images.is_empty() {
            return self.text.serialize(serializer);
        }
        let mut parts = serializer.serialize_seq(None)?;
        if !self.text.is_empty() {
            parts.serialize_element(&WirePart::Text { text: self.text })?;
        }
        for image in self.images {
            parts.serialize_element(&WirePart::ImageUrl { image_url: DataUrl(image) })?;
        }
        parts.end()
    }
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("url", &self.0.data_url())?;
        map.end()
    }
}

impl<'a> WireToolCall<'a> {
    fn from_call(call: &'a ToolCall) -> Self {
        let function = WireFunction { name: &call.name, arguments: replayed_arguments(call).to_string() };
        Self { r#type: "function", id: &call.id, function }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reasoning_models_use_max_completion_tokens() {
        let prompt = Prompt { max_tokens: Some(9), ..Prompt::default() };
        let keys = |model| {
            let body: Value = serde_json::from_slice(&request_bytes(model, &prompt).unwrap()).unwrap();
            (body.get("max_tokens").cloned(), body.get("max_completion_tokens").cloned())
        };
        assert_eq!(keys("gpt-5-mini"), (None, Some(json!(9))));
        assert_eq!(keys("qwen3:8b"), (Some(json!(9)), None));
    }

    #[test]
    fn images_follow_text_as_content_parts() {
        let image = Image::from_bytes(*b"GIF89a").unwrap();
        let shown = |text: &str| {
            let message = PromptMessage::User { text: text.into(), images: vec![image.clone()] };
            let prompt = Prompt { messages: vec![message], ..Prompt::default() };
            let body: Value = serde_json::from_slice(&request_bytes("m", &prompt).unwrap()).unwrap();
            body["messages"][0]["content"].clone()
        };
        let part = json!({ "type": "image_url", "image_url": { "url": "data:image/gif;base64,R0lGODlh" } });
        assert_eq!(shown("look"), json!([{ "type": "text", "text": "look" }, part]));
        assert_eq!(shown(""), json!([part]));
    }

    #[test]
    fn empty_assistant_message_is_omitted() {
        let silent = PromptMessage::Assistant { text: String::new(), calls: vec![] };
        let prompt = Prompt { messages: vec![silent, PromptMessage::user_text("x")], ..Prompt::default() };
        let body: Value = serde_json::from_slice(&request_bytes("m", &prompt).unwrap()).unwrap();
        assert_eq!(body["messages"], json!([{ "role": "user", "content": "x" }]));
    }
}
