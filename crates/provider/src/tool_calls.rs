//! Assembles tool calls from streamed pieces.

use std::borrow::Cow;
use std::collections::HashSet;

use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_domain::tool::ToolCall;
use serde_json::{Map, Value, json};

use crate::error_class::ModelCallError;
use crate::wire::ToolCallStreaming;

pub(crate) struct ToolCallAssembler {
    pieces: ToolCallStreaming,
    open: Vec<OpenToolCall>,
    bytes: usize,
}

struct OpenToolCall {
    id: String,
    name: String,
    arguments: PartialArguments,
}

enum PartialArguments {
    Text(String),
    Value(Value),
}

impl ToolCallAssembler {
    pub fn new(pieces: ToolCallStreaming) -> Self {
        Self { pieces, open: Vec::new(), bytes: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the bytes of arguments so far.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    pub fn add_piece(&mut self, id: String, name: String, arguments: Value) {
        let arguments = match arguments {
            Value::String(text) => PartialArguments::Text(text),
            value => PartialArguments::Value(value),
        };
        let piece = OpenToolCall { id, name, arguments };
        self.bytes += piece.arguments.len();
        match self.find_continued(&piece) {
            Some(at) if self.pieces == ToolCallStreaming::Snapshots => {
                self.bytes -= self.open[at].arguments.len();
                self.open[at].arguments = piece.arguments;
            }
            Some(at) => self.open[at].merge_piece(piece),
            None => self.open.push(piece),
        }
    }

    /// Returns the call that a piece continues. A piece without an id arrives as `call_<index>`, with the index in
    /// order of the calls. Servers that count differently send one call after another, so the last call is meant.
    fn find_continued(&self, piece: &OpenToolCall) -> Option<usize> {
        if self.pieces == ToolCallStreaming::Whole {
            return None;
        }
        let same_id = self.open.iter().rposition(|open| open.id == piece.id);
        if same_id.is_some() || !piece.name.is_empty() {
            return same_id;
        }
        let index = piece.id.strip_prefix("call_").and_then(|index| index.parse().ok());
        index.filter(|index: &usize| *index < self.open.len()).or_else(|| self.open.len().checked_sub(1))
    }

    /// Returns the finished calls. If the answer is `truncated`, an incomplete call is dropped. Otherwise arguments
    /// that are no object are kept as the original text, to be reported to the model.
    pub fn into_tool_calls(self, truncated: bool) -> Result<Vec<ToolCall>, ModelCallError> {
        let mut calls = Vec::with_capacity(self.open.len());
        for open in self.open {
            let arguments = match open.arguments.parse() {
                _ if open.name.is_empty() && truncated => continue,
                _ if open.name.is_empty() => {
                    return Err(ModelCallError::malformed("a tool call has no name"));
                }
                Ok(arguments) => arguments,
                Err(_) if truncated => continue,
                Err(text) => Value::String(text),
            };
            calls.push(ToolCall { id: open.id, name: open.name, arguments });
        }
        Ok(calls)
    }
}

impl OpenToolCall {
    fn merge_piece(&mut self, piece: Self) {
        match (&mut self.arguments, piece.arguments) {
            (PartialArguments::Text(so_far), PartialArguments::Text(more)) => so_far.push_str(&more),
            (arguments, piece) => *arguments = piece,
        }
        if self.name.is_empty() {
            self.name = piece.name;
        }
    }
}

impl PartialArguments {
    /// Values other than text arrive complete in an event of bounded size.
    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Value(_) => 0,
        }
    }

    /// Parses an object, else returns the text as the error. Servers write "no arguments" as nothing, `null` or `{}`.
    fn parse(self) -> Result<Value, String> {
        let (value, text) = match self {
            Self::Text(text) if text.trim().is_empty() => (Value::Null, text),
            Self::Text(text) => match serde_json::from_str(&text) {
                Ok(value) => (value, text),
                Err(_) => return Err(text),
            },
            Self::Value(value) => {
                let text = if value.is_object() { String::new() } else { value.to_string() };
                (value, text)
            }
        };
        match value {
            Value::Null => Ok(Value::Object(Map::new())),
            Value::Object(_) => Ok(value),
            _ => Err(text),
        }
    }
}

/// Returns the arguments of an earlier call for a new request. Providers reject arguments that are no object, so other
/// values are wrapped in one.
pub(crate) fn replayed_arguments(call: &ToolCall) -> Cow<'_, Value> {
    match &call.arguments {
        Value::Object(_) => Cow::Borrowed(&call.arguments),
        Value::Null => Cow::Owned(Value::Object(Map::new())),
        unreadable => Cow::Owned(json!({ "unreadable": unreadable })),
    }
}

