//! Start, stop and restart. Each holds the instance's lock from its first look to its last word.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use hyper::Method;
use polyclaw_domain::audit::AuditEntry;
use polyclaw_domain::config::Config;
use polyclaw_domain::instance::{DesiredState, InstanceStatus, ProcessState};
use polyclaw_store::registry::{self, InstanceRecord, ProcessId};

use crate::access::Caller;
use crate::audit;
use crate::call::ask;
use crate::child::Child;
use crate::config::References;
use crate::control::{Control, to_its_end};
use crate::error::{Error, Result};
use crate::lock::Held;
use crate::log;
use crate::place::Place;
use crate::process::{self, Handle};
use crate::view::{Live, View};

/// How long running work gets to reach a safe point.
pub const DRAIN: Duration = Duration::from_secs(30);
/// A start that has not led to an answer by then has failed.
const START: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// Whoever holds a lock for longer than this acts, and does not only look.
const GLANCE: Duration = Duration::from_millis(300);
/// What is killed is gone by then, unless the kernel holds it.
const LAST_LOOK: Duration = Duration::from_secs(5);
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);
/// Log lines told with a start that failed.
const TOLD: usize = 20;

impl Control {
    pub async fn start(&self, by: &Caller, word: &str) -> Result<View> {
        let (control, by, word) = (self.clone(), by.clone(), word.to_owned());
        to_its_end(async move { control.bring_up(&by, &word).await }).await
    }

    pub async fn stop(&self, by: &Caller, word: &str, patience: Duration) -> Result<View> {
        let (control, by, word) = (self.clone(), by.clone(), word.to_owned());
        to_its_end(async move { control.bring_down(&by, &word, patience).await }).await
    }

    /// Under one lock; one that does not run is started.
    pub async fn restart(&self, by: &Caller, word: &str, patience: Duration) -> Result<View> {
        let (control, by, word) = (self.clone(), by.clone(), word.to_owned());
        to_its_end(async move { control.bring_back(&by, &word, patience).await }).await
    }

    async fn bring_up(&self, by: &Caller, word: &str) -> Result<View> {
        let one = self.active(word).await?;
        let _held = self.hold(&one).await?;
        let one = self.row(one.id.as_str()).await?;
        let live = Live::of(&one, &self.place(&one));
        if let (InstanceStatus::Running | InstanceStatus::Unknown, Some(pid)) = (live.status(&one), live.pid)
        {
            return Err(Error::AlreadyRunning { name: one.name.to_string(), pid: pid.number });
        }
        let _starting = self.begin_start(&one.id);
        self.want(by, &one, DesiredState::Running, "instance.start").await?;
        self.launch_or_rest(&one).await
    }

    async fn bring_down(&self, by: &Caller, word: &str, patience: Duration) -> Result<View> {
        let one = self.active(word).await?;
        let _held = self.hold(&one).await?;
        let one = self.row(one.id.as_str()).await?;
        let live = Live::of(&one, &self.place(&one));
        match live.status(&one) {
            InstanceStatus::Stopped | InstanceStatus::Archived => {
                return Err(Error::NothingToStop(one.name.to_string()));
            }
            InstanceStatus::StalePid | InstanceStatus::Unknown => return Err(not_ours(&live)),
            // Whoever stops one that crashed wants it to stay down.
            InstanceStatus::Running
            | InstanceStatus::Unresponsive
            | InstanceStatus::Starting
            | InstanceStatus::Restarting
            | InstanceStatus::Crashed
            | InstanceStatus::Error => {}
        }
        self.want(by, &one, DesiredState::Stopped, "instance.stop").await?;
        self.end(&one, &live, patience).await?;
        self.refresh(&one.id).await
    }

    async fn bring_back(&self, by: &Caller, word: &str, patience: Duration) -> Result<View> {
        let one = self.active(word).await?;
        let _held = self.hold(&one).await?;
        let one = self.row(one.id.as_str()).await?;
        let live = Live::of(&one, &self.place(&one));
        if live.status(&one) == InstanceStatus::Unknown {
            return Err(not_ours(&live));
        }
        // An earlier server may have died while the instance drained: a second signal would cut the drain short.
        let is_draining = one.restarting && self.is_draining(&one).await;
        self.want_restart(by, &one).await?;
        if !is_draining {
            self.terminate(&one, &live);
        }
        self.await_end(&one, &live, patience).await?;
        let one = self.row(one.id.as_str()).await?;
        self.launch_or_rest(&one).await
    }

