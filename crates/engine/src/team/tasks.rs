//! Task operations of the lead and members. The ledger decides; sessions are notified by its events.

use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::run::Artifact;
use polyclaw_domain::task::{
    self, TaskMember, TaskNo, TaskRefusal, TaskVerification, TeamTask, TeamTaskState,
};
use polyclaw_domain::team::{LEAD_NAME, MemberState, OPERATOR_NAME};
use polyclaw_store::tasks::{self, TaskChange, TaskClaimRequest, TaskEnding, TaskListFilter};
use polyclaw_store::{Tx, teams};
use serde_json::{Value, json};

use super::actor::{TeamActor, TeamCaller};
use crate::core::Engine;
use crate::error::{Error, Result};

#[derive(Clone, Debug, Default)]
pub struct NewTeamTask {
    pub subject: String,
    pub description: String,
    pub active_form: Option<String>,
    pub needs: Vec<TaskNo>,
    pub metadata: Option<Value>,
    pub assignee: Option<String>,
    pub capability: Option<String>,
    pub verify: Option<TaskVerification>,
}

/// Which tasks to list.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    pub state: Option<TeamTaskState>,
    pub owner: Option<String>,
    pub with_ended: bool,
    /// Every entry must be in the task's metadata with the same value.
    pub metadata: Option<Value>,
    /// Only tasks that the caller could claim now.
    pub available: bool,
    /// Paging cursor: tasks after this one, which has ended or not.
    pub after: Option<(bool, TaskNo)>,
    /// Maximum number of tasks; `MAX_SHOWN_TASKS` by default.
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct TeamTaskUpdate {
    pub state: Option<TeamTaskState>,
    pub change: TaskChange,
}

#[derive(Clone, Debug)]
pub struct TaskOutcome {
    pub state: TeamTaskState,
    pub summary: Option<String>,
    pub artifacts: Vec<Artifact>,
}

/// Default limit of a listing.
const MAX_SHOWN_TASKS: usize = 1_000;
const MAX_METADATA_BYTES: usize = 10_000;

impl Engine {
    pub(super) fn task_lease_ms(&self) -> i64 {
        i64::from(self.settings().teams.lease_seconds) * 1000
    }

    pub async fn create_task(&self, actor: &TeamActor, team: &str, new: NewTeamTask) -> Result<TaskNo> {
        let caller = self.find_team_caller(actor, team).await?;
        caller.require_active()?;
        check_new_task(&new)?;
        self.check_assignee(&caller, new.assignee.as_deref()).await?;
        if let Some(verify) = &new.verify {
            self.check_verify_allowed(actor, &caller, verify).await?;
        }
        let mut task = build_task(&caller, new, self.now());
        for text in [&mut task.subject, &mut task.description].into_iter().chain(&mut task.active_form) {
            self.redactor().redact_in_place(text);
        }
        if let Some(metadata) = &mut task.metadata {
            self.redactor().redact_json(metadata);
        }
        let max_open = usize::try_from(self.settings().teams.max_open_tasks).unwrap_or(usize::MAX);
        let new = tasks::TaskInsert { task, key: Some(actor.call_id().to_owned()), max_open };
        let made = self.open_ledger(&caller.team)?.write(move |tx| tasks::create(tx, &new)).await??;
        self.try_relay_task_events(&caller).await?;
        Ok(made)
    }

    async fn check_assignee(&self, caller: &TeamCaller, name: Option<&str>) -> Result<()> {
        let Some(name) = name.map(str::to_owned) else { return Ok(()) };
        if name == LEAD_NAME {
            return Ok(());
        }
        let (id, wanted) = (caller.team.id.clone(), name.clone());
        let found = self.db().read(move |tx| teams::get_member(tx, &id, &wanted)).await?;
        match found.filter(|member| member.state != MemberState::Closed) {
            Some(_) => Ok(()),
            None => Err(polyclaw_domain::team::TeamRefusal::NotAMember(name).into()),
        }
    }

