//! Slack deliveries and their conversion to inbound messages. A delivery with missing or mistyped fields yields no
//! message.

use polyclaw_domain::channel::{AttachmentRef, ChatAddress, InboundMessage};
use polyclaw_domain::command::parse;
use polyclaw_domain::inbound::{ChatPeer, ChatThread, InboundContext, PeerKind, ThreadKind};
use serde::Deserialize;
use serde_json::Value;

use super::{CHANNEL_NAME, text};
use crate::attachment::MAX_ATTACHMENTS;

/// The identity of the account in its workspace.
#[derive(Clone, Debug)]
pub(super) struct SlackIdentity {
    pub account: String,
    pub user: String,
    /// The user name of the app.
    pub name: String,
    pub team: Option<String>,
}

/// The body of an Events API request, and the payload of an `events_api` envelope.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EventCallback {
    #[serde(rename = "type")]
    pub kind: String,
    pub challenge: String,
    pub team_id: Option<String>,
    authorizations: Option<Vec<AppAuthorization>>,
    pub event: SlackEvent,
}

/// An installation of the app that may see the event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AppAuthorization {
    team_id: Option<String>,
    is_enterprise_install: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SlackEvent {
    #[serde(rename = "type")]
    kind: String,
    subtype: Option<String>,
    user: Option<String>,
    bot_id: Option<String>,
    text: String,
    channel: String,
    ts: String,
    thread_ts: Option<String>,
    parent_user_id: Option<String>,
    files: Option<Vec<SlackFile>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SlackFile {
    name: String,
    mimetype: String,
    size: u64,
    /// The page of the file for logged-in users. It contains no token.
    permalink: Option<String>,
    url_private_download: Option<String>,
}

/// A slash command that a person ran, such as `/polyclaw status`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SlashCommand {
    command: String,
    text: String,
    channel_id: String,
    user_id: String,
    user_name: String,
    pub team_id: Option<String>,
    /// A bool in JSON, a string in a form.
    is_enterprise_install: Value,
    /// The unique id of this use of the command.
    trigger_id: String,
}

impl EventCallback {
    /// Events list the installations that may see them.
    pub fn is_foreign(&self, me: &SlackIdentity) -> bool {
        let is_here = |one: &AppAuthorization| one.is_enterprise_install || one.team_id == me.team;
        let known = self.authorizations.as_deref().unwrap_or_default();
        !known.is_empty() && !known.iter().any(is_here)
    }
}

impl SlackEvent {
    fn attachment_refs(&self) -> Vec<AttachmentRef> {
        let attached = |file: &SlackFile| AttachmentRef {
            name: file.name.clone(),
            media_type: file.mimetype.clone(),
            size: Some(file.size),
            url: file.permalink.clone(),
            handle: file.url_private_download.clone(),
        };
        self.files.iter().flatten().take(MAX_ATTACHMENTS).map(attached).collect()
    }

    /// Converts a new message of a person. `message` and `app_mention` events of the same message get the same id.
    pub fn to_inbound(&self, me: &SlackIdentity, team: Option<&str>) -> Option<InboundMessage> {
        let is_message = matches!(self.kind.as_str(), "message" | "app_mention");
        let is_new =
            matches!(self.subtype.as_deref(), None | Some("file_share" | "thread_broadcast" | "me_message"));
        let sender = self.user.as_deref().filter(|user| *user != me.user && *user != "USLACKBOT")?;
        if !is_message || !is_new || self.bot_id.is_some() || self.channel.is_empty() || self.ts.is_empty() {
            return None;
        }
        let thread = self.thread_ts.as_deref().filter(|thread| *thread != self.ts);
        let arrival = inbound_context(me, &self.channel, sender, team, thread);
        let replies_to_me = thread.is_some() && self.parent_user_id.as_deref() == Some(&me.user);
        Some(InboundMessage {
            address: reply_address(me, &self.channel, thread),
            platform_id: format!("{}:{}", self.channel, self.ts),
            text: text::to_plain_text(&self.text, &me.user),
            attachments: self.attachment_refs(),
            mentioned: self.kind == "app_mention"
                || text::mentions_user(&self.text, &me.user)
                || replies_to_me,
            sender_name: None,
            context: arrival,
        })
    }
}

impl SlashCommand {
    pub fn is_foreign(&self, me: &SlackIdentity) -> bool {
        is_foreign(me, self.team_id.as_deref(), &self.is_enterprise_install)
    }

