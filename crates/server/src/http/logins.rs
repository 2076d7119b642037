//! One-time login codes and browser logins.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use polyclaw_api::logins::{BrowserLogin, BrowserLoginList, LoginLink};
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::time::Millis;
use polyclaw_store::logins::LoginOwner;

use crate::auth::{BrowserAuth, BrowserPrincipal};
use crate::browser::CurrentLogin;
use crate::error::{Error, Result};
use crate::extract::PathId;
use crate::login::{self, LoginHost};
use crate::state::AppState;

/// The id that stands for the caller's own login.
const CURRENT_LOGIN_ID: &str = "current";

/// Opens a login code. `code` must be unguessable.
pub fn open_login_link(
    door: &BrowserAuth,
    code: String,
    principal: BrowserPrincipal,
    now: Millis,
) -> LoginLink {
    let expires_at = door.logins.open_code(code.clone(), principal, now);
    LoginLink { path: login::login_path(&code), code, expires_at }
}

pub type CurrentLoginExtension = Option<Extension<CurrentLogin>>;

/// Lists the logins of a token, or all logins of a server.
pub async fn login_list(
    app: &impl LoginHost,
    token: Option<String>,
    current: CurrentLoginExtension,
) -> Result<Json<BrowserLoginList>> {
    let current = current.map(|Extension(login)| login.id);
    let found = app.browsers().list_logins(token, app.now()).await?;
    let view = |login: polyclaw_store::logins::StoredLogin| BrowserLogin {
        current: current.as_ref() == Some(&login.id),
        id: login.id,
        token: match login.owner {
            LoginOwner::Server { .. } => None,
            LoginOwner::Token { id } => Some(id),
        },
        client: login.client,
        created_at: login.created_at,
        used_at: login.used_at,
        expires_at: login.expires_at,
    };
    Ok(Json(BrowserLoginList { logins: found.into_iter().map(view).collect() }))
}

/// Resolves the id in a path. `current` is the caller's login.
pub fn resolve_login_id(id: &str, current: &CurrentLoginExtension) -> Result<String> {
    match current {
        Some(Extension(login)) if id == CURRENT_LOGIN_ID => Ok(login.id.clone()),
        None if id == CURRENT_LOGIN_ID => Err(Error::UnknownLogin(CURRENT_LOGIN_ID.to_owned())),
        _ => Ok(id.to_owned()),
    }
}

/// Ends a login. If it is the caller's own, the cookie is cleared.
pub async fn end_browser_login(
    app: &impl LoginHost,
    id: &str,
    token: Option<String>,
    current: &CurrentLoginExtension,
) -> Result<Response> {
    if !app.browsers().end_login(id, token).await? {
        return Err(Error::UnknownLogin(quote_safely(id)));
    }
    let is_own = current.as_ref().is_some_and(|Extension(login)| login.id == id);
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Some(cookie) = is_own.then(|| app.as_ref().set_cookie(None)).and_then(|cookie| cookie.parse().ok())
    {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Creates a login link for a browser.
/// The link works once, for ten minutes, and does not contain the token.
#[utoipa::path(post, path = "/logins", tag = "instance", responses((status = 201, body = LoginLink)))]
pub async fn create_login(State(app): State<AppState>) -> (StatusCode, Json<LoginLink>) {
    (
        StatusCode::CREATED,
        Json(open_login_link(&app.auth, app.engine.nonce(), BrowserPrincipal::Owner, app.engine.now())),
    )
}

/// Lists browser logins, most recently used first.
#[utoipa::path(get, path = "/logins", tag = "instance", responses((status = 200, body = BrowserLoginList)))]
pub async fn list_logins(
    State(app): State<AppState>,
    current: CurrentLoginExtension,
) -> Result<Json<BrowserLoginList>> {
    login_list(&app, None, current).await
}

/// Ends a browser login.
/// `current` is the login of the calling browser.
#[utoipa::path(delete, path = "/logins/{id}", tag = "instance", params(("id" = String, Path)), responses((status = 204)))]
pub async fn end_login(
    State(app): State<AppState>,
    current: CurrentLoginExtension,
    PathId(id): PathId,
) -> Result<Response> {
    end_browser_login(&app, &resolve_login_id(&id, &current)?, None, &current).await
}
