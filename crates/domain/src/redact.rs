//! What must not be seen: known secret values in every shape they travel in, and text that looks like a key whoever
//! it belongs to. Every sink passes through here before it stores, logs or answers.
//!
//! It keeps accidents from becoming leaks. A program that is given a secret and wants to hide it (reversed, encrypted,
//! letter by letter) is not stopped by it: what must not leak is not given to begin with.

mod address;
mod assigned;
mod escape;
mod forms;
mod heads;
mod named;
mod pattern;
mod peel;
mod stream;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input};
use serde_json::Value;

pub use address::credentials;
pub use stream::Stream;

use crate::agent::AgentSpec;
use crate::provider::{Prompt, PromptMessage};
use crate::tool::ToolCall;

/// What stands where a secret was. Distinct, so that it is known again: a call that holds it can not be run.
pub const MARK: &str = "[redacted secret]";

/// Shorter values are not looked for: they are part of ordinary words.
pub const SHORTEST: usize = 8;

/// Knows the secrets of an instance. Made anew when they change.
pub struct Redactor {
    values: Option<Values>,
    patterns: pattern::Patterns,
}

/// The known values, each in all its forms.
struct Values {
    /// Sorted.
    forms: Vec<Vec<u8>>,
    /// Finds where one may begin: it knows the first bytes only, and is small and fast for it.
    beginnings: AhoCorasick,
    longest: usize,
    heads: escape::Heads,
    /// Which bytes a form begins with.
    first: [bool; 256],
}

impl Values {
    fn new(mut forms: Vec<Vec<u8>>) -> Option<Self> {
        forms.sort_unstable();
        forms.dedup();
        let longest = forms.iter().map(Vec::len).max()?;
        let mut first = [false; 256];
        forms.iter().filter_map(|form| form.first()).for_each(|byte| first[usize::from(*byte)] = true);
        let mut starts: Vec<&[u8]> = forms.iter().filter_map(|form| form.get(..SHORTEST)).collect();
        starts.dedup();
        let beginnings = AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(starts);
        // It fails only where patterns are gigabytes.
        let heads = escape::Heads::new(&forms);
        beginnings.ok().map(|beginnings| Self { forms, beginnings, longest, heads, first })
    }

    /// The first form in a text from some place on, the longest where several begin together.
    fn find(&self, text: &[u8], mut from: usize) -> Option<Range<usize>> {
        while let Some(begun) = self.beginnings.find(Input::new(text).span(from..text.len())) {
            let at = begun.start();
            if let Some(len) = self.longest_at(&text[at..]) {
                return Some(at..at + len);
            }
            from = at + 1;
        }
        None
    }

    /// All forms in a text, the overlapping ones as one.
    fn plain_in(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut spans: Vec<Range<usize>> = Vec::new();
        let mut from = 0;
        while let Some(found) = self.find(text, from) {
            from = found.start + 1;
            match spans.last_mut() {
                Some(last) if found.start <= last.end => last.end = last.end.max(found.end),
                _ => spans.push(found),
            }
        }
        spans
    }

    fn longest_at(&self, text: &[u8]) -> Option<usize> {
        let start = text.get(..SHORTEST)?;
        let at = self.forms.partition_point(|form| form.as_slice() < start);
        let near = self.forms[at..].iter().take_while(|form| form.starts_with(start));
        near.filter(|form| text.starts_with(form)).map(Vec::len).max()
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} forms)", self.values.as_ref().map_or(0, |values| values.forms.len()))
    }
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new::<&str>([])
    }
}

impl Redactor {
    pub fn new<T: AsRef<str>>(secrets: impl IntoIterator<Item = T>) -> Self {
        let forms = secrets.into_iter().flat_map(|one| forms::of(one.as_ref())).collect();
        Self { values: Values::new(forms), patterns: pattern::Patterns::new() }
    }

