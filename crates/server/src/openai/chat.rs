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

use crate::access::AccessLevel;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, MAX_MESSAGE_BYTES};
use crate::openai::content::{ClientConversation, ClientFunction, OpenAiContent, parse_tool_call};
use crate::openai::idempotency::RepeatMarker;
use crate::openai::question::{ClientQuestion, accept_question, ensure_done};
use crate::state::AppState;

mod chunks;

/// The supported fields of a request. Others, such as temperature, are set by the agent; see `docs/guide/openai.md`.
#[derive(Deserialize)]
pub struct ChatCompletionRequest {
    model: String,
    messages: Vec<CompletionMessage>,
    #[serde(default)]
    stream: Option<bool>,
    stream_options: Option<CompletionStreamOptions>,
    tools: Option<Vec<CompletionTool>>,
    user: Option<String>,
    n: Option<u32>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct CompletionStreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct CompletionTool {
    #[serde(rename = "type")]
    kind: String,
    function: Option<ClientFunction>,
}

#[derive(Deserialize)]
struct CompletionMessage {
    role: String,
    #[serde(default)]
    content: OpenAiContent,
    tool_calls: Option<Vec<CompletionToolCall>>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct CompletionToolCall {
    id: String,
    function: CompletionFunctionCall,
}

#[derive(Deserialize)]
struct CompletionFunctionCall {
    name: String,
    #[serde(default)]
    arguments: String,
}

pub async fn create_completion(
    State(app): State<AppState>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<ChatCompletionRequest, MAX_MESSAGE_BYTES>,
) -> Result<Response> {
    if request.n.is_some_and(|n| n != 1) {
        return Err(Error::invalid_field("n", "only 1 is supported"));
    }
    if request.max_completion_tokens.or(request.max_tokens) == Some(0) {
        return Err(Error::invalid_field("max_tokens", "must be at least 1"));
    }
    let streams = request.stream.unwrap_or(false);
    let wants_usage = request.stream_options.as_ref().and_then(|options| options.include_usage);
    let created = app.engine.now().0 / 1000;
    let model = request.model.clone();
    let asked = accept_question(&app, to_question(request, &headers)?).await?;
    let id = format!("chatcmpl-{}", asked.accepted.turn_id);
    let head = CompletionHead { id, created, model };
    if streams {
        return Ok(chunks::stream_completion(head, asked, wants_usage.unwrap_or(false)));
    }
    let answer = ensure_done(asked.follow.wait_for_answer().await?)?;
    let calls = asked.calls.client_calls(&answer);
    Ok(Json(completion_json(&head, answer, &calls)).into_response())
}

/// The fields that all parts of one response share.
pub struct CompletionHead {
    pub id: String,
    pub created: i64,
    pub model: String,
}

fn to_question(request: ChatCompletionRequest, headers: &HeaderMap) -> Result<ClientQuestion> {
    let mut tools = Vec::new();
    for tool in request.tools.unwrap_or_default() {
        match (tool.kind.as_str(), tool.function) {
            ("function", Some(function)) => tools.push(function),
            (kind, _) => {
                return Err(Error::invalid_field("tools", format!("type '{kind}' is not supported")));
            }
        }
    }
    Ok(ClientQuestion {
        by: AccessLevel::from_headers(headers),
        model: request.model,
        user: request.user.filter(|user| !user.is_empty()),
        conversation: to_conversation(request.messages)?,
        tools,
        continues: None,
        repeat: RepeatMarker::from_headers(headers),
        max_tokens: request.max_completion_tokens.or(request.max_tokens),
    })
}

fn to_conversation(messages: Vec<CompletionMessage>) -> Result<ClientConversation> {
    let mut talk = ClientConversation::default();
    for message in messages {
        if message.role == "user" {
            talk.add_user_input(message.content.into_user_input()?);
            continue;
        }
        let text = message.content.into_text()?;
        match message.role.as_str() {
            "system" | "developer" => talk.add_instructions(text),
            "assistant" => {
                let calls = message.tool_calls.unwrap_or_default().into_iter();
                let calls =
                    calls.map(|made| parse_tool_call(made.id, made.function.name, &made.function.arguments));
                talk.add_reply(text, calls.collect());
            }
            "tool" => {
                let id = message.tool_call_id;
                let id = id.ok_or_else(|| Error::InvalidBody("a tool message needs tool_call_id".into()))?;
                talk.add_tool_result(id, text);
            }
            role => return Err(Error::invalid_field("role", format!("'{role}' is not a role"))),
        }
    }
    Ok(talk)
}

fn completion_json(head: &CompletionHead, answer: TurnAnswer, calls: &[ToolCall]) -> Value {
    let (usage, reason) = (completion_usage(answer.usage), finish_reason(&answer, calls));
    let text = answer.text;
    let mut message = json!({ "role": "assistant", "content": text, "refusal": null });
    if !calls.is_empty() {
        message["content"] = if text.is_empty() { Value::Null } else { Value::String(text) };
        message["tool_calls"] = calls.iter().map(tool_call_json).collect();
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

fn tool_call_json(call: &ToolCall) -> Value {
    let function = json!({ "name": call.name, "arguments": call.arguments.to_string() });
    json!({ "id": call.id, "type": "function", "function": function })
}

#[derive(Serialize)]
struct CompletionUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens_details: Option<Value>,
}

/// Converts token usage. Without both numbers there is none.
fn completion_usage(usage: TokenUsage) -> Option<CompletionUsage> {
    let (prompt_tokens, completion_tokens) = (usage.input_tokens?, usage.output_tokens?);
    Some(CompletionUsage {
        prompt_tokens,
        completion_tokens,
        total_tokens: prompt_tokens + completion_tokens,
        prompt_tokens_details: usage.cached_tokens.map(|cached| json!({ "cached_tokens": cached })),
    })
}
