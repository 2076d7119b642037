//! Authenticates and authorizes callers of the control plane.

use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::UPGRADE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use polyclaw_control::{ControlCaller, ProxiedCallKind, TokenLifetime};
use polyclaw_domain::instance::TokenAccess;

use super::gateway;
use super::state::ControlState;
use crate::auth::BrowserPrincipal;
use crate::browser::{BrowserProof, CurrentLogin};
use crate::error::{Error, Result};
use crate::guard::{bearer_token, code_in_query};

/// The delay after too many wrong tokens.
const WRONG_TOKEN_DELAY: Duration = Duration::from_millis(500);

/// Identifies the caller for all routes that need one.
pub async fn authenticate_caller(
    State(app): State<ControlState>,
    mut request: Request,
    next: Next,
) -> Response {
    let known = match read_credentials(&app, &request) {
        ControlCredentials::Operator => Ok((ControlCaller::operator(), None)),
        ControlCredentials::Token(given) => caller_by_token(&app, &given).await,
        ControlCredentials::Code(id) => caller_by_id(&app, &id).await,
        ControlCredentials::Login(proof) => match caller_by_login(&app, proof).await {
            Ok((caller, login)) => {
                let stay = login.token_lifetime.clone();
                request.extensions_mut().insert(login);
                Ok((caller, Some(stay)))
            }
            Err(error) => Err(error),
        },
        ControlCredentials::Nothing => Err(Error::Unauthorized),
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

/// The credentials in a request.
enum ControlCredentials {
    Operator,
    /// A token other than the operator's.
    Token(String),
    /// A one-time code, with the id of the token it was issued for.
    Code(String),
    Login(BrowserProof),
    Nothing,
}

fn read_credentials(app: &ControlState, request: &Request) -> ControlCredentials {
    let headers = request.headers();
    match bearer_token(headers) {
        Some(given) if !app.auth.is_auth_off() && app.auth.accepts_token(given) => {
            ControlCredentials::Operator
        }
        Some(given) => ControlCredentials::Token(given.to_owned()),
        None if app.auth.is_auth_off() => ControlCredentials::Operator,
        None => match principal_for_code(app, request) {
            Some(BrowserPrincipal::Owner) => ControlCredentials::Operator,
            Some(BrowserPrincipal::Token(id)) => ControlCredentials::Code(id),
            None => {
                let (method, uri) = (request.method(), request.uri());
                let proof = BrowserProof::from_request(&app.auth.cookie_name, method, uri, headers);
                proof.map_or(ControlCredentials::Nothing, ControlCredentials::Login)
            }
        },
    }
}

/// Finds the caller of a token. Guessing is slowed down, but never the use of valid tokens.
async fn caller_by_token(app: &ControlState, given: &str) -> Result<(ControlCaller, Option<TokenLifetime>)> {
    if let Some((caller, stay)) = app.control.find_caller(given).await? {
        return Ok((caller, Some(stay)));
    }
    // With authentication off, instances are still identified by their token.
    if app.auth.is_auth_off() {
        return Ok((ControlCaller::operator(), None));
    }
    app.attempts.record_failure();
    if !app.attempts.is_limit_reached() {
        return Err(Error::WrongToken);
    }
    tokio::time::sleep(WRONG_TOKEN_DELAY).await;
    Err(Error::TooManyAttempts)
}

async fn caller_by_id(app: &ControlState, id: &str) -> Result<(ControlCaller, Option<TokenLifetime>)> {
    let (caller, stay) = app.control.find_caller_by_id(id).await?.ok_or(Error::Unauthorized)?;
    Ok((caller, Some(stay)))
}

/// Finds the caller of a browser login, which ends with its token.
async fn caller_by_login(app: &ControlState, proof: BrowserProof) -> Result<(ControlCaller, CurrentLogin)> {
    let login = app.browsers.find_login(proof, app.control.now()).await?.ok_or(Error::Unauthorized)?;
    let caller = match app.auth.principal_of(&login.owner).ok_or(Error::Unauthorized)? {
        BrowserPrincipal::Owner => ControlCaller::operator(),
        BrowserPrincipal::Token(id) => caller_by_id(app, &id).await?.0,
    };
    Ok((caller, login))
}

/// Redeems a one-time code, because a page cannot send headers with a socket.
fn principal_for_code(app: &ControlState, request: &Request) -> Option<BrowserPrincipal> {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let code = code_in_query(request.uri()).filter(|_| path.starts_with("/ws/"))?;
    app.auth.logins.redeem_code(&code, app.control.now())
}

pub async fn require_read(request: Request, next: Next) -> Response {
    require_access(TokenAccess::Read, request, next).await
}

pub async fn require_operate(request: Request, next: Next) -> Response {
    require_access(TokenAccess::Operate, request, next).await
}

pub async fn require_admin(request: Request, next: Next) -> Response {
    require_access(TokenAccess::Admin, request, next).await
}

/// Requires access by the kind of forwarded call: reading needs less than a message, a message less than a change. A
/// socket requires operate access, because messages can be sent over it.
pub async fn require_gateway_access(request: Request, next: Next) -> Response {
    let target = match gateway::split_gateway_uri(request.uri()) {
        Ok((_, target)) => target,
        Err(error) => return error.into_response(),
    };
    let asked = ProxiedCallKind::from_request(request.method(), target.path()).required_access();
    let least = match request.headers().contains_key(UPGRADE) {
        true => TokenAccess::Operate,
        false => TokenAccess::Read,
    };
    require_access(asked.max(least), request, next).await
}

/// Admits instances to their own calls, and operators. The handler checks whose message it is.
pub async fn require_instance_or_operator(request: Request, next: Next) -> Response {
    if request.extensions().get::<ControlCaller>().is_some_and(|caller| caller.instance.is_some()) {
        return next.run(request).await;
    }
    require_access(TokenAccess::Operate, request, next).await
}

async fn require_access(needed: TokenAccess, request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<ControlCaller>();
    match caller {
        // An instance's own token is valid only for calls of instances.
        Some(caller) if caller.instance.is_none() && caller.access >= needed => next.run(request).await,
        Some(_) => Error::Forbidden(needed.as_str()).into_response(),
        None => Error::Unauthorized.into_response(),
    }
}
