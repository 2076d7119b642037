mod outgoing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use polyclaw_channel::telegram::{CHANNEL_NAME, TelegramAdapter};
use polyclaw_domain::channel::{ChannelAdapter, ChatAddress, ConnectionState};
use polyclaw_domain::config;
use polyclaw_domain::inbound::{ChatThread, PeerKind, ThreadKind};
use polyclaw_testkit::PIXEL;
use polyclaw_testkit::platform::ReplyOutcome;
use polyclaw_testkit::platform::telegram::TelegramEmulator as Platform;
use serde_json::json;

use crate::fixture::{ChannelFixture, PACE, PlatformFixture, apart, attachments, outgoing, shown, word};

pub const TOKEN: &str = "123:T0K3N";

fn config(platform: &Platform, token: &str) -> config::TelegramConfig {
    serde_json::from_value(json!({ "bot_token": token, "api_url": platform.api_url() })).unwrap()
}

fn adapter(bots: &[(&str, config::TelegramConfig)]) -> Arc<TelegramAdapter> {
    let bots: BTreeMap<_, _> = bots.iter().map(|(name, bot)| ((*name).to_owned(), bot.clone())).collect();
    Arc::new(TelegramAdapter::with_retry_timing(&bots, PACE).unwrap())
}

/// A platform with one bot and the adapter of it.
pub fn one() -> (Platform, Arc<TelegramAdapter>) {
    let platform = Platform::start();
    platform.add_bot(TOKEN, 1, "polybot");
    let telegram = adapter(&[("main", config(&platform, TOKEN))]);
    (platform, telegram)
}

fn to(peer: &str, thread: Option<&str>) -> ChatAddress {
    ChatAddress {
        channel: CHANNEL_NAME.to_owned(),
        account: "main".to_owned(),
        peer: peer.to_owned(),
        thread: thread.map(str::to_owned),
    }
}

#[tokio::test]
async fn accepted_updates_are_confirmed_and_delivered_once() {
    let (platform, telegram) = one();
    let fixture = PlatformFixture::new();
    for n in 0..3 {
        platform.send_dm(TOKEN, 7, &format!("message {n}"));
    }
    // The first answer never arrives: everything is delivered again.
    platform.push("getUpdates", ReplyOutcome::ShownThenCut);
    let _fixture = ChannelFixture::start(&telegram, &fixture);
    let messages = fixture.wait_for(3).await;
    platform.wait_until("all are confirmed", |platform| platform.unconfirmed_count(TOKEN) == 0).await;
    assert_eq!(fixture.texts(), ["message 0", "message 1", "message 2"]);
    assert_eq!(fixture.handed(), 3);
    let first = &messages[0];
    assert_eq!((first.context.peer.kind, first.context.peer.id.as_str()), (PeerKind::Dm, "7"));
    assert_eq!(first.address, to("7", None));
}

#[tokio::test]
async fn unaccepted_updates_are_not_confirmed() {
    let (platform, telegram) = one();
    let fixture = PlatformFixture::new();
    fixture.later.store(3, Ordering::SeqCst);
    platform.send_dm(TOKEN, 7, "one");
    platform.send_dm(TOKEN, 7, "two");
    let reception = ChannelFixture::start(&telegram, &fixture);
    fixture.until(|| fixture.handed() >= 2).await;
    assert_eq!(platform.unconfirmed_count(TOKEN), 2);
    fixture.wait_for(2).await;
    assert_eq!(fixture.texts(), ["one", "two"], "in order, none lost");
    platform.wait_until("both are confirmed", |platform| platform.unconfirmed_count(TOKEN) == 0).await;
    drop(reception);
}

/// Taken, and the process died before it could confirm: the next life gets it again, under the same id.
#[tokio::test]
async fn unconfirmed_update_is_redelivered_after_restart() {
    let (platform, telegram) = one();
    let fixture = PlatformFixture::new();
    platform.send_dm(TOKEN, 7, "once");
    platform.push("getUpdates", ReplyOutcome::Shown);
    for _ in 0..10 {
        platform.push("getUpdates", ReplyOutcome::Status(500));
    }
    let reception = ChannelFixture::start(&telegram, &fixture);
    fixture.wait_for(1).await;
    drop(reception);
    assert_eq!(platform.unconfirmed_count(TOKEN), 1);
    let _fixture = ChannelFixture::start(&telegram, &fixture);
    fixture.until(|| fixture.handed() >= 2).await;
    assert_eq!(fixture.texts(), ["once"]);
}

