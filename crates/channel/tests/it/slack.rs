use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use polyclaw_channel::slack::{NAME, Slack};
use polyclaw_domain::channel::{Call, Channel};
use polyclaw_domain::config::{self, Secret, SlackMode};
use polyclaw_domain::message::attachments;
use polyclaw_domain::port::Clock;
use polyclaw_testkit::SimClock;
use polyclaw_testkit::platform::Outcome;
use polyclaw_testkit::platform::slack::{Slack as Platform, event_call, signed_call};
use serde_json::{Value, json};

use crate::fixture::{Desk, PACE, Reception, each_text, open, outgoing_to, stream, trouble, word};

const SECRET: &str = "s1gn1ng";

fn account(platform: &Platform, name: &str) -> config::Slack {
    config::Slack {
        bot_token: Secret::new(format!("xoxb-{name}")),
        mode: SlackMode::Socket,
        app_token: Some(Secret::new(format!("xapp-{name}"))),
        signing_secret: Some(Secret::new(SECRET)),
        api_url: Some(platform.api_url()),
        access: open(),
    }
}

fn slack(accounts: impl IntoIterator<Item = (&'static str, config::Slack)>) -> Arc<Slack> {
    let accounts: BTreeMap<_, _> = accounts.into_iter().map(|(name, one)| (name.to_owned(), one)).collect();
    Arc::new(Slack::with_pace(&accounts, SimClock::start(), PACE).unwrap())
}

fn one(platform: &Platform) -> Arc<Slack> {
    slack([("work", account(platform, "work"))])
}

fn message(ts: &str, text: &str) -> Value {
    json!({ "type": "message", "channel_type": "channel", "channel": "C1", "user": "U1", "ts": ts, "text": text })
}

#[tokio::test]
async fn a_message_is_one_letter_however_often_it_comes() {
    let (platform, inbox) = (Platform::start(), Desk::new());
    let slack = one(&platform);
    let reception = Reception::start(&slack, &inbox);
    let first = platform.deliver("work", &message("1.1", "<@UBOT> hi"));
    let mut mention = message("1.1", "<@UBOT> hi");
    mention["type"] = json!("app_mention");
    platform.deliver("work", &mention);
    platform.until("all are acknowledged", |platform| platform.acknowledged() >= 2).await;
    platform.redeliver(&first);
    inbox.until(|| inbox.handed() >= 3).await;
    drop(reception);
    let letters = inbox.letters();
    assert_eq!(letters.len(), 1, "{letters:?}");
    assert_eq!((letters[0].text.as_str(), letters[0].mentioned), ("hi", true));
    assert_eq!(letters[0].arrival.team.as_deref(), Some("T1"));
}

#[tokio::test]
async fn what_is_not_taken_is_not_acknowledged() {
    let (platform, inbox) = (Platform::start(), Desk::new());
    let slack = one(&platform);
    inbox.later.store(1, Ordering::SeqCst);
    let reception = Reception::start(&slack, &inbox);
    let envelope = platform.deliver("work", &message("1.1", "hi"));
    inbox.until(|| inbox.handed() >= 1).await;
    platform.deliver("work", &message("1.2", "there"));
    platform.until("all are acknowledged", |platform| platform.acknowledged() >= 1).await;
    assert_eq!((platform.acknowledged(), inbox.texts()), (1, vec!["there".to_owned()]));
    platform.redeliver(&envelope);
    platform.until("all are acknowledged", |platform| platform.acknowledged() >= 2).await;
    drop(reception);
    assert_eq!(inbox.texts(), ["there", "hi"]);
}

/// The connection is dropped, refused, asked to be renewed, and falls silent: everything arrives, and nothing twice.
#[tokio::test]
async fn a_broken_connection_loses_and_doubles_nothing() {
    let (platform, inbox) = (Platform::start(), Desk::new());
    let slack = one(&platform);
    let breaks: [&dyn Fn(); 4] = [
        &|| platform.drop_links(),
        &|| {
            (0..3).for_each(|_| platform.push("apps.connections.open", Outcome::Status(500)));
            platform.drop_links();
        },
        &|| platform.refresh_links(),
        &|| platform.hang_links(),
    ];
    let reception = Reception::start(&slack, &inbox);
    let mut count = 0;
    for (round, broken) in breaks.into_iter().enumerate() {
        platform.until("a socket is open", |platform| platform.links() > round).await;
        for _ in 0..3 {
            count += 1;
            platform.deliver("work", &message(&format!("{count}.0"), &format!("text {count}")));
        }
        broken();
        count += 1;
        platform.deliver("work", &message(&format!("{count}.0"), &format!("text {count}")));
        platform.until("a socket is open", |platform| platform.links() >= round + 2).await;
        platform.until("all are acknowledged", |platform| platform.acknowledged() >= count).await;
    }
    inbox.wait_for(count).await;
    drop(reception);
    let mut texts = inbox.texts();
    texts.sort_by_key(|text| text.trim_start_matches("text ").parse::<u32>().unwrap());
    assert_eq!(texts, (1..=16).map(|n| format!("text {n}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_account_that_fails_holds_up_no_other() {
    let (platform, inbox) = (Platform::start(), Desk::new());
    let broken = config::Slack { bot_token: Secret::new("wrong"), ..account(&platform, "broken") };
    let away =
        config::Slack { api_url: Some("http://127.0.0.1:1/api".to_owned()), ..account(&platform, "away") };
    let slack = slack([
        ("away", away),
        ("broken", broken),
        ("one", account(&platform, "one")),
        ("two", account(&platform, "two")),
    ]);
    let reception = Reception::start(&slack, &inbox);
    platform.deliver("one", &message("1.1", "to one"));
    platform.deliver("two", &message("1.1", "to two"));
    inbox.wait_for(2).await;
    drop(reception);
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
            word(&slack.send("k", &outgoing_to(NAME, name, "C1", None, "hello")).await),
            expected,
            "{name}"
        );
    }
    let said: Vec<_> = platform.visible().into_iter().map(|said| said.bot).collect();
    assert_eq!(said, ["xoxb-one", "xoxb-two"]);
}

#[tokio::test]
async fn a_command_of_slacks_own_list_is_a_letter() {
    let (platform, inbox) = (Platform::start(), Desk::new());
    let slack = one(&platform);
    let payload = json!({ "command": "/polyclaw", "text": "status", "channel_id": "D1", "user_id": "U1", "trigger_id": "9.9" });
    let reception = Reception::start(&slack, &inbox);
    platform.command("work", payload);
    platform.until("all are acknowledged", |platform| platform.acknowledged() >= 1).await;
    drop(reception);
    assert_eq!(inbox.texts(), ["/polyclaw status"]);
}

#[tokio::test]
async fn payloads_that_make_no_sense_are_done_with() {
    let (platform, inbox) = (Platform::start(), Desk::new());
    let slack = one(&platform);
    let odd = [
        json!(null),
        json!([1]),
        json!({ "type": 7 }),
        json!({ "type": "message", "text": null }),
        json!({ "type": "message", "files": "x" }),
    ];
    let reception = Reception::start(&slack, &inbox);
    odd.iter().for_each(|event| drop(platform.deliver("work", event)));
    platform.deliver("work", &message("1.1", "still here"));
    platform.until("all are acknowledged", |platform| platform.acknowledged() > odd.len()).await;
    drop(reception);
    assert_eq!(inbox.texts(), ["still here"]);
}

#[tokio::test]
async fn a_reply_goes_to_its_thread_and_means_nothing_to_slack() {
    let platform = Platform::start();
    let slack = one(&platform);
    let hostile = "<!channel> & <https://evil.example|here>";
    let sent = slack.send("k", &outgoing_to(NAME, "work", "C1", Some("1.1"), hostile)).await;
    assert_eq!(word(&sent), "accepted");
    slack.send("k", &outgoing_to(NAME, "work", "D1", None, "plain")).await;
    let said = platform.visible();
    assert_eq!((said[0].chat.as_str(), said[0].thread.as_deref()), ("C1", Some("1.1")));
    assert_eq!(said[0].text, "&lt;!channel&gt; &amp; &lt;https://evil.example|here&gt;");
    assert_eq!((said[1].chat.as_str(), said[1].thread.as_deref()), ("D1", None));
}

#[tokio::test]
async fn a_message_can_be_changed() {
    let platform = Platform::start();
    let slack = one(&platform);
    slack.send("k", &outgoing_to(NAME, "work", "C1", None, "hel")).await;
    let id = format!("C1:{}", platform.visible()[0].id);
    platform.push("chat.update", Outcome::Later { status: 429, seconds: 3 });
    let whole = outgoing_to(NAME, "work", "C1", None, "hello");
    assert_eq!(word(&slack.edit(&id, &whole).await), "retry after 3000");
    assert_eq!(word(&slack.edit(&id, &whole).await), "accepted");
    assert_eq!(word(&slack.edit("C1:0.0", &whole).await), "rejected");
    assert_eq!(word(&slack.edit("odd", &whole).await), "rejected");
    assert_eq!(platform.visible()[0].text, "hello");
}

#[tokio::test]
async fn only_what_surely_did_not_arrive_is_tried_again() {
    let platform = Platform::start();
    let slack = one(&platform);
    for (outcome, expected) in [
        (Outcome::Status(400), "rejected"),
        (Outcome::Later { status: 429, seconds: 7 }, "retry after 7000"),
        (Outcome::Status(503), "unknown"),
        (Outcome::ShownThenStatus(500), "unknown"),
        (Outcome::ShownThenCut, "unknown"),
        (Outcome::ShownThenHang, "unknown"),
    ] {
        platform.push("chat.postMessage", outcome);
        assert_eq!(
            word(&slack.send("k", &outgoing_to(NAME, "work", "C1", None, "x")).await),
            expected,
            "{outcome:?}"
        );
    }
    assert_eq!(word(&slack.send("k", &outgoing_to(NAME, "work", "CGONE", None, "x")).await), "rejected");
    assert!(!slack.capabilities("work").idempotent_send);
}

#[tokio::test]
async fn thousands_of_texts_are_seen_as_they_were_written() {
    let platform = Platform::start();
    let slack = one(&platform);
    let plain = |text: &str| text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let address = outgoing_to(NAME, "work", "C1", Some("1.1"), "x").address().clone();
    each_text(async |text, random| {
        trouble(random, |outcome| platform.push("chat.postMessage", outcome));
        trouble(random, |outcome| platform.push("chat.update", outcome));
        stream(slack.as_ref(), &address, &text, random).await;
        let seen: String = platform.wipe().iter().map(|shown| plain(&shown.text)).collect();
        assert_eq!(seen, text);
    })
    .await;
}

#[tokio::test]
async fn a_small_text_file_comes_along_and_no_token_does() {
    let (platform, inbox) = (Platform::start(), Desk::new());
    let slack = one(&platform);
    let notes = platform.keep_file("notes.txt", b"remember the milk");
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
    let reception = Reception::start(&slack, &inbox);
    platform.deliver("work", &event);
    platform.until("all are acknowledged", |platform| platform.acknowledged() >= 1).await;
    drop(reception);
    let letter = &inbox.letters()[0];
    let texts: Vec<_> = attachments(&letter.parts).map(|one| one.text.as_deref()).collect();
    assert_eq!(texts, [Some("remember the milk"), None, None, None, None]);
    assert!(!format!("{letter:?}").contains("xoxb"));
}

/// Seconds since 1970 by the clock of these tests.
fn now() -> i64 {
    SimClock::start().now().0 / 1000
}

#[tokio::test]
async fn only_what_slack_signed_just_now_is_taken() {
    let (platform, inbox) = (Platform::start(), Desk::new());
    let slack = slack([
        ("work", config::Slack { mode: SlackMode::Events, ..account(&platform, "work") }),
        ("socket", account(&platform, "socket")),
    ]);
    let event = message("1.1", "hi");
    let signed = |at| event_call(SECRET, &event, at);
    let change = |change: &dyn Fn(&mut Call)| {
        let mut call = signed(now());
        change(&mut call);
        call
    };
    let table = [
        ("another secret", event_call("other", &event, now()), 401),
        ("six minutes old", signed(now() - 360), 401),
        ("six minutes ahead", signed(now() + 360), 401),
        ("no time", change(&|call| drop(call.headers.remove(1))), 401),
        ("no signature", change(&|call| drop(call.headers.remove(2))), 401),
        ("another body", change(&|call| call.body.push(b' ')), 401),
        ("another time", change(&|call| call.headers[1].1 = (now() - 1).to_string()), 401),
        ("a time that is none", change(&|call| call.headers[1].1 = i64::MAX.to_string()), 401),
        ("a question", change(&|call| "GET".clone_into(&mut call.method)), 405),
    ];
    for (what, call, status) in table {
        let answer = slack.called("work", call, inbox.as_ref()).await;
        assert_eq!((answer.status, answer.body.as_str()), (status, ""), "{what}");
    }
    for account in ["socket", "nobody"] {
        assert_eq!(slack.called(account, signed(now()), inbox.as_ref()).await.status, 404);
    }
    assert!(inbox.letters().is_empty());
    for at in [now(), now() - 200, now()] {
        assert_eq!(slack.called("work", signed(at), inbox.as_ref()).await.status, 200);
    }
    assert_eq!(inbox.texts(), ["hi"], "what is played back is the same letter");
}

#[tokio::test]
async fn a_request_is_answered_after_its_letter_was_taken() {
    let (platform, inbox) = (Platform::start(), Desk::new());
    let events = config::Slack { mode: SlackMode::Events, ..account(&platform, "work") };
    let slack = slack([("work", events.clone())]);
    inbox.later.store(1, Ordering::SeqCst);
    let call = event_call(SECRET, &message("1.1", "hi"), now());
    assert_eq!(slack.called("work", call.clone(), inbox.as_ref()).await.status, 503);
    assert_eq!(slack.called("work", call, inbox.as_ref()).await.status, 200);
    let form = "command=%2Fpolyclaw&text=say+hi&channel_id=D1&user_id=U1&trigger_id=1.2";
    let command = signed_call(SECRET, "application/x-www-form-urlencoded", form, now());
    assert_eq!(slack.called("work", command, inbox.as_ref()).await.status, 200);
    assert_eq!(inbox.texts(), ["hi", "/polyclaw say hi"]);
    let hello =
        signed_call(SECRET, "application/json", r#"{"type":"url_verification","challenge":"c-1"}"#, now());
    assert_eq!(slack.called("work", hello, inbox.as_ref()).await.body, "c-1");
    for odd in ["", "{", "[]", "null", "{\"type\":\"event_callback\"}"] {
        assert_eq!(
            slack.called("work", signed_call(SECRET, "", odd, now()), inbox.as_ref()).await.status,
            200,
            "{odd}"
        );
    }
    let lost = config::Slack { api_url: Some("http://127.0.0.1:1/api".to_owned()), ..events };
    let lost = self::slack([("work", lost)]);
    let call = event_call(SECRET, &message("1.2", "hi"), now());
    assert_eq!(lost.called("work", call, inbox.as_ref()).await.status, 503, "who it is cannot be asked");
}

#[tokio::test]
async fn no_secret_shows() {
    let slack = slack([(
        "work",
        config::Slack {
            bot_token: Secret::new("xoxb-T0K3N"),
            api_url: Some("http://127.0.0.1:1/T0K3N".to_owned()),
            ..account(&Platform::start(), "T0K3N")
        },
    )]);
    let sent = slack.send("k", &outgoing_to(NAME, "work", "C1", None, "x")).await;
    assert!(!format!("{slack:?} {sent:?}").contains("T0K3N"));
    let accounts = BTreeMap::from([(
        "a".to_owned(),
        config::Slack { api_url: Some("ftp://x".into()), ..account(&Platform::start(), "a") },
    )]);
    let clock: Arc<SimClock> = SimClock::start();
    assert_eq!(Slack::from_config(&accounts, clock).unwrap_err().code(), "channel_url");
}
