//! A worker's own side: takes calls from its standard input until that closes.

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

use super::wire::{self, FETCH, LONGEST_REQUEST, Message, PROGRESS, RUN, Run};
use crate::builtin::{Builtin, Settings};
use crate::sandbox::{self, Inherited, Way};
use crate::{http_fetch, text};

/// Blocking work of one call at a time needs few threads.
const THREADS: usize = 4;
const INVALID: i32 = -32600;
const NO_METHOD: i32 = -32601;
const NOT_ALLOWED: i32 = -32001;

/// Runs until the daemon closes the line, which it does when it ends, however it ends. `helper` starts programs.
pub fn serve(helper: Vec<String>) -> u8 {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(THREADS).build();
    let served = runtime.and_then(|runtime| {
        // Not for programs that are started here: who has it can answer for the worker.
        let line = rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 0)?;
        let socket = std::os::unix::net::UnixStream::from(line);
        socket.set_nonblocking(true)?;
        let served = runtime.block_on(async { serve_on(UnixStream::from_std(socket)?, helper).await });
        // A thread that still works must not hold the end up.
        runtime.shutdown_background();
        served
    });
    u8::from(served.is_err())
}

async fn serve_on(socket: UnixStream, helper: Vec<String>) -> io::Result<()> {
    let (reader, mut writer) = socket.into_split();
    let (out, mut lines) = mpsc::unbounded_channel::<Message>();
    tokio::spawn(async move {
        while let Some(message) = lines.recv().await {
            if writer.write_all(&message.line()).await.is_err() {
                return;
            }
        }
    });
    let worker = Arc::new(Worker { helper, out, asked: Mutex::default(), next: AtomicU64::new(1) });
    let mut reader = BufReader::new(reader);
    while let Some(message) = wire::next(&mut reader, LONGEST_REQUEST).await {
        worker.take(message);
    }
    Ok(())
}

struct Worker {
    helper: Vec<String>,
    out: mpsc::UnboundedSender<Message>,
    /// Questions to the host that wait for an answer.
    asked: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
    next: AtomicU64,
}

impl Worker {
    fn take(self: &Arc<Self>, message: Message) {
        match (message.method.as_deref(), message.id) {
            (Some(RUN), Some(id)) => {
                let worker = Arc::clone(self);
                tokio::spawn(async move { worker.run(id, message.params).await });
            }
            (Some(_), id) => self.say(Message::error(id, NO_METHOD, "no such method")),
            (None, Some(id)) => self.answered(id, message.result),
            (None, None) => self.say(Message::error(None, INVALID, "neither a request nor an answer")),
        }
    }

    async fn run(&self, id: u64, params: Value) {
        let run: Run = match serde_json::from_value(params) {
            Ok(run) => run,
            Err(error) => return self.say(Message::error(Some(id), INVALID, &error.to_string())),
        };
        // The second look at what the engine decided: a call that is not on the list is not run.
        if !run.tools.contains(&run.call.name) || !super::TOOLS.contains(&run.call.name.as_str()) {
            let name = text::cut(&run.call.name, 80);
            return self.say(Message::error(Some(id), NOT_ALLOWED, &format!("'{name}' is not on the list")));
        }
        let outcome = if run.call.name == http_fetch::NAME && run.scope.sandbox.mode == SandboxMode::Strict {
            self.ask(FETCH, json!({ "call": id })).await
        } else {
            self.perform(id, &run).await
        };
        self.say(Message::result(id, json!(outcome)));
    }

    async fn perform(&self, id: u64, run: &Run) -> ToolOutcome {
        let tools = Builtin::new(Settings {
            allow_private: run.allow_private,
            briefings: None,
            web_search: None,
            sandbox: self.confining(),
        });
        let progress =
            |text: &str| self.say(Message::notification(PROGRESS, json!({ "call": id, "text": text })));
        tools.run(&run.scope, &run.turn, &run.call, &progress).await
    }

    /// Programs are confined once more, below what confines the worker.
    fn confining(&self) -> sandbox::Settings {
        sandbox::Settings {
            helper: self.helper.clone(),
            temporary: std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from),
            ways: vec![Way::Bare],
            inherited: Inherited::read(),
            ..sandbox::Settings::default()
        }
    }

    async fn ask(&self, method: &str, params: Value) -> ToolOutcome {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(id, answer);
        self.say(Message::request(id, method, params));
        let value = answered.await.unwrap_or_default();
        serde_json::from_value(value).unwrap_or_else(|_| ToolOutcome::error("the host gave no answer"))
    }

    fn answered(&self, id: u64, result: Option<Value>) {
        let waiting = self.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let Some(waiting) = waiting {
            waiting.send(result.unwrap_or_default()).ok();
        }
    }

    fn say(&self, message: Message) {
        // Fails only when the daemon is gone, and then so are we.
        self.out.send(message).ok();
    }
}
