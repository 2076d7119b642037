//! Teams: a lead session, member sessions, a ledger of tasks, and mailboxes.
//!
//! Two databases may be involved: sessions, teams and team messages are in the main one, tasks in the team's ledger.
//! Events of the ledger are relayed to sessions exactly once (`relay`), so no two commits have to happen together.

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
    /// Returns the open team of this name.
    pub(crate) async fn find_team(&self, name: &str) -> Result<Team> {
        let wanted = name.to_owned();
        let found = self.db().read(move |tx| teams::find_open_by_name(tx, &wanted)).await?;
        found.ok_or_else(|| TeamRefusal::Unknown(quote_safely(name)).into())
    }

    pub(crate) fn open_ledger(&self, team: &Team) -> Result<Db> {
        Ok(self.ports.ledgers.open(&team.id, &team.name)?)
    }

    /// Records a team event and publishes it to subscribers of the lead's session.
    pub(crate) async fn record_team_event(&self, team: &Team, data: Value) {
        self.hub.publish(&team.lead, FrameKind::Team { change: data.clone() });
        self.record_event(team_event(EventKind::TeamChanged, team, data)).await;
    }

    /// Marks a team for the next reconcile pass. This does not wake the reconciler, because many tasks may be claimed
    /// in a second.
    pub(crate) fn mark_team(&self, id: &TeamId) {
        self.marked_teams.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
    }

    fn take_marked_teams(&self) -> HashSet<TeamId> {
        std::mem::take(&mut *self.marked_teams.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts a reconcile pass now.
    pub(crate) fn wake_reconciler(&self) {
        self.team_wake.notify_one();
    }
}

/// Builds a team's event.
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
