use std::time::Duration;

use polyclaw_domain::job::JobState;
use polyclaw_domain::provider::{ErrorClass, ProviderError};
use polyclaw_domain::tool::{ToolConsent, ToolEffect};
use polyclaw_testkit::world::World;
use polyclaw_testkit::{ScriptStep, ScriptedProvider};
use serde_json::json;

use crate::glance;

#[tokio::test(start_paused = true)]
async fn stalled_model_call_fails_turn_and_session_continues() {
    let model = ScriptedProvider::new(|prompt| match polyclaw_testkit::last_user_text(prompt) {
        "hang" => vec![ScriptStep::Say("let me see".into()), ScriptStep::Hang],
        text => vec![ScriptStep::Say(format!("ok {text}"))],
    });
    let world = World::with_provider(model).await;
    let began = tokio::time::Instant::now();
    let hung = world.send_text("me", "hang").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let next = world.send_text("me", "next").await.unwrap();
    let answer = world.wait_answer(&hung).await;
    assert_eq!((answer.state, answer.error_code.as_deref()), (JobState::Failed, Some("stalled")));
    assert!(answer.text.contains("nothing happened for 120 seconds"), "{}", answer.text);
    assert_eq!(world.wait_answer(&next).await.text, "ok next");
    assert!(began.elapsed() < Duration::from_secs(125), "freed within five seconds: {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn hanging_tool_is_stopped_with_paired_result() {
    let model = ScriptedProvider::new(|_| vec![ScriptStep::Call("hang".into(), json!({}))]);
    let world = World::with_provider(model).await;
    world
        .ground
        .tools
        .add_tool("hang", ToolEffect::Pure, ToolConsent::NotNeeded, |_| Box::pin(std::future::pending()));
    let answer = world.send_and_wait("go").await;
    assert_eq!(answer.error_code.as_deref(), Some("stalled"));
    let transcript = glance(&world.transcript("me").await);
    assert_eq!(transcript[2], "result Stopped: the turn ended while this call was running.");
}

#[tokio::test(start_paused = true)]
async fn endless_turn_ends_with_turn_timeout() {
    let model = ScriptedProvider::new(|prompt| {
        let n = prompt.messages.len();
        vec![ScriptStep::Pause(Duration::from_secs(100)), ScriptStep::Call("look".into(), json!({ "n": n }))]
    });
    let world = World::with_provider(model).await;
    let answer = world.send_and_wait("go").await;
    assert_eq!(answer.error_code.as_deref(), Some("turn_timeout"));
}

#[tokio::test(start_paused = true)]
async fn repeated_tool_call_loop_is_detected() {
    let model = ScriptedProvider::new(|_| vec![ScriptStep::Call("nothing".into(), json!({}))]);
    let world = World::with_provider(model).await;
    let answer = world.send_and_wait("go").await;
    assert_eq!(answer.error_code.as_deref(), Some("loop_detected"));
    assert!(answer.text.contains("nothing 4 times"), "{}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn turn_is_limited_to_fifty_tool_rounds() {
    let model = ScriptedProvider::new(|prompt| {
        vec![ScriptStep::Call("look".into(), json!({ "n": prompt.messages.len() }))]
    });
    let world = World::with_provider(model).await;
    let answer = world.send_and_wait("go").await;
    assert_eq!(answer.error_code.as_deref(), Some("too_many_rounds"));
    assert_eq!(world.ground.tools.run_counts().len(), 50);
}

#[tokio::test(start_paused = true)]
async fn provider_failure_is_reported_to_user() {
    let model = ScriptedProvider::new(|_| {
        vec![ScriptStep::Fail(ProviderError {
            class: ErrorClass::Unreachable,
            model: "scripted/model".into(),
            message: "connection refused".into(),
            retry_after_ms: None,
        })]
    });
    let world = World::with_provider(model).await;
    let answer = world.send_and_wait("go").await;
    assert_eq!((answer.state, answer.error_code.as_deref()), (JobState::Failed, Some("provider_failed")));
    assert!(answer.text.contains("connection refused"));
    world.wait_settled().await;
    assert_eq!(world.ground.fake_channel.visible_messages().len(), 1, "the person is told");
}

#[tokio::test(start_paused = true)]
async fn empty_reply_is_error_but_no_reply_is_not() {
    let model = ScriptedProvider::new(|prompt| match polyclaw_testkit::last_user_text(prompt) {
        "quiet" => vec![ScriptStep::Say("NO_REPLY".into())],
        _ => vec![ScriptStep::Say("  ".into())],
    });
    let world = World::with_provider(model).await;
    assert_eq!(world.send_and_wait("x").await.error_code.as_deref(), Some("empty_reply"));
    let quiet = world.send_and_wait("quiet").await;
    assert_eq!((quiet.state, quiet.text.as_str()), (JobState::Done, ""));
    world.wait_settled().await;
    assert_eq!(world.ground.fake_channel.visible_messages().len(), 1, "only the error was said");
}

#[tokio::test(start_paused = true)]
async fn history_is_compacted_before_context_is_full() {
    let model = ScriptedProvider::new(|prompt| {
        if prompt.system.starts_with("Summarize") {
            return vec![ScriptStep::Say("they talked about numbers".into())];
        }
        vec![ScriptStep::Say(format!("answer {}", "word ".repeat(50)))]
    });
    let world = World::with_provider(std::sync::Arc::clone(&model) as _).await;
    let mut settings = world.ground.settings.clone();
    world.send_and_wait("number 0").await;
    let account = world.engine.context_usage(&World::session_key("me")).await.unwrap();
    let window = account.system + account.tools + 1_500;
    settings.default_context_window = window;
    world.engine.reload_settings(settings);
    for n in 1..20 {
        world.send_and_wait(&format!("number {n} {}", "word ".repeat(50))).await;
        let total = world.engine.context_usage(&World::session_key("me")).await.unwrap().total_tokens();
        assert!(total < window, "{total} of {window} after {n}");
    }
    let prompts = model.prompts();
    let last = prompts.last().unwrap();
    assert!(last.messages.len() < 20, "{} messages", last.messages.len());
    let folded = prompts.iter().filter(|p| p.system.starts_with("Summarize")).count();
    assert!((1..8).contains(&folded), "folded {folded} times");
    let polyclaw_domain::provider::PromptMessage::User { text: first, .. } = &last.messages[0] else {
        panic!()
    };
    assert!(first.contains("they talked about numbers"));
    assert_eq!(world.transcript("me").await.len(), 40, "nothing is deleted");
}

#[tokio::test(start_paused = true)]
async fn turn_of_deleted_agent_fails_with_unknown_agent() {
    let world = World::new().await;
    world.send_and_wait("hello").await;
    let gone = polyclaw_domain::id::AgentId::main();
    world.engine.db().write(move |tx| polyclaw_store::agents::delete(tx, &gone)).await.unwrap();
    let answer = world.send_and_wait("still there?").await;
    assert_eq!((answer.state, answer.error_code.as_deref()), (JobState::Failed, Some("unknown_agent")));
}

#[tokio::test(start_paused = true)]
async fn interrupted_effect_is_reported_as_unknown() {
    for effect in [ToolEffect::Effect, ToolEffect::Idempotent] {
        let model = ScriptedProvider::new(|_| vec![ScriptStep::Call("hang".into(), json!({}))]);
        let world = World::with_provider(model).await;
        world
            .ground
            .tools
            .add_tool("hang", effect, ToolConsent::NotNeeded, |_| Box::pin(std::future::pending()));
        world.send_and_wait("go").await;
        let transcript = glance(&world.transcript("me").await);
        assert!(transcript[2].contains("Whether it took effect is unknown"), "{effect:?}: {transcript:?}");
    }
}
