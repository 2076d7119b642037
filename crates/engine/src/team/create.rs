//! Creates a team, or takes over the lead of a team whose lead session is gone.

use polyclaw_domain::authority::Authority;
use polyclaw_domain::id::{TeamId, TraceId, TurnId};
use polyclaw_domain::session::{Session, SessionStatus};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::{self, Team, TeamRefusal, TeamRole, TeamStatus};
use polyclaw_store::{Tx, jobs, sessions, team_messages, teams};
use serde_json::json;

use super::TeamActor;
use super::wake::wake_session;
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::ingress::NewIds;
use crate::subagents::{authority_in, reply_addresses};

#[derive(Clone, Debug)]
pub struct NewTeam {
    pub name: String,
    pub description: String,
    pub agent_type: String,
    /// The lead's session.
    pub lead: SessionKey,
    /// The requesting turn, if any. People waiting for it also wait for the team.
    pub turn: Option<TurnId>,
}

const MAX_DESCRIPTION_CHARS: usize = 2_000;

impl Engine {
    /// Creates a team with its folder and its ledger. A repeated call returns the same team. A session of the same
    /// agent takes over a team whose lead session is gone.
    pub async fn create_team(&self, actor: &TeamActor, mut new: NewTeam) -> Result<Team> {
        team::check_team_name(&new.name).map_err(TeamRefusal::from)?;
        let length = new.description.chars().count();
        if length > MAX_DESCRIPTION_CHARS {
            return Err(Error::TooLong(length, MAX_DESCRIPTION_CHARS));
        }
        self.redactor().redact_in_place(&mut new.description);
        self.free_team_name_folder(&new.name, None).await?;
        let id = TeamId::new(actor.call_id());
        let (now, most, trace) = (self.now(), self.settings().teams.max_teams, TraceId::new(self.next_id()));
        let write = move |tx: &mut Tx<'_>| insert_team(tx, &new, &id, (now, most), &trace);
        let (team, is_new) = self.db().write(write).await??;
        // The previous team of this name may have ended since the first check.
        if self.free_team_name_folder(&team.name, Some(&team.id)).await? {
            self.ports.ledgers.close_for_good(&team.id);
        }
        self.open_ledger(&team)?;
        self.write_team_files(&team).await?;
        if is_new {
            let data = json!({ "team": team.name, "change": "created" });
            self.record_team_event(&team, data).await;
        }
        self.wake_reconciler();
        Ok(team)
    }

    /// Makes another session the lead of a team.
    pub async fn set_team_lead(&self, name: &str, lead: &SessionKey) -> Result<Team> {
        let team = self.find_team(name).await?;
        let (wanted, fresh, settings) = (lead.clone(), NewIds::new(self, None), self.settings());
        let write = move |tx: &mut Tx<'_>| {
            let Some(session) = sessions::get(tx, &wanted)? else {
                return Ok(Err(Error::UnknownSession(wanted.to_string())));
            };
            if session.team_role == Some(TeamRole::Member) {
                return Ok(Err(TeamRefusal::NotLead.into()));
            }
            let team = take_over_lead(tx, &team, &session, fresh.now)?;
            let (message_count, idle) = team_messages::count_waiting(tx, &team.id, team::LEAD_NAME)?;
            let ready = match message_count + idle {
                0 => None,
                _ => wake_session(tx, &team, &wanted, &fresh, &settings)?,
            };
            Ok(Ok((team, ready)))
        };
        let (team, ready) = self.db().write(write).await??;
        ready.into_iter().for_each(|lane| self.lanes.wake(lane));
        self.write_team_files(&team).await?;
        let data = json!({ "team": team.name, "change": "lead", "session_key": lead });
        self.record_team_event(&team, data).await;
        Ok(team)
    }
}

type CreateTeamResult = std::result::Result<(Team, bool), Error>;

