//! Start, stop and restart. Each holds the instance's lock from its first look to its last word.

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

/// How long running work gets to reach a safe point.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// A start that has not led to an answer by then has failed.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const START_POLL_INTERVAL: Duration = Duration::from_millis(25);
/// Whoever holds a lock for longer than this acts, and does not only look.
const LOCK_TIMEOUT: Duration = Duration::from_millis(300);
/// What is killed is gone by then, unless the kernel holds it.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);
/// Log lines told with a start that failed.
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

    /// Under one lock; one that does not run is started.
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
            // Whoever stops one that crashed wants it to stay down.
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
        // An earlier server may have died while the instance drained: a second signal would cut the drain short.
        let is_draining = one.restarting && self.is_draining(&one).await;
        self.request_restart(by, &one).await?;
        if !is_draining {
            self.terminate(&one, &live);
        }
        self.await_end(&one, &live, timeout).await?;
        let one = self.find_instance(one.id.as_str()).await?;
        self.launch_or_mark_stopped(&one).await
    }

    /// Ends those this server started, and those an earlier one did that was killed before it could end them, without
    /// forgetting that they should run.
    pub async fn stop_children(&self, timeout: Duration) {
        let rows = self.db.read(registry::list).await.unwrap_or_else(|error| {
            tracing::error!(%error, "instances were left running");
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
                tracing::warn!(%error, "an instance was left running");
            }
        }
    }

    pub(crate) async fn find_active(&self, word: &str) -> Result<InstanceRecord> {
        let one = self.find_instance(word).await?;
        if one.archived_at.is_some() { Err(Error::Archived(one.name.to_string())) } else { Ok(one) }
    }

    /// The right to act on an instance, or that somebody else does. Who only looks lets go at once.
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

    /// On record before anything ends: whoever dies in between leaves the restart to the next server.
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

    /// Ends a process that runs and answers nothing. It is a crash: its policy says what follows.
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
        tracing::error!(instance = %one.name, seconds = silent.as_secs(), "it does not answer and is killed");
        let detail = format!("{}: it did not answer for {} s", one.name, silent.as_secs());
        let entry = self.audit_entry(&ControlCaller::supervisor(), "instance.hung", &one.id);
        self.record_audit(AuditEntry { detail, ..entry }).await?;
        handle.kill();
        let _ = handle.wait_for_exit(KILL_TIMEOUT).await;
        self.liveness.record_probe(&one.id, true);
        self.wake_supervisor.notify_one();
        Ok(())
    }

    /// A start somebody asked for and that failed is not tried again.
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

    /// Starts the daemon and waits until it answers. Whoever calls holds the lock. What fails leaves nothing behind.
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
            // What is left of a pid is the child's or an earlier life's, unless somebody runs there by hand.
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

    /// The config is where the port is said; the registry follows it, unless another instance has it.
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
        Err(failed(format!("it did not answer within {} s", START_TIMEOUT.as_secs())))
    }

    /// Asks a process to end, then makes it. Whoever calls holds the lock.
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

    /// By its own word. One that does not answer has not said so.
    async fn is_draining(&self, one: &InstanceRecord) -> bool {
        let health = self.request_instance(one, Method::GET, "/health", HEALTH_TIMEOUT).await;
        health.is_ok_and(|(_, health)| health["status"] == "draining")
    }

    /// Waits for the end of a process that was asked to end, and kills it when its time is over.
    async fn await_end(&self, one: &InstanceRecord, live: &InstanceProcess, timeout: Duration) -> Result<()> {
        let place = self.instance_paths(one);
        if let Some(handle) = self.open_process(one, live)
            && !handle.wait_for_exit(timeout).await
        {
            tracing::warn!(instance = %one.name, "it did not end in time and is killed");
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
        // A pid of somebody else is only forgotten; nobody is signalled.
        let _ = std::fs::remove_file(place.pid_file());
        self.store_pid(one, None).await
    }
}

fn foreign_process_error(live: &InstanceProcess) -> Error {
    Error::NotOurs { pid: live.pid.map(|pid| pid.number).unwrap_or_default() }
}

/// Ends a child that came to nothing. It is ours and not reaped before it ended, so its number can be no other's.
async fn kill_child(child: &mut ChildProcess) {
    if let Some(pid) = rustix::process::Pid::from_raw(child.number)
        && process::start_time(child.number).is_some()
    {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    let _ = tokio::time::timeout(KILL_TIMEOUT, child.wait()).await;
}
