//! The model inside the program, through the port, on its real weights. What it says is never checked, only its shape.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use polyclaw_domain::port::WallClock;
use polyclaw_domain::provider::{
    ErrorClass, ModelProvider, ModelReply, ModelStatus, Prompt, PromptMessage, StreamDelta,
};
use polyclaw_domain::tool::ToolSpec;
use polyclaw_provider::embedded::EmbeddedChat;
use polyclaw_provider::{ModelProviders, ModelProvidersSettings};
use serde_json::json;

use crate::calls::{QUESTIONS, fits, four_tools};
use crate::fixture::{ManualClock, refs, user, weights};

const MODEL: &str = "embedded/smollm2-135m";

/// One loaded model for all tests of this process.
static CHAT: LazyLock<Arc<EmbeddedChat>> = LazyLock::new(|| Arc::new(EmbeddedChat::new(weights())));

fn models(chat: Arc<EmbeddedChat>) -> ModelProviders {
    let settings = ModelProvidersSettings { embedded: Some(chat), ..ModelProvidersSettings::default() };
    ModelProviders::new(settings, Arc::new(ManualClock::default()) as Arc<dyn WallClock>).unwrap()
}

async fn ask(prompt: &Prompt) -> (ModelReply, Vec<String>) {
    let deltas = Mutex::new(Vec::new());
    let sink = |delta| match delta {
        StreamDelta::Text(text) => deltas.lock().unwrap().push(text),
        other => panic!("{other:?}"),
    };
    let reply = models(Arc::clone(&CHAT)).stream_reply(&refs(&[MODEL]), prompt, &sink).await.unwrap();
    (reply, deltas.into_inner().unwrap())
}

#[tokio::test]
async fn repeated_question_gets_same_answer_from_cache() {
    let question = Prompt { max_tokens: Some(20), ..user("What is a ship?") };
    let (first, _) = ask(&question).await;
    let (again, _) = ask(&question).await;
    assert_eq!(first.text, again.text);
    assert_eq!(again.usage.cached_tokens.unwrap() + 1, again.usage.input_tokens.unwrap());
    let drawn = Prompt { temperature: Some(1.0), ..question };
    assert_eq!(ask(&drawn).await.0.text, ask(&drawn).await.0.text, "the conversation is the seed");
}

fn assert_well_formed(tools: &[Arc<ToolSpec>], reply: &ModelReply, pieces: &[String]) {
    let [call] = &reply.calls[..] else {
        assert!(reply.calls.is_empty() && !reply.text.is_empty(), "{reply:?}");
        assert_eq!(pieces.concat().trim(), reply.text);
        return;
    };
    assert!(pieces.is_empty(), "a call is not shown as text: {pieces:?}");
    let spec =
        tools.iter().find(|tool| tool.name == call.name).unwrap_or_else(|| panic!("no tool {}", call.name));
    assert!(fits(&call.arguments, &spec.parameters), "{call:?}");
}

#[tokio::test]
async fn answers_with_tools_are_well_formed() {
    let tools = four_tools();
    let mut called = 0;
    for question in QUESTIONS {
        let prompt = Prompt { tools: tools.clone(), ..user(question) };
        let (reply, pieces) = ask(&prompt).await;
        assert_well_formed(&tools, &reply, &pieces);
        assert!(reply.usage.output_tokens.unwrap() <= 200);
        called += reply.calls.len();
    }
    println!("{called} of 40 questions were answered by a call");
    assert!((1..40).contains(&called), "{called} calls: it can both call and reply");
}

#[tokio::test]
async fn tool_result_is_answered_in_text() {
    let (mut prompt, tools) = (user("Add 17 and 25."), four_tools());
    let call = polyclaw_domain::tool::ToolCall {
        id: "c".to_owned(),
        name: "add".to_owned(),
        arguments: json!({ "a": 17, "b": 25 }),
    };
    prompt.messages.push(PromptMessage::Assistant { text: String::new(), calls: vec![call] });
    let content = "42".to_owned();
    prompt.messages.push(PromptMessage::ToolResult {
        call_id: "c".to_owned(),
        name: "add".to_owned(),
        content,
        is_error: false,
    });
    prompt.tools = tools;
    let (reply, pieces) = ask(&prompt).await;
    assert!(reply.calls.is_empty() && !reply.text.is_empty() && !pieces.is_empty(), "{reply:?}");
}

