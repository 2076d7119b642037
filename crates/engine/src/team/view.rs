//! A team as it stands, for its lead, its members and for people.

use std::collections::HashMap;

use polyclaw_domain::task::{TeamTask, TeamTaskState};
use polyclaw_domain::team::failures::FailureStreak;
use polyclaw_domain::team::state::{self, MemberStatus, TaskCounts, TeamStateReader};
use polyclaw_domain::team::{LEAD_NAME, Team, TeamMember, TeamStatus};
use polyclaw_store::tasks::{self, TaskListFilter};
use polyclaw_store::{Db, Tx, jobs, team_messages, teams};

use super::Actor;
use super::make::is_lost;
use super::spent::{TurnBudget, turn_budget};
use crate::core::Engine;
use crate::error::Result;

#[derive(Clone, Debug)]
pub struct View {
    pub team: Team,
    pub members: Vec<MemberStatus>,
    /// The lead's turns fail.
    pub lead_setback: Option<FailureStreak>,
    /// Its session is gone: the team waits for another.
    pub is_lead_lost: bool,
    /// A turn of the lead runs.
    pub is_lead_working: bool,
    /// Letters to the lead that it has not read yet.
    pub lead_unread: usize,
    pub counts: TaskCounts,
    pub turns: TurnBudget,
    /// Those that have not ended, the oldest first.
    pub open: Vec<TeamTask>,
    /// The last that ended, the newest first.
    pub ended: Vec<TeamTask>,
}

const OPEN: usize = 1_000;
const ENDED: usize = 10;
/// Teams that have ended and are still listed.
const PAST: usize = 20;

impl View {
    /// What is shown to one of the team, or to a person.
    pub fn block(&self, reader: TeamStateReader<'_>) -> String {
        state::render_team_state(&self.team, reader, &self.members, self.counts, (&self.open, &self.ended))
    }
}

impl View {
    /// What the lead does, in the words that there are for members.
    pub fn lead_status(&self) -> &'static str {
        match (self.is_lead_lost, self.is_lead_working) {
            (true, _) => "lost",
            (false, true) => "working",
            (false, false) => "idle",
        }
    }

    /// For a person: with what is wrong with its lead.
    pub fn for_people(&self) -> String {
        let mut lines = vec![self.block(TeamStateReader::Person)];
        if self.is_lead_lost {
            lines.push(format!(
                "Its lead's session is gone: `polyclaw teams lead {} <session>` gives it to another.",
                self.team.name
            ));
        }
        lines.extend(self.turns.line());
        lines.extend(
            self.lead_setback.as_ref().map(|setback| format!("The lead's {}.", setback.summary_line())),
        );
        lines.join("\n")
    }
}

