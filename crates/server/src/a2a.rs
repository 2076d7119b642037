//! Agent2Agent (A2A) 0.3: JSON-RPC over HTTP for the agents that the config exposes. A task is a turn and a context
//! is a session, so a task is reported from its stored turn. A repeated `messageId` in a context is the same message.

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
use crate::extract::{JsonBody, MAX_MESSAGE_BYTES, PathId};
use crate::state::AppState;
use rpc::{RpcCall, RpcError};

/// Returns the card of the default agent, or of the first exposed one.
pub async fn default_agent_card(State(app): State<AppState>, headers: HeaderMap) -> Result<Json<Value>> {
    let default = app.engine.settings().default_agent.clone();
    let exposed = app.engine.list_agents().await?.into_iter().map(|stored| stored.spec.agent_id);
    let mut exposed: Vec<AgentId> = exposed.filter(|id| is_exposed(&app, id)).collect();
    exposed.sort_by_key(|id| *id != default);
    let agent = exposed.into_iter().next().ok_or_else(|| Error::NotExposed(default.to_string()))?;
    Ok(Json(card::agent_card_json(&app, &agent, &headers).await?))
}

pub async fn agent_card(
    State(app): State<AppState>,
    PathId(agent): PathId,
    headers: HeaderMap,
) -> Result<Json<Value>> {
    let agent = exposed_agent(&app, agent).await?;
    Ok(Json(card::agent_card_json(&app, &agent, &headers).await?))
}

/// Handles a JSON-RPC call. Errors that the protocol defines are returned as such, with our code in their data.
pub async fn handle_rpc(
    State(app): State<AppState>,
    PathId(agent): PathId,
    body: Result<JsonBody<Value, MAX_MESSAGE_BYTES>>,
) -> Result<Response> {
    let agent = exposed_agent(&app, agent).await?;
    let call = match body.map_err(RpcError::from).and_then(|JsonBody(value)| RpcCall::from_json(value)) {
        Ok(call) => call,
        Err(fault) => return Ok(error_reply(&app, &Value::Null, &fault)),
    };
    let done = match call.method.as_str() {
        "message/send" => ask::send_message(&app, &agent, &call).await,
        "message/stream" => match stream::open_stream(&app, &agent, &call).await {
            Ok(response) => return Ok(response),
            Err(fault) => Err(fault),
        },
        "tasks/get" => task::get_task(&app, &agent, &call).await,
        "tasks/cancel" => task::cancel_task(&app, &agent, &call).await,
        _ => Err(RpcError::unknown_method(&call.method)),
    };
    Ok(match done {
        Ok(result) => Json(rpc::result_response(&call.id, &result)).into_response(),
        Err(fault) => error_reply(&app, &call.id, &fault),
    })
}

fn error_reply(app: &AppState, id: &Value, fault: &RpcError) -> Response {
    Json(rpc::error_response(id, fault, &app.engine.redactor())).into_response()
}

/// Finds an exposed agent. An agent that the config does not expose counts as unknown.
async fn exposed_agent(app: &AppState, agent: String) -> Result<AgentId> {
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
