//! One-time codes for browsers, and the browsers that are logged in.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::time::Millis;
use polyclaw_store::logins::LoginOwner;
use serde::Serialize;
use utoipa::ToSchema;

use crate::browser::CurrentLogin;
use crate::door::{Door, Guest};
use crate::error::{Error, Result};
use crate::extract::Id;
use crate::login::{self, LoginHost};
use crate::state::AppState;

/// The login that a call is made with.
const CURRENT: &str = "current";

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

#[derive(Serialize, ToSchema)]
pub struct BrowserLoginList {
    logins: Vec<BrowserLogin>,
}

/// A browser that is logged in.
#[derive(Serialize, ToSchema)]
pub struct BrowserLogin {
    id: String,
    /// The token it logged in with; null for the server's own.
    token: Option<String>,
    /// What the browser calls itself.
    client: String,
    /// Whether this call is made with it.
    current: bool,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    /// When it was used last, to within ten minutes.
    #[schema(value_type = String, format = DateTime)]
    used_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Millis,
}

pub type Current = Option<Extension<CurrentLogin>>;

/// The logins of a token, or all of a server.
pub async fn listed(
    app: &impl LoginHost,
    token: Option<String>,
    current: Current,
) -> Result<Json<BrowserLoginList>> {
    let current = current.map(|Extension(login)| login.id);
    let found = app.browsers().list(token, app.now()).await?;
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

/// The id that is meant by one in an address.
pub fn meant(id: &str, current: &Current) -> Result<String> {
    match current {
        Some(Extension(login)) if id == CURRENT => Ok(login.id.clone()),
        None if id == CURRENT => Err(Error::UnknownLogin(CURRENT.to_owned())),
        _ => Ok(id.to_owned()),
    }
}

/// Ends one. The browser that ends its own login keeps no cookie.
pub async fn ended(
    app: &impl LoginHost,
    id: &str,
    token: Option<String>,
    current: &Current,
) -> Result<Response> {
    if !app.browsers().end(id, token).await? {
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

/// A link that lets a browser in: it works once, for ten minutes, and does not hold the token.
#[utoipa::path(post, path = "/logins", tag = "instance", responses((status = 201, body = Login)))]
pub async fn create(State(app): State<AppState>) -> (StatusCode, Json<Login>) {
    (StatusCode::CREATED, Json(Login::open(&app.door, app.engine.nonce(), Guest::Owner, app.engine.now())))
}

/// The browsers that are logged in, the most recently used first.
#[utoipa::path(get, path = "/logins", tag = "instance", responses((status = 200, body = BrowserLoginList)))]
pub async fn list(State(app): State<AppState>, current: Current) -> Result<Json<BrowserLoginList>> {
    listed(&app, None, current).await
}

/// Ends a login; `current` is the one of the browser that calls.
#[utoipa::path(delete, path = "/logins/{id}", tag = "instance", params(("id" = String, Path)), responses((status = 204)))]
pub async fn end(State(app): State<AppState>, current: Current, Id(id): Id) -> Result<Response> {
    ended(&app, &meant(&id, &current)?, None, &current).await
}