    pub async fn list_tasks(
        &self,
        actor: &TeamActor,
        team: &str,
        wanted: TaskFilter,
    ) -> Result<Vec<TeamTask>> {
        let caller = self.observer(actor, team).await?;
        let owner = match &wanted.owner {
            Some(owner) => Some(self.resolve_owner_name(&caller, owner).await?),
            None => None,
        };
        let filter = TaskListFilter {
            state: wanted.state.or(wanted.available.then_some(TeamTaskState::Pending)),
            owner,
            with_ended: wanted.with_ended,
            after: wanted.after,
            limit: wanted.limit.unwrap_or(MAX_SHOWN_TASKS),
        };
        let id = caller.team.id.clone();
        let Some(ledger) = self.open_ledger_for_reading(&caller.team).await? else { return Ok(Vec::new()) };
        let mut found = ledger.read(move |tx| tasks::list(tx, &id, &filter)).await?;
        if let Some(wanted) = &wanted.metadata {
            found.retain(|task| {
                task.metadata.as_ref().is_some_and(|metadata| metadata_contains(metadata, wanted))
            });
        }
        if wanted.available {
            found.retain(|task| task::claim_refusal(task, &caller.worker).is_none());
        }
        Ok(found)
    }

    /// Resolves a name or session key to a name.
    async fn resolve_owner_name(&self, caller: &TeamCaller, owner: &str) -> Result<String> {
        if [LEAD_NAME, OPERATOR_NAME].contains(&owner) {
            return Ok(owner.to_owned());
        }
        if owner == caller.team.lead.as_str() {
            return Ok(LEAD_NAME.to_owned());
        }
        let id = caller.team.id.clone();
        let members = self.db().read(move |tx| teams::list_members(tx, &id)).await?;
        let found = members.into_iter().find(|one| one.name == owner || one.session.as_str() == owner);
        let unknown = || polyclaw_domain::team::TeamRefusal::NotAMember(quote_safely(owner));
        Ok(found.ok_or_else(unknown)?.name)
    }

    /// Makes an ended task pending again.
    pub async fn reopen_task(&self, actor: &TeamActor, team: &str, no: TaskNo) -> Result<TeamTask> {
        let caller = self.find_team_caller(actor, team).await?;
        caller.require_active()?;
        caller.require_lead()?;
        let (id, worker, now) = (caller.team.id.clone(), caller.worker.clone(), self.now());
        let write = move |tx: &mut Tx<'_>| tasks::reopen(tx, &id, no, (&worker, now));
        let task = self.open_ledger(&caller.team)?.write(write).await??;
        self.try_relay_task_events(&caller).await?;
        Ok(task)
    }

    /// Deletes a task that nobody holds.
    pub async fn delete_task(&self, actor: &TeamActor, team: &str, no: TaskNo) -> Result<TeamTask> {
        let caller = self.find_team_caller(actor, team).await?;
        caller.require_lead()?;
        let (id, worker, now) = (caller.team.id.clone(), caller.worker.clone(), self.now());
        let write = move |tx: &mut Tx<'_>| tasks::delete(tx, &id, no, (&worker, now));
        let task = self.open_ledger(&caller.team)?.write(write).await??;
        self.try_relay_task_events(&caller).await?;
        let data = json!({ "team": caller.team.name, "change": "task_deleted", "task_id": no,
            "subject": task.subject, "by": caller.worker.name });
        self.record_team_event(&caller.team, data).await;
        Ok(task)
    }

    /// Returns the tasks that the caller holds.
    pub async fn list_held_tasks(&self, actor: &TeamActor, team: &str) -> Result<Vec<TaskNo>> {
        let owner = Some(self.reader(actor, team).await?.worker.name);
        let held = self.list_tasks(actor, team, TaskFilter { owner, ..TaskFilter::default() }).await?;
        Ok(held.iter().map(|task| task.no).collect())
    }

