//! Teams: a lead session, member sessions, a ledger of tasks and mailboxes.
//!
//! Two databases may be in play: sessions, teams and mail are in the main one, tasks in the team's ledger. What a ledger
//! has to tell is told from its events (`relay`), each once, so nothing depends on two commits happening together.

mod actor;
mod create;
mod files;
mod hooks;
mod idle;
mod messages;
mod offer;
mod plan;
mod prompt_context;
mod reconcile;
mod relay;
mod retry;
mod shutdown;
mod spawn;
mod tasks;
mod turn;
mod turn_budget;
mod verify;
mod view;
mod wake;

use std::collections::HashSet;
use std::sync::PoisonError;

use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::TeamId;
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::team::{Team, TeamRefusal};
use polyclaw_store::{Db, teams};
use serde_json::Value;

use crate::core::Engine;
use crate::error::Result;
use crate::hub::FrameKind;

pub use actor::TeamActor;
pub use create::NewTeam;
pub(crate) use files::TeamFileCache;
pub use hooks::{HookAnswer, TeamHooks};
pub use messages::{OutgoingTeamMessage, TeamMessageReceipt};
pub use plan::MemberPlan;
pub use polyclaw_store::tasks::TaskChange;
pub(crate) use prompt_context::TeamPromptContext;
pub(crate) use reconcile::run_reconcile_loop;
pub use shutdown::{MemberShutdownOutcome, TeamShutdownStatus};
pub use spawn::{NewMember, SpawnedTeammate};
pub use tasks::{NewTeamTask, TaskFilter, TaskOutcome, TeamTaskUpdate};
pub(crate) use turn::{TurnFollowUp, authority_of_teams, end_team_turn, mail_line};
pub use turn_budget::TurnBudget;
pub use view::TeamSnapshot;

impl Engine {
    /// The team that bears a name now.
    pub(crate) async fn find_team(&self, name: &str) -> Result<Team> {
        let wanted = name.to_owned();
        let found = self.db().read(move |tx| teams::find_open_by_name(tx, &wanted)).await?;
        found.ok_or_else(|| TeamRefusal::Unknown(quote_safely(name)).into())
    }

    pub(crate) fn open_ledger(&self, team: &Team) -> Result<Db> {
        Ok(self.ports.ledgers.open(&team.id, &team.name)?)
    }

    /// Records what happened to a team, and shows it to whoever watches its lead.
    pub(crate) async fn record_team_event(&self, team: &Team, data: Value) {
        self.hub.publish(&team.lead, FrameKind::Team { change: data.clone() });
        self.record_event(team_event(EventKind::TeamChanged, team, data)).await;
    }

    /// The keeper looks at this team when it looks next. It is not woken for that: many may claim in a second.
    pub(crate) fn mark_team(&self, id: &TeamId) {
        self.marked_teams.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
    }

    fn take_marked_teams(&self) -> HashSet<TeamId> {
        std::mem::take(&mut *self.marked_teams.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The keeper of teams looks at once.
    pub(crate) fn wake_reconciler(&self) {
        self.team_wake.notify_one();
    }
}

/// What happened to a team, as it is recorded.
fn team_event(kind: EventKind, team: &Team, data: Value) -> NewEvent {
    NewEvent {
        kind,
        session: Some(team.lead.clone()),
        turn: None,
        agent: Some(team.lead_agent.clone()),
        trace: Some(team.trace.clone()),
        data,
    }
}
