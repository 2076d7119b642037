//! Secret redaction: masks known secret values in every encoding, and text that looks like a key of any owner.
//! Every sink calls it before it stores, logs or answers.
//!
//! It prevents accidental leaks. It cannot stop a program that is given a secret and disguises it (reversed, encrypted,
//! split into characters): such a program must not get the secret in the first place.

mod assignments;
mod encodings;
mod escape_finder;
mod field_names;
mod stream;
mod token_patterns;
mod token_scanner;
mod unescape;
mod url_credentials;
mod wrapped;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input};
use serde_json::Value;

pub use stream::RedactionStream;
pub use url_credentials::url_credentials;

use crate::agent::AgentSpec;
use crate::provider::{Prompt, PromptMessage};
use crate::tool::ToolCall;

/// Replaces a secret. Distinctive, so that a call that contains it is recognised and rejected.
pub const REDACTION_MARK: &str = "[redacted secret]";

/// Minimum length of a known secret. Shorter values occur in ordinary words.
pub const MIN_SECRET_BYTES: usize = 8;

/// Masks the secrets of an instance. Rebuilt when they change.
pub struct Redactor {
    values: Option<KnownValues>,
    patterns: token_scanner::TokenScanner,
}

/// The known values, each in all its encodings.
struct KnownValues {
    /// Sorted.
    forms: Vec<Vec<u8>>,
    /// Finds where a form may start. It contains only the first bytes of each form, so it is small and fast.
    beginnings: AhoCorasick,
    longest: usize,
    heads: escape_finder::EscapeFinder,
    /// First bytes of all forms.
    first: [bool; 256],
}

impl KnownValues {
    fn new(mut forms: Vec<Vec<u8>>) -> Option<Self> {
        forms.sort_unstable();
        forms.dedup();
        let longest = forms.iter().map(Vec::len).max()?;
        let mut first = [false; 256];
        forms.iter().filter_map(|form| form.first()).for_each(|byte| first[usize::from(*byte)] = true);
        let mut starts: Vec<&[u8]> = forms.iter().filter_map(|form| form.get(..MIN_SECRET_BYTES)).collect();
        starts.dedup();
        let beginnings = AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(starts);
        // This fails only for gigabytes of patterns.
        let heads = escape_finder::EscapeFinder::new(&forms);
        beginnings.ok().map(|beginnings| Self { forms, beginnings, longest, heads, first })
    }

    /// Returns the first form at or after `from`. If several start there, the longest.
    fn find_value(&self, text: &[u8], mut from: usize) -> Option<Range<usize>> {
        while let Some(opening) = self.beginnings.find(Input::new(text).span(from..text.len())) {
            let at = opening.start();
            if let Some(len) = self.longest_match(&text[at..]) {
                return Some(at..at + len);
            }
            from = at + 1;
        }
        None
    }

    /// Returns all forms in a text, with overlapping ones merged.
    fn find_plain(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut spans: Vec<Range<usize>> = Vec::new();
        let mut from = 0;
        while let Some(found) = self.find_value(text, from) {
            from = found.start + 1;
            match spans.last_mut() {
                Some(last) if found.start <= last.end => last.end = last.end.max(found.end),
                _ => spans.push(found),
            }
        }
        spans
    }

    fn longest_match(&self, text: &[u8]) -> Option<usize> {
        let start = text.get(..MIN_SECRET_BYTES)?;
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
        let forms = secrets.into_iter().flat_map(|one| encodings::secret_encodings(one.as_ref())).collect();
        Self { values: KnownValues::new(forms), patterns: token_scanner::TokenScanner::new() }
    }

