//! A team as it stands, for its lead, its members and for people.

use polyclaw_domain::task::{Task, TaskState};
use polyclaw_domain::team::state::{self, Counts, Standing};
use polyclaw_domain::team::{Member, Team};
use polyclaw_store::tasks::{self, Filter};
use polyclaw_store::{Tx, letters, teams};

use super::Actor;
use crate::core::Engine;
use crate::error::Result;

#[derive(Clone, Debug)]
pub struct View {
    pub team: Team,
    pub members: Vec<Standing>,
    pub counts: Counts,
    /// Those that have not ended, the oldest first.
    pub open: Vec<Task>,
    /// The last that ended, the newest first.
    pub ended: Vec<Task>,
}

const OPEN: usize = 1_000;
const ENDED: usize = 10;
/// Teams that have ended and are still listed.
const PAST: usize = 20;

impl View {
    /// What is shown to one of the team; `None` is the lead.
    pub fn block(&self, reader: Option<&str>) -> String {
        state::block(&self.team, reader, &self.members, self.counts, (&self.open, &self.ended))
    }
}

impl Engine {
    /// Every team there is, by name; with those that ended lately where asked for.
    pub async fn teams(&self, with_ended: bool) -> Result<Vec<Team>> {
        let read = move |tx: &mut Tx<'_>| {
            let mut all = teams::open(tx)?;
            if with_ended {
                all.extend(teams::ended(tx, PAST)?);
            }
            Ok(all)
        };
        Ok(self.db().read(read).await?)
    }

    /// A team as an actor in it sees it.
    pub async fn team_view(&self, actor: &Actor, name: &str) -> Result<View> {
        let insider = self.insider(actor, name).await?;
        self.view(insider.team).await
    }

    pub(super) async fn view(&self, team: Team) -> Result<View> {
        let id = team.id.clone();
        let read = move |tx: &mut Tx<'_>| Ok((teams::members(tx, &id)?, teams::at_work(tx, &id)?));
        let (members, at_work) = self.db().read(read).await?;
        let id = team.id.clone();
        let read = move |tx: &mut Tx<'_>| {
            let all = Filter { with_ended: true, limit: usize::from(u16::MAX), ..Filter::default() };
            let all = tasks::list(tx, &id, &all)?;
            Ok((Counts::of(&all), all, tasks::last_ended(tx, &id, ENDED)?))
        };
        let (counts, mut open, ended) = self.ledger(&team)?.read(read).await?;
        open.retain(|task| !task.state.has_ended());
        open.truncate(OPEN);
        open.reverse();
        let members = members.into_iter().map(|member| standing(member, &at_work, &open)).collect();
        Ok(View { team, members, counts, open, ended })
    }

    /// Letters of a team, the newest first.
    pub async fn team_letters(&self, name: &str, limit: usize) -> Result<Vec<polyclaw_domain::mail::Letter>> {
        let team = self.team_named(name).await?;
        Ok(self.db().read(move |tx| letters::newest(tx, &team.id, limit)).await?)
    }

    /// What became of a team's tasks, behind a number.
    pub async fn team_log(&self, name: &str, after: i64, limit: usize) -> Result<Vec<tasks::Happened>> {
        let team = self.team_named(name).await?;
        let id = team.id.clone();
        Ok(self.ledger(&team)?.read(move |tx| tasks::events(tx, &id, after, limit)).await?)
    }
}

fn standing(member: Member, at_work: &[String], open: &[Task]) -> Standing {
    let holds = |task: &&Task| {
        task.state != TaskState::Pending
            && task.lease.as_ref().is_some_and(|lease| lease.owner == member.name)
    };
    let tasks = open.iter().filter(holds).map(|task| format!("#{} {}", task.no, task.title())).collect();
    Standing { is_working: at_work.contains(&member.name), tasks, member }
}
