//! The team reconciler: renews task leases, frees abandoned tasks, relays task events, retries failed turns, and
//! completes shutdowns. It calls no model, so an idle team costs nothing.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Duration;

use polyclaw_domain::id::TeamId;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::{LEAD_NAME, MemberState, RUNTIME_NAME, Team, TeamStatus};
use polyclaw_domain::team_message::TeamMessageKind;
use polyclaw_domain::time::Millis;
use polyclaw_store::teams::TeamActivity;
use polyclaw_store::{Tx, tasks, teams};

use super::messages::{PreparedTeamMessage, lock_recipients, store_messages};
use crate::core::Engine;
use crate::error::{Error, Result};

/// Used while a team is working or something is due.
const ACTIVE_RECONCILE_INTERVAL: Duration = Duration::from_secs(1);
/// Used while all teams are idle. Changes made on this node wake the reconciler, so this only bounds the delay for
/// changes of other nodes.
const IDLE_RECONCILE_INTERVAL: Duration = Duration::from_secs(5);
/// A ledger unused for this long is closed.
const LEDGER_IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// Enough time for a ledger's threads to close its files.
const LEDGER_CLOSE_PAUSE: Duration = Duration::from_millis(20);
/// An idle team is still reconciled this often, because another process may have written to its ledger.
const SAFETY_RECONCILE_INTERVAL_MS: i64 = 10 * 60_000;

const DAY_MS: i64 = 24 * 3_600_000;

/// What the reconciler knows about a team since its last pass.
struct ReconcileState {
    seen: TeamActivity,
    /// When the team is reconciled even without activity: a lease ends, or the last pass failed.
    due: Millis,
}

/// Runs until the engine drains. Without teams it sleeps until there is one. A team is reconciled when it had activity
/// or is due; an idle team costs one row of one query.
pub(crate) async fn run_reconcile_loop(engine: &Engine) -> Result<()> {
    let (mut renewed, mut cleared) = (Millis(0), Millis(0));
    let mut known: Option<Vec<TeamId>> = None;
    let mut watched: HashMap<TeamId, ReconcileState> = HashMap::new();
    loop {
        let is_shared = engine.db().is_shared();
        let read = move |tx: &mut Tx<'_>| {
            let ledgers = if is_shared { teams::list_ledger_activity(tx)? } else { Vec::new() };
            Ok((teams::list_open(tx)?, teams::list_activity(tx)?, ledgers))
        };
        let (open, activity, ledgers) = engine.db().read(read).await?;
        let there = |id: &TeamId| open.iter().any(|team| team.id == *id);
        // At startup, and when a team is gone: another node may have ended it while this node has its files.
        if known.as_ref().is_none_or(|known| !known.iter().all(there)) {
            engine.clear_leftover_folders().await;
        }
        if engine.now().since(cleared) >= DAY_MS {
            cleared = engine.now();
            engine.clear_trash().await;
        }
        known = Some(open.iter().map(|team| team.id.clone()).collect());
        watched.retain(|id, _| there(id));
        let mut activity: HashMap<TeamId, TeamActivity> =
            activity.into_iter().map(|one| (one.team.clone(), one)).collect();
        let is_working = |id: &TeamId| activity.get(id).is_some_and(|one| one.at_work > 0);
        let now = engine.now();
        let mut has_work = false;
        if now.since(renewed) >= engine.task_lease_ms() / 3 {
            renewed = now;
            engine.renew_task_leases(open.iter().filter(|team| is_working(&team.id))).await;
        }
        let marked = engine.take_marked_teams();
        for team in &open {
            let Some(seen) = activity.remove(&team.id) else { continue };
            has_work |= seen.at_work > 0 || seen.requests > 0 || team.status == TeamStatus::ShuttingDown;
            let is_notified = ledgers.iter().any(|(id, at)| *id == team.id && at.is_none_or(|at| at <= now));
            let is_due = watched.get(&team.id).is_none_or(|watch| watch.seen != seen || watch.due <= now);
            let is_ending = seen.requests > 0 || team.status == TeamStatus::ShuttingDown;
            if !is_due && !is_ending && !is_notified && !marked.contains(&team.id) {
                continue;
            }
            // A team that fails must not block the others.
            let due = match engine.reconcile_team(team).await.or_else(ignore_ended_team) {
                Ok(due) => due.unwrap_or(now.plus(SAFETY_RECONCILE_INTERVAL_MS)),
                Err(error) => {
                    tracing::error!(%error, team = %team.name, "cannot reconcile team; retrying");
                    now
                }
            };
            let is_first = watched.insert(team.id.clone(), ReconcileState { seen, due }).is_none();
            // At startup every team is reconciled. Close idle ledgers right away, so that few files are open together.
            if is_first && !is_ending && due >= now.plus(SAFETY_RECONCILE_INTERVAL_MS) {
                engine.ports.ledgers.close_if_open(&team.id);
                tokio::time::sleep(LEDGER_CLOSE_PAUSE).await;
            }
        }
        has_work |= watched.values().any(|watch| watch.due < now.plus(SAFETY_RECONCILE_INTERVAL_MS));
        let has_open = engine.ports.ledgers.close_idle(LEDGER_IDLE_TIMEOUT) > 0;
        let is_trying = engine.retry_failing_members().await?;
        let pause = match (open.is_empty() && !has_open, has_work || is_trying) {
            (_, true) => ACTIVE_RECONCILE_INTERVAL,
            (true, false) => Duration::from_secs(3600),
            (false, false) => IDLE_RECONCILE_INTERVAL,
        };
        tokio::select! {
            () = engine.team_wake.notified() => {}
            () = tokio::time::sleep(pause) => {}
            () = engine.wait_for_drain() => return Ok(()),
        }
    }
}

