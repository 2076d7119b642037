//! The engine with its real weights, compared with llama.cpp on the same file (`tests/outside/golden.py`).

use std::path::PathBuf;
use std::time::Instant;

use polyclaw_domain::provider::{Prompt, PromptMessage};
use serde::Deserialize;
use serde_json::Value;

use super::calls::{QUESTIONS, fits, four_tools};
use super::generate::{EmbeddedEngine, GenerationRequest, TemplateMessage};
use super::kernel::Kernel;
use super::profile;

pub fn model_file(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.tools/model").join(name);
    assert!(path.exists(), "{} is missing: `scripts/need.sh rust` fetches it", path.display());
    path
}

fn golden_engine(kernel: Kernel) -> EmbeddedEngine {
    EmbeddedEngine::read(std::fs::File::open(model_file("smollm2.gguf")).unwrap(), kernel).unwrap()
}

#[derive(Deserialize)]
pub struct GoldenTokens {
    pub text: String,
    pub tokens: Vec<u32>,
}

#[derive(Deserialize)]
struct GoldenSurprise {
    text: String,
    tokens: usize,
    nll: f64,
}

#[test]
fn tokens_match_llama_cpp() {
    let golden: Vec<GoldenTokens> =
        serde_json::from_str(include_str!("../../tests/golden/tokens.json")).unwrap();
    assert!(golden.len() >= 200);
    let engine = golden_engine(Kernel::Scalar);
    for GoldenTokens { text, tokens } in golden {
        assert_eq!(engine.tokenizer().encode(&text), tokens, "{text:?}");
    }
}

#[test]
fn surprise_matches_llama_cpp_on_both_kernels() {
    let golden: GoldenSurprise =
        serde_json::from_str(include_str!("../../tests/golden/surprise.json")).unwrap();
    let fast = golden_engine(Kernel::detect());
    assert_eq!(fast.count_tokens(&golden.text), golden.tokens);
    let began = Instant::now();
    let nll = fast.mean_surprise(&golden.text);
    println!("nll {nll:.5}, llama.cpp {:.5}, {:?}", golden.nll, began.elapsed());
    assert!((nll - golden.nll).abs() < 0.01 * golden.nll, "{nll} against {}", golden.nll);
    // The scalar kernel is slow, so only a part of the text is compared.
    let part = &golden.text[..300];
    let (fast, plain) = (fast.mean_surprise(part), golden_engine(Kernel::Scalar).mean_surprise(part));
    assert!((fast - plain).abs() < 0.002 * plain, "{fast} against {plain}");
}

#[test]
fn sampled_text_depends_only_on_seed() {
    let ask = |seed| GenerationRequest {
        lines: vec![TemplateMessage { role: "user", text: "Tell me about the sea.".to_owned() }],
        schema: None,
        temperature: 0.8,
        seed,
        most: 30,
    };
    let mut engine = golden_engine(Kernel::detect());
    let mut text = |seed| engine.generate(&ask(seed), &mut |_| {}, &|| true).unwrap().text;
    let (first, other, again) = (text(7), text(8), text(7));
    println!("{first}\n{other}");
    assert_eq!(first, again);
    assert_ne!(first, other, "it is drawn, not the likeliest text");
}

#[test]
fn warm_and_cold_model_give_same_answer() {
    let ask = GenerationRequest {
        lines: vec![TemplateMessage { role: "user", text: "Name three fruits.".to_owned() }],
        schema: None,
        temperature: 0.0,
        seed: 0,
        most: 40,
    };
    let mut warm = golden_engine(Kernel::detect());
    let mut answer = |ask: &GenerationRequest| warm.generate(ask, &mut |_| {}, &|| true).unwrap();
    let (first, again) = (answer(&ask), answer(&ask));
    println!("{}", first.text);
    assert_eq!(first.text, again.text);
    assert!(again.cached + 1 == again.input && first.text.len() > 10);
}

/// On its own the model answers most of them with a reply. The test removes that choice, so that each question becomes
/// a call.
#[test]
fn forced_tool_calls_match_their_schema() {
    let (mut engine, tools) = (golden_engine(Kernel::detect()), four_tools());
    let mut called: Vec<String> = Vec::new();
    for question in QUESTIONS {
        let messages = vec![PromptMessage::user_text(question)];
        let prompt = Prompt { messages, tools: tools.clone(), ..Prompt::default() };
        let mut ask = profile::build_generation_request(&prompt, &|text| engine.count_tokens(text));
        ask.schema.as_mut().unwrap()["anyOf"].as_array_mut().unwrap().remove(0);
        let answer = engine.generate(&ask, &mut |_| {}, &|| true).unwrap();
        let call: Value = serde_json::from_str(&answer.text).unwrap();
        let tool = tools.iter().find(|tool| call["tool"] == tool.name.as_str()).unwrap();
        assert!(fits(&call["arguments"], &tool.parameters), "{question}: {}", answer.text);
        assert!(answer.output <= 200, "{question}: {} tokens", answer.output);
        called.push(tool.name.clone());
    }
    called.sort();
    called.dedup();
    assert_eq!(called.len(), 4, "each tool is called: {called:?}");
}
