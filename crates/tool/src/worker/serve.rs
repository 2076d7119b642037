//! The worker's side: serves calls from its standard input until that closes.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use polyclaw_domain::agent::SandboxMode;
use polyclaw_domain::tool::{ToolOutcome, Toolbox};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

use super::wire::{
    self, FETCH_METHOD, MAX_REQUEST_BYTES, PROGRESS_METHOD, RUN_METHOD, ToolRunParams, WorkerMessage,
};
use crate::builtin::{BuiltinSettings, BuiltinToolbox};
use crate::sandbox::{self, InheritedSandbox, NamespaceMode};
use crate::{http_fetch, text};

/// Blocking work of one call at a time needs few threads.
const MAX_BLOCKING_THREADS: usize = 4;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const TOOL_NOT_ALLOWED: i32 = -32001;

/// Runs until the daemon closes the connection, which also happens when the daemon dies. `helper` is the command that
/// starts programs.
pub fn serve_worker(helper: Vec<String>) -> u8 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .build();
    let served = runtime.and_then(|runtime| {
        // Not inherited by programs, which could otherwise answer for the worker.
        let line = rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 0)?;
        let socket = std::os::unix::net::UnixStream::from(line);
        socket.set_nonblocking(true)?;
        let served = runtime.block_on(async { serve_on(UnixStream::from_std(socket)?, helper).await });
        // Threads that still work must not delay the exit.
        runtime.shutdown_background();
        served
    });
    u8::from(served.is_err())
}

async fn serve_on(socket: UnixStream, helper: Vec<String>) -> io::Result<()> {
    let (reader, mut writer) = socket.into_split();
    let (out, mut lines) = mpsc::unbounded_channel::<WorkerMessage>();
    tokio::spawn(async move {
        while let Some(message) = lines.recv().await {
            if writer.write_all(&message.to_line()).await.is_err() {
                return;
            }
        }
    });
    let worker =
        Arc::new(WorkerServer { helper, out, pending_requests: Mutex::default(), next: AtomicU64::new(1) });
    let mut reader = BufReader::new(reader);
    while let Some(message) = wire::next_message(&mut reader, MAX_REQUEST_BYTES).await {
        worker.handle_message(message);
    }
    Ok(())
}

struct WorkerServer {
    helper: Vec<String>,
    out: mpsc::UnboundedSender<WorkerMessage>,
    /// Requests to the host that wait for an answer.
    pending_requests: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
    next: AtomicU64,
}

impl WorkerServer {
    fn handle_message(self: &Arc<Self>, message: WorkerMessage) {
        match (message.method.as_deref(), message.id) {
            (Some(RUN_METHOD), Some(id)) => {
                let worker = Arc::clone(self);
                tokio::spawn(async move { worker.run_request(id, message.params).await });
            }
            (Some(_), id) => self.send_message(WorkerMessage::error(id, METHOD_NOT_FOUND, "no such method")),
            (None, Some(id)) => self.complete_request(id, message.result),
            (None, None) => self.send_message(WorkerMessage::error(
                None,
                INVALID_REQUEST,
                "neither a request nor a response",
            )),
        }
    }

    async fn run_request(&self, id: u64, params: Value) {
        let run: ToolRunParams = match serde_json::from_value(params) {
            Ok(run) => run,
            Err(error) => {
                return self.send_message(WorkerMessage::error(
                    Some(id),
                    INVALID_REQUEST,
                    &error.to_string(),
                ));
            }
        };
        // Second check of the engine's decision: calls that are not on the list are rejected.
        if !run.tools.contains(&run.call.name) || !super::WORKER_TOOLS.contains(&run.call.name.as_str()) {
            let name = text::truncate_text(&run.call.name, 80);
            return self.send_message(WorkerMessage::error(
                Some(id),
                TOOL_NOT_ALLOWED,
                &format!("'{name}' is not an allowed tool"),
            ));
        }
        let outcome =
            if run.call.name == http_fetch::TOOL_NAME && run.scope.sandbox.mode == SandboxMode::Strict {
                self.call_host(FETCH_METHOD, json!({ "call": id })).await
            } else {
                self.run_tool(id, &run).await
            };
        self.send_message(WorkerMessage::result(id, json!(outcome)));
    }

    async fn run_tool(&self, id: u64, run: &ToolRunParams) -> ToolOutcome {
        let tools = BuiltinToolbox::new(BuiltinSettings {
            allow_private: run.allow_private,
            briefings: None,
            web_search: None,
            sandbox: self.sandbox_settings(),
        });
        let progress = |text: &str| {
            self.send_message(WorkerMessage::notification(
                PROGRESS_METHOD,
                json!({ "call": id, "text": text }),
            ));
        };
        tools.run(&run.scope, &run.turn, &run.call, &progress).await
    }

    /// Programs are confined further, inside the worker's own sandbox.
    fn sandbox_settings(&self) -> sandbox::SandboxLauncherSettings {
        sandbox::SandboxLauncherSettings {
            helper: self.helper.clone(),
            temporary: std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from),
            ways: vec![NamespaceMode::Bare],
            inherited: InheritedSandbox::from_environment(),
            ..sandbox::SandboxLauncherSettings::default()
        }
    }

    async fn call_host(&self, method: &str, params: Value) -> ToolOutcome {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.pending_requests.lock().unwrap_or_else(PoisonError::into_inner).insert(id, answer);
        self.send_message(WorkerMessage::request(id, method, params));
        let value = answered.await.unwrap_or_default();
        serde_json::from_value(value).unwrap_or_else(|_| ToolOutcome::error("the host sent no response"))
    }

    fn complete_request(&self, id: u64, result: Option<Value>) {
        let waiting = self.pending_requests.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let Some(waiting) = waiting {
            waiting.send(result.unwrap_or_default()).ok();
        }
    }

    fn send_message(&self, message: WorkerMessage) {
        // Fails only if the daemon is gone, and then the worker exits as well.
        self.out.send(message).ok();
    }
}
