//! Starts, stops and restarts instances. Each operation holds the lock of the instance from its first check to its
//! end.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use hyper::Method;
use polyclaw_domain::audit::AuditEntry;
use polyclaw_domain::config::Config;
use polyclaw_domain::instance::{DesiredState, InstanceStatus, ProcessState};
use polyclaw_store::registry::{self, InstanceRecord, ProcessId};

use crate::access::ControlCaller;
use crate::audit;
use crate::child::ChildProcess;
use crate::config::ReferenceMode;
use crate::control::{Control, run_to_completion};
use crate::error::{Error, Result};
use crate::http_client::request_json;
use crate::instance_paths::InstancePaths;
use crate::lock::HeldLock;
use crate::log;
use crate::process::{self, ProcessHandle};
use crate::view::{InstanceProcess, InstanceSnapshot};

/// How long running work may take to reach a safe point.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a started instance may take to answer before the start counts as failed.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const START_POLL_INTERVAL: Duration = Duration::from_millis(25);
/// How long to wait for the lock of an instance. Checks release it sooner, so a longer holder is another operation.
const LOCK_TIMEOUT: Duration = Duration::from_millis(300);
/// How long a killed process may take to be gone; only the kernel can hold it longer.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);
/// Log lines shown with a failed start.
const MAX_SHOWN_LOG_LINES: usize = 20;

impl Control {
    pub async fn start_instance(&self, by: &ControlCaller, word: &str) -> Result<InstanceSnapshot> {
        let (control, by, word) = (self.clone(), by.clone(), word.to_owned());
        run_to_completion(async move { control.run_start(&by, &word).await }).await
    }

    pub async fn stop_instance(
        &self,
        by: &ControlCaller,
        word: &str,
        timeout: Duration,
    ) -> Result<InstanceSnapshot> {
        let (control, by, word) = (self.clone(), by.clone(), word.to_owned());
        run_to_completion(async move { control.run_stop(&by, &word, timeout).await }).await
    }

    /// Restarts under one lock. Starts the instance if it is not running.
    pub async fn restart_instance(
        &self,
        by: &ControlCaller,
        word: &str,
        timeout: Duration,
    ) -> Result<InstanceSnapshot> {
        let (control, by, word) = (self.clone(), by.clone(), word.to_owned());
        run_to_completion(async move { control.run_restart(&by, &word, timeout).await }).await
    }

    async fn run_start(&self, by: &ControlCaller, word: &str) -> Result<InstanceSnapshot> {
        let one = self.find_active(word).await?;
        let _held = self.lock_instance(&one).await?;
        let one = self.find_instance(one.id.as_str()).await?;
        let live = InstanceProcess::for_instance(&one, &self.instance_paths(&one));
        if let (InstanceStatus::Running | InstanceStatus::Unknown, Some(pid)) = (live.status(&one), live.pid)
        {
            return Err(Error::AlreadyRunning { name: one.name.to_string(), pid: pid.number });
        }
        let _starting = self.mark_starting(&one.id);
        self.set_desired_state(by, &one, DesiredState::Running, "instance.start").await?;
        self.launch_or_mark_stopped(&one).await
    }

    async fn run_stop(&self, by: &ControlCaller, word: &str, timeout: Duration) -> Result<InstanceSnapshot> {
        let one = self.find_active(word).await?;
        let _held = self.lock_instance(&one).await?;
        let one = self.find_instance(one.id.as_str()).await?;
        let live = InstanceProcess::for_instance(&one, &self.instance_paths(&one));
        match live.status(&one) {
            InstanceStatus::Stopped | InstanceStatus::Archived => {
                return Err(Error::NothingToStop(one.name.to_string()));
            }
            InstanceStatus::StalePid | InstanceStatus::Unknown => return Err(foreign_process_error(&live)),
            // Stopping a crashed instance keeps it from being restarted.
            InstanceStatus::Running
            | InstanceStatus::Unresponsive
            | InstanceStatus::Starting
            | InstanceStatus::Restarting
            | InstanceStatus::Crashed
            | InstanceStatus::Error => {}
        }
        self.set_desired_state(by, &one, DesiredState::Stopped, "instance.stop").await?;
        self.end_process(&one, &live, timeout).await?;
        self.refresh_instance(&one.id).await
    }

