//! Authenticates callers of an instance. A page that rebinds its DNS name to this machine has a foreign `Host`, and a
//! page of another site has a foreign `Origin`; both are rejected. All other callers must show the token or a login.

use std::net::IpAddr;

use axum::extract::{MatchedPath, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use polyclaw_domain::redact::quote_safely;

use crate::auth::{BrowserAuth, BrowserPrincipal};
use crate::browser::{BrowserProof, CurrentLogin};
use crate::cors;
use crate::error::{Error, Result};
use crate::state::AppState;

/// Checks for every route that the host is ours, and that a page's origin is ours or allowed.
pub async fn check_host_and_origin<S: AsRef<BrowserAuth>>(
    State(app): State<S>,
    request: Request,
    next: Next,
) -> Response {
    let foreign = match foreign_origin(app.as_ref(), request.uri(), request.headers()) {
        Ok(foreign) => foreign,
        Err(error) => return error.into_response(),
    };
    let Some(origin) = foreign else { return next.run(request).await };
    let mut response = match cors::preflight_response(&request) {
        Some(response) => response,
        None => next.run(request).await,
    };
    cors::allow_origin(&mut response, origin);
    response
}

/// Requires a token or login for all routes except the public ones.
pub async fn authenticate(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    if app.auth.is_auth_off() {
        return next.run(request).await;
    }
    let shown = match read_credentials(&app, &request) {
        InstanceCredentials::Token => Ok(None),
        InstanceCredentials::Login(proof) => find_current_login(&app, proof).await.map(Some),
        InstanceCredentials::Wrong(error) => Err(error),
    };
    match shown {
        Ok(login) => {
            if let Some(login) = login {
                request.extensions_mut().insert(login.token_lifetime.clone());
                request.extensions_mut().insert(login);
            }
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// The credentials in a request.
enum InstanceCredentials {
    Token,
    Login(BrowserProof),
    Wrong(Error),
}

/// Returns the origin of the page if it is allowed and not our own.
fn foreign_origin(door: &BrowserAuth, uri: &Uri, headers: &HeaderMap) -> Result<Option<HeaderValue>> {
    let setting = door.names.setting;
    // With two headers, a proxy might check the other one.
    if headers.get_all(header::HOST).iter().count() > 1 {
        return Err(Error::invalid_field("Host", "must be sent once"));
    }
    let named = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = named.or_else(|| uri.authority().map(Authority::as_str)).unwrap_or_default();
    if !is_own_host(host, &door.names.hosts) {
        return Err(Error::HostNotAllowed(quote_safely(host), setting));
    }
    let Some(given) = headers.get(header::ORIGIN) else { return Ok(None) };
    let origin = given.to_str().unwrap_or("null");
    match () {
        () if is_own_origin(origin, host) => Ok(None),
        () if is_allowed_origin(origin, &door.names.origins) => Ok(Some(given.clone())),
        () => Err(Error::OriginNotAllowed(quote_safely(origin), setting)),
    }
}

fn is_own_host(host: &str, allowed: &[String]) -> bool {
    let host = host.to_ascii_lowercase();
    let name = without_port(&host);
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let loopback = name == "localhost" || address.is_ok_and(|ip| ip.is_loopback());
    loopback || allowed.iter().any(|known| *known == host || known == name)
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // A bracketed IPv6 address ends in a bracket; a colon inside the brackets does not separate a port.
        Some((name, port)) if !host.ends_with(']') && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_own_origin(origin: &str, host: &str) -> bool {
    let place = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    place.is_some_and(|place| place.eq_ignore_ascii_case(host))
}

fn is_allowed_origin(origin: &str, allowed: &[String]) -> bool {
    allowed.iter().any(|known| known.eq_ignore_ascii_case(origin))
}

fn read_credentials(app: &AppState, request: &Request) -> InstanceCredentials {
    let headers = request.headers();
    match bearer_token(headers) {
        Some(given) if app.auth.accepts_token(given) => return InstanceCredentials::Token,
        Some(_) => return InstanceCredentials::Wrong(Error::WrongToken),
        None => {}
    }
    // A page of another origin cannot send a header with a socket or event stream, nor our cookie.
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let streams = path.ends_with("/ws") || path.ends_with("/stream");
    let code = code_in_query(request.uri()).filter(|_| streams);
    if code.is_some_and(|code| app.auth.logins.redeem_code(&code, app.engine.now()).is_some()) {
        return InstanceCredentials::Token;
    }
    let proof = BrowserProof::from_request(&app.auth.cookie_name, request.method(), request.uri(), headers);
    proof.map_or(InstanceCredentials::Wrong(Error::Unauthorized), InstanceCredentials::Login)
}

async fn find_current_login(app: &AppState, proof: BrowserProof) -> Result<CurrentLogin> {
    let login = app.browsers.find_login(proof, app.engine.now()).await?.ok_or(Error::Unauthorized)?;
    match app.auth.principal_of(&login.owner) {
        Some(BrowserPrincipal::Owner) => Ok(login),
        _ => Err(Error::Unauthorized),
    }
}

pub fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

pub fn find_cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|line| line.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

#[derive(serde::Deserialize)]
struct CodeQuery {
    code: Option<String>,
}

/// Returns the one-time code of a query. The token itself is never in a URL.
pub fn code_in_query(uri: &Uri) -> Option<String> {
    axum::extract::Query::<CodeQuery>::try_from_uri(uri).ok()?.0.code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_and_allowed_hosts_are_accepted() {
        let allowed = ["chat.example.com".to_owned(), "proxy:8443".to_owned()];
        for good in [
            "localhost",
            "LOCALHOST:1",
            "127.0.0.1:18801",
            "127.8.8.8",
            "[::1]:9",
            "[::1]",
            "chat.example.com:443",
            "proxy:8443",
        ] {
            assert!(is_own_host(good, &allowed), "{good}");
        }
        for bad in
            ["", "evil.com", "localhost.evil.com", "127.0.0.1.evil.com", "10.0.0.1", "proxy:1", "[::2]"]
        {
            assert!(!is_own_host(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn only_own_and_allowed_origins_are_accepted() {
        let allowed = ["https://chat.example.com".to_owned()];
        let passes =
            |origin: &str| is_own_origin(origin, "127.0.0.1:1") || is_allowed_origin(origin, &allowed);
        assert!(passes("http://127.0.0.1:1") && passes("https://chat.example.com"));
        for bad in ["null", "", "http://127.0.0.1:2", "https://evil.com", "http://127.0.0.1:1.evil.com"] {
            assert!(!passes(bad), "{bad}");
        }
    }
}
