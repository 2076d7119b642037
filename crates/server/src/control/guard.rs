//! Who calls the control plane, and whether they may.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::http::header::UPGRADE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use polyclaw_control::Caller;
use polyclaw_domain::instance::Access;

use super::state::ControlState;
use crate::error::{Error, Result};
use crate::guard::{bearer, code_in, shows_cookie};

/// How long somebody waits who shows one wrong token too many.
const PENALTY: Duration = Duration::from_millis(500);

/// For every route that tells or does anything: the caller is known from here on.
pub async fn caller(State(app): State<ControlState>, mut request: Request, next: Next) -> Response {
    let known = match shown(&app, &request) {
        Shown::Operator => Ok(Caller::operator()),
        Shown::Token(given) => look_up(&app, &given).await,
        Shown::Nothing => Err(Error::Unauthorized),
    };
    match known {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// What a request shows of who sends it.
enum Shown {
    Operator,
    /// A token that is not the operator's.
    Token(String),
    Nothing,
}

fn shown(app: &ControlState, request: &Request) -> Shown {
    let headers = request.headers();
    match bearer(headers) {
        Some(given) if !app.door.is_open() && app.door.accepts_token(given) => Shown::Operator,
        Some(given) => Shown::Token(given.to_owned()),
        None if app.door.is_open() => Shown::Operator,
        None if shows_cookie(&app.door, headers) || shows_code(app, request) => Shown::Operator,
        None => Shown::Nothing,
    }
}

/// Who guesses is slowed down; a token that is known is never kept waiting by those who guess.
async fn look_up(app: &ControlState, given: &str) -> Result<Caller> {
    if let Some(caller) = app.control.caller(given).await? {
        return Ok(caller);
    }
    // Where nobody is asked for a token, an instance is still known by its own.
    if app.door.is_open() {
        return Ok(Caller::operator());
    }
    app.attempts.failed();
    if !app.attempts.are_too_many() {
        return Err(Error::Unauthorized);
    }
    tokio::time::sleep(PENALTY).await;
    Err(Error::TooManyAttempts)
}

/// A page can not send a header with a socket: it shows a one-time code.
fn shows_code(app: &ControlState, request: &Request) -> bool {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    path.starts_with("/ws/")
        && code_in(request.uri()).is_some_and(|code| app.door.logins.take(&code, app.control.now()))
}

pub async fn reads(request: Request, next: Next) -> Response {
    allow(Access::Read, request, next).await
}

pub async fn operates(request: Request, next: Next) -> Response {
    allow(Access::Operate, request, next).await
}

pub async fn administers(request: Request, next: Next) -> Response {
    allow(Access::Admin, request, next).await
}

/// Through the gateway a look needs less than a word; a socket is both.
pub async fn talks(request: Request, next: Next) -> Response {
    let looks =
        matches!(*request.method(), Method::GET | Method::HEAD) && !request.headers().contains_key(UPGRADE);
    allow(if looks { Access::Read } else { Access::Operate }, request, next).await
}

/// What instances do for themselves; whose message it is, is looked at where it is known.
pub async fn corresponds(request: Request, next: Next) -> Response {
    if request.extensions().get::<Caller>().is_some_and(|caller| caller.instance.is_some()) {
        return next.run(request).await;
    }
    allow(Access::Operate, request, next).await
}

async fn allow(needed: Access, request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Caller>();
    match caller {
        // An instance's own token is for the calls of instances.
        Some(caller) if caller.instance.is_none() && caller.access >= needed => next.run(request).await,
        Some(_) => Error::Forbidden(needed.as_str()).into_response(),
        None => Error::Unauthorized.into_response(),
    }
}