    /// Claims a task, or the oldest free one. The error gives the reason.
    pub async fn claim_task(
        &self,
        actor: &TeamActor,
        team: &str,
        wanted: Option<TaskNo>,
    ) -> Result<TeamTask> {
        let caller = self.find_team_caller(actor, team).await?;
        caller.require_active()?;
        let (team, worker, key) = (caller.team.id.clone(), caller.worker.clone(), actor.call_id().to_owned());
        let claim = TaskClaimRequest { team, key, worker, now: self.now(), lease_ms: self.task_lease_ms() };
        let ledger = self.open_ledger(&caller.team)?;
        let claimed = match wanted {
            None => ledger.claim_oldest_task(claim).await??,
            Some(no) => ledger.write(move |tx| tasks::claim_task(tx, no, &claim)).await??,
        };
        self.try_relay_task_events(&caller).await?;
        Ok(claimed)
    }

    pub async fn update_task(
        &self,
        actor: &TeamActor,
        team: &str,
        no: TaskNo,
        mut update: TeamTaskUpdate,
    ) -> Result<TeamTask> {
        let caller = self.find_team_caller(actor, team).await?;
        caller.require_active()?;
        let redactor = self.redactor();
        let reply = update.change.active_form.iter_mut().chain(&mut update.change.note);
        reply.for_each(|text| redactor.redact_in_place(text));
        let TaskChange { active_form, note, needs, drops, assignee } = &update.change;
        if let Some(form) = active_form {
            task::check_text_len("activeForm", form, task::MAX_ACTIVE_FORM_CHARS)?;
        }
        if let Some(note) = note {
            task::check_text_len("note", note, task::MAX_SUMMARY_CHARS)?;
        }
        if !needs.is_empty() || !drops.is_empty() || assignee.is_some() {
            caller.require_lead()?;
        }
        self.check_assignee(&caller, assignee.as_deref().filter(|name| !name.is_empty())).await?;
        let (id, worker) = (caller.team.id.clone(), caller.worker.clone());
        let (now, lease_ms) = (self.now(), self.task_lease_ms());
        let write = move |tx: &mut Tx<'_>| {
            tasks::lock_ledger(tx, &id)?;
            // A caller who may not change a task's state may not update it either.
            let changed = match update.state {
                Some(TeamTaskState::InProgress) => tasks::start_task(tx, &id, no, &worker, (now, lease_ms))?,
                Some(TeamTaskState::Pending) => tasks::release_task(tx, &id, no, &worker, now)?,
                _ => tasks::get(tx, &id, no)?
                    .ok_or(TaskRefusal::Unknown(no))
                    .and_then(|task| check_may_add(task, &worker)),
            };
            match changed {
                Ok(_) if update.change != TaskChange::default() => {
                    tasks::update_task(tx, &id, no, &update.change, (&worker, now))
                }
                changed => Ok(changed),
            }
        };
        // If the update is rejected after the state changed, both are rolled back.
        let changed = self.open_ledger(&caller.team)?.write_unless_refused(write).await??;
        self.try_relay_task_events(&caller).await?;
        Ok(changed)
    }

    /// Ends a task after its verification has passed. Returns the tasks that this frees.
    pub async fn finish_task(
        &self,
        actor: &TeamActor,
        team: &str,
        no: TaskNo,
        finish: TaskOutcome,
    ) -> Result<Vec<TaskNo>> {
        let caller = self.find_team_caller(actor, team).await?;
        let finish = self.check_outcome(finish)?;
        let id = caller.team.id.clone();
        let ledger = self.open_ledger(&caller.team)?;
        let found = ledger.read(move |tx| tasks::get(tx, &id, no)).await?;
        let task = found.ok_or(TaskRefusal::Unknown(no))?;
        let id = caller.team.id.clone();
        // Repeated after a crash: the task has already ended as requested.
        if task.state.has_ended()
            && ledger.read(move |tx| tasks::find_ending_call(tx, &id, no)).await?.as_deref()
                == Some(actor.call_id())
        {
            self.try_relay_task_events(&caller).await?;
            return Ok(Vec::new());
        }
        let fence = task.lease.as_ref().map_or(0, |lease| lease.fencing_token);
        if finish.state == TeamTaskState::Completed && task::check_may_end(&task, &caller.worker).is_ok() {
            self.verify_task(actor, &caller, &task).await?;
            self.check_completing_hook(&caller, (&task, finish.summary.as_deref())).await?;
        }
        let call = actor.call_id().to_owned();
        let ending = TaskEnding {
            state: finish.state,
            summary: finish.summary,
            artifacts: finish.artifacts,
            fencing_token: fence,
            call,
        };
        let (id, worker, now) = (caller.team.id.clone(), caller.worker.clone(), self.now());
        let write = move |tx: &mut Tx<'_>| tasks::end_task(tx, &id, no, &worker, (&ending, now));
        let ended = ledger.write(write).await?;
        self.try_relay_task_events(&caller).await?;
        Ok(ended?)
    }

    fn check_outcome(&self, mut finish: TaskOutcome) -> Result<TaskOutcome> {
        if let Some(summary) = &mut finish.summary {
            task::check_text_len("summary", summary, task::MAX_SUMMARY_CHARS)?;
            self.redactor().redact_in_place(summary);
        }
        for artifact in &mut finish.artifacts {
            task::check_text_len("artifact path", &artifact.path, task::MAX_SUMMARY_CHARS)?;
            self.redactor().redact_in_place(&mut artifact.path);
        }
        Ok(finish)
    }

    /// Relays the events of a ledger write. After a crash the reconciler relays them.
    pub(super) async fn try_relay_task_events(&self, caller: &TeamCaller) -> Result<()> {
        self.hit_kill_point(KillPoint::LedgerWritten).await;
        let result = self.relay_task_events(&caller.team).await;
        // The reconciler retries a failed relay, and schedules its next pass when a lease was taken or ended.
        self.mark_team(&caller.team.id);
        result
    }
}

