use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use polyclaw_domain::provider::{ModelInfo, ModelProvider, ModelStatus};
use polyclaw_provider::{ProviderSettings, ProviderVendor};

use crate::fixture::{Bench, user};

fn names(models: &[ModelInfo]) -> Vec<String> {
    models.iter().map(|info| info.model.to_string()).collect()
}

#[tokio::test]
async fn configured_models_are_listed_without_requests() {
    let bench = Bench::with(|_| {
        vec![
            ProviderSettings::new("z", ProviderVendor::OpenAi).api_key("k").models(["two", "one"]),
            ProviderSettings::new("a", ProviderVendor::Anthropic).api_key("k").models(["three"]),
            ProviderSettings::new("none", ProviderVendor::Gemini).api_key("k"),
        ]
    });
    assert_eq!(names(&bench.models.list_models().await), ["z/two", "z/one", "a/three"]);
}

#[tokio::test]
async fn local_model_list_is_cached_for_thirty_seconds() {
    let bench = Bench::with(|server| {
        vec![
            ProviderSettings::new("local", ProviderVendor::OpenAiCompatible).base_url(server.root_url()),
            ProviderSettings::new("ollama", ProviderVendor::Ollama).base_url(server.root_url()),
        ]
    });
    bench.server.set_models(["qwen3:8b"]);
    assert_eq!(names(&bench.models.list_models().await), ["local/qwen3:8b", "ollama/qwen3:8b"]);
    bench.server.set_models(["other"]);
    bench.clock.advance(29_999);
    assert_eq!(names(&bench.models.list_models().await), ["local/qwen3:8b", "ollama/qwen3:8b"]);
    bench.clock.advance(1);
    assert_eq!(names(&bench.models.list_models().await), ["local/other", "ollama/other"]);
}

#[tokio::test]
async fn stopped_local_server_is_listed_as_unreachable() {
    let Bench { server, clock, models } = Bench::with(|server| {
        vec![ProviderSettings::new("local", ProviderVendor::OpenAiCompatible).base_url(server.url())]
    });
    assert_eq!(models.list_models().await[0].status, ModelStatus::Ready);
    drop(server);
    clock.advance(30_000);
    let listed = models.list_models().await;
    assert_eq!(names(&listed), ["local/scripted"]);
    assert_eq!(listed[0].status, ModelStatus::Unreachable);
}

/// A server that is asked nothing when models are listed, because the config lists them.
#[tokio::test]
async fn unreachable_status_ends_when_server_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let is_back = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&is_back);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            if answers.load(Ordering::SeqCst) {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream
                    .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        }
    });
    let bench = Bench::with(|_| {
        vec![ProviderSettings::new("local", ProviderVendor::OpenAiCompatible).base_url(url).models(["m"])]
    });
    let status = async || bench.models.list_models().await[0].status;
    assert_eq!(status().await, ModelStatus::Ready, "nothing is known against it");
    bench.ask("local/m", &user("hi")).await.unwrap_err();
    assert_eq!(status().await, ModelStatus::Unreachable);
    is_back.store(true, Ordering::SeqCst);
    assert_eq!(status().await, ModelStatus::Ready);
}
