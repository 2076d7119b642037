//! Conversations that do not fit the model's context window, whatever its configured size.

use std::sync::Arc;

use polyclaw_domain::prompt::estimate_text_tokens;
use polyclaw_domain::provider::{ErrorClass, Prompt, PromptMessage, ProviderError};
use polyclaw_testkit::world::World;
use polyclaw_testkit::{KillPointFaults, ModelScript, ScriptStep, ScriptedProvider};

/// A model that rejects more than so many tokens, like a server with a small window.
fn narrow(window: usize) -> Arc<ScriptedProvider> {
    ScriptedProvider::new(move |prompt: &Prompt| -> ModelScript {
        match size(prompt) {
            size if size > window => vec![refuses(size)],
            _ if prompt.system.starts_with("Summarize") => vec![ScriptStep::Say("the summary".into())],
            _ => vec![ScriptStep::Say("yes".into())],
        }
    })
}

pub fn refuses(size: usize) -> ScriptStep {
    ScriptStep::Fail(ProviderError {
        class: ErrorClass::ContextTooLong,
        model: "test/m".to_owned(),
        message: format!("{size} tokens"),
        retry_after_ms: None,
    })
}

pub fn size(prompt: &Prompt) -> usize {
    let tools = prompt.tools.iter().map(|tool| estimate_text_tokens(&tool.parameters.to_string()));
    estimate_text_tokens(&prompt.system) + said(prompt) + tools.sum::<usize>()
}

/// Tokens of the conversation alone.
fn said(prompt: &Prompt) -> usize {
    let line = prompt.messages.iter().map(|message| match message {
        PromptMessage::User { text, .. } | PromptMessage::Assistant { text, .. } => {
            estimate_text_tokens(text)
        }
        PromptMessage::ToolResult { content, .. } => estimate_text_tokens(content),
    });
    line.sum()
}

#[tokio::test(start_paused = true)]
async fn message_longer_than_context_window_is_answered() {
    let model = narrow(8_000);
    let world = World::with_provider(Arc::clone(&model) as _).await;
    let long = format!("the beginning {} the end", "word ".repeat(30_000));
    assert_eq!(world.send_and_wait(&long).await.text, "yes");
    let shown = format!("{:?}", model.prompts().last().unwrap().messages);
    assert!(shown.contains("the beginning") && shown.contains("the end") && shown.contains("omitted"));
    assert_eq!(world.send_and_wait("and now?").await.text, "yes");
    let stored = world.transcript("me").await;
    assert_eq!(stored[0].text, long, "what is stored stays whole");
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    assert_eq!(world.send_and_wait("still there?").await.text, "yes");
}

#[tokio::test(start_paused = true)]
async fn conversation_continues_past_unknown_context_window() {
    let model = narrow(8_000);
    let world = World::with_provider(Arc::clone(&model) as _).await;
    for n in 0..40 {
        let answer = world.send_and_wait(&format!("{n}: {}", "word ".repeat(600))).await;
        assert_eq!(answer.text, "yes", "message {n}");
    }
    let refused = model.prompts().iter().filter(|prompt| size(prompt) > 8_000).count();
    assert!(refused < 10, "what was learnt is kept: {refused} prompts were refused");
}

#[tokio::test(start_paused = true)]
async fn manual_compaction_splits_large_history_into_requests() {
    let roomy = World::with_provider(narrow(1_000_000)).await;
    for n in 0..30 {
        roomy.send_and_wait(&format!("{n}: {}", "word ".repeat(1_500))).await;
    }
    let mut ground = roomy.kill().await;
    let model = narrow(8_000);
    ground.provider = Arc::clone(&model) as _;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.engine.compact_session(&World::session_key("me")).await.unwrap();
    world.wait_settled().await;
    assert_eq!(world.send_and_wait("again").await.text, "yes");
    let asked = model.prompts();
    let pieces =
        asked.iter().filter(|prompt| prompt.system.starts_with("Summarize") && size(prompt) <= 8_000);
    assert!(pieces.count() > 1);
    assert!(said(asked.last().unwrap()) < 500, "the history is a summary now");
}

#[tokio::test(start_paused = true)]
async fn context_overflow_error_suggests_new_conversation() {
    let world = World::with_provider(narrow(0)).await;
    let text = world.send_and_wait("hello").await.text;
    assert!(text.contains("/new"), "{text}");
}

/// A model whose summaries never end, and which answers everything else in one word.
fn endless() -> Arc<ScriptedProvider> {
    ScriptedProvider::new(|prompt: &Prompt| match prompt.system.starts_with("Summarize") {
        true => vec![ScriptStep::Say("word ".repeat(200)); 1_000],
        false => vec![ScriptStep::Say("yes".into())],
    })
}

#[tokio::test(start_paused = true)]
async fn endless_summaries_are_truncated_and_not_repeated_each_turn() {
    let model = endless();
    let world = World::with_provider(Arc::clone(&model) as _).await;
    let mut settings = world.ground.settings.clone();
    settings.default_context_window = 16_000;
    world.engine.reload_settings(settings);
    for n in 0..40 {
        let text = format!("message {n} {}", "word ".repeat(800));
        assert_eq!(world.send_and_wait(&text).await.text, "yes");
        let prompts = model.prompts();
        let last = prompts.last().unwrap();
        assert!(format!("{:?}", last.messages).contains(&format!("message {n} ")), "the newest is lost");
        assert!(size(last) < 16_000, "{n}: {}", size(last));
    }
    let folds = model.prompts().iter().filter(|prompt| prompt.system.starts_with("Summarize")).count();
    assert!((1..=15).contains(&folds), "{folds} summaries for 40 messages");
}
