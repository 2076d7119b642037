//! Browser logins. A login has two halves: a cookie that no script can read, and a key that only pages of this origin
//! can read. Browsers send cookies to every port of a host, so a server on another port may obtain the cookie;
//! without the key it is useless.

use axum::http::header::{HeaderName, SEC_WEBSOCKET_PROTOCOL};
use axum::http::{HeaderMap, Method, Uri};
use polyclaw_control::{TokenLifetime, TokenLifetimes};
use polyclaw_domain::audit::content_hash;
use polyclaw_domain::time::Millis;
use polyclaw_store::Db;
use polyclaw_store::logins::{self, LoginHashes, LoginOwner, StoredLogin};
use subtle::ConstantTimeEq;

use crate::error::Result;
use crate::guard::find_cookie;

/// The header with the key.
pub const LOGIN_KEY: HeaderName = HeaderName::from_static("polyclaw-login");
/// The WebSocket subprotocol. A page cannot set headers of a socket but can list protocols, so it sends the key in
/// the name of a second one, which is never selected.
pub const SOCKET_PROTOCOL: &str = "polyclaw";
const KEY_PROTOCOL: &str = "polyclaw.login.";

/// The lifetime of a login.
pub const LOGIN_LIFETIME_MS: i64 = 30 * 24 * 60 * 60_000;
/// The precision of a login's last use.
const LAST_USED_UPDATE_INTERVAL_MS: i64 = 10 * 60_000;
/// The stored length of a user agent.
const MAX_CLIENT_NAME_LEN: usize = 200;

/// The proof of a login in a request.
pub struct BrowserProof {
    cookie: String,
    key: Option<String>,
    /// An image needs no key, because an `<img>` cannot send a header. It is requested by its content hash, which the
    /// caller has read in a conversation.
    is_image: bool,
}

impl BrowserProof {
    pub fn from_request(cookie_name: &str, method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Self> {
        let cookie = find_cookie(headers, cookie_name)?.to_owned();
        let key = headers.get(LOGIN_KEY).and_then(|key| key.to_str().ok());
        let key = key.or_else(|| socket_protocols(headers).find_map(|name| name.strip_prefix(KEY_PROTOCOL)));
        Some(Self { cookie, key: key.map(str::to_owned), is_image: *method == Method::GET && is_image(uri) })
    }
}

/// Whether a page of ours opens the socket. It expects [`SOCKET_PROTOCOL`] to be selected.
pub fn offers_our_protocol(headers: &HeaderMap) -> bool {
    socket_protocols(headers).any(|name| name == SOCKET_PROTOCOL)
}

fn socket_protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// Whether the path is `…/media/<sha256>`, of an instance or through the gateway of a control plane.
fn is_image(uri: &Uri) -> bool {
    let mut parts = uri.path().rsplit('/');
    let is_hash = |part: &str| part.len() == 64 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.next().is_some_and(is_hash) && parts.next() == Some("media")
}

/// Both halves of a new login. Only their hashes are stored.
pub struct LoginSecrets {
    pub cookie: String,
    pub key: String,
}

impl LoginSecrets {
    fn login_hashes(&self) -> LoginHashes {
        let hash = |secret: &str| content_hash(secret.as_bytes());
        LoginHashes { cookie: hash(&self.cookie), key: hash(&self.key) }
    }
}

/// A login that a request proved with both halves.
#[derive(Clone)]
pub struct CurrentLogin {
    pub id: String,
    pub owner: LoginOwner,
    /// Ends with the login.
    pub token_lifetime: TokenLifetime,
}

/// The browser logins of a server.
pub struct BrowserLogins {
    db: Db,
    token_lifetimes: TokenLifetimes,
}

impl BrowserLogins {
    pub fn new(db: Db) -> Self {
        Self { db, token_lifetimes: TokenLifetimes::default() }
    }

    /// Stores a new login and ends the previous one of the same browser.
    pub async fn start_login(
        &self,
        login: StoredLogin,
        secrets: &LoginSecrets,
        before: Option<&BrowserProof>,
    ) -> Result<()> {
        let hashes = secrets.login_hashes();
        let replaced = before.map(|proof| content_hash(proof.cookie.as_bytes()));
        let login = StoredLogin { client: login.client.chars().take(MAX_CLIENT_NAME_LEN).collect(), ..login };
        let stored = self.db.write(move |tx| {
            replaced.as_deref().map_or(Ok(()), |cookie| logins::remove_by_cookie(tx, cookie))?;
            logins::insert(tx, &login, &hashes)
        });
        Ok(stored.await?)
    }

