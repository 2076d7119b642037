//! The client of an instance: its address and token come from the home unless the command line says otherwise.

use std::fs;
use std::time::Duration;

use polyclaw_domain::config::GatewayConfig;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::cli::Context;
use crate::control;
use crate::failure::{Exit, Failure};
use crate::home::{self, Home};

const CONNECT: Duration = Duration::from_secs(3);
/// Longer than any wait we ask the instance for.
const WHOLE: Duration = Duration::from_secs(60);
/// The code of a call that may have arrived, although no answer came back.
pub const LOST: &str = "connection_lost";
/// The code of a call that arrived nowhere.
pub const UNREACHABLE: &str = "unavailable";

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    /// What every path begins with.
    root: &'static str,
    token: Option<String>,
    /// Sent with every call.
    headers: Vec<(&'static str, &'static str)>,
    /// No daemon of this home runs: whoever answers at its address is somebody else.
    is_absent: bool,
}

impl Client {
    pub fn new(context: &Context) -> Result<Self, Failure> {
        let given = context.global.url().map(str::to_owned);
        // Nobody else who has the port of a daemon that is not there is shown the home's token. One that is stated is
        // for whoever listens there: a daemon in a container, say.
        let is_known = given.is_some() || context.home.is_served();
        let url = given.map_or_else(|| local_url(&context.home), Ok)?;
        let stated = context.global.token.clone().or_else(home::stated_token);
        let is_absent = !is_known && stated.is_none();
        let token = stated.or_else(|| context.home.token().filter(|_| is_known));
        Ok(Self { is_absent, ..Self::at(url.trim_end_matches('/'), token)? })
    }

    pub fn at(url: &str, token: Option<String>) -> Result<Self, Failure> {
        // The instance is on this machine or in front of a proxy of its own; a system proxy is never meant.
        let mut http = reqwest::Client::builder().no_proxy().connect_timeout(CONNECT);
        if url.starts_with("http://") {
            // Reading the system's certificates takes longer than most commands.
            http = http.tls_certs_only([]);
        }
        let http = http.build().map_err(|error| Failure::failed("client", error.to_string()))?;
        Ok(Self { http, url: url.to_owned(), root: "/api/v1", token, headers: Vec::new(), is_absent: false })
    }

    /// The control plane of this home, or the one at the address given. Where none has said that it serves this home,
    /// none is asked: whoever has its usual port may be somebody else, who must not be shown the token.
    pub fn of_control(context: &Context) -> Result<Self, Failure> {
        let given = context.global.url().map(str::to_owned);
        let note = control::Notes::of(&context.home);
        let none = || {
            Failure::new(Exit::Unavailable, "unavailable", "no control plane serves this home")
                .hint("start one with `polyclaw up`")
        };
        let url = given.or_else(|| note.url()).ok_or_else(none)?;
        let token = context.global.token.clone().or_else(|| note.token());
        Ok(Self { root: "/api", ..Self::at(url.trim_end_matches('/'), token)? })
    }

    /// A control plane at an address that is known.
    pub fn at_control(url: &str, token: String) -> Result<Self, Failure> {
        Ok(Self { root: "/api", ..Self::at(url.trim_end_matches('/'), Some(token))? })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.call(Method::POST, path, Some(body)).await
    }

    /// A call that may take so many seconds, and the time to start something besides.
    pub async fn post_for(&self, path: &str, body: &Value, seconds: u64) -> Result<Value, Failure> {
        self.call_for(Method::POST, path, Some(body), WHOLE + Duration::from_secs(seconds)).await
    }

    pub fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    pub async fn put(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.call(Method::PUT, path, Some(body)).await
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.call(Method::PATCH, path, Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::DELETE, path, None).await
    }

    /// Whether an instance answers there.
    pub async fn is_up(&self) -> bool {
        self.get("/health").await.is_ok()
    }

