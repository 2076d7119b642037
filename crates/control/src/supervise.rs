//! Checks every instance periodically, and immediately when a child ends. Detects ended processes, restarts them if
//! the policy says so, and keeps the registry in line with the process table.

use std::collections::HashMap;
use std::time::Duration;

use polyclaw_domain::audit::AuditEntry;
use polyclaw_domain::id::InstanceId;
use polyclaw_domain::instance::{
    BREAKER_CRASHES, BREAKER_WINDOW_MS, DesiredState, ProcessState, RestartDecision, RestartPolicy,
    decide_restart,
};
use polyclaw_domain::time::Millis;
use polyclaw_store::Tx;
use polyclaw_store::registry::{self, InstanceRecord};

use crate::access::ControlCaller;
use crate::audit;
use crate::control::Control;
use crate::error::Result;
use crate::lifecycle::DRAIN_TIMEOUT;
use crate::lock::HeldLock;
use crate::view::InstanceProcess;

const SUPERVISE_INTERVAL: Duration = Duration::from_secs(5);
/// Upper bound for the delay of a due start.
const PENDING_START_INTERVAL: Duration = Duration::from_millis(250);

/// Times of due starts, by instance.
type DueStarts = HashMap<InstanceId, Millis>;

impl Control {
    /// Runs until dropped. The next control plane completes interrupted operations.
    pub async fn run_supervisor(&self) {
        tokio::join!(self.run_supervision(), self.run_liveness_probes());
    }

