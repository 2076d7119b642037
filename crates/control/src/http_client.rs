//! HTTP calls to instances on this machine. Requests and responses are streamed, so that a gateway can pass through
//! anything, including upgrades.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

type CallError = Box<dyn std::error::Error + Send + Sync>;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The size limit of an API response that is read whole.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// Sends a request on its own connection. The connection stays open while the response is read, and longer after an
/// upgrade.
pub async fn send_request<B>(to: SocketAddr, mut request: Request<B>) -> Result<Response<Incoming>, CallError>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<CallError>,
{
    let stream = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(to)).await??;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "connection to an instance broke");
        }
    });
    request.headers_mut().insert(HOST, HeaderValue::from_str(&to.to_string())?);
    Ok(sender.send_request(request).await?)
}

/// Calls the JSON API. Returns the status, whatever it is, with the body.
pub async fn request_json(
    to: SocketAddr,
    token: Option<&str>,
    method: Method,
    path: &str,
    timeout: Duration,
) -> Result<(u16, Value), CallError> {
    let mut request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(Full::new(Bytes::new()))?;
    let answered = async {
        let response = send_request(to, request).await?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    };
    tokio::time::timeout(timeout, answered).await?
}