    /// Every item of a paged list, up to `limit`.
    pub async fn list(&self, path: &str, field: &str, limit: usize) -> Result<Vec<Value>, Failure> {
        let mut items: Vec<Value> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let joint = if path.contains('?') { '&' } else { '?' };
            let size = (limit - items.len()).min(100);
            let at = cursor.take().map(|cursor| format!("&cursor={}", segment(&cursor))).unwrap_or_default();
            let mut page = self.get(&format!("{path}{joint}limit={size}{at}")).await?;
            if let Some(Value::Array(more)) = page.get_mut(field).map(Value::take) {
                items.extend(more);
            }
            match page["next_cursor"].as_str() {
                Some(next) if items.len() < limit => cursor = Some(next.to_owned()),
                _ => return Ok(items),
            }
        }
    }

    /// Opens a stream of server-sent events; it stays open for as long as both sides want.
    pub async fn stream(&self, path: &str) -> Result<Response, Failure> {
        self.open(self.request(Method::GET, path).header("Accept", "text/event-stream")).await
    }

    /// A file, piece by piece.
    pub async fn download(&self, path: &str) -> Result<Response, Failure> {
        self.open(self.request(Method::GET, path)).await
    }

    async fn open(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refused(response).await) }
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        self.call_for(method, path, body, WHOLE).await
    }

    async fn call_for(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        patience: Duration,
    ) -> Result<Value, Failure> {
        let mut request = self.request(method, path).timeout(patience);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(json!({}));
        }
        let text = response.text().await.map_err(|error| self.unreachable(&error))?;
        if text.trim().is_empty() {
            return Ok(json!({}));
        }
        serde_json::from_str(&text).map_err(|_| {
            Failure::failed("not_polyclaw", format!("{} does not answer like a polyclaw instance", self.url))
        })
    }

    async fn refused(&self, response: Response) -> Failure {
        if self.is_absent && response.status() == StatusCode::UNAUTHORIZED {
            let message = format!("no daemon runs on this home; {} is another program's", self.url);
            return Failure::new(Exit::Unavailable, UNREACHABLE, message)
                .hint("start one with `polyclaw up`; if its port is taken, set another as gateway.port");
        }
        refusal(response).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut request = self.http.request(method, format!("{}{}{path}", self.url, self.root));
        for (name, value) in &self.headers {
            request = request.header(*name, *value);
        }
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let unavailable = |code: &str, what: String| Failure::new(Exit::Unavailable, code, what);
        if error.is_builder() {
            Failure::usage(format!("{:?} is not an address", self.url))
                .hint("write it whole, like http://127.0.0.1:18801")
        } else if error.is_connect() {
            let who = if self.root == "/api" { "control plane" } else { "daemon" };
            unavailable(UNREACHABLE, format!("no {who} answers at {}", self.url))
                .hint("start one with `polyclaw up`")
        } else {
            unavailable(LOST, format!("the connection to {} broke", self.url))
                .hint("`polyclaw status` says whether the daemon is there")
        }
    }
}

/// Where this home's daemon listens: what it wrote when it started, else what the config says. A config that says
/// nothing that can be understood is what is wrong then: nobody knows where to ask.
fn local_url(home: &Home) -> Result<String, Failure> {
    let written = fs::read_to_string(home.url_file()).unwrap_or_default().trim().to_owned();
    if !written.is_empty() {
        return Ok(written);
    }
    Ok(base_url(&home.read_unresolved_config()?.gateway))
}

pub fn base_url(gateway: &GatewayConfig) -> String {
    format!("http://{}", gateway.local_address())
}

async fn refusal(response: Response) -> Failure {
    let (status, place) = (response.status(), response.url().origin().ascii_serialization());
    let body: Value = response.json().await.unwrap_or_default();
    let error = &body["error"];
    // Whoever is meant names a code; what a proxy in front of it says has none either.
    if error["code"].as_str().is_none() && status.is_client_error() {
        return Failure::failed("not_polyclaw", format!("{place} does not answer like a polyclaw instance"));
    }
    let code = error["code"].as_str().unwrap_or("failed");
    let message = error["message"]
        .as_str()
        .map_or_else(|| format!("the instance said {status}"), |text| placeless(text).to_owned());
    let mut failure = Failure::new(exit_of(status), code, message);
    failure.hint = error["hint"].as_str().map(str::to_owned);
    failure.details = error.get("details").map(|details| Box::new(details.clone()));
    // Why an instance did not start is in the lines it logged last.
    let logged = error["details"]["log"].as_array().into_iter().flatten().filter_map(Value::as_str);
    logged.for_each(|line| failure.message.push_str(&format!("\n  {line}")));
    // The instance's own hint is for programs that speak HTTP.
    if status == StatusCode::UNAUTHORIZED {
        failure = failure.hint("pass --token or set POLYCLAW_TOKEN; this home's is in its file `token`");
    }
    failure
}

/// Without a place in the body: no person wrote that.
fn placeless(message: &str) -> &str {
    match message.rsplit_once(" at line 1 column ") {
        Some((said, column)) if column.bytes().all(|byte| byte.is_ascii_digit()) => said,
        _ => message,
    }
}

fn exit_of(status: StatusCode) -> Exit {
    match status.as_u16() {
        400 | 413 | 415 | 422 => Exit::Usage,
        404 => Exit::NotFound,
        409 => Exit::Conflict,
        429 | 502 | 503 | 504 => Exit::Unavailable,
        _ => Exit::Failed,
    }
}

/// One part of a path or query, percent-encoded.
pub fn segment(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let one = |byte: u8| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_body_nobody_wrote_is_not_shown() {
        for (said, shown) in [
            ("name: too long at line 1 column 22", "name: too long"),
            ("config.toml is wrong at line 3 column 2", "config.toml is wrong at line 3 column 2"),
            ("stop at line 1 column x", "stop at line 1 column x"),
            ("", ""),
        ] {
            assert_eq!(placeless(said), shown);
        }
    }

    #[test]
    fn session_keys_travel_as_one_part_of_a_path() {
        assert_eq!(segment("agent:main:web:dm:a%2fb"), "agent%3Amain%3Aweb%3Adm%3Aa%252fb");
        assert_eq!(segment("ä"), "%C3%A4");
    }

    #[test]
    fn an_address_that_listens_everywhere_is_reached_on_loopback() {
        let gateway = |bind: &str| GatewayConfig { bind: bind.parse().unwrap(), ..GatewayConfig::default() };
        assert_eq!(base_url(&gateway("0.0.0.0")), "http://127.0.0.1:18801");
        assert_eq!(base_url(&gateway("::")), "http://[::1]:18801");
        assert_eq!(base_url(&gateway("10.0.0.2")), "http://10.0.0.2:18801");
    }
}
