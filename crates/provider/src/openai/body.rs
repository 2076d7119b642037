//! A prompt as the body of a request.

use polyclaw_domain::media::Image;
use polyclaw_domain::provider::{Prompt, PromptMessage, ReasoningEffort};
use polyclaw_domain::tool::{ToolCall, ToolSpec};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

use crate::calls::shown_again;
use crate::fault::Fault;

/// What stays the same from call to call comes first: that is what providers keep.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<ReasoningEffort>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Messages<'a>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", content = "function", rename_all = "lowercase")]
enum Tool<'a> {
    Function { name: &'a str, description: &'a str, parameters: &'a Value },
}

struct Messages<'a>(&'a Prompt);

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: &'a str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        content: &'a str,
        tool_call_id: &'a str,
    },
}

/// Text alone is a string: not every server takes it as a part.
struct Content<'a> {
    text: &'a str,
    images: &'a [Image],
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: DataUrl<'a> },
}

struct DataUrl<'a>(&'a Image);

#[derive(Serialize)]
struct Call<'a> {
    r#type: &'static str,
    id: &'a str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: String,
}

pub(super) fn bytes(model: &str, prompt: &Prompt) -> Result<Vec<u8>, Fault> {
    let (max_tokens, max_completion_tokens) =
        if counts_thoughts(model) { (None, prompt.max_tokens) } else { (prompt.max_tokens, None) };
    let body = Body {
        model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        temperature: prompt.temperature,
        max_tokens,
        max_completion_tokens,
        reasoning_effort: prompt.reasoning_effort,
        tools: prompt.tools.iter().map(|spec| Tool::of(spec)).collect(),
        messages: Messages(prompt),
    };
    serde_json::to_vec(&body).map_err(|_| Fault::malformed("the request can not be made into JSON"))
}

/// OpenAI's models that think refuse `max_tokens`, which counts only what is shown.
fn counts_thoughts(model: &str) -> bool {
    ["gpt-5", "gpt-6", "o1", "o3", "o4"].iter().any(|family| model.starts_with(family))
}

impl<'a> Tool<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        Self::Function { name: &spec.name, description: &spec.description, parameters: &spec.parameters }
    }
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        if !self.0.system.is_empty() {
            list.serialize_element(&Message::System { content: &self.0.system })?;
        }
        for message in self.0.messages.iter().filter_map(Message::of) {
            list.serialize_element(&message)?;
        }
        list.end()
    }
}

impl<'a> Message<'a> {
    fn of(message: &'a PromptMessage) -> Option<Self> {
        match message {
            PromptMessage::User { text, images } => Some(Self::User { content: Content { text, images } }),
            // An answer without content is not accepted back.
            PromptMessage::Assistant { text, calls } if text.is_empty() && calls.is_empty() => None,
            PromptMessage::Assistant { text, calls } => {
                Some(Self::Assistant { content: text, tool_calls: calls.iter().map(Call::of).collect() })
            }
            PromptMessage::ToolResult { call_id, content, .. } => {
                Some(Self::Tool { content, tool_call_id: call_id })
            }
        }
    }
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.images.is_empty() {
            return self.text.serialize(serializer);
        }
        let mut parts = serializer.serialize_seq(None)?;
        if !self.text.is_empty() {
            parts.serialize_element(&Part::Text { text: self.text })?;
        }
        for image in self.images {
            parts.serialize_element(&Part::ImageUrl { image_url: DataUrl(image) })?;
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

impl<'a> Call<'a> {
    fn of(call: &'a ToolCall) -> Self {
        let function = Function { name: &call.name, arguments: shown_again(call).to_string() };
        Self { r#type: "function", id: &call.id, function }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn models_that_think_are_limited_by_another_name() {
        let prompt = Prompt { max_tokens: Some(9), ..Prompt::default() };
        let keys = |model| {
            let body: Value = serde_json::from_slice(&bytes(model, &prompt).unwrap()).unwrap();
            (body.get("max_tokens").cloned(), body.get("max_completion_tokens").cloned())
        };
        assert_eq!(keys("gpt-5-mini"), (None, Some(json!(9))));
        assert_eq!(keys("qwen3:8b"), (Some(json!(9)), None));
    }

    #[test]
    fn images_are_parts_behind_the_words() {
        let image = Image::from_bytes(*b"GIF89a").unwrap();
        let shown = |text: &str| {
            let message = PromptMessage::User { text: text.into(), images: vec![image.clone()] };
            let prompt = Prompt { messages: vec![message], ..Prompt::default() };
            let body: Value = serde_json::from_slice(&bytes("m", &prompt).unwrap()).unwrap();
            body["messages"][0]["content"].clone()
        };
        let part = json!({ "type": "image_url", "image_url": { "url": "data:image/gif;base64,R0lGODlh" } });
        assert_eq!(shown("look"), json!([{ "type": "text", "text": "look" }, part]));
        assert_eq!(shown(""), json!([part]));
    }

    #[test]
    fn an_answer_that_said_nothing_is_left_out() {
        let silent = PromptMessage::Assistant { text: String::new(), calls: vec![] };
        let prompt = Prompt { messages: vec![silent, PromptMessage::user_text("x")], ..Prompt::default() };
        let body: Value = serde_json::from_slice(&bytes("m", &prompt).unwrap()).unwrap();
        assert_eq!(body["messages"], json!([{ "role": "user", "content": "x" }]));
    }
}
