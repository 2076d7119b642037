//! Entries of the transcript pane.

use polyclaw_api::approvals::ApprovalView;
use serde_json::Value;

/// Note below a truncated answer.
pub const TRUNCATED_NOTE: &str = "Cut off here: the model's length limit was reached.";

/// Maximum lines of a tool's output that are shown.
const MAX_SHOWN_OUTPUT_LINES: usize = 8;

#[derive(Clone, Debug, PartialEq)]
pub enum TranscriptEntry {
    User(UserMessage),
    /// A message that no person typed: an agent's result, a team message, a cron job.
    InternalMessage {
        id: String,
        /// The author, as the server names it.
        origin: String,
        text: String,
    },
    Answer {
        turn: String,
        /// Number of the turn's answers before this one, if the server sent it.
        step: Option<u64>,
        text: String,
        open: bool,
    },
    Reasoning {
        turn: String,
        step: Option<u64>,
        text: String,
        open: bool,
    },
    /// Text of another agent, for the turn that waits for it.
    DelegateText {
        turn: String,
        run: String,
        name: String,
        text: String,
        open: bool,
        /// The text is in the stored session, as the result of the tool call.
        is_stored: bool,
    },
    Tool(ToolCard),
    Approval(ApprovalCard),
    Note {
        text: String,
        tone: NoteTone,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteTone {
    Plain,
    Bad,
}

/// A person's message and its delivery state.
#[derive(Clone, Debug, PartialEq)]
pub struct UserMessage {
    pub text: String,
    /// Local key, used until the server has assigned an ID.
    pub key: String,
    pub id: Option<String>,
    pub turn: Option<String>,
    pub state: UserMessageState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserMessageState {
    Sending,
    /// A turn is running. It takes the message at its next boundary or when it ends.
    Waiting,
    Accepted,
    Refused,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ToolCard {
    pub call_id: String,
    pub name: String,
    pub arguments: String,
    pub output: String,
    /// The sandbox that applied while the tool ran.
    pub sandbox: Option<String>,
    pub state: ToolState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolState {
    Running,
    Ok,
    Failed,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalCard {
    pub id: String,
    pub turn: String,
    /// The agent or team member that asks.
    pub requested_by: String,
    pub tool: String,
    pub arguments: String,
    /// `pending`, `approved`, `denied`, `expired`, or a note that the turn has ended.
    pub state: String,
}

impl ToolCard {
    pub fn visible_output(&self) -> Vec<&str> {
        let lines: Vec<&str> = self.output.trim_end().lines().collect();
        lines[lines.len().saturating_sub(MAX_SHOWN_OUTPUT_LINES)..].to_vec()
    }
}

impl ApprovalCard {
    pub fn from_view(approval: &ApprovalView) -> Self {
        Self {
            id: approval.id.to_string(),
            turn: approval.turn_id.to_string(),
            requested_by: approval.requested_by.clone(),
            tool: approval.tool.clone(),
            arguments: question_text(&approval.tool, &approval.question, &approval.arguments),
            state: approval.state.as_str().to_owned(),
        }
    }

    pub fn is_open(&self) -> bool {
        self.state == "pending"
    }
}

/// Returns the sandbox that applied while a tool ran, as the daemon measured it.
pub fn describe_sandbox(sandbox: &Value) -> Option<String> {
    sandbox["line"].as_str().map(str::to_owned)
}

/// Formats arguments on one line. A single text argument, such as a shell command, is shown alone.
pub fn arguments_line(value: &Value) -> String {
    // A call that was rejected before it started has no arguments.
    if value.is_null() {
        return String::new();
    }
    let Some(fields) = value.as_object() else { return value.to_string() };
    match fields.iter().collect::<Vec<_>>().as_slice() {
        [(_, Value::String(text))] => text.clone(),
        fields => {
            let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            fields
                .iter()
                .map(|(name, value)| format!("{name}={}", shown(value)))
                .collect::<Vec<_>>()
                .join(" ")
        }
    }
}

/// Returns the question for a person: the tool's own text if it has any, else the arguments.
pub fn question_text(tool: &str, question: &str, arguments: &Value) -> String {
    let is_plain =
        question.is_empty() || question.strip_prefix(tool).is_some_and(|rest| rest.starts_with(' '));
    if is_plain { arguments_line(arguments) } else { question.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tool_arguments_are_shown_in_readable_form() {
        for (value, shown) in [
            (json!({ "command": "ls -l" }), "ls -l"),
            (json!({ "path": "a", "lines": 3 }), "path=a lines=3"),
            (json!({}), ""),
            (Value::Null, ""),
            (json!([1]), "[1]"),
        ] {
            assert_eq!(arguments_line(&value), shown, "{value}");
        }
    }
}
