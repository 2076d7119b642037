//! What is sent and changed.

use polyclaw_channel::slack::NAME;
use polyclaw_domain::channel::Channel;
use polyclaw_testkit::platform::Outcome;
use polyclaw_testkit::platform::slack::Slack as Platform;

use super::one;
use crate::fixture::{each_text, outgoing_to, stream, trouble, word};

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
