//! The current state of a team, for its lead, its members and people.

use std::collections::HashMap;

use polyclaw_domain::locale::Locale;
use polyclaw_domain::task::{TeamTask, TeamTaskState};
use polyclaw_domain::team::failures::FailureStreak;
use polyclaw_domain::team::state::{self, MemberStatus, TaskCounts, TeamStateReader};
use polyclaw_domain::team::{LEAD_NAME, Team, TeamMember, TeamStatus};
use polyclaw_store::tasks::{self, TaskListFilter};
use polyclaw_store::{Db, Tx, jobs, team_messages, teams};

use super::TeamActor;
use super::create::has_lost_lead;
use super::turn_budget::{TurnBudget, load_turn_budget};
use crate::core::Engine;
use crate::error::Result;
use crate::reply_text;

#[derive(Clone, Debug)]
pub struct TeamSnapshot {
    pub team: Team,
    pub members: Vec<MemberStatus>,
    /// Set while the lead's turns fail.
    pub lead_failure_streak: Option<FailureStreak>,
    /// The lead's session is gone: the team waits for another lead.
    pub is_lead_lost: bool,
    /// A turn of the lead is running.
    pub is_lead_working: bool,
    /// Number of messages that the lead has not read yet.
    pub lead_unread: usize,
    pub counts: TaskCounts,
    pub turns: TurnBudget,
    /// Unfinished tasks, oldest first.
    pub open: Vec<TeamTask>,
    /// The most recently ended tasks, newest first.
    pub ended: Vec<TeamTask>,
}

const MAX_OPEN_TASKS: usize = 1_000;
const MAX_ENDED_TASKS: usize = 10;
/// Maximum number of ended teams in the list.
const MAX_ENDED_TEAMS: usize = 20;

impl TeamSnapshot {
    /// Renders the state for a member of the team or a person.
    pub fn prompt_block(&self, reader: TeamStateReader<'_>) -> String {
        state::render_team_state(&self.team, reader, &self.members, self.counts, (&self.open, &self.ended))
    }
}

impl TeamSnapshot {
    /// Returns the lead's status in the words used for members.
    pub fn lead_status(&self) -> &'static str {
        match (self.is_lead_lost, self.is_lead_working) {
            (true, _) => "lost",
            (false, true) => "working",
            (false, false) => "idle",
        }
    }

    /// Renders the state for a person.
    pub fn to_text(&self, locale: Locale) -> String {
        reply_text::team::team_details(locale, self)
    }
}

