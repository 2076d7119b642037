//! The gateway to an instance: proxies its API, including streams and sockets, under the control plane's address. The
//! caller's token and cookies are not forwarded; the instance gets its own token.

use std::pin::Pin;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderName, ORIGIN,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL, SET_COOKIE, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use futures_util::StreamExt;
use http_body_util::Full;
use hyper::upgrade::OnUpgrade;
use polyclaw_control::{ControlCaller, send_request, wait_while_answering};
use polyclaw_domain::instance::TokenAccess;
use polyclaw_domain::redact::quote_safely;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{OpenApi, Required, ResponseBuilder};

use super::connection_lifetime::ConnectionLifetime;
use super::state::ControlState;
use super::tunnel;
use crate::access::SCOPE_HEADER;
use crate::browser::{LOGIN_KEY, SOCKET_PROTOCOL, offers_our_protocol};
use crate::error::{Error, Result};
use crate::extract::{MAX_BODY_BYTES, MAX_MESSAGE_BYTES, read_body_up_to};

/// Not proxied: a login made by the instance itself would survive the revocation of the caller's token.
const LOGINS_PATH: &str = "/api/v1/logins";

const EVENT_STREAM_TYPE: &[u8] = b"text/event-stream";
const DOCUMENTED_PATH: &str = "/api/instances/{id}/gateway/{path}";

/// Headers that are not forwarded, because they concern one connection or only this server.
const UNFORWARDED_HEADERS: [HeaderName; 13] = [
    AUTHORIZATION,
    CONNECTION,
    COOKIE,
    HOST,
    LOGIN_KEY,
    ORIGIN,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    SEC_WEBSOCKET_PROTOCOL,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Routes the methods that instances use. Others are not forwarded, because their effect is unknown.
pub fn gateway_methods() -> MethodRouter<ControlState> {
    get(proxy_call).post(proxy_call).put(proxy_call).patch(proxy_call).delete(proxy_call).options(proxy_call)
}

/// Forwards `/instances/{id}/gateway/…` to `/api/v1/…` of the instance, and `v1/…` to its OpenAI-compatible API.
/// Changes are audited before they are forwarded.
async fn proxy_call(State(app): State<ControlState>, mut request: Request) -> Result<Response> {
    let (id, target) = split_gateway_uri(request.uri())?;
    let (address, token) = app.control.find_endpoint(&id).await?;
    let by = request.extensions().get::<ControlCaller>().cloned().ok_or(Error::Unauthorized)?;
    let (access, until) = (by.access, ConnectionLifetime::from_extensions(request.extensions()));
    let is_socket = request.headers().contains_key(UPGRADE);
    let names_protocol = offers_our_protocol(request.headers());
    let ours = is_socket.then(|| hyper::upgrade::on(&mut request));
    let (parts, body) = request.into_parts();
    // The body is read completely first: an instance that rejects it early would break the connection.
    let body = read_body_up_to(Request::from_parts(parts.clone(), body), max_body_bytes(&target)).await?;
    let asked = (&parts.method, target.path(), &*body);
    let change = app.control.record_proxied_change(&by, &id, asked).await?;
    let first_change = {
        let (app, id, path) = (app.clone(), id.clone(), target.path().to_owned());
        async move { app.control.record_socket(&by, &id, &path).await }
    };
    let method = parts.method.clone();
    let dressed = forwarded_head(parts, target, token, access);
    let called = send_request(address, Request::from_parts(dressed, Full::new(body)));
    let answered = wait_while_answering(address, called).await;
    let answered = answered.ok_or_else(|| polyclaw_control::Error::Silent(id.clone()))?;
    let answered = answered
        .map_err(|error| polyclaw_control::Error::Unreachable { name: id, why: error.to_string() })?;
    if let Some(change) = change {
        app.control.record_proxied_result(change, answered.status().as_u16()).await?;
    }
    let mut response = proxied_response(answered, &method, ours.map(|ours| (ours, first_change)), until);
    // The subprotocol is negotiated with this server: it carries the login, which the instance does not get.
    if names_protocol && response.status() == StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SOCKET_PROTOCOL));
    }
    Ok(response)
}

/// Returns the body limit that the instance itself has for this path.
fn max_body_bytes(target: &Uri) -> usize {
    let brings_images = target.path().starts_with("/v1/") || target.path().ends_with("/messages");
    if brings_images { MAX_MESSAGE_BYTES } else { MAX_BODY_BYTES }
}

/// Builds the head of the forwarded request.
fn forwarded_head(mut parts: Parts, target: Uri, token: Option<String>, access: TokenAccess) -> Parts {
    let upgrade = parts.headers.get(UPGRADE).cloned();
    parts.extensions.clear();
    parts.headers.remove(CONTENT_LENGTH);
    parts.uri = target;
    parts.version = axum::http::Version::HTTP_11;
    remove_unforwarded(&mut parts.headers);
    // The instance's token gives full access, so the caller's scope is sent along.
    parts.headers.insert(SCOPE_HEADER, HeaderValue::from_static(access.as_str()));
    if let Some(token) = token.and_then(|token| HeaderValue::try_from(format!("Bearer {token}")).ok()) {
        parts.headers.insert(AUTHORIZATION, token);
    }
    if let Some(protocol) = upgrade {
        parts.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        parts.headers.insert(UPGRADE, protocol);
    }
    parts
}

