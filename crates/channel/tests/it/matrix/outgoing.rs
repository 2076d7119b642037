//! What is sent and changed.

use std::collections::BTreeMap;

use polyclaw_channel::matrix::{CHANNEL_NAME, MatrixAdapter};
use polyclaw_domain::channel::{ChannelAdapter, SendOutcome};
use polyclaw_testkit::platform::ReplyOutcome;

use super::{CLAW, ROOM, account, dm, one};
use crate::chunks::{PATIENT, Stage};
use crate::fixture::{outgoing_to, word};

#[tokio::test]
async fn reply_is_sent_to_its_thread_and_can_be_edited() {
    let (homeserver, _) = dm().await;
    let matrix = one(&homeserver);
    let part = |text| outgoing_to(CHANNEL_NAME, "home", ROOM, Some("$root"), text);
    let sent = matrix.send("k/1 ü", &part("<b>hel</b>")).await;
    let SendOutcome::Accepted { platform_id: Some(id) } = sent else { panic!("{sent:?}") };
    for text in ["hello", "hello, world", "hello, world"] {
        assert_eq!(word(&matrix.edit_message(&id, &part(text)).await), "accepted");
    }
    matrix.send_typing(part("x").address()).await;
    let messages = homeserver.visible_messages();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!((messages[0].text.as_str(), messages[0].thread.as_deref()), ("hello, world", Some("$root")));
    assert_eq!(homeserver.typing_users(), [(ROOM.to_owned(), CLAW.to_owned())]);
}

/// The homeserver knows a key again, also after a restart.
#[tokio::test]
async fn message_with_unknown_outcome_can_be_sent_again() {
    let (homeserver, _) = dm().await;
    for (n, (outcome, first)) in [
        (ReplyOutcome::ShownThenCut, "unknown"),
        (ReplyOutcome::ShownThenHang, "unknown"),
        (ReplyOutcome::ShownThenStatus(500), "retry"),
        (ReplyOutcome::Cut, "unknown"),
        (ReplyOutcome::Later { status: 429, seconds: 7 }, "retry after 7000"),
    ]
    .into_iter()
    .enumerate()
    {
        homeserver.push("send", outcome);
        let (key, part) =
            (format!("turn-{n}"), outgoing_to(CHANNEL_NAME, "home", ROOM, None, &format!("text {n}")));
        assert_eq!(word(&one(&homeserver).send(&key, &part).await), first, "{outcome:?}");
        assert_eq!(word(&one(&homeserver).send(&key, &part).await), "accepted", "{outcome:?}");
        assert_eq!(homeserver.visible_messages().len(), n + 1, "{outcome:?}");
    }
    assert!(one(&homeserver).capabilities("home").idempotent_send);
    let elsewhere = outgoing_to(CHANNEL_NAME, "home", "!foreign:hs", None, "x");
    assert_eq!(word(&one(&homeserver).send("k", &elsewhere).await), "rejected");
}

#[tokio::test]
async fn ten_thousand_chunkings_show_the_stored_text() {
    let (homeserver, _) = dm().await;
    let users = BTreeMap::from([("home".to_owned(), account(&homeserver, CLAW))]);
    let stage = Stage {
        platform: &homeserver,
        channel: &MatrixAdapter::with_retry_timing(&users, PATIENT).unwrap(),
        address: outgoing_to(CHANNEL_NAME, "home", ROOM, None, "x").address().clone(),
        calls: ["send", "send"],
        read: str::to_owned,
    };
    stage.play().await;
}
