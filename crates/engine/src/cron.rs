//! The cron loop: starts cron jobs when they are due. Each due time is run or skipped exactly once despite crashes: the
//! message's idempotency key is derived from it, and the last handled time of each schedule is stored.

mod change;
mod list;

use std::time::Duration;

use polyclaw_domain::briefing::BriefingReader;
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::config::CatchUp;
use polyclaw_domain::cron_job::{CronJob, CronJobKind, DueRun, is_clock_set_back};
use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::time::Millis;
use polyclaw_store::{cron_jobs, jobs};
use serde_json::json;

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::ingress::{AcceptedMessage, InternalMessage, MessageProvenance};

pub use list::CronJobStatus;

/// Maximum time between checks, because the system clock may have been changed.
const MAX_SLEEP_MS: i64 = 60_000;

const HEARTBEAT_PROMPT: &str = "This is your periodic check-in. Do what HEARTBEAT.md asks for, if anything is due. \
    If there is nothing that somebody should hear, answer NO_REPLY and nothing else.";

pub(crate) async fn run_cron_loop(engine: &Engine) -> Result<()> {
    while !engine.is_draining() {
        let next = run_due_jobs(engine).await?;
        let wait = next.map_or(MAX_SLEEP_MS, |at| at.since(engine.now())).clamp(1, MAX_SLEEP_MS);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(wait.unsigned_abs())) => {}
            () = engine.cron_wake.notified() => {}
        }
    }
    Ok(())
}

/// Starts due jobs and returns the next due time.
async fn run_due_jobs(engine: &Engine) -> Result<Option<Millis>> {
    let mut next: Option<Millis> = None;
    for CronJobStatus { job, .. } in engine.load_cron_jobs().await?.iter().filter(|one| one.job.enabled) {
        let now = engine.now();
        let last = handled_until(engine, job, now).await?;
        if let Some(due) = job.newest_due(last, now) {
            handle_due_job(engine, job, due).await?;
            let (id, at) = (job.id.clone(), due.at);
            engine.db().write(move |tx| cron_jobs::advance_last_due(tx, &id, at, now)).await?;
        }
        next = next.into_iter().chain(job.schedule.next(now)).min();
    }
    Ok(next)
}

/// The time up to which a job has been handled. If it is in the future, the clock was wrong and has been set back;
/// handling restarts from now instead of waiting. A due time that occurs twice has the same run key, so it does not run
/// twice.
async fn handled_until(engine: &Engine, job: &CronJob, now: Millis) -> Result<Millis> {
    let (id, rule) = (job.id.clone(), job.schedule_text());
    let read = move |tx: &mut polyclaw_store::Tx<'_>| {
        let last = cron_jobs::get_or_init_last_due(tx, &id, &rule, now)?;
        let is_wrong = is_clock_set_back(last, now);
        if is_wrong {
            cron_jobs::rewind_last_due(tx, &id, now)?;
        }
        Ok((last, is_wrong))
    };
    let (last, is_wrong) = engine.db().write(read).await?;
    if !is_wrong {
        return Ok(last);
    }
    tracing::warn!(schedule = job.id, %last, "the clock was set back; the schedule continues from now");
    Ok(now)
}

async fn handle_due_job(engine: &Engine, job: &CronJob, due: DueRun) -> Result<()> {
    if !due.runs {
        record_cron_event(engine, job, EventKind::ScheduleMissed, due, None).await;
        return Ok(());
    }
    let remark = due.late_remark().map(|remark| format!("\n\n{remark}")).unwrap_or_default();
    let result = start_cron_turn(engine, job, job.run_key(due.at), &remark).await;
    match result {
        Ok(_) => {
            if due.missed > 0 && job.catch_up == CatchUp::Skip {
                record_cron_event(engine, job, EventKind::ScheduleMissed, due, None).await;
            }
            Ok(())
        }
        // Retried when the database is available again, or by the next start.
        Err(error @ (Error::Store(_) | Error::Draining)) => Err(error),
        Err(error) => {
            record_cron_event(engine, job, EventKind::ScheduleFailed, due, Some(error.code())).await;
            Ok(())
        }
    }
}

async fn record_cron_event(engine: &Engine, job: &CronJob, kind: EventKind, due: DueRun, code: Option<&str>) {
    let data = json!({
        "schedule": job.id, "due_at": due.at.to_string(), "late_ms": due.late_ms,
        "missed": due.missed + usize::from(!due.runs), "at_least": due.is_count_capped(), "code": code,
    });
    tracing::warn!(schedule = job.id, due.late_ms, due.missed, code, "{}", kind.as_str());
    let (session, agent) = (Some(job.session.clone()), Some(job.agent.clone()));
    engine.record_event(NewEvent { kind, session, turn: None, agent, trace: None, data }).await;
}

/// Starts the turn of a job. `None`: there is nothing to do.
async fn start_cron_turn(
    engine: &Engine,
    job: &CronJob,
    key: String,
    remark: &str,
) -> Result<Option<AcceptedMessage>> {
    let text = match &job.kind {
        CronJobKind::Message(text) => format!("{text}{remark}"),
        CronJobKind::Heartbeat if can_run_heartbeat(engine, job).await? => HEARTBEAT_PROMPT.to_owned(),
        CronJobKind::Heartbeat => return Ok(None),
    };
    sync_session_agent(engine, job).await?;
    let mut meta = json!({ "schedule": job.id });
    if !job.requested_by.is_empty() {
        meta["requested_by"] = json!(job.requested_by);
    }
    let how = InternalMessage {
        deliver: job.address.is_some(),
        channel: job.address.clone().unwrap_or_else(ChatAddress::internal),
        idempotency_key: key,
        provenance: MessageProvenance::Clock(job.agent.clone()),
        meta: Some(meta),
    };
    engine.inject_message(&job.session, &text, how).await.map(Some)
}

/// Switches the conversation of a job to the agent that runs it now.
async fn sync_session_agent(engine: &Engine, job: &CronJob) -> Result<()> {
    match engine.load_session(&job.session).await {
        Ok(session) if session.active_agent != job.agent && matches!(job.kind, CronJobKind::Message(_)) => {
            engine.set_session_agent(&job.session, &job.agent).await
        }
        Ok(_) | Err(Error::UnknownSession(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a heartbeat should run: the agent's heartbeat file has a task and its session is idle.
async fn can_run_heartbeat(engine: &Engine, job: &CronJob) -> Result<bool> {
    let spec = engine.load_agent(&job.agent).await?.spec;
    let workspace = engine.agent_workspace(&spec);
    if !engine.ports.briefings.load_briefing(&BriefingReader::for_agent(&spec, &workspace)).has_heartbeat {
        return Ok(false);
    }
    let session = job.session.clone();
    let load = engine.db().read(move |tx| jobs::session_load(tx, &session)).await?;
    Ok(load.running.is_none() && load.waiting == 0)
}

impl Engine {
    /// Runs a job now, in addition to its schedule. `None`: there is nothing to do.
    pub async fn run_cron_job(&self, id: &str) -> Result<Option<AcceptedMessage>> {
        self.run_cron_job_for(id, Vec::new()).await
    }

    /// Runs a job on behalf of these senders. Sender rules apply to them as well as to the job's creator.
    pub(crate) async fn run_cron_job_for(
        &self,
        id: &str,
        asked_by: Vec<String>,
    ) -> Result<Option<AcceptedMessage>> {
        let mut job = self.find_cron_job(id).await?.job;
        job.requested_by.extend(asked_by);
        start_cron_turn(self, &job, format!("schedule:{id}:by-hand:{}", self.next_id()), "").await
    }
}
