mod outgoing;
mod rooms;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use polyclaw_channel::matrix::{CHANNEL_NAME, MatrixAdapter};
use polyclaw_domain::channel::{ChannelAdapter, ConnectionState};
use polyclaw_domain::config::{self, Secret};
use polyclaw_domain::inbound::PeerKind;
use polyclaw_testkit::PIXEL;
use polyclaw_testkit::platform::ReplyOutcome;
use polyclaw_testkit::platform::matrix::MatrixEmulator as Homeserver;
use serde_json::json;

use crate::fixture::{ChannelFixture, PACE, PlatformFixture, apart, attachments, open, outgoing_to, shown};

const CLAW: &str = "@claw:hs";
const ANN: &str = "@ann:hs";
const BOB: &str = "@bob:hs";
const ROOM: &str = "!room:hs";

fn account(homeserver: &Homeserver, user: &str) -> config::MatrixConfig {
    let name = user.trim_start_matches('@').split(':').next().unwrap();
    config::MatrixConfig {
        homeserver: homeserver.url(),
        user_id: user.to_owned(),
        access_token: None,
        password: Some(Secret::new(format!("pw-{name}"))),
        access: open(),
    }
}

fn matrix(accounts: impl IntoIterator<Item = (&'static str, config::MatrixConfig)>) -> Arc<MatrixAdapter> {
    let accounts: BTreeMap<_, _> = accounts.into_iter().map(|(name, one)| (name.to_owned(), one)).collect();
    Arc::new(MatrixAdapter::with_retry_timing(&accounts, PACE).unwrap())
}

fn one(homeserver: &Homeserver) -> Arc<MatrixAdapter> {
    matrix([("home", account(homeserver, CLAW))])
}

/// A homeserver with a room of two, whose stream the account reads from its start on.
async fn dm() -> (Homeserver, Arc<PlatformFixture>) {
    let (homeserver, inbox) = (Homeserver::start(), PlatformFixture::new());
    homeserver.add_room(ROOM, &[ANN, CLAW]);
    homeserver.send_text(ROOM, ANN, "from before");
    let fixture = ChannelFixture::start(&one(&homeserver), &inbox);
    homeserver.wait_until("it is stored", |homeserver| homeserver.stored_count() >= 1).await;
    drop(fixture);
    (homeserver, inbox)
}

#[tokio::test]
async fn messages_before_first_start_are_not_answered() {
    let (homeserver, inbox) = dm().await;
    let text = homeserver.send_text(ROOM, ANN, "hello");
    let fixture = ChannelFixture::start(&one(&homeserver), &inbox);
    inbox.wait_for(1).await;
    drop(fixture);
    let message = &inbox.letters()[0];
    assert_eq!((message.text.as_str(), &message.platform_id), ("hello", &text));
    assert_eq!((message.context.peer.id.as_str(), message.address.peer.as_str()), (ANN, ROOM));
    assert_eq!(message.sender_name.as_deref(), Some("ann"));
}

#[tokio::test]
async fn restart_neither_loses_nor_repeats_messages() {
    let (homeserver, inbox) = dm().await;
    let mut expected = Vec::new();
    for round in 1..=4 {
        for n in 1..=3 {
            let text = format!("round {round} text {n}");
            homeserver.send_text(ROOM, ANN, &text);
            expected.push(text);
        }
        // In every other round the position is lost, as if it had crashed before: the letters come again.
        if round % 2 == 0 {
            homeserver.push("store", ReplyOutcome::Status(500));
        }
        let fixture = ChannelFixture::start(&one(&homeserver), &inbox);
        inbox.wait_for(expected.len()).await;
        drop(fixture);
    }
    assert_eq!(inbox.texts(), expected);
}

#[tokio::test]
async fn sync_position_advances_only_over_accepted_messages() {
    let (homeserver, inbox) = dm().await;
    inbox.later.store(2, Ordering::SeqCst);
    homeserver.send_text(ROOM, ANN, "one");
    homeserver.send_text(ROOM, ANN, "two");
    let fixture = ChannelFixture::start(&one(&homeserver), &inbox);
    inbox.wait_for(2).await;
    drop(fixture);
    assert_eq!(inbox.texts(), ["one", "two"], "what comes after is not taken before");
}

#[tokio::test]
async fn broken_connection_neither_loses_nor_repeats_messages() {
    let (homeserver, inbox) = dm().await;
    let matrix = one(&homeserver);
    let fixture = ChannelFixture::start(&matrix, &inbox);
    for (round, outcome) in
        [ReplyOutcome::Cut, ReplyOutcome::Status(502), ReplyOutcome::ShownThenHang, ReplyOutcome::Status(429)]
            .into_iter()
            .enumerate()
    {
        homeserver.push("sync", outcome);
        homeserver.send_text(ROOM, ANN, &format!("text {round}"));
        inbox.wait_for(round + 1).await;
    }
    homeserver.forget_tokens();
    homeserver.send_text(ROOM, ANN, "text 4");
    inbox.wait_for(5).await;
    drop(fixture);
    assert_eq!(inbox.texts(), (0..5).map(|n| format!("text {n}")).collect::<Vec<_>>());
    assert_eq!(homeserver.login_count(), 3, "once, once more, and when the token was gone");
}

#[tokio::test]
async fn messages_missing_from_limited_sync_are_fetched() {
    let (homeserver, inbox) = dm().await;
    homeserver.limit_page(3);
    let texts: Vec<_> = (0..20).map(|n| format!("text {n}")).collect();
    texts.iter().for_each(|text| drop(homeserver.send_text(ROOM, ANN, text)));
    let fixture = ChannelFixture::start(&one(&homeserver), &inbox);
    inbox.wait_for(20).await;
    drop(fixture);
    assert_eq!(inbox.texts(), texts);
}

/// What half an answer does not say is not taken for what is not there.
#[tokio::test]
async fn incomplete_responses_are_retried() {
    let (homeserver, inbox) = dm().await;
    homeserver.add_room(ROOM, &[BOB]);
    homeserver.limit_page(3);
    let texts: Vec<_> = (0..10).map(|n| format!("text {n}")).collect();
    texts.iter().for_each(|text| drop(homeserver.send_text(ROOM, ANN, text)));
    for kind in ["stored", "sync", "messages", "members", "members"] {
        homeserver.push(kind, ReplyOutcome::Status(200));
    }
    let matrix = one(&homeserver);
    let fixture = ChannelFixture::start(&matrix, &inbox);
    let messages = inbox.wait_for(10).await;
    drop(fixture);
    assert_eq!(inbox.texts(), texts, "all of it, from where it stopped");
    assert!(messages.iter().all(|letter| letter.context.peer.kind == PeerKind::Group), "three are no two");
}

#[tokio::test]
async fn failing_account_does_not_block_others() {
    let (homeserver, inbox) = (Homeserver::start(), PlatformFixture::new());
    homeserver.add_room(ROOM, &[ANN, CLAW]);
    homeserver.add_room("!two:hs", &[ANN, "@two:hs"]);
    let wrong = config::MatrixConfig { password: Some(Secret::new("wrong")), ..account(&homeserver, BOB) };
    let away =
        config::MatrixConfig { homeserver: "http://127.0.0.1:1".to_owned(), ..account(&homeserver, BOB) };
    let token =
        config::MatrixConfig { password: None, access_token: Some(Secret::new("none")), ..wrong.clone() };
    let matrix = matrix([
        ("away", away),
        ("one", account(&homeserver, CLAW)),
        ("token", token),
        ("two", account(&homeserver, "@two:hs")),
        ("wrong", wrong),
    ]);
    let fixture = ChannelFixture::start(&matrix, &inbox);
    homeserver.wait_until("it is stored", |homeserver| homeserver.stored_count() >= 2).await;
    homeserver.send_text(ROOM, ANN, "to one");
    homeserver.send_text("!two:hs", ANN, "to two");
    inbox.wait_for(2).await;
    assert_eq!(matrix.connection_state("one"), Some(ConnectionState::Connected));
    for (account, setting) in [("wrong", "correct the password"), ("token", "correct the access_token")] {
        let why = apart(&*matrix, account).await;
        assert!(why.ends_with(setting), "{why}");
    }
    drop(fixture);
    let mut taken: Vec<_> = inbox.letters().into_iter().map(|l| (l.address.account, l.text)).collect();
    taken.sort();
    assert_eq!(taken, [("one".into(), "to one".into()), ("two".into(), "to two".into())]);
}

#[tokio::test]
async fn small_text_file_is_fetched() {
    let (homeserver, inbox) = dm().await;
    let notes = homeserver.add_file("m1", b"what is there before it is asked for");
    let file = |url: &str, mimetype: &str, size: u64| {
        let info = json!({ "mimetype": mimetype, "size": size });
        homeserver.emit_event(
            ROOM,
            ANN,
            "m.room.message",
            json!({ "msgtype": "m.file", "body": "notes", "url": url, "info": info }),
        )
    };
    file(&notes, "text/plain", 17);
    file(&notes, "text/plain", 1 << 30);
    file(&notes, "image/png", 17);
    file("mxc://hs/gone", "text/plain", 17);
    file("https://evil.example/notes", "text/plain", 17);
    let matrix = one(&homeserver);
    let fixture = ChannelFixture::start(&matrix, &inbox);
    let messages = inbox.wait_for(5).await;
    drop(fixture);
    homeserver.add_file("m1", b"remember the milk");
    let found = attachments(&*matrix, &messages).await;
    let texts: Vec<_> = found.iter().map(|one| one.text.as_deref()).collect();
    assert_eq!(texts, [Some("remember the milk"), None, None, None, None]);
}

#[tokio::test]
async fn image_attachment_is_fetched() {
    let (homeserver, inbox) = dm().await;
    let pixel = homeserver.add_file("m1", PIXEL);
    for size in [69, 6 << 20] {
        let info = json!({ "mimetype": "image/png", "size": size });
        let content = json!({ "msgtype": "m.image", "body": "cat.png", "url": pixel, "info": info });
        homeserver.emit_event(ROOM, ANN, "m.room.message", content);
    }
    let matrix = one(&homeserver);
    let fixture = ChannelFixture::start(&matrix, &inbox);
    let messages = inbox.wait_for(2).await;
    drop(fixture);
    assert_eq!(shown(&*matrix, &messages).await, [Some(PIXEL.to_vec()), None]);
}

#[tokio::test]
async fn malformed_events_do_not_block_messages() {
    let (homeserver, inbox) = dm().await;
    for content in
        [json!(null), json!(7), json!({ "msgtype": 1 }), json!({ "msgtype": "m.text", "body": ["x"] })]
    {
        homeserver.emit_event(ROOM, ANN, "m.room.message", content);
    }
    homeserver.send_text(ROOM, ANN, "still here");
    let fixture = ChannelFixture::start(&one(&homeserver), &inbox);
    inbox.wait_for(1).await;
    drop(fixture);
    assert_eq!(inbox.texts(), ["still here"]);
}

#[tokio::test]
async fn secrets_are_not_shown_in_debug_output() {
    let homeserver = Homeserver::start();
    let account = config::MatrixConfig {
        homeserver: "http://127.0.0.1:1/T0K3N".to_owned(),
        password: Some(Secret::new("T0K3N")),
        ..account(&homeserver, CLAW)
    };
    let sent = matrix([("home", account.clone())])
        .send("k", &outgoing_to(CHANNEL_NAME, "home", ROOM, None, "x"))
        .await;
    assert!(!format!("{:?} {sent:?}", matrix([("home", account.clone())])).contains("T0K3N"));
    let nowhere = config::MatrixConfig { homeserver: "hs.example".to_owned(), ..account };
    let accounts = BTreeMap::from([("home".to_owned(), nowhere)]);
    assert_eq!(MatrixAdapter::from_config(&accounts).unwrap_err().code(), "channel_url");
}
