//! An MCP server and its supervising task: starts it when needed, lists its tools again when they change, and restarts
//! it with growing delays when it ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use polyclaw_domain::backoff::BackoffPolicy;
use polyclaw_domain::mcp::{McpServerState, McpServerStatus};
use polyclaw_domain::tool::{ProgressSink, ToolOutcome};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::connection::{McpCallHandle, McpConnection};
use super::settings::McpSettings;
use super::tool_spec::McpToolSpec;
use crate::error::{Error, Result};

const RESTART_BACKOFF: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(1), Duration::from_secs(60));
/// A server that ran this long did not fail to start; its backoff is reset.
const STABLE_AFTER: Duration = Duration::from_secs(60);
/// Minimum interval between listings for a server that keeps reporting changed tools.
const MIN_RELIST_INTERVAL: Duration = Duration::from_secs(1);

pub struct McpServerHandle {
    pub name: String,
    settings: Arc<McpSettings>,
    now: Mutex<ServerRuntimeState>,
    /// Incremented on every change of `now`.
    changes: watch::Sender<u64>,
    /// A call failed on the transport; check whether the server is still there.
    doubt: Notify,
    stop: watch::Sender<bool>,
    done: watch::Sender<bool>,
}

struct ServerRuntimeState {
    state: McpServerState,
    line: Option<McpCallHandle>,
    /// The last list of tools. Kept while the server is down, so that a call gets an error that says why.
    tool_specs: Arc<[McpToolSpec]>,
    version: Option<String>,
    error: Option<String>,
    restarts: u64,
    retry: Option<Instant>,
}

impl McpServerHandle {
    pub fn new(name: String, settings: McpSettings) -> Self {
        let now = ServerRuntimeState {
            state: McpServerState::Idle,
            line: None,
            tool_specs: Arc::new([]),
            version: None,
            error: None,
            restarts: 0,
            retry: None,
        };
        Self {
            name,
            settings: Arc::new(settings),
            now: Mutex::new(now),
            changes: watch::Sender::new(0),
            doubt: Notify::new(),
            stop: watch::Sender::new(false),
            done: watch::Sender::new(true),
        }
    }

    pub fn has_settings(&self, settings: &McpSettings) -> bool {
        *self.settings == *settings
    }

