//! Messages between members of a team: their kinds, how they are rendered for a model, and the summaries that others
//! see.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{TeamId, TeamMessageId, TurnId};
use crate::sanitize;
use crate::time::Millis;

/// Maximum number of words of a derived summary.
const MAX_DERIVED_SUMMARY_WORDS: usize = 10;
/// Maximum length of a summary, in characters.
pub const MAX_SUMMARY_CHARS: usize = 200;

/// Kind of a team message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TeamMessageKind {
    Message,
    /// The same message to every other member.
    Broadcast,
    ShutdownRequest,
    ShutdownResponse,
    /// A member's plan, for approval by its lead.
    PlanApprovalRequest,
    PlanApprovalResponse,
    /// A member has nothing to do. Created by the runtime.
    Idle,
    /// A task can be claimed, or news about one. Created by the runtime.
    Task,
}

impl TeamMessageKind {
    pub const ALL: [Self; 8] = [
        Self::Message,
        Self::Broadcast,
        Self::ShutdownRequest,
        Self::ShutdownResponse,
        Self::PlanApprovalRequest,
        Self::PlanApprovalResponse,
        Self::Idle,
        Self::Task,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Broadcast => "broadcast",
            Self::ShutdownRequest => "shutdown_request",
            Self::ShutdownResponse => "shutdown_response",
            Self::PlanApprovalRequest => "plan_approval_request",
            Self::PlanApprovalResponse => "plan_approval_response",
            Self::Idle => "idle",
            Self::Task => "task",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Delivery state of a team message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TeamMessageState {
    Queued,
    /// A running turn shows it to its model.
    InPrompt,
    /// The turn that showed it succeeded.
    Read,
    /// Its recipient no longer exists.
    Undeliverable,
}

impl TeamMessageState {
    const ALL: [Self; 4] = [Self::Queued, Self::InPrompt, Self::Read, Self::Undeliverable];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InPrompt => "in_prompt",
            Self::Read => "read",
            Self::Undeliverable => "undeliverable",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamMessage {
    pub id: TeamMessageId,
    pub team: TeamId,
    /// Names, not sessions: the current bearer of the name receives it.
    pub from: String,
    pub to: String,
    pub kind: TeamMessageKind,
    pub content: String,
    pub summary: String,
    pub request_id: Option<String>,
    pub approve: Option<bool>,
    pub reason: Option<String>,
    pub state: TeamMessageState,
    /// The turn whose prompt contains or contained it.
    pub turn: Option<TurnId>,
    pub created_at: Millis,
    pub read_at: Option<Millis>,
}

/// Returns the given summary of a message, else its first ten words.
pub fn summarize_message(given: Option<&str>, content: &str) -> String {
    if let Some(given) = given.map(str::trim).filter(|given| !given.is_empty()) {
        return sanitize::to_single_line(given, MAX_SUMMARY_CHARS - 1);
    }
    let text = sanitize::to_single_line(content, usize::MAX);
    let words: Vec<&str> = text.split(' ').collect();
    let short = match words.len() {
        ..=MAX_DERIVED_SUMMARY_WORDS => text,
        _ => format!("{}...", words[..MAX_DERIVED_SUMMARY_WORDS].join(" ")),
    };
    sanitize::to_single_line(&short, MAX_SUMMARY_CHARS - 1)
}

/// Renders a message as an XML element for the one turn that reads it. Everything in it is escaped, so that it cannot
/// close its element or open another.
pub fn render_element(message: &TeamMessage) -> String {
    let approve = message.approve.map(|approve| approve.to_string());
    let attributes = [
        ("teammate_id", Some(message.from.as_str())),
        ("type", Some(message.kind.as_str())),
        ("summary", Some(message.summary.as_str())),
        ("request_id", message.request_id.as_deref()),
        ("approve", approve.as_deref()),
        ("reason", message.reason.as_deref()),
    ];
    let attributes = attributes.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let attributes: String =
        attributes.map(|(name, value)| format!(" {name}=\"{}\"", escape_xml(value))).collect();
    format!("<teammate-message{attributes}>{}</teammate-message>", escape_xml(&message.content))
}

pub fn escape_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // Control characters are not allowed in XML text in any form.
            c if c.is_control() && !matches!(c, '\n' | '\t' | '\r') => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn letter(content: &str) -> TeamMessage {
        TeamMessage {
            id: TeamMessageId::new("l"),
            team: TeamId::new("t"),
            from: "researcher".into(),
            to: "lead".into(),
            kind: TeamMessageKind::Message,
            content: content.into(),
            summary: "found it".into(),
            request_id: None,
            approve: None,
            reason: None,
            state: TeamMessageState::Queued,
            turn: None,
            created_at: Millis(0),
            read_at: None,
        }
    }

    #[test]
    fn summary_is_first_ten_words_of_long_message() {
        let words = |n: usize| (1..=n).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
        assert_eq!(summarize_message(None, &words(20)), format!("{}...", words(10)));
        assert_eq!(summarize_message(None, &words(10)), words(10));
        assert_eq!(summarize_message(None, "two\n\twords"), "two words");
        assert_eq!(summarize_message(Some(" mine "), &words(20)), "mine");
        assert_eq!(summarize_message(Some("  "), "text"), "text");
        assert_eq!(summarize_message(None, &"x".repeat(100_000)).chars().count(), MAX_SUMMARY_CHARS);
    }

    #[test]
    fn message_renders_as_element_with_its_attributes() {
        assert_eq!(
            render_element(&letter("hi")),
            "<teammate-message teammate_id=\"researcher\" type=\"message\" summary=\"found it\">hi</teammate-message>"
        );
        let answer = TeamMessage {
            kind: TeamMessageKind::ShutdownResponse,
            request_id: Some("r\"1".into()),
            approve: Some(false),
            reason: Some("<busy>".into()),
            ..letter("no")
        };
        let shown = render_element(&answer);
        assert!(
            shown.contains("request_id=\"r&quot;1\" approve=\"false\" reason=\"&lt;busy&gt;\">no<"),
            "{shown}"
        );
    }

    proptest! {
        #[test]
        fn message_cannot_close_its_own_element(content in any::<String>(), summary in any::<String>()) {
            let shown = render_element(&TeamMessage { summary, ..letter(&content) });
            prop_assert_eq!(shown.matches('<').count(), 2);
            prop_assert_eq!(shown.matches('>').count(), 2);
            prop_assert_eq!(shown.matches('"').count(), 6);
        }
    }
}
