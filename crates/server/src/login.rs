//! One-time login codes for browsers. A code is part of a link, so others may read it in a process list or a history.
//! It is valid for minutes, works once, and reveals nothing about the token. The page exchanges it for a login at
//! `POST /login`; opening the link alone does not use it up, so link previews do no harm.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::extract::State;
use axum::http::header::{SET_COOKIE, USER_AGENT};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use polyclaw_api::logins::{RedeemCodeBody, StartedLogin};
use polyclaw_domain::time::Millis;
use polyclaw_store::logins::StoredLogin;
use subtle::ConstantTimeEq;

use crate::auth::{BrowserAuth, BrowserPrincipal};
use crate::browser::{BrowserLogins, BrowserProof, LOGIN_LIFETIME_MS, LoginSecrets};
use crate::error::{Error, Result};
use crate::extract::JsonBody;

/// Long enough to walk to another machine.
const LOGIN_CODE_LIFETIME_MS: i64 = 10 * 60_000;
/// Open codes per principal. The oldest are dropped; codes of other principals are not affected.
const MAX_OPEN_CODES: usize = 32;

/// The open login codes. Cloning copies a pointer.
#[derive(Clone, Default)]
pub struct LoginCodes(Arc<Mutex<Vec<OpenLoginCode>>>);

struct OpenLoginCode {
    code: String,
    principal: BrowserPrincipal,
    expires_at: Millis,
}

impl LoginCodes {
    /// Opens an unguessable code for a browser of this principal. Returns when it expires.
    pub fn open_code(&self, code: String, principal: BrowserPrincipal, now: Millis) -> Millis {
        let until = now.plus(LOGIN_CODE_LIFETIME_MS);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|one| one.expires_at > now);
        if open.iter().filter(|one| one.principal == principal).count() >= MAX_OPEN_CODES
            && let Some(oldest) = open.iter().position(|one| one.principal == principal)
        {
            open.remove(oldest);
        }
        open.push(OpenLoginCode { code, principal, expires_at: until });
        until
    }

    /// Redeems a code. Returns its principal if it was open.
    pub fn redeem_code(&self, given: &str, now: Millis) -> Option<BrowserPrincipal> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|one| one.expires_at > now);
        let found = open.iter().position(|one| one.code.as_bytes().ct_eq(given.as_bytes()).into());
        found.map(|at| open.remove(at).principal)
    }
}

/// Returns the path that logs in with a code.
pub fn login_path(code: &str) -> String {
    format!("/?code={code}")
}

/// A server that browsers log in to.
pub trait LoginHost: AsRef<BrowserAuth> {
    fn browsers(&self) -> &BrowserLogins;
    fn now(&self) -> Millis;
    /// Returns an unguessable string.
    fn new_nonce(&self) -> String;
}

/// `POST /login`: exchanges a one-time code for a login. Sets its cookie and returns its key.
pub async fn redeem_login<S: LoginHost>(
    State(app): State<S>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    JsonBody(given): JsonBody<RedeemCodeBody>,
) -> Result<Response> {
    let (door, now) = (app.as_ref(), app.now());
    let principal = door.logins.redeem_code(&given.code, now).ok_or(Error::UsedCode)?;
    let owner = door.owner_of(principal).ok_or(Error::UsedCode)?;
    let secrets = LoginSecrets { cookie: new_secret(&app), key: new_secret(&app) };
    let client = headers.get(USER_AGENT).and_then(|name| name.to_str().ok()).unwrap_or_default();
    let login = StoredLogin {
        id: app.new_nonce(),
        owner,
        client: client.to_owned(),
        created_at: now,
        used_at: now,
        expires_at: now.plus(LOGIN_LIFETIME_MS),
    };
    let started =
        StartedLogin { id: login.id.clone(), key: secrets.key.clone(), expires_at: login.expires_at };
    let before = BrowserProof::from_request(&door.cookie_name, &method, &uri, &headers);
    app.browsers().start_login(login, &secrets, before.as_ref()).await?;
    let cookie = [(SET_COOKIE, door.set_cookie(Some(&secrets.cookie)))];
    Ok((StatusCode::CREATED, cookie, Json(started)).into_response())
}

fn new_secret(app: &impl LoginHost) -> String {
    format!("{}{}", app.new_nonce(), app.new_nonce())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_code_is_single_use_and_expires() {
        let (logins, now) = (LoginCodes::default(), Millis(1_000));
        let reader = BrowserPrincipal::Token("t-1".into());
        let until = logins.open_code("a".into(), reader.clone(), now);
        logins.open_code("b".into(), BrowserPrincipal::Owner, now);
        assert_eq!(["c", "a", "a"].map(|code| logins.redeem_code(code, now)), [None, Some(reader), None]);
        assert_eq!(logins.redeem_code("b", until), None, "its time is over");
        for n in 0..=MAX_OPEN_CODES {
            logins.open_code(n.to_string(), BrowserPrincipal::Owner, now);
        }
        assert_eq!(
            ["0", "1"].map(|code| logins.redeem_code(code, now)),
            [None, Some(BrowserPrincipal::Owner)],
            "the oldest gave way"
        );
    }

    #[test]
    fn login_codes_of_one_token_do_not_evict_others() {
        let (logins, now) = (LoginCodes::default(), Millis(1_000));
        logins.open_code("owner".into(), BrowserPrincipal::Owner, now);
        for n in 0..3 * MAX_OPEN_CODES {
            logins.open_code(n.to_string(), BrowserPrincipal::Token("reader".into()), now);
        }
        assert_eq!(logins.redeem_code("owner", now), Some(BrowserPrincipal::Owner));
    }
}
