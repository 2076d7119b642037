//! Agent2Agent 0.3: JSON-RPC over HTTP, for the agents that the config exposes. A task is a turn, a context a session, so
//! what is told of a task is what is stored of its turn. The same `messageId` in a context is the same message.

mod ask;
mod card;
mod rpc;
mod stream;
mod task;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::redact::quote_safely;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::extract::{Body, Id, MAX_MESSAGE};
use crate::state::AppState;
use rpc::{Call, Fault};

/// The card of the default agent, or of the first that is exposed.
pub async fn card(State(app): State<AppState>, headers: HeaderMap) -> Result<Json<Value>> {
    let default = app.engine.settings().default_agent.clone();
    let exposed = app.engine.list_agents().await?.into_iter().map(|stored| stored.spec.agent_id);
    let mut exposed: Vec<AgentId> = exposed.filter(|id| is_exposed(&app, id)).collect();
    exposed.sort_by_key(|id| *id != default);
    let agent = exposed.into_iter().next().ok_or_else(|| Error::NotExposed(default.to_string()))?;
    Ok(Json(card::of(&app, &agent, &headers).await?))
}

pub async fn agent_card(
    State(app): State<AppState>,
    Id(agent): Id,
    headers: HeaderMap,
) -> Result<Json<Value>> {
    let agent = exposed(&app, agent).await?;
    Ok(Json(card::of(&app, &agent, &headers).await?))
}

/// One call of JSON-RPC. What the protocol has an error for is one of it, with our code in its data.
pub async fn call(
    State(app): State<AppState>,
    Id(agent): Id,
    body: Result<Body<Value, MAX_MESSAGE>>,
) -> Result<Response> {
    let agent = exposed(&app, agent).await?;
    let call = match body.map_err(Fault::from).and_then(|Body(value)| Call::read(value)) {
        Ok(call) => call,
        Err(fault) => return Ok(failed(&app, &Value::Null, &fault)),
    };
    let done = match call.method.as_str() {
        "message/send" => ask::send(&app, &agent, &call).await,
        "message/stream" => match stream::open(&app, &agent, &call).await {
            Ok(response) => return Ok(response),
            Err(fault) => Err(fault),
        },
        "tasks/get" => task::get(&app, &agent, &call).await,
        "tasks/cancel" => task::cancel(&app, &agent, &call).await,
        _ => Err(Fault::unknown_method(&call.method)),
    };
    Ok(match done {
        Ok(result) => Json(rpc::answer(&call.id, &result)).into_response(),
        Err(fault) => failed(&app, &call.id, &fault),
    })
}

fn failed(app: &AppState, id: &Value, fault: &Fault) -> Response {
    Json(rpc::refusal(id, fault, &app.engine.redactor())).into_response()
}

/// Whoever is not named in the config is not there.
async fn exposed(app: &AppState, agent: String) -> Result<AgentId> {
    let hidden = || Error::NotExposed(quote_safely(&agent));
    let id = AgentId::parse(&agent).map_err(|_| hidden())?;
    if !is_exposed(app, &id) {
        return Err(hidden());
    }
    app.engine.load_agent(&id).await?;
    Ok(id)
}

fn is_exposed(app: &AppState, agent: &AgentId) -> bool {
    app.engine.settings().a2a.expose.iter().any(|entry| entry == "*" || entry == agent.as_str())
}
