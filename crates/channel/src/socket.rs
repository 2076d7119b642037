//! WebSockets that this instance opens. The handshake uses the HTTP client, so certificates and proxies are the same as
//! for other requests.

use std::time::Duration;

use reqwest::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use reqwest::{StatusCode, Upgraded, Url};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::{client, response};

pub(crate) type PlatformSocket = WebSocketStream<Upgraded>;

const SOCKET_OPEN_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum size of a WebSocket message. Above what any platform sends.
const MAX_SOCKET_MESSAGE_BYTES: usize = 16 << 20;

/// Whether the URL is a valid `ws` or `wss` URL.
pub(crate) fn is_websocket_url(url: &str) -> bool {
    to_http_url(url).is_some()
}

/// Opens a `ws` or `wss` URL. Errors do not contain the URL, which may hold a secret.
pub(crate) async fn open_socket(url: &str) -> Result<PlatformSocket, String> {
    let url = to_http_url(url).ok_or("the platform returned an invalid WebSocket URL")?;
    let opening = handshake(url);
    tokio::time::timeout(SOCKET_OPEN_TIMEOUT, opening).await.map_err(|_| "opening the WebSocket timed out")?
}

async fn handshake(url: Url) -> Result<PlatformSocket, String> {
    let client = client::websocket_client(&url).map_err(|error| error.to_string())?;
    let key = generate_key();
    let request = client.get(url).headers(upgrade_headers(&key)?);
    let response = request.send().await.map_err(response::transport_error_message)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(format!(
            "the platform did not open the WebSocket; it responded with {}",
            response.status()
        ));
    }
    let accepted = response.headers().get("sec-websocket-accept").map(HeaderValue::as_bytes);
    if accepted != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
        return Err("the server at this URL is not a WebSocket server".to_owned());
    }
    let stream = response.upgrade().await.map_err(response::transport_error_message)?;
    let config = WebSocketConfig::default().max_message_size(Some(MAX_SOCKET_MESSAGE_BYTES));
    Ok(WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await)
}

fn upgrade_headers(key: &str) -> Result<HeaderMap, String> {
    let key = HeaderValue::from_str(key).map_err(|error| error.to_string())?;
    Ok(HeaderMap::from_iter([
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (reqwest::header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
        (reqwest::header::SEC_WEBSOCKET_KEY, key),
    ]))
}

fn to_http_url(url: &str) -> Option<Url> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = match scheme {
        "ws" => "http",
        "wss" => "https",
        _ => return None,
    };
    client::parse_base_url(&format!("{scheme}://{rest}"))
}
