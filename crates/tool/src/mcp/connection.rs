//! One connection to an MCP server: opening, calls and closing.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polyclaw_domain::sanitize;
use polyclaw_domain::tool::{ProgressSink, ToolOutcome};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities, ClientConfig,
    ClientRequest, Implementation, ProgressNotificationParam, ProgressToken, RequestId, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, Peer, PeerRequestOptions, RoleClient, RunningService,
    RunningServiceCancellationToken, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, serve_client};
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use super::process::{self, ServerProcess, ServerStreams};
use super::result;
use super::settings::{McpSettings, McpTransport};
use super::tool_spec::{self, McpToolSpec};
use crate::error::{Error, Result};

/// Maximum size of a server message. Larger ones are dropped.
const MAX_MESSAGE_BYTES: usize = 8 * 1024 * 1024;
/// Maximum duration of a call, however much progress it reports.
const MAX_CALL_DURATION: Duration = Duration::from_secs(3_600);

/// Timeout of an orderly close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Handler of server messages. Servers may request nothing; they may notify that their tools changed and report
/// progress of calls.
#[derive(Default)]
struct McpClientHandler {
    changed: Arc<Notify>,
    calls: Arc<ProgressListeners>,
}

/// Calls that receive progress notifications.
#[derive(Default)]
struct ProgressListeners(Mutex<HashMap<ProgressToken, mpsc::Sender<String>>>);

impl ProgressListeners {
    fn with_listeners<T>(
        &self,
        act: impl FnOnce(&mut HashMap<ProgressToken, mpsc::Sender<String>>) -> T,
    ) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientHandler for McpClientHandler {
    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let total = params.total.map(|total| format!("/{total}")).unwrap_or_default();
        let message = sanitize::to_single_line(params.message.as_deref().unwrap_or_default(), 200);
        let line = format!("{}{total} {message}", params.progress);
        self.calls.with_listeners(|calls| {
            if let Some(call) = calls.get(&params.progress_token) {
                // A slow call misses some progress.
                let _ = call.try_send(format!("{}\n", line.trim_end()));
            }
        });
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("polyclaw", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), own)
    }
}

/// Handle for making calls. Cheap to clone.
#[derive(Clone)]
pub struct McpCallHandle {
    name: Arc<str>,
    settings: Arc<McpSettings>,
    peer: Peer<RoleClient>,
    calls: Arc<ProgressListeners>,
}

/// Handle for supervising and closing the connection.
pub struct McpConnection {
    pub line: McpCallHandle,
    pub changed: Arc<Notify>,
    task: JoinHandle<()>,
    close: RunningServiceCancellationToken,
    process: Option<ServerProcess>,
}

impl McpConnection {
    pub async fn open(name: &str, settings: &Arc<McpSettings>) -> Result<Self> {
        let ear = McpClientHandler::default();
        let (changed, calls) = (Arc::clone(&ear.changed), Arc::clone(&ear.calls));
        let (running, process) = match &settings.transport {
            McpTransport::Program(_) => {
                let (process, streams) = process::start(name, settings).await?;
                match with_timeout(name, settings.start, serve_streams(ear, streams)).await {
                    Ok(running) => (running, Some(process)),
                    Err(error) => return Err(explain_exit(name, settings, error, process.shut_down().await)),
                }
            }
            McpTransport::Http { url, headers } => {
                let transport = open_http(name, url, headers)?;
                let running = with_timeout(name, settings.start, serve_client(ear, transport)).await;
                (running.map_err(|error| explain_exit(name, settings, error, None))?, None)
            }
        };
        let line = McpCallHandle {
            name: name.into(),
            settings: Arc::clone(settings),
            peer: running.peer().clone(),
            calls,
        };
        let close = running.cancellation_token();
        let task = tokio::spawn(async move {
            let _ = running.waiting().await;
        });
        Ok(Self { line, changed, task, close, process })
    }

    /// Returns the name and version that the server reports.
    pub fn server_version(&self) -> Option<String> {
        let info = self.line.peer.peer_info()?;
        let own = serde_json::to_value(&*info).ok()?;
        let own = own.get("serverInfo")?;
        let part = |key: &str| own.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(sanitize::to_single_line(&format!("{} {}", part("name"), part("version")), 100))
    }

    /// Waits until the server has ended or become unreachable.
    pub async fn wait_closed(&mut self) {
        if !self.task.is_finished() {
            let _ = (&mut self.task).await;
        }
    }

    /// Closes the connection. Returns how the server ended, if known.
    pub async fn close(mut self) -> Option<String> {
        self.close.cancel();
        if !self.task.is_finished() && tokio::time::timeout(CLOSE_TIMEOUT, &mut self.task).await.is_err() {
            self.task.abort();
        }
        match self.process {
            Some(process) => process.shut_down().await.map(|how| self.line.settings.redact(&how)),
            None => None,
        }
    }
}

type ServeFuture = Pin<
    Box<
        dyn Future<
                Output = std::result::Result<
                    RunningService<RoleClient, McpClientHandler>,
                    ClientInitializeError,
                >,
            > + Send,
    >,
>;

/// Boxed, because the compiler cannot infer that the future is `Send`.
fn serve_streams(ear: McpClientHandler, streams: ServerStreams) -> ServeFuture {
    let transport =
        AsyncRwTransport::new(streams.output, streams.input).with_max_line_length(MAX_MESSAGE_BYTES);
    Box::pin(serve_client(ear, transport))
}

async fn with_timeout<T, E: std::fmt::Display>(
    name: &str,
    limit: Duration,
    work: impl Future<Output = std::result::Result<T, E>>,
) -> Result<T> {
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Error::Server(name.to_owned(), plain_error(&error.to_string()))),
        Err(_) => Err(Error::Server(name.to_owned(), format!("no response within {} s", limit.as_secs()))),
    }
}

