//! Retries after failed turns, with a growing backoff and only while something waits for the member. The retry time is
//! a stored row, so a restart loses none. The retry is taken in the transaction that starts its turn, so none runs
//! twice.

use polyclaw_domain::job::JobLane;
use polyclaw_domain::task::claim_refusal;
use polyclaw_domain::team::failures::retry_delay;
use polyclaw_domain::team::{LEAD_NAME, Team, TeamStatus};
use polyclaw_store::teams::MemberRetry;
use polyclaw_store::{Tx, sessions, tasks, team_messages, teams};

use super::actor::to_task_member;
use super::messages::recipient_session;
use super::reconcile::ignore_ended_team;
use super::turn::mail_needs_turn;
use super::wake::wake_session;
use crate::core::Engine;
use crate::error::Result;
use crate::ingress::NewIds;
use crate::settings::EngineSettings;

impl Engine {
    /// Retries every member whose backoff has passed. Returns whether retries remain.
    pub(super) async fn retry_failing_members(&self) -> Result<bool> {
        let all = self.db().read(teams::list_retries).await?;
        let now = self.now();
        for retry in all.iter().filter(|retry| retry.at <= now) {
            // A retry that fails must not block the others.
            if let Err(error) = self.retry_member(retry).await {
                tracing::error!(%error, member = %retry.name, "cannot retry failing team member; trying later");
            }
        }
        Ok(!all.is_empty())
    }

    async fn retry_member(&self, retry: &MemberRetry) -> Result<()> {
        let id = retry.team.clone();
        let Some(team) = self.db().read(move |tx| teams::get(tx, &id)).await? else { return Ok(()) };
        let has_work = self.member_has_work(&team, &retry.name).await.or_else(ignore_ended_team)?;
        let (retry, fresh, settings) = (retry.clone(), NewIds::new(self, None), self.settings());
        let write = move |tx: &mut Tx<'_>| take_retry(tx, &retry, has_work, (&fresh, &settings));
        let ready = self.write_with_retry(write).await?;
        ready.into_iter().for_each(|lane| self.lanes.wake(lane));
        Ok(())
    }

    /// Whether a member holds a task or could claim one.
    async fn member_has_work(&self, team: &Team, name: &str) -> Result<bool> {
        if name == LEAD_NAME || team.status != TeamStatus::Active {
            return Ok(false);
        }
        let (id, wanted) = (team.id.clone(), name.to_owned());
        let Some(member) = self.db().read(move |tx| teams::get_member(tx, &id, &wanted)).await? else {
            return Ok(false);
        };
        let (id, worker) = (team.id.clone(), to_task_member(&member));
        let open = tasks::TaskListFilter { limit: 1_000, ..tasks::TaskListFilter::default() };
        let open = self.open_ledger(team)?.read(move |tx| tasks::list(tx, &id, &open)).await?;
        Ok(open.iter().any(|task| match &task.lease {
            Some(lease) => lease.owner == worker.name,
            None => claim_refusal(task, &worker).is_none(),
        }))
    }
}

/// Takes a due retry and wakes the member if something waits for it.
fn take_retry(
    tx: &mut Tx<'_>,
    retry: &MemberRetry,
    has_work: bool,
    (fresh, settings): (&NewIds, &EngineSettings),
) -> polyclaw_store::Result<Option<JobLane>> {
    let Some(team) = teams::get(tx, &retry.team)? else { return Ok(None) };
    let Some(session) = recipient_session(tx, &team, &retry.name)? else {
        // No member has this name any longer, so the retry must be removed here.
        return teams::claim_retry(tx, retry, None).map(|_| None);
    };
    // The session's row is locked first, as everywhere.
    sessions::allocate_positions(tx, &session, 0, fresh.now)?;
    let is_wanted = has_work || mail_needs_turn(tx, &team, &retry.name)?;
    // An idle notice that needs no turn while others work may need one when they are idle.
    let (_, idle) = team_messages::count_waiting(tx, &team.id, &retry.name)?;
    let later = (!is_wanted && idle > 0).then(|| fresh.now.plus_duration(retry_delay(1)));
    if !teams::claim_retry(tx, retry, later)? || !is_wanted {
        return Ok(None);
    }
    wake_session(tx, &team, &session, fresh, settings)
}
