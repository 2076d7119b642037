//! One-time codes for browsers.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_domain::time::Millis;
use serde::Serialize;
use utoipa::ToSchema;

use crate::login;
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct Login {
    /// Lets one browser in, once.
    code: String,
    /// Where to open it, under the address of the instance.
    path: String,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Millis,
}

/// A link that lets a browser in: it works once, for ten minutes, and does not hold the token.
#[utoipa::path(post, path = "/logins", tag = "instance", responses((status = 201, body = Login)))]
pub async fn create(State(app): State<AppState>) -> (StatusCode, Json<Login>) {
    let code = app.engine.nonce();
    let expires_at = app.logins.open(code.clone(), app.engine.now());
    let path = login::path(&code);
    (StatusCode::CREATED, Json(Login { code, path, expires_at }))
}
