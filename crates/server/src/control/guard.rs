//! Who calls the control plane, and whether they may.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::UPGRADE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use polyclaw_control::{Caller, Kind, Stay};
use polyclaw_domain::instance::TokenAccess;

use super::gateway;
use super::state::ControlState;
use crate::browser::{BrowserProof, CurrentLogin};
use crate::door::Guest;
use crate::error::{Error, Result};
use crate::guard::{bearer, code_in};

/// How long somebody waits who shows one wrong token too many.
const PENALTY: Duration = Duration::from_millis(500);

/// For every route that tells or does anything: the caller is known from here on.
pub async fn caller(State(app): State<ControlState>, mut request: Request, next: Next) -> Response {
    let known = match shown(&app, &request) {
        Shown::Operator => Ok((Caller::operator(), None)),
        Shown::Token(given) => look_up(&app, &given).await,
        Shown::Code(id) => by_id(&app, &id).await,
        Shown::Login(proof) => match logged_in(&app, proof).await {
            Ok((caller, login)) => {
                let stay = login.stay.clone();
                request.extensions_mut().insert(login);
                Ok((caller, Some(stay)))
            }
            Err(error) => Err(error),
        },
        Shown::Nothing => Err(Error::Unauthorized),
    };
    match known {
        Ok((caller, stay)) => {
            request.extensions_mut().insert(caller);
            stay.map(|stay| request.extensions_mut().insert(stay));
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
    /// The one-time code of whoever has a token, by its id.
    Code(String),
    Login(BrowserProof),
    Nothing,
}

fn shown(app: &ControlState, request: &Request) -> Shown {
    let headers = request.headers();
    match bearer(headers) {
        Some(given) if !app.door.is_open() && app.door.accepts_token(given) => Shown::Operator,
        Some(given) => Shown::Token(given.to_owned()),
        None if app.door.is_open() => Shown::Operator,
        None => match guest_with_code(app, request) {
            Some(Guest::Owner) => Shown::Operator,
            Some(Guest::Token(id)) => Shown::Code(id),
            None => {
                let (method, uri) = (request.method(), request.uri());
                let proof = BrowserProof::of(&app.door.cookie_name, method, uri, headers);
                proof.map_or(Shown::Nothing, Shown::Login)
            }
        },
    }
}

/// Who guesses is slowed down; a token that is known is never kept waiting by those who guess.
async fn look_up(app: &ControlState, given: &str) -> Result<(Caller, Option<Stay>)> {
    if let Some((caller, stay)) = app.control.caller(given).await? {
        return Ok((caller, Some(stay)));
    }
    // Where nobody is asked for a token, an instance is still known by its own.
    if app.door.is_open() {
        return Ok((Caller::operator(), None));
    }
    app.attempts.failed();
    if !app.attempts.are_too_many() {
        return Err(Error::WrongToken);
    }
    tokio::time::sleep(PENALTY).await;
    Err(Error::TooManyAttempts)
}

async fn by_id(app: &ControlState, id: &str) -> Result<(Caller, Option<Stay>)> {
    let (caller, stay) = app.control.caller_by_id(id).await?.ok_or(Error::Unauthorized)?;
    Ok((caller, Some(stay)))
}

/// A login ends with its token.
async fn logged_in(app: &ControlState, proof: BrowserProof) -> Result<(Caller, CurrentLogin)> {
    let login = app.browsers.find(proof, app.control.now()).await?.ok_or(Error::Unauthorized)?;
    let caller = match app.door.guest(&login.owner).ok_or(Error::Unauthorized)? {
        Guest::Owner => Caller::operator(),
        Guest::Token(id) => by_id(app, &id).await?.0,
    };
    Ok((caller, login))
}

/// A page can not send a header with a socket: it shows a one-time code.
fn guest_with_code(app: &ControlState, request: &Request) -> Option<Guest> {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let code = code_in(request.uri()).filter(|_| path.starts_with("/ws/"))?;
    app.door.logins.take(&code, app.control.now())
}

pub async fn reads(request: Request, next: Next) -> Response {
    allow(TokenAccess::Read, request, next).await
}

pub async fn operates(request: Request, next: Next) -> Response {
    allow(TokenAccess::Operate, request, next).await
}

pub async fn administers(request: Request, next: Next) -> Response {
    allow(TokenAccess::Admin, request, next).await
}

/// Through the gateway a look needs less than a word, and a word less than a change; over a socket one may talk.
pub async fn passes(request: Request, next: Next) -> Response {
    let target = match gateway::split(request.uri()) {
        Ok((_, target)) => target,
        Err(error) => return error.into_response(),
    };
    let asked = Kind::of(request.method(), target.path()).needs();
    let least = match request.headers().contains_key(UPGRADE) {
        true => TokenAccess::Operate,
        false => TokenAccess::Read,
    };
    allow(asked.max(least), request, next).await
}

/// What instances do for themselves; whose message it is, is looked at where it is known.
pub async fn corresponds(request: Request, next: Next) -> Response {
    if request.extensions().get::<Caller>().is_some_and(|caller| caller.instance.is_some()) {
        return next.run(request).await;
    }
    allow(TokenAccess::Operate, request, next).await
}

async fn allow(needed: TokenAccess, request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Caller>();
    match caller {
        // An instance's own token is for the calls of instances.
        Some(caller) if caller.instance.is_none() && caller.access >= needed => next.run(request).await,
        Some(_) => Error::Forbidden(needed.as_str()).into_response(),
        None => Error::Unauthorized.into_response(),
    }
}
