//! A completion as it is written.

use axum::response::Response;
use polyclaw_engine::TurnAnswer;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Head, Spent, called, finish_reason, usage};
use crate::error::Result;
use crate::follow::{Out, Tell, told};
use crate::openai;
use crate::openai::ask::{Asked, Calls, succeeded};
use crate::sse;

#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    model: &'a str,
    choices: &'a [Choice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    delta: Delta<'a>,
    logprobs: Option<()>,
    finish_reason: Option<&'static str>,
}

#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Value>,
}

struct Writer {
    head: Head,
    calls: Calls,
    wants_usage: bool,
    out: Out,
}

pub fn stream(head: Head, asked: Asked, wants_usage: bool) -> Response {
    let mut writer = Writer { head, calls: asked.calls, wants_usage, out: Out::new() };
    let first = Delta { role: Some("assistant"), content: Some(""), tool_calls: None };
    writer.push(first, None);
    told(asked.follow, writer)
}

impl Tell for Writer {
    fn text(&mut self, text: &str) {
        self.push(Delta { content: Some(text), ..Delta::default() }, None);
    }

    async fn end(&mut self, answer: Result<TurnAnswer>) {
        match answer.and_then(succeeded) {
            Ok(answer) => self.finish(&answer),
            Err(error) => {
                error.log();
                self.out.push_back(sse::data(&json!({ "error": openai::body(&error) })));
            }
        }
        self.out.push_back(sse::DONE);
    }

    fn out(&mut self) -> &mut Out {
        &mut self.out
    }
}

impl Writer {
    fn finish(&mut self, answer: &TurnAnswer) {
        let calls = self.calls.of(answer);
        if !calls.is_empty() {
            let indexed = calls.iter().enumerate().map(|(index, call)| {
                let mut shown = called(call);
                shown["index"] = json!(index);
                shown
            });
            self.push(Delta { tool_calls: Some(indexed.collect()), ..Delta::default() }, None);
        }
        self.push(Delta::default(), Some(finish_reason(answer, &calls)));
        if self.wants_usage {
            self.push_usage(usage(answer.usage));
        }
    }

    fn push(&mut self, delta: Delta<'_>, finish_reason: Option<&'static str>) {
        let choices = [Choice { index: 0, delta, logprobs: None, finish_reason }];
        let usage = self.wants_usage.then_some(Value::Null);
        let bytes = sse::data(&self.chunk(&choices, usage));
        self.out.push_back(bytes);
    }

    fn push_usage(&mut self, spent: Option<Spent>) {
        let bytes = sse::data(&self.chunk(&[], Some(json!(spent))));
        self.out.push_back(bytes);
    }

    fn chunk<'a>(&'a self, choices: &'a [Choice<'a>], usage: Option<Value>) -> Chunk<'a> {
        Chunk {
            id: &self.head.id,
            object: "chat.completion.chunk",
            created: self.head.created,
            model: &self.head.model,
            choices,
            usage,
        }
    }
}