    async fn run_supervision(&self) {
        let mut due = DueStarts::new();
        loop {
            if let Err(error) = self.supervise_all(&mut due).await {
                tracing::error!(%error, "could not list the instances; retrying at the next interval");
            }
            if let Err(error) = self.update_audit_head_file().await {
                tracing::error!(%error, "could not update cp/audit.head");
            }
            let pause = if due.is_empty() { SUPERVISE_INTERVAL } else { PENDING_START_INTERVAL };
            tokio::select! {
                () = self.wake_supervisor.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn supervise_all(&self, due: &mut DueStarts) -> Result<()> {
        let rows = self.db.read(registry::list).await?;
        due.retain(|id, _| rows.iter().any(|one| one.id == *id));
        for one in rows.into_iter().filter(|one| one.archived_at.is_none()) {
            let id = one.id.clone();
            if let Err(error) = self.supervise_one(one, due).await {
                tracing::error!(instance = %id, %error, "could not supervise an instance; retrying later");
            }
            // The instance may have been deleted meanwhile.
            let _ = self.refresh_instance(&id).await;
        }
        Ok(())
    }

    async fn supervise_one(&self, one: InstanceRecord, due: &mut DueStarts) -> Result<()> {
        let live = InstanceProcess::for_instance(&one, &self.instance_paths(&one));
        if is_settled(&one, &live) && self.hung_for(&one).is_none() {
            due.remove(&one.id);
            return Ok(());
        }
        // Another operation holds the lock and finishes its own work.
        let Some(held) = self.instance_paths(&one).try_lock()? else { return Ok(()) };
        let one = self.find_instance(one.id.as_str()).await?;
        let live = InstanceProcess::for_instance(&one, &self.instance_paths(&one));
        if one.restarting {
            // The server that was restarting it is gone.
            drop(held);
            let control = self.clone();
            tokio::spawn(async move { control.finish_restart(&one).await });
            return Ok(());
        }
        match live.process {
            ProcessState::Ours => {
                due.remove(&one.id);
                match self.hung_for(&one) {
                    Some(silent) => self.kill_hung(&one, &live, silent).await,
                    None => self.adopt_process(&one, &live).await,
                }
            }
            ProcessState::Hidden => Ok(()),
            ProcessState::Foreign if one.desired_state == DesiredState::Stopped => Ok(()),
            ProcessState::Gone if one.desired_state == DesiredState::Stopped => {
                self.clear_process_record(&one, &live).await
            }
            ProcessState::Foreign | ProcessState::Gone if one.broken.is_some() => {
                due.remove(&one.id);
                self.clear_process_record(&one, &live).await
            }
            ProcessState::Foreign | ProcessState::Gone => {
                self.repair_after_crash(one, &live, due, held).await
            }
        }
    }

    /// Registers the process of a running instance.
    async fn adopt_process(&self, one: &InstanceRecord, live: &InstanceProcess) -> Result<()> {
        if live.pid == one.pid {
            return Ok(());
        }
        tracing::info!(instance = %one.name, pid = live.pid.map(|pid| pid.number), "adopting a running instance");
        // A running process means that the instance should run, so an end without a stop is a crash.
        if one.desired_state == DesiredState::Stopped {
            let (id, entry) =
                (one.id.clone(), self.audit_entry(&ControlCaller::supervisor(), "instance.adopt", &one.id));
            let entry = AuditEntry { detail: one.name.to_string(), ..entry };
            let wanted = self.db.write(move |tx| {
                registry::set_desired_state(tx, &id, DesiredState::Running)?;
                audit::append_optional(tx, Some(&entry))
            });
            wanted.await?;
        }
        self.store_pid(one, live.pid).await
    }

    /// Returns how long the instance has not answered, if that exceeds the limit and its policy allows a restart.
    fn hung_for(&self, one: &InstanceRecord) -> Option<Duration> {
        let limit = self.hung_after.filter(|_| one.restart != RestartPolicy::Never)?;
        self.liveness.unresponsive_for(&one.id).filter(|silent| *silent >= limit)
    }

    /// Finishes a restart that another server began.
    async fn finish_restart(&self, one: &InstanceRecord) {
        tracing::info!(instance = %one.name, "finishing a restart that another server began");
        if let Err(error) =
            self.restart_instance(&ControlCaller::supervisor(), one.id.as_str(), DRAIN_TIMEOUT).await
        {
            tracing::warn!(instance = %one.name, %error, "could not finish the restart");
        }
        self.wake_supervisor.notify_one();
    }

    /// Removes what an earlier process of a stopped instance left behind.
    async fn clear_process_record(&self, one: &InstanceRecord, live: &InstanceProcess) -> Result<()> {
        self.children.take_exit_status(&one.id, None);
        if one.pid.is_some() {
            self.store_pid(one, None).await?;
        }
        // The file goes last. An instance that the registry knows and that left no pid file counts as ended cleanly
        // and is not restarted. A server that dies in between counts a crash twice and never forgets one.
        if live.has_pid_file {
            let _ = std::fs::remove_file(self.instance_paths(one).pid_file());
        }
        Ok(())
    }

    /// Handles an instance that should run and does not.
    async fn repair_after_crash(
        &self,
        one: InstanceRecord,
        live: &InstanceProcess,
        due: &mut DueStarts,
        held: HeldLock,
    ) -> Result<()> {
        if one.pid.is_some() || live.has_pid_file {
            let next = self.record_end(&one, live).await?;
            self.clear_process_record(&one, live).await?;
            self.apply_next(&one, next, due).await?;
        } else if !due.contains_key(&one.id) {
            // The server that would have started it is gone.
            let id = one.id.clone();
            let crashes = self.db.read(move |tx: &mut Tx<'_>| registry::list_crashes(tx, &id)).await?;
            let next = decide_restart(one.restart, false, &crashes, self.now());
            self.apply_next(&one, next, due).await?;
        }
        if due.get(&one.id).is_some_and(|at| *at <= self.now()) {
            due.remove(&one.id);
            let control = self.clone();
            tokio::spawn(async move { control.relaunch(one, held).await });
        }
        Ok(())
    }

    /// Records once how the process ended, and returns what follows.
    async fn record_end(&self, one: &InstanceRecord, live: &InstanceProcess) -> Result<RestartDecision> {
        let number = live.pid.or(one.pid).map(|pid| pid.number);
        let status = self.children.take_exit_status(&one.id, number);
        // A daemon that ends cleanly removes its pid file. Nothing more is known about a process that is not a child.
        let in_good_order = status.map_or(!live.has_pid_file, |status| status.success());
        let why = status
            .map_or_else(|| "the process was gone".to_owned(), |status| format!("it ended with {status}"));
        if in_good_order {
            return Ok(decide_restart(one.restart, true, &[], self.now()));
        }
        tracing::warn!(instance = %one.name, why, "instance crashed");
        self.record_crash(one, why).await
    }

    async fn record_crash(&self, one: &InstanceRecord, why: String) -> Result<RestartDecision> {
        let (id, now) = (one.id.clone(), self.now());
        let entry = AuditEntry {
            detail: format!("{}: {why}", one.name),
            ..self.audit_entry(&ControlCaller::supervisor(), "instance.crash", &one.id)
        };
        let crashes = self.db.write(move |tx| {
            audit::append_optional(tx, Some(&entry))?;
            registry::record_crash(tx, &id, &why, now, now.minus(BREAKER_WINDOW_MS))
        });
        Ok(decide_restart(one.restart, false, &crashes.await?, now))
    }

    async fn apply_next(
        &self,
        one: &InstanceRecord,
        next: RestartDecision,
        due: &mut DueStarts,
    ) -> Result<()> {
        let id = one.id.clone();
        match next {
            RestartDecision::StartAt(at) => drop(due.insert(id, at)),
            RestartDecision::StayCrashed => {}
            RestartDecision::StayStopped => self.db.write(move |tx| registry::mark_stopped(tx, &id)).await?,
            RestartDecision::OpenBreaker => {
                tracing::error!(instance = %one.name, "instance keeps crashing; it is not restarted any more");
                let why =
                    format!("it crashed {BREAKER_CRASHES} times in {} minutes", BREAKER_WINDOW_MS / 60_000);
                let entry = self.audit_entry(&ControlCaller::supervisor(), "instance.break", &one.id);
                let opened = self.db.write(move |tx| {
                    registry::open_breaker(tx, &id, &why)?;
                    audit::append_optional(tx, Some(&entry))
                });
                opened.await?;
            }
        }
        Ok(())
    }

    /// Restarts an instance. A failed start counts as a crash, because the stored pid tells the next check so.
    async fn relaunch(&self, one: InstanceRecord, held: HeldLock) {
        tracing::info!(instance = %one.name, "restarting instance");
        if let Err(error) = self.launch(&one).await {
            tracing::warn!(instance = %one.name, %error, "could not restart instance");
            match self.record_crash(&one, error.to_string()).await {
                Ok(RestartDecision::OpenBreaker) => {
                    let _ = self.apply_next(&one, RestartDecision::OpenBreaker, &mut DueStarts::new()).await;
                }
                Ok(_) => {}
                Err(error) => tracing::error!(%error, "could not record a crash"),
            }
        }
        drop(held);
        self.wake_supervisor.notify_one();
    }
}

/// Whether the instance is in its desired state and the registry agrees.
fn is_settled(one: &InstanceRecord, live: &InstanceProcess) -> bool {
    match live.process {
        _ if one.restarting => false,
        ProcessState::Ours => live.pid == one.pid,
        ProcessState::Gone => {
            one.desired_state == DesiredState::Stopped && one.pid.is_none() && !live.has_pid_file
        }
        ProcessState::Foreign | ProcessState::Hidden => false,
    }
}