#[tokio::test]
async fn warmed_up_prompt_prefix_is_cached() {
    let chat = Arc::new(EmbeddedChat::new(weights()));
    let opening = Prompt {
        system: "You are Ada, a helpful assistant.".to_owned(),
        tools: four_tools(),
        ..Prompt::default()
    };
    chat.warm_up(opening.clone()).await;
    let question = Prompt { messages: user("Hello!").messages, ..opening };
    let models = models(chat);
    let reply = models.stream_reply(&refs(&[MODEL]), &question, &|_| {}).await.unwrap();
    let (input, cached) = (reply.usage.input_tokens.unwrap(), reply.usage.cached_tokens.unwrap());
    assert!(cached > 100 && input - cached < 20, "{cached} of {input} tokens were known");
}

#[tokio::test]
async fn question_does_not_wait_for_warm_up() {
    let chat = Arc::new(EmbeddedChat::new(weights()));
    let long = Prompt { tools: four_tools(), system: "word ".repeat(80), ..Prompt::default() };
    let models = models(Arc::clone(&chat));
    let (refs, question) = (refs(&[MODEL]), Prompt { max_tokens: Some(1), ..user("Hi") });
    let asked = async {
        let reply = models.stream_reply(&refs, &question, &|_| {}).await.unwrap();
        assert!(reply.usage.input_tokens.unwrap() > 0);
    };
    // Both on one thread: the question comes second and is answered, the opening is left where it was.
    tokio::join!(chat.warm_up(long), asked);
}

#[tokio::test]
async fn dropped_call_stops_the_model_immediately() {
    let models = models(Arc::clone(&CHAT));
    let (candidates, prompt) = (refs(&[MODEL]), user("Write a very long story about the sea."));
    let pieces = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&pieces);
    let first = Arc::new(tokio::sync::Notify::new());
    let notify = Arc::clone(&first);
    let sink = move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        notify.notify_one();
    };
    {
        let call = models.stream_reply(&candidates, &prompt, &sink);
        tokio::select! {
            reply = call => panic!("a long story in no time: {reply:?}"),
            () = first.notified() => {}
        }
    }
    // The next question is answered by the same thread: it would wait for the whole story.
    let began = Instant::now();
    ask(&Prompt { max_tokens: Some(1), ..user("Hi") }).await;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(pieces.load(Ordering::SeqCst) < 20);
}

#[tokio::test]
async fn excess_questions_are_refused_with_retry_delay() {
    let models = models(Arc::clone(&CHAT));
    let (candidates, prompt) = (refs(&[MODEL]), Prompt { max_tokens: Some(2), ..user("Hi") });
    let sink = |_| {};
    let calls = (0..40).map(|_| models.stream_reply(&candidates, &prompt, &sink));
    let replies = futures_util::future::join_all(calls).await;
    let refused: Vec<_> = replies.iter().filter_map(|reply| reply.as_ref().err()).collect();
    assert!(!refused.is_empty() && refused.len() < 40, "{} of 40", refused.len());
    assert!(
        refused.iter().all(|error| error.class == ErrorClass::Overload && error.retry_after_ms.is_some())
    );
}

#[tokio::test]
async fn missing_or_broken_weights_report_model_pull() {
    let folder = std::env::temp_dir().join(format!("polyclaw-embedded-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let broken = folder.join("broken.gguf");
    std::fs::write(&broken, b"GGUF\x03\0\0\0 and nothing more").unwrap();
    let gone = (folder.join("gone.gguf"), ModelStatus::Unreachable, ModelStatus::Unreachable);
    for (path, before, after) in [gone, (broken.clone(), ModelStatus::Ready, ModelStatus::Damaged)] {
        let models = models(Arc::new(EmbeddedChat::new(path.clone())));
        assert_eq!(models.list_models().await[0].status, before, "nobody has tried yet");
        let error = models.stream_reply(&refs(&[MODEL]), &user("hi"), &|_| {}).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::NotConfigured);
        assert!(error.message.contains("polyclaw model pull"), "{error}");
        assert_eq!(models.list_models().await[0].status, after);
        if path == broken {
            std::fs::write(&path, b"another file").unwrap();
            assert_eq!(
                models.list_models().await[0].status,
                ModelStatus::Ready,
                "nothing is known of this one"
            );
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