    pub fn to_inbound(&self, me: &SlackIdentity) -> Option<InboundMessage> {
        let ids = [&self.command, &self.channel_id, &self.user_id, &self.trigger_id];
        if ids.iter().any(|id| id.is_empty()) || !self.command.starts_with('/') {
            return None;
        }
        Some(InboundMessage {
            context: inbound_context(me, &self.channel_id, &self.user_id, self.team_id.as_deref(), None),
            address: reply_address(me, &self.channel_id, None),
            platform_id: format!("command:{}", self.trigger_id),
            text: self.command_text(me),
            attachments: Vec::new(),
            mentioned: true,
            sender_name: Some(self.user_name.clone()).filter(|name| !name.is_empty()),
        })
    }
}

impl SlashCommand {
    /// Returns the text of the command. Slack reserves commands, so those of an app follow its own name: `/polyclaw
    /// status` is `/status`. If the first word is not the app's name, for example an agent's, it is kept in front of
    /// text that is no command.
    fn command_text(&self, me: &SlackIdentity) -> String {
        let text = text::to_plain_text(&self.text, &me.user);
        let text = text.trim();
        let whole = format!("{} {text}", self.command).trim_end().to_owned();
        if parse(&whole).is_some() {
            return whole;
        }
        let slashed = format!("/{}", text.trim_start_matches('/'));
        let is_own = self.command[1..].eq_ignore_ascii_case(&me.name);
        match parse(&slashed) {
            Some(_) => slashed,
            None if is_own && text.is_empty() => "/help".to_owned(),
            None if is_own => text.to_owned(),
            None => whole,
        }
    }
}

/// Whether a command or button press is for another workspace. An app installed for a whole organisation serves all of
/// them.
pub(super) fn is_foreign(me: &SlackIdentity, team: Option<&str>, is_everywhere: &Value) -> bool {
    let is_everywhere = is_everywhere == true || is_everywhere == "true";
    !is_everywhere && team.zip(me.team.as_deref()).is_some_and(|(team, own)| !team.is_empty() && team != own)
}

pub(super) fn reply_address(me: &SlackIdentity, channel: &str, thread: Option<&str>) -> ChatAddress {
    ChatAddress {
        channel: CHANNEL_NAME.to_owned(),
        account: me.account.clone(),
        peer: channel.to_owned(),
        thread: thread.map(str::to_owned),
    }
}