impl Engine {
    /// Returns all open teams by name, and the recently ended ones on request.
    pub async fn list_teams(&self, with_ended: bool) -> Result<Vec<Team>> {
        let read = move |tx: &mut Tx<'_>| {
            let mut all = teams::list_open(tx)?;
            if with_ended {
                all.extend(teams::list_ended(tx, MAX_ENDED_TEAMS)?);
            }
            Ok(all)
        };
        Ok(self.db().read(read).await?)
    }

    /// Returns a team's state for an actor.
    pub async fn team_snapshot(&self, actor: &TeamActor, name: &str) -> Result<TeamSnapshot> {
        let caller = self.observer(actor, name).await?;
        self.load_team_snapshot(caller.team).await
    }

    /// Returns the most recently ended team of a name, unless an open team has the name. People can still inspect it.
    pub(super) async fn find_ended_team(&self, name: &str) -> Result<Option<Team>> {
        let wanted = name.to_owned();
        let read = move |tx: &mut Tx<'_>| match teams::find_open_by_name(tx, &wanted)? {
            Some(_) => Ok(None),
            None => Ok(teams::list_ended_by_name(tx, &wanted)?.into_iter().next()),
        };
        Ok(self.db().read(read).await?)
    }

    /// Opens a team's ledger, including that of an ended team. `None` if its folder is gone.
    pub(super) async fn open_ledger_for_reading(&self, team: &Team) -> Result<Option<Db>> {
        if team.status != TeamStatus::Shutdown {
            return self.open_ledger(team).map(Some);
        }
        let folder = self.ended_team_folder(team).await.unwrap_or_default();
        match self.ports.ledgers.open_archived(&folder) {
            Ok(db) => Ok(Some(db)),
            Err(polyclaw_store::Error::Closed) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn load_team_snapshot(&self, team: Team) -> Result<TeamSnapshot> {
        let (wanted, limit) = (team.clone(), self.settings().teams.automatic_turns);
        let TeamRows {
            members,
            at_work,
            mut failure_streaks,
            mut unread,
            is_lead_lost,
            is_lead_working,
            turns,
        } = self.db().read(move |tx| load_team_rows(tx, &wanted, limit)).await?;
        let id = team.id.clone();
        let read = move |tx: &mut Tx<'_>| {
            let all = TaskListFilter {
                with_ended: true,
                limit: usize::from(u16::MAX),
                ..TaskListFilter::default()
            };
            let all = tasks::list(tx, &id, &all)?;
            Ok((TaskCounts::from_tasks(&all), all, tasks::list_last_ended(tx, &id, MAX_ENDED_TASKS)?))
        };
        let (counts, mut open, ended) = match self.open_ledger_for_reading(&team).await? {
            Some(ledger) => ledger.read(read).await?,
            None => Default::default(),
        };
        open.retain(|task| !task.state.has_ended());
        open.truncate(MAX_OPEN_TASKS);
        open.reverse();
        let lead_streak = failure_streaks.remove(LEAD_NAME);
        let lead_unread = unread.remove(LEAD_NAME).unwrap_or_default();
        let stands = |member: TeamMember| {
            let streak = failure_streaks.remove(&member.name);
            let unread = unread.remove(&member.name).unwrap_or_default();
            MemberStatus { failures: streak, unread, ..member_status(member, &at_work, &open) }
        };
        let members = members.into_iter().map(stands).collect();
        Ok(TeamSnapshot {
            team,
            members,
            lead_failure_streak: lead_streak,
            is_lead_lost,
            is_lead_working,
            lead_unread,
            counts,
            turns,
            open,
            ended,
        })
    }

    /// Returns messages of a team, newest first.
    pub async fn list_team_messages(
        &self,
        name: &str,
        limit: usize,
    ) -> Result<Vec<polyclaw_domain::team_message::TeamMessage>> {
        let team = match self.find_ended_team(name).await? {
            Some(team) => team,
            None => self.find_team(name).await?,
        };
        Ok(self.db().read(move |tx| team_messages::list_newest(tx, &team.id, limit)).await?)
    }

    /// Returns task events of a team after a sequence number.
    pub async fn list_task_events(
        &self,
        name: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<tasks::TaskEvent>> {
        let team = match self.find_ended_team(name).await? {
            Some(team) => team,
            None => self.find_team(name).await?,
        };
        let id = team.id.clone();
        match self.open_ledger_for_reading(&team).await? {
            Some(ledger) => Ok(ledger.read(move |tx| tasks::list_events(tx, &id, after, limit)).await?),
            None => Ok(Vec::new()),
        }
    }
}

/// A team's state from the main database.
struct TeamRows {
    members: Vec<TeamMember>,
    at_work: Vec<String>,
    failure_streaks: HashMap<String, FailureStreak>,
    unread: HashMap<String, usize>,
    is_lead_lost: bool,
    is_lead_working: bool,
    turns: TurnBudget,
}

fn load_team_rows(tx: &mut Tx<'_>, team: &Team, limit: u32) -> polyclaw_store::Result<TeamRows> {
    Ok(TeamRows {
        members: teams::list_members(tx, &team.id)?,
        at_work: teams::list_members_at_work(tx, &team.id)?,
        failure_streaks: teams::list_failure_streaks(tx, &team.id)?.into_iter().collect(),
        unread: team_messages::count_unread(tx, &team.id)?.into_iter().collect(),
        is_lead_lost: has_lost_lead(tx, team)?,
        is_lead_working: jobs::session_load(tx, &team.lead)?.running.is_some(),
        turns: load_turn_budget(tx, team, limit)?,
    })
}

fn member_status(member: TeamMember, at_work: &[String], open: &[TeamTask]) -> MemberStatus {
    let holds = |task: &&TeamTask| {
        task.state != TeamTaskState::Pending
            && task.lease.as_ref().is_some_and(|lease| lease.owner == member.name)
    };
    let tasks =
        open.iter().filter(holds).map(|task| format!("#{} {}", task.no, task.display_title())).collect();
    MemberStatus { is_working: at_work.contains(&member.name), tasks, member, failures: None, unread: 0 }
}
