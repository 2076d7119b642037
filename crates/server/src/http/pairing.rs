//! Strangers who wait to be let in, and people who were.

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
    pairings: Vec<PairingView>,
}

#[derive(Serialize, ToSchema)]
pub struct PairingView {
    channel: String,
    account: String,
    /// The platform's id of whoever wrote.
    sender: String,
    /// What the platform calls them. They chose it themselves.
    sender_name: Option<String>,
    /// `pending` or `approved`.
    state: &'static str,
    /// What they were told; null once they are let in.
    code: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    /// When the code ends; null once they are let in.
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
    /// As the stranger shows it, in any case.
    code: String,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RevokePairingBody {
    channel: String,
    account: String,
    /// The platform's id of whoever was let in, or waits.
    sender: String,
}

/// Those who wait, then those who were let in.
#[utoipa::path(get, path = "/pairing", tag = "channels", responses((status = 200, body = PairingList)))]
pub async fn list_pairings(State(app): State<AppState>) -> Result<Json<PairingList>> {
    let listed = app.engine.list_pairings().await?;
    Ok(Json(PairingList { pairings: listed.into_iter().map(PairingView::from).collect() }))
}

/// Lets in whoever was told a code. It counts once, for an hour.
#[utoipa::path(post, path = "/pairing", tag = "channels", request_body = ApprovePairingBody, responses((status = 200, body = PairingView)))]
pub async fn approve_pairing(
    State(app): State<AppState>,
    JsonBody(approval): JsonBody<ApprovePairingBody>,
) -> Result<Json<PairingView>> {
    Ok(Json(app.engine.approve_pairing(&approval.code).await?.into()))
}

/// Takes somebody's access or code away.
#[utoipa::path(delete, path = "/pairing", tag = "channels", params(RevokePairingBody), responses((status = 204)))]
pub async fn revoke_pairing(
    State(app): State<AppState>,
    QueryParams(RevokePairingBody { channel, account, sender }): QueryParams<RevokePairingBody>,
) -> Result<StatusCode> {
    app.engine.revoke_pairing(PairingSender { channel, account, id: sender }).await?;
    Ok(StatusCode::NO_CONTENT)
}