#[tokio::test]
async fn broken_connections_neither_lose_nor_repeat_updates() {
    let (platform, telegram) = one();
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&telegram, &fixture);
    let troubles = [
        ReplyOutcome::Cut,
        ReplyOutcome::ShownThenCut,
        ReplyOutcome::Status(502),
        ReplyOutcome::Status(409),
        ReplyOutcome::ShownThenHang,
    ];
    for (n, trouble) in troubles.into_iter().cycle().take(15).enumerate() {
        platform.push("getUpdates", trouble);
        platform.send_dm(TOKEN, 7, &n.to_string());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    fixture.wait_for(15).await;
    let expected: Vec<_> = (0..15).map(|n| n.to_string()).collect();
    assert_eq!(fixture.texts(), expected);
}

#[tokio::test]
async fn reply_is_sent_to_the_asking_topic() {
    let (platform, telegram) = one();
    let fixture = PlatformFixture::new();
    platform.send_in_group(TOKEN, -100, Some(42), "in a topic");
    platform.send_in_group(TOKEN, -100, None, "in the group");
    let _fixture = ChannelFixture::start(&telegram, &fixture);
    for message in fixture.wait_for(2).await {
        let sent = telegram.send("k", &outgoing(&message.address, &format!("re: {}", message.text))).await;
        assert_eq!(word(&sent), "accepted");
    }
    assert_eq!(
        fixture.letters()[0].context.thread,
        Some(ChatThread { kind: ThreadKind::Topic, id: "42".to_owned() })
    );
    let seen: Vec<_> = platform.visible_messages().into_iter().map(|m| (m.chat, m.thread, m.text)).collect();
    let group = "-100".to_owned();
    assert_eq!(seen[0], (group.clone(), Some("42".to_owned()), "re: in a topic".to_owned()));
    assert_eq!(seen[1], (group, None, "re: in the group".to_owned()));
}

#[tokio::test]
async fn unusual_text_is_passed_unchanged() {
    let (platform, telegram) = one();
    let emoji = "😀".repeat(10_000);
    for text in ["\u{202e}olleh <b>&lt;</b> *_`[x](y)", "a\0b\u{feff}c", "{\"ok\":false}", &emoji] {
        let before = platform.visible_messages().len();
        let address = to("7", None);
        for part in outgoing(&address, text).split_by_limit(telegram.capabilities("main").max_chars) {
            assert_eq!(word(&telegram.send("k", &part).await), "accepted");
        }
        let seen: String = platform.visible_messages()[before..].iter().map(|m| m.text.as_str()).collect();
        assert_eq!(seen, text);
    }
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&telegram, &fixture);
    platform.deliver_message(
        TOKEN,
        json!({
            "chat": { "id": 7, "type": "private" }, "from": { "id": 7, "first_name": "\u{202e}\0" },
            "text": "\0😀", "entities": [{ "type": "mention", "offset": 9_999_999, "length": 5 }],
        }),
    );
    platform.queue_update(TOKEN, json!({ "message": { "message_id": "not a number" } }));
    platform.queue_update(TOKEN, json!({ "edited_message": { "message_id": 1 } }));
    platform.queue_update(TOKEN, json!({ "poll": 5 }));
    platform.send_dm(TOKEN, 7, "after");
    fixture.wait_for(2).await;
    assert_eq!(fixture.texts(), ["\0😀", "after"]);
}

#[tokio::test]
async fn attachments_are_fetched_without_exposing_token() {
    let (platform, telegram) = one();
    let fixture = PlatformFixture::new();
    platform.add_file("notes", b"remember the milk");
    platform.add_file("binary", b"\xff\xfe\0");
    let chat = json!({ "id": 7, "type": "private" });
    let from = json!({ "id": 7, "first_name": "Ann" });
    platform.deliver_message(TOKEN, json!({
        "chat": chat, "from": from, "caption": "look",
        "document": { "file_id": "notes", "file_name": "notes.txt", "mime_type": "text/plain", "file_size": 17 },
    }));
    platform.deliver_message(
        TOKEN,
        json!({
            "chat": chat, "from": from, "document": { "file_id": "binary", "file_name": "x.txt" },
        }),
    );
    platform.deliver_message(
        TOKEN,
        json!({
            "chat": chat, "from": from, "photo": [{ "file_id": "small" }, { "file_id": "large" }],
        }),
    );
    platform.deliver_message(TOKEN, json!({
        "chat": chat, "from": from, "document": { "file_id": "huge", "file_name": "x.log", "file_size": 1u64 << 40 },
    }));
    let _fixture = ChannelFixture::start(&telegram, &fixture);
    let messages = fixture.wait_for(4).await;
    assert!(platform.calls("getFile").is_empty(), "nothing is fetched before it is asked for");
    let found = attachments(&*telegram, &messages).await;
    assert_eq!(messages[0].text, "look");
    assert_eq!(found[0].text.as_deref(), Some("remember the milk"));
    assert_eq!((found[1].text.as_deref(), found[1].media_type.as_str()), (None, "application/octet-stream"));
    assert_eq!((found[2].name.as_str(), found[2].media_type.as_str()), ("photo.jpg", "image/jpeg"));
    assert_eq!(found[3].text, None);
    assert!(platform.calls("getFile").len() == 3, "only what may be text or an image is fetched");
    assert!(!format!("{messages:?}").contains("T0K3N"));
}

