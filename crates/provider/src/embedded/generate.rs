//! The loop that writes: a prompt goes in, tokens come out one by one until the model, the schema or the limit ends
//! the text.

use std::io::{Read, Seek};
use std::path::Path;

use serde_json::Value;

use super::cache::Cache;
use super::constraint::{self, Constraint};
use super::gguf::Gguf;
use super::kernel::Kernel;
use super::llama::Llama;
use super::profile::LONGEST_PROMPT;
use super::sample::Sampler;
use super::text::Utf8;
use super::tokenizer::{Token, Tokenizer};
use super::{Damaged, weights};

pub(super) struct Engine {
    tokenizer: Tokenizer,
    llama: Llama,
    cache: Cache,
    marks: Marks,
}

/// The tokens around a message.
struct Marks {
    begin: Token,
    end: Token,
    /// Ends a document; a model that writes it is done as well.
    stop: Token,
}

/// One message of a conversation, in the words of the model's template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub role: &'static str,
    pub text: String,
}

pub(super) struct Ask {
    pub lines: Vec<Line>,
    /// What the answer must fit; `None` for plain text.
    pub schema: Option<Value>,
    pub temperature: f32,
    pub seed: u64,
    pub most: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub text: String,
    pub input: usize,
    pub cached: usize,
    pub output: usize,
    pub truncated: bool,
}

/// Why there is no whole answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Broken {
    Cancelled,
    Schema(String),
    /// The prompt has so many tokens.
    TooLong(usize),
}

impl Engine {
    pub fn open(path: &Path) -> Result<Self, Damaged> {
        Self::read(weights::open_pinned(path)?, Kernel::detect())
    }

    pub fn read<R: Read + Seek>(file: R, kernel: Kernel) -> Result<Self, Damaged> {
        let mut file = Gguf::open(file)?;
        let tokenizer = Tokenizer::read(&file)?;
        let marks = Marks {
            begin: tokenizer.special("<|im_start|>")?,
            end: tokenizer.special("<|im_end|>")?,
            stop: tokenizer.special("<|endoftext|>")?,
        };
        let llama = Llama::read(&mut file, kernel, tokenizer.len())?;
        let cache = llama.cache();
        Ok(Self { tokenizer, llama, cache, marks })
    }

