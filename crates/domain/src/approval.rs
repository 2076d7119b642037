//! Approvals: a question to a person about one call, bound to exactly that call.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::channel::ChatAddress;
use crate::delivery::CommandButton;
use crate::hex::encode_hex;
use crate::locale::{Locale, LocalizedText};
use crate::localized;
use crate::sanitize::spell_out_unreadable;

/// Time after which an unanswered question becomes a tool result.
pub const APPROVAL_EXPIRY_MS: i64 = 30 * 60 * 1000;

/// Prefix of a question's outbox key, followed by its id.
const QUESTION_KEY_PREFIX: &str = "approval-";

/// Maximum length of a question in a chat, in characters. A longer one is shortened in the middle.
const MAX_QUESTION_CHARS: usize = 1_500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    Pending,
    Approved,
    Denied,
    Expired,
}

impl ApprovalState {
    pub const ALL: [Self; 4] = [Self::Pending, Self::Approved, Self::Denied, Self::Expired];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    Approve,
    Deny,
}

/// Who answers, as known to the runtime, never as claimed in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalResponder {
    /// A holder of the instance's token: in the terminal, the web page or the API.
    Owner,
    /// An owner, in a channel's conversation.
    OwnerInChannel(ChatAddress),
    /// Anybody else in a channel's conversation.
    Sender(ChatAddress),
}

impl ApprovalResponder {
    /// Returns the name for the record.
    pub fn name(&self) -> String {
        match self {
            Self::Owner => "owner".to_owned(),
            Self::OwnerInChannel(address) | Self::Sender(address) => {
                format!("{}:{}:{}", address.channel, address.account, address.peer)
            }
        }
    }
}

/// Why an answer is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidApproval {
    WrongPerson,
    /// The call changes permissions, so only an owner may answer.
    OwnerOnly,
    OtherConversation,
    OtherArguments,
}

impl InvalidApproval {
    pub fn user_message(self, locale: Locale) -> &'static str {
        let text = match self {
            Self::WrongPerson => LocalizedText::new(
                "only the person who caused this request or an owner of this instance can answer it",
                "只有引起该请求的人或此实例的所有者可以答复",
            ),
            Self::OwnerOnly => LocalizedText::new(
                "only an owner of this instance can answer this request",
                "只有此实例的所有者可以答复该请求",
            ),
            Self::OtherConversation => LocalizedText::new(
                "this request was made in another conversation; answer it there",
                "该请求是在另一个对话中提出的，请在那里答复",
            ),
            Self::OtherArguments => LocalizedText::new(
                "the call is not the one that you were shown; read the request again",
                "将运行的内容与所示不同，请重新查看该请求",
            ),
        };
        text.get(locale)
    }
}

/// The conversation and call that a question is bound to.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalBinding<'a> {
    /// The channel's conversation in which the question may be answered. `None` allows only owners to answer.
    pub origin: Option<&'a ChatAddress>,
    pub fingerprint: &'a str,
}

/// Checks whether an answer counts. `shown` is the fingerprint of the call that the person saw, if known.
pub fn check_responder(
    bound: ApprovalBinding<'_>,
    by: &ApprovalResponder,
    shown: Option<&str>,
) -> Result<(), InvalidApproval> {
    if shown.is_some_and(|shown| shown != bound.fingerprint) {
        return Err(InvalidApproval::OtherArguments);
    }
    match (by, bound.origin) {
        (ApprovalResponder::Owner | ApprovalResponder::OwnerInChannel(_), _) => Ok(()),
        (ApprovalResponder::Sender(from), Some(origin)) if from == origin => Ok(()),
        (ApprovalResponder::Sender(from), Some(origin)) if is_same_person(from, origin) => {
            Err(InvalidApproval::OtherConversation)
        }
        (ApprovalResponder::Sender(_), Some(_)) => Err(InvalidApproval::WrongPerson),
        (ApprovalResponder::Sender(_), None) => Err(InvalidApproval::OwnerOnly),
    }
}

fn is_same_person(one: &ChatAddress, other: &ChatAddress) -> bool {
    (&one.channel, &one.account, &one.peer) == (&other.channel, &other.account, &other.peer)
}

/// Returns a hash of a tool and its arguments, independent of the order of keys.
pub fn call_fingerprint(tool: &str, arguments: &Value) -> String {
    let mut hash = Sha256::new();
    hash.update(tool.as_bytes());
    hash.update([0]);
    hash.update(sort_keys(arguments).to_string().as_bytes());
    encode_hex(&hash.finalize())
}