    /// Masks known values and text that looks like a key.
    pub fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut spans = self.find_known(text);
        spans.extend(self.patterns.find_tokens(text));
        mask_spans(text, spans)
    }

    /// Masks only known values: for text that will be used, in which a model's own example key is no secret.
    pub fn redact_values<'a>(&self, text: &'a str) -> Cow<'a, str> {
        mask_spans(text, self.find_known(text))
    }

    pub fn contains_secret(&self, text: &str) -> bool {
        !self.find_known(text).is_empty()
    }

    pub fn redact_in_place(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.redact_text(text) {
            *text = clean;
        }
    }

    /// Masks all texts in a JSON value, keys included.
    pub fn redact_json(&self, value: &mut Value) {
        map_texts(value, &|text| self.redact_text(text));
    }

    /// Returns the call in the form that may be shown and stored.
    pub fn redact_call(&self, call: &ToolCall) -> ToolCall {
        let mut shown = call.clone();
        self.redact_json(&mut shown.arguments);
        self.redact_in_place(&mut shown.name);
        shown
    }

    /// Masks only known values, so that the call can still run with values that the model made up.
    pub fn redact_runnable_call(&self, call: &mut ToolCall) {
        self.redact_values_in(&mut call.arguments);
    }

    /// Masks only known values, in every text of a JSON value.
    pub fn redact_values_in(&self, value: &mut Value) {
        map_texts(value, &|text| self.redact_values(text));
    }

    /// Masks an agent spec for storage. The id is kept: its own syntax rules bound it.
    pub fn redact_spec(&self, spec: &mut AgentSpec) {
        self.redact_in_place(&mut spec.name);
        self.redact_in_place(&mut spec.description);
        spec.identity.name.iter_mut().for_each(|name| self.redact_in_place(name));
        spec.defaults.system_prompt.iter_mut().for_each(|prompt| self.redact_in_place(prompt));
    }

    /// Masks known values in a prompt. History was clean when it was stored, but a secret may have become known since.
    pub fn redact_prompt(&self, prompt: &mut Prompt) {
        if self.values.is_none() {
            return;
        }
        let clean = |text: &mut String| {
            if let Cow::Owned(clean) = self.redact_values(text) {
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
                    calls.iter_mut().for_each(|call| self.redact_runnable_call(call));
                }
            }
        }
    }

    /// Returns the spans of known values.
    fn find_known(&self, text: &str) -> Vec<Range<usize>> {
        let Some(values) = &self.values else { return Vec::new() };
        let mut spans = values.find_plain(text.as_bytes());
        spans.extend(values.find_escaped(text.as_bytes()));
        spans.extend(values.find_wrapped(text.as_bytes()));
        spans
    }
}

/// Maximum length of a quotation in an error message.
const MAX_QUOTE_CHARS: usize = 100;
/// Length of the tokens that we issue, in hex digits. Only their hashes are stored, so no redactor knows them.
pub const TOKEN_HEX_DIGITS: usize = 64;

/// Quotes user input for an error message. Long input is replaced by its length, because half of it could be an
/// unrecognisable half of a secret.
pub fn quote_safely(text: &str) -> String {
    let message_count = text.chars().count();
    if message_count > MAX_QUOTE_CHARS {
        return format!("{message_count} letters");
    }
    let runs = text.split(|c: char| !c.is_ascii_hexdigit());
    // In a path, the hex digits of an escape may precede the token.
    let tokens = runs.filter(|run| run.len() >= TOKEN_HEX_DIGITS);
    tokens.fold(text.to_owned(), |text, token| text.replace(token, REDACTION_MARK))
}

/// Returns whether a secret was masked in a call, so that it is no longer the call that was requested.
pub fn has_redaction_mark(call: &ToolCall) -> bool {
    fn contains_mark(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains(REDACTION_MARK),
            Value::Array(items) => items.iter().any(contains_mark),
            Value::Object(fields) => {
                fields.iter().any(|(key, value)| key.contains(REDACTION_MARK) || contains_mark(value))
            }
            _ => false,
        }
    }
    contains_mark(&call.arguments)
}

fn map_texts(value: &mut Value, clean: &dyn Fn(&str) -> Cow<'_, str>) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(new) = clean(text) {
                *text = new;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| map_texts(item, clean)),
        Value::Object(fields) => {
            if fields.keys().any(|key| matches!(clean(key), Cow::Owned(_))) {
                let old = std::mem::take(fields);
                fields.extend(old.into_iter().map(|(key, value)| (clean(&key).into_owned(), value)));
            }
            fields.iter_mut().for_each(|(_, field)| map_texts(field, clean));
        }
        _ => {}
    }
}

/// Replaces each span with a mark; adjacent spans share one mark.
fn mask_spans(text: &str, mut spans: Vec<Range<usize>>) -> Cow<'_, str> {
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    spans.sort_unstable_by_key(|span| span.start);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        let start = nearest_char_boundary(text, span.start, false);
        if start > at || at == 0 {
            out.push_str(&text[at.min(start)..start]);
            out.push_str(REDACTION_MARK);
        }
        at = at.max(nearest_char_boundary(text, span.end, true));
    }
    out.push_str(&text[at..]);
    Cow::Owned(out)
}

/// Returns the nearest character boundary: forms are bytes, and truncated base64 may end anywhere.
fn nearest_char_boundary(text: &str, mut at: usize, forward: bool) -> usize {
    while !text.is_char_boundary(at) {
        if forward { at += 1 } else { at -= 1 }
    }
    at
}

#[cfg(test)]
mod tests;
