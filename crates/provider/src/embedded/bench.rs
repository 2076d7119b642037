//! Measures the speed of the chat model on this machine and how well it predicts a text, for `polyclaw model bench`.

use std::path::Path;
use std::time::Instant;

use polyclaw_domain::provider::{Prompt, PromptMessage};

use super::generate::{EmbeddedEngine, GenerationRequest, TemplateMessage};
use super::text::ReplyText;
use super::{CorruptModelFile, profile};

#[derive(Clone, Debug)]
pub struct ModelBenchReport {
    pub kernel: &'static str,
    pub load_seconds: f64,
    /// Time from a short question to the first token, with the model loaded.
    pub first_token_seconds: f64,
    /// Time to the first character of an agent's reply, with tools: once with a cold prompt prefix and once with a
    /// prefilled one.
    pub agent_cold_seconds: f64,
    pub agent_prepared_seconds: f64,
    pub agent_prompt_tokens: usize,
    /// Tokens of a long prompt processed per second.
    pub prompt_rate: f64,
    pub prompt_tokens: usize,
    /// Tokens generated per second.
    pub answer_rate: f64,
    pub answer_tokens: usize,
    /// Mean of -ln p over the tokens of the given text.
    pub surprise: f64,
}

/// `text` is the text to predict and part of the long prompt; `opening` is the prompt prefix of an agent.
pub fn measure_model(
    file: &Path,
    text: &str,
    opening: &Prompt,
) -> Result<ModelBenchReport, CorruptModelFile> {
    let began = Instant::now();
    let mut engine = EmbeddedEngine::open(file)?;
    let load_seconds = began.elapsed().as_secs_f64();
    let surprise = engine.mean_surprise(text);
    let first_token_seconds = time_answer(&mut engine, "Name three fruits.", 1).seconds;
    let long = text.repeat(1 + 512 / engine.count_tokens(text).max(1));
    let cut = long.char_indices().nth(2200).map_or(long.len(), |(at, _)| at);
    let prompt = time_answer(&mut engine, &long[..cut], 1);
    let story = time_answer(&mut engine, "Tell me a long story about a ship and its crew.", 128);
    let answer_rate = tokens_per_second(&story)?;
    // The cache holds another prompt, so the first question measures a cold prefix.
    let (agent_cold_seconds, agent_prompt_tokens) =
        time_to_first_char(&mut engine, opening, "Hello! Who are you?");
    let (agent_prepared_seconds, _) = time_to_first_char(&mut engine, opening, "What can you do for me?");
    Ok(ModelBenchReport {
        kernel: engine.kernel_name(),
        load_seconds,
        first_token_seconds,
        agent_cold_seconds,
        agent_prepared_seconds,
        agent_prompt_tokens,
        prompt_rate: prompt.input as f64 / prompt.first_token,
        prompt_tokens: prompt.input,
        answer_rate,
        answer_tokens: story.output,
        surprise,
    })
}

/// Returns the seconds to the first character shown to a person, and the token count of the prompt. If the answer is a
/// tool call, which shows no text, returns the seconds to its end.
fn time_to_first_char(engine: &mut EmbeddedEngine, opening: &Prompt, question: &str) -> (f64, usize) {
    let messages = vec![PromptMessage::user_text(question)];
    let prompt = Prompt { messages, max_tokens: Some(24), ..opening.clone() };
    let began = Instant::now();
    let ask = profile::build_generation_request(&prompt, &|text| engine.count_tokens(text));
    let (mut reply, mut first) = (ReplyText::starting_after(profile::REPLY_JSON_PREFIX), None);
    let mut text_of = |piece: &str| {
        if !reply.push(piece).is_empty() {
            first.get_or_insert(began.elapsed().as_secs_f64());
        }
    };
    let answer = engine.generate(&ask, &mut text_of, &|| true).unwrap_or_default();
    (first.unwrap_or_else(|| began.elapsed().as_secs_f64()), answer.input)
}

struct TimedAnswer {
    seconds: f64,
    first_token: f64,
    input: usize,
    output: usize,
}

/// Returns the tokens per second after the first token.
fn tokens_per_second(story: &TimedAnswer) -> Result<f64, CorruptModelFile> {
    match story.output {
        0 => Err(CorruptModelFile::new("the model generated no tokens")),
        1 => Err(CorruptModelFile::new("the model generated only one token")),
        tokens => Ok((tokens - 1) as f64 / (story.seconds - story.first_token).max(1e-9)),
    }
}

fn time_answer(engine: &mut EmbeddedEngine, question: &str, most: usize) -> TimedAnswer {
    let line = |role, text: &str| TemplateMessage { role, text: text.to_owned() };
    let lines = vec![line("system", "You are a helpful assistant."), line("user", question)];
    let ask = GenerationRequest { lines, schema: None, temperature: 0.0, seed: 0, most };
    let began = Instant::now();
    let mut first_token = None;
    let mut text_of = |_: &str| {
        first_token.get_or_insert(began.elapsed().as_secs_f64());
    };
    let answer = engine.generate(&ask, &mut text_of, &|| true).unwrap_or_default();
    let seconds = began.elapsed().as_secs_f64();
    TimedAnswer {
        seconds,
        first_token: first_token.unwrap_or(seconds),
        input: answer.input - answer.cached,
        output: answer.output,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bench_without_generated_tokens_is_an_error() {
        let story = |output| TimedAnswer { seconds: 3.0, first_token: 1.0, input: 9, output };
        let silent = tokens_per_second(&story(0)).unwrap_err();
        assert_eq!(silent.to_string(), "this model file cannot be used: the model generated no tokens");
        assert!(tokens_per_second(&story(1)).is_err());
        assert_eq!(tokens_per_second(&story(5)), Ok(2.0));
    }
}
