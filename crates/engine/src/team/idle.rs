//! Notifies the lead of idle members. A notice starts a turn of the lead only if nobody in the team is working any
//! more.

use polyclaw_domain::id::TeamMessageId;
use polyclaw_domain::job::{JobLane, JobState};
use polyclaw_domain::task::TeamTaskState;
use polyclaw_domain::team::failures::FailureStreak;
use polyclaw_domain::team::idle::{IdleReason, MemberTurnFacts, idle_reason, should_wake_lead};
use polyclaw_domain::team::{LEAD_NAME, PlanApproval, RUNTIME_NAME, Team, TeamStatus};
use polyclaw_domain::team_message::{TeamMessage, TeamMessageKind};
use polyclaw_store::teams::MemberTurnEnd;
use polyclaw_store::{Tx, jobs, runs, tasks, team_messages, teams};

use super::messages::{PreparedTeamMessage, lock_recipients, store_messages};
use super::turn::mail_needs_turn;
use super::wake::wake_session;
use crate::core::Engine;
use crate::error::Result;
use crate::ingress::NewIds;
use crate::settings::EngineSettings;

/// Maximum number of summaries of messages between members shown to the lead.
const MAX_SHOWN_PEER_MESSAGES: usize = 10;

/// A member's state after its turn has ended.
struct MemberSnapshot {
    at_work: Vec<String>,
    has_children: bool,
    /// The turn was stopped, which is no reason to start one of the lead.
    was_stopped: bool,
    /// The member's turns are failing.
    failure_streak: Option<FailureStreak>,
    /// It may only read until its plan is approved.
    plan: Option<PlanApproval>,
    peers: Vec<(String, String)>,
}

impl Engine {
    /// Notifies the lead of every member whose turn has ended since the last pass.
    pub(super) async fn announce_idle_members(&self, team: &Team) -> Result<()> {
        let id = team.id.clone();
        for rested in self.db().read(move |tx| teams::list_turn_ends(tx, &id)).await? {
            self.announce_idle_member(team, rested).await?;
        }
        Ok(())
    }

    async fn announce_idle_member(&self, team: &Team, rested: MemberTurnEnd) -> Result<()> {
        let (id, wanted) = (team.id.clone(), rested.clone());
        let look = self.db().read(move |tx| load_member_snapshot(tx, &id, &wanted)).await?;
        let at_work = look.at_work.contains(&rested.name);
        let facts = self.idle_facts(team, &rested, &look).await?;
        let is_shutting_down = team.status == TeamStatus::ShuttingDown;
        let others_at_work = look.at_work.iter().any(|name| *name != rested.name);
        // The lead was notified of the first failure; later ones are in the team state it is shown.
        let is_old = look.failure_streak.as_ref().is_some_and(|streak| streak.failures > 1);
        let message = self.idle_message(team, &rested, facts, &look);
        let may_refuse = !at_work && !look.was_stopped && !rested.ended_badly && !is_shutting_down;
        if may_refuse
            && let Some(why) = self.check_idle_hook(team, (&rested.name, idle_reason(facts).as_str())).await
        {
            return self.send_member_back(team, rested, why).await;
        }
        let is_quiet = look.was_stopped || !should_wake_lead(facts, others_at_work, is_shutting_down);
        let post = PreparedTeamMessage { is_quiet, ..self.prepare_message(message) };
        let (wanted, settings, now) = (team.clone(), self.settings(), self.now());
        let write = move |tx: &mut Tx<'_>| {
            // If another turn has ended since, the member works again or the team is shutting down, the notice is
            // outdated.
            let is_active = teams::get(tx, &wanted.id)?.is_some_and(|team| team.status == TeamStatus::Active);
            if !teams::clear_turn_end(tx, &wanted.id, &rested)? || at_work || !is_active {
                return Ok(Vec::new());
            }
            if is_old {
                return Ok(wake_lead_for_mail(tx, &wanted, &post.fresh, &settings)?.into_iter().collect());
            }
            store_messages(tx, &wanted, std::slice::from_ref(&post), &settings, now)
        };
        let ready = self.write_with_retry(write).await?;
        ready.into_iter().for_each(|lane| self.lanes.wake(lane));
        self.copy_messages_to_inbox(team).await;
        Ok(())
    }

    /// Sends a member back to work because a hook asked for it. The lead is not notified that it was idle.
    async fn send_member_back(&self, team: &Team, rested: MemberTurnEnd, why: String) -> Result<()> {
        let message = self.new_team_message(team, RUNTIME_NAME, &rested.name, TeamMessageKind::Task, why);
        let id = TeamMessageId::new(format!("sent-back-{}", rested.turn));
        let post = self.prepare_message(TeamMessage { id, ..message });
        let copies = vec![post.message.clone()];
        let (wanted, settings, now) = (team.clone(), self.settings(), self.now());
        let write = move |tx: &mut Tx<'_>| {
            let posts = std::slice::from_ref(&post);
            lock_recipients(tx, &wanted, posts)?;
            if !teams::clear_turn_end(tx, &wanted.id, &rested)? {
                return Ok(Vec::new());
            }
            store_messages(tx, &wanted, posts, &settings, now)
        };
        let ready = self.write_with_retry(write).await?;
        self.wake_recipients(team, ready, copies).await;
        Ok(())
    }

    async fn idle_facts(
        &self,
        team: &Team,
        rested: &MemberTurnEnd,
        look: &MemberSnapshot,
    ) -> Result<MemberTurnFacts> {
        let (id, name) = (team.id.clone(), rested.name.clone());
        let filter = tasks::TaskListFilter { limit: 1_000, ..tasks::TaskListFilter::default() };
        let read = move |tx: &mut Tx<'_>| {
            let open = tasks::list(tx, &id, &filter)?;
            let waiting = open.iter().filter(|task| task.state == TeamTaskState::Pending);
            let blocked = waiting.clone().filter(|task| !task.blocked_by.is_empty()).count();
            Ok((!tasks::list_held_by(tx, &id, &name)?.is_empty(), blocked, waiting.count() - blocked))
        };
        let (holds_task, blocked, free) = self.open_ledger(team)?.read(read).await?;
        Ok(MemberTurnFacts {
            turn_failed: rested.ended_badly,
            holds_task,
            has_children: look.has_children,
            blocked,
            free,
        })
    }

    fn idle_message(
        &self,
        team: &Team,
        rested: &MemberTurnEnd,
        facts: MemberTurnFacts,
        look: &MemberSnapshot,
    ) -> TeamMessage {
        let idle = idle_reason(facts);
        let why = match (&look.plan, idle) {
            (Some(plan), IdleReason::Available | IdleReason::Blocked) => plan.label(),
            _ => idle.as_str(),
        };
        let mut text = format!("{} is idle: {why}.", rested.name);
        if let Some(streak) = &look.failure_streak {
            text.push_str(&format!(
                " ({}) Its turn is retried while messages or a task wait for it.",
                streak.code
            ));
        }
        if idle == IdleReason::Waiting && !facts.has_children {
            text.push_str(" It holds a task and continues when it receives a message.");
        }
        for (to, summary) in &look.peers {
            text.push_str(&format!("\nsent to {to}: {summary}"));
        }
        let message = self.new_team_message(team, &rested.name, LEAD_NAME, TeamMessageKind::Idle, text);
        TeamMessage {
            id: TeamMessageId::new(format!("idle-{}", rested.turn)),
            reason: Some(why.to_owned()),
            ..message
        }
    }
}

