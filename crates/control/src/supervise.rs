//! Looks at every instance now and then, and at once when a child ends: what ended is seen, started again where the
//! policy says so, and the registry follows the process table.

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
/// A start that is due is not put off by more than this.
const PENDING_START_INTERVAL: Duration = Duration::from_millis(250);

/// Starts that are due, by instance.
type DueStarts = HashMap<InstanceId, Millis>;

impl Control {
    /// Runs until it is dropped. What it is doing then is finished by the next server.
    pub async fn run_supervisor(&self) {
        tokio::join!(self.run_supervision(), self.run_liveness_probes());
    }

    async fn run_supervision(&self) {
        let mut due = DueStarts::new();
        loop {
            if let Err(error) = self.supervise_all(&mut due).await {
                tracing::error!(%error, "the supervisor could not look at the instances");
            }
            if let Err(error) = self.update_audit_head_file().await {
                tracing::error!(%error, "how far the audit has come could not be noted");
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
                tracing::error!(instance = %id, %error, "an instance could not be looked after");
            }
            // It may have been deleted meanwhile.
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
        // Somebody acts on it: what they do is theirs to finish.
        let Some(held) = self.instance_paths(&one).try_lock()? else { return Ok(()) };
        let one = self.find_instance(one.id.as_str()).await?;
        let live = InstanceProcess::for_instance(&one, &self.instance_paths(&one));
        if one.restarting {
            // The server that was at it is gone.
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

    /// It runs: the registry knows its process from now on.
    async fn adopt_process(&self, one: &InstanceRecord, live: &InstanceProcess) -> Result<()> {
        if live.pid == one.pid {
            return Ok(());
        }
        tracing::info!(instance = %one.name, pid = live.pid.map(|pid| pid.number), "a running instance is adopted");
        // Somebody started it, so it should run: should it crash, that is one.
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

    /// For how long it has not answered, where that is too long and it may be ended for it.
    fn hung_for(&self, one: &InstanceRecord) -> Option<Duration> {
        let limit = self.hung_after.filter(|_| one.restart != RestartPolicy::Never)?;
        self.liveness.unresponsive_for(&one.id).filter(|silent| *silent >= limit)
    }

    /// A restart that another server began.
    async fn finish_restart(&self, one: &InstanceRecord) {
        tracing::info!(instance = %one.name, "a restart that was asked for is finished");
        if let Err(error) =
            self.restart_instance(&ControlCaller::supervisor(), one.id.as_str(), DRAIN_TIMEOUT).await
        {
            tracing::warn!(instance = %one.name, %error, "it was not restarted");
        }
        self.wake_supervisor.notify_one();
    }

    /// It does not run, and should not: what an earlier life left is taken away.
    async fn clear_process_record(&self, one: &InstanceRecord, live: &InstanceProcess) -> Result<()> {
        self.children.take_exit_status(&one.id, None);
        if one.pid.is_some() {
            self.store_pid(one, None).await?;
        }
        // Last: one that the registry knows and that left no file ended in good order, and is not started again. A server that
        // dies in between leaves a crash that is counted twice, not one that is forgotten.
        if live.has_pid_file {
            let _ = std::fs::remove_file(self.instance_paths(one).pid_file());
        }
        Ok(())
    }

    /// It should run and does not.
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

    /// Remembers how it ended, once, and what follows from it.
    async fn record_end(&self, one: &InstanceRecord, live: &InstanceProcess) -> Result<RestartDecision> {
        let number = live.pid.or(one.pid).map(|pid| pid.number);
        let status = self.children.take_exit_status(&one.id, number);
        // A daemon that ends in good order takes its pid away; of one that is no child nothing else is known.
        let in_good_order = status.map_or(!live.has_pid_file, |status| status.success());
        let why = status.map_or_else(|| "it was gone".to_owned(), |status| format!("it ended with {status}"));
        if in_good_order {
            return Ok(decide_restart(one.restart, true, &[], self.now()));
        }
        tracing::warn!(instance = %one.name, why, "an instance crashed");
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
                tracing::error!(instance = %one.name, "it crashes again and again and is left alone");
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

    /// Starts one again. A start that fails counts as a crash: the pid it had tells the next round so.
    async fn relaunch(&self, one: InstanceRecord, held: HeldLock) {
        tracing::info!(instance = %one.name, "it is started again");
        if let Err(error) = self.launch(&one).await {
            tracing::warn!(instance = %one.name, %error, "it did not start again");
            match self.record_crash(&one, error.to_string()).await {
                Ok(RestartDecision::OpenBreaker) => {
                    let _ = self.apply_next(&one, RestartDecision::OpenBreaker, &mut DueStarts::new()).await;
                }
                Ok(_) => {}
                Err(error) => tracing::error!(%error, "a crash could not be remembered"),
            }
        }
        drop(held);
        self.wake_supervisor.notify_one();
    }
}

/// It is what it should be, and everybody knows.
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