fn sort_keys(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sort_keys).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            Value::Object(fields.into_iter().map(|(name, value)| (name.clone(), sort_keys(value))).collect())
        }
        other => other.clone(),
    }
}

/// Describes a call for the person who approves it: the tool's own words, else its arguments. It is stored and compared
/// with the call that would run, so it is the same in all languages.
pub fn describe_call(tool: &str, arguments: &Value, words: Option<&str>) -> String {
    match words {
        Some(words) => spell_out_unreadable(words),
        None => spell_out_unreadable(&format!("{tool} {arguments}")),
    }
}

/// Returns the question as a chat message. If it is shortened, it says so and where to read all of it.
pub fn format_question(locale: Locale, agent: &str, id: &str, what: &str) -> String {
    let what = shorten_question(locale, what, id);
    let answer = answer_instruction(locale, id);
    localized!(
        locale,
        "{agent} asks for your approval:\n{what}\n\n{answer}",
        "{agent} 请求你的批准：\n{what}\n\n{answer}",
    )
}

/// The last line of a question.
fn answer_instruction(locale: Locale, id: &str) -> String {
    let minutes = APPROVAL_EXPIRY_MS / 60_000;
    localized!(
        locale,
        "Answer with /approve {id} or /deny {id} within {minutes} minutes. Other messages do not answer the request.",
        "请在 {minutes} 分钟内用 /approve {id} 批准，或用 /deny {id} 拒绝。其他消息不算答复。",
    )
}

/// Returns the outbox key of a question.
pub fn question_key(id: &str) -> String {
    format!("{QUESTION_KEY_PREFIX}{id}")
}

/// Returns the Approve and Deny buttons for an outbox message that is a question and contains the commands. Only the
/// runtime chooses keys, so text alone cannot create buttons.
pub fn approval_buttons(part_key: &str, text: &str) -> Vec<CommandButton> {
    let named = part_key.strip_prefix(QUESTION_KEY_PREFIX).and_then(|rest| rest.rsplit_once('-'));
    let Some((id, _)) = named else { return Vec::new() };
    let has_answers = |locale: &Locale| text.contains(&answer_instruction(*locale, id));
    let Some(locale) = Locale::ALL.into_iter().find(has_answers) else { return Vec::new() };
    let button = |label: LocalizedText, command: &str| CommandButton {
        label: label.get(locale),
        command: format!("/{command} {id}"),
    };
    vec![
        button(LocalizedText::new("Approve", "批准"), "approve"),
        button(LocalizedText::new("Deny", "拒绝"), "deny"),
    ]
}

