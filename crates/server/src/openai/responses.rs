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

use crate::access::May;
use crate::error::{Error, Result};
use crate::extract::{Body, MAX_MESSAGE};
use crate::openai::ask::{Question, ask, succeeded};
use crate::openai::content::{Content, Conversation, Function, call};
use crate::openai::repeat::Repeat;
use crate::state::AppState;

mod object;
mod stream;

use object::Shape;

const PREFIX: &str = "resp_";

#[derive(Deserialize)]
pub struct Request {
    model: String,
    input: Input,
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
enum Input {
    Text(String),
    Items(Vec<Item>),
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<String>,
    #[serde(default)]
    content: Content,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    #[serde(default)]
    output: Content,
}

pub async fn create(
    State(app): State<AppState>,
    headers: HeaderMap,
    Body(request): Body<Request, MAX_MESSAGE>,
) -> Result<Response> {
    if request.max_output_tokens == Some(0) {
        return Err(Error::invalid("max_output_tokens", "at least 1"));
    }
    let streams = request.stream.unwrap_or(false);
    let mut shape = Shape {
        id: String::new(),
        created_at: app.engine.now().0 / 1000,
        model: request.model.clone(),
        instructions: request.instructions.clone(),
        previous_response_id: request.previous_response_id.clone(),
        tools: request.tools.clone().unwrap_or_default(),
        metadata: request.metadata.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new())),
    };
    let question = question(&app, request, &headers).await?;
    let asked = ask(&app, question).await?;
    shape.id = format!("{PREFIX}{}", asked.accepted.turn_id);
    if streams {
        return Ok(stream::open(shape, asked));
    }
    let answer = succeeded(asked.follow.answer().await?)?;
    let calls = asked.calls.of(&answer);
    Ok(Json(shape.completed(&answer, answer.text.clone(), &calls)).into_response())
}

async fn question(app: &AppState, request: Request, headers: &HeaderMap) -> Result<Question> {
    let mut talk = Conversation::default();
    talk.instruct(request.instructions.unwrap_or_default());
    match request.input {
        Input::Text(text) => talk.say(text),
        Input::Items(items) => items.into_iter().try_for_each(|item| add(&mut talk, item))?,
    }
    let continues = match &request.previous_response_id {
        Some(id) => Some(session_of(app, id).await?),
        None => None,
    };
    Ok(Question {
        by: May::of(headers),
        model: request.model,
        user: request.user.filter(|user| !user.is_empty()),
        conversation: talk,
        tools: functions(request.tools.unwrap_or_default())?,
        continues,
        repeat: Repeat::of(headers),
        max_tokens: request.max_output_tokens,
    })
}

fn functions(tools: Vec<Value>) -> Result<Vec<Function>> {
    let function = |tool: Value| match tool.get("type").and_then(Value::as_str) {
        Some("function") => serde_json::from_value(tool).map_err(|error| Error::invalid("tools", error)),
        kind => Err(Error::invalid("tools", format!("type '{}' is not taken", kind.unwrap_or_default()))),
    };
    tools.into_iter().map(function).collect()
}

fn add(talk: &mut Conversation, item: Item) -> Result<()> {
    let missing = |what: &str| Error::InvalidBody(format!("an item lacks {what}"));
    match (item.kind.as_deref().unwrap_or("message"), item.role.as_deref()) {
        ("message", Some("user")) => talk.say(item.content.said()?),
        ("message", Some("system" | "developer")) => talk.instruct(item.content.text()?),
        ("message", Some("assistant")) => talk.reply(item.content.text()?, Vec::new()),
        ("function_call", _) => {
            let id = item.call_id.ok_or_else(|| missing("call_id"))?;
            let name = item.name.ok_or_else(|| missing("name"))?;
            talk.reply(String::new(), vec![call(id, name, &item.arguments.unwrap_or_default())]);
        }
        ("function_call_output", _) => {
            let id = item.call_id.ok_or_else(|| missing("call_id"))?;
            talk.result(id, item.output.text()?);
        }
        // A model's thoughts are its own; clients send them back with the rest.
        ("reasoning", _) => {}
        (kind, role) => {
            let role = role.unwrap_or("none");
            return Err(Error::invalid("input", format!("item '{kind}' with role '{role}' is not taken")));
        }
    }
    Ok(())
}

/// A session goes on from its newest response; an older one is the past of a conversation that went elsewhere.
async fn session_of(app: &AppState, id: &str) -> Result<SessionKey> {
    let unknown = || Error::UnknownResponse(quote_safely(id));
    let turn = TurnId::new(id.strip_prefix(PREFIX).ok_or_else(unknown)?);
    let read = move |tx: &mut Tx<'_>| {
        let Some(job) = jobs::find_answering(tx, &turn)? else { return Ok(None) };
        let newest = jobs::list(tx, Some(&job.session), None, 1)?.pop();
        Ok(Some((newest.is_some_and(|newest| newest.turn == job.turn), job.session)))
    };
    match app.engine.db().read(read).await? {
        Some((true, session)) => Ok(session),
        Some((false, _)) => {
            Err(Error::invalid("previous_response_id", "the conversation has gone on since that response"))
        }
        None => Err(unknown()),
    }
}
