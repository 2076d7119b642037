//! Approvals: a question to a person about one call, bound to that call and to nothing else.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::channel::Address;
use crate::delivery::Button;
use crate::hex::hex;
use crate::plain::{is_hidden, is_unclear};

/// An unanswered question becomes a tool result after this long.
pub const EXPIRY_MS: i64 = 30 * 60 * 1000;

/// Before the id of a question, in the name of its message.
const MESSAGE: &str = "approval-";

/// The longest question that is sent to a chat, in characters. A longer one shows its beginning and its end.
const LONGEST: usize = 1_500;

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
pub enum Decision {
    Approve,
    Deny,
}

/// Who answers, as the runtime knows it: never by what a text says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answerer {
    /// Whoever holds the instance's token: at the terminal, on its page, through its API.
    Owner,
    /// An owner, in a channel's conversation.
    OwnerInChannel(Address),
    /// Somebody else in a channel's conversation.
    Sender(Address),
}

impl Answerer {
    /// For the record.
    pub fn name(&self) -> String {
        match self {
            Self::Owner => "owner".to_owned(),
            Self::OwnerInChannel(address) | Self::Sender(address) => {
                format!("{}:{}:{}", address.channel, address.account, address.peer)
            }
        }
    }
}

/// Why an answer does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    WrongPerson,
    /// It changes who may do what.
    OwnerOnly,
    OtherConversation,
    OtherArguments,
}

impl Invalid {
    pub fn sentence(self) -> &'static str {
        match self {
            Self::WrongPerson => "only the one who asked for it, or the owner of this instance, can answer",
            Self::OwnerOnly => "only an owner of this instance can answer this question",
            Self::OtherConversation => "this question was asked in another conversation: answer it there",
            Self::OtherArguments => "what would run is not what you were shown: look at the question again",
        }
    }
}

/// What a question is bound to.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a> {
    /// The channel's conversation in which it may be answered. Without one only owners answer it.
    pub origin: Option<&'a Address>,
    pub fingerprint: &'a str,
}

/// Whether this answer counts. `shown` is the fingerprint of what the person saw, where they can say it.
pub fn check(bound: Bound<'_>, by: &Answerer, shown: Option<&str>) -> Result<(), Invalid> {
    if shown.is_some_and(|shown| shown != bound.fingerprint) {
        return Err(Invalid::OtherArguments);
    }
    match (by, bound.origin) {
        (Answerer::Owner | Answerer::OwnerInChannel(_), _) => Ok(()),
        (Answerer::Sender(from), Some(origin)) if from == origin => Ok(()),
        (Answerer::Sender(from), Some(origin)) if is_same_person(from, origin) => {
            Err(Invalid::OtherConversation)
        }
        (Answerer::Sender(_), Some(_)) => Err(Invalid::WrongPerson),
        (Answerer::Sender(_), None) => Err(Invalid::OwnerOnly),
    }
}

fn is_same_person(one: &Address, other: &Address) -> bool {
    (&one.channel, &one.account, &one.peer) == (&other.channel, &other.account, &other.peer)
}

/// Names a tool with its arguments, whatever the order of their keys.
pub fn fingerprint(tool: &str, arguments: &Value) -> String {
    let mut hash = Sha256::new();
    hash.update(tool.as_bytes());
    hash.update([0]);
    hash.update(sorted(arguments).to_string().as_bytes());
    hex(&hash.finalize())
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            Value::Object(fields.into_iter().map(|(name, value)| (name.clone(), sorted(value))).collect())
        }
        other => other.clone(),
    }
}

/// What a call would do, as a person is shown it: the tool's own words, else its arguments.
pub fn describe(tool: &str, arguments: &Value, words: Option<&str>) -> String {
    match words {
        Some(words) => visible(words),
        None => visible(&format!("{tool} {arguments}")),
    }
}

/// The question as a chat message. What is left out in the middle is said, and where it can be read.
pub fn question(agent: &str, id: &str, what: &str) -> String {
    let what = shortened(what, id);
    let minutes = EXPIRY_MS / 60_000;
    format!(
        "{agent} asks for your approval:\n{what}\n\nAnswer /approve {id} or /deny {id} within {minutes} minutes. \
         Other words are no answer."
    )
}

/// What names the message of a question in the outbox.
pub fn message_key(id: &str) -> String {
    format!("{MESSAGE}{id}")
}

