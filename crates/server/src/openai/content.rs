//! The content of a client request: instructions, history and new input.

use polyclaw_domain::message::{MessagePart, MessageRole, attached_images};
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::tool::ToolCall;
use polyclaw_engine::ImportedMessage;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::http::attachments;

/// Text, or a list of parts: text, and images in user messages.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(untagged)]
pub enum OpenAiContent {
    #[default]
    None,
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Clone, Debug, Deserialize)]
pub struct ContentPart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    refusal: Option<String>,
    /// A URL, or an object with it as `url`.
    image_url: Option<Value>,
}

/// The text and images of a user message.
#[derive(Clone, Debug, Default)]
pub struct UserInput {
    text: String,
    parts: Vec<MessagePart>,
}

impl From<String> for UserInput {
    fn from(text: String) -> Self {
        Self { text, parts: Vec::new() }
    }
}

impl OpenAiContent {
    pub fn into_user_input(self) -> Result<UserInput> {
        let Self::Parts(parts) = self else { return self.into_text().map(UserInput::from) };
        let (mut texts, mut shown) = (Vec::new(), Vec::new());
        for part in parts {
            match part.kind.as_str() {
                "image_url" | "input_image" => shown.push(part.into_image(shown.len() + 1)?),
                _ => texts.push(part.into_text()?),
            }
        }
        Ok(UserInput { text: texts.join("\n"), parts: attachments::check_image_count(shown)? })
    }

    /// Returns the text. Unsupported parts are rejected, not silently dropped.
    pub fn into_text(self) -> Result<String> {
        match self {
            Self::None => Ok(String::new()),
            Self::Text(text) => Ok(text),
            Self::Parts(parts) => {
                let texts: Result<Vec<String>> = parts.into_iter().map(ContentPart::into_text).collect();
                Ok(texts?.join("\n"))
            }
        }
    }
}

impl ContentPart {
    fn into_text(self) -> Result<String> {
        match (self.kind.as_str(), self.text.or(self.refusal)) {
            ("text" | "input_text" | "output_text" | "refusal", Some(text)) => Ok(text),
            (kind, _) => Err(Error::AttachmentNotTaken(quote_safely(kind))),
        }
    }

    /// Decodes an image in the request. Remote images are not fetched on behalf of a caller.
    fn into_image(self, number: usize) -> Result<MessagePart> {
        let given = self.image_url.unwrap_or_default();
        let url = given.as_str().or_else(|| given["url"].as_str()).unwrap_or_default();
        let data = url.strip_prefix("data:").ok_or(Error::RemoteImage)?;
        let (media_type, data) = data.split_once(";base64,").ok_or_else(|| {
            Error::invalid_field("image_url", "a data: URL must be data:<type>;base64,<data>")
        })?;
        attachments::image_part(&format!("image-{number}"), media_type, data)
    }
}

/// A tool that the client runs.
#[derive(Clone, Debug, Deserialize)]
pub struct ClientFunction {
    pub name: String,
    pub description: Option<String>,
    pub parameters: Option<Value>,
}

impl ClientFunction {
    /// Returns the tool in the format the engine reads from message metadata.
    pub fn tool_meta(&self) -> Value {
        let parameters =
            self.parameters.clone().unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
        json!({ "name": self.name, "description": self.description, "parameters": parameters })
    }
}

/// Parses the arguments of a call. Invalid JSON is kept as a string.
pub fn parse_tool_call(id: String, name: String, arguments: &str) -> ToolCall {
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    let arguments = serde_json::from_str(text).unwrap_or_else(|_| Value::String(arguments.to_owned()));
    ToolCall { id, name, arguments }
}

/// A conversation, split into history and new input.
#[derive(Debug, Default)]
pub struct ClientConversation {
    instructions: Vec<String>,
    pub history: Vec<ImportedMessage>,
    /// Results of the client's tools since the last reply, by call id.
    pub results: Vec<(String, String)>,
    new_inputs: Vec<UserInput>,
}

impl ClientConversation {
    pub fn add_instructions(&mut self, text: String) {
        if !text.trim().is_empty() {
            self.instructions.push(text);
        }
    }

    pub fn add_user_input(&mut self, input: impl Into<UserInput>) {
        self.new_inputs.push(input.into());
    }

    pub fn add_tool_result(&mut self, call_id: String, content: String) {
        self.results.push((call_id, content));
    }

