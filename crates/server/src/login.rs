//! One-time codes: how a browser gets in. A code stands in a link and so in places others may read, such as a
//! process list or a history: it lasts for minutes, works once, and says nothing about the token. The page trades it for
//! a login at `POST /login`; only then is it used, so that a preview of the link does no harm.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::extract::State;
use axum::http::header::{SET_COOKIE, USER_AGENT};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use polyclaw_domain::time::Millis;
use polyclaw_store::logins::StoredLogin;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::browser::{BrowserLogins, BrowserProof, LOGIN_LASTS_MS, LoginSecrets};
use crate::door::{Door, Guest};
use crate::error::{Error, Result};
use crate::extract::Body;

/// Long enough to walk over to another machine.
const LASTS_MS: i64 = 10 * 60_000;
/// Codes of one guest that are open at a time; the oldest give way. Nobody's codes push out those of others.
const KEPT: usize = 32;

/// The codes that have not been used. A clone is a pointer.
#[derive(Clone, Default)]
pub struct Logins(Arc<Mutex<Vec<Open>>>);

struct Open {
    code: String,
    guest: Guest,
    until: Millis,
}

impl Logins {
    /// Opens a code nobody can guess, for a browser of this guest; returns when it ends.
    pub fn open(&self, code: String, guest: Guest, now: Millis) -> Millis {
        let until = now.plus(LASTS_MS);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|one| one.until > now);
        if open.iter().filter(|one| one.guest == guest).count() >= KEPT
            && let Some(oldest) = open.iter().position(|one| one.guest == guest)
        {
            open.remove(oldest);
        }
        open.push(Open { code, guest, until });
        until
    }

    /// Whom the code lets in, if it was open. It is not any more.
    pub fn take(&self, given: &str, now: Millis) -> Option<Guest> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|one| one.until > now);
        let found = open.iter().position(|one| one.code.as_bytes().ct_eq(given.as_bytes()).into());
        found.map(|at| open.remove(at).guest)
    }
}

/// Where a browser goes with a code.
pub fn path(code: &str) -> String {
    format!("/?code={code}")
}

/// A server that browsers log in to.
pub trait LoginHost: AsRef<Door> {
    fn browsers(&self) -> &BrowserLogins;
    fn now(&self) -> Millis;
    /// A word nobody can guess.
    fn nonce(&self) -> String;
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redeem {
    code: String,
}

#[derive(Serialize)]
struct Started {
    id: String,
    /// The half of the login that the page keeps and sends in `Polyclaw-Login`.
    key: String,
    expires_at: Millis,
}

/// `POST /login`: trades a one-time code for a login. Its cookie is set, its key is in the answer.
pub async fn redeem<S: LoginHost>(
    State(app): State<S>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    Body(given): Body<Redeem>,
) -> Result<Response> {
    let (door, now) = (app.as_ref(), app.now());
    let guest = door.logins.take(&given.code, now).ok_or(Error::UsedCode)?;
    let owner = door.owner_of(guest).ok_or(Error::UsedCode)?;
    let secrets = LoginSecrets { cookie: secret(&app), key: secret(&app) };
    let client = headers.get(USER_AGENT).and_then(|name| name.to_str().ok()).unwrap_or_default();
    let login = StoredLogin {
        id: app.nonce(),
        owner,
        client: client.to_owned(),
        created_at: now,
        used_at: now,
        expires_at: now.plus(LOGIN_LASTS_MS),
    };
    let started = Started { id: login.id.clone(), key: secrets.key.clone(), expires_at: login.expires_at };
    let before = BrowserProof::of(&door.cookie_name, &method, &uri, &headers);
    app.browsers().start(login, &secrets, before.as_ref()).await?;
    let cookie = [(SET_COOKIE, door.set_cookie(Some(&secrets.cookie)))];
    Ok((StatusCode::CREATED, cookie, Json(started)).into_response())
}

fn secret(app: &impl LoginHost) -> String {
    format!("{}{}", app.nonce(), app.nonce())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_works_once_and_not_for_long() {
        let (logins, now) = (Logins::default(), Millis(1_000));
        let reader = Guest::Token("t-1".into());
        let until = logins.open("a".into(), reader.clone(), now);
        logins.open("b".into(), Guest::Owner, now);
        assert_eq!(["c", "a", "a"].map(|code| logins.take(code, now)), [None, Some(reader), None]);
        assert_eq!(logins.take("b", until), None, "its time is over");
        for n in 0..=KEPT {
            logins.open(n.to_string(), Guest::Owner, now);
        }
        assert_eq!(
            ["0", "1"].map(|code| logins.take(code, now)),
            [None, Some(Guest::Owner)],
            "the oldest gave way"
        );
    }

    #[test]
    fn codes_of_one_token_do_not_push_out_those_of_another() {
        let (logins, now) = (Logins::default(), Millis(1_000));
        logins.open("owner".into(), Guest::Owner, now);
        for n in 0..3 * KEPT {
            logins.open(n.to_string(), Guest::Token("reader".into()), now);
        }
        assert_eq!(logins.take("owner", now), Some(Guest::Owner));
    }
}
