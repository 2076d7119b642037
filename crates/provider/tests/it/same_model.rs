//! One file of weights behind two engines: the one inside, and llama.cpp's server over HTTP, which nobody here wrote.
//! What holds for one holds for the other. What the model says is never checked, only its shape.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use polyclaw_domain::port::WallClock;
use polyclaw_domain::provider::{
    ErrorClass, ModelProvider, ModelReply, ModelStatus, Prompt, PromptMessage, ProviderError, StreamDelta,
};
use polyclaw_provider::embedded::EmbeddedChat;
use polyclaw_provider::{ModelProviders, ModelProvidersSettings, ProviderSettings};

use crate::fixture::{ManualClock, refs, user, weights};
use crate::llama::{KEY, LlamaServer};

const ENGINES: [&str; 2] = ["embedded/smollm2-135m", "llama/smollm2"];

struct Both {
    models: ModelProviders,
    server: LlamaServer,
}

fn models(provider: ProviderSettings) -> ModelProviders {
    let embedded = Some(Arc::new(EmbeddedChat::new(weights())));
    let settings = ModelProvidersSettings { providers: vec![provider], embedded };
    ModelProviders::new(settings, Arc::new(ManualClock::default()) as Arc<dyn WallClock>).unwrap()
}

impl Both {
    fn start() -> Self {
        let server = LlamaServer::start();
        Self { models: models(server.settings().api_key(KEY)), server }
    }

    async fn ask(&self, model: &str, prompt: &Prompt) -> Result<(ModelReply, Vec<String>), ProviderError> {
        let pieces = Mutex::new(Vec::new());
        let sink = |delta| match delta {
            StreamDelta::Text(text) => pieces.lock().unwrap().push(text),
            other => panic!("{other:?}"),
        };
        let reply = self.models.stream_reply(&refs(&[model]), prompt, &sink).await?;
        Ok((reply, pieces.into_inner().unwrap()))
    }
}

#[tokio::test]
async fn text_is_streamed_and_tokens_are_counted() {
    let both = Both::start();
    let prompt = Prompt { system: "You are a helpful assistant.".to_owned(), ..user("Name three fruits.") };
    for model in ENGINES {
        let (reply, pieces) = both.ask(model, &prompt).await.unwrap();
        assert!(pieces.len() > 3, "{model}: {pieces:?}");
        assert_eq!(pieces.concat().trim(), reply.text.trim());
        assert_eq!(reply.model.to_string(), model);
        let usage = reply.usage;
        assert!(usage.input_tokens.unwrap() > 10 && usage.output_tokens.unwrap() > 3, "{model}: {usage:?}");
        assert!(
            reply.calls.is_empty() && !reply.truncated && !reply.text.contains("<|"),
            "{model}: {reply:?}"
        );
    }
}

#[tokio::test]
async fn length_limited_reply_is_marked_truncated() {
    let both = Both::start();
    let prompt = Prompt { max_tokens: Some(8), ..user("Tell me a long story about the sea.") };
    for model in ENGINES {
        let (reply, _) = both.ask(model, &prompt).await.unwrap();
        assert!(reply.truncated && !reply.text.is_empty(), "{model}: {reply:?}");
        assert_eq!(reply.usage.output_tokens, Some(8), "{model}");
    }
}

#[tokio::test]
async fn repeated_question_gets_same_answer_from_cache() {
    let both = Both::start();
    let prompt = Prompt { temperature: Some(0.0), max_tokens: Some(20), ..user("What is a ship?") };
    for model in ENGINES {
        let (first, _) = both.ask(model, &prompt).await.unwrap();
        let (again, _) = both.ask(model, &prompt).await.unwrap();
        assert_eq!(first.text, again.text, "{model}");
        assert_eq!(first.usage.input_tokens, again.usage.input_tokens, "{model}");
        let cached = again.usage.cached_tokens.unwrap();
        assert!(cached + 5 > again.usage.input_tokens.unwrap(), "{model}: {cached}");
    }
}

#[tokio::test]
async fn dropped_call_stops_generation() {
    let both = Both::start();
    let prompt = Prompt { max_tokens: Some(2000), ..user("Write a very long story about the sea.") };
    for model in ENGINES {
        let first = tokio::sync::Notify::new();
        let (candidates, sink) = (refs(&[model]), |_| first.notify_one());
        tokio::select! {
            reply = both.models.stream_reply(&candidates, &prompt, &sink) => panic!("a story in no time: {reply:?}"),
            () = first.notified() => {}
        }
        // Each answers one at a time: behind the whole story this would take half a minute.
        let began = Instant::now();
        both.ask(model, &Prompt { max_tokens: Some(1), ..user("Hi") }).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(20), "{model}: {:?}", began.elapsed());
    }
}

#[tokio::test]
async fn concurrent_questions_are_all_answered() {
    let both = Both::start();
    let prompt = Prompt { max_tokens: Some(3), ..user("Hi") };
    for model in ENGINES {
        let replies = futures_util::future::join_all((0..6).map(|_| both.ask(model, &prompt))).await;
        assert!(
            replies.iter().all(|reply| reply.as_ref().is_ok_and(|(reply, _)| !reply.text.is_empty())),
            "{model}"
        );
    }
}

#[tokio::test]
async fn follow_up_message_extends_the_conversation() {
    let both = Both::start();
    let mut prompt = Prompt { max_tokens: Some(12), ..user("My name is Alice.") };
    for model in ENGINES {
        let (reply, _) = both.ask(model, &prompt).await.unwrap();
        prompt.messages.push(PromptMessage::Assistant { text: reply.text, calls: Vec::new() });
        prompt.messages.push(PromptMessage::user_text("What is my name?"));
        let (longer, _) = both.ask(model, &prompt).await.unwrap();
        assert!(longer.usage.input_tokens > reply.usage.input_tokens, "{model}: {:?}", longer.usage);
    }
}

#[tokio::test]
async fn both_engines_are_listed_as_ready() {
    let both = Both::start();
    let listed = both.models.list_models().await;
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed.iter().all(|info| info.status == ModelStatus::Ready), "{listed:?}");
}

/// The engine inside cuts what is too long; a server refuses it, in words of its own.
#[tokio::test]
async fn server_refusals_are_classified() {
    let both = Both::start();
    let class = |error: ProviderError| error.class;
    let long = user(&"word ".repeat(6000));
    assert_eq!(
        both.ask("llama/smollm2", &long).await.map_err(class).unwrap_err(),
        ErrorClass::ContextTooLong
    );
    assert!(both.ask("embedded/smollm2-135m", &Prompt { max_tokens: Some(1), ..long }).await.is_ok());

    let stranger = models(both.server.settings().api_key("sk-of-another"));
    let refused = stranger.stream_reply(&refs(&["llama/smollm2"]), &user("hi"), &|_| {}).await.unwrap_err();
    assert_eq!(refused.class, ErrorClass::Auth);
    assert!(!refused.to_string().contains("sk-of-another"), "{refused}");
}

#[tokio::test]
async fn server_death_during_stream_is_unreachable() {
    let Both { models, server } = Both::start();
    let (candidates, prompt) = (refs(&["llama/smollm2"]), user("Write a very long story about the sea."));
    let server = Mutex::new(Some(server));
    let sink = |_| drop(server.lock().unwrap().take());
    let error = models.stream_reply(&candidates, &prompt, &sink).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unreachable, "{error}");
}