/// Builds the routing context. The first letter of a conversation id tells its kind: direct message (`D`), group (`G`)
/// or channel (`C`).
pub(super) fn inbound_context(
    me: &SlackIdentity,
    channel: &str,
    sender: &str,
    team: Option<&str>,
    thread: Option<&str>,
) -> InboundContext {
    let (kind, id) = match channel.as_bytes().first() {
        Some(b'D') => (PeerKind::Dm, sender),
        Some(b'G') => (PeerKind::Group, channel),
        _ => (PeerKind::Channel, channel),
    };
    InboundContext {
        channel: CHANNEL_NAME.to_owned(),
        account: me.account.clone(),
        peer: ChatPeer { kind, id: id.to_owned() },
        parent: None,
        thread: thread.map(|id| ChatThread { kind: ThreadKind::Thread, id: id.to_owned() }),
        guild: None,
        team: team.or(me.team.as_deref()).map(str::to_owned),
        roles: Vec::new(),
        sender: sender.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn me() -> SlackIdentity {
        SlackIdentity {
            account: "work".into(),
            user: "UBOT".into(),
            name: "polyclaw".into(),
            team: Some("T1".into()),
        }
    }

    fn letter(change: Value) -> Option<InboundMessage> {
        let mut event =
            json!({ "type": "message", "user": "U1", "text": "hi", "channel": "C1", "ts": "5.1" });
        for (name, value) in change.as_object().unwrap() {
            event[name] = value.clone();
        }
        serde_json::from_value::<SlackEvent>(event).unwrap().to_inbound(&me(), Some("T9"))
    }

    #[test]
    fn only_new_user_messages_are_inbound_messages() {
        assert!(letter(json!({})).is_some());
        for subtype in ["file_share", "thread_broadcast", "me_message"] {
            assert!(letter(json!({ "subtype": subtype })).is_some(), "{subtype}");
        }
        for change in [
            json!({ "subtype": "message_changed" }),
            json!({ "subtype": "message_deleted" }),
            json!({ "subtype": "bot_message" }),
            json!({ "subtype": "channel_join" }),
            json!({ "bot_id": "B1" }),
            json!({ "user": "UBOT" }),
            json!({ "user": "USLACKBOT" }),
            json!({ "user": null }),
            json!({ "type": "reaction_added" }),
            json!({ "channel": "" }),
            json!({ "ts": "" }),
        ] {
            assert_eq!(letter(change.clone()), None, "{change}");
        }
    }

    #[test]
    fn event_for_another_workspace_is_foreign() {
        let foreign = |authorizations: Value| {
            let callback = json!({ "team_id": "T9", "authorizations": authorizations });
            serde_json::from_value::<EventCallback>(callback).unwrap().is_foreign(&me())
        };
        assert!(foreign(json!([{ "team_id": "T9" }])));
        assert!(!foreign(json!([])) && !foreign(json!(null)), "Slack does not say");
        assert!(!foreign(json!([{ "team_id": "T1" }])), "a channel that two workspaces share");
        assert!(!foreign(json!([{ "team_id": null, "is_enterprise_install": true }])));
    }

    #[test]
    fn command_from_another_workspace_is_foreign() {
        let foreign =
            |change: Value| serde_json::from_value::<SlashCommand>(change).unwrap().is_foreign(&me());
        assert!(foreign(json!({ "team_id": "T9", "is_enterprise_install": "false" })));
        assert!(!foreign(json!({ "team_id": "T1", "is_enterprise_install": "false" })));
        assert!(!foreign(json!({})) && !foreign(json!({ "team_id": "" })), "Slack does not say");
        assert!(!foreign(json!({ "team_id": "T9", "is_enterprise_install": "true" })));
        let nobody = SlackIdentity { team: None, ..me() };
        assert!(!is_foreign(&nobody, Some("T9"), &Value::Null));
    }

    #[test]
    fn mention_and_message_event_are_one_inbound_message() {
        let text = "<@UBOT> hi";
        let message = letter(json!({ "text": text })).unwrap();
        assert_eq!(Some(&message), letter(json!({ "type": "app_mention", "text": text })).as_ref());
        assert_eq!((message.platform_id.as_str(), message.text.as_str()), ("C1:5.1", "hi"));
        assert!(message.mentioned);
        assert_eq!(message.context.team.as_deref(), Some("T9"));
    }

    #[test]
    fn reply_address_matches_message_channel_and_thread() {
        let place = |change| {
            let message = letter(change).unwrap();
            let peer = message.context.peer;
            (peer.kind, peer.id, message.address.peer, message.address.thread, message.mentioned)
        };
        let thread = Some("4.0".to_owned());
        let (d, u, c, g) = ("D1".to_owned(), "U1".to_owned(), "C1".to_owned(), "G1".to_owned());
        assert_eq!(place(json!({ "channel": "D1" })), (PeerKind::Dm, u, d, None, false));
        assert_eq!(place(json!({ "channel": "G1" })), (PeerKind::Group, g.clone(), g, None, false));
        assert_eq!(
            place(json!({ "thread_ts": "4.0" })),
            (PeerKind::Channel, c.clone(), c.clone(), thread.clone(), false)
        );
        let of_mine = json!({ "thread_ts": "4.0", "parent_user_id": "UBOT" });
        assert_eq!(place(of_mine), (PeerKind::Channel, c.clone(), c.clone(), thread, true));
        assert_eq!(place(json!({ "thread_ts": "5.1" })), (PeerKind::Channel, c.clone(), c, None, false));
    }

    #[test]
    fn slash_command_becomes_an_inbound_message() {
        let command = json!({
            "command": "/polyclaw", "text": "say &lt;hi&gt;", "channel_id": "D1", "user_id": "U1",
            "user_name": "ann", "team_id": "T9", "trigger_id": "1.2.x",
        });
        let message = serde_json::from_value::<SlashCommand>(command).unwrap().to_inbound(&me()).unwrap();
        assert_eq!((message.text.as_str(), message.platform_id.as_str()), ("say <hi>", "command:1.2.x"));
        assert!(message.mentioned);
        assert_eq!(SlashCommand::default().to_inbound(&me()), None);
    }

    #[test]
    fn app_name_is_stripped_from_slash_command() {
        for (command, text, meant) in [
            ("/polyclaw", "status", "/status"),
            ("/Polyclaw", "/model lab/small", "/model lab/small"),
            ("/claw", "status", "/status"),
            ("/polyclaw", "", "/help"),
            ("/polyclaw", "how are you", "how are you"),
            ("/ops", "restart it", "/ops restart it"),
            ("/help", "status", "/help status"),
        ] {
            let given =
                SlashCommand { command: command.into(), text: text.into(), ..SlashCommand::default() };
            assert_eq!(given.command_text(&me()), meant, "{command} {text}");
        }
    }
}