    /// Adds a reply. Everything before it becomes history.
    pub fn add_reply(&mut self, text: String, calls: Vec<ToolCall>) {
        let results = std::mem::take(&mut self.results);
        for (call_id, content) in results {
            let name = self.find_call(&call_id).map_or_else(String::new, |call| call.name.clone());
            let part = MessagePart::ToolResult { call_id, name, is_error: false };
            self.history.push(ImportedMessage { role: MessageRole::Tool, text: content, parts: vec![part] });
        }
        let input = std::mem::take(&mut self.new_inputs);
        let past = input.into_iter().map(|UserInput { text, parts }| ImportedMessage {
            role: MessageRole::User,
            text,
            parts,
        });
        self.history.extend(past);
        // Two consecutive replies, one with text and one with calls, are one step.
        match self.history.last_mut() {
            Some(last) if last.role == MessageRole::Assistant && !calls.is_empty() && text.is_empty() => {
                last.parts.extend(calls.into_iter().map(MessagePart::ToolCall));
            }
            _ => {
                let parts = calls.into_iter().map(MessagePart::ToolCall).collect();
                self.history.push(ImportedMessage { role: MessageRole::Assistant, text, parts });
            }
        }
    }

    /// Finds the call that a result belongs to.
    pub fn find_call(&self, call_id: &str) -> Option<&ToolCall> {
        let calls =
            self.history.iter().rev().flat_map(|past| polyclaw_domain::message::tool_calls(&past.parts));
        calls.into_iter().find(|call| call.id == call_id)
    }

    pub fn instructions(&self) -> Option<String> {
        (!self.instructions.is_empty()).then(|| self.instructions.join("\n\n"))
    }

    pub fn new_text(&self) -> String {
        self.new_inputs.iter().map(|input| input.text.as_str()).collect::<Vec<_>>().join("\n\n")
    }

    /// Returns the images of the new input. Fails if there are too many for one message.
    pub fn new_images(&self) -> Result<Vec<MessagePart>> {
        attachments::check_image_count(self.new_inputs.iter().flat_map(|input| input.parts.clone()).collect())
    }

    /// Returns the hashes of the images in the new input.
    pub fn new_image_hashes(&self) -> impl Iterator<Item = &str> {
        self.new_inputs
            .iter()
            .flat_map(|input| attached_images(&input.parts))
            .map(|media| media.hash().as_str())
    }

    pub fn has_new_input(&self) -> bool {
        !self.new_inputs.is_empty() || !self.results.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_after_last_reply_is_new_input() {
        let mut talk = ClientConversation::default();
        talk.add_instructions("be kind".into());
        talk.add_user_input("hi".to_owned());
        talk.add_reply("hello".into(), vec![]);
        talk.add_user_input("one".to_owned());
        talk.add_user_input("two".to_owned());
        assert_eq!(talk.new_text(), "one\n\ntwo");
        assert_eq!(talk.instructions().unwrap(), "be kind");
        let roles: Vec<MessageRole> = talk.history.iter().map(|past| past.role).collect();
        assert_eq!(roles, [MessageRole::User, MessageRole::Assistant]);
    }

    #[test]
    fn tool_results_before_reply_are_named_history() {
        let mut talk = ClientConversation::default();
        talk.add_user_input("weather?".to_owned());
        talk.add_reply(
            String::new(),
            vec![parse_tool_call("c1".into(), "weather".into(), r#"{"city":"Bern"}"#)],
        );
        talk.add_tool_result("c1".into(), "sunny".into());
        assert!(talk.has_new_input());
        talk.add_reply("Sunny.".into(), vec![]);
        assert!(!talk.has_new_input());
        let MessagePart::ToolResult { name, .. } = &talk.history[2].parts[0] else { panic!() };
        assert_eq!(name, "weather");
    }

    #[test]
    fn only_text_parts_are_accepted_as_text() {
        let parts = |json: &str| serde_json::from_str::<OpenAiContent>(json).unwrap().into_text();
        assert_eq!(parts(r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#).unwrap(), "a\nb");
        assert_eq!(parts("null").unwrap(), "");
        assert!(parts(r#"[{"type":"image_url","image_url":{"url":"x"}}]"#).is_err());
    }

    #[test]
    fn inline_images_are_accepted_and_remote_images_refused() {
        let text_of =
            |part: Value| serde_json::from_value::<OpenAiContent>(json!([part])).unwrap().into_user_input();
        let gif = "data:image/gif;base64,R0lGODlh";
        for part in [
            json!({ "type": "image_url", "image_url": { "url": gif, "detail": "low" } }),
            json!({ "type": "input_image", "image_url": gif }),
        ] {
            let input = text_of(part).unwrap();
            assert_eq!(attached_images(&input.parts).count(), 1);
        }
        let code = |part| text_of(part).unwrap_err().code().to_owned();
        let elsewhere = json!({ "type": "image_url", "image_url": { "url": "https://a.example/b.png" } });
        assert_eq!(code(elsewhere), "remote_image_not_allowed");
        assert_eq!(code(json!({ "type": "input_image", "file_id": "f" })), "remote_image_not_allowed");
        let lie = json!({ "type": "input_image", "image_url": "data:image/png;base64,aGVsbG8=" });
        assert_eq!(code(lie), "attachment_not_supported");
        assert_eq!(code(json!({ "type": "input_audio" })), "attachment_not_supported");
    }
}
