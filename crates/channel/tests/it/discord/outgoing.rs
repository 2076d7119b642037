//! What is sent, and what is said about it.

use std::collections::BTreeMap;

use polyclaw_channel::discord::DiscordAdapter;
use polyclaw_domain::channel::{ChannelAdapter, MenuItem, SendOutcome};
use polyclaw_testkit::platform::ReplyOutcome;
use serde_json::json;

use super::{CALM_MS, TOKEN, adapter, config, one, to};
use crate::chunks::{PATIENT, Stage};
use crate::fixture::{FATES, nowhere, outgoing, word};

#[tokio::test]
async fn send_and_edit_outcomes_match_platform_response() {
    let (platform, discord) = one(CALM_MS);
    let first = discord.send("first", &outgoing(&to("100"), "first")).await;
    let SendOutcome::Accepted { platform_id: Some(id) } = first else { panic!("{first:?}") };
    for (n, (outcome, on_send, on_edit)) in FATES.into_iter().enumerate() {
        let text = outgoing(&to("100"), &format!("text {n}"));
        platform.push("POST messages", outcome);
        assert_eq!(word(&discord.send(&n.to_string(), &text).await), on_send, "send: {outcome:?}");
        platform.push("PATCH messages", outcome);
        assert_eq!(word(&discord.edit_message(&id, &text).await), on_edit, "edit: {outcome:?}");
    }
}

#[tokio::test]
async fn repeated_send_key_is_shown_once() {
    let (platform, discord) = one(CALM_MS);
    let text = outgoing(&to("100"), "once");
    for outcome in
        [ReplyOutcome::ShownThenCut, ReplyOutcome::ShownThenHang, ReplyOutcome::ShownThenStatus(500)]
    {
        platform.push("POST messages", outcome);
        assert_eq!(word(&discord.send("key", &text).await), "unknown");
    }
    let sent = discord.send("key", &text).await;
    let seen = platform.visible_messages();
    assert_eq!(sent, SendOutcome::Accepted { platform_id: Some(seen[0].id.clone()) });
    assert_eq!(seen.len(), 1);
    discord.send("another key", &text).await;
    assert_eq!(platform.visible_messages().len(), 2);
    assert!(discord.capabilities("main").idempotent_send);
    assert!(discord.idempotency_window_ms("main").is_some(), "but not for ever");
}

#[tokio::test]
async fn ten_thousand_chunkings_show_the_stored_text() {
    let (platform, _) = one(CALM_MS);
    let bots = BTreeMap::from([("main".to_owned(), config(&platform, TOKEN))]);
    let stage = Stage {
        platform: &platform,
        channel: &DiscordAdapter::with_retry_timing(&bots, PATIENT).unwrap(),
        address: to("100"),
        calls: ["POST messages", "PATCH messages"],
        read: str::to_owned,
    };
    stage.play().await;
}

#[tokio::test]
async fn sent_text_triggers_no_mentions_or_previews() {
    let (platform, discord) = one(CALM_MS);
    let emoji = "😀".repeat(10_000);
    for text in ["@everyone <@5> https://x.example", "\u{202e}a\0b **x**", &emoji] {
        let before = platform.visible_messages().len();
        for (n, part) in outgoing(&to("100"), text).split_by_limit(2000).iter().enumerate() {
            assert_eq!(word(&discord.send(&format!("{n} {}", text.len()), part).await), "accepted");
        }
        let seen: String = platform.visible_messages()[before..].iter().map(|m| m.text.as_str()).collect();
        assert_eq!(seen, text);
    }
    for called in platform.calls("POST messages") {
        assert_eq!(called.body["allowed_mentions"], json!({ "parse": [] }));
        assert_eq!(called.body["flags"], 4);
    }
}

#[tokio::test]
async fn command_menu_and_typing_are_sent_to_platform() {
    let (platform, discord) = one(CALM_MS);
    let item = MenuItem { command: "code".to_owned(), description: String::new() };
    discord.set_command_menu("main", &[item]).await.unwrap();
    let command = &platform.calls("PUT commands")[0].body[0];
    assert_eq!((&command["name"], &command["description"]), (&json!("code"), &json!("code")));
    assert_eq!(command["options"][0]["required"], false);
    platform.push("PUT commands", ReplyOutcome::Status(403));
    assert!(discord.set_command_menu("main", &[]).await.is_err());
    assert!(discord.set_command_menu("other", &[]).await.is_err());
    discord.send_typing(&to("100")).await;
    assert_eq!(platform.calls("POST typing").len(), 1);
}

#[tokio::test]
async fn unreachable_platform_is_retried_without_exposing_token() {
    let bot = serde_json::from_value(json!({ "bot_token": TOKEN, "api_url": nowhere() })).unwrap();
    let discord = adapter(&[("main", bot)]);
    let sent = discord.send("k", &outgoing(&to("100"), "x")).await;
    assert_eq!(word(&sent), "retry");
    let menu = discord.set_command_menu("main", &[]).await;
    assert!(!format!("{sent:?} {menu:?} {discord:?}").contains("T0K3N"));
}