/// Wakes the lead if quiet notices were waiting for the last member to become idle. The reconciler retries a lead whose
/// own turns fail.
fn wake_lead_for_mail(
    tx: &mut Tx<'_>,
    team: &Team,
    fresh: &NewIds,
    settings: &EngineSettings,
) -> polyclaw_store::Result<Option<JobLane>> {
    if teams::get_failure_streak(tx, &team.id, LEAD_NAME)?.is_some() || !mail_needs_turn(tx, team, LEAD_NAME)?
    {
        return Ok(None);
    }
    wake_session(tx, team, &team.lead, fresh, settings)
}

fn load_member_snapshot(
    tx: &mut Tx<'_>,
    id: &polyclaw_domain::id::TeamId,
    rested: &MemberTurnEnd,
) -> polyclaw_store::Result<MemberSnapshot> {
    let at_work = teams::list_members_at_work(tx, id)?;
    let member = teams::get_member(tx, id, &rested.name)?;
    let was_stopped = jobs::get(tx, &rested.turn)?.is_some_and(|job| job.state == JobState::Cancelled);
    let has_children = match &member {
        Some(member) => !runs::list_running_by_owner(tx, &member.session)?.is_empty(),
        None => false,
    };
    let plan = member.as_ref().and_then(|member| member.plan.clone());
    let recent = member.map(|member| member.last_active_at.minus(PEER_MESSAGE_WINDOW_MS)).unwrap_or_default();
    // Skip what the previous notice already reported.
    let since = team_messages::last_idle_at(tx, id, &rested.name)?
        .map_or(recent, |notified_at| notified_at.max(recent));
    let peers = team_messages::list_peer_summaries(tx, id, &rested.name, since, MAX_SHOWN_PEER_MESSAGES)?;
    let streak = teams::get_failure_streak(tx, id, &rested.name)?;
    Ok(MemberSnapshot { at_work, has_children, was_stopped, failure_streak: streak, plan, peers })
}

/// How far back messages between members are reported.
const PEER_MESSAGE_WINDOW_MS: i64 = 10 * 60_000;
