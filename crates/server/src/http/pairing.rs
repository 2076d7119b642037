//! Pairing of chat users: pending codes and approved senders.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_api::pairing::{ApprovePairingBody, PairingList, PairingView, RevokePairingBody};
use polyclaw_store::pairings::{Pairing, PairingSender};

use crate::error::Result;
use crate::extract::{JsonBody, QueryParams};
use crate::state::AppState;

fn pairing_view(pairing: Pairing) -> PairingView {
    let waits = !pairing.is_approved;
    PairingView {
        channel: pairing.sender.channel,
        account: pairing.sender.account,
        sender: pairing.sender.id,
        sender_name: pairing.name,
        state: if waits { "pending" } else { "approved" }.to_owned(),
        code: waits.then(|| pairing.code.to_string()),
        created_at: pairing.created_at,
        expires_at: waits.then_some(pairing.expires_at),
    }
}

/// Lists pending pairings, then approved senders.
#[utoipa::path(get, path = "/pairing", tag = "channels", responses((status = 200, body = PairingList)))]
pub async fn list_pairings(State(app): State<AppState>) -> Result<Json<PairingList>> {
    let listed = app.engine.list_pairings().await?;
    Ok(Json(PairingList { pairings: listed.into_iter().map(pairing_view).collect() }))
}

/// Approves the sender that has a pairing code.
/// A code works once and expires after an hour.
#[utoipa::path(post, path = "/pairing", tag = "channels", request_body = ApprovePairingBody, responses((status = 200, body = PairingView)))]
pub async fn approve_pairing(
    State(app): State<AppState>,
    JsonBody(approval): JsonBody<ApprovePairingBody>,
) -> Result<Json<PairingView>> {
    Ok(Json(pairing_view(app.engine.approve_pairing(&approval.code).await?)))
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
