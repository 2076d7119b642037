//! Who acts on a team: its lead, a member, or an operator of the instance.

use polyclaw_domain::id::TurnId;
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::task::TaskMember;
use polyclaw_domain::team::{
    LEAD_NAME, MemberState, OPERATOR_NAME, Team, TeamMember, TeamRefusal, TeamStatus,
};
use polyclaw_store::{Tx, teams};

use crate::core::Engine;
use crate::error::Result;
use crate::subagents::authority_in;

/// The caller of a team operation. Permissions follow from the stored rows, never from what the caller claims.
#[derive(Clone, Debug)]
pub enum TeamActor {
    /// A tool call in a session's turn. A repeated call is the same operation.
    Session { key: SessionKey, turn: TurnId, call: String },
    /// A person using the command line or the API.
    Operator { call: String },
    /// A person or program acting as the lead or a member, with exactly that name's permissions.
    OnBehalfOf { name: String, call: String },
}

impl TeamActor {
    pub fn call_id(&self) -> &str {
        match self {
            Self::Session { call, .. } | Self::Operator { call } | Self::OnBehalfOf { call, .. } => call,
        }
    }

    /// The turn of the call, if it is one.
    pub(super) fn turn_id(&self) -> Option<&TurnId> {
        match self {
            Self::Session { turn, .. } => Some(turn),
            Self::Operator { .. } | Self::OnBehalfOf { .. } => None,
        }
    }

    /// Acts as a member, or as the lead if no member is named.
    pub fn on_behalf_of(member: Option<String>, call: String) -> Self {
        Self::OnBehalfOf { name: member.unwrap_or_else(|| LEAD_NAME.to_owned()), call }
    }
}

/// An actor and its role in a team.
#[derive(Clone, Debug)]
pub(crate) struct TeamCaller {
    pub team: Team,
    pub worker: TaskMember,
    /// `None` for the lead and the operator.
    pub member: Option<TeamMember>,
}

impl TeamCaller {
    pub fn require_lead(&self) -> Result<()> {
        if self.worker.is_lead { Ok(()) } else { Err(TeamRefusal::NotLead.into()) }
    }

    pub fn require_active(&self) -> Result<()> {
        match self.team.status {
            TeamStatus::Active => Ok(()),
            status => Err(TeamRefusal::NotActive(self.team.name.clone(), status).into()),
        }
    }
}

impl Engine {
    /// Finds the team and the actor's role in it for an operation that changes something. The team's authority is
    /// lowered to that of the people the operation is done for.
    pub(crate) async fn find_team_caller(&self, actor: &TeamActor, team: &str) -> Result<TeamCaller> {
        let mut caller = self.reader(actor, team).await?;
        let TeamActor::Session { key, turn, .. } = actor else { return Ok(caller) };
        let (key, turn) = (key.clone(), turn.clone());
        let authority = self.db().read(move |tx| authority_in(tx, &key, &turn)).await?;
        if authority < caller.team.authority {
            let id = caller.team.id.clone();
            self.db().write(move |tx| teams::lower_authority(tx, &id, authority)).await?;
            caller.team.authority = authority;
        }
        Ok(caller)
    }

    /// Like `find_team_caller`, for reading only.
    pub(super) async fn reader(&self, actor: &TeamActor, team: &str) -> Result<TeamCaller> {
        let team = self.find_team(team).await?;
        self.team_caller(actor, team).await
    }

    /// Like `reader`; operators also find teams that have ended.
    pub(super) async fn observer(&self, actor: &TeamActor, team: &str) -> Result<TeamCaller> {
        let ended = match actor {
            TeamActor::Operator { .. } => self.find_ended_team(team).await?,
            _ => None,
        };
        match ended {
            Some(team) => self.team_caller(actor, team).await,
            None => self.reader(actor, team).await,
        }
    }

    async fn team_caller(&self, actor: &TeamActor, team: Team) -> Result<TeamCaller> {
        let refusal = match actor {
            TeamActor::OnBehalfOf { name, .. } => TeamRefusal::NotAMember(quote_safely(name)),
            _ => TeamRefusal::NotInTeam(team.name.clone()),
        };
        let actor = actor.clone();
        let caller = self.db().read(move |tx| find_caller(tx, &actor, team.clone())).await?;
        caller.ok_or_else(|| refusal.into())
    }
}

fn find_caller(tx: &mut Tx<'_>, actor: &TeamActor, team: Team) -> polyclaw_store::Result<Option<TeamCaller>> {
    let worker = |name: &str, session: &SessionKey| TaskMember {
        name: name.to_owned(),
        session: session.clone(),
        capabilities: Vec::new(),
        is_lead: true,
    };
    let leads = match actor {
        TeamActor::Operator { .. } => Some(OPERATOR_NAME),
        TeamActor::OnBehalfOf { name, .. } if name == LEAD_NAME => Some(LEAD_NAME),
        TeamActor::Session { key, .. } if *key == team.lead => Some(LEAD_NAME),
        _ => None,
    };
    if let Some(name) = leads {
        return Ok(Some(TeamCaller { worker: worker(name, &team.lead), member: None, team }));
    }
    let found = match actor {
        TeamActor::Session { key, .. } => teams::find_member_by_session(tx, key)?,
        TeamActor::OnBehalfOf { name, .. } => teams::get_member(tx, &team.id, name)?,
        TeamActor::Operator { .. } => None,
    };
    let own = found.filter(|member| member.team == team.id && member.state == MemberState::Active);
    Ok(own.map(|member| TeamCaller { team, worker: to_task_member(&member), member: Some(member) }))
}

pub(crate) fn to_task_member(member: &TeamMember) -> TaskMember {
    TaskMember {
        name: member.name.clone(),
        session: member.session.clone(),
        capabilities: member.capabilities.clone(),
        is_lead: false,
    }
}
