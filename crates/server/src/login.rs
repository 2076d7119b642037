//! One-time codes: how a browser gets in. A code stands in a link and so in places others may read, such as a
//! process list or a history: it lasts for minutes, works once, and says nothing about the token.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::header::{LOCATION, REFERRER_POLICY, SET_COOKIE};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use polyclaw_domain::time::Millis;
use subtle::ConstantTimeEq;

use crate::door::{Door, Guest};
use crate::guard::{code_in, guest_of};

/// Long enough to walk over to another machine.
const LASTS_MS: i64 = 10 * 60_000;
/// Codes open at a time; the oldest give way.
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
        if open.len() == KEPT {
            open.remove(0);
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

/// What the code in a page's address led to.
pub enum Entrance {
    NoCode,
    /// In: a cookie is left and the code taken out of the address bar.
    Opened(Response),
    UsedUp,
}

/// Uses up the code in the address of the page, if there is one; whoever comes in goes on to `to`.
pub fn entrance(
    door: &Door,
    (method, uri, headers): (&Method, &Uri, &HeaderMap),
    to: &'static str,
    now: Millis,
) -> Entrance {
    // A look at the head of a link, as previews do, must not use it up.
    let Some(code) = code_in(uri).filter(|_| *method == Method::GET) else { return Entrance::NoCode };
    // Who is in already stays who they are.
    let Some(guest) = door.logins.take(&code, now).or_else(|| guest_of(door, headers)) else {
        return Entrance::UsedUp;
    };
    let mut response =
        (StatusCode::SEE_OTHER, [(LOCATION, to), (REFERRER_POLICY, "no-referrer")]).into_response();
    if let Some(cookie) = door.set_cookie(&guest).and_then(|cookie| cookie.parse().ok()) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Entrance::Opened(response)
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
}
