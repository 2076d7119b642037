//! Who is in a room, who may be, and who is spoken to there.

use polyclaw_channel::matrix::CHANNEL_NAME;
use polyclaw_domain::admission::{AccountAccess, DmPolicy, GroupPolicy};
use polyclaw_domain::channel::{ChannelAdapter, SendOutcome};
use polyclaw_domain::config;
use polyclaw_domain::inbound::PeerKind;
use polyclaw_testkit::platform::matrix::MatrixEmulator as Homeserver;
use serde_json::{Value, json};

use super::{ANN, BOB, CLAW, ROOM, account, dm, matrix, one};
use crate::fixture::{ChannelFixture, PlatformFixture, outgoing_to};

#[tokio::test]
async fn invitations_are_accepted_only_from_allowed_senders() {
    let (homeserver, inbox) = (Homeserver::start(), PlatformFixture::new());
    let access = AccountAccess {
        group_policy: GroupPolicy::Allowlist,
        groups: vec!["!team:hs".to_owned()],
        owners: vec![ANN.to_owned()],
        ..AccountAccess::default()
    };
    let open = config::MatrixConfig { access: access.clone(), ..account(&homeserver, CLAW) };
    let strict = AccountAccess { dm_policy: DmPolicy::Allowlist, ..access };
    let strict = config::MatrixConfig { access: strict, ..account(&homeserver, "@strict:hs") };
    let rooms =
        [("!ann:hs", ANN, true), ("!bob:hs", BOB, true), ("!team:hs", BOB, false), ("!other:hs", ANN, false)];
    for (room, by, is_direct) in rooms {
        homeserver.add_room(room, &[by]);
        homeserver.send_text(room, by, "long before");
        homeserver.invite_user(room, by, CLAW, is_direct);
        homeserver.invite_user(room, by, "@strict:hs", is_direct);
        homeserver.send_text(room, by, "right after");
    }
    let matrix = matrix([("open", open), ("strict", strict)]);
    let fixture = ChannelFixture::start(&matrix, &inbox);
    inbox.wait_for(5).await;
    drop(fixture);
    let how = |user: &str| {
        ["!ann:hs", "!bob:hs", "!team:hs", "!other:hs"].map(|room| homeserver.membership(room, user).unwrap())
    };
    assert_eq!(how(CLAW), ["join", "join", "join", "leave"], "a stranger could be told a code");
    assert_eq!(how("@strict:hs"), ["join", "leave", "join", "leave"]);
    assert!(inbox.texts().iter().all(|text| text == "right after"), "{:?}", inbox.texts());
}

#[tokio::test]
async fn encrypted_rooms_are_not_joined_or_read() {
    let (homeserver, inbox) = dm().await;
    homeserver.add_room("!sealed:hs", &[ANN]);
    homeserver.invite_user("!sealed:hs", ANN, CLAW, true);
    homeserver.encrypt_room("!sealed:hs");
    homeserver.emit_event(
        ROOM,
        ANN,
        "m.room.encrypted",
        json!({ "algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x" }),
    );
    homeserver.send_text(ROOM, ANN, "in the clear");
    let fixture = ChannelFixture::start(&one(&homeserver), &inbox);
    inbox.wait_for(1).await;
    homeserver.wait_until("it is stored", |homeserver| homeserver.stored_count() >= 2).await;
    drop(fixture);
    assert_eq!(inbox.texts(), ["in the clear"]);
    assert_eq!(homeserver.membership("!sealed:hs", CLAW).as_deref(), Some("leave"));
}

#[tokio::test]
async fn third_member_turns_direct_chat_into_group() {
    let (homeserver, inbox) = dm().await;
    let matrix = one(&homeserver);
    let fixture = ChannelFixture::start(&matrix, &inbox);
    homeserver.send_text(ROOM, ANN, "between us");
    inbox.wait_for(1).await;
    homeserver.add_room(ROOM, &[BOB]);
    homeserver.send_text(ROOM, ANN, "among us");
    inbox.wait_for(2).await;
    drop(fixture);
    let kinds: Vec<_> = inbox.letters().into_iter().map(|message| message.context.peer.kind).collect();
    assert_eq!(kinds, [PeerKind::Dm, PeerKind::Group]);
}

/// In a group it is spoken to by name, by an answer to it, and in threads that it began.
#[tokio::test]
async fn reply_thread_and_name_count_as_mention() {
    let (homeserver, inbox) = (Homeserver::start(), PlatformFixture::new());
    homeserver.add_room(ROOM, &[ANN, BOB, CLAW]);
    let matrix = one(&homeserver);
    let fixture = ChannelFixture::start(&matrix, &inbox);
    homeserver.wait_until("it is stored", |homeserver| homeserver.stored_count() >= 1).await;
    drop(fixture);
    let sent = matrix.send("k", &outgoing_to(CHANNEL_NAME, "home", ROOM, None, "hello all")).await;
    let SendOutcome::Accepted { platform_id: Some(own) } = sent else { panic!("{sent:?}") };
    let other = homeserver.send_text(ROOM, ANN, "nobody in particular");
    let text_of = |body: &str, relation: Value| {
        homeserver.emit_event(
            ROOM,
            ANN,
            "m.room.message",
            json!({ "msgtype": "m.text", "body": body, "m.relates_to": relation }),
        )
    };
    for (name, id) in [("own", &own), ("other", &other), ("gone", &"$gone".to_owned())] {
        text_of(&format!("reply {name}"), json!({ "m.in_reply_to": { "event_id": id } }));
        text_of(&format!("thread {name}"), json!({ "rel_type": "m.thread", "event_id": id }));
    }
    homeserver.send_text(ROOM, ANN, "claw: by name");
    let fixture = ChannelFixture::start(&matrix, &inbox);
    inbox.wait_for(8).await;
    drop(fixture);
    let spoken: Vec<_> = inbox.letters().into_iter().filter(|l| l.mentioned).map(|l| l.text).collect();
    assert_eq!(spoken, ["reply own", "thread own", "by name"]);
}
