//! Through to an instance: its API under the control plane's address, as a stream both ways, sockets too. The caller's
//! own token and cookies stay here; the instance is shown its own.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, HOST, HeaderName, ORIGIN, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use polyclaw_control::call;

use super::state::ControlState;
use crate::error::{Error, Result};

/// What means one connection and not what is sent over it, or is for us alone.
const KEPT_BACK: [HeaderName; 11] = [
    AUTHORIZATION,
    CONNECTION,
    COOKIE,
    HOST,
    ORIGIN,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// `/instances/{id}/gateway/…` is `/api/v1/…` of the instance; `v1/…` is its OpenAI-shaped API.
pub async fn through(State(app): State<ControlState>, mut request: Request) -> Result<Response> {
    let (id, target) = split(request.uri())?;
    let (address, token) = app.control.door(&id).await?;
    let upgrade = request.headers().get(UPGRADE).cloned();
    let ours = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
    let (mut parts, body) = request.into_parts();
    parts.uri = target;
    parts.version = axum::http::Version::HTTP_11;
    keep_back(&mut parts.headers);
    if let Some(token) = token.and_then(|token| HeaderValue::try_from(format!("Bearer {token}")).ok()) {
        parts.headers.insert(AUTHORIZATION, token);
    }
    if let Some(protocol) = upgrade {
        parts.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        parts.headers.insert(UPGRADE, protocol);
    }
    let answered = call(address, Request::from_parts(parts, body)).await.map_err(|error| {
        Error::Control(polyclaw_control::Error::Unreachable { name: id, why: error.to_string() })
    })?;
    Ok(back(answered, ours))
}

/// The instance, and what of it is asked for. The path stays as it was written: a session key in it is encoded.
fn split(uri: &Uri) -> Result<(String, Uri)> {
    let unknown = || Error::UnknownRoute(uri.path().chars().take(100).collect());
    let (_, rest) = uri.path().split_once("/instances/").ok_or_else(unknown)?;
    let (id, path) = rest.split_once("/gateway/").ok_or_else(unknown)?;
    let climbs = path
        .split('/')
        .any(|part| matches!(part.to_ascii_lowercase().as_str(), "." | ".." | "%2e%2e" | "%2e"));
    if climbs || id.contains('/') {
        return Err(unknown());
    }
    let prefix = if path.starts_with("v1/") || path.starts_with("api/v1/") { "" } else { "/api/v1" };
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let target = format!("{prefix}/{path}{query}").parse().map_err(|_| unknown())?;
    Ok((id.to_owned(), target))
}

fn keep_back(headers: &mut HeaderMap) {
    // A connection may name more headers that are its own.
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    KEPT_BACK.iter().chain(&named).for_each(|name| drop(headers.remove(name)));
}

fn back(mut answered: hyper::Response<hyper::body::Incoming>, ours: Option<OnUpgrade>) -> Response {
    let theirs = hyper::upgrade::on(&mut answered);
    let (mut parts, body) = answered.into_parts();
    let protocol = parts.headers.get(UPGRADE).cloned();
    keep_back(&mut parts.headers);
    // Its cookies and permissions are about its own address.
    parts.headers.remove(SET_COOKIE);
    let granted: Vec<HeaderName> =
        parts.headers.keys().filter(|name| name.as_str().starts_with("access-control-")).cloned().collect();
    granted.iter().for_each(|name| drop(parts.headers.remove(name)));
    if parts.status != StatusCode::SWITCHING_PROTOCOLS {
        return Response::from_parts(parts, Body::new(body));
    }
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    protocol.map(|protocol| parts.headers.insert(UPGRADE, protocol));
    if let Some(ours) = ours {
        tokio::spawn(join(ours, theirs));
    }
    Response::from_parts(parts, Body::empty())
}

/// Hands everything over, both ways, until one side ends.
async fn join(ours: OnUpgrade, theirs: OnUpgrade) {
    let (Ok(ours), Ok(theirs)) = (ours.await, theirs.await) else { return };
    let (mut ours, mut theirs) = (TokioIo::new(ours), TokioIo::new(theirs));
    let _ = tokio::io::copy_bidirectional(&mut ours, &mut theirs).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_the_instances_api_as_it_was_written() {
        for (path, id, target) in [
            ("/api/instances/main/gateway/sessions?limit=1", "main", "/api/v1/sessions?limit=1"),
            ("/api/instances/a/gateway/sessions/agent%3Amain%2Fx", "a", "/api/v1/sessions/agent%3Amain%2Fx"),
            ("/api/instances/a/gateway/v1/models", "a", "/v1/models"),
            ("/api/instances/a/gateway/api/v1/ws", "a", "/api/v1/ws"),
        ] {
            let (found, uri) = split(&path.parse().unwrap()).unwrap();
            assert_eq!((found.as_str(), uri.to_string().as_str()), (id, target), "{path}");
        }
        for bad in [
            "/api/instances/a/gateway/../../etc",
            "/api/instances/a/gateway/%2e%2E/x",
            "/api/instances/a/gateway",
            "/api/instances/a/b/gateway/x",
        ] {
            assert!(split(&bad.parse().unwrap()).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_ours_alone_is_not_handed_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer secret"),
            ("cookie", "polyclaw_1=proof"),
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "1"),
            ("accept", "text/event-stream"),
        ] {
            headers.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        keep_back(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
    }
}