/// Ignores the error of a team that ended meanwhile: its ledger is closed.
pub(super) fn ignore_ended_team<T: Default>(error: Error) -> Result<T> {
    if matches!(error, Error::Store(polyclaw_store::Error::Closed)) { Ok(T::default()) } else { Err(error) }
}

impl Engine {
    /// Returns when something is due next.
    async fn reconcile_team(&self, team: &Team) -> Result<Option<Millis>> {
        let (id, now) = (team.id.clone(), self.now());
        self.open_ledger(team)?.write(move |tx| tasks::expire_leases(tx, &id, now)).await?;
        self.free_tasks_of_closed_members(team).await?;
        self.mark_lost_members(team).await?;
        self.relay_task_events(team).await?;
        self.offer_free_tasks(team).await?;
        self.notify_budget_spent(team).await?;
        self.announce_idle_members(team).await?;
        self.copy_messages_to_inbox(team).await;
        self.write_team_files(team).await?;
        let id = team.id.clone();
        let asked = self.db().read(move |tx| teams::list_shutdown_requests(tx, &id)).await?;
        if team.status == TeamStatus::ShuttingDown || !asked.is_empty() {
            self.advance_shutdown(team).await?;
            return Ok(Some(self.now()));
        }
        let id = team.id.clone();
        Ok(self.open_ledger(team)?.read(move |tx| tasks::find_next_expiry(tx, &id)).await?)
    }

    /// Frees tasks of members that have left the team.
    async fn free_tasks_of_closed_members(&self, team: &Team) -> Result<()> {
        let id = team.id.clone();
        let members = self.db().read(move |tx| teams::list_members(tx, &id)).await?;
        let closed: Vec<String> = members
            .into_iter()
            .filter(|member| member.state == MemberState::Closed)
            .map(|member| member.name)
            .collect();
        if closed.is_empty() {
            return Ok(());
        }
        let (id, now) = (team.id.clone(), self.now());
        let write = move |tx: &mut Tx<'_>| {
            closed.iter().try_for_each(|name| {
                tasks::release_all(tx, &id, name, "its session was closed", now).map(drop)
            })
        };
        Ok(self.open_ledger(team)?.write(write).await?)
    }

    /// Marks members whose session is gone as lost and notifies the lead. A replacement gets their tasks.
    async fn mark_lost_members(&self, team: &Team) -> Result<()> {
        let id = team.id.clone();
        let lost = self.db().read(move |tx| teams::list_members_without_session(tx, &id)).await?;
        for name in lost {
            let text = format!(
                "{name} is lost: its session no longer exists. To replace it, call TeammateSpawn with the same \
                 name; the new member takes over its tasks."
            );
            let post = self.prepare_message(self.new_team_message(
                team,
                RUNTIME_NAME,
                LEAD_NAME,
                TeamMessageKind::Task,
                text,
            ));
            self.mark_member_lost(team, name, post).await?;
            self.write_team_files(team).await?;
        }
        Ok(())
    }

    /// Marks a member as lost and notifies the lead, in one transaction, because it is not checked again.
    async fn mark_member_lost(&self, team: &Team, name: String, post: PreparedTeamMessage) -> Result<()> {
        let (wanted, settings, now) = (team.clone(), self.settings(), self.now());
        let copies = vec![post.message.clone()];
        let write = move |tx: &mut Tx<'_>| {
            let posts = std::slice::from_ref(&post);
            lock_recipients(tx, &wanted, posts)?;
            if !teams::list_members_without_session(tx, &wanted.id)?.contains(&name) {
                return Ok(None);
            }
            teams::set_member_state(tx, &wanted.id, &name, MemberState::Lost, now)?;
            store_messages(tx, &wanted, posts, &settings, now).map(Some)
        };
        if let Some(ready) = self.write_with_retry(write).await? {
            self.wake_recipients(team, ready, copies).await;
        }
        Ok(())
    }

    /// Renews the task leases of sessions working on this node, and of members whose children are working.
    async fn renew_task_leases(&self, at_work: impl Iterator<Item = &Team>) {
        let running: Vec<SessionKey> = {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.values().map(|running| running.claim.session.clone()).collect()
        };
        for team in at_work {
            // A team that fails must not block the others.
            let renewed = self.renew_team_task_leases(team, running.clone()).await;
            if let Err(error) = renewed.or_else(ignore_ended_team) {
                tracing::error!(%error, team = %team.name, "cannot renew task leases of team; retrying");
            }
        }
    }

    async fn renew_team_task_leases(&self, team: &Team, mut sessions: Vec<SessionKey>) -> Result<()> {
        let id = team.id.clone();
        let waiting = self.db().read(move |tx| teams::list_members_with_runs(tx, &id)).await?;
        sessions.extend(waiting.into_iter().map(|member| member.session));
        if sessions.is_empty() {
            return Ok(());
        }
        let (id, now, lease_ms) = (team.id.clone(), self.now(), self.task_lease_ms());
        let write = move |tx: &mut Tx<'_>| {
            sessions.iter().try_for_each(|key| tasks::renew_leases(tx, &id, key, (now, lease_ms)).map(drop))
        };
        Ok(self.open_ledger(team)?.write(write).await?)
    }
}
