//! Telling the lead who does nothing: with a turn of its own only where nobody is at work any more.

use polyclaw_domain::id::LetterId;
use polyclaw_domain::job::JobState;
use polyclaw_domain::mail::{Letter, LetterKind};
use polyclaw_domain::task::TaskState;
use polyclaw_domain::team::idle::{Facts, Idle, reason, wakes_lead};
use polyclaw_domain::team::{LEAD, Team, TeamStatus};
use polyclaw_store::teams::Rested;
use polyclaw_store::{Tx, jobs, letters, runs, tasks, teams};

use super::post::{Posted, store_all};
use crate::core::Engine;
use crate::error::Result;

/// Letters between members of which the lead is shown the summaries.
const PEERS: usize = 10;

/// What is known of a member as its turn has ended.
struct Look {
    at_work: Vec<String>,
    has_children: bool,
    /// Somebody stopped its turn: that is no reason to begin one of the lead's.
    was_stopped: bool,
    peers: Vec<(String, String)>,
}

impl Engine {
    /// Tells the lead of everyone whose turn has ended since it was last looked at.
    pub(super) async fn tell_idle(&self, team: &Team) -> Result<()> {
        let id = team.id.clone();
        for rested in self.db().read(move |tx| teams::rested(tx, &id)).await? {
            self.tell_one_idle(team, rested).await?;
        }
        Ok(())
    }

    async fn tell_one_idle(&self, team: &Team, rested: Rested) -> Result<()> {
        let (id, wanted) = (team.id.clone(), rested.clone());
        let look = self.db().read(move |tx| look(tx, &id, &wanted)).await?;
        let at_work = look.at_work.contains(&rested.name);
        let idle = reason(self.facts(team, &rested, &look).await?);
        let is_shutting_down = team.status == TeamStatus::ShuttingDown;
        let others_at_work = look.at_work.iter().any(|name| *name != rested.name);
        let letter = self.idle_letter(team, &rested, idle, &look.peers);
        let is_quiet = look.was_stopped || !wakes_lead(idle, others_at_work, is_shutting_down);
        let post = Posted { is_quiet, ..self.posted(letter) };
        let (wanted, settings, now) = (team.clone(), self.settings(), self.now());
        let write = move |tx: &mut Tx<'_>| {
            // Another turn of it has ended since, or it works again: then this is no news.
            if !teams::note_known(tx, &wanted.id, &rested)? || at_work || is_shutting_down {
                return Ok(Vec::new());
            }
            store_all(tx, &wanted, std::slice::from_ref(&post), &settings, now)
        };
        let ready = self.persist(write).await?;
        ready.into_iter().for_each(|lane| self.lanes.wake(lane));
        Ok(())
    }

    async fn facts(&self, team: &Team, rested: &Rested, look: &Look) -> Result<Facts> {
        let (id, name) = (team.id.clone(), rested.name.clone());
        let filter = tasks::Filter { limit: 1_000, ..tasks::Filter::default() };
        let read = move |tx: &mut Tx<'_>| {
            let open = tasks::list(tx, &id, &filter)?;
            let waiting = open.iter().filter(|task| task.state == TaskState::Pending);
            let blocked = waiting.clone().filter(|task| !task.blocked_by.is_empty()).count();
            Ok((!tasks::held_by(tx, &id, &name)?.is_empty(), blocked, waiting.count() - blocked))
        };
        let (holds_task, blocked, free) = self.ledger(team)?.read(read).await?;
        Ok(Facts {
            turn_failed: rested.ended_badly,
            holds_task,
            has_children: look.has_children,
            blocked,
            free,
        })
    }

    fn idle_letter(&self, team: &Team, rested: &Rested, idle: Idle, peers: &[(String, String)]) -> Letter {
        let mut text = format!("{} is idle: {}.", rested.name, idle.as_str());
        for (to, summary) in peers {
            text.push_str(&format!("\nwrote to {to}: {summary}"));
        }
        let letter = self.letter(team, &rested.name, LEAD, LetterKind::Idle, text);
        Letter {
            id: LetterId::new(format!("idle-{}", rested.turn)),
            reason: Some(idle.as_str().to_owned()),
            ..letter
        }
    }
}

fn look(tx: &mut Tx<'_>, id: &polyclaw_domain::id::TeamId, rested: &Rested) -> polyclaw_store::Result<Look> {
    let at_work = teams::at_work(tx, id)?;
    let member = teams::member(tx, id, &rested.name)?;
    let was_stopped = jobs::get(tx, &rested.turn)?.is_some_and(|job| job.state == JobState::Cancelled);
    let has_children = match &member {
        Some(member) => !runs::at_work(tx, &member.session)?.is_empty(),
        None => false,
    };
    let since = member.map(|member| member.last_active_at.minus(RECENT_MS)).unwrap_or_default();
    let peers = letters::between(tx, id, &rested.name, since, PEERS)?;
    Ok(Look { at_work, has_children, was_stopped, peers })
}

/// What a member wrote to others is told while it is news.
const RECENT_MS: i64 = 10 * 60_000;