fn insert_team(
    tx: &mut Tx<'_>,
    new: &NewTeam,
    id: &TeamId,
    (now, most): (polyclaw_domain::time::Millis, u32),
    trace: &TraceId,
) -> polyclaw_store::Result<CreateTeamResult> {
    // Concurrent calls are counted one after the other and see each other's names.
    tx.lock_advisory("a team begins")?;
    if let Some(team) = teams::get(tx, id)? {
        return Ok(Ok((team, false)));
    }
    let Some(lead) = sessions::get(tx, &new.lead)? else {
        return Ok(Err(Error::UnknownSession(new.lead.to_string())));
    };
    if lead.team_role == Some(TeamRole::Member) {
        return Ok(Err(TeamRefusal::NotLead.into()));
    }
    if let Some(team) = teams::find_open_by_name(tx, &new.name)? {
        return match has_lost_lead(tx, &team)? && team.lead_agent == lead.active_agent {
            true => {
                let authority = team_authority(tx, new)?;
                teams::lower_authority(tx, &team.id, authority)?;
                Ok(Ok((take_over_lead(tx, &team, &lead, now)?, true)))
            }
            false => Ok(Err(TeamRefusal::Exists(new.name.clone()).into())),
        };
    }
    let authority = team_authority(tx, new)?;
    if let Some(refusal) = check_team_count(tx, authority, most)? {
        return Ok(Err(refusal.into()));
    }
    let turn = match &new.turn {
        Some(turn) => jobs::get(tx, turn)?,
        None => None,
    };
    let team = Team {
        id: id.clone(),
        name: new.name.clone(),
        description: new.description.clone(),
        agent_type: new.agent_type.clone(),
        status: TeamStatus::Active,
        lead: lead.key.clone(),
        lead_agent: lead.active_agent.clone(),
        trace: turn.as_ref().map_or_else(|| trace.clone(), |turn| turn.trace.clone()),
        // A team created by hand works for the address of its lead.
        reply_to: match &turn {
            Some(turn) => reply_addresses(tx, &turn.turn)?,
            None => lead.address.iter().cloned().collect(),
        },
        authority,
        created_at: now,
        updated_at: now,
    };
    teams::insert(tx, &team)?;
    sessions::set_team_role(tx, &lead.key, Some(TeamRole::Lead), now)?;
    Ok(Ok((team, true)))
}

/// Whether one more team is too many. Those of other people than owners are half of all at most: they cannot leave an
/// owner without one.
fn check_team_count(
    tx: &mut Tx<'_>,
    authority: Authority,
    most: u32,
) -> polyclaw_store::Result<Option<TeamRefusal>> {
    let open = teams::list_open(tx)?;
    let is_reached = |count: usize, most: u32| count >= usize::try_from(most).unwrap_or(usize::MAX);
    if is_reached(open.len(), most) {
        return Ok(Some(TeamRefusal::TooManyTeams(most)));
    }
    let others = open.iter().filter(|team| team.authority != Authority::Owner).count();
    let refused = authority != Authority::Owner && is_reached(others, most / 2);
    Ok(refused.then_some(TeamRefusal::TooManyTeamsOfOthers(most / 2)))
}

/// Where no turn asks, somebody does who may do everything.
fn team_authority(tx: &mut Tx<'_>, new: &NewTeam) -> polyclaw_store::Result<Authority> {
    new.turn.as_ref().map_or(Ok(Authority::Owner), |turn| authority_in(tx, &new.lead, turn))
}

/// Whether the lead's session is deleted or archived.
pub(super) fn has_lost_lead(tx: &mut Tx<'_>, team: &Team) -> polyclaw_store::Result<bool> {
    Ok(sessions::get(tx, &team.lead)?.is_none_or(|session| session.status == SessionStatus::Archived))
}

fn take_over_lead(
    tx: &mut Tx<'_>,
    team: &Team,
    lead: &Session,
    now: polyclaw_domain::time::Millis,
) -> polyclaw_store::Result<Team> {
    sessions::set_team_role(tx, &lead.key, Some(TeamRole::Lead), now)?;
    teams::set_lead(tx, &team.id, &lead.key, &lead.active_agent, now)?;
    Ok(teams::get(tx, &team.id)?.unwrap_or_else(|| team.clone()))
}