    pub fn kernel(&self) -> &'static str {
        self.llama.kernel()
    }

    pub fn count(&self, text: &str) -> usize {
        self.tokenizer.encode(text).len()
    }

    #[cfg(test)]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// How badly the model foresees a text: the mean of -ln p over its tokens after the first.
    pub fn surprise(&self, text: &str) -> f64 {
        let tokens = self.tokenizer.encode(text);
        let scores = self.llama.extend_each(&mut self.llama.cache(), &tokens);
        let cost = |scores: &Vec<f32>, next: Token| {
            let largest = f64::from(scores.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            let total: f64 = scores.iter().map(|score| (f64::from(*score) - largest).exp()).sum();
            largest + total.ln() - f64::from(scores[next as usize])
        };
        let costs = scores.iter().zip(tokens.iter().skip(1)).map(|(scores, next)| cost(scores, *next));
        costs.sum::<f64>() / (tokens.len().max(2) - 1) as f64
    }

    /// Writes an answer. `said` gets each piece of text as it comes; `go_on` is asked before every token.
    pub fn answer(
        &mut self,
        ask: &Ask,
        said: &mut dyn FnMut(&str),
        go_on: &dyn Fn() -> bool,
    ) -> Result<Told, Broken> {
        let mut constraint = match &ask.schema {
            Some(schema) => Some(self.constraint(schema)?),
            None => None,
        };
        // However short it is wanted, an answer that must have a form needs room for it.
        let shortest = constraint.as_ref().map_or(0, |constraint| constraint.distance() as usize);
        let most = ask.most.max(shortest);
        let prompt = self.prompt(&ask.lines);
        if prompt.len() > LONGEST_PROMPT {
            return Err(Broken::TooLong(prompt.len()));
        }
        let cached = self.cache.reuse(&prompt);
        let mut told = Told { input: prompt.len(), cached, ..Told::default() };
        let mut writing = Writing {
            sampler: Sampler::new(ask.temperature, ask.seed),
            text: Utf8::default(),
            told: &mut told,
            said,
        };
        let mut next = prompt[cached..].to_vec();
        loop {
            let forced = constraint.as_mut().map_or_else(Vec::new, |constraint| self.forced(constraint));
            for token in &forced {
                writing.write(*token, self.tokenizer.bytes(*token));
            }
            next.extend(forced);
            if constraint.as_ref().is_some_and(Constraint::is_over) {
                break;
            }
            if writing.told.output >= most {
                writing.told.truncated = true;
                break;
            }
            let Some(mut scores) = self.llama.extend(&mut self.cache, &next, go_on) else {
                return Err(Broken::Cancelled);
            };
            let room = u32::try_from(most - writing.told.output - 1).unwrap_or(u32::MAX);
            // Far from every rule a choice can take long: whoever went away is not chosen for.
            let picked = writing
                .sampler
                .pick(&mut scores, &mut |token| go_on() && self.allows(constraint.as_ref(), token, room));
            if !go_on() {
                return Err(Broken::Cancelled);
            }
            let Some(token) = picked.filter(|token| ![self.marks.end, self.marks.stop].contains(token))
            else {
                break;
            };
            let bytes = self.tokenizer.bytes(token);
            if let Some(constraint) = &mut constraint {
                bytes.iter().for_each(|byte| {
                    constraint.step(*byte);
                });
                // Near its limit a text is brought to its end, whatever it still wanted to say.
                writing.told.truncated |= constraint.distance() >= room && !constraint.is_over();
            }
            writing.write(token, bytes);
            next = vec![token];
        }
        writing.finish();
        Ok(told)
    }

    fn allows(&self, constraint: Option<&Constraint>, token: Token, room: u32) -> bool {
        let bytes = self.tokenizer.bytes(token);
        match constraint {
            // Every other special token would be shown as nothing.
            _ if bytes.is_empty() => {
                let ends = [self.marks.end, self.marks.stop].contains(&token);
                ends && constraint.is_none_or(Constraint::is_complete)
            }
            Some(constraint) => constraint.allows(bytes, room),
            None => true,
        }
    }

    fn constraint(&self, schema: &Value) -> Result<Constraint, Broken> {
        let writable = |byte| self.tokenizer.byte(byte).is_some();
        constraint::graph(schema, &writable).map_err(|error| Broken::Schema(error.to_string()))
    }

    /// What must come next anyway is not asked for token by token: the constraint takes it, and it is returned.
    fn forced(&self, constraint: &mut Constraint) -> Vec<Token> {
        let bytes = constraint.forced();
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        text.bytes().for_each(|byte| {
            constraint.step(byte);
        });
        self.tokenizer.encode(text)
    }

    /// Takes in what a conversation begins with, so that its first answer comes sooner. Where `go_on` says no, what is
    /// done so far is kept all the same.
    pub fn prepare(&mut self, lines: &[Line], go_on: &dyn Fn() -> bool) {
        let tokens = self.spoken(lines);
        let cached = self.cache.reuse(&tokens);
        self.llama.extend(&mut self.cache, &tokens[cached..], go_on);
    }

    /// The conversation in the model's template, up to where its answer begins.
    fn prompt(&self, lines: &[Line]) -> Vec<Token> {
        let mut tokens = self.spoken(lines);
        tokens.push(self.marks.begin);
        tokens.extend(self.tokenizer.encode("assistant\n"));
        tokens
    }

    fn spoken(&self, lines: &[Line]) -> Vec<Token> {
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

/// An answer on its way out.
struct Writing<'a> {
    sampler: Sampler,
    text: Utf8,
    told: &'a mut Told,
    said: &'a mut dyn FnMut(&str),
}

impl Writing<'_> {
    fn write(&mut self, token: Token, bytes: &[u8]) {
        self.sampler.note(token);
        self.told.output += 1;
        let piece = self.text.push(bytes);
        self.say(&piece);
    }

    fn finish(mut self) {
        let rest = self.text.finish();
        self.say(&rest);
    }

    fn say(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.told.text.push_str(piece);
            (self.said)(piece);
        }
    }
}

#[cfg(test)]
mod tests;
