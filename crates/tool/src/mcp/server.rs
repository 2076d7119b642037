//! A server and the task that keeps it: started when needed, asked again when its tools change, started again when it
//! ends, each time after a longer pause.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use polyclaw_domain::mcp::{McpServerState, McpServerStatus};
use polyclaw_domain::tool::{ProgressSink, ToolOutcome};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::connection::{Connection, Line};
use super::offer::Offer;
use super::settings::Settings;
use crate::error::{Error, Result};

const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// One that ran this long has not failed to start.
const SETTLED: Duration = Duration::from_secs(60);
/// A server that says again and again that its tools changed is asked no more often than this.
const RELIST: Duration = Duration::from_secs(1);

pub struct Server {
    pub name: String,
    settings: Arc<Settings>,
    now: Mutex<Now>,
    /// Counts up with every change of `now`.
    changes: watch::Sender<u64>,
    /// A call could not be made: look whether the server is still there.
    doubt: Notify,
    stop: watch::Sender<bool>,
    done: watch::Sender<bool>,
}

struct Now {
    standing: McpServerState,
    line: Option<Line>,
    /// As last told; kept while it is down, so that a call of one gets an answer that says why.
    offers: Arc<[Offer]>,
    version: Option<String>,
    error: Option<String>,
    restarts: u64,
    retry: Option<Instant>,
}

impl Server {
    pub fn new(name: String, settings: Settings) -> Self {
        let now = Now {
            standing: McpServerState::Idle,
            line: None,
            offers: Arc::new([]),
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

    pub fn has(&self, settings: &Settings) -> bool {
        *self.settings == *settings
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.now());
        self.changes.send_modify(|count| *count += 1);
    }

    pub fn offers(&self) -> Arc<[Offer]> {
        Arc::clone(&self.now().offers)
    }

    pub fn is_starting(&self) -> bool {
        self.now().standing == McpServerState::Starting
    }

    pub fn state(&self) -> McpServerStatus {
        let now = self.now();
        McpServerStatus {
            name: self.name.clone(),
            transport: self.settings.reach.transport(),
            sandbox: self.settings.reach.sandbox(),
            standing: now.standing,
            version: now.version.clone(),
            tools: now.offers.iter().map(|offer| offer.spec.name.clone()).collect(),
            restarts: now.restarts,
            error: now.error.clone(),
        }
    }

    /// Somebody needs it: it is started, if it was not yet.
    pub fn wake(self: &Arc<Self>) {
        if self.now().standing != McpServerState::Idle || *self.stop.borrow() {
            return;
        }
        self.change(|now| now.standing = McpServerState::Starting);
        self.done.send_replace(false);
        let own = Arc::clone(self);
        tokio::spawn(async move {
            own.keep().await;
            own.done.send_replace(true);
        });
    }

    /// Returns when its first start has come to something.
    pub async fn known(&self) {
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

    /// Returns when nothing of it runs any more.
    pub async fn stopped(&self) {
        let _ = self.done.subscribe().wait_for(|done| *done).await;
    }

    async fn keep(&self) {
        let mut stop = self.stop.subscribe();
        let mut failures = 0;
        while !*stop.borrow() {
            let began = Instant::now();
            let error = self.live(&mut stop).await;
            if *stop.borrow() {
                break;
            }
            failures = if began.elapsed() > SETTLED { 1 } else { failures + 1 };
            let pause = SHORTEST_PAUSE.saturating_mul(1 << (failures - 1).min(10)).min(LONGEST_PAUSE);
            tracing::warn!(mcp.server = self.name, pause_s = pause.as_secs(), "MCP server is down: {error}");
            self.change(|now| {
                (now.standing, now.line, now.error) = (McpServerState::Down, None, Some(error));
                now.retry = Some(Instant::now() + pause);
            });
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stop.wait_for(|stop| *stop) => break,
            }
            self.change(|now| {
                now.standing = McpServerState::Starting;
                now.restarts += 1;
            });
        }
        self.change(|now| (now.standing, now.line) = (McpServerState::Idle, None));
    }

    /// One life of the server. Returns why it ended.
    async fn live(&self, stop: &mut watch::Receiver<bool>) -> String {
        let opened = tokio::select! {
            opened = Connection::open(&self.name, &self.settings) => opened,
            _ = stop.wait_for(|stop| *stop) => return String::new(),
        };
        let mut connection = match opened {
            Ok(connection) => connection,
            Err(error) => return error.to_string(),
        };
        let why = tokio::select! {
            why = self.serve(&mut connection) => why,
            _ = stop.wait_for(|stop| *stop) => String::new(),
        };
        let how = connection.end().await;
        how.map_or(why, |how| format!("it ended: {how}"))
    }

    async fn serve(&self, connection: &mut Connection) -> String {
        // A doubt about an earlier life says nothing about this one.
        let _ = tokio::time::timeout(Duration::ZERO, self.doubt.notified()).await;
        let changed = Arc::clone(&connection.changed);
        loop {
            match connection.line.offers().await {
                Ok(offers) => self.ready(connection, offers),
                Err(error) => return error.to_string(),
            }
            tokio::select! {
                () = connection.ended() => return "it went away".to_owned(),
                () = self.doubt.notified() => return "it can not be reached".to_owned(),
                () = changed.notified() => tokio::time::sleep(RELIST).await,
            }
        }
    }

    fn ready(&self, connection: &Connection, offers: Vec<Offer>) {
        // Many servers tell of changed tools right after their start: that is no news of the server.
        let (is_news, tools) = (self.now().standing != McpServerState::Ready, offers.len());
        if is_news {
            tracing::info!(mcp.server = self.name, tools, "MCP server is ready");
        } else {
            tracing::debug!(mcp.server = self.name, tools, "the tools of an MCP server were listed again");
        }
        self.change(|now| {
            now.standing = McpServerState::Ready;
            now.line = Some(connection.line.clone());
            now.offers = offers.into();
            now.version = connection.version();
            (now.error, now.retry) = (None, None);
        });
    }

    pub async fn call(
        &self,
        tool: &str,
        arguments: &Value,
        progress: ProgressSink<'_>,
    ) -> Result<ToolOutcome> {
        // One that is just being started again is waited for.
        let _ = tokio::time::timeout(self.settings.start, self.known()).await;
        let line = self.now().line.clone();
        let Some(line) = line else { return Err(self.down()) };
        let outcome = line.call(tool, arguments, progress).await;
        if matches!(outcome, Err(Error::ServerGone(_))) {
            self.doubt.notify_one();
        }
        outcome
    }

    fn down(&self) -> Error {
        let now = self.now();
        let why = now.error.clone().unwrap_or_else(|| "it is not running".to_owned());
        let left = now.retry.map(|at| at.saturating_duration_since(Instant::now()).as_secs() + 1);
        let again = left.map(|left| format!("; it is tried again in {left} s")).unwrap_or_default();
        Error::Server(self.name.clone(), format!("it is down ({why}){again}"))
    }
}
