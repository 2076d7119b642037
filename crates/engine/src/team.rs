//! Teams: a lead session, member sessions, a ledger of tasks and mailboxes.
//!
//! Two databases may be in play: sessions, teams and mail are in the main one, tasks in the team's ledger. What a ledger
//! has to tell is told from its events (`relay`), each once, so nothing depends on two commits happening together.

mod actor;
mod desk;
mod files;
mod hooks;
mod idle;
mod keep;
mod make;
mod offer;
mod plan;
mod post;
mod relay;
mod retry;
mod shutdown;
mod spawn;
mod spent;
mod turn;
mod verify;
mod view;
mod wake;
mod work;

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

pub use actor::Actor;
pub(crate) use desk::Desk;
pub(crate) use files::Files;
pub use hooks::{HookAnswer, TeamHooks};
pub(crate) use keep::keep;
pub use make::NewTeam;
pub use plan::MemberPlan;
pub use polyclaw_store::tasks::TaskChange;
pub use post::{Outgoing, Receipt};
pub use shutdown::{Ended, Outcome};
pub use spawn::{NewMember, Spawned};
pub use spent::TurnBudget;
pub(crate) use turn::{After, authority_of_teams, end_turn, mail_line};
pub use view::View;
pub use work::{Finish, NewTask, Update, Wanted};

impl Engine {
    /// The team that bears a name now.
    pub(crate) async fn team_named(&self, name: &str) -> Result<Team> {
        let wanted = name.to_owned();
        let found = self.db().read(move |tx| teams::find_open_by_name(tx, &wanted)).await?;
        found.ok_or_else(|| TeamRefusal::Unknown(quote_safely(name)).into())
    }

    pub(crate) fn ledger(&self, team: &Team) -> Result<Db> {
        Ok(self.ports.ledgers.open(&team.id, &team.name)?)
    }

    /// Records what happened to a team, and shows it to whoever watches its lead.
    pub(crate) async fn note_team(&self, team: &Team, data: Value) {
        self.hub.publish(&team.lead, FrameKind::Team { change: data.clone() });
        self.record(event(EventKind::TeamChanged, team, data)).await;
    }

    /// The keeper looks at this team when it looks next. It is not woken for that: many may claim in a second.
    pub(crate) fn mark_team(&self, id: &TeamId) {
        self.marked_teams.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
    }

    fn take_marked_teams(&self) -> HashSet<TeamId> {
        std::mem::take(&mut *self.marked_teams.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The keeper of teams looks at once.
    pub(crate) fn look_after_teams(&self) {
        self.team_wake.notify_one();
    }
}

/// What happened to a team, as it is recorded.
fn event(kind: EventKind, team: &Team, data: Value) -> NewEvent {
    NewEvent {
        kind,
        session: Some(team.lead.clone()),
        turn: None,
        agent: Some(team.lead_agent.clone()),
        trace: Some(team.trace.clone()),
        data,
    }
}