/// Adds the gateway routes to the API document.
pub fn add_gateway_paths(document: &mut OpenApi) {
    let text = || Some(ObjectBuilder::new().schema_type(Type::String));
    let parameter = |name: &str| {
        let of_path = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path);
        of_path.required(Required::True).schema(text()).build()
    };
    for (name, method) in [
        ("get", HttpMethod::Get),
        ("post", HttpMethod::Post),
        ("put", HttpMethod::Put),
        ("patch", HttpMethod::Patch),
        ("delete", HttpMethod::Delete),
    ] {
        let operation = OperationBuilder::new()
            .operation_id(Some(format!("gateway_{name}")))
            .tag("gateway")
            .summary(Some("Forwards to `/api/v1/…` of a running instance, or to its `v1/…`"))
            .description(Some(
                "Forwards query, body and response unchanged, including streams and WebSocket upgrades. Credentials are \
                 replaced by those of the instance. Changes are recorded in the audit log.",
            ))
            .parameter(parameter("id"))
            .parameter(parameter("path"))
            .response("default", ResponseBuilder::new().description("The response of the instance"));
        document.paths.add_path_operation(DOCUMENTED_PATH, vec![method], operation.build());
    }
}

/// Splits a gateway URI into the instance and the target. The path stays encoded, because session keys are.
pub fn split_gateway_uri(uri: &Uri) -> Result<(String, Uri)> {
    let unknown = || Error::UnknownRoute(quote_safely(uri.path()));
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
    let target: Uri = format!("{prefix}/{path}{query}").parse().map_err(|_| unknown())?;
    if target.path().starts_with(LOGINS_PATH) {
        return Err(unknown());
    }
    Ok((id.to_owned(), target))
}

fn remove_unforwarded(headers: &mut HeaderMap) {
    // A connection may name more headers of its own.
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    UNFORWARDED_HEADERS.iter().chain(&named).for_each(|name| drop(headers.remove(name)));
}

fn proxied_response(
    mut answered: hyper::Response<hyper::body::Incoming>,
    method: &Method,
    ours: Option<(OnUpgrade, impl Future<Output = polyclaw_control::Result<()>> + Send + 'static)>,
    until: ConnectionLifetime,
) -> Response {
    let theirs = hyper::upgrade::on(&mut answered);
    let (mut parts, body) = answered.into_parts();
    let protocol = parts.headers.get(UPGRADE).cloned();
    remove_unforwarded(&mut parts.headers);
    // Cookies and CORS headers of the instance apply to its own address.
    parts.headers.remove(SET_COOKIE);
    let granted: Vec<HeaderName> =
        parts.headers.keys().filter(|name| name.as_str().starts_with("access-control-")).cloned().collect();
    granted.iter().for_each(|name| drop(parts.headers.remove(name)));
    if parts.status != StatusCode::SWITCHING_PROTOCOLS {
        let body = Body::new(body);
        // A body without a length may never end.
        let body = match parts.headers.contains_key(CONTENT_LENGTH) {
            true => body,
            false => Body::from_stream(body.into_data_stream().take_until(end_of_body(
                method,
                &parts.headers,
                until,
            ))),
        };
        return Response::from_parts(parts, body);
    }
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    protocol.map(|protocol| parts.headers.insert(UPGRADE, protocol));
    if let Some((ours, first_change)) = ours {
        tokio::spawn(tunnel::join_sockets((ours, theirs), until, first_change));
    }
    Response::from_parts(parts, Body::empty())
}

/// Event streams have no end, so they end at shutdown. Other responses are finished first.
fn end_of_body(
    method: &Method,
    headers: &HeaderMap,
    until: ConnectionLifetime,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let are_events =
        headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(EVENT_STREAM_TYPE));
    match *method == Method::GET && are_events {
        true => Box::pin(async {
            until.wait_for_end().await;
        }),
        false => Box::pin(until.wait_for_revocation()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateway_path_is_split_into_instance_and_target() {
        for (path, id, target) in [
            ("/api/instances/main/gateway/sessions?limit=1", "main", "/api/v1/sessions?limit=1"),
            ("/api/instances/a/gateway/sessions/agent%3Amain%2Fx", "a", "/api/v1/sessions/agent%3Amain%2Fx"),
            ("/api/instances/a/gateway/v1/models", "a", "/v1/models"),
            ("/api/instances/a/gateway/api/v1/ws", "a", "/api/v1/ws"),
        ] {
            let (found, uri) = split_gateway_uri(&path.parse().unwrap()).unwrap();
            assert_eq!((found.as_str(), uri.to_string().as_str()), (id, target), "{path}");
        }
        for bad in [
            "/api/instances/a/gateway/../../etc",
            "/api/instances/a/gateway/%2e%2E/x",
            "/api/instances/a/gateway",
            "/api/instances/a/b/gateway/x",
            "/api/instances/a/gateway/logins",
            "/api/instances/a/gateway/api/v1/logins?x=1",
            "/api/instances/a/gateway/logins/current",
        ] {
            assert!(split_gateway_uri(&bad.parse().unwrap()).is_err(), "{bad}");
        }
    }

    #[test]
    fn credentials_and_hop_headers_are_not_forwarded() {
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
        remove_unforwarded(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
    }
}
