//! The pool: how many workers there are, who gets which, and when one goes.

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
    /// What a worker is, run inside its sandbox.
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
    /// One for each call under way.
    busy: Arc<Semaphore>,
    idle: Arc<Mutex<IdleWorkers>>,
}

#[derive(Default)]
struct IdleWorkers {
    workers: Vec<IdleWorker>,
    /// Somebody looks after those that wait too long.
    is_tended: bool,
}

struct IdleWorker {
    kind: WorkerKind,
    host: WorkerHandle,
    since: Instant,
}

/// Who can do whose work: a worker is confined to one workspace in one way.
#[derive(Clone, PartialEq)]
struct WorkerKind {
    workspace: PathBuf,
    sandbox: SandboxSettings,
}

/// A worker for one call. It goes back to the pool only if it is given back.
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

    /// A worker that waits, or a new one. Refused when none is free for too long.
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

    /// Back to the others, unless it has done enough.
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

    /// Takes one of the kind. Where there is none, makes room for a new one.
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

/// Lets go of workers that wait too long, until none is left to look after.
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