/// Returns the error without the library's names of its parts.
fn plain_error(error: &str) -> String {
    if error.contains("error sending request") {
        return "cannot connect to its address".to_owned();
    }
    let own = error
        .split_once("] error: ")
        .filter(|(head, _)| head.contains("Transport ["))
        .map_or(error, |(_, own)| own);
    let own = own.strip_suffix(", when send initialize request").unwrap_or(own);
    sanitize::to_single_line(&sanitize::strip_os_error(own), 300)
}

/// Prefers the program's exit status and last output to the error of the broken stream.
fn explain_exit(name: &str, settings: &McpSettings, error: Error, how: Option<String>) -> Error {
    match (error, how) {
        (Error::Server(_, what), how) => {
            let what = how.map_or(what, |how| format!("it exited: {how}"));
            Error::Server(name.to_owned(), settings.redact(&what))
        }
        (other, _) => other,
    }
}

fn open_http(
    name: &str,
    url: &str,
    headers: &std::collections::BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<reqwest::Client>> {
    let broken = |what: &str| Error::Server(name.to_owned(), what.to_owned());
    let mut own = HashMap::new();
    for (key, value) in headers {
        let key =
            reqwest::header::HeaderName::try_from(key).map_err(|_| broken("a header has an invalid name"))?;
        let mut value = reqwest::header::HeaderValue::try_from(value)
            .map_err(|_| broken("a header has an invalid value"))?;
        value.set_sensitive(true);
        own.insert(key, value);
    }
    // Headers contain keys, so redirects are not followed.
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|error| broken(&error.to_string()))?;
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(own)
        .max_sse_event_size(MAX_MESSAGE_BYTES)
        .reinit_on_expired_session(true);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

impl McpCallHandle {
    pub async fn list_tools(&self) -> Result<Vec<McpToolSpec>> {
        let tools = with_timeout(&self.name, self.settings.start, self.peer.list_all_tools()).await?;
        Ok(tool_spec::tool_specs(&self.name, &self.settings, tools))
    }

    /// Calls a tool. Dropping the future cancels the call on the server.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: &Value,
        progress: ProgressSink<'_>,
    ) -> Result<ToolOutcome> {
        let arguments = match arguments {
            Value::Object(fields) => fields.clone(),
            Value::Null => serde_json::Map::new(),
            _ => return Err(Error::Arguments("expected a JSON object".to_owned())),
        };
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::with_timeout(self.settings.timeout)
            .reset_timeout_on_progress()
            .with_max_total_timeout(MAX_CALL_DURATION);
        let handle = self
            .peer
            .send_request_with_option(request, options)
            .await
            .map_err(|error| self.service_error(&error))?;
        let (tell, mut receiver) = mpsc::channel(16);
        let mut open =
            PendingCall::register_call(self, handle.id.clone(), handle.progress_token.clone(), tell);
        let mut answer = std::pin::pin!(handle.await_response());
        let answer = loop {
            tokio::select! {
                biased;
                Some(line) = receiver.recv() => progress(&line),
                answer = &mut answer => break answer,
            }
        };
        open.is_answered = true;
        match answer {
            Ok(ServerResult::CallToolResult(result)) => Ok(result::to_tool_outcome(&self.settings, result)),
            Ok(_) => Err(self.server_error("it responded with something that is not a tool result")),
            Err(error) => Err(self.service_error(&error)),
        }
    }

    fn server_error(&self, what: &str) -> Error {
        Error::Server(self.name.to_string(), self.settings.redact(what))
    }

    fn service_error(&self, error: &ServiceError) -> Error {
        match error {
            ServiceError::McpError(refusal) => self.server_error(&format!(
                "it returned an error: {}",
                sanitize::to_single_line(&refusal.message, 500)
            )),
            ServiceError::Timeout { timeout } => self.server_error(&format!(
                "it sent nothing for {} s; the call was abandoned",
                timeout.as_secs()
            )),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                Error::ServerGone(self.name.to_string())
            }
            other => self.server_error(&sanitize::to_single_line(&other.to_string(), 300)),
        }
    }
}

/// A pending call. Dropping it before the answer cancels the call on the server.
struct PendingCall<'a> {
    line: &'a McpCallHandle,
    id: RequestId,
    token: ProgressToken,
    is_answered: bool,
}

impl<'a> PendingCall<'a> {
    fn register_call(
        line: &'a McpCallHandle,
        id: RequestId,
        token: ProgressToken,
        tell: mpsc::Sender<String>,
    ) -> Self {
        line.calls.with_listeners(|calls| calls.insert(token.clone(), tell));
        Self { line, id, token, is_answered: false }
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        self.line.calls.with_listeners(|calls| calls.remove(&self.token));
        if self.is_answered {
            return;
        }
        let (peer, id) = (self.line.peer.clone(), self.id.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let why = Some("the turn was stopped".to_owned());
                let _ = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), why)).await;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_error_is_shown_without_type_names() {
        let head = "Send message error Transport [rmcp::transport::worker::WorkerTransport<X>] error: ";
        for (text, expected) in [
            (
                "Client error: error sending request for url (http://127.0.0.1:1/)",
                "cannot connect to its address",
            ),
            (
                "unexpected server response: 404, when send initialize request",
                "unexpected server response: 404",
            ),
        ] {
            assert_eq!(plain_error(&format!("{head}{text}")), expected);
        }
        assert_eq!(
            plain_error("connection closed: initialize response"),
            "connection closed: initialize response"
        );
    }
}
