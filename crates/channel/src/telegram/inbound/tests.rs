use serde_json::{Value, json};

use super::*;

fn me() -> TelegramUser {
    serde_json::from_value(json!({ "id": 1, "is_bot": true, "username": "PolyBot" })).unwrap()
}

/// A group message with the fields of `over` replaced.
fn said(over: Value) -> Option<InboundMessage> {
    let mut message = json!({
        "message_id": 10,
        "chat": { "id": -5, "type": "supergroup" },
        "from": { "id": 7, "first_name": "Ann", "last_name": "Lee" },
        "text": "hello",
    });
    for (key, value) in over.as_object().unwrap() {
        message[key] = value.clone();
    }
    inbound_from_message(&serde_json::from_value(message).unwrap(), &me(), "biz")
}

#[test]
fn inbound_message_keeps_its_full_context() {
    let found = said(json!({ "message_thread_id": 3, "is_topic_message": true })).unwrap();
    assert_eq!(found.context.peer, ChatPeer { kind: PeerKind::Group, id: "-5".into() });
    assert_eq!(found.context.thread, Some(ChatThread { kind: ThreadKind::Topic, id: "3".into() }));
    assert_eq!((found.context.sender.as_str(), found.context.account.as_str()), ("7", "biz"));
    assert_eq!((found.address.peer.as_str(), found.address.thread.as_deref()), ("-5", Some("3")));
    assert_eq!((found.platform_id.as_str(), found.sender_name.as_deref()), ("-5:10", Some("Ann Lee")));
    // A reply chain has a thread id as well, but is no topic.
    assert_eq!(said(json!({ "message_thread_id": 3 })).unwrap().address.thread, None);
}

#[test]
fn chat_types_map_to_peer_kinds() {
    let kind = |kind: &str| said(json!({ "chat": { "id": 7, "type": kind } })).unwrap().context.peer.kind;
    assert_eq!(kind("private"), PeerKind::Dm);
    assert_eq!(kind("group"), PeerKind::Group);
    assert_eq!(kind("supergroup"), PeerKind::Group);
    assert_eq!(kind("channel"), PeerKind::Channel);
}

#[test]
fn mentions_and_replies_to_bot_are_detected() {
    let entity = |kind: &str, offset: usize, length: usize| json!([{ "type": kind, "offset": offset, "length": length }]);
    let mine = json!({ "message_id": 4, "chat": { "id": -5, "type": "group" }, "from": { "id": 1, "is_bot": true } });
    let table = [
        (json!({}), false),
        (json!({ "text": "hi @polybot", "entities": entity("mention", 3, 8) }), true),
        (json!({ "text": "😀 @PolyBot", "entities": entity("mention", 3, 8) }), true),
        (json!({ "text": "hi @polybots", "entities": entity("mention", 3, 9) }), false),
        (json!({ "text": "hi @polybot" }), false),
        (json!({ "text": "hi", "entities": entity("mention", 400, usize::MAX) }), false),
        (
            json!({ "text": "you", "entities": [{ "type": "text_mention", "offset": 0, "length": 3, "user": { "id": 1 } }] }),
            true,
        ),
        (json!({ "text": null, "caption": "@polybot", "caption_entities": entity("mention", 0, 8) }), true),
        (json!({ "reply_to_message": mine }), true),
        (json!({ "reply_to_message": mine, "message_thread_id": 4, "is_topic_message": true }), false),
        (json!({ "text": "/new@PolyBot" }), true),
        (json!({ "text": "/new" }), false),
    ];
    for (over, expected) in table {
        assert_eq!(said(over.clone()).unwrap().mentioned, expected, "{over}");
    }
}

#[test]
fn bot_name_is_stripped_and_commands_for_others_ignored() {
    let text = |text: &str| said(json!({ "text": text })).map(|message| message.text);
    assert_eq!(text("/new@polybot").as_deref(), Some("/new"));
    assert_eq!(text("/code@PolyBot fix\nit@home").as_deref(), Some("/code fix\nit@home"));
    assert_eq!(text("@polybot /code@polybot x").as_deref(), Some("/code x"));
    assert_eq!(text("@polybot what now").as_deref(), Some("what now"));
    assert_eq!(text("@polybot").as_deref(), Some("@polybot"));
    assert_eq!(text("/new@otherbot"), None);
    assert_eq!(text("/a/b@c.org x").as_deref(), Some("/a/b@c.org x"));
}

#[test]
fn bots_are_ignored_but_group_and_channel_senders_are_not() {
    assert!(said(json!({ "from": { "id": 9, "is_bot": true } })).is_none());
    assert!(said(json!({ "from": { "id": 1, "is_bot": true } })).is_none());
    assert!(said(json!({ "from": null })).is_none());
    assert!(
        said(json!({ "is_automatic_forward": true, "sender_chat": { "id": -8, "type": "channel" } }))
            .is_none()
    );
    let anonymous =
        json!({ "from": { "id": 9, "is_bot": true }, "sender_chat": { "id": -5, "type": "supergroup" } });
    assert_eq!(said(anonymous).unwrap().context.sender, "-5");
    let post = json!({ "from": null, "chat": { "id": -8, "type": "channel", "title": "News" } });
    let post = said(post).unwrap();
    assert_eq!((post.context.sender.as_str(), post.sender_name.as_deref()), ("-8", Some("News")));
}
