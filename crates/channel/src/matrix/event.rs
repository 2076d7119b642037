//! Matrix events and their conversion to inbound messages. An event with a field of an unexpected type is skipped.

use std::collections::BTreeMap;

use polyclaw_domain::channel::{AttachmentRef, ChatAddress, InboundMessage};
use polyclaw_domain::inbound::{ChatPeer, ChatThread, InboundContext, PeerKind, ThreadKind};
use serde::Deserialize;

use super::{CHANNEL_NAME, text};

/// The account's identity and the members of one room.
#[derive(Clone, Debug)]
pub(super) struct MatrixRoom {
    pub account: String,
    pub own_id: String,
    pub id: String,
    /// Members by user id, with their display names.
    pub members: BTreeMap<String, Option<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MatrixEvent {
    #[serde(rename = "type")]
    pub kind: String,
    pub event_id: String,
    pub sender: String,
    pub state_key: Option<String>,
    pub content: MatrixEventContent,
    unsigned: UnsignedData,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UnsignedData {
    prev_content: PreviousContent,
}

/// The previous content of a state event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PreviousContent {
    membership: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MatrixEventContent {
    msgtype: String,
    body: String,
    formatted_body: String,
    filename: Option<String>,
    /// An `mxc://server/id` URI.
    url: Option<String>,
    info: MatrixFileInfo,
    pub membership: String,
    pub is_direct: bool,
    #[serde(rename = "m.mentions")]
    mentions: Option<MatrixMentions>,
    #[serde(rename = "m.relates_to")]
    relation: EventRelation,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MatrixFileInfo {
    mimetype: String,
    size: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MatrixMentions {
    user_ids: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EventRelation {
    rel_type: String,
    event_id: String,
    is_falling_back: bool,
    #[serde(rename = "m.in_reply_to")]
    reply: Option<InReplyTo>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InReplyTo {
    event_id: String,
}

impl MatrixRoom {
    /// Whether the room has at most one other member.
    fn is_dm(&self) -> bool {
        self.members.len() <= 2
    }

    fn own_name(&self) -> Option<&str> {
        self.members.get(&self.own_id)?.as_deref()
    }
}

impl MatrixEvent {
    pub fn is_membership_of(&self, user: &str) -> bool {
        self.kind == "m.room.member" && self.state_key.as_deref() == Some(user)
    }

    /// Whether the event invites the user or lets them join. A change of a display name does not.
    pub fn admits_user(&self, user: &str) -> bool {
        let was_in = self.unsigned.prev_content.membership == "join";
        self.is_membership_of(user)
            && !was_in
            && matches!(self.content.membership.as_str(), "invite" | "join")
    }

    fn attachment_refs(&self) -> Vec<AttachmentRef> {
        let content = &self.content;
        let attached = |name: &str| AttachmentRef {
            name: name.to_owned(),
            media_type: content.info.mimetype.clone(),
            size: Some(content.info.size).filter(|size| *size > 0),
            url: content.url.clone(),
            handle: content.url.clone(),
        };
        self.file_name().map(attached).into_iter().collect()
    }

    fn file_name(&self) -> Option<&str> {
        let is_file = matches!(self.content.msgtype.as_str(), "m.file" | "m.image" | "m.audio" | "m.video");
        is_file.then(|| self.content.filename.as_deref().unwrap_or(&self.content.body))
    }

    /// Returns the event that this one may answer: the one it replies to, else the root of its thread.
    pub fn replied_event_id(&self) -> Option<&str> {
        let relation = &self.content.relation;
        let reply = relation.reply.as_ref().filter(|_| !relation.is_falling_back);
        reply.map(|reply| reply.event_id.as_str()).or(self.thread_root_id()).filter(|id| !id.is_empty())
    }

    fn thread_root_id(&self) -> Option<&str> {
        let relation = &self.content.relation;
        (relation.rel_type == "m.thread").then_some(relation.event_id.as_str()).filter(|id| !id.is_empty())
    }

    /// Converts a new message of somebody else. Notices are skipped: bots send them, and answering them could loop
    /// forever.
    pub fn to_inbound(&self, room: &MatrixRoom) -> Option<InboundMessage> {
        let is_message = self.kind == "m.room.message" && self.state_key.is_none();
        let is_shown =
            matches!(self.content.msgtype.as_str(), "m.text" | "m.emote") || self.file_name().is_some();
        let is_edit = self.content.relation.rel_type == "m.replace";
        let is_own = self.sender == room.own_id || self.sender.is_empty() || self.event_id.is_empty();
        if !is_message || !is_shown || is_edit || is_own {
            return None;
        }
        Some(InboundMessage {
            context: self.inbound_context(room),
            address: ChatAddress {
                channel: CHANNEL_NAME.to_owned(),
                account: room.account.clone(),
                peer: room.id.clone(),
                thread: self.thread_root_id().map(str::to_owned),
            },
            platform_id: self.event_id.clone(),
            text: self.message_text(room),
            attachments: self.attachment_refs(),
            mentioned: self.is_mention(room),
            sender_name: room.members.get(&self.sender).cloned().flatten(),
        })
    }

    fn inbound_context(&self, room: &MatrixRoom) -> InboundContext {
        let (kind, id) =
            if room.is_dm() { (PeerKind::Dm, &self.sender) } else { (PeerKind::Group, &room.id) };
        InboundContext {
            channel: CHANNEL_NAME.to_owned(),
            account: room.account.clone(),
            peer: ChatPeer { kind, id: id.clone() },
            parent: None,
            thread: self
                .thread_root_id()
                .map(|id| ChatThread { kind: ThreadKind::Thread, id: id.to_owned() }),
            guild: None,
            team: None,
            roles: Vec::new(),
            sender: self.sender.clone(),
        }
    }

    /// Returns the text without quote and own name. The body of a file is a caption only if the file name is given
    /// separately.
    fn message_text(&self, room: &MatrixRoom) -> String {
        let content = &self.content;
        if self.file_name().is_some() {
            let caption = content.filename.as_ref().filter(|name| **name != content.body);
            return caption.map(|_| content.body.clone()).unwrap_or_default();
        }
        let is_reply = content.relation.reply.is_some();
        let body = if is_reply { text::without_quote(&content.body) } else { &content.body };
        text::without_own_name(body, [Some(room.own_id.as_str()), room.own_name()]).to_owned()
    }

    /// Current clients list mentioned users. For other clients the text is searched.
    fn is_mention(&self, room: &MatrixRoom) -> bool {
        let content = &self.content;
        if let Some(mentions) = &content.mentions {
            return mentions.user_ids.contains(&room.own_id);
        }
        let pill = format!("https://matrix.to/#/{}\"", room.own_id);
        content.formatted_body.contains(&pill)
            || content.body.contains(&room.own_id)
            || room.own_name().is_some_and(|name| text::contains_word(&content.body, name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn room(people: &[&str]) -> MatrixRoom {
        let mut members: BTreeMap<_, _> = people.iter().map(|id| ((*id).to_owned(), None)).collect();
        members.insert("@claw:hs".into(), Some("Claw".into()));
        members.insert("@ann:hs".into(), Some("Ann".into()));
        MatrixRoom { account: "home".into(), own_id: "@claw:hs".into(), id: "!r:hs".into(), members }
    }

    fn event(content: Value) -> MatrixEvent {
        let event =
            json!({ "type": "m.room.message", "event_id": "$1", "sender": "@ann:hs", "content": content });
        serde_json::from_value(event).unwrap()
    }

    fn said(body: &str) -> Value {
        json!({ "msgtype": "m.text", "body": body })
    }

    fn with(mut content: Value, name: &str, value: Value) -> Value {
        content[name] = value;
        content
    }

    #[test]
    fn room_with_two_members_is_a_direct_chat() {
        let message = event(said("hi")).to_inbound(&room(&[])).unwrap();
        assert_eq!(message.context.peer, ChatPeer { kind: PeerKind::Dm, id: "@ann:hs".into() });
        assert_eq!((message.address.peer.as_str(), message.platform_id.as_str()), ("!r:hs", "$1"));
        assert_eq!(message.sender_name.as_deref(), Some("Ann"));
        let message = event(said("hi")).to_inbound(&room(&["@bob:hs"])).unwrap();
        assert_eq!(message.context.peer, ChatPeer { kind: PeerKind::Group, id: "!r:hs".into() });
    }

    #[test]
    fn notices_edits_and_own_messages_are_ignored() {
        let room = room(&[]);
        for content in [
            json!({ "msgtype": "m.notice", "body": "hi" }),
            with(said("* hi"), "m.relates_to", json!({ "rel_type": "m.replace", "event_id": "$0" })),
            json!({}),
        ] {
            assert_eq!(event(content.clone()).to_inbound(&room), None, "{content}");
        }
        let own = MatrixEvent { sender: "@claw:hs".into(), ..event(said("hi")) };
        let state = MatrixEvent { state_key: Some(String::new()), ..event(said("hi")) };
        let sealed = MatrixEvent { kind: "m.room.encrypted".into(), ..event(said("hi")) };
        for event in [own, state, sealed] {
            assert_eq!(event.to_inbound(&room), None);
        }
    }

    #[test]
    fn mention_is_read_from_metadata_or_text() {
        let mentions = |ids: Value| with(said("Claw: hi"), "m.mentions", ids);
        let pill = "<a href=\"https://matrix.to/#/@claw:hs\">Claw</a>";
        for (content, expected) in [
            (said("hi"), false),
            (said("Claw: hi"), true),
            (said("hello claw!"), true),
            (said("clawing"), false),
            (said("ask @claw:hs"), true),
            (with(said("hi"), "formatted_body", json!(pill)), true),
            (mentions(json!({})), false),
            (mentions(json!({ "user_ids": ["@claw:hs"] })), true),
            (mentions(json!({ "room": true, "user_ids": ["@bob:hs"] })), false),
        ] {
            let message = event(content.clone()).to_inbound(&room(&["@bob:hs"])).unwrap();
            assert_eq!(message.mentioned, expected, "{content}");
        }
    }

    #[test]
    fn thread_is_distinguished_from_reply() {
        let thread = json!({ "rel_type": "m.thread", "event_id": "$root", "is_falling_back": true,
            "m.in_reply_to": { "event_id": "$last" } });
        let in_thread = event(with(said("hi"), "m.relates_to", thread));
        assert_eq!(in_thread.replied_event_id(), Some("$root"));
        assert_eq!(in_thread.to_inbound(&room(&[])).unwrap().address.thread.as_deref(), Some("$root"));
        let reply = json!({ "m.in_reply_to": { "event_id": "$last" } });
        let reply = event(with(said("> <@bob:hs> old\n> text\n\n/code hi"), "m.relates_to", reply));
        assert_eq!(reply.replied_event_id(), Some("$last"));
        let message = reply.to_inbound(&room(&[])).unwrap();
        assert_eq!((message.address.thread, message.text.as_str()), (None, "/code hi"));
    }

    #[test]
    fn file_caption_becomes_the_message_text() {
        let file = json!({ "msgtype": "m.file", "body": "notes.txt", "url": "mxc://hs/1" });
        let message_of = |content| event(content).to_inbound(&room(&[])).unwrap();
        assert_eq!(message_of(file.clone()).text, "");
        let captioned = with(with(file, "body", json!("look")), "filename", json!("notes.txt"));
        assert_eq!(message_of(captioned.clone()).text, "look");
        assert_eq!(event(captioned).file_name(), Some("notes.txt"));
    }
}
