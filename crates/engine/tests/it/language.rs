//! The language of replies, notices and questions: that of the person, unless the config or a person sets one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use polyclaw_domain::locale::LanguageSetting;
use polyclaw_domain::provider::PromptMessage;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolOutcome};
use polyclaw_testkit::world::World;
use polyclaw_testkit::{
    KillPointFaults, ScriptStep, ScriptedProvider, inbound_dm, inbound_group, last_user_text, wait_until,
};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::approvals::question;
use crate::reception::{CONFIG, ground, read_after};

async fn world_with(config: &str) -> World {
    ground(config).await.start_engine(KillPointFaults::no_kill())
}

/// The last reply to a direct message of the owner.
async fn reply_to(world: &World, text: &str) -> String {
    static SENT: AtomicUsize = AtomicUsize::new(0);
    let mut message = inbound_dm("boss", text);
    message.platform_id = format!("sent-{}", SENT.fetch_add(1, Ordering::Relaxed));
    read_after(world, message).await.pop().expect("a reply")
}

#[tokio::test(start_paused = true)]
async fn command_replies_follow_the_language_of_the_newest_message_that_decides_it() {
    let world = world_with(CONFIG).await;
    assert_eq!(reply_to(&world, "/stop").await, "This conversation has no messages yet.");
    reply_to(&world, "你好，今天有什么安排？").await;
    assert_eq!(reply_to(&world, "/stop").await, "没有正在运行的内容。");
    for undecided in ["ok", "👍", "12345"] {
        reply_to(&world, undecided).await;
        assert_eq!(reply_to(&world, "/stop").await, "没有正在运行的内容。", "{undecided}");
    }
    assert!(reply_to(&world, "/help").await.contains("/stop  停止正在运行的回合"));
    assert_eq!(reply_to(&world, "/bogus").await, "没有命令 /bogus。用 /help 查看所有命令。");
    assert_eq!(reply_to(&world, "/agent nobody").await, "操作失败：没有智能体“nobody”。");
    reply_to(&world, "Please continue in English from here.").await;
    assert_eq!(reply_to(&world, "/stop").await, "Nothing is running.");
    assert!(reply_to(&world, "/help").await.contains("/stop  stop the running turn"));
}

#[tokio::test(start_paused = true)]
async fn language_command_precedes_config_and_messages() {
    let world = world_with(&format!("{CONFIG}\n[delivery]\nlanguage = \"zh\"\n")).await;
    reply_to(&world, "Good morning, what is new today?").await;
    assert_eq!(reply_to(&world, "/stop").await, "没有正在运行的内容。");
    assert!(reply_to(&world, "/language").await.contains("中文（由配置设置）"));
    assert_eq!(
        reply_to(&world, "/language en").await,
        "Notices and command replies in this conversation are now in English."
    );
    assert_eq!(reply_to(&world, "/stop").await, "Nothing is running.");
    assert!(reply_to(&world, "/language").await.contains("English (set with /language)"));
    assert!(reply_to(&world, "/language fr").await.contains("\"fr\" is not a supported language"));
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    assert_eq!(reply_to(&world, "/stop").await, "Nothing is running.", "after a restart, too");
    reply_to(&world, "/language auto").await;
    assert!(reply_to(&world, "/language").await.contains("English (detected in the messages)"));
    reply_to(&world, "现在请说中文").await;
    assert!(reply_to(&world, "/language").await.contains("中文（根据消息判断）"));
}

#[tokio::test(start_paused = true)]
async fn only_owners_set_the_language_of_a_group() {
    let world = world_with(CONFIG).await;
    read_after(&world, inbound_group("-7", "guest", "hello")).await;
    let refused = read_after(&world, inbound_group("-7", "guest", "/language zh")).await;
    assert_eq!(refused, ["Only owners of this assistant can use /language."]);
    let set = read_after(&world, inbound_group("-7", "boss", "/language zh-CN")).await;
    assert_eq!(set, ["此对话的通知和命令回复现在使用中文。"]);
    let shown = read_after(&world, inbound_group("-7", "guest", "/language")).await;
    assert!(shown[0].contains("由 /language 设置"), "{shown:?}");
}

