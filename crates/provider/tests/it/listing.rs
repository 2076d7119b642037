use polyclaw_domain::provider::{ModelInfo, ModelStatus, Provider};
use polyclaw_provider::{Kind, ProviderSettings};

use crate::fixture::Bench;

fn names(models: &[ModelInfo]) -> Vec<String> {
    models.iter().map(|info| info.model.to_string()).collect()
}

#[tokio::test]
async fn configured_models_are_listed_in_order_without_a_question() {
    let bench = Bench::with(|_| {
        vec![
            ProviderSettings::new("z", Kind::OpenAi).api_key("k").models(["two", "one"]),
            ProviderSettings::new("a", Kind::Anthropic).api_key("k").models(["three"]),
            ProviderSettings::new("none", Kind::Gemini).api_key("k"),
        ]
    });
    assert_eq!(names(&bench.models.models().await), ["z/two", "z/one", "a/three"]);
}

#[tokio::test]
async fn a_local_server_is_asked_and_its_answer_kept_for_half_a_minute() {
    let bench = Bench::with(|server| {
        vec![
            ProviderSettings::new("local", Kind::OpenAiCompatible).base_url(server.root()),
            ProviderSettings::new("ollama", Kind::Ollama).base_url(server.root()),
        ]
    });
    bench.server.set_models(["qwen3:8b"]);
    assert_eq!(names(&bench.models.models().await), ["local/qwen3:8b", "ollama/qwen3:8b"]);
    bench.server.set_models(["other"]);
    bench.clock.advance(29_999);
    assert_eq!(names(&bench.models.models().await), ["local/qwen3:8b", "ollama/qwen3:8b"]);
    bench.clock.advance(1);
    assert_eq!(names(&bench.models.models().await), ["local/other", "ollama/other"]);
}

#[tokio::test]
async fn a_server_that_went_away_is_shown_as_unreachable() {
    let Bench { server, clock, models } = Bench::with(|server| {
        vec![ProviderSettings::new("local", Kind::OpenAiCompatible).base_url(server.url())]
    });
    assert_eq!(models.models().await[0].status, ModelStatus::Ready);
    drop(server);
    clock.advance(30_000);
    let listed = models.models().await;
    assert_eq!(names(&listed), ["local/scripted"]);
    assert_eq!(listed[0].status, ModelStatus::Unreachable);
}
