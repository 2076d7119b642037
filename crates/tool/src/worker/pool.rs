//! The worker pool: how many workers run, which call gets which one, and when they are stopped.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use polyclaw_domain::agent::SandboxSettings;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::host::WorkerHandle;
use crate::error::{Error, Result};
use crate::sandbox::SandboxLauncher;

#[derive(Clone, Debug)]
pub struct WorkerPoolSettings {
    /// The command that runs a worker inside its sandbox.
    pub command: Vec<String>,
    pub min: usize,
    pub max: usize,
    pub idle: Duration,
    pub wait: Duration,
    /// A worker is replaced after this many calls.
    pub calls: u64,
}

pub struct ToolWorkerPool {
    settings: WorkerPoolSettings,
    sandboxes: Arc<SandboxLauncher>,
    /// One permit per running call.
    busy: Arc<Semaphore>,
    idle: Arc<Mutex<IdleWorkers>>,
}

#[derive(Default)]
struct IdleWorkers {
    workers: Vec<IdleWorker>,
    /// A task is pruning idle workers.
    is_tended: bool,
}

struct IdleWorker {
    kind: WorkerKind,
    host: WorkerHandle,
    since: Instant,
}

/// The calls that a worker can serve: those of one workspace with one sandbox configuration.
#[derive(Clone, PartialEq)]
struct WorkerKind {
    workspace: PathBuf,
    sandbox: SandboxSettings,
}

/// A worker for one call. It returns to the pool only through `return_worker`.
pub struct WorkerLease {
    pub host: WorkerHandle,
    kind: WorkerKind,
    _busy: OwnedSemaphorePermit,
}

impl ToolWorkerPool {
    pub fn new(settings: WorkerPoolSettings, sandboxes: Arc<SandboxLauncher>) -> Self {
        let busy = Arc::new(Semaphore::new(settings.max.max(1)));
        Self { settings, sandboxes, busy, idle: Arc::default() }
    }

    /// Returns an idle worker or starts one. Fails if none becomes free in time.
    pub async fn lease_worker(&self, sandbox: &SandboxSettings, workspace: &Path) -> Result<WorkerLease> {
        let permit = tokio::time::timeout(self.settings.wait, Arc::clone(&self.busy).acquire_owned());
        let Ok(Ok(busy)) = permit.await else {
            return Err(Error::PoolExhausted(self.settings.wait.as_secs()));
        };
        let kind = WorkerKind { workspace: workspace.to_owned(), sandbox: sandbox.clone() };
        let waiting = self.take_idle(&kind);
        let host = match waiting {
            Some(host) => host,
            None => WorkerHandle::start(&self.sandboxes, &self.settings.command, sandbox, workspace).await?,
        };
        Ok(WorkerLease { host, kind, _busy: busy })
    }

    /// Returns a worker to the pool unless it has reached its maximum calls.
    pub fn return_worker(&self, lease: WorkerLease) {
        if lease.host.call_count() >= self.settings.calls {
            return;
        }
        let mut idle = lock_idle(&self.idle);
        idle.workers.push(IdleWorker { kind: lease.kind, host: lease.host, since: Instant::now() });
        if !std::mem::replace(&mut idle.is_tended, true) {
            tokio::spawn(prune_idle_workers(Arc::downgrade(&self.idle), self.settings.clone()));
        }
    }

    /// Takes an idle worker of the kind. If there is none, makes room for a new one.
    fn take_idle(&self, kind: &WorkerKind) -> Option<WorkerHandle> {
        let mut idle = lock_idle(&self.idle);
        while let Some(at) = idle.workers.iter().rposition(|waiting| waiting.kind == *kind) {
            let mut host = idle.workers.swap_remove(at).host;
            if host.is_idle() {
                return Some(host);
            }
        }
        let busy = self.settings.max - self.busy.available_permits();
        if idle.workers.len() + busy > self.settings.max {
            let oldest = (0..idle.workers.len()).min_by_key(|at| idle.workers[*at].since);
            oldest.map(|at| idle.workers.swap_remove(at));
        }
        None
    }
}

fn lock_idle(idle: &Mutex<IdleWorkers>) -> MutexGuard<'_, IdleWorkers> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops workers that are idle for too long, until none is left.
async fn prune_idle_workers(idle: std::sync::Weak<Mutex<IdleWorkers>>, settings: WorkerPoolSettings) {
    let pause = (settings.idle / 4).clamp(Duration::from_millis(20), Duration::from_secs(5));
    loop {
        tokio::time::sleep(pause).await;
        let Some(idle) = idle.upgrade() else { return };
        let mut idle = lock_idle(&idle);
        idle.prune_expired(&settings);
        if idle.workers.is_empty() {
            idle.is_tended = false;
            return;
        }
    }
}

impl IdleWorkers {
    fn prune_expired(&mut self, settings: &WorkerPoolSettings) {
        let mut at = 0;
        while at < self.workers.len() {
            let kind = &self.workers[at].kind;
            let same = self.workers.iter().filter(|waiting| waiting.kind == *kind).count();
            if self.workers[at].since.elapsed() >= settings.idle && same > settings.min {
                self.workers.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }
}