    /// Ends those this server started, and those an earlier one did that was killed before it could end them, without
    /// forgetting that they should run.
    pub async fn stop_children(&self, patience: Duration) {
        let rows = self.db.read(registry::list).await.unwrap_or_else(|error| {
            tracing::error!(%error, "instances were left running");
            Vec::new()
        });
        let started = self.children.running();
        let inherited = |one: &InstanceRecord| {
            let (place, live) = (self.place(one), Live::of(one, &self.place(one)));
            live.process == ProcessState::Ours
                && live.pid.is_some_and(|pid| place.ending() == Some(pid.number))
        };
        let ending = rows.into_iter().filter(|one| started.contains(&one.id) || inherited(one));
        let ends = ending.map(|one| {
            let control = self.clone();
            tokio::spawn(async move {
                let _held = control.hold(&one).await?;
                let live = Live::of(&one, &control.place(&one));
                control.end(&one, &live, patience).await
            })
        });
        for end in ends.collect::<Vec<_>>() {
            if let Ok(Err(error)) = end.await {
                tracing::warn!(%error, "an instance was left running");
            }
        }
    }

    pub(crate) async fn active(&self, word: &str) -> Result<InstanceRecord> {
        let one = self.row(word).await?;
        if one.archived_at.is_some() { Err(Error::Archived(one.name.to_string())) } else { Ok(one) }
    }