impl Engine {
    /// Every team there is, by name; with those that ended lately where asked for.
    pub async fn teams(&self, with_ended: bool) -> Result<Vec<Team>> {
        let read = move |tx: &mut Tx<'_>| {
            let mut all = teams::list_open(tx)?;
            if with_ended {
                all.extend(teams::list_ended(tx, PAST)?);
            }
            Ok(all)
        };
        Ok(self.db().read(read).await?)
    }

    /// A team as an actor in it sees it.
    pub async fn team_view(&self, actor: &Actor, name: &str) -> Result<View> {
        let insider = self.observer(actor, name).await?;
        self.view(insider.team).await
    }

    /// The last team of a name that has ended, if none bears the name now. People can still look at it.
    pub(super) async fn ended_team(&self, name: &str) -> Result<Option<Team>> {
        let wanted = name.to_owned();
        let read = move |tx: &mut Tx<'_>| match teams::find_open_by_name(tx, &wanted)? {
            Some(_) => Ok(None),
            None => Ok(teams::list_ended_by_name(tx, &wanted)?.into_iter().next()),
        };
        Ok(self.db().read(read).await?)
    }

    /// The ledger of a team, also of one that has ended. `None`: its folder is gone.
    pub(super) async fn ledger_to_read(&self, team: &Team) -> Result<Option<Db>> {
        if team.status != TeamStatus::Shutdown {
            return self.ledger(team).map(Some);
        }
        let folder = self.past_folder(team).await.unwrap_or_default();
        match self.ports.ledgers.open_archived(&folder) {
            Ok(db) => Ok(Some(db)),
            Err(polyclaw_store::Error::Closed) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn view(&self, team: Team) -> Result<View> {
        let (wanted, limit) = (team.clone(), self.settings().teams.automatic_turns);
        let Found { members, at_work, mut setbacks, mut unread, is_lead_lost, is_lead_working, turns } =
            self.db().read(move |tx| find(tx, &wanted, limit)).await?;
        let id = team.id.clone();
        let read = move |tx: &mut Tx<'_>| {
            let all = TaskListFilter {
                with_ended: true,
                limit: usize::from(u16::MAX),
                ..TaskListFilter::default()
            };
            let all = tasks::list(tx, &id, &all)?;
            Ok((TaskCounts::from_tasks(&all), all, tasks::list_last_ended(tx, &id, ENDED)?))
        };
        let (counts, mut open, ended) = match self.ledger_to_read(&team).await? {
            Some(ledger) => ledger.read(read).await?,
            None => Default::default(),
        };
        open.retain(|task| !task.state.has_ended());
        open.truncate(OPEN);
        open.reverse();
        let lead_setback = setbacks.remove(LEAD_NAME);
        let lead_unread = unread.remove(LEAD_NAME).unwrap_or_default();
        let stands = |member: TeamMember| {
            let setback = setbacks.remove(&member.name);
            let unread = unread.remove(&member.name).unwrap_or_default();
            MemberStatus { failures: setback, unread, ..standing(member, &at_work, &open) }
        };
        let members = members.into_iter().map(stands).collect();
        Ok(View {
            team,
            members,
            lead_setback,
            is_lead_lost,
            is_lead_working,
            lead_unread,
            counts,
            turns,
            open,
            ended,
        })
    }

    /// Letters of a team, the newest first.
    pub async fn team_letters(
        &self,
        name: &str,
        limit: usize,
    ) -> Result<Vec<polyclaw_domain::team_message::TeamMessage>> {
        let team = match self.ended_team(name).await? {
            Some(team) => team,
            None => self.team_named(name).await?,
        };
        Ok(self.db().read(move |tx| team_messages::list_newest(tx, &team.id, limit)).await?)
    }

    /// What became of a team's tasks, behind a number.
    pub async fn team_log(&self, name: &str, after: i64, limit: usize) -> Result<Vec<tasks::TaskEvent>> {
        let team = match self.ended_team(name).await? {
            Some(team) => team,
            None => self.team_named(name).await?,
        };
        let id = team.id.clone();
        match self.ledger_to_read(&team).await? {
            Some(ledger) => Ok(ledger.read(move |tx| tasks::list_events(tx, &id, after, limit)).await?),
            None => Ok(Vec::new()),
        }
    }
}

/// What the main database knows of a team.
struct Found {
    members: Vec<TeamMember>,
    at_work: Vec<String>,
    setbacks: HashMap<String, FailureStreak>,
    unread: HashMap<String, usize>,
    is_lead_lost: bool,
    is_lead_working: bool,
    turns: TurnBudget,
}

fn find(tx: &mut Tx<'_>, team: &Team, limit: u32) -> polyclaw_store::Result<Found> {
    Ok(Found {
        members: teams::list_members(tx, &team.id)?,
        at_work: teams::list_members_at_work(tx, &team.id)?,
        setbacks: teams::list_failure_streaks(tx, &team.id)?.into_iter().collect(),
        unread: team_messages::count_unread(tx, &team.id)?.into_iter().collect(),
        is_lead_lost: is_lost(tx, team)?,
        is_lead_working: jobs::session_load(tx, &team.lead)?.running.is_some(),
        turns: turn_budget(tx, team, limit)?,
    })
}

fn standing(member: TeamMember, at_work: &[String], open: &[TeamTask]) -> MemberStatus {
    let holds = |task: &&TeamTask| {
        task.state != TeamTaskState::Pending
            && task.lease.as_ref().is_some_and(|lease| lease.owner == member.name)
    };
    let tasks =
        open.iter().filter(holds).map(|task| format!("#{} {}", task.no, task.display_title())).collect();
    MemberStatus { is_working: at_work.contains(&member.name), tasks, member, failures: None, unread: 0 }
}
