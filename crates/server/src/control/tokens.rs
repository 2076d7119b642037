//! Tokens with less than all rights, and one-time links for browsers.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use polyclaw_control::Caller;
use polyclaw_domain::instance::TokenAccess;
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::tokens::AccessToken;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::state::ControlState;
use crate::door::Guest;
use crate::error::{Error, Result};
use crate::extract::{Body, Id, Query};
use crate::http::logins::{BrowserLoginList, Current, Login, ended, listed, meant};
use crate::paging::{Page, Place};

const LONGEST_NAME: usize = 100;

#[derive(Serialize, ToSchema)]
pub struct TokenList {
    tokens: Vec<TokenView>,
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Token)]
pub struct TokenView {
    id: String,
    name: String,
    /// `read`, `operate` or `admin`.
    scope: &'static str,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Millis>,
}

impl From<AccessToken> for TokenView {
    fn from(token: AccessToken) -> Self {
        Self {
            id: token.id,
            name: token.name,
            scope: token.access.as_str(),
            created_at: token.created_at,
            revoked_at: token.revoked_at,
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// For people: whose it is, what for.
    name: String,
    /// `read`, `operate` or `admin`.
    #[schema(value_type = String, pattern = "^(read|operate|admin)$")]
    scope: TokenAccess,
}

#[derive(Serialize, ToSchema)]
pub struct MadeToken {
    #[serde(flatten)]
    token: TokenView,
    /// The token itself. It is shown once: null where the call was made before with the same `Idempotency-Key`.
    secret: Option<String>,
}

/// The tokens that were made, the newest first.
#[utoipa::path(get, path = "/tokens", tag = "access", params(Page), responses((status = 200, body = TokenList)))]
pub async fn list(State(app): State<ControlState>, Query(page): Query<Page>) -> Result<Json<TokenList>> {
    let paging = page.of("tokens")?;
    let behind = paging.after.clone().map(|place| (Millis(place.at), place.id));
    let mut found = app.control.tokens(behind, paging.wanted()).await?;
    let next_cursor = paging.cut(&mut found, |token| Place { at: token.created_at.0, id: token.id.clone() });
    Ok(Json(TokenList { tokens: found.into_iter().map(TokenView::from).collect(), next_cursor }))
}

/// Makes a token.
#[utoipa::path(post, path = "/tokens", tag = "access", request_body = NewToken, responses((status = 201, body = MadeToken)))]
pub async fn create(
    State(app): State<ControlState>,
    Extension(by): Extension<Caller>,
    Body(new): Body<NewToken>,
) -> Result<(StatusCode, Json<MadeToken>)> {
    let name = new.name.trim().to_owned();
    if name.is_empty() || name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(Error::invalid("name", format!("1 to {LONGEST_NAME} letters")));
    }
    let made = app.control.make_token(&by, name, new.scope).await?;
    Ok((StatusCode::CREATED, Json(MadeToken { token: made.token.into(), secret: Some(made.secret) })))
}

/// From now on it opens nothing.
#[utoipa::path(delete, path = "/tokens/{id}", tag = "access", params(("id" = String, Path)), responses((status = 204)))]
pub async fn revoke(
    State(app): State<ControlState>,
    Extension(by): Extension<Caller>,
    Id(id): Id,
) -> Result<StatusCode> {
    app.control.revoke_token(&by, &id).await?;
    app.browsers.end_of_token(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A link that lets a browser in, with the rights of whoever asks: it works once, for ten minutes, and does not hold
/// the token. A login ends when its token is revoked.
#[utoipa::path(post, path = "/logins", tag = "access", responses((status = 201, body = Login)))]
pub async fn login(
    State(app): State<ControlState>,
    Extension(by): Extension<Caller>,
) -> Result<(StatusCode, Json<Login>)> {
    app.control.note_login(&by).await?;
    let guest = by.token.map_or(Guest::Owner, Guest::Token);
    let login = Login::open(&app.door, app.control.nonce(), guest, app.control.now());
    Ok((StatusCode::CREATED, Json(login)))
}

/// The browsers that are logged in, the most recently used first: all for a token of the scope `admin`, else its own.
#[utoipa::path(get, path = "/logins", tag = "access", responses((status = 200, body = BrowserLoginList)))]
pub async fn logins(
    State(app): State<ControlState>,
    Extension(by): Extension<Caller>,
    current: Current,
) -> Result<Json<BrowserLoginList>> {
    listed(&app, only_of(&by), current).await
}

/// Ends a login and what was opened with it; `current` is the one of the browser that calls.
#[utoipa::path(delete, path = "/logins/{id}", tag = "access", params(("id" = String, Path)), responses((status = 204)))]
pub async fn end_login(
    State(app): State<ControlState>,
    Extension(by): Extension<Caller>,
    current: Current,
    Id(id): Id,
) -> Result<Response> {
    let id = meant(&id, &current)?;
    app.control.note_logout(&by, &id).await?;
    ended(&app, &id, only_of(&by), &current).await
}

/// The token whose logins a caller may see and end; none where it may all.
fn only_of(by: &Caller) -> Option<String> {
    by.token.clone().filter(|_| by.access < TokenAccess::Admin)
}