fn shorten_question(locale: Locale, text: &str, id: &str) -> String {
    let count = text.chars().count();
    if count <= MAX_QUESTION_CHARS {
        return text.to_owned();
    }
    let head: String = text.chars().take(MAX_QUESTION_CHARS / 2).collect();
    let tail: String = text.chars().skip(count - MAX_QUESTION_CHARS / 2).collect();
    let left_out = count - MAX_QUESTION_CHARS;
    localized!(
        locale,
        "{head}\n[… {left_out} characters are not shown here; `polyclaw approvals show {id}` shows all …]\n{tail}",
        "{head}\n[… 此处略去 {left_out} 个字符，用 `polyclaw approvals show {id}` 查看全部 …]\n{tail}",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn address(peer: &str, thread: Option<&str>) -> ChatAddress {
        let (channel, account) = ("chat".to_owned(), "a".to_owned());
        ChatAddress { channel, account, peer: peer.to_owned(), thread: thread.map(str::to_owned) }
    }

    #[test]
    fn only_requester_in_conversation_or_owner_can_approve() {
        let origin = address("me", Some("1"));
        let bound = ApprovalBinding { origin: Some(&origin), fingerprint: "f" };
        let by = |address| check_responder(bound, &ApprovalResponder::Sender(address), None);
        assert_eq!(by(origin.clone()), Ok(()));
        assert_eq!(by(address("me", Some("2"))), Err(InvalidApproval::OtherConversation));
        assert_eq!(by(address("me", None)), Err(InvalidApproval::OtherConversation));
        assert_eq!(by(address("you", Some("1"))), Err(InvalidApproval::WrongPerson));
        assert_eq!(check_responder(bound, &ApprovalResponder::Owner, None), Ok(()));
        assert_eq!(check_responder(bound, &ApprovalResponder::Owner, Some("f")), Ok(()));
        assert_eq!(
            check_responder(bound, &ApprovalResponder::Owner, Some("g")),
            Err(InvalidApproval::OtherArguments)
        );
        let at_the_terminal = ApprovalBinding { origin: None, ..bound };
        assert_eq!(
            check_responder(at_the_terminal, &ApprovalResponder::Sender(origin.clone()), None),
            Err(InvalidApproval::OwnerOnly)
        );
    }

    #[test]
    fn call_fingerprint_ignores_key_order() {
        let one = call_fingerprint("t", &json!({ "a": 1, "b": { "c": [1, 2], "d": null } }));
        assert_eq!(one, call_fingerprint("t", &json!({ "b": { "d": null, "c": [1, 2] }, "a": 1 })));
        for other in
            [json!({ "a": 1, "b": { "c": [2, 1], "d": null } }), json!({ "a": 1, "b": { "c": [1, 2] } })]
        {
            assert_ne!(one, call_fingerprint("t", &other));
        }
        assert_ne!(one, call_fingerprint("u", &json!({ "a": 1, "b": { "c": [1, 2], "d": null } })));
    }

    #[test]
    fn hidden_characters_in_approval_text_are_escaped() {
        let what = describe_call("shell", &json!({ "command": "ls \u{202e}x\u{200b}\u{7}" }), None);
        assert!(what.contains("\\u{202e}x\\u{200b}") && !what.contains('\u{202e}'), "{what}");
        let long = format_question(Locale::English, "Ops", "id1", &format!("{}rm -rf /", "a".repeat(5_000)));
        assert!(
            long.contains("characters are not shown here") && long.contains("rm -rf /"),
            "its end is shown"
        );
    }

    #[test]
    fn blank_runs_and_invisible_characters_are_shown() {
        let command = format!("echo ok{};  rm -rf /{}", " ".repeat(3_000), "\n".repeat(60_000));
        let what = describe_call("shell", &json!({ "command": command }), Some(&command));
        assert_eq!(what, "echo ok[3000 blanks];  rm -rf /[60000 blanks]");
        let quoted = crate::sanitize::quote_literal(&format!("a{}b", " ".repeat(300)), 20);
        assert_eq!(quoted, "\"a[300 blanks]b\"");
        for c in [
            '\u{a0}',
            '\u{34f}',
            '\u{17b4}',
            '\u{2007}',
            '\u{2800}',
            '\u{3000}',
            '\u{fe0f}',
            '\u{fffc}',
            '\u{fff0}',
            '\u{1bca0}',
            '\u{1d173}',
            '\u{13430}',
            '\u{e000}',
            '\u{f0000}',
            '\u{fdd0}',
            '\u{1ffff}',
            '\u{336}',
            '\u{20e0}',
        ] {
            let what = describe_call("shell", &json!({}), Some(&format!("x{c}y")));
            assert_eq!(what, format!("x{}y", c.escape_unicode()));
            assert!(crate::sanitize::quote_literal(&format!("x{c}y"), 10).is_ascii());
        }
        // A combining mark on a letter is part of the letter; on a symbol it changes the symbol's appearance.
        assert_eq!(
            describe_call("t", &json!({}), Some("e\u{301} ü /\u{301} 日本")),
            "e\u{301} ü /\\u{301} 日本"
        );
    }

    #[test]
    fn only_approval_message_has_approval_buttons() {
        let asked = format_question(Locale::English, "Ops", "id-1", "shell ls");
        let commands: Vec<String> = approval_buttons(&format!("{}-0", question_key("id-1")), &asked)
            .into_iter()
            .map(|one| one.command)
            .collect();
        assert_eq!(commands, ["/approve id-1", "/deny id-1"]);
        let chinese = format_question(Locale::Chinese, "Ops", "id-1", "shell ls");
        assert!(chinese.starts_with("Ops 请求你的批准：\nshell ls\n\n"), "{chinese}");
        let labels: Vec<&str> = approval_buttons(&format!("{}-0", question_key("id-1")), &chinese)
            .into_iter()
            .map(|one| one.label)
            .collect();
        assert_eq!(labels, ["批准", "拒绝"]);
        assert!(approval_buttons("turn-1-0", &asked).is_empty(), "a text that reads like one");
        assert!(approval_buttons("approval-id-2-0", &asked).is_empty());
        assert!(
            approval_buttons("approval-id-1-0", "its beginning").is_empty(),
            "a part without the answers"
        );
    }
}