/// The buttons under a message of this name: the answers to the question it asks, where it ends with them. Only the
/// runtime names messages, so no text can have buttons made for it.
pub fn buttons(part_key: &str, text: &str) -> Vec<Button> {
    let named = part_key.strip_prefix(MESSAGE).and_then(|rest| rest.rsplit_once('-'));
    let Some((id, _)) = named.filter(|(id, _)| text.contains(&format!("/approve {id} or"))) else {
        return Vec::new();
    };
    let button = |label, command: &str| Button { label, command: format!("/{command} {id}") };
    vec![button("Approve", "approve"), button("Deny", "deny")]
}

fn shortened(text: &str, id: &str) -> String {
    let count = text.chars().count();
    if count <= LONGEST {
        return text.to_owned();
    }
    let head: String = text.chars().take(LONGEST / 2).collect();
    let tail: String = text.chars().skip(count - LONGEST / 2).collect();
    let left_out = count - LONGEST;
    format!(
        "{head}\n[… {left_out} characters are not shown here; `polyclaw approvals show {id}` shows all …]\n{tail}"
    )
}

/// Characters that hide or reorder others are written out: what is approved must be what is read.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push(c),
            c if c.is_control() || is_hidden(c) || is_unclear(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn address(peer: &str, thread: Option<&str>) -> Address {
        let (channel, account) = ("chat".to_owned(), "a".to_owned());
        Address { channel, account, peer: peer.to_owned(), thread: thread.map(str::to_owned) }
    }

    #[test]
    fn only_the_one_who_asked_there_or_the_owner_can_answer() {
        let origin = address("me", Some("1"));
        let bound = Bound { origin: Some(&origin), fingerprint: "f" };
        let by = |address| check(bound, &Answerer::Sender(address), None);
        assert_eq!(by(origin.clone()), Ok(()));
        assert_eq!(by(address("me", Some("2"))), Err(Invalid::OtherConversation));
        assert_eq!(by(address("me", None)), Err(Invalid::OtherConversation));
        assert_eq!(by(address("you", Some("1"))), Err(Invalid::WrongPerson));
        assert_eq!(check(bound, &Answerer::Owner, None), Ok(()));
        assert_eq!(check(bound, &Answerer::Owner, Some("f")), Ok(()));
        assert_eq!(check(bound, &Answerer::Owner, Some("g")), Err(Invalid::OtherArguments));
        let at_the_terminal = Bound { origin: None, ..bound };
        assert_eq!(check(at_the_terminal, &Answerer::Sender(origin.clone()), None), Err(Invalid::OwnerOnly));
    }

    #[test]
    fn a_fingerprint_is_of_the_values_not_of_their_order() {
        let one = fingerprint("t", &json!({ "a": 1, "b": { "c": [1, 2], "d": null } }));
        assert_eq!(one, fingerprint("t", &json!({ "b": { "d": null, "c": [1, 2] }, "a": 1 })));
        for other in
            [json!({ "a": 1, "b": { "c": [2, 1], "d": null } }), json!({ "a": 1, "b": { "c": [1, 2] } })]
        {
            assert_ne!(one, fingerprint("t", &other));
        }
        assert_ne!(one, fingerprint("u", &json!({ "a": 1, "b": { "c": [1, 2], "d": null } })));
    }

    #[test]
    fn what_would_hide_something_is_written_out() {
        let what = describe("shell", &json!({ "command": "ls \u{202e}x\u{200b}\u{7}" }), None);
        assert!(what.contains("\\u{202e}x\\u{200b}") && !what.contains('\u{202e}'), "{what}");
        let long = question("Ops", "id1", &format!("{}rm -rf /", "a".repeat(5_000)));
        assert!(
            long.contains("characters are not shown here") && long.contains("rm -rf /"),
            "its end is shown"
        );
    }

    #[test]
    fn only_the_message_of_a_question_has_its_buttons() {
        let asked = question("Ops", "id-1", "shell ls");
        let commands: Vec<String> = buttons(&format!("{}-0", message_key("id-1")), &asked)
            .into_iter()
            .map(|one| one.command)
            .collect();
        assert_eq!(commands, ["/approve id-1", "/deny id-1"]);
        assert!(buttons("turn-1-0", &asked).is_empty(), "a text that reads like one");
        assert!(buttons("approval-id-2-0", &asked).is_empty());
        assert!(buttons("approval-id-1-0", "its beginning").is_empty(), "a part without the answers");
    }
}
