//! HTTP client of an instance. Address and token come from the home unless the command line gives them.

use std::fs;
use std::time::Duration;

use polyclaw_api::error::ErrorBody;
use polyclaw_api::paging::Page;
use polyclaw_domain::config::GatewayConfig;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::cli::CommandContext;
use crate::control;
use crate::failure::{CommandFailure, FailureExit};
use crate::home::{self, Home};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Longer than any wait requested from the instance.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Error code of a call that may have arrived although no response came back.
pub const CONNECTION_LOST_CODE: &str = "connection_lost";
/// Error code of a call that did not arrive.
pub const UNREACHABLE_CODE: &str = "unavailable";

#[derive(Clone)]
pub struct ApiClient {
    http: reqwest::Client,
    url: String,
    /// Prefix of every path.
    root: &'static str,
    token: Option<String>,
    /// Headers sent with every call.
    headers: Vec<(&'static str, &'static str)>,
    /// True if no daemon of this home runs; a response then comes from another program.
    is_absent: bool,
}

impl ApiClient {
    pub fn new(context: &CommandContext) -> Result<Self, CommandFailure> {
        let given = context.global.url().map(str::to_owned);
        // The home's token is sent only to a daemon known to run here: another program may have taken the port. A
        // token given explicitly is always sent, for example to a daemon in a container.
        let is_known = given.is_some() || context.home.is_daemon_running();
        let url = given.map_or_else(|| local_url(&context.home), Ok)?;
        let stated = context.global.token.clone().or_else(home::stated_token);
        let is_absent = !is_known && stated.is_none();
        let token = stated.or_else(|| context.home.read_token().filter(|_| is_known));
        Ok(Self { is_absent, ..Self::for_url(url.trim_end_matches('/'), token)? })
    }

    pub fn for_url(url: &str, token: Option<String>) -> Result<Self, CommandFailure> {
        // No system proxy: the instance is on this machine or behind a proxy of its own.
        let mut http = reqwest::Client::builder().no_proxy().connect_timeout(CONNECT_TIMEOUT);
        if url.starts_with("http://") {
            // Loading the system's certificates takes longer than most commands, and plain HTTP needs none.
            http = http.tls_certs_only([]);
        }
        let http = http.build().map_err(|error| CommandFailure::failed("client", error.to_string()))?;
        Ok(Self { http, url: url.to_owned(), root: "/api/v1", token, headers: Vec::new(), is_absent: false })
    }

    /// Creates a client of this home's control plane, or of the given address. Fails if no control plane has
    /// announced that it serves this home: another program on the usual port must not receive the token.
    pub fn for_control_plane(context: &CommandContext) -> Result<Self, CommandFailure> {
        let given = context.global.url().map(str::to_owned);
        let note = control::ControlPlaneNotes::for_home(&context.home);
        let none = || {
            CommandFailure::new(FailureExit::Unavailable, "unavailable", "no control plane runs on this home")
                .hint("start one with `polyclaw up`")
        };
        let url = given.or_else(|| note.url()).ok_or_else(none)?;
        let token = context.global.token.clone().or_else(|| note.token());
        Ok(Self { root: "/api", ..Self::for_url(url.trim_end_matches('/'), token)? })
    }

    /// Creates a client of a control plane at a known address.
    pub fn for_control_url(url: &str, token: String) -> Result<Self, CommandFailure> {
        Ok(Self { root: "/api", ..Self::for_url(url.trim_end_matches('/'), Some(token))? })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Gets a resource of the API.
    pub async fn get_as<T: DeserializeOwned>(&self, path: &str) -> Result<T, CommandFailure> {
        self.send_json(Method::GET, path, None::<&()>).await
    }

    /// Posts a request of the API. Its response may be [`IgnoredAny`].
    pub async fn post_as<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, CommandFailure> {
        self.send_json(Method::POST, path, Some(body)).await
    }

    /// Like [`Self::post_as`], for a call that may take `seconds` longer than the usual timeout.
    pub async fn post_as_with_extra_time<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
        seconds: u64,
    ) -> Result<T, CommandFailure> {
        self.send_json_within(Method::POST, path, Some(body), REQUEST_TIMEOUT + Duration::from_secs(seconds))
            .await
    }

    pub async fn put_as<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, CommandFailure> {
        self.send_json(Method::PUT, path, Some(body)).await
    }

    pub async fn patch_as<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, CommandFailure> {
        self.send_json(Method::PATCH, path, Some(body)).await
    }

    pub async fn delete_as<T: DeserializeOwned>(&self, path: &str) -> Result<T, CommandFailure> {
        self.send_json(Method::DELETE, path, None::<&()>).await
    }