    async fn run_restart(
        &self,
        by: &ControlCaller,
        word: &str,
        timeout: Duration,
    ) -> Result<InstanceSnapshot> {
        let one = self.find_active(word).await?;
        let _held = self.lock_instance(&one).await?;
        let one = self.find_instance(one.id.as_str()).await?;
        let live = InstanceProcess::for_instance(&one, &self.instance_paths(&one));
        if live.status(&one) == InstanceStatus::Unknown {
            return Err(foreign_process_error(&live));
        }
        // An earlier server may have died while the instance drained. A second signal would cut the drain short.
        let is_draining = one.restarting && self.is_draining(&one).await;
        self.request_restart(by, &one).await?;
        if !is_draining {
            self.terminate(&one, &live);
        }
        self.await_end(&one, &live, timeout).await?;
        let one = self.find_instance(one.id.as_str()).await?;
        self.launch_or_mark_stopped(&one).await
    }

    /// Ends the instances that this server started, and those of an earlier server that was killed before it could
    /// end them. Their desired state stays "running".
    pub async fn stop_children(&self, timeout: Duration) {
        let rows = self.db.read(registry::list).await.unwrap_or_else(|error| {
            tracing::error!(%error, "could not list the instances; they keep running");
            Vec::new()
        });
        let started = self.children.list_running();
        let inherited = |one: &InstanceRecord| {
            let (place, live) =
                (self.instance_paths(one), InstanceProcess::for_instance(one, &self.instance_paths(one)));
            live.process == ProcessState::Ours
                && live.pid.is_some_and(|pid| place.read_ending_pid() == Some(pid.number))
        };
        let ending = rows.into_iter().filter(|one| started.contains(&one.id) || inherited(one));
        let ends = ending.map(|one| {
            let control = self.clone();
            tokio::spawn(async move {
                let _held = control.lock_instance(&one).await?;
                let live = InstanceProcess::for_instance(&one, &control.instance_paths(&one));
                control.end_process(&one, &live, timeout).await
            })
        });
        for end in ends.collect::<Vec<_>>() {
            if let Ok(Err(error)) = end.await {
                tracing::warn!(%error, "could not stop an instance; it keeps running");
            }
        }
    }

    pub(crate) async fn find_active(&self, word: &str) -> Result<InstanceRecord> {
        let one = self.find_instance(word).await?;
        if one.archived_at.is_some() { Err(Error::Archived(one.name.to_string())) } else { Ok(one) }
    }

    /// Locks an instance for an operation, or fails if another one holds it. Mere checks release the lock quickly.
    pub(crate) async fn lock_instance(&self, one: &InstanceRecord) -> Result<HeldLock> {
        let began = Instant::now();
        let place = self.instance_paths(one);
        if !place.path().is_dir() {
            return Err(Error::FolderGone(one.name.to_string()));
        }
        loop {
            if let Some(held) = place.try_lock()? {
                return Ok(held);
            }
            if began.elapsed() > LOCK_TIMEOUT {
                return Err(Error::Busy(one.name.to_string()));
            }
            tokio::time::sleep(START_POLL_INTERVAL).await;
        }
    }

    async fn set_desired_state(
        &self,
        by: &ControlCaller,
        one: &InstanceRecord,
        wanted: DesiredState,
        action: &str,
    ) -> Result<()> {
        let (id, entry) = (
            one.id.clone(),
            AuditEntry { detail: one.name.to_string(), ..self.audit_entry(by, action, &one.id) },
        );
        let written = self.db.write(move |tx| {
            registry::set_desired_state(tx, &id, wanted)?;
            audit::append_optional(tx, Some(&entry))
        });
        Ok(written.await?)
    }

