//! Meta's webhook deliveries and their conversion to inbound messages. Reactions and status reports yield no message.

use polyclaw_domain::channel::{ChatAddress, InboundMessage};
use polyclaw_domain::inbound::{ChatPeer, InboundContext, PeerKind};
use serde::Deserialize;

use super::CHANNEL_NAME;
use super::content::WhatsappContent;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WhatsappCallback {
    entry: Vec<CallbackEntry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CallbackEntry {
    changes: Vec<CallbackChange>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CallbackChange {
    field: String,
    value: ChangeValue,
}

/// Changes of one number.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChangeValue {
    pub metadata: NumberMetadata,
    contacts: Vec<WhatsappContact>,
    messages: Vec<serde_json::Value>,
    statuses: Vec<WhatsappStatus>,
}

/// Delivery status of a message that this number sent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WhatsappStatus {
    id: String,
    errors: Vec<StatusError>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusError {
    code: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NumberMetadata {
    pub phone_number_id: String,
    display_phone_number: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WhatsappContact {
    wa_id: String,
    profile: ContactProfile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContactProfile {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WhatsappMessage {
    from: String,
    id: String,
    /// Seconds since 1970, as a string.
    timestamp: String,
    group_id: Option<String>,
    context: Option<QuotedContext>,
    #[serde(flatten)]
    pub content: WhatsappContent,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct QuotedContext {
    from: String,
}

impl WhatsappCallback {
    pub fn from_body(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// Returns the changes of all numbers in order.
    pub fn message_changes(&self) -> impl Iterator<Item = &ChangeValue> {
        let changes = self.entry.iter().flat_map(|entry| &entry.changes);
        changes.filter(|change| change.field == "messages").map(|change| &change.value)
    }
}

impl ChangeValue {
    /// Returns the messages. One that cannot be parsed does not affect the others.
    pub fn messages(&self) -> impl Iterator<Item = WhatsappMessage> {
        self.messages.iter().filter_map(|message| WhatsappMessage::deserialize(message).ok())
    }

    /// Returns sent messages that were accepted and failed later: id and Meta's error code.
    pub fn failures(&self) -> impl Iterator<Item = (&str, u64)> {
        self.statuses.iter().filter_map(|status| Some((status.id.as_str(), status.errors.first()?.code)))
    }

    pub fn to_inbound(&self, account: &str, message: &WhatsappMessage) -> Option<InboundMessage> {
        let text = message.content.text()?;
        if message.from.is_empty() || message.id.is_empty() || message.from == self.own_number() {
            return None;
        }
        let (kind, place) = match &message.group_id {
            Some(group) => (PeerKind::Group, group),
            None => (PeerKind::Dm, &message.from),
        };
        let arrival = InboundContext {
            channel: CHANNEL_NAME.to_owned(),
            account: account.to_owned(),
            peer: ChatPeer { kind, id: place.clone() },
            parent: None,
            thread: None,
            guild: None,
            team: None,
            roles: Vec::new(),
            sender: message.from.clone(),
        };
        let address = ChatAddress {
            channel: CHANNEL_NAME.to_owned(),
            account: account.to_owned(),
            peer: place.clone(),
            thread: None,
        };
        let own = self.own_number();
        let replied = message.context.as_ref().is_some_and(|context| context.from == own);
        let (text, named) = strip_own_number(&own, text);
        let mentioned = !own.is_empty() && (replied || named);
        let sender_name = self.name(&message.from);
        Some(InboundMessage {
            context: arrival,
            address,
            platform_id: message.id.clone(),
            text,
            attachments: message.content.attachment_refs(),
            mentioned,
            sender_name,
        })
    }

    /// Returns the digits of the number, which Meta shows with spaces and signs.
    fn own_number(&self) -> String {
        self.metadata.display_phone_number.chars().filter(char::is_ascii_digit).collect()
    }

    fn name(&self, id: &str) -> Option<String> {
        let contact = self.contacts.iter().find(|contact| contact.wa_id == id)?;
        Some(contact.profile.name.clone()).filter(|name| !name.is_empty())
    }
}

/// Strips mentions of the account's own number and returns whether there were any. A longer number that starts with it
/// is another one. A text of nothing but the mention is kept.
fn strip_own_number(own: &str, text: String) -> (String, bool) {
    if own.is_empty() {
        return (text, false);
    }
    let mark = format!("@{own}");
    let (mut reply, mut rest, mut named) = (String::new(), text.as_str(), false);
    while let Some((before, after)) = rest.split_once(&mark) {
        let goes_on = after.starts_with(|c: char| c.is_ascii_digit());
        reply.push_str(before);
        reply.push_str(if goes_on { &mark } else { "" });
        (named, rest) = (named || !goes_on, after);
    }
    reply.push_str(rest);
    let reply = reply.trim();
    let reply = if named && !reply.is_empty() { reply.to_owned() } else { text.clone() };
    (reply, named)
}

impl WhatsappMessage {
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the time of writing in milliseconds since 1970.
    pub fn written_ms(&self) -> Option<i64> {
        self.timestamp.parse::<i64>().ok()?.checked_mul(1000)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn letters(message: Json) -> Vec<InboundMessage> {
        let value = json!({
            "metadata": { "phone_number_id": "100", "display_phone_number": "+1 (555) 010" },
            "contacts": [{ "wa_id": "49151", "profile": { "name": "Ann" } }],
            "messages": [{ "type": "text" }, 7, message],
            "statuses": [{ "id": "wamid.1", "status": "read" }],
        });
        let body = json!({ "entry": [{ "changes": [{ "field": "messages", "value": value }] }] });
        let callback = WhatsappCallback::from_body(body.to_string().as_bytes()).unwrap();
        let of = |value: &ChangeValue| -> Vec<_> {
            value.messages().filter_map(|message| value.to_inbound("shop", &message)).collect()
        };
        callback.message_changes().flat_map(of).collect()
    }

    fn text(change: Json) -> Json {
        let mut message = json!({ "from": "49151", "id": "wamid.1", "timestamp": "17", "type": "text", "text": { "body": "hi" } });
        for (name, value) in change.as_object().unwrap() {
            message[name] = value.clone();
        }
        message
    }

    #[test]
    fn whatsapp_message_becomes_dm_of_its_sender() {
        let message = &letters(text(json!({})))[0];
        assert_eq!((message.text.as_str(), message.platform_id.as_str()), ("hi", "wamid.1"));
        assert_eq!(message.context.peer, ChatPeer { kind: PeerKind::Dm, id: "49151".into() });
        assert_eq!((message.address.peer.as_str(), message.sender_name.as_deref()), ("49151", Some("Ann")));
        assert!(!message.mentioned);
    }

    #[test]
    fn group_message_mentions_bot_by_number_or_reply() {
        for (change, mentioned) in [
            (json!({ "group_id": "g-1" }), false),
            (json!({ "group_id": "g-1", "text": { "body": "@1555010 hi" } }), true),
            (json!({ "group_id": "g-1", "context": { "from": "1555010", "id": "wamid.0" } }), true),
            (json!({ "group_id": "g-1", "context": { "from": "49152", "id": "wamid.0" } }), false),
        ] {
            let message = &letters(text(change.clone()))[0];
            assert_eq!(message.context.peer, ChatPeer { kind: PeerKind::Group, id: "g-1".into() });
            assert_eq!((message.address.peer.as_str(), message.context.sender.as_str()), ("g-1", "49151"));
            assert_eq!(message.mentioned, mentioned, "{change}");
            assert_eq!(message.text, "hi", "{change}: its own number is no part of what is said");
        }
    }

    #[test]
    fn only_own_number_is_stripped_from_text() {
        for (text, reply, named) in [
            ("@1555010 hi", "hi", true),
            ("hi @1555010, you", "hi , you", true),
            ("@15550101 hi", "@15550101 hi", false),
            ("@1555010", "@1555010", true),
            (" as it is ", " as it is ", false),
        ] {
            assert_eq!(strip_own_number("1555010", text.to_owned()), (reply.to_owned(), named), "{text}");
        }
        assert_eq!(strip_own_number("", "@ hi".to_owned()), ("@ hi".to_owned(), false));
    }

    #[test]
    fn each_message_type_yields_its_text() {
        for (change, reply) in [
            (json!({ "type": "button", "button": { "text": "Yes" } }), Some("Yes")),
            (
                json!({ "type": "interactive", "interactive": { "type": "list_reply", "list_reply": { "title": "Two" } } }),
                Some("Two"),
            ),
            (
                json!({ "type": "location", "location": { "latitude": 1.5, "longitude": -2.0 } }),
                Some("Location: 1.5, -2"),
            ),
            (
                json!({ "type": "image", "image": { "id": "m1", "mime_type": "image/png", "caption": "see" } }),
                Some("see"),
            ),
            (json!({ "type": "audio", "audio": { "id": "m1", "mime_type": "audio/ogg" } }), Some("")),
            (json!({ "type": "reaction", "reaction": { "emoji": "x" } }), None),
            (json!({ "type": "unsupported" }), None),
            (json!({ "from": "1555010" }), None),
            (json!({ "from": "" }), None),
            (json!({ "id": "" }), None),
        ] {
            let messages = letters(text(change.clone()));
            assert_eq!(messages.first().map(|letter| letter.text.as_str()), reply, "{change}");
        }
    }
}
