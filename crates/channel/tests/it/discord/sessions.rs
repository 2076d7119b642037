//! Connections that end in every way there is.

use std::sync::atomic::Ordering;
use std::time::Duration;

use polyclaw_testkit::platform::ReplyOutcome;
use polyclaw_testkit::platform::discord::GatewayEnd;
use serde_json::json;

use super::{CALM_MS, TOKEN, connected, one, to};
use crate::fixture::{ChannelFixture, PlatformFixture};

#[tokio::test]
async fn resumed_session_neither_loses_nor_repeats_messages() {
    let (platform, discord) = one(CALM_MS);
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&discord, &fixture);
    connected(&platform, TOKEN).await;
    let ends = [
        GatewayEnd::Drop,
        GatewayEnd::Reconnect,
        GatewayEnd::Invalid { resumable: true },
        GatewayEnd::Close(4000),
        GatewayEnd::Close(4008),
    ];
    for (n, end) in ends.into_iter().cycle().take(15).enumerate() {
        platform.send_dm(TOKEN, "7", &format!("before {n}"));
        platform.end_connection(TOKEN, end);
        platform.send_in_channel(TOKEN, "100", &format!("after {n}"), json!({}));
        platform.wait_until("it goes on", |platform| platform.opening_counts(TOKEN).1 == n + 1).await;
    }
    fixture.wait_for(30).await;
    let expected: Vec<_> = (0..15).flat_map(|n| [format!("before {n}"), format!("after {n}")]).collect();
    assert_eq!(fixture.texts(), expected);
    assert_eq!(fixture.handed(), 30, "nothing was even handed in twice");
    assert_eq!(platform.opening_counts(TOKEN).0, 1, "it identified itself once");
}

#[tokio::test]
async fn messages_missed_by_lost_session_are_fetched() {
    let (platform, discord) = one(CALM_MS);
    platform.add_channel("200", "g1", None);
    platform.add_channel("201", "g1", Some("200"));
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&discord, &fixture);
    connected(&platform, TOKEN).await;
    platform.send_dm(TOKEN, "7", "dm before");
    platform.send_in_channel(TOKEN, "100", "channel before", json!({}));
    fixture.wait_for(2).await;
    platform.forget_session(TOKEN);
    platform.send_dm(TOKEN, "7", "dm missed");
    for n in 0..150 {
        platform.send_in_channel(TOKEN, "100", &format!("missed {n}"), json!({}));
    }
    platform.send_in_channel(TOKEN, "201", "thread missed", json!({}));
    let messages = fixture.wait_for(154).await;
    let mut texts = fixture.texts();
    texts.sort();
    texts.dedup();
    assert_eq!((texts.len(), fixture.handed()), (154, 154));
    let thread = messages.iter().find(|message| message.text == "thread missed").unwrap();
    assert_eq!(thread.context.parent.as_ref().map(|parent| parent.id.as_str()), Some("200"));
    assert_eq!(thread.context.roles, ["role-of-5"], "what a message does not say is asked for");
    let missed: Vec<_> = fixture.texts().into_iter().filter(|text| text.starts_with("missed")).collect();
    assert_eq!(missed, (0..150).map(|n| format!("missed {n}")).collect::<Vec<_>>(), "in order");
    platform.send_dm(TOKEN, "7", "live again");
    fixture.wait_for(155).await;
}

#[tokio::test]
async fn session_that_cannot_resume_is_replaced() {
    for end in [GatewayEnd::Invalid { resumable: false }, GatewayEnd::Close(4009), GatewayEnd::Close(4007)] {
        let (platform, discord) = one(CALM_MS);
        let fixture = PlatformFixture::new();
        let _fixture = ChannelFixture::start(&discord, &fixture);
        connected(&platform, TOKEN).await;
        platform.end_connection(TOKEN, end);
        platform
            .wait_until("it identifies itself again", |platform| platform.opening_counts(TOKEN).0 == 2)
            .await;
        platform.send_dm(TOKEN, "7", "hello");
        fixture.wait_for(1).await;
    }
}

/// A little before the start: the bot was being restarted.
#[tokio::test]
async fn guild_messages_sent_during_restart_are_fetched() {
    let (platform, discord) = one(CALM_MS);
    platform.send_in_channel(TOKEN, "100", "is anybody there?", json!({}));
    platform.push("GET messages", ReplyOutcome::Status(502));
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&discord, &fixture);
    fixture.wait_for(1).await;
    assert_eq!(fixture.texts(), ["is anybody there?"]);
}