    /// Records the restart before anything ends, so that the next server finishes it if this one dies.
    async fn request_restart(&self, by: &ControlCaller, one: &InstanceRecord) -> Result<()> {
        let (id, entry) = (
            one.id.clone(),
            AuditEntry { detail: one.name.to_string(), ..self.audit_entry(by, "instance.restart", &one.id) },
        );
        let written = self.db.write(move |tx| {
            registry::request_restart(tx, &id)?;
            audit::append_optional(tx, Some(&entry))
        });
        Ok(written.await?)
    }

    /// Kills a process that runs but does not answer. This counts as a crash, so the restart policy decides what
    /// follows.
    pub(crate) async fn kill_hung(
        &self,
        one: &InstanceRecord,
        live: &InstanceProcess,
        silent: Duration,
    ) -> Result<()> {
        let Some(handle) = live.pid.and_then(|pid| ProcessHandle::open(pid, self.instance_paths(one).path()))
        else {
            return Ok(());
        };
        tracing::error!(instance = %one.name, seconds = silent.as_secs(), "instance does not respond; killing it");
        let detail = format!("{}: it did not respond for {} s", one.name, silent.as_secs());
        let entry = self.audit_entry(&ControlCaller::supervisor(), "instance.hung", &one.id);
        self.record_audit(AuditEntry { detail, ..entry }).await?;
        handle.kill();
        let _ = handle.wait_for_exit(KILL_TIMEOUT).await;
        self.liveness.record_probe(&one.id, true);
        self.wake_supervisor.notify_one();
        Ok(())
    }

    /// A requested start that fails is not retried.
    async fn launch_or_mark_stopped(&self, one: &InstanceRecord) -> Result<InstanceSnapshot> {
        let launched = self.launch(one).await;
        self.record_start_result(&one.id, launched.as_ref().err().map(ToString::to_string));
        if launched.is_err() {
            let id = one.id.clone();
            self.db.write(move |tx| registry::mark_stopped(tx, &id)).await?;
        }
        let view = self.refresh_instance(&one.id).await;
        launched?;
        view
    }

    /// Starts the daemon and waits until it answers. The caller holds the lock. A failed start leaves nothing behind.
    pub(crate) async fn launch(&self, one: &InstanceRecord) -> Result<()> {
        let place = self.instance_paths(one);
        let (one, config) = self.resolve_port(one, &place).await?;
        if TcpListener::bind(SocketAddr::new(config.gateway.bind, one.port)).is_err() {
            return Err(Error::PortInUse(one.port));
        }
        let mut child = self.spawn_daemon(&one, &place).await?;
        let ready = self.wait_until_ready(&one, &place, &config, &mut child).await;
        let kept = match ready {
            Ok(pid) => {
                self.endpoints.insert(&one.id, pid, config.gateway.local_address());
                self.liveness.record_probe(&one.id, true);
                self.store_pid(&one, Some(pid)).await
            }
            Err(error) => Err(error),
        };
        if kept.is_err() {
            kill_child(&mut child).await;
            // A leftover pid file is the child's or an older one, unless somebody runs the daemon there by hand.
            if place
                .read_pid()
                .is_none_or(|pid| process::inspect_process(pid, None, place.path()) != ProcessState::Ours)
            {
                let _ = std::fs::remove_file(place.pid_file());
            }
            let _ = self.store_pid(&one, None).await;
        }
        kept
    }

    pub(crate) async fn store_pid(&self, one: &InstanceRecord, pid: Option<ProcessId>) -> Result<()> {
        let id = one.id.clone();
        Ok(self.db.write(move |tx| registry::set_pid(tx, &id, pid)).await?)
    }

    /// Takes the port from the config and updates the registry, unless another instance has that port.
    async fn resolve_port(
        &self,
        one: &InstanceRecord,
        place: &InstancePaths,
    ) -> Result<(InstanceRecord, Config)> {
        let text = self.read_config_text(one)?;
        let mut config = self.load_config(place, text, ReferenceMode::Resolved).await?;
        let port = self.overridden_port(&one.id).unwrap_or(config.gateway.port);
        config.gateway.port = port;
        if port != one.port {
            let id = one.id.clone();
            if !self.db.write(move |tx| registry::set_port(tx, &id, port)).await? {
                return Err(Error::PortTaken(port));
            }
        }
        Ok((InstanceRecord { port, ..one.clone() }, config))
    }