    /// Known values and what looks like a key.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut spans = self.known(text);
        spans.extend(self.patterns.find(text));
        covered(text, spans)
    }

    /// Known values alone: for text that is about to be used, where an example key of a model's own is no secret.
    pub fn values<'a>(&self, text: &'a str) -> Cow<'a, str> {
        covered(text, self.known(text))
    }

    pub fn has_value(&self, text: &str) -> bool {
        !self.known(text).is_empty()
    }

    pub fn string(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.text(text) {
            *text = clean;
        }
    }

    /// Every text in it, keys included.
    pub fn json(&self, value: &mut Value) {
        each_text(value, &|text| self.text(text));
    }

    /// A call as it may be shown and stored.
    pub fn call(&self, call: &ToolCall) -> ToolCall {
        let mut shown = call.clone();
        self.json(&mut shown.arguments);
        self.string(&mut shown.name);
        shown
    }

    /// A call as it may be run: nothing a model made up is changed, what it can not know is.
    pub fn runnable(&self, call: &mut ToolCall) {
        self.values_in(&mut call.arguments);
    }

    /// Known values alone, in every text of it.
    pub fn values_in(&self, value: &mut Value) {
        each_text(value, &|text| self.values(text));
    }

    /// An agent as it may be stored. Its id stays: it is a word by rules of its own.
    pub fn spec(&self, spec: &mut AgentSpec) {
        self.string(&mut spec.name);
        self.string(&mut spec.description);
        spec.identity.name.iter_mut().for_each(|name| self.string(name));
        spec.defaults.system_prompt.iter_mut().for_each(|prompt| self.string(prompt));
    }

    /// What a model is shown. Its history was clean when it was stored; a secret may have become known since.
    pub fn prompt(&self, prompt: &mut Prompt) {
        if self.values.is_none() {
            return;
        }
        let clean = |text: &mut String| {
            if let Cow::Owned(clean) = self.values(text) {
                *text = clean;
            }
        };
        clean(&mut prompt.system);
        for message in &mut prompt.messages {
            match message {
                PromptMessage::User { text, .. } => clean(text),
                PromptMessage::ToolResult { content, .. } => clean(content),
                PromptMessage::Assistant { text, calls } => {
                    clean(text);
                    calls.iter_mut().for_each(|call| self.runnable(call));
                }
            }
        }
    }

    /// Where known values are.
    fn known(&self, text: &str) -> Vec<Range<usize>> {
        let Some(values) = &self.values else { return Vec::new() };
        let mut spans = values.plain_in(text.as_bytes());
        spans.extend(values.escaped_in(text.as_bytes()));
        spans
    }
}

/// Longest word that a refusal says back.
const LONGEST_QUOTE: usize = 100;
/// Tokens we give out are that many hexadecimal digits. They are kept as hashes, so no redactor knows them.
pub const TOKEN_DIGITS: usize = 64;

/// What somebody asked for, as a refusal may say it back. Half of something long may be half of a secret, which nobody
/// would know for one.
pub fn quoted(text: &str) -> String {
    let letters = text.chars().count();
    if letters > LONGEST_QUOTE {
        return format!("{letters} letters");
    }
    let runs = text.split(|c: char| !c.is_ascii_hexdigit());
    // In a path the digits of an escape may stand before it.
    let tokens = runs.filter(|run| run.len() >= TOKEN_DIGITS);
    tokens.fold(text.to_owned(), |text, token| text.replace(token, MARK))
}

/// Whether something in a call was taken out: what is left is not what was asked for.
pub fn is_marked(call: &ToolCall) -> bool {
    fn look(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains(MARK),
            Value::Array(items) => items.iter().any(look),
            Value::Object(fields) => fields.iter().any(|(key, value)| key.contains(MARK) || look(value)),
            _ => false,
        }
    }
    look(&call.arguments)
}

fn each_text(value: &mut Value, clean: &dyn Fn(&str) -> Cow<'_, str>) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(new) = clean(text) {
                *text = new;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, clean)),
        Value::Object(fields) => {
            if fields.keys().any(|key| matches!(clean(key), Cow::Owned(_))) {
                let old = std::mem::take(fields);
                fields.extend(old.into_iter().map(|(key, value)| (clean(&key).into_owned(), value)));
            }
            fields.iter_mut().for_each(|(_, field)| each_text(field, clean));
        }
        _ => {}
    }
}

/// The text with each span replaced; spans that touch become one mark.
fn covered(text: &str, mut spans: Vec<Range<usize>>) -> Cow<'_, str> {
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    spans.sort_unstable_by_key(|span| span.start);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        let start = whole(text, span.start, false);
        if start > at || at == 0 {
            out.push_str(&text[at.min(start)..start]);
            out.push_str(MARK);
        }
        at = at.max(whole(text, span.end, true));
    }
    out.push_str(&text[at..]);
    Cow::Owned(out)
}

/// The nearest place between two letters: forms are bytes, and cut base64 may end anywhere.
fn whole(text: &str, mut at: usize, forward: bool) -> usize {
    while !text.is_char_boundary(at) {
        if forward { at += 1 } else { at -= 1 }
    }
    at
}

#[cfg(test)]
mod tests;
