//! The keeper of teams: renews what members work on, frees what nobody does, tells what there is to tell, tries again
//! what failed, and brings shutdowns to their end. It asks no model anything: a team that rests costs nothing.

use std::sync::PoisonError;
use std::time::Duration;

use polyclaw_domain::id::TeamId;
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::mail::LetterKind;
use polyclaw_domain::team::{LEAD, MemberState, RUNTIME, Team, TeamStatus};
use polyclaw_domain::time::Millis;
use polyclaw_store::{Tx, tasks, teams};

use super::post::{Posted, lock_readers, store_all};
use crate::core::Engine;
use crate::error::{Error, Result};

/// While there are teams.
const TICK: Duration = Duration::from_secs(1);

/// Runs until the engine drains. Without a team it sleeps until there is one.
pub(crate) async fn keep(engine: &Engine) -> Result<()> {
    let mut renewed = Millis(0);
    let mut known: Option<Vec<TeamId>> = None;
    loop {
        let open = engine.db().read(teams::open).await?;
        let there = |id: &TeamId| open.iter().any(|team| team.id == *id);
        // At a start, and when a team is gone: another node may have ended it, and this one keeps its files.
        if known.as_ref().is_none_or(|known| !known.iter().all(there)) {
            engine.clear_folders().await;
        }
        known = Some(open.iter().map(|team| team.id.clone()).collect());
        let now = engine.now();
        if now.since(renewed) >= engine.task_lease_ms() / 3 {
            renewed = now;
            engine.renew_tasks(&open).await;
        }
        for team in &open {
            // One that can not be looked after now keeps no other from it.
            let looked = engine.look_after(team).await;
            if let Err(error) = looked.or_else(unless_ended) {
                tracing::error!(%error, team = %team.name, "a team could not be looked after, trying again");
            }
        }
        let is_trying = engine.retry_failed().await?;
        let pause = if open.is_empty() && !is_trying { Duration::from_secs(3600) } else { TICK };
        tokio::select! {
            () = engine.team_wake.notified() => {}
            () = tokio::time::sleep(pause) => {}
            () = engine.drained() => return Ok(()),
        }
    }
}

/// A team that ended while it was looked at has no ledger any more, and nothing to show.
pub(super) fn unless_ended<T: Default>(error: Error) -> Result<T> {
    if matches!(error, Error::Store(polyclaw_store::Error::Closed)) { Ok(T::default()) } else { Err(error) }
}

impl Engine {
    async fn look_after(&self, team: &Team) -> Result<()> {
        let (id, now) = (team.id.clone(), self.now());
        self.ledger(team)?.write(move |tx| tasks::expire(tx, &id, now)).await?;
        self.free_left(team).await?;
        self.note_lost(team).await?;
        self.relay_ledger(team).await?;
        self.tell_idle(team).await?;
        self.copy_letters(team).await;
        self.write_team(team).await?;
        let id = team.id.clone();
        let asked = self.db().read(move |tx| teams::requests(tx, &id)).await?;
        if team.status == TeamStatus::ShuttingDown || !asked.is_empty() {
            self.settle_shutdown(team).await?;
        }
        Ok(())
    }

    /// Tasks of members that are no more in the team.
    async fn free_left(&self, team: &Team) -> Result<()> {
        let id = team.id.clone();
        let members = self.db().read(move |tx| teams::members(tx, &id)).await?;
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
            closed
                .iter()
                .try_for_each(|name| tasks::free_all(tx, &id, name, "its session was closed", now).map(drop))
        };
        Ok(self.ledger(team)?.write(write).await?)
    }

    /// A member whose session is gone is lost: the lead is told, and a replacement gets its tasks.
    async fn note_lost(&self, team: &Team) -> Result<()> {
        let id = team.id.clone();
        let lost = self.db().read(move |tx| teams::without_session(tx, &id)).await?;
        for name in lost {
            let text = format!(
                "{name} is lost: its session is gone. TeammateSpawn with the same name replaces it; it gets the tasks."
            );
            let post = self.posted(self.letter(team, RUNTIME, LEAD, LetterKind::Task, text));
            self.note_one_lost(team, name, post).await?;
            self.write_team(team).await?;
        }
        Ok(())
    }

    /// That it is lost and that the lead is told, or neither: nobody would look for it again.
    async fn note_one_lost(&self, team: &Team, name: String, post: Posted) -> Result<()> {
        let (wanted, settings, now) = (team.clone(), self.settings(), self.now());
        let copies = vec![post.letter.clone()];
        let write = move |tx: &mut Tx<'_>| {
            let posts = std::slice::from_ref(&post);
            lock_readers(tx, &wanted, posts)?;
            if !teams::without_session(tx, &wanted.id)?.contains(&name) {
                return Ok(None);
            }
            teams::set_member_state(tx, &wanted.id, &name, MemberState::Lost, now)?;
            store_all(tx, &wanted, posts, &settings, now).map(Some)
        };
        if let Some(ready) = self.persist(write).await? {
            self.hand_out(team, ready, copies).await;
        }
        Ok(())
    }

    /// Sessions of this node that are at work keep what they hold, and so do those for whom others are.
    async fn renew_tasks(&self, open: &[Team]) {
        let running: Vec<SessionKey> = {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.values().map(|running| running.claim.session.clone()).collect()
        };
        for team in open {
            // One that can not be renewed now keeps no other from it.
            let renewed = self.renew_of(team, running.clone()).await;
            if let Err(error) = renewed.or_else(unless_ended) {
                tracing::error!(%error, team = %team.name, "the tasks of a team could not be renewed, trying again");
            }
        }
    }

    async fn renew_of(&self, team: &Team, mut sessions: Vec<SessionKey>) -> Result<()> {
        let id = team.id.clone();
        let waiting = self.db().read(move |tx| teams::with_runs(tx, &id)).await?;
        sessions.extend(waiting.into_iter().map(|member| member.session));
        if sessions.is_empty() {
            return Ok(());
        }
        let (id, now, lease_ms) = (team.id.clone(), self.now(), self.task_lease_ms());
        let write = move |tx: &mut Tx<'_>| {
            sessions.iter().try_for_each(|key| tasks::renew(tx, &id, key, (now, lease_ms)).map(drop))
        };
        Ok(self.ledger(team)?.write(write).await?)
    }
}
