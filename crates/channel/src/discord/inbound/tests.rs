use serde_json::{Value, json};

use super::*;

fn place(parent: Option<&str>) -> DiscordLocation {
    DiscordLocation { channel: "c1".into(), guild: Some("g1".into()), parent: parent.map(str::to_owned) }
}

/// A channel message with the fields of `over` replaced.
fn said(over: Value) -> Option<InboundMessage> {
    said_at(&place(None), over)
}

fn said_at(place: &DiscordLocation, over: Value) -> Option<InboundMessage> {
    let mut message = json!({
        "id": "10", "channel_id": "c1", "type": 0, "content": "hello",
        "author": { "id": "7", "username": "ann", "global_name": "Ann" },
        "member": { "roles": ["r1", "r2"], "nick": "Annie" },
    });
    for (key, value) in over.as_object().unwrap() {
        message[key] = value.clone();
    }
    inbound_from_message(&serde_json::from_value(message).unwrap(), place, "1", "biz")
}

#[test]
fn inbound_message_keeps_its_full_context() {
    let found = said(json!({})).unwrap();
    assert_eq!(found.context.peer, ChatPeer { kind: PeerKind::Channel, id: "c1".into() });
    assert_eq!(
        (found.context.guild.as_deref(), &found.context.roles[..]),
        (Some("g1"), &["r1".into(), "r2".into()][..])
    );
    assert_eq!((found.context.parent, found.context.thread, found.address.thread), (None, None, None));
    assert_eq!((found.platform_id.as_str(), found.sender_name.as_deref()), ("10", Some("Annie")));
}

#[test]
fn thread_message_has_thread_and_parent_channel() {
    let found = said_at(&place(Some("p1")), json!({})).unwrap();
    assert_eq!(found.context.peer.id, "c1");
    assert_eq!(found.context.parent, Some(ChatPeer { kind: PeerKind::Channel, id: "p1".into() }));
    assert_eq!(found.context.thread, Some(ChatThread { kind: ThreadKind::Thread, id: "c1".into() }));
    assert_eq!((found.address.peer.as_str(), found.address.thread.as_deref()), ("c1", Some("c1")));
}

#[test]
fn dm_is_identified_by_user_and_answered_in_channel() {
    let alone = DiscordLocation { channel: "d9".into(), ..DiscordLocation::default() };
    let found = said_at(&alone, json!({ "member": null })).unwrap();
    assert_eq!(found.context.peer, ChatPeer { kind: PeerKind::Dm, id: "7".into() });
    assert_eq!((found.address.peer.as_str(), found.sender_name.as_deref()), ("d9", Some("Ann")));
}

#[test]
fn mentions_and_replies_to_bot_are_detected() {
    let table = [
        (json!({}), false),
        (json!({ "content": "hi <@1>", "mentions": [{ "id": "1" }] }), true),
        (json!({ "content": "hi <@2>", "mentions": [{ "id": "2" }] }), false),
        (json!({ "content": "@everyone", "mention_everyone": true }), false),
        (json!({ "type": 19, "referenced_message": { "author": { "id": "1" } } }), true),
        (json!({ "type": 19, "referenced_message": { "author": { "id": "2" } } }), false),
        (json!({ "type": 19, "referenced_message": null }), false),
    ];
    for (over, expected) in table {
        assert_eq!(said(over.clone()).unwrap().mentioned, expected, "{over}");
    }
}

#[test]
fn leading_bot_mention_is_removed_from_text() {
    let text = |text: &str| said(json!({ "content": text })).unwrap().text;
    assert_eq!(text("<@1> /new"), "/new");
    assert_eq!(text("<@!1>  what now"), "what now");
    assert_eq!(text("<@1>"), "<@1>");
    assert_eq!(text("<@12> /new"), "<@12> /new");
    assert_eq!(text("see <@1>"), "see <@1>");
}

#[test]
fn bot_webhook_and_system_messages_are_ignored() {
    for over in [
        json!({ "author": { "id": "9", "bot": true } }),
        json!({ "author": { "id": "1" } }),
        json!({ "webhook_id": "5" }),
        json!({ "type": 7 }),
        json!({ "type": 21 }),
    ] {
        assert!(said(over.clone()).is_none(), "{over}");
    }
}
