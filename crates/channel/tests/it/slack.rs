mod called;
mod outgoing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use polyclaw_channel::slack::{CHANNEL_NAME, SlackAdapter};
use polyclaw_domain::channel::{ChannelAdapter, ConnectionState, WebhookRequest};
use polyclaw_domain::config::{self, Secret, SlackMode};
use polyclaw_domain::port::WallClock;
use polyclaw_testkit::platform::ReplyOutcome;
use polyclaw_testkit::platform::slack::{SlackEmulator as Platform, press_call};
use polyclaw_testkit::{PIXEL, SimClock};
use serde_json::{Value, json};

use crate::fixture::{
    ChannelFixture, PACE, PlatformFixture, apart, attachments, open, outgoing_to, shown, word,
};

const SECRET: &str = "s1gn1ng";

fn account(platform: &Platform, name: &str) -> config::SlackConfig {
    config::SlackConfig {
        bot_token: Secret::new(format!("xoxb-{name}")),
        mode: SlackMode::Socket,
        app_token: Some(Secret::new(format!("xapp-{name}"))),
        signing_secret: Some(Secret::new(SECRET)),
        api_url: Some(platform.api_url()),
        access: open(),
    }
}

fn slack(accounts: impl IntoIterator<Item = (&'static str, config::SlackConfig)>) -> Arc<SlackAdapter> {
    let accounts: BTreeMap<_, _> = accounts.into_iter().map(|(name, one)| (name.to_owned(), one)).collect();
    Arc::new(SlackAdapter::with_retry_timing(&accounts, SimClock::start(), PACE).unwrap())
}

fn one(platform: &Platform) -> Arc<SlackAdapter> {
    slack([("work", account(platform, "work"))])
}

/// A platform with an app that has a socket and one that is called.
pub fn both() -> (Platform, Arc<SlackAdapter>) {
    let platform = Platform::start();
    let events = config::SlackConfig { mode: SlackMode::Events, ..account(&platform, "events") };
    let slack = slack([("work", account(&platform, "work")), ("events", events)]);
    (platform, slack)
}

/// A request that tells of a pressed button.
pub fn press(press: &Value) -> WebhookRequest {
    press_call(SECRET, press, SimClock::start().now().0 / 1000)
}

fn message(ts: &str, text: &str) -> Value {
    json!({ "type": "message", "channel_type": "channel", "channel": "C1", "user": "U1", "ts": ts, "text": text })
}

#[tokio::test]
async fn repeated_message_events_are_one_inbound_message() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let slack = one(&platform);
    let fixture = ChannelFixture::start(&slack, &inbox);
    let first = platform.deliver_event("work", &message("1.1", "<@UBOT> hi"));
    let mut mention = message("1.1", "<@UBOT> hi");
    mention["type"] = json!("app_mention");
    platform.deliver_event("work", &mention);
    platform.wait_until("all are acknowledged", |platform| platform.acknowledged_count() >= 2).await;
    platform.redeliver(&first);
    inbox.until(|| inbox.handed() >= 3).await;
    drop(fixture);
    let messages = inbox.letters();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!((messages[0].text.as_str(), messages[0].mentioned), ("hi", true));
    assert_eq!(messages[0].context.team.as_deref(), Some("T1"));
}

#[tokio::test]
async fn unaccepted_event_is_not_acknowledged() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let slack = one(&platform);
    inbox.later.store(1, Ordering::SeqCst);
    let fixture = ChannelFixture::start(&slack, &inbox);
    let envelope = platform.deliver_event("work", &message("1.1", "hi"));
    inbox.until(|| inbox.handed() >= 1).await;
    platform.deliver_event("work", &message("1.2", "there"));
    platform.wait_until("all are acknowledged", |platform| platform.acknowledged_count() >= 1).await;
    assert_eq!((platform.acknowledged_count(), inbox.texts()), (1, vec!["there".to_owned()]));
    platform.redeliver(&envelope);
    platform.wait_until("all are acknowledged", |platform| platform.acknowledged_count() >= 2).await;
    drop(fixture);
    assert_eq!(inbox.texts(), ["there", "hi"]);
}

