//! What is sent and changed.

use std::collections::BTreeMap;

use polyclaw_channel::slack::{CHANNEL_NAME, SlackAdapter};
use polyclaw_domain::channel::ChannelAdapter;
use polyclaw_testkit::SimClock;
use polyclaw_testkit::platform::ReplyOutcome;
use polyclaw_testkit::platform::slack::SlackEmulator as Platform;

use super::{account, one};
use crate::chunks::{PATIENT, Stage};
use crate::fixture::{FATES, outgoing_to, word};

#[tokio::test]
async fn reply_is_sent_to_its_thread_with_markup_escaped() {
    let platform = Platform::start();
    let slack = one(&platform);
    let hostile = "<!channel> & <https://evil.example|here>";
    let sent = slack.send("k", &outgoing_to(CHANNEL_NAME, "work", "C1", Some("1.1"), hostile)).await;
    assert_eq!(word(&sent), "accepted");
    slack.send("k", &outgoing_to(CHANNEL_NAME, "work", "D1", None, "plain")).await;
    let messages = platform.visible_messages();
    assert_eq!((messages[0].chat.as_str(), messages[0].thread.as_deref()), ("C1", Some("1.1")));
    assert_eq!(messages[0].text, "&lt;!channel&gt; &amp; &lt;https://evil.example|here&gt;");
    assert_eq!((messages[1].chat.as_str(), messages[1].thread.as_deref()), ("D1", None));
}

#[tokio::test]
async fn sent_message_can_be_edited() {
    let platform = Platform::start();
    let slack = one(&platform);
    slack.send("k", &outgoing_to(CHANNEL_NAME, "work", "C1", None, "hel")).await;
    let id = format!("C1:{}", platform.visible_messages()[0].id);
    platform.push("chat.update", ReplyOutcome::Later { status: 429, seconds: 3 });
    let whole = outgoing_to(CHANNEL_NAME, "work", "C1", None, "hello");
    assert_eq!(word(&slack.edit_message(&id, &whole).await), "retry after 3000");
    assert_eq!(word(&slack.edit_message(&id, &whole).await), "accepted");
    assert_eq!(word(&slack.edit_message("C1:0.0", &whole).await), "rejected");
    assert_eq!(word(&slack.edit_message("odd", &whole).await), "rejected");
    assert_eq!(platform.visible_messages()[0].text, "hello");
}

#[tokio::test]
async fn send_is_retried_only_if_surely_not_delivered() {
    let platform = Platform::start();
    let slack = one(&platform);
    for (outcome, expected, _) in FATES {
        platform.push("chat.postMessage", outcome);
        assert_eq!(
            word(&slack.send("k", &outgoing_to(CHANNEL_NAME, "work", "C1", None, "x")).await),
            expected,
            "{outcome:?}"
        );
    }
    assert_eq!(
        word(&slack.send("k", &outgoing_to(CHANNEL_NAME, "work", "CGONE", None, "x")).await),
        "rejected"
    );
    assert!(!slack.capabilities("work").idempotent_send);
}

#[tokio::test]
async fn ten_thousand_chunkings_show_the_stored_text() {
    let platform = Platform::start();
    let apps = BTreeMap::from([("work".to_owned(), account(&platform, "work"))]);
    let stage = Stage {
        platform: &platform,
        channel: &SlackAdapter::with_retry_timing(&apps, SimClock::start(), PATIENT).unwrap(),
        address: outgoing_to(CHANNEL_NAME, "work", "C1", Some("1.1"), "x").address().clone(),
        calls: ["chat.postMessage", "chat.update"],
        read: |text| text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"),
    };
    stage.play().await;
}