/// Checks that the caller may update a task: a held task only by its holder or the lead.
fn check_may_add(task: TeamTask, worker: &TaskMember) -> std::result::Result<TeamTask, TaskRefusal> {
    let other = task.lease.as_ref().filter(|lease| !worker.is_lead && lease.session != worker.session);
    match other {
        Some(lease) => Err(TaskRefusal::Taken(task.no, lease.owner.clone())),
        None => Ok(task),
    }
}

fn check_new_task(new: &NewTeamTask) -> Result<()> {
    if new.subject.trim().is_empty() {
        return Err(TaskRefusal::Empty("subject").into());
    }
    task::check_text_len("subject", &new.subject, task::MAX_SUBJECT_CHARS)?;
    task::check_text_len("description", &new.description, task::MAX_DESCRIPTION_CHARS)?;
    task::check_text_len(
        "activeForm",
        new.active_form.as_deref().unwrap_or_default(),
        task::MAX_ACTIVE_FORM_CHARS,
    )?;
    if new.metadata.as_ref().is_some_and(|metadata| !metadata.is_object()) {
        return Err(TaskRefusal::NotAnObject("metadata").into());
    }
    let metadata = new.metadata.as_ref().map(Value::to_string).unwrap_or_default();
    task::check_text_len("metadata", &metadata, MAX_METADATA_BYTES).map_err(Error::from)
}

fn build_task(caller: &TeamCaller, new: NewTeamTask, now: polyclaw_domain::time::Millis) -> TeamTask {
    TeamTask {
        description: new.description,
        active_form: new.active_form,
        metadata: new.metadata,
        assignee: new.assignee,
        capability: new.capability,
        verify: new.verify,
        needs: new.needs,
        ..TeamTask::new_pending(caller.team.id.clone(), new.subject, &caller.worker.name, now)
    }
}

fn metadata_contains(metadata: &Value, wanted: &Value) -> bool {
    let Some(wanted) = wanted.as_object() else { return metadata == wanted };
    wanted.iter().all(|(key, value)| metadata.get(key) == Some(value))
}