/// The connection is dropped, refused, asked to be renewed, and falls silent: everything arrives, and nothing twice.
#[tokio::test]
async fn broken_connection_neither_loses_nor_repeats_messages() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let slack = one(&platform);
    let breaks: [&dyn Fn(); 4] = [
        &|| platform.drop_sockets(),
        &|| {
            (0..3).for_each(|_| platform.push("apps.connections.open", ReplyOutcome::Status(500)));
            platform.drop_sockets();
        },
        &|| platform.refresh_sockets(),
        &|| platform.hang_sockets(),
    ];
    let fixture = ChannelFixture::start(&slack, &inbox);
    let mut count = 0;
    for (round, broken) in breaks.into_iter().enumerate() {
        platform.wait_until("a socket is open", |platform| platform.socket_count() > round).await;
        for _ in 0..3 {
            count += 1;
            platform.deliver_event("work", &message(&format!("{count}.0"), &format!("text {count}")));
        }
        broken();
        count += 1;
        platform.deliver_event("work", &message(&format!("{count}.0"), &format!("text {count}")));
        platform.wait_until("a socket is open", |platform| platform.socket_count() >= round + 2).await;
        platform.wait_until("all are acknowledged", |platform| platform.acknowledged_count() >= count).await;
    }
    inbox.wait_for(count).await;
    drop(fixture);
    let mut texts = inbox.texts();
    texts.sort_by_key(|text| text.trim_start_matches("text ").parse::<u32>().unwrap());
    assert_eq!(texts, (1..=16).map(|n| format!("text {n}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn failing_account_does_not_block_others() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let broken = config::SlackConfig { bot_token: Secret::new("wrong"), ..account(&platform, "broken") };
    let away = config::SlackConfig {
        api_url: Some("http://127.0.0.1:1/api".to_owned()),
        ..account(&platform, "away")
    };
    let slack = slack([
        ("away", away),
        ("broken", broken),
        ("one", account(&platform, "one")),
        ("two", account(&platform, "two")),
    ]);
    let fixture = ChannelFixture::start(&slack, &inbox);
    platform.deliver_event("one", &message("1.1", "to one"));
    platform.deliver_event("two", &message("1.1", "to two"));
    inbox.wait_for(2).await;
    assert_eq!(slack.connection_state("one"), Some(ConnectionState::Connected));
    let why = apart(&*slack, "broken").await;
    assert!(why.ends_with("correct the bot_token"), "{why}");
    drop(fixture);
    let mut accounts: Vec<_> = inbox.letters().into_iter().map(|l| (l.address.account, l.text)).collect();
    accounts.sort();
    assert_eq!(accounts, [("one".into(), "to one".into()), ("two".into(), "to two".into())]);
    for (name, expected) in [
        ("one", "accepted"),
        ("two", "accepted"),
        ("broken", "rejected"),
        ("away", "retry"),
        ("none", "rejected"),
    ] {
        assert_eq!(
            word(&slack.send("k", &outgoing_to(CHANNEL_NAME, name, "C1", None, "hello")).await),
            expected,
            "{name}"
        );
    }
    let texts: Vec<_> = platform.visible_messages().into_iter().map(|line| line.bot).collect();
    assert_eq!(texts, ["xoxb-one", "xoxb-two"]);
}

#[tokio::test]
async fn slash_command_over_socket_becomes_inbound_message() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let slack = one(&platform);
    let payload = json!({ "command": "/polyclaw", "text": "status", "channel_id": "D1", "user_id": "U1", "trigger_id": "9.9" });
    let fixture = ChannelFixture::start(&slack, &inbox);
    platform.deliver_command("work", payload);
    platform.wait_until("all are acknowledged", |platform| platform.acknowledged_count() >= 1).await;
    drop(fixture);
    assert_eq!(inbox.texts(), ["/status"]);
}

#[tokio::test]
async fn malformed_payloads_are_acknowledged_and_ignored() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let slack = one(&platform);
    let odd = [
        json!(null),
        json!([1]),
        json!({ "type": 7 }),
        json!({ "type": "message", "text": null }),
        json!({ "type": "message", "files": "x" }),
    ];
    let fixture = ChannelFixture::start(&slack, &inbox);
    odd.iter().for_each(|event| drop(platform.deliver_event("work", event)));
    platform.deliver_event("work", &message("1.1", "still here"));
    platform.wait_until("all are acknowledged", |platform| platform.acknowledged_count() > odd.len()).await;
    drop(fixture);
    assert_eq!(inbox.texts(), ["still here"]);
}

