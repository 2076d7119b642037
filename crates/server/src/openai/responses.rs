//! `POST /v1/responses`.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use polyclaw_domain::id::TurnId;
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{Tx, jobs};
use serde::Deserialize;
use serde_json::Value;

use crate::access::AccessLevel;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, MAX_MESSAGE_BYTES};
use crate::openai::content::{ClientConversation, ClientFunction, OpenAiContent, parse_tool_call};
use crate::openai::idempotency::RepeatMarker;
use crate::openai::question::{ClientQuestion, accept_question, ensure_done};
use crate::state::AppState;

mod object;
mod stream;

use object::ResponseShape;

const RESPONSE_ID_PREFIX: &str = "resp_";

#[derive(Deserialize)]
pub struct ResponsesRequest {
    model: String,
    input: ResponsesInput,
    instructions: Option<String>,
    #[serde(default)]
    stream: Option<bool>,
    tools: Option<Vec<Value>>,
    previous_response_id: Option<String>,
    user: Option<String>,
    metadata: Option<Value>,
    max_output_tokens: Option<u32>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ResponsesInput {
    Text(String),
    Items(Vec<ResponsesItem>),
}

#[derive(Deserialize)]
struct ResponsesItem {
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<String>,
    #[serde(default)]
    content: OpenAiContent,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    #[serde(default)]
    output: OpenAiContent,
}

pub async fn create_response(
    State(app): State<AppState>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<ResponsesRequest, MAX_MESSAGE_BYTES>,
) -> Result<Response> {
    if request.max_output_tokens == Some(0) {
        return Err(Error::invalid_field("max_output_tokens", "must be at least 1"));
    }
    let streams = request.stream.unwrap_or(false);
    let mut shape = ResponseShape {
        id: String::new(),
        created_at: app.engine.now().0 / 1000,
        model: request.model.clone(),
        instructions: request.instructions.clone(),
        previous_response_id: request.previous_response_id.clone(),
        tools: request.tools.clone().unwrap_or_default(),
        metadata: request.metadata.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new())),
    };
    let question = to_question(&app, request, &headers).await?;
    let asked = accept_question(&app, question).await?;
    shape.id = format!("{RESPONSE_ID_PREFIX}{}", asked.accepted.turn_id);
    if streams {
        return Ok(stream::stream_response(shape, asked));
    }
    let answer = ensure_done(asked.follow.wait_for_answer().await?)?;
    let calls = asked.calls.client_calls(&answer);
    Ok(Json(shape.completed_json(&answer, answer.text.clone(), &calls)).into_response())
}

async fn to_question(
    app: &AppState,
    request: ResponsesRequest,
    headers: &HeaderMap,
) -> Result<ClientQuestion> {
    let mut talk = ClientConversation::default();
    talk.add_instructions(request.instructions.unwrap_or_default());
    match request.input {
        ResponsesInput::Text(text) => talk.add_user_input(text),
        ResponsesInput::Items(items) => items.into_iter().try_for_each(|item| add_item(&mut talk, item))?,
    }
    let continues = match &request.previous_response_id {
        Some(id) => Some(session_of_response(app, id).await?),
        None => None,
    };
    Ok(ClientQuestion {
        by: AccessLevel::from_headers(headers),
        model: request.model,
        user: request.user.filter(|user| !user.is_empty()),
        conversation: talk,
        tools: parse_functions(request.tools.unwrap_or_default())?,
        continues,
        repeat: RepeatMarker::from_headers(headers),
        max_tokens: request.max_output_tokens,
    })
}

fn parse_functions(tools: Vec<Value>) -> Result<Vec<ClientFunction>> {
    let function = |tool: Value| match tool.get("type").and_then(Value::as_str) {
        Some("function") => {
            serde_json::from_value(tool).map_err(|error| Error::invalid_field("tools", error))
        }
        kind => Err(Error::invalid_field(
            "tools",
            format!("type '{}' is not supported", kind.unwrap_or_default()),
        )),
    };
    tools.into_iter().map(function).collect()
}

fn add_item(talk: &mut ClientConversation, item: ResponsesItem) -> Result<()> {
    let missing = |what: &str| Error::InvalidBody(format!("an item has no {what}"));
    match (item.kind.as_deref().unwrap_or("message"), item.role.as_deref()) {
        ("message", Some("user")) => talk.add_user_input(item.content.into_user_input()?),
        ("message", Some("system" | "developer")) => talk.add_instructions(item.content.into_text()?),
        ("message", Some("assistant")) => talk.add_reply(item.content.into_text()?, Vec::new()),
        ("function_call", _) => {
            let id = item.call_id.ok_or_else(|| missing("call_id"))?;
            let name = item.name.ok_or_else(|| missing("name"))?;
            talk.add_reply(
                String::new(),
                vec![parse_tool_call(id, name, &item.arguments.unwrap_or_default())],
            );
        }
        ("function_call_output", _) => {
            let id = item.call_id.ok_or_else(|| missing("call_id"))?;
            talk.add_tool_result(id, item.output.into_text()?);
        }
        // Reasoning items are ignored; clients send them back with the rest.
        ("reasoning", _) => {}
        (kind, role) => {
            let role = role.unwrap_or("none");
            return Err(Error::invalid_field(
                "input",
                format!("item '{kind}' with role '{role}' is not supported"),
            ));
        }
    }
    Ok(())
}

/// Finds the session of a response. Only the newest response can be continued; the conversation has moved on from
/// older ones.
async fn session_of_response(app: &AppState, id: &str) -> Result<SessionKey> {
    let unknown = || Error::UnknownResponse(quote_safely(id));
    let turn = TurnId::new(id.strip_prefix(RESPONSE_ID_PREFIX).ok_or_else(unknown)?);
    let read = move |tx: &mut Tx<'_>| {
        let Some(job) = jobs::find_answering(tx, &turn)? else { return Ok(None) };
        let newest = jobs::list(tx, Some(&job.session), None, 1)?.pop();
        Ok(Some((newest.is_some_and(|newest| newest.turn == job.turn), job.session)))
    };
    match app.engine.db().read(read).await? {
        Some((true, session)) => Ok(session),
        Some((false, _)) => Err(Error::invalid_field(
            "previous_response_id",
            "the conversation has continued since that response",
        )),
        None => Err(unknown()),
    }
}
