//! The generation loop: takes a prompt and produces tokens until the model, the schema or the limit ends the text.

use std::io::{Read, Seek};
use std::path::Path;

use serde_json::Value;

use super::cache::KvCache;
use super::constraint::{self, SchemaConstraint};
use super::gguf::Gguf;
use super::kernel::Kernel;
use super::llama::Llama;
use super::profile::MAX_PROMPT_TOKENS;
use super::sample::Sampler;
use super::text::Utf8Decoder;
use super::tokenizer::{Tokenizer, VocabToken};
use super::{CorruptModelFile, weights};

pub(super) struct EmbeddedEngine {
    tokenizer: Tokenizer,
    llama: Llama,
    cache: KvCache,
    marks: ChatMarkers,
}

/// The tokens around a message.
struct ChatMarkers {
    begin: VocabToken,
    end: VocabToken,
    /// End of a document. Ends the answer as well.
    stop: VocabToken,
}

/// A message in the model's chat template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TemplateMessage {
    pub role: &'static str,
    pub text: String,
}

pub(super) struct GenerationRequest {
    pub lines: Vec<TemplateMessage>,
    /// The schema of the answer; `None` for plain text.
    pub schema: Option<Value>,
    pub temperature: f32,
    pub seed: u64,
    pub most: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GeneratedAnswer {
    pub text: String,
    pub input: usize,
    pub cached: usize,
    pub output: usize,
    pub truncated: bool,
}

/// The reason why there is no complete answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GenerationError {
    Cancelled,
    Schema(String),
    /// The token count of a prompt that is too long.
    TooLong(usize),
}

impl EmbeddedEngine {
    pub fn open(path: &Path) -> Result<Self, CorruptModelFile> {
        Self::read(weights::open_pinned(path)?, Kernel::detect())
    }

    pub fn read<R: Read + Seek>(file: R, kernel: Kernel) -> Result<Self, CorruptModelFile> {
        let mut file = Gguf::open(file)?;
        let tokenizer = Tokenizer::read(&file)?;
        let marks = ChatMarkers {
            begin: tokenizer.special_token("<|im_start|>")?,
            end: tokenizer.special_token("<|im_end|>")?,
            stop: tokenizer.special_token("<|endoftext|>")?,
        };
        let llama = Llama::read(&mut file, kernel, tokenizer.len())?;
        let cache = llama.new_cache();
        Ok(Self { tokenizer, llama, cache, marks })
    }

