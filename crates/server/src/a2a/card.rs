//! Agent cards: the purpose of an agent and how to call it.

use axum::http::{HeaderMap, header};
use polyclaw_domain::id::AgentId;
use serde_json::{Value, json};

use crate::error::Result;
use crate::state::AppState;

const A2A_PROTOCOL_VERSION: &str = "0.3.0";

pub async fn agent_card_json(app: &AppState, agent: &AgentId, headers: &HeaderMap) -> Result<Value> {
    let spec = app.engine.load_agent(agent).await?.spec;
    let stated = Some(spec.description.clone()).filter(|text| !text.is_empty());
    let description = stated.unwrap_or_else(|| format!("The agent {} of a Polyclaw instance.", spec.name));
    Ok(json!({
        "protocolVersion": A2A_PROTOCOL_VERSION,
        "name": spec.name,
        "description": description,
        "url": format!("{}/a2a/{agent}", base_url(app, headers)),
        "preferredTransport": "JSONRPC",
        "version": app.version,
        "capabilities": { "streaming": true, "pushNotifications": false, "stateTransitionHistory": false },
        "defaultInputModes": ["text/plain", "image/png", "image/jpeg", "image/gif", "image/webp"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": agent, "name": spec.name, "description": description, "tags": ["chat"] }],
        "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        "security": [{ "token": [] }],
        "supportsAuthenticatedExtendedCard": false,
    }))
}

/// Returns the configured URL, else one from the `Host` header, which the guard has already checked.
fn base_url(app: &AppState, headers: &HeaderMap) -> String {
    let stated = app.engine.settings().a2a.url.clone();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    stated.map_or_else(|| format!("http://{host}"), |url| url.trim_end_matches('/').to_owned())
}