#[tokio::test]
async fn small_text_file_is_fetched_without_exposing_token() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let slack = one(&platform);
    let notes = platform.add_file("notes.txt", b"what is there before it is asked for");
    let file = |name: &str, mimetype: &str, size: u64, place: &str| json!({ "name": name, "mimetype": mimetype, "size": size, "url_private_download": place, "permalink": "https://work.slack.com/f" });
    let mut event = message("1.1", "see");
    event["subtype"] = json!("file_share");
    event["files"] = json!([
        file("notes.txt", "text/plain", 17, &notes),
        file("huge.txt", "text/plain", 1 << 30, &notes),
        file("photo.png", "image/png", 10, &notes),
        file("elsewhere.txt", "text/plain", 10, "https://evil.example/notes.txt"),
        file("gone.txt", "text/plain", 10, &format!("{notes}.gone")),
    ]);
    let fixture = ChannelFixture::start(&slack, &inbox);
    platform.deliver_event("work", &event);
    platform.wait_until("all are acknowledged", |platform| platform.acknowledged_count() >= 1).await;
    drop(fixture);
    let inbound = &inbox.letters()[0];
    platform.add_file("notes.txt", b"remember the milk");
    let found = attachments(&*slack, [inbound]).await;
    let texts: Vec<_> = found.iter().map(|one| one.text.as_deref()).collect();
    assert_eq!(texts, [Some("remember the milk"), None, None, None, None]);
    assert!(!format!("{inbound:?}").contains("xoxb"));
}

#[tokio::test]
async fn image_is_fetched_without_exposing_token() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let slack = one(&platform);
    let pixel = platform.add_file("pixel.png", PIXEL);
    let notes = platform.add_file("notes.txt", b"no image at all");
    let file = |place: &str| json!({ "name": "cat.png", "mimetype": "image/png", "size": 69, "url_private_download": place });
    let mut event = message("1.1", "see");
    event["subtype"] = json!("file_share");
    event["files"] = json!([file(&pixel), file(&notes), file("https://evil.example/cat.png")]);
    let fixture = ChannelFixture::start(&slack, &inbox);
    platform.deliver_event("work", &event);
    platform.wait_until("all are acknowledged", |platform| platform.acknowledged_count() >= 1).await;
    drop(fixture);
    let inbound = &inbox.letters()[0];
    assert_eq!(shown(&*slack, [inbound]).await, [Some(PIXEL.to_vec()), None, None]);
    assert!(!format!("{inbound:?}").contains("xoxb"));
}

#[tokio::test]
async fn secrets_are_not_shown_in_debug_output() {
    let slack = slack([(
        "work",
        config::SlackConfig {
            bot_token: Secret::new("xoxb-T0K3N"),
            api_url: Some("http://127.0.0.1:1/T0K3N".to_owned()),
            ..account(&Platform::start(), "T0K3N")
        },
    )]);
    let sent = slack.send("k", &outgoing_to(CHANNEL_NAME, "work", "C1", None, "x")).await;
    assert!(!format!("{slack:?} {sent:?}").contains("T0K3N"));
    let accounts = BTreeMap::from([(
        "a".to_owned(),
        config::SlackConfig { api_url: Some("ftp://x".into()), ..account(&Platform::start(), "a") },
    )]);
    let clock: Arc<SimClock> = SimClock::start();
    assert_eq!(SlackAdapter::from_config(&accounts, clock).unwrap_err().code(), "channel_url");
}