    pub fn kernel_name(&self) -> &'static str {
        self.llama.kernel_name()
    }

    pub fn count_tokens(&self, text: &str) -> usize {
        self.tokenizer.encode(text).len()
    }

    #[cfg(test)]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Returns the mean of -ln p over the tokens of a text after the first: how badly the model predicts it.
    pub fn mean_surprise(&self, text: &str) -> f64 {
        let tokens = self.tokenizer.encode(text);
        let scores = self.llama.extend_each(&mut self.llama.new_cache(), &tokens);
        let cost = |scores: &Vec<f32>, next: VocabToken| {
            let largest = f64::from(scores.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            let total: f64 = scores.iter().map(|score| (f64::from(*score) - largest).exp()).sum();
            largest + total.ln() - f64::from(scores[next as usize])
        };
        let costs = scores.iter().zip(tokens.iter().skip(1)).map(|(scores, next)| cost(scores, *next));
        costs.sum::<f64>() / (tokens.len().max(2) - 1) as f64
    }

    /// Generates an answer. `text` receives each piece of text; `go_on` is checked before every token.
    pub fn generate(
        &mut self,
        ask: &GenerationRequest,
        text: &mut dyn FnMut(&str),
        go_on: &dyn Fn() -> bool,
    ) -> Result<GeneratedAnswer, GenerationError> {
        let mut constraint = match &ask.schema {
            Some(schema) => Some(self.compile_constraint(schema)?),
            None => None,
        };
        // A constrained answer gets at least as many tokens as its shortest form needs.
        let shortest = constraint.as_ref().map_or(0, |constraint| constraint.distance_to_end() as usize);
        let most = ask.most.max(shortest);
        let prompt = self.prompt_tokens(&ask.lines);
        if prompt.len() > MAX_PROMPT_TOKENS {
            return Err(GenerationError::TooLong(prompt.len()));
        }
        let cached = self.cache.reuse_prefix(&prompt);
        let mut answer = GeneratedAnswer { input: prompt.len(), cached, ..GeneratedAnswer::default() };
        let mut writing = AnswerWriter {
            sampler: Sampler::new(ask.temperature, ask.seed),
            text: Utf8Decoder::default(),
            answer: &mut answer,
            on_text: text,
        };
        let mut next = prompt[cached..].to_vec();
        loop {
            let forced =
                constraint.as_mut().map_or_else(Vec::new, |constraint| self.forced_tokens(constraint));
            for token in &forced {
                writing.write_token(*token, self.tokenizer.token_bytes(*token));
            }
            next.extend(forced);
            if constraint.as_ref().is_some_and(SchemaConstraint::is_over) {
                break;
            }
            if writing.answer.output >= most {
                writing.answer.truncated = true;
                break;
            }
            let Some(mut scores) = self.llama.extend(&mut self.cache, &next, go_on) else {
                return Err(GenerationError::Cancelled);
            };
            let room = u32::try_from(most - writing.answer.output - 1).unwrap_or(u32::MAX);
            // Picking under a constraint can take long, so a cancelled request stops here too.
            let picked = writing.sampler.pick_token(&mut scores, &mut |token| {
                go_on() && self.allows_token(constraint.as_ref(), token, room)
            });
            if !go_on() {
                return Err(GenerationError::Cancelled);
            }
            let Some(token) = picked.filter(|token| ![self.marks.end, self.marks.stop].contains(token))
            else {
                break;
            };
            let bytes = self.tokenizer.token_bytes(token);
            if let Some(constraint) = &mut constraint {
                bytes.iter().for_each(|byte| {
                    constraint.advance_byte(*byte);
                });
                // Near the limit the text is completed early.
                writing.answer.truncated |= constraint.distance_to_end() >= room && !constraint.is_over();
            }
            writing.write_token(token, bytes);
            next = vec![token];
        }
        writing.finish();
        Ok(answer)
    }

    fn allows_token(&self, constraint: Option<&SchemaConstraint>, token: VocabToken, room: u32) -> bool {
        let bytes = self.tokenizer.token_bytes(token);
        match constraint {
            // Other special tokens would add no text.
            _ if bytes.is_empty() => {
                let ends = [self.marks.end, self.marks.stop].contains(&token);
                ends && constraint.is_none_or(SchemaConstraint::is_complete)
            }
            Some(constraint) => constraint.allows_bytes(bytes, room),
            None => true,
        }
    }

    fn compile_constraint(&self, schema: &Value) -> Result<SchemaConstraint, GenerationError> {
        let writable = |byte| self.tokenizer.byte_token(byte).is_some();
        constraint::compile_schema(schema, &writable)
            .map_err(|error| GenerationError::Schema(error.to_string()))
    }

    /// Advances the constraint over the bytes that must come next and returns their tokens, without running the model.
    fn forced_tokens(&self, constraint: &mut SchemaConstraint) -> Vec<VocabToken> {
        let bytes = constraint.forced_bytes();
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        text.bytes().for_each(|byte| {
            constraint.advance_byte(byte);
        });
        self.tokenizer.encode(text)
    }

    /// Fills the cache with the start of a conversation, so that its first answer comes sooner. If `go_on` returns
    /// false, the part done so far is kept.
    pub fn prefill(&mut self, lines: &[TemplateMessage], go_on: &dyn Fn() -> bool) {
        let tokens = self.template_tokens(lines);
        let cached = self.cache.reuse_prefix(&tokens);
        self.llama.extend(&mut self.cache, &tokens[cached..], go_on);
    }

    /// Returns the tokens of the conversation in the model's template, up to the start of the answer.
    fn prompt_tokens(&self, lines: &[TemplateMessage]) -> Vec<VocabToken> {
        let mut tokens = self.template_tokens(lines);
        tokens.push(self.marks.begin);
        tokens.extend(self.tokenizer.encode("assistant\n"));
        tokens
    }

    fn template_tokens(&self, lines: &[TemplateMessage]) -> Vec<VocabToken> {
        let mut tokens = Vec::new();
        for line in lines {
            tokens.push(self.marks.begin);
            tokens.extend(self.tokenizer.encode(&format!("{}\n{}", line.role, line.text)));
            tokens.push(self.marks.end);
            tokens.extend(self.tokenizer.encode("\n"));
        }
        tokens
    }
}

/// Writes the answer as it is generated.
struct AnswerWriter<'a> {
    sampler: Sampler,
    text: Utf8Decoder,
    answer: &'a mut GeneratedAnswer,
    on_text: &'a mut dyn FnMut(&str),
}

impl AnswerWriter<'_> {
    fn write_token(&mut self, token: VocabToken, bytes: &[u8]) {
        self.sampler.record_token(token);
        self.answer.output += 1;
        let piece = self.text.push(bytes);
        self.emit_text(&piece);
    }

    fn finish(mut self) {
        let rest = self.text.finish();
        self.emit_text(&rest);
    }

    fn emit_text(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.answer.text.push_str(piece);
            (self.on_text)(piece);
        }
    }
}

#[cfg(test)]
mod tests;
