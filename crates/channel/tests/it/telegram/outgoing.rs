//! What is sent, and what is said about it.

use std::collections::BTreeMap;

use polyclaw_channel::telegram::TelegramAdapter;
use polyclaw_domain::channel::{ChannelAdapter, MenuItem, SendOutcome};
use polyclaw_testkit::platform::ReplyOutcome;
use serde_json::json;

use super::{TOKEN, adapter, config, one, to};
use crate::chunks::{PATIENT, Stage};
use crate::fixture::{FATES, nowhere, outgoing, word};

#[tokio::test]
async fn send_is_retried_only_if_surely_not_delivered() {
    let (platform, telegram) = one();
    let first = telegram.send("k", &outgoing(&to("7", None), "first")).await;
    let SendOutcome::Accepted { platform_id: Some(id) } = first else { panic!("{first:?}") };
    for (n, (outcome, on_send, on_edit)) in FATES.into_iter().enumerate() {
        let text = outgoing(&to("7", None), &format!("text {n}"));
        platform.push("sendMessage", outcome);
        assert_eq!(word(&telegram.send("k", &text).await), on_send, "send: {outcome:?}");
        platform.push("editMessageText", outcome);
        assert_eq!(word(&telegram.edit_message(&id, &text).await), on_edit, "edit: {outcome:?}");
    }
    assert!(!telegram.capabilities("main").idempotent_send);
}

#[tokio::test]
async fn edit_succeeds_with_same_text_and_fails_without_message() {
    let (_platform, telegram) = one();
    let text = outgoing(&to("7", None), "same");
    let sent = telegram.send("k", &text).await;
    let SendOutcome::Accepted { platform_id: Some(id) } = sent else { panic!("{sent:?}") };
    assert_eq!(telegram.edit_message(&id, &text).await, SendOutcome::Accepted { platform_id: Some(id) });
    let missing = telegram.edit_message("99999", &text).await;
    assert!(
        matches!(&missing, SendOutcome::Rejected { reason } if reason.contains("not found")),
        "{missing:?}"
    );
}

#[tokio::test]
async fn ten_thousand_chunkings_show_the_stored_text() {
    let (platform, _) = one();
    let bots = BTreeMap::from([("main".to_owned(), config(&platform, TOKEN))]);
    let stage = Stage {
        platform: &platform,
        channel: &TelegramAdapter::with_retry_timing(&bots, PATIENT).unwrap(),
        address: to("7", None),
        calls: ["sendMessage", "editMessageText"],
        read: str::to_owned,
    };
    stage.play().await;
}

#[tokio::test]
async fn command_menu_and_typing_are_sent_to_platform() {
    let (platform, telegram) = one();
    let item = |command: &str, description: &str| MenuItem {
        command: command.to_owned(),
        description: description.to_owned(),
    };
    telegram.set_command_menu("main", &[item("new", "a new conversation"), item("code", "")]).await.unwrap();
    let commands = &platform.calls("setMyCommands")[0].body["commands"];
    assert_eq!(commands[0], json!({ "command": "new", "description": "a new conversation" }));
    assert_eq!(commands[1]["description"], "code", "an empty description would be refused");
    platform.push("setMyCommands", ReplyOutcome::Status(400));
    assert!(telegram.set_command_menu("main", &[]).await.is_err());
    assert!(telegram.set_command_menu("other", &[]).await.is_err());
    telegram.send_typing(&to("7", Some("3"))).await;
    let typing = &platform.calls("sendChatAction")[0].body;
    assert_eq!(*typing, json!({ "chat_id": 7, "message_thread_id": 3, "action": "typing" }));
}

#[tokio::test]
async fn unreachable_platform_is_retried_without_exposing_token() {
    let bot = serde_json::from_value(json!({ "bot_token": TOKEN, "api_url": nowhere() })).unwrap();
    let telegram = adapter(&[("main", bot)]);
    let sent = telegram.send("k", &outgoing(&to("7", None), "x")).await;
    assert_eq!(word(&sent), "retry");
    let menu = telegram.set_command_menu("main", &[]).await;
    assert!(!format!("{sent:?} {menu:?} {telegram:?}").contains("T0K3N"));
}