#[tokio::test(start_paused = true)]
async fn unknown_senders_get_the_pairing_code_in_their_language() {
    let config = CONFIG.replace("dm_policy = \"allowlist\"", "dm_policy = \"pairing\"");
    let world = world_with(&config).await;
    let read = read_after(&world, inbound_dm("eve", "你好")).await;
    assert!(read[0].starts_with("你尚未获得批准。请把此配对码发给此助手的所有者："), "{read:?}");
    let code = world.engine.list_pairings().await.unwrap()[0].code.to_string();
    world.engine.approve_pairing(&code).await.unwrap();
    world.wait_settled().await;
    let approved = world.ground.fake_channel.texts_at("eve", None).pop().unwrap();
    assert_eq!(approved, "你已获得批准，现在可以给我发消息了。");
}

#[tokio::test(start_paused = true)]
async fn approval_questions_and_their_answers_are_in_the_language_of_the_conversation() {
    let model = ScriptedProvider::new(|prompt| {
        let is_done = prompt.messages.iter().any(|m| matches!(m, PromptMessage::ToolResult { .. }));
        match last_user_text(prompt) {
            "请运行它" if !is_done => vec![ScriptStep::Call("danger".into(), json!({ "command": "rm" }))],
            _ => vec![ScriptStep::Say("好".into())],
        }
    });
    let mut ground = World::with_provider(model).await.kill().await;
    ground.tools.add_tool("danger", ToolEffect::Effect, ToolConsent::AskPerson, |_| {
        Box::pin(async { ToolOutcome::ok("it ran") })
    });
    ground.configure(CONFIG).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.ground.fake_channel.deliver_inbound(inbound_dm("boss", "请运行它")).await;
    let id = question(&world).await;
    let texts = || world.ground.fake_channel.texts_at("boss", None);
    wait_until("the question is sent", async || !texts().is_empty()).await;
    let asked = texts().remove(0);
    assert!(asked.contains("请求你的批准：\ndanger {\"command\":\"rm\"}"), "{asked}");
    assert!(asked.contains(&format!("用 /approve {id} 批准，或用 /deny {id} 拒绝")), "{asked}");
    // The question is stored. Another language after a restart does not make it another question.
    let mut ground = world.kill().await;
    ground.configure(&format!("{CONFIG}\n[delivery]\nlanguage = \"en\"\n")).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    assert_eq!(question(&world).await, id);
    let read = read_after(&world, inbound_dm("boss", &format!("/approve {id}"))).await;
    assert!(read.contains(&"Approved. It runs now.".to_owned()), "{read:?}");
    assert!(read.contains(&"好".to_owned()), "{read:?}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_fails_after_a_restart_says_so_in_the_language_of_the_conversation() {
    let gate = Arc::new(Semaphore::new(0));
    let waits = Arc::clone(&gate);
    let model = ScriptedProvider::new(move |_| vec![ScriptStep::Gate(Arc::clone(&waits))]);
    let mut world = World::with_provider(model).await;
    let accepted = world.send_text("me", "帮我查一下今天的天气").await.unwrap();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world = world.kill().await.start_engine(KillPointFaults::no_kill());
    }
    let answer = world.wait_answer(&accepted).await;
    assert_eq!(answer.error_code.as_deref(), Some("too_many_attempts"));
    assert_eq!(answer.text, "已放弃此回合：3 次尝试都在完成一步之前中断。");
    let key = World::session_key("me");
    assert_eq!(world.engine.run_command(&key, "/stop").await.unwrap().unwrap(), "没有正在运行的内容。");
    gate.add_permits(1);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_command_sends_its_reply_once_after_the_language_changed() {
    let world = world_with(CONFIG).await;
    reply_to(&world, "hello").await;
    let mut command = inbound_dm("boss", "/whoami");
    command.platform_id = "m-77".into();
    let first = read_after(&world, command.clone()).await;
    assert_eq!(first, ["session agent:main:telegram:dm:boss, agent main"]);
    reply_to(&world, "/language zh").await;
    assert!(read_after(&world, command).await.is_empty(), "it was answered before");
    let key = SessionKey::parse("agent:main:telegram:dm:boss").unwrap();
    let language = world.engine.load_session(&key).await.unwrap().language;
    assert_eq!(language.chosen.map(LanguageSetting::as_str), Some("zh"));
}
