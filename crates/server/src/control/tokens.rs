//! Scoped access tokens, and one-time login links for browsers.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use polyclaw_api::control::tokens::{CreatedTokenView, NewToken, TokenList, TokenView};
use polyclaw_api::logins::{BrowserLoginList, LoginLink};
use polyclaw_api::paging::PageQuery;
use polyclaw_control::ControlCaller;
use polyclaw_domain::instance::TokenAccess;
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::tokens::AccessToken;

use super::state::ControlState;
use crate::auth::BrowserPrincipal;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathId, QueryParams};
use crate::http::logins::{
    CurrentLoginExtension, end_browser_login, login_list, open_login_link, resolve_login_id,
};
use crate::paging::{PagePosition, PageRequest};

const MAX_TOKEN_NAME_LEN: usize = 100;

fn token_view(token: AccessToken) -> TokenView {
    TokenView {
        id: token.id,
        name: token.name,
        scope: token.access.as_str().to_owned(),
        created_at: token.created_at,
        revoked_at: token.revoked_at,
    }
}

/// Lists access tokens, newest first.
#[utoipa::path(get, path = "/tokens", tag = "access", params(PageQuery), responses((status = 200, body = TokenList)))]
pub async fn list_tokens(
    State(app): State<ControlState>,
    QueryParams(page): QueryParams<PageQuery>,
) -> Result<Json<TokenList>> {
    let paging = PageRequest::from_page_query("tokens", &page)?;
    let behind = paging.after.clone().map(|place| (Millis(place.at), place.id));
    let mut found = app.control.list_tokens(behind, paging.row_limit()).await?;
    let next_cursor =
        paging.cut_page(&mut found, |token| PagePosition { at: token.created_at.0, id: token.id.clone() });
    Ok(Json(TokenList { tokens: found.into_iter().map(token_view).collect(), next_cursor }))
}

/// Creates an access token.
#[utoipa::path(post, path = "/tokens", tag = "access", request_body = NewToken, responses((status = 201, body = CreatedTokenView)))]
pub async fn create_token(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    JsonBody(new): JsonBody<NewToken>,
) -> Result<(StatusCode, Json<CreatedTokenView>)> {
    let name = new.name.trim().to_owned();
    if name.is_empty() || name.chars().count() > MAX_TOKEN_NAME_LEN || name.chars().any(char::is_control) {
        return Err(Error::invalid_field("name", format!("must have 1 to {MAX_TOKEN_NAME_LEN} characters")));
    }
    let made = app.control.create_token(&by, name, new.scope).await?;
    Ok((
        StatusCode::CREATED,
        Json(CreatedTokenView { token: token_view(made.token), secret: Some(made.secret) }),
    ))
}

/// Revokes an access token.
/// Browser logins and open connections made with it end.
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

/// Creates a login link with the access of the caller.
/// The link works once, for ten minutes, and does not contain the token. The login ends when the token is revoked.
#[utoipa::path(post, path = "/logins", tag = "access", responses((status = 201, body = LoginLink)))]
pub async fn create_login_link(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
) -> Result<(StatusCode, Json<LoginLink>)> {
    app.control.record_login(&by).await?;
    let principal = by.token.map_or(BrowserPrincipal::Owner, BrowserPrincipal::Token);
    let login = open_login_link(&app.auth, app.control.nonce(), principal, app.control.now());
    Ok((StatusCode::CREATED, Json(login)))
}

/// Lists browser logins, most recently used first.
/// A token with the scope `admin` sees all of them, others only their own.
#[utoipa::path(get, path = "/logins", tag = "access", responses((status = 200, body = BrowserLoginList)))]
pub async fn list_token_logins(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    current: CurrentLoginExtension,
) -> Result<Json<BrowserLoginList>> {
    login_list(&app, own_token_filter(&by), current).await
}

/// Ends a browser login and its open connections.
/// `current` is the login of the calling browser.
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

/// Returns the token whose logins the caller may see and end. `None` means all.
fn own_token_filter(by: &ControlCaller) -> Option<String> {
    by.token.clone().filter(|_| by.access < TokenAccess::Admin)
}
