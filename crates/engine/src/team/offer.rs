//! Offers free tasks to idle members. When a task becomes free, members that are idle then are notified by its event. A
//! member whose turn was just ending is handled here, when the turn has ended and after a restart.

use polyclaw_domain::id::TeamMessageId;
use polyclaw_domain::job::JobState;
use polyclaw_domain::sanitize;
use polyclaw_domain::task::{TeamTask, claim_refusal};
use polyclaw_domain::team::{MemberState, RUNTIME_NAME, Team, TeamMember, TeamStatus};
use polyclaw_domain::team_message::{TeamMessage, TeamMessageKind};
use polyclaw_store::tasks::{self, FreeTask, OfferableTasks};
use polyclaw_store::{Tx, jobs, team_messages, teams};

use super::actor::to_task_member;
use super::messages::{PreparedTeamMessage, lock_recipients, store_messages};
use crate::core::Engine;
use crate::error::Result;

/// Maximum number of free tasks considered together, oldest first.
const MAX_OFFERED_TASKS: usize = 50;

/// Returns the message id of an offer. A task is offered to a member once each time it becomes free, and again after
/// the member has taken other tasks. `claims` counts claims of the task, `taken` those of the member.
pub(super) fn offer_id(
    team: &Team,
    task: &TeamTask,
    (claims, taken): (i64, i64),
    member: &str,
) -> TeamMessageId {
    TeamMessageId::new(format!("{}-offer-{}-{claims}-{member}-{taken}", team.id, task.no))
}

pub(super) fn offer_text(task: &TeamTask) -> String {
    let subject = sanitize::to_single_line(&task.subject, 200);
    format!("Task #{} is available: {subject}. Claim it with TaskClaim if you can do it.", task.no)
}

impl Engine {
    /// Offers each idle member the oldest free task that it could take and was not offered before.
    pub(super) async fn offer_free_tasks(&self, team: &Team) -> Result<()> {
        if team.status != TeamStatus::Active {
            return Ok(());
        }
        let wanted = team.clone();
        if self.db().read(move |tx| idle_members(tx, &wanted)).await?.is_empty() {
            return Ok(());
        }
        let id = team.id.clone();
        let read = move |tx: &mut Tx<'_>| tasks::list_offerable(tx, &id, MAX_OFFERED_TASKS);
        let free = self.open_ledger(team)?.read(read).await?;
        let (wanted, looked_at) = (team.clone(), free.clone());
        let offers = self.db().read(move |tx| choose_offers(tx, &wanted, &looked_at)).await?;
        if offers.is_empty() {
            return Ok(());
        }
        let posts: Vec<PreparedTeamMessage> =
            offers.into_iter().map(|offer| self.build_offer(team, &offer)).collect();
        let copies = posts.iter().map(|post| post.message.clone()).collect();
        let (wanted, settings, now) = (team.clone(), self.settings(), self.now());
        let write = move |tx: &mut Tx<'_>| {
            lock_recipients(tx, &wanted, &posts)?;
            // Somebody may have been woken since.
            let still: Vec<TeamMessageId> =
                choose_offers(tx, &wanted, &free)?.iter().map(|offer| offer.id(&wanted)).collect();
            let due: Vec<PreparedTeamMessage> =
                posts.iter().filter(|post| still.contains(&post.message.id)).cloned().collect();
            store_messages(tx, &wanted, &due, &settings, now)
        };
        let ready = self.write_with_retry(write).await?;
        self.wake_recipients(team, ready, copies).await;
        Ok(())
    }

    fn build_offer(&self, team: &Team, offer: &TaskOffer) -> PreparedTeamMessage {
        let text = offer_text(&offer.free.task);
        let message = self.new_team_message(team, RUNTIME_NAME, &offer.member, TeamMessageKind::Task, text);
        self.prepare_message(TeamMessage { id: offer.id(team), ..message })
    }
}

#[derive(Clone)]
struct TaskOffer {
    free: FreeTask,
    member: String,
    /// How many tasks the member has taken.
    taken: i64,
}

impl TaskOffer {
    fn id(&self, team: &Team) -> TeamMessageId {
        offer_id(team, &self.free.task, (self.free.claims, self.taken), &self.member)
    }
}

/// Active members without a turn, whose turns do not fail and who may work. A member that a person stopped is left
/// alone until a person writes.
fn idle_members(tx: &mut Tx<'_>, team: &Team) -> polyclaw_store::Result<Vec<TeamMember>> {
    let with_turns = teams::list_members_with_turns(tx, &team.id)?;
    let mut idle = Vec::new();
    for member in teams::list_members(tx, &team.id)? {
        if member.state != MemberState::Active || member.plan.is_some() || with_turns.contains(&member.name) {
            continue;
        }
        let last = jobs::list(tx, Some(&member.session), None, 1)?;
        let was_stopped =
            last.first().is_some_and(|job| job.state == JobState::Cancelled && job.trace == team.trace);
        if !was_stopped && teams::get_failure_streak(tx, &team.id, &member.name)?.is_none() {
            idle.push(member);
        }
    }
    Ok(idle)
}

/// Chooses one member for each free task. A task is skipped while an offer of it is unread, or if a member that is idle
/// now was offered it and did not take it; the lead is notified of idle members anyway.
fn choose_offers(
    tx: &mut Tx<'_>,
    team: &Team,
    looked_at: &OfferableTasks,
) -> polyclaw_store::Result<Vec<TaskOffer>> {
    let mut offers: Vec<TaskOffer> = Vec::new();
    let mut idle = idle_members(tx, team)?;
    idle.retain(|member| !looked_at.holders.contains(&member.name));
    for free in &looked_at.free {
        let prefix = format!("{}-offer-{}-{}-", team.id, free.task.no, free.claims);
        if team_messages::has_unread_with_prefix(tx, &team.id, &prefix)? {
            continue;
        }
        let mut candidates: Vec<TaskOffer> = Vec::new();
        let mut was_declined = false;
        for member in &idle {
            let taken = looked_at.claims_by_member.get(&member.name).copied().unwrap_or_default();
            let offer = TaskOffer { free: free.clone(), member: member.name.clone(), taken };
            let fits = claim_refusal(&free.task, &to_task_member(member)).is_none()
                && free.released_by.as_ref() != Some(&member.name);
            was_declined |= team_messages::get(tx, &offer.id(team))?.is_some();
            candidates.extend(Some(offer).filter(|_| fits));
        }
        if let Some(offer) = candidates.into_iter().next().filter(|_| !was_declined) {
            idle.retain(|member| member.name != offer.member);
            offers.push(offer);
        }
    }
    Ok(offers)
}