/// Makes the ids unique. Some servers send none, or the same in every round, and results are matched by id.
pub(crate) fn make_ids_unique(calls: &mut [ToolCall], prompt: &Prompt) {
    if calls.is_empty() {
        return;
    }
    let mut used: HashSet<String> = used_ids(prompt).map(ToOwned::to_owned).collect();
    for call in calls {
        if call.id.is_empty() || used.contains(&call.id) {
            let stem = if call.id.is_empty() { "call_" } else { &call.id };
            // Digits, because the library parses Gemini's calls in the form `call#name#number`.
            let free = (1..).map(|n| format!("{stem}{n}")).find(|id| !used.contains(id));
            call.id = free.unwrap_or_default();
        }
        used.insert(call.id.clone());
    }
}

fn used_ids(prompt: &Prompt) -> impl Iterator<Item = &str> {
    let calls = prompt.messages.iter().filter_map(|message| match message {
        PromptMessage::Assistant { calls, .. } => Some(calls),
        _ => None,
    });
    calls.flatten().map(|call| call.id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assembled(
        pieces: ToolCallStreaming,
        parts: &[(&str, &str, &str)],
    ) -> Result<Vec<ToolCall>, ModelCallError> {
        let mut calls = ToolCallAssembler::new(pieces);
        for (id, name, arguments) in parts {
            calls.add_piece((*id).into(), (*name).into(), Value::String((*arguments).into()));
        }
        calls.into_tool_calls(false)
    }

    fn summary(calls: &[ToolCall]) -> Vec<String> {
        calls.iter().map(|call| format!("{} {} {}", call.id, call.name, call.arguments)).collect()
    }

    #[test]
    fn interleaved_fragments_are_assigned_to_their_calls() {
        let parts =
            [("a", "f", "{\"x\""), ("b", "g", "{\"y\""), ("call_0", "", ":1}"), ("call_1", "", ":2}")];
        let calls = assembled(ToolCallStreaming::Fragments, &parts).unwrap();
        assert_eq!(summary(&calls), ["a f {\"x\":1}", "b g {\"y\":2}"]);
    }

    #[test]
    fn tool_call_without_name_is_an_error() {
        for arguments in ["{}", "[1]"] {
            let fault = assembled(ToolCallStreaming::Fragments, &[("a", "", arguments)]).unwrap_err();
            assert!(format!("{fault:?}").contains("has no name"), "{fault:?}");
        }
    }

    #[test]
    fn nonzero_start_index_creates_no_extra_calls() {
        let parts = [("a", "f", "{"), ("call_1", "", "}"), ("b", "g", "{"), ("call_4294967295", "", "}")];
        let calls = assembled(ToolCallStreaming::Fragments, &parts).unwrap();
        assert_eq!(summary(&calls), ["a f {}", "b g {}"]);
    }

    #[test]
    fn snapshots_replace_and_whole_calls_stay_separate() {
        let parts = [("a", "f", ""), ("a", "f", "{\"x\""), ("a", "f", "{\"x\":1}")];
        assert_eq!(summary(&assembled(ToolCallStreaming::Snapshots, &parts).unwrap()), ["a f {\"x\":1}"]);
        let parts = [("call#f#0", "f", "{}"), ("call#f#0", "f", "{}")];
        assert_eq!(assembled(ToolCallStreaming::Whole, &parts).unwrap().len(), 2);
    }

    #[test]
    fn empty_arguments_become_object_and_invalid_stay_text() {
        for nothing in ["", " ", "null", "{}"] {
            assert_eq!(
                summary(&assembled(ToolCallStreaming::Fragments, &[("a", "f", nothing)]).unwrap()),
                ["a f {}"]
            );
        }
        for broken in ["{", "[1]", "\"x\"", "{} {}"] {
            let calls =
                assembled(ToolCallStreaming::Fragments, &[("a", "f", broken), ("b", "g", "{}")]).unwrap();
            assert_eq!(calls[0].arguments, broken);
            assert_eq!(summary(&calls[1..]), ["b g {}"]);
        }
        let mut whole = ToolCallAssembler::new(ToolCallStreaming::Whole);
        whole.add_piece("a".into(), "f".into(), json!([1]));
        assert_eq!(whole.into_tool_calls(false).unwrap()[0].arguments, "[1]");
    }

    #[test]
    fn repeated_tool_call_ids_are_replaced() {
        let call = |id: &str| ToolCall { id: id.into(), name: "f".into(), arguments: Value::Null };
        let earlier = PromptMessage::Assistant { text: String::new(), calls: vec![call("call_0")] };
        let prompt = Prompt { messages: vec![earlier], ..Prompt::default() };
        let mut calls = [call("call_0"), call(""), call("x"), call("x")];
        make_ids_unique(&mut calls, &prompt);
        assert_eq!(calls.map(|call| call.id), ["call_01", "call_1", "x", "x1"]);
    }
}
