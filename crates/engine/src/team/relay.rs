//! Relays a ledger's events to sessions: announces to the lead, messages to members who can continue. Each event is
//! relayed in one transaction and recorded in both databases, so none is lost or relayed twice.

use std::collections::HashMap;

use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::frame::TeamTaskChanged;
use polyclaw_domain::id::TeamMessageId;
use polyclaw_domain::job::JobLane;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::run::{ANNOUNCE_KIND, MAX_SUMMARY_CHARS};
use polyclaw_domain::sanitize;
use polyclaw_domain::task::{TaskNo, TeamTask, TeamTaskState, claim_refusal};
use polyclaw_domain::team::{LEAD_NAME, MemberState, RUNTIME_NAME, Team, TeamMember, TeamStatus};
use polyclaw_domain::team_message::{TeamMessage, TeamMessageKind};
use polyclaw_store::tasks::{self, TaskEvent, TaskEventKind};
use polyclaw_store::{Tx, agents, events, teams};
use serde_json::{Value, json};

use super::actor::to_task_member;
use super::messages::{PreparedTeamMessage, store_messages};
use super::offer::{offer_id, offer_text};
use super::team_event;
use super::wake::{TeamNotice, inject_team_notice};
use crate::core::Engine;
use crate::error::Result;
use crate::hub::FrameKind;
use crate::ingress::NewIds;
use crate::settings::EngineSettings;

/// Maximum number of events relayed in one pass.
const RELAY_BATCH_SIZE: usize = 200;

/// An event with its state in the ledger.
#[derive(Clone)]
struct TaskEventContext {
    event: TaskEvent,
    task: TeamTask,
    /// Tasks that can be claimed because of it.
    free: Vec<ClaimableTask>,
    /// Names of members that hold a task.
    busy: Vec<String>,
    /// How many tasks each member has taken so far.
    taken: HashMap<String, i64>,
}

/// A claimable task, and how often it was claimed before.
#[derive(Clone)]
struct ClaimableTask {
    task: TeamTask,
    claims: i64,
}

impl Engine {
    /// Relays all pending events of a ledger, in order.
    pub(crate) async fn relay_task_events(&self, team: &Team) -> Result<()> {
        let ledger = self.open_ledger(team)?;
        loop {
            let id = team.id.clone();
            let due = ledger.read(move |tx| read_unrelayed_events(tx, &id)).await?;
            if due.is_empty() {
                return Ok(());
            }
            for news in due {
                let seq = news.event.seq;
                self.relay_task_event(team, news).await?;
                self.hit_kill_point(KillPoint::LedgerNotified).await;
                ledger.write(move |tx| tasks::mark_relayed(tx, seq)).await?;
            }
        }
    }

    async fn relay_task_event(&self, team: &Team, news: TaskEventContext) -> Result<()> {
        let messages = self.build_task_messages(team, &news);
        let (team_id, settings, now) = (team.id.clone(), self.settings(), self.now());
        let fresh = NewIds::new(self, None);
        let shown = task_changed_event(team, &news).data;
        let write = move |tx: &mut Tx<'_>| {
            // The lead may have changed since.
            let Some(team) = teams::get(tx, &team_id)?.filter(|team| team.status != TeamStatus::Shutdown)
            else {
                return Ok(Vec::new());
            };
            if !teams::mark_event_relayed(tx, &team.id, news.event.seq)? {
                return Ok(Vec::new());
            }
            events::record(tx, &task_changed_event(&team, &news), now)?;
            let mut ready =
                announce_task_end(tx, &team, &news, &fresh, &settings)?.into_iter().collect::<Vec<JobLane>>();
            let readers = pick_recipients(tx, &team, &news, &messages)?;
            ready.extend(store_messages(tx, &team, &readers, &settings, now)?);
            Ok(ready)
        };
        let ready = self.write_with_retry(write).await?;
        ready.into_iter().for_each(|lane| self.lanes.wake(lane));
        self.copy_messages_to_inbox(team).await;
        self.hub.publish(&team.lead, FrameKind::Team { change: shown });
        Ok(())
    }

    /// Builds a message for every free task, addressed later when the idle members are known, and notices to the lead.
    fn build_task_messages(&self, team: &Team, news: &TaskEventContext) -> Vec<PreparedTeamMessage> {
        let mut posts: Vec<PreparedTeamMessage> = Vec::new();
        let seq = news.event.seq;
        for task in &news.free {
            posts.push(self.prepare_message(self.new_team_message(
                team,
                RUNTIME_NAME,
                "",
                TeamMessageKind::Task,
                offer_text(&task.task),
            )));
        }
        if news.event.kind == TaskEventKind::Expired {
            let text = format!(
                "The lease of {} expired: task #{} ({}) is pending again.",
                news.event.actor,
                news.task.no,
                sanitize::to_single_line(&news.task.subject, 200)
            );
            let message = self.new_team_message(team, RUNTIME_NAME, LEAD_NAME, TeamMessageKind::Task, text);
            posts.push(self.prepare_message(TeamMessage {
                id: TeamMessageId::new(format!("{}-{seq}-lead", team.id)),
                ..message
            }));
        }
        posts
    }
}