    /// Finds the login that the proof belongs to.
    pub async fn find_login(&self, proof: BrowserProof, now: Millis) -> Result<Option<CurrentLogin>> {
        let cookie_hash = content_hash(proof.cookie.as_bytes());
        let found = self.db.read(move |tx| logins::find_by_cookie(tx, &cookie_hash, now)).await?;
        let Some((login, key_hash)) = found else { return Ok(None) };
        let given = proof.key.map(|key| content_hash(key.as_bytes())).unwrap_or_default();
        if !proof.is_image && !bool::from(given.as_bytes().ct_eq(key_hash.as_bytes())) {
            return Ok(None);
        }
        if now.0 - login.used_at.0 > LAST_USED_UPDATE_INTERVAL_MS {
            let id = login.id.clone();
            self.db.write(move |tx| logins::mark_used(tx, &id, now)).await?;
        }
        Ok(Some(CurrentLogin {
            token_lifetime: self.token_lifetimes.for_token(&login.id),
            id: login.id,
            owner: login.owner,
        }))
    }

    /// Lists the logins of a token, or all.
    pub async fn list_logins(&self, token: Option<String>, now: Millis) -> Result<Vec<StoredLogin>> {
        Ok(self.db.read(move |tx| logins::list(tx, token.as_deref(), now)).await?)
    }

    /// Ends a login and the connections opened with it. Returns whether it existed and, if `token` is given, belonged
    /// to that token.
    pub async fn end_login(&self, id: &str, token: Option<String>) -> Result<bool> {
        let wanted = id.to_owned();
        let removed = self.db.write(move |tx| logins::remove(tx, &wanted, token.as_deref())).await?;
        if removed {
            self.token_lifetimes.end_token(id);
        }
        Ok(removed)
    }

    /// Ends all logins of a revoked token.
    pub async fn end_logins_of_token(&self, token: &str) -> Result<()> {
        let token = token.to_owned();
        let ended = self.db.write(move |tx| logins::remove_by_token(tx, &token)).await?;
        ended.iter().for_each(|id| self.token_lifetimes.end_token(id));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(method: &Method, path: &str, headers: &[(HeaderName, &str)]) -> Option<BrowserProof> {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        BrowserProof::from_request("polyclaw_1", method, &path.parse().unwrap(), &headers)
    }

    #[test]
    fn login_key_is_read_from_header_or_websocket_protocol() {
        let cookie = (axum::http::header::COOKIE, "a=b; polyclaw_1=c");
        for (name, value, key) in [
            (LOGIN_KEY, "k", Some("k")),
            (SEC_WEBSOCKET_PROTOCOL, "polyclaw, polyclaw.login.k", Some("k")),
            (SEC_WEBSOCKET_PROTOCOL, "polyclaw", None),
        ] {
            let proof = shown(&Method::GET, "/api/v1/ws", &[cookie.clone(), (name, value)]).unwrap();
            assert_eq!((proof.cookie.as_str(), proof.key.as_deref()), ("c", key), "{value}");
        }
        assert!(shown(&Method::GET, "/", &[(LOGIN_KEY, "k")]).is_none(), "there is no cookie");
    }

    #[test]
    fn only_get_media_counts_as_image_request() {
        let cookie = (axum::http::header::COOKIE, "polyclaw_1=c");
        let hash = "a".repeat(64);
        for (method, path, expected) in [
            (Method::GET, format!("/api/v1/media/{hash}"), true),
            (Method::GET, format!("/api/instances/main/gateway/media/{hash}"), true),
            (Method::POST, format!("/api/v1/media/{hash}"), false),
            (Method::GET, format!("/api/v1/media/{hash}/x"), false),
            (Method::GET, "/api/v1/media/short".to_owned(), false),
            (Method::GET, format!("/api/v1/sessions/{hash}"), false),
        ] {
            assert_eq!(
                shown(&method, &path, std::slice::from_ref(&cookie)).unwrap().is_image,
                expected,
                "{path}"
            );
        }
    }
}