#[tokio::test]
async fn messages_from_before_the_bot_joined_are_ignored() {
    let (platform, discord) = one(CALM_MS);
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&discord, &fixture);
    connected(&platform, TOKEN).await;
    platform.send_dm(TOKEN, "7", "the bot is there");
    fixture.wait_for(1).await;
    platform.add_channel("900", "g9", None);
    platform.write_message("of nobody", "900", "5", "among ourselves", json!({}));
    platform.announce_guilds(TOKEN);
    platform.send_in_channel(TOKEN, "900", "welcome", json!({}));
    fixture.wait_for(2).await;
    assert_eq!(fixture.texts(), ["the bot is there", "welcome"]);
}

#[tokio::test]
async fn gateway_without_heartbeat_acks_is_reconnected() {
    let (platform, discord) = one(100);
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&discord, &fixture);
    connected(&platform, TOKEN).await;
    platform.send_dm(TOKEN, "7", "one");
    fixture.wait_for(1).await;
    platform.wait_until("the heart beats", |platform| platform.last_heartbeat(TOKEN) >= Some(3)).await;
    platform.end_connection(TOKEN, GatewayEnd::Silence);
    platform.wait_until("it goes on elsewhere", |platform| platform.opening_counts(TOKEN) == (1, 1)).await;
    platform.send_dm(TOKEN, "7", "two");
    fixture.wait_for(2).await;
    assert_eq!((fixture.texts(), fixture.handed()), (vec!["one".to_owned(), "two".to_owned()], 2));
}

#[tokio::test]
async fn unaccepted_messages_are_held_and_not_acknowledged() {
    let (platform, discord) = one(100);
    let fixture = PlatformFixture::new();
    fixture.later.store(40, Ordering::SeqCst);
    let _fixture = ChannelFixture::start(&discord, &fixture);
    connected(&platform, TOKEN).await;
    platform.send_dm(TOKEN, "7", "one");
    platform.send_dm(TOKEN, "7", "two");
    // READY and the server were 1 and 2.
    platform.wait_until("the heart beats", |platform| platform.last_heartbeat(TOKEN) == Some(2)).await;
    fixture.until(|| fixture.handed() >= 6).await;
    assert_eq!(platform.last_heartbeat(TOKEN), Some(2), "the letters are held, so they are not named");
    platform.end_connection(TOKEN, GatewayEnd::Drop);
    fixture.wait_for(2).await;
    assert_eq!(fixture.texts(), ["one", "two"]);
    platform
        .wait_until("it names what was taken", |platform| platform.last_heartbeat(TOKEN) >= Some(4))
        .await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(fixture.letters().len(), 2);
}

#[tokio::test]
async fn session_resumes_at_gateway_url_if_resume_url_fails() {
    let (platform, discord) = one(CALM_MS);
    platform.set_resume_url(&format!("ws://127.0.0.1:{}", polyclaw_testkit::free_port()));
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&discord, &fixture);
    connected(&platform, TOKEN).await;
    platform.send_dm(TOKEN, "7", "one");
    fixture.wait_for(1).await;
    platform.end_connection(TOKEN, GatewayEnd::Drop);
    platform.send_dm(TOKEN, "7", "two");
    fixture.wait_for(2).await;
    assert_eq!((platform.opening_counts(TOKEN), fixture.handed()), ((1, 1), 2));
}

#[tokio::test]
async fn late_platform_start_is_retried_until_connected() {
    let (platform, discord) = one(CALM_MS);
    for outcome in [
        ReplyOutcome::Status(503),
        ReplyOutcome::Cut,
        ReplyOutcome::Status(500),
        ReplyOutcome::Cut,
        ReplyOutcome::Status(502),
    ] {
        platform.push("GET bot", outcome);
    }
    let fixture = PlatformFixture::new();
    let _fixture = ChannelFixture::start(&discord, &fixture);
    connected(&platform, TOKEN).await;
}

/// A process that starts knows from before where people have written to it alone, and asks only there.
#[tokio::test]
async fn direct_messages_sent_while_offline_are_fetched() {
    let (platform, discord) = one(CALM_MS);
    platform.send_dm(TOKEN, "7", "from somebody known");
    platform.send_dm(TOKEN, "8", "from somebody new");
    let fixture = PlatformFixture::new();
    fixture.correspondents.lock().unwrap().push(to("97"));
    let _fixture = ChannelFixture::start(&discord, &fixture);
    fixture.wait_for(1).await;
    platform.send_dm(TOKEN, "8", "again");
    fixture.wait_for(2).await;
    assert_eq!(fixture.texts(), ["from somebody known", "again"]);
}
