//! `POST /v1/chat/completions`.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use polyclaw_domain::provider::TokenUsage;
use polyclaw_domain::tool::ToolCall;
use polyclaw_engine::TurnAnswer;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::access::May;
use crate::error::{Error, Result};
use crate::extract::{Body, MAX_MESSAGE};
use crate::openai::ask::{Question, ask, succeeded};
use crate::openai::content::{Content, Conversation, Function, call};
use crate::openai::repeat::Repeat;
use crate::state::AppState;

mod chunks;

/// What is read of a request; the rest (temperature and the like) is the agent's own business. `docs/guide/openai.md`
/// says so.
#[derive(Deserialize)]
pub struct Request {
    model: String,
    messages: Vec<Message>,
    #[serde(default)]
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    tools: Option<Vec<Tool>>,
    user: Option<String>,
    n: Option<u32>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct Tool {
    #[serde(rename = "type")]
    kind: String,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Content,
    tool_calls: Option<Vec<Called>>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct Called {
    id: String,
    function: CalledFunction,
}

#[derive(Deserialize)]
struct CalledFunction {
    name: String,
    #[serde(default)]
    arguments: String,
}

pub async fn complete(
    State(app): State<AppState>,
    headers: HeaderMap,
    Body(request): Body<Request, MAX_MESSAGE>,
) -> Result<Response> {
    if request.n.is_some_and(|n| n != 1) {
        return Err(Error::invalid("n", "only one answer is given"));
    }
    if request.max_completion_tokens.or(request.max_tokens) == Some(0) {
        return Err(Error::invalid("max_tokens", "at least 1"));
    }
    let streams = request.stream.unwrap_or(false);
    let wants_usage = request.stream_options.as_ref().and_then(|options| options.include_usage);
    let created = app.engine.now().0 / 1000;
    let model = request.model.clone();
    let asked = ask(&app, question(request, &headers)?).await?;
    let id = format!("chatcmpl-{}", asked.accepted.turn_id);
    let head = Head { id, created, model };
    if streams {
        return Ok(chunks::stream(head, asked, wants_usage.unwrap_or(false)));
    }
    let answer = succeeded(asked.follow.answer().await?)?;
    let calls = asked.calls.of(&answer);
    Ok(Json(completion(&head, answer, &calls)).into_response())
}

/// What every answer to one request says of itself.
pub struct Head {
    pub id: String,
    pub created: i64,
    pub model: String,
}

fn question(request: Request, headers: &HeaderMap) -> Result<Question> {
    let mut tools = Vec::new();
    for tool in request.tools.unwrap_or_default() {
        match (tool.kind.as_str(), tool.function) {
            ("function", Some(function)) => tools.push(function),
            (kind, _) => return Err(Error::invalid("tools", format!("type '{kind}' is not taken"))),
        }
    }
    Ok(Question {
        by: May::of(headers),
        model: request.model,
        user: request.user.filter(|user| !user.is_empty()),
        conversation: conversation(request.messages)?,
        tools,
        continues: None,
        repeat: Repeat::of(headers),
        max_tokens: request.max_completion_tokens.or(request.max_tokens),
    })
}

fn conversation(messages: Vec<Message>) -> Result<Conversation> {
    let mut talk = Conversation::default();
    for message in messages {
        if message.role == "user" {
            talk.say(message.content.said()?);
            continue;
        }
        let text = message.content.text()?;
        match message.role.as_str() {
            "system" | "developer" => talk.instruct(text),
            "assistant" => {
                let calls = message.tool_calls.unwrap_or_default().into_iter();
                let calls = calls.map(|made| call(made.id, made.function.name, &made.function.arguments));
                talk.reply(text, calls.collect());
            }
            "tool" => {
                let id = message.tool_call_id;
                let id = id.ok_or_else(|| Error::InvalidBody("a tool message needs tool_call_id".into()))?;
                talk.result(id, text);
            }
            role => return Err(Error::invalid("role", format!("'{role}' is not a role"))),
        }
    }
    Ok(talk)
}

fn completion(head: &Head, answer: TurnAnswer, calls: &[ToolCall]) -> Value {
    let (usage, reason) = (usage(answer.usage), finish_reason(&answer, calls));
    let text = answer.text;
    let mut message = json!({ "role": "assistant", "content": text, "refusal": null });
    if !calls.is_empty() {
        message["content"] = if text.is_empty() { Value::Null } else { Value::String(text) };
        message["tool_calls"] = calls.iter().map(called).collect();
    }
    json!({
        "id": head.id,
        "object": "chat.completion",
        "created": head.created,
        "model": head.model,
        "choices": [{
            "index": 0, "message": message, "logprobs": null, "finish_reason": reason
        }],
        "usage": usage,
    })
}

fn finish_reason(answer: &TurnAnswer, calls: &[ToolCall]) -> &'static str {
    match calls.is_empty() {
        false => "tool_calls",
        true if answer.truncated => "length",
        true => "stop",
    }
}

fn called(call: &ToolCall) -> Value {
    let function = json!({ "name": call.name, "arguments": call.arguments.to_string() });
    json!({ "id": call.id, "type": "function", "function": function })
}

#[derive(Serialize)]
struct Spent {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens_details: Option<Value>,
}

/// Unknown is said: without both numbers there is no usage.
fn usage(usage: TokenUsage) -> Option<Spent> {
    let (prompt_tokens, completion_tokens) = (usage.input_tokens?, usage.output_tokens?);
    Some(Spent {
        prompt_tokens,
        completion_tokens,
        total_tokens: prompt_tokens + completion_tokens,
        prompt_tokens_details: usage.cached_tokens.map(|cached| json!({ "cached_tokens": cached })),
    })
}