    pub fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Returns whether an instance answers at the address.
    pub async fn is_up(&self) -> bool {
        self.get_as::<IgnoredAny>("/health").await.is_ok()
    }

    /// Returns the items of a paged list, up to `limit`.
    pub async fn list_pages<P: Page + DeserializeOwned>(
        &self,
        path: &str,
        limit: usize,
    ) -> Result<Vec<P::Item>, CommandFailure> {
        let mut items: Vec<P::Item> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page: P = self.get_as(&page_path(path, limit - items.len(), cursor.as_deref())).await?;
            let (more, next_cursor) = page.into_parts();
            items.extend(more);
            match next_cursor {
                Some(next) if items.len() < limit => cursor = Some(next),
                _ => return Ok(items),
            }
        }
    }

    /// Opens a stream of server-sent events. It has no timeout.
    pub async fn open_stream(&self, path: &str) -> Result<Response, CommandFailure> {
        self.open_response(self.build_request(Method::GET, path).header("Accept", "text/event-stream")).await
    }

    /// Downloads a file as a stream.
    pub async fn download(&self, path: &str) -> Result<Response, CommandFailure> {
        self.open_response(self.build_request(Method::GET, path)).await
    }

    async fn open_response(&self, request: RequestBuilder) -> Result<Response, CommandFailure> {
        let response = request.send().await.map_err(|error| self.unreachable_failure(&error))?;
        if response.status().is_success() { Ok(response) } else { Err(self.read_failure(response).await) }
    }

    async fn send_json<B: Serialize, T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&B>,
    ) -> Result<T, CommandFailure> {
        self.send_json_within(method, path, body, REQUEST_TIMEOUT).await
    }

    async fn send_json_within<B: Serialize, T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&B>,
        timeout: Duration,
    ) -> Result<T, CommandFailure> {
        let mut request = self.build_request(method, path).timeout(timeout);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(|error| self.unreachable_failure(&error))?;
        if !response.status().is_success() {
            return Err(self.read_failure(response).await);
        }
        let text = response.text().await.map_err(|error| self.unreachable_failure(&error))?;
        // A response without a body counts as an empty object.
        let text = if text.trim().is_empty() { "{}" } else { &text };
        serde_json::from_str(text).map_err(|_| {
            CommandFailure::failed(
                "not_polyclaw",
                format!("{} responded, but is not a Polyclaw instance", self.url),
            )
        })
    }

    async fn read_failure(&self, response: Response) -> CommandFailure {
        if self.is_absent && response.status() == StatusCode::UNAUTHORIZED {
            let message = format!("no daemon runs on this home; another program responds at {}", self.url);
            return CommandFailure::new(FailureExit::Unavailable, UNREACHABLE_CODE, message)
                .hint("start one with `polyclaw up`; if its port is taken, set another as gateway.port");
        }
        parse_refusal(response).await
    }

    fn build_request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut request = self.http.request(method, format!("{}{}{path}", self.url, self.root));
        for (name, value) in &self.headers {
            request = request.header(*name, *value);
        }
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    fn unreachable_failure(&self, error: &reqwest::Error) -> CommandFailure {
        let unavailable =
            |code: &str, what: String| CommandFailure::new(FailureExit::Unavailable, code, what);
        if error.is_builder() {
            CommandFailure::usage(format!("{:?} is not a valid URL", self.url))
                .hint("write the full URL, such as http://127.0.0.1:18801")
        } else if error.is_connect() {
            let who = if self.root == "/api" { "control plane" } else { "daemon" };
            unavailable(UNREACHABLE_CODE, format!("no {who} responds at {}", self.url))
                .hint("start one with `polyclaw up`")
        } else {
            unavailable(CONNECTION_LOST_CODE, format!("lost the connection to {}", self.url))
                .hint("`polyclaw status` shows whether the daemon runs")
        }
    }
}

/// Returns the address of this home's daemon: the one it wrote when it started, else the one in the config. An
/// invalid config is an error, because the address is then unknown.
fn local_url(home: &Home) -> Result<String, CommandFailure> {
    let written = fs::read_to_string(home.url_file()).unwrap_or_default().trim().to_owned();
    if !written.is_empty() {
        return Ok(written);
    }
    Ok(base_url(&home.read_unresolved_config()?.gateway))
}

pub fn base_url(gateway: &GatewayConfig) -> String {
    format!("http://{}", gateway.local_address())
}