    async fn wait_until_ready(
        &self,
        one: &InstanceRecord,
        place: &InstancePaths,
        config: &Config,
        child: &mut ChildProcess,
    ) -> Result<ProcessId> {
        let (began, address) = (Instant::now(), config.gateway.local_address());
        let failed = |why: String| Error::StartFailed {
            name: one.name.to_string(),
            why,
            lines: log::tail(&place.log_file(), MAX_SHOWN_LOG_LINES).unwrap_or_default(),
        };
        while began.elapsed() < START_TIMEOUT {
            tokio::select! {
                status = child.wait() => {
                    let how = status.map_or_else(|| "it ended".to_owned(), |status| format!("it ended with {status}"));
                    return Err(failed(how));
                }
                answered = request_json(address, None, Method::GET, "/health", Duration::from_secs(2)) => {
                    if matches!(answered, Ok((200, _))) && let Some(started) = process::start_time(child.number) {
                        return Ok(ProcessId { number: child.number, started });
                    }
                    tokio::time::sleep(START_POLL_INTERVAL).await;
                }
            }
        }
        Err(failed(format!("it did not respond within {} s", START_TIMEOUT.as_secs())))
    }

    /// Asks a process to end, and kills it after the timeout. The caller holds the lock.
    pub(crate) async fn end_process(
        &self,
        one: &InstanceRecord,
        live: &InstanceProcess,
        timeout: Duration,
    ) -> Result<()> {
        self.terminate(one, live);
        self.await_end(one, live, timeout).await
    }

    fn open_process(&self, one: &InstanceRecord, live: &InstanceProcess) -> Option<ProcessHandle> {
        let pid = live.pid.filter(|_| live.process == ProcessState::Ours)?;
        ProcessHandle::open(pid, self.instance_paths(one).path())
    }

    fn terminate(&self, one: &InstanceRecord, live: &InstanceProcess) {
        if let Some(handle) = self.open_process(one, live) {
            handle.terminate();
        }
    }

    /// Whether the instance reports that it drains. No answer means no.
    async fn is_draining(&self, one: &InstanceRecord) -> bool {
        let health = self.request_instance(one, Method::GET, "/health", HEALTH_TIMEOUT).await;
        health.is_ok_and(|(_, health)| health["status"] == "draining")
    }

    /// Waits for a process that was asked to end, and kills it after the timeout.
    async fn await_end(&self, one: &InstanceRecord, live: &InstanceProcess, timeout: Duration) -> Result<()> {
        let place = self.instance_paths(one);
        if let Some(handle) = self.open_process(one, live)
            && !handle.wait_for_exit(timeout).await
        {
            tracing::warn!(instance = %one.name, "instance did not stop in time; killing it");
            handle.kill();
            if !handle.wait_for_exit(KILL_TIMEOUT).await {
                return Err(Error::DidNotEnd { name: one.name.to_string(), pid: handle.number });
            }
        }
        if let Some(pid) = live.pid.filter(|_| live.process == ProcessState::Ours)
            && process::inspect_process(pid.number, Some(pid.started), place.path()) == ProcessState::Ours
        {
            return Err(Error::DidNotEnd { name: one.name.to_string(), pid: pid.number });
        }
        // The pid of a foreign process is only forgotten; the process gets no signal.
        let _ = std::fs::remove_file(place.pid_file());
        self.store_pid(one, None).await
    }
}

fn foreign_process_error(live: &InstanceProcess) -> Error {
    Error::NotOurs { pid: live.pid.map(|pid| pid.number).unwrap_or_default() }
}

/// Kills a child whose start failed. An unreaped child keeps its pid, so no other process can have it.
async fn kill_child(child: &mut ChildProcess) {
    if let Some(pid) = rustix::process::Pid::from_raw(child.number)
        && process::start_time(child.number).is_some()
    {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    let _ = tokio::time::timeout(KILL_TIMEOUT, child.wait()).await;
}
