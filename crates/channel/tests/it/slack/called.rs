//! Requests of the Events API.

use std::sync::atomic::Ordering;

use polyclaw_domain::channel::{ChannelAdapter, WebhookRequest};
use polyclaw_domain::config::{self, SlackMode};
use polyclaw_domain::port::WallClock;
use polyclaw_testkit::SimClock;
use polyclaw_testkit::platform::slack::{SlackEmulator as Platform, event_call, signed_call};

use super::{SECRET, account, message, slack};
use crate::fixture::PlatformFixture;

/// Seconds since 1970 by the clock of these tests.
fn now() -> i64 {
    SimClock::start().now().0 / 1000
}

#[tokio::test]
async fn only_recent_signed_requests_are_accepted() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let slack = slack([
        ("work", config::SlackConfig { mode: SlackMode::Events, ..account(&platform, "work") }),
        ("socket", account(&platform, "socket")),
    ]);
    let event = message("1.1", "hi");
    let signed = |at| event_call(SECRET, &event, at);
    let change = |change: &dyn Fn(&mut WebhookRequest)| {
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
        let answer = slack.handle_webhook("work", call, inbox.as_ref()).await;
        assert_eq!((answer.status, answer.body.as_str()), (status, ""), "{what}");
    }
    for account in ["socket", "nobody"] {
        assert_eq!(slack.handle_webhook(account, signed(now()), inbox.as_ref()).await.status, 404);
    }
    assert!(inbox.letters().is_empty());
    for at in [now(), now() - 200, now()] {
        assert_eq!(slack.handle_webhook("work", signed(at), inbox.as_ref()).await.status, 200);
    }
    assert_eq!(inbox.texts(), ["hi"], "what is played back is the same letter");
}

#[tokio::test]
async fn request_is_answered_after_its_message_is_accepted() {
    let (platform, inbox) = (Platform::start(), PlatformFixture::new());
    let events = config::SlackConfig { mode: SlackMode::Events, ..account(&platform, "work") };
    let slack = slack([("work", events.clone())]);
    inbox.later.store(1, Ordering::SeqCst);
    let call = event_call(SECRET, &message("1.1", "hi"), now());
    assert_eq!(slack.handle_webhook("work", call.clone(), inbox.as_ref()).await.status, 503);
    assert_eq!(slack.handle_webhook("work", call, inbox.as_ref()).await.status, 200);
    let form = "command=%2Fpolyclaw&text=say+hi&channel_id=D1&user_id=U1&trigger_id=1.2";
    let command = signed_call(SECRET, "application/x-www-form-urlencoded", form, now());
    assert_eq!(slack.handle_webhook("work", command, inbox.as_ref()).await.status, 200);
    assert_eq!(inbox.texts(), ["hi", "say hi"]);
    let hello =
        signed_call(SECRET, "application/json", r#"{"type":"url_verification","challenge":"c-1"}"#, now());
    assert_eq!(slack.handle_webhook("work", hello, inbox.as_ref()).await.body, "c-1");
    for odd in ["", "{", "[]", "null", "{\"type\":\"event_callback\"}"] {
        assert_eq!(
            slack.handle_webhook("work", signed_call(SECRET, "", odd, now()), inbox.as_ref()).await.status,
            200,
            "{odd}"
        );
    }
    let lost = config::SlackConfig { api_url: Some("http://127.0.0.1:1/api".to_owned()), ..events };
    let lost = super::slack([("work", lost)]);
    let call = event_call(SECRET, &message("1.2", "hi"), now());
    assert_eq!(
        lost.handle_webhook("work", call, inbox.as_ref()).await.status,
        503,
        "who it is cannot be asked"
    );
}
