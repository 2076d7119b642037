//! Tokens with less than all rights, and one-time links for browsers.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use polyclaw_control::ControlCaller;
use polyclaw_domain::instance::TokenAccess;
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::tokens::AccessToken;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::state::ControlState;
use crate::auth::BrowserPrincipal;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathId, QueryParams};
use crate::http::logins::{
    BrowserLoginList, CurrentLoginExtension, LoginLink, end_browser_login, login_list, resolve_login_id,
};
use crate::paging::{PagePosition, PageQuery};

const MAX_TOKEN_NAME_LEN: usize = 100;

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
pub struct CreatedTokenView {
    #[serde(flatten)]
    token: TokenView,
    /// The token itself. It is shown once: null where the call was made before with the same `Idempotency-Key`.
    secret: Option<String>,
}

/// The tokens that were made, the newest first.
#[utoipa::path(get, path = "/tokens", tag = "access", params(PageQuery), responses((status = 200, body = TokenList)))]
pub async fn list_tokens(
    State(app): State<ControlState>,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<TokenList>> {
    let paging = page.to_request("tokens")?;
    let behind = paging.after.clone().map(|place| (Millis(place.at), place.id));
    let mut found = app.control.list_tokens(behind, paging.row_limit()).await?;
    let next_cursor =
        paging.cut_page(&mut found, |token| PagePosition { at: token.created_at.0, id: token.id.clone() });
    Ok(Json(TokenList { tokens: found.into_iter().map(TokenView::from).collect(), next_cursor }))
}

/// Makes a token.
#[utoipa::path(post, path = "/tokens", tag = "access", request_body = NewToken, responses((status = 201, body = CreatedTokenView)))]
pub async fn create_token(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    JsonBody(new): JsonBody<NewToken>,
) -> Result<(StatusCode, Json<CreatedTokenView>)> {
    let name = new.name.trim().to_owned();
    if name.is_empty() || name.chars().count() > MAX_TOKEN_NAME_LEN || name.chars().any(char::is_control) {
        return Err(Error::invalid_field("name", format!("1 to {MAX_TOKEN_NAME_LEN} letters")));
    }
    let made = app.control.create_token(&by, name, new.scope).await?;
    Ok((StatusCode::CREATED, Json(CreatedTokenView { token: made.token.into(), secret: Some(made.secret) })))
}

/// From now on it opens nothing.
#[utoipa::path(delete, path = "/tokens/{id}", tag = "access", params(("id" = String, Path)), responses((status = 204)))]
pub async fn revoke_token(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
) -> Result<StatusCode> {
    app.control.revoke_token(&by, &id).await?;
    app.browsers.end_logins_of_token(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A link that lets a browser in, with the rights of whoever asks: it works once, for ten minutes, and does not hold
/// the token. A login ends when its token is revoked.
#[utoipa::path(post, path = "/logins", tag = "access", responses((status = 201, body = LoginLink)))]
pub async fn create_login_link(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
) -> Result<(StatusCode, Json<LoginLink>)> {
    app.control.record_login(&by).await?;
    let principal = by.token.map_or(BrowserPrincipal::Owner, BrowserPrincipal::Token);
    let login = LoginLink::open_link(&app.auth, app.control.nonce(), principal, app.control.now());
    Ok((StatusCode::CREATED, Json(login)))
}

/// The browsers that are logged in, the most recently used first: all for a token of the scope `admin`, else its own.
#[utoipa::path(get, path = "/logins", tag = "access", responses((status = 200, body = BrowserLoginList)))]
pub async fn list_token_logins(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    current: CurrentLoginExtension,
) -> Result<Json<BrowserLoginList>> {
    login_list(&app, own_token_filter(&by), current).await
}

/// Ends a login and what was opened with it; `current` is the one of the browser that calls.
#[utoipa::path(delete, path = "/logins/{id}", tag = "access", params(("id" = String, Path)), responses((status = 204)))]
pub async fn end_login(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    current: CurrentLoginExtension,
    PathId(id): PathId,
) -> Result<Response> {
    let id = resolve_login_id(&id, &current)?;
    app.control.record_logout(&by, &id).await?;
    end_browser_login(&app, &id, own_token_filter(&by), &current).await
}

/// The token whose logins a caller may see and end; none where it may all.
fn own_token_filter(by: &ControlCaller) -> Option<String> {
    by.token.clone().filter(|_| by.access < TokenAccess::Admin)
}