fn read_unrelayed_events(
    tx: &mut Tx<'_>,
    id: &polyclaw_domain::id::TeamId,
) -> polyclaw_store::Result<Vec<TaskEventContext>> {
    let mut all = Vec::new();
    for event in tasks::list_unrelayed(tx, id, RELAY_BATCH_SIZE)? {
        let Some(task) = tasks::get(tx, id, event.task)? else { continue };
        let mut free = Vec::new();
        for no in freed_task_numbers(&event) {
            let task = tasks::get(tx, id, no)?;
            let task = task.filter(|task| task.state == TeamTaskState::Pending && task.blocked_by.is_empty());
            let claims = tasks::count_claims(tx, id, no)?;
            free.extend(task.map(|task| ClaimableTask { task, claims }));
        }
        let busy = if free.is_empty() { Vec::new() } else { tasks::list_owners(tx, id)? };
        let taken = if free.is_empty() { HashMap::new() } else { tasks::count_claims_by_member(tx, id)? };
        all.push(TaskEventContext { event, task, free, busy, taken });
    }
    Ok(all)
}

/// Returns the tasks that an event may have freed.
fn freed_task_numbers(event: &TaskEvent) -> Vec<TaskNo> {
    match event.kind {
        TaskEventKind::Created
        | TaskEventKind::Released
        | TaskEventKind::Expired
        | TaskEventKind::Reopened => vec![event.task],
        // It may have fewer dependencies now, or another assignee.
        TaskEventKind::Updated
            if event.data["drops"].as_array().is_some_and(|drops| !drops.is_empty())
                || event.data["assignee"].is_string() =>
        {
            vec![event.task]
        }
        TaskEventKind::Completed => {
            serde_json::from_value(event.data["unblocked"].clone()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn task_changed_event(team: &Team, news: &TaskEventContext) -> NewEvent {
    let (change, task) = (&news.event, &news.task);
    let data = TeamTaskChanged {
        team: team.name.clone(),
        task_id: task.no,
        change: change.kind.as_str().to_owned(),
        by: change.actor.clone(),
        state: task.state,
        subject: task.subject.clone(),
    };
    team_event(EventKind::TaskChanged, team, json!(data))
}

/// Announces the end of a task to the lead, like the end of any delegated work.
fn announce_task_end(
    tx: &mut Tx<'_>,
    team: &Team,
    news: &TaskEventContext,
    fresh: &NewIds,
    settings: &EngineSettings,
) -> polyclaw_store::Result<Option<JobLane>> {
    let ended = matches!(news.event.kind, TaskEventKind::Completed | TaskEventKind::Failed);
    if !ended || news.event.actor == LEAD_NAME {
        return Ok(None);
    }
    let member = teams::get_member(tx, &team.id, &news.event.actor)?;
    let agent = member.as_ref().map_or(&team.lead_agent, |member| &member.agent);
    let known = agents::get(tx, agent)?.map(|stored| stored.spec.name);
    let name = known.unwrap_or_else(|| agent.to_string());
    let key = format!("announce:{}-{}", team.id, news.event.seq);
    let line = TeamNotice {
        to: team.lead.clone(),
        from: agent.clone(),
        text: format!(
            "[@agent:{}#{agent}] {} #{} {}",
            news.event.actor,
            news.event.kind.as_str(),
            news.task.no,
            sanitize::to_single_line(&news.task.subject, 120)
        ),
        meta: announce_payload(team, news, member.as_ref(), (agent.as_str(), &name), &key),
        key,
    };
    inject_team_notice(tx, team, line, fresh, settings)
}

fn announce_payload(
    team: &Team,
    news: &TaskEventContext,
    member: Option<&TeamMember>,
    (agent, name): (&str, &str),
    key: &str,
) -> Value {
    let TaskEventContext { event, task, free, .. } = news;
    let mut summary = task.summary.clone().unwrap_or_default();
    if !free.is_empty() {
        let named = |ClaimableTask { task, .. }: &ClaimableTask| format!("#{} {}", task.no, task.subject);
        let numbers: Vec<String> = free.iter().map(named).collect();
        summary.push_str(&format!("\nUnblocked: {}", numbers.join(", ")));
    }
    if event.kind == TaskEventKind::Failed {
        summary.push_str(
            "\nTasks that depend on it stay blocked until you decide. TaskUpdate with dropDependsOn \
                          removes the dependency.",
        );
    }
    json!({
        "internal": true,
        "kind": ANNOUNCE_KIND,
        "trace_id": team.trace,
        "hop": 1,
        "idempotency_key": key,
        "source_agent_id": agent,
        "source_agent_name": format!("{} ({name})", event.actor),
        "source_session_key": member.map(|member| &member.session),
        "source_run_id": format!("{}#{}", team.name, task.no),
        "task": { "label": format!("#{} {}", task.no, task.subject),
            "prompt": sanitize::limit_block(&task.description, MAX_SUMMARY_CHARS - 1), "tags": [] },
        "result": {
            "status": if event.kind == TaskEventKind::Completed { "ok" } else { "error" },
            "summary": sanitize::limit_block(&summary, MAX_SUMMARY_CHARS - 1),
            "artifacts": task.artifacts,
            "error_code": Value::Null,
        },
        "stats": { "duration_ms": task.claimed_at.map(|at| event.created_at.since(at)), "tokens": Value::Null,
            "cost_usd": Value::Null },
        "reply_to": team.reply_to,
        "requested_by": team.requested_by(),
    })
}

/// Picks the recipient for each free task: the first idle member that could take it.
fn pick_recipients(
    tx: &mut Tx<'_>,
    team: &Team,
    news: &TaskEventContext,
    posts: &[PreparedTeamMessage],
) -> polyclaw_store::Result<Vec<PreparedTeamMessage>> {
    let mut picked: Vec<PreparedTeamMessage> = Vec::new();
    let mut idle: Vec<TeamMember> = Vec::new();
    if !news.free.is_empty() && team.status == TeamStatus::Active {
        let with_turns = teams::list_members_with_turns(tx, &team.id)?;
        idle = teams::list_members(tx, &team.id)?;
        idle.retain(|member| {
            member.state == MemberState::Active
                && member.plan.is_none()
                && !with_turns.contains(&member.name)
                && !news.busy.contains(&member.name)
        });
    }
    for (at, post) in posts.iter().enumerate() {
        let Some(ClaimableTask { task, claims }) = news.free.get(at) else {
            picked.push(post.clone());
            continue;
        };
        let fits = |member: &TeamMember| claim_refusal(task, &to_task_member(member)).is_none();
        // Do not offer it to the member that just gave it back.
        let gave_back = |member: &TeamMember| {
            matches!(news.event.kind, TaskEventKind::Released | TaskEventKind::Expired)
                && member.name == news.event.actor
        };
        let first = idle.iter().position(|member| fits(member) && !gave_back(member));
        if let Some(first) = first {
            let to = idle.remove(first).name;
            let taken = news.taken.get(&to).copied().unwrap_or_default();
            let mut id = offer_id(team, task, (*claims, taken), &to);
            if matches!(news.event.kind, TaskEventKind::Updated | TaskEventKind::Reopened) {
                // It may have been offered before and changed since.
                id = TeamMessageId::new(format!("{id}-{}", news.event.seq));
            }
            let message = TeamMessage { id, to, ..post.message.clone() };
            picked.push(PreparedTeamMessage { message, ..post.clone() });
        }
    }
    Ok(picked)
}