    fn lock_state(&self) -> MutexGuard<'_, ServerRuntimeState> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update_state(&self, change: impl FnOnce(&mut ServerRuntimeState)) {
        change(&mut self.lock_state());
        self.changes.send_modify(|count| *count += 1);
    }

    pub fn tool_specs(&self) -> Arc<[McpToolSpec]> {
        Arc::clone(&self.lock_state().tool_specs)
    }

    pub fn is_starting(&self) -> bool {
        self.lock_state().state == McpServerState::Starting
    }

    pub fn state(&self) -> McpServerStatus {
        let now = self.lock_state();
        McpServerStatus {
            name: self.name.clone(),
            transport: self.settings.transport.transport_name(),
            sandbox: self.settings.transport.sandbox_name(),
            state: now.state,
            version: now.version.clone(),
            tools: now.tool_specs.iter().map(|offer| offer.spec.name.clone()).collect(),
            restarts: now.restarts,
            error: now.error.clone(),
        }
    }

    /// Starts the server if it is not running.
    pub fn start_if_idle(self: &Arc<Self>) {
        if self.lock_state().state != McpServerState::Idle || *self.stop.borrow() {
            return;
        }
        self.update_state(|now| now.state = McpServerState::Starting);
        self.done.send_replace(false);
        let own = Arc::clone(self);
        tokio::spawn(async move {
            own.keep_running().await;
            own.done.send_replace(true);
        });
    }

    /// Waits until the current start succeeded or failed.
    pub async fn wait_first_start(&self) {
        let mut changes = self.changes.subscribe();
        while self.is_starting() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until nothing of the server runs.
    pub async fn wait_stopped(&self) {
        let _ = self.done.subscribe().wait_for(|done| *done).await;
    }

    async fn keep_running(&self) {
        let mut stop = self.stop.subscribe();
        let mut failures = 0;
        while !*stop.borrow() {
            let began = Instant::now();
            let error = self.run_once(&mut stop).await;
            if *stop.borrow() {
                break;
            }
            failures = if began.elapsed() > STABLE_AFTER { 1 } else { failures + 1 };
            let pause = RESTART_BACKOFF.delay(failures, &self.name);
            tracing::warn!(mcp.server = self.name, pause_s = pause.as_secs(), "MCP server is down: {error}");
            self.update_state(|now| {
                (now.state, now.line, now.error) = (McpServerState::Down, None, Some(error));
                now.retry = Some(Instant::now() + pause);
            });
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stop.wait_for(|stop| *stop) => break,
            }
            self.update_state(|now| {
                now.state = McpServerState::Starting;
                now.restarts += 1;
            });
        }
        self.update_state(|now| (now.state, now.line) = (McpServerState::Idle, None));
    }

    /// Runs the server once. Returns why it ended.
    async fn run_once(&self, stop: &mut watch::Receiver<bool>) -> String {
        let opened = tokio::select! {
            opened = McpConnection::open(&self.name, &self.settings) => opened,
            _ = stop.wait_for(|stop| *stop) => return String::new(),
        };
        let mut connection = match opened {
            Ok(connection) => connection,
            Err(error) => return error.to_string(),
        };
        let why = tokio::select! {
            why = self.serve_connection(&mut connection) => why,
            _ = stop.wait_for(|stop| *stop) => String::new(),
        };
        let how = connection.close().await;
        how.map_or(why, |how| format!("it exited: {how}"))
    }

    async fn serve_connection(&self, connection: &mut McpConnection) -> String {
        // Discards a report about an earlier connection.
        let _ = tokio::time::timeout(Duration::ZERO, self.doubt.notified()).await;
        let changed = Arc::clone(&connection.changed);
        loop {
            match connection.line.list_tools().await {
                Ok(offers) => self.mark_ready(connection, offers),
                Err(error) => return error.to_string(),
            }
            tokio::select! {
                () = connection.wait_closed() => return "it closed the connection".to_owned(),
                () = self.doubt.notified() => return "it is unreachable".to_owned(),
                () = changed.notified() => tokio::time::sleep(MIN_RELIST_INTERVAL).await,
            }
        }
    }

    fn mark_ready(&self, connection: &McpConnection, offers: Vec<McpToolSpec>) {
        // Many servers report changed tools right after their start, which is not worth a log entry.
        let (is_news, tools) = (self.lock_state().state != McpServerState::Ready, offers.len());
        if is_news {
            tracing::info!(mcp.server = self.name, tools, "MCP server is ready");
        } else {
            tracing::debug!(mcp.server = self.name, tools, "listed the tools of an MCP server again");
        }
        self.update_state(|now| {
            now.state = McpServerState::Ready;
            now.line = Some(connection.line.clone());
            now.tool_specs = offers.into();
            now.version = connection.server_version();
            (now.error, now.retry) = (None, None);
        });
    }

    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: &Value,
        progress: ProgressSink<'_>,
    ) -> Result<ToolOutcome> {
        // Waits for a server that is restarting.
        let _ = tokio::time::timeout(self.settings.start, self.wait_first_start()).await;
        let line = self.lock_state().line.clone();
        let Some(line) = line else { return Err(self.down_error()) };
        let outcome = line.call_tool(tool, arguments, progress).await;
        if matches!(outcome, Err(Error::ServerGone(_))) {
            self.doubt.notify_one();
        }
        outcome
    }

    fn down_error(&self) -> Error {
        let now = self.lock_state();
        let why = now.error.clone().unwrap_or_else(|| "it is not running".to_owned());
        let left = now.retry.map(|at| at.saturating_duration_since(Instant::now()).as_secs() + 1);
        let again = left.map(|left| format!("; next attempt in {left} s")).unwrap_or_default();
        Error::Server(self.name.clone(), format!("it is down ({why}){again}"))
    }
}