async fn parse_refusal(response: Response) -> CommandFailure {
    let (status, place) = (response.status(), response.url().origin().ascii_serialization());
    let Ok(ErrorBody { error }) = response.json().await else {
        // An instance always names an error code. A response without one may come from a proxy.
        return if status.is_client_error() {
            CommandFailure::failed(
                "not_polyclaw",
                format!("{place} responded, but is not a Polyclaw instance"),
            )
        } else {
            CommandFailure::new(
                exit_for_status(status),
                "failed",
                format!("the instance responded with {status}"),
            )
        };
    };
    let mut failure =
        CommandFailure::new(exit_for_status(status), error.code, strip_json_position(&error.message));
    failure.hint = error.hint;
    // When an instance does not start, its last log lines say why.
    let details = error.details.unwrap_or_default();
    let logged = details["log"].as_array().into_iter().flatten().filter_map(Value::as_str);
    logged.for_each(|line| failure.message.push_str(&format!("\n  {line}")));
    failure.details = Some(Box::new(details)).filter(|details| !details.is_null());
    // Replaces the instance's own hint, which is meant for HTTP clients.
    if status == StatusCode::UNAUTHORIZED {
        failure =
            failure.hint("pass --token or set POLYCLAW_TOKEN; the token of this home is in its file `token`");
    }
    failure
}

/// Removes the JSON position from a message: users of the command line did not write that JSON.
fn strip_json_position(message: &str) -> &str {
    match message.rsplit_once(" at line 1 column ") {
        Some((text, column)) if column.bytes().all(|byte| byte.is_ascii_digit()) => text,
        _ => message,
    }
}

fn exit_for_status(status: StatusCode) -> FailureExit {
    match status.as_u16() {
        400 | 413 | 415 | 422 => FailureExit::Usage,
        404 => FailureExit::NotFound,
        409 => FailureExit::Conflict,
        429 | 502 | 503 | 504 => FailureExit::Unavailable,
        _ => FailureExit::Failed,
    }
}

/// Returns the path of a page with at most `wanted` items.
fn page_path(path: &str, wanted: usize, cursor: Option<&str>) -> String {
    let joint = if path.contains('?') { '&' } else { '?' };
    let at = cursor.map(|cursor| format!("&cursor={}", encode_segment(cursor))).unwrap_or_default();
    format!("{path}{joint}limit={}{at}", wanted.min(100))
}

/// Appends the query of a call. Fields that are null are omitted.
pub fn with_query(path: &str, query: &impl Serialize) -> String {
    let Ok(Value::Object(fields)) = serde_json::to_value(query) else { return path.to_owned() };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let given = fields.iter().filter(|(_, value)| !value.is_null());
    let pairs: Vec<String> =
        given.map(|(name, value)| format!("{name}={}", encode_segment(&text(value)))).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// Percent-encodes one path segment or query value.
pub fn encode_segment(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let one = |byte: u8| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use polyclaw_api::stream::StreamQuery;
    use polyclaw_api::transcript::TranscriptQuery;

    use super::*;

    #[test]
    fn json_position_is_stripped_from_error_message() {
        for (text, shown) in [
            ("name: too long at line 1 column 22", "name: too long"),
            ("config.toml is wrong at line 3 column 2", "config.toml is wrong at line 3 column 2"),
            ("stop at line 1 column x", "stop at line 1 column x"),
            ("", ""),
        ] {
            assert_eq!(strip_json_position(text), shown);
        }
    }

    #[test]
    fn query_has_the_fields_that_are_given() {
        let query = |after, limit| TranscriptQuery { after, limit };
        assert_eq!(with_query("/transcript", &query(Some(7), Some(500))), "/transcript?after=7&limit=500");
        assert_eq!(with_query("/transcript", &query(None, None)), "/transcript");
        let stream = StreamQuery { after: Some("a b-1".to_owned()), code: None };
        assert_eq!(with_query("/stream", &stream), "/stream?after=a%20b-1");
    }

    #[test]
    fn session_key_is_encoded_as_one_path_segment() {
        assert_eq!(encode_segment("agent:main:web:dm:a%2fb"), "agent%3Amain%3Aweb%3Adm%3Aa%252fb");
        assert_eq!(encode_segment("ä"), "%C3%A4");
    }

    #[test]
    fn wildcard_bind_address_is_reached_on_loopback() {
        let gateway = |bind: &str| GatewayConfig { bind: bind.parse().unwrap(), ..GatewayConfig::default() };
        assert_eq!(base_url(&gateway("0.0.0.0")), "http://127.0.0.1:18801");
        assert_eq!(base_url(&gateway("::")), "http://[::1]:18801");
        assert_eq!(base_url(&gateway("10.0.0.2")), "http://10.0.0.2:18801");
    }
}