    /// The right to act on an instance, or that somebody else does. Who only looks lets go at once.
    pub(crate) async fn hold(&self, one: &InstanceRecord) -> Result<Held> {
        let began = Instant::now();
        let place = self.place(one);
        if !place.path().is_dir() {
            return Err(Error::FolderGone(one.name.to_string()));
        }
        loop {
            if let Some(held) = place.lock()? {
                return Ok(held);
            }
            if began.elapsed() > GLANCE {
                return Err(Error::Busy(one.name.to_string()));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn want(
        &self,
        by: &Caller,
        one: &InstanceRecord,
        wanted: DesiredState,
        action: &str,
    ) -> Result<()> {
        let (id, entry) =
            (one.id.clone(), AuditEntry { detail: one.name.to_string(), ..self.entry(by, action, &one.id) });
        let written = self.db.write(move |tx| {
            registry::set_desired_state(tx, &id, wanted)?;
            audit::note(tx, Some(&entry))
        });
        Ok(written.await?)
    }

    /// On record before anything ends: whoever dies in between leaves the restart to the next server.
    async fn want_restart(&self, by: &Caller, one: &InstanceRecord) -> Result<()> {
        let (id, entry) = (
            one.id.clone(),
            AuditEntry { detail: one.name.to_string(), ..self.entry(by, "instance.restart", &one.id) },
        );
        let written = self.db.write(move |tx| {
            registry::request_restart(tx, &id)?;
            audit::note(tx, Some(&entry))
        });
        Ok(written.await?)
    }

    /// Ends a process that runs and answers nothing. It is a crash: its policy says what follows.
    pub(crate) async fn end_hung(&self, one: &InstanceRecord, live: &Live, silent: Duration) -> Result<()> {
        let Some(handle) = live.pid.and_then(|pid| Handle::open(pid, self.place(one).path())) else {
            return Ok(());
        };
        tracing::error!(instance = %one.name, seconds = silent.as_secs(), "it does not answer and is killed");
        let detail = format!("{}: it did not answer for {} s", one.name, silent.as_secs());
        let entry = self.entry(&Caller::supervisor(), "instance.hung", &one.id);
        self.record(AuditEntry { detail, ..entry }).await?;
        handle.kill();
        let _ = handle.ends_within(LAST_LOOK).await;
        self.pulses.felt(&one.id, true);
        self.look.notify_one();
        Ok(())
    }

    /// A start somebody asked for and that failed is not tried again.
    async fn launch_or_rest(&self, one: &InstanceRecord) -> Result<View> {
        let launched = self.launch(one).await;
        self.note_start(&one.id, launched.as_ref().err().map(ToString::to_string));
        if launched.is_err() {
            let id = one.id.clone();
            self.db.write(move |tx| registry::mark_stopped(tx, &id)).await?;
        }
        let view = self.refresh(&one.id).await;
        launched?;
        view
    }

    /// Starts the daemon and waits until it answers. Whoever calls holds the lock. What fails leaves nothing behind.
    pub(crate) async fn launch(&self, one: &InstanceRecord) -> Result<()> {
        let place = self.place(one);
        let (one, config) = self.settle_port(one, &place).await?;
        if TcpListener::bind(SocketAddr::new(config.gateway.bind, one.port)).is_err() {
            return Err(Error::PortInUse(one.port));
        }
        let mut child = self.spawn(&one, &place).await?;
        let ready = self.until_ready(&one, &place, &config, &mut child).await;
        let kept = match ready {
            Ok(pid) => {
                self.doors.set(&one.id, pid, config.gateway.local_address());
                self.pulses.felt(&one.id, true);
                self.keep_pid(&one, Some(pid)).await
            }
            Err(error) => Err(error),
        };
        if kept.is_err() {
            abandon(&mut child).await;
            // What is left of a pid is the child's or an earlier life's, unless somebody runs there by hand.
            if place.pid().is_none_or(|pid| process::look(pid, None, place.path()) != ProcessState::Ours) {
                let _ = std::fs::remove_file(place.pid_file());
            }
            let _ = self.keep_pid(&one, None).await;
        }
        kept
    }

    pub(crate) async fn keep_pid(&self, one: &InstanceRecord, pid: Option<ProcessId>) -> Result<()> {
        let id = one.id.clone();
        Ok(self.db.write(move |tx| registry::set_pid(tx, &id, pid)).await?)
    }

    /// The config is where the port is said; the registry follows it, unless another instance has it.
    async fn settle_port(&self, one: &InstanceRecord, place: &Place) -> Result<(InstanceRecord, Config)> {
        let text = self.config_text(one)?;
        let mut config = self.load_config(place, text, References::Resolved).await?;
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

    async fn until_ready(
        &self,
        one: &InstanceRecord,
        place: &Place,
        config: &Config,
        child: &mut Child,
    ) -> Result<ProcessId> {
        let (began, address) = (Instant::now(), config.gateway.local_address());
        let failed = |why: String| Error::StartFailed {
            name: one.name.to_string(),
            why,
            lines: log::tail(&place.log(), TOLD).unwrap_or_default(),
        };
        while began.elapsed() < START {
            tokio::select! {
                status = child.wait() => {
                    let how = status.map_or_else(|| "it ended".to_owned(), |status| format!("it ended with {status}"));
                    return Err(failed(how));
                }
                answered = ask(address, None, Method::GET, "/health", Duration::from_secs(2)) => {
                    if matches!(answered, Ok((200, _))) && let Some(started) = process::started(child.number) {
                        return Ok(ProcessId { number: child.number, started });
                    }
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
        }
        Err(failed(format!("it did not answer within {} s", START.as_secs())))
    }

    /// Asks a process to end, then makes it. Whoever calls holds the lock.
    pub(crate) async fn end(&self, one: &InstanceRecord, live: &Live, patience: Duration) -> Result<()> {
        self.terminate(one, live);
        self.await_end(one, live, patience).await
    }

    fn handle(&self, one: &InstanceRecord, live: &Live) -> Option<Handle> {
        let pid = live.pid.filter(|_| live.process == ProcessState::Ours)?;
        Handle::open(pid, self.place(one).path())
    }

    fn terminate(&self, one: &InstanceRecord, live: &Live) {
        if let Some(handle) = self.handle(one, live) {
            handle.terminate();
        }
    }

    /// By its own word. One that does not answer has not said so.
    async fn is_draining(&self, one: &InstanceRecord) -> bool {
        let health = self.ask(one, Method::GET, "/health", HEALTH_TIMEOUT).await;
        health.is_ok_and(|(_, health)| health["status"] == "draining")
    }

    /// Waits for the end of a process that was asked to end, and kills it when its time is over.
    async fn await_end(&self, one: &InstanceRecord, live: &Live, patience: Duration) -> Result<()> {
        let place = self.place(one);
        if let Some(handle) = self.handle(one, live)
            && !handle.ends_within(patience).await
        {
            tracing::warn!(instance = %one.name, "it did not end in time and is killed");
            handle.kill();
            if !handle.ends_within(LAST_LOOK).await {
                return Err(Error::DidNotEnd { name: one.name.to_string(), pid: handle.number });
            }
        }
        if let Some(pid) = live.pid.filter(|_| live.process == ProcessState::Ours)
            && process::look(pid.number, Some(pid.started), place.path()) == ProcessState::Ours
        {
            return Err(Error::DidNotEnd { name: one.name.to_string(), pid: pid.number });
        }
        // A pid of somebody else is only forgotten; nobody is signalled.
        let _ = std::fs::remove_file(place.pid_file());
        self.keep_pid(one, None).await
    }
}

fn not_ours(live: &Live) -> Error {
    Error::NotOurs { pid: live.pid.map(|pid| pid.number).unwrap_or_default() }
}

/// Ends a child that came to nothing. It is ours and not reaped before it ended, so its number can be no other's.
async fn abandon(child: &mut Child) {
    if let Some(pid) = rustix::process::Pid::from_raw(child.number)
        && process::started(child.number).is_some()
    {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    let _ = tokio::time::timeout(LAST_LOOK, child.wait()).await;
}
