//! Pairing of chat users: pending codes and approved senders.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_domain::time::Millis;
use polyclaw_store::pairings::{Pairing, PairingSender};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::error::Result;
use crate::extract::{JsonBody, QueryParams};
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct PairingList {
    /// Pending pairings, then approved senders.
    pairings: Vec<PairingView>,
}

#[derive(Serialize, ToSchema)]
pub struct PairingView {
    /// The channel, such as `telegram`.
    channel: String,
    /// The account the sender wrote to.
    account: String,
    /// The platform's id of the sender.
    sender: String,
    /// The sender's display name, chosen by the sender.
    sender_name: Option<String>,
    /// `pending` or `approved`.
    state: &'static str,
    /// The pairing code that the sender got. Null once approved.
    code: Option<String>,
    /// When the sender first wrote.
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    /// When the code expires. Null once approved.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Millis>,
}

impl From<Pairing> for PairingView {
    fn from(pairing: Pairing) -> Self {
        let waits = !pairing.is_approved;
        Self {
            channel: pairing.sender.channel,
            account: pairing.sender.account,
            sender: pairing.sender.id,
            sender_name: pairing.name,
            state: if waits { "pending" } else { "approved" },
            code: waits.then(|| pairing.code.to_string()),
            created_at: pairing.created_at,
            expires_at: waits.then_some(pairing.expires_at),
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovePairingBody {
    /// The code that the sender shows, in upper or lower case.
    code: String,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RevokePairingBody {
    /// The channel, such as `telegram`.
    channel: String,
    /// The account the sender wrote to.
    account: String,
    /// The platform's id of the sender.
    sender: String,
}

/// Lists pending pairings, then approved senders.
#[utoipa::path(get, path = "/pairing", tag = "channels", responses((status = 200, body = PairingList)))]
pub async fn list_pairings(State(app): State<AppState>) -> Result<Json<PairingList>> {
    let listed = app.engine.list_pairings().await?;
    Ok(Json(PairingList { pairings: listed.into_iter().map(PairingView::from).collect() }))
}

/// Approves the sender that has a pairing code.
/// A code works once and expires after an hour.
#[utoipa::path(post, path = "/pairing", tag = "channels", request_body = ApprovePairingBody, responses((status = 200, body = PairingView)))]
pub async fn approve_pairing(
    State(app): State<AppState>,
    JsonBody(approval): JsonBody<ApprovePairingBody>,
) -> Result<Json<PairingView>> {
    Ok(Json(app.engine.approve_pairing(&approval.code).await?.into()))
}

/// Revokes the access of a sender, or a pending code.
#[utoipa::path(delete, path = "/pairing", tag = "channels", params(RevokePairingBody), responses((status = 204)))]
pub async fn revoke_pairing(
    State(app): State<AppState>,
    QueryParams(RevokePairingBody { channel, account, sender }): QueryParams<RevokePairingBody>,
) -> Result<StatusCode> {
    app.engine.revoke_pairing(PairingSender { channel, account, id: sender }).await?;
    Ok(StatusCode::NO_CONTENT)
}
