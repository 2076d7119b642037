//! One-time codes for browsers.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polyclaw_domain::time::Millis;
use serde::Serialize;
use utoipa::ToSchema;

use crate::door::{Door, Guest};
use crate::login;
use crate::state::AppState;

#[derive(Serialize, ToSchema)]
pub struct Login {
    /// Lets one browser in, once.
    code: String,
    /// Where to open it, under the address of the server.
    path: String,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Millis,
}

impl Login {
    /// `code`: a word nobody can guess.
    pub fn open(door: &Door, code: String, guest: Guest, now: Millis) -> Self {
        let expires_at = door.logins.open(code.clone(), guest, now);
        Self { path: login::path(&code), code, expires_at }
    }
}

/// A link that lets a browser in: it works once, for ten minutes, and does not hold the token.
#[utoipa::path(post, path = "/logins", tag = "instance", responses((status = 201, body = Login)))]
pub async fn create(State(app): State<AppState>) -> (StatusCode, Json<Login>) {
    (StatusCode::CREATED, Json(Login::open(&app.door, app.engine.nonce(), Guest::Owner, app.engine.now())))
}