#[tokio::test]
async fn largest_accepted_photo_size_and_image_files_are_fetched() {
    let (platform, telegram) = one();
    let fixture = PlatformFixture::new();
    platform.add_file("medium", PIXEL);
    platform.add_file("video", b"no image at all");
    let (chat, from) = (json!({ "id": 7, "type": "private" }), json!({ "id": 7, "first_name": "Ann" }));
    let sizes = json!([
        { "file_id": "small", "file_size": 9 },
        { "file_id": "medium", "file_size": 69 },
        { "file_id": "huge", "file_size": 6 << 20 },
    ]);
    platform.deliver_message(TOKEN, json!({ "chat": chat, "from": from, "caption": "look", "photo": sizes }));
    for (id, media_type) in [("medium", "image/png"), ("video", "image/png"), ("video", "video/mp4")] {
        let document = json!({ "file_id": id, "file_name": "a", "mime_type": media_type });
        platform.deliver_message(TOKEN, json!({ "chat": chat, "from": from, "document": document }));
    }
    let _fixture = ChannelFixture::start(&telegram, &fixture);
    let messages = fixture.wait_for(4).await;
    let pixel = || Some(PIXEL.to_vec());
    assert_eq!(shown(&*telegram, &messages).await, [pixel(), pixel(), None, None]);
    assert_eq!(messages[0].text, "look");
    assert!(!format!("{messages:?}").contains("T0K3N"));
}

#[tokio::test]
async fn bad_token_does_not_block_other_accounts() {
    let platform = Platform::start();
    platform.add_bot(TOKEN, 1, "polybot");
    platform.add_bot("9:other", 2, "otherbot");
    let good = config(&platform, TOKEN);
    let off = serde_json::from_value(json!({ "bot_token": "x", "enabled": false })).unwrap();
    let telegram = adapter(&[
        ("bad", config(&platform, "0:wrong")),
        ("biz", config(&platform, "9:other")),
        ("main", good),
        ("off", off),
    ]);
    let fixture = PlatformFixture::new();
    platform.send_dm(TOKEN, 7, "to main");
    platform.send_dm("9:other", 7, "to biz");
    let _fixture = ChannelFixture::start(&telegram, &fixture);
    let mut messages = fixture.wait_for(2).await;
    messages.sort_by_key(|inbound| inbound.context.account.clone());
    let came: Vec<_> = messages.iter().map(|l| (l.context.account.as_str(), l.text.as_str())).collect();
    assert_eq!(came, [("biz", "to biz"), ("main", "to main")]);
    assert!(apart(&*telegram, "bad").await.contains("correct the bot_token"));
    assert_eq!(telegram.connection_state("main"), Some(ConnectionState::Connected));
    assert_eq!(telegram.connection_state("off"), None);
    for inbound in &messages {
        telegram.send("k", &outgoing(&inbound.address, "answer")).await;
    }
    let bots: Vec<_> = platform.visible_messages().into_iter().map(|message| message.bot).collect();
    assert_eq!(bots, ["9:other", TOKEN]);
    for account in ["off", "nobody"] {
        let address = ChatAddress { account: account.to_owned(), ..to("7", None) };
        assert_eq!(word(&telegram.send("k", &outgoing(&address, "x")).await), "rejected");
    }
}

#[test]
fn invalid_configured_url_is_refused() {
    let bot: config::TelegramConfig =
        serde_json::from_value(json!({ "bot_token": TOKEN, "api_url": "telegram.example" })).unwrap();
    let error = TelegramAdapter::from_config(&BTreeMap::from([("main".to_owned(), bot)])).unwrap_err();
    assert_eq!(error.code(), "channel_url");
}
