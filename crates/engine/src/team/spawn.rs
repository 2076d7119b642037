//! A new member, or a new life of an old one: limits, session, member and first message, all or nothing.

use std::sync::Arc;

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::channel::Address;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::job::Lane;
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::policy::Lent;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::run::{Limits, RunKind};
use polyclaw_domain::session::{Session, Status};
use polyclaw_domain::team::{
    self, MAX_CAPABILITIES, Member, MemberState, Refusal, Team, TeamRole, TeamStatus,
};
use polyclaw_domain::time::Millis;
use polyclaw_store::{Tx, agents, letters, sessions, tasks, teams};
use serde::Serialize;
use serde_json::json;

use super::actor::{Actor, Insider};
use super::wake::wake;
use crate::core::Engine;
use crate::deed::After;
use crate::error::{Error, Result};
use crate::family::check_walls;
use crate::ingress::{self, Fresh, Here, Injection, Relayed, Way};
use crate::session::stop;
use crate::settings::Settings;

#[derive(Clone, Debug, Default)]
pub struct NewMember {
    pub name: String,
    pub agent: Option<AgentId>,
    pub model: Option<ModelRef>,
    /// Its first message. Without one it waits for mail.
    pub task: Option<String>,
    pub role: Option<String>,
    pub capabilities: Vec<String>,
    /// The name may be taken from a member that is there.
    pub replaces: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Spawned {
    pub name: String,
    pub session_key: SessionKey,
    /// Tasks an earlier life of it held.
    pub inherited: Vec<polyclaw_domain::task::TaskNo>,
}

/// Deeper than any family may be.
const DEEPEST: u32 = 5;

/// What a join has stored.
struct Life {
    member: Member,
    /// The session of its earlier life, if that was there, and what its end means here.
    replaced: Option<(SessionKey, Vec<After>)>,
    /// Its first message.
    first: Option<ingress::Stored>,
    /// The lane in which it is ready to read what waited for its name.
    ready: Option<Lane>,
}

/// What is new about its session.
struct Own {
    uuid: String,
    lent: Lent,
}

type Joined = std::result::Result<Life, Error>;

impl Engine {
    pub async fn spawn_teammate(&self, actor: &Actor, team: &str, new: NewMember) -> Result<Spawned> {
        let insider = self.insider(actor, team).await?;
        insider.only_lead()?;
        insider.only_active()?;
        team::check_member_name(&new.name)?;
        let new = self.cleaned(new)?;
        let (wanted, fresh, here) = (insider.team.clone(), Fresh::new(self, None), Arc::new(Here::of(self)));
        let lent = self.lent_by(&insider.team.lead, actor.turn()).await?;
        let (own, settings) = (Own { uuid: actor.call().to_lowercase(), lent }, self.settings());
        let write = move |tx: &mut Tx<'_>| join(tx, &wanted, (&new, &own), &settings, (&fresh, &here));
        let Life { member, replaced, first, ready } = self.db().write(write).await??;
        if let Some((old, after)) = replaced {
            self.follow(after);
            // What it began ends, too.
            let _ = self.stop(&old).await;
        }
        let inherited = self.inherit(&insider, &member).await?;
        if let Some((accepted, inbound, begun)) = first {
            self.announce_accepted(&accepted, inbound);
            self.go_on(&accepted, begun);
        }
        ready.into_iter().for_each(|lane| self.lanes.wake(lane));
        self.write_team(&insider.team).await?;
        let data = json!({ "team": insider.team.name, "change": "joined", "member": member.name,
            "session_key": member.session });
        self.note_team(&insider.team, data).await;
        self.look_after_teams();
        Ok(Spawned { name: member.name, session_key: member.session, inherited })
    }

    fn cleaned(&self, mut new: NewMember) -> Result<NewMember> {
        if new.capabilities.len() > MAX_CAPABILITIES {
            return Err(Refusal::Letter("a member has at most 8 capabilities").into());
        }
        for text in new.task.iter_mut().chain(new.role.iter_mut()) {
            self.redactor().string(text);
        }
        Ok(new)
    }

    async fn inherit(
        &self,
        insider: &Insider,
        member: &Member,
    ) -> Result<Vec<polyclaw_domain::task::TaskNo>> {
        let (id, name, session) = (insider.team.id.clone(), member.name.clone(), member.session.clone());
        let (now, lease_ms) = (self.now(), self.task_lease_ms());
        let write = move |tx: &mut Tx<'_>| tasks::inherit(tx, &id, &name, &session, (now, lease_ms));
        Ok(self.ledger(&insider.team)?.write(write).await?)
    }
}

fn join(
    tx: &mut Tx<'_>,
    team: &Team,
    (new, own): (&NewMember, &Own),
    settings: &Settings,
    (fresh, here): (&Fresh, &Here),
) -> polyclaw_store::Result<Joined> {
    // The row of the session that had the name comes before the team's, as everywhere.
    if let Some(old) = teams::member(tx, &team.id, &new.name)? {
        sessions::lock(tx, &old.session)?;
    }
    // The team's row before anything is looked at: two at once are counted one after the other.
    let Some(team) = teams::lock(tx, &team.id)? else {
        return Ok(Err(Refusal::Unknown(team.name.clone()).into()));
    };
    let Some(lead) = sessions::get(tx, &team.lead)? else {
        return Ok(Err(Error::UnknownSession(team.lead.to_string())));
    };
    let agent = new.agent.clone().unwrap_or_else(|| lead.active_agent.clone());
    let session = SessionKey::of(&agent, &["teammate", &own.uuid]);
    let known = teams::member(tx, &team.id, &new.name)?;
    if let Some(again) = known.clone().filter(|member| member.session == session) {
        return Ok(Ok(Life { member: again, replaced: None, first: None, ready: None }));
    }
    // It may have been asked to end since it was looked at: whoever came now would be asked by nobody.
    if team.status != TeamStatus::Active {
        return Ok(Err(Refusal::NotActive(team.name.clone(), team.status).into()));
    }
    if let Err(refused) =
        check(tx, &team, (&lead, &agent), new, (known.as_ref(), settings.teams.max_members))?
    {
        return Ok(Err(refused));
    }
    let member =
        member(&team, new, (session, agent), known.as_ref(), teams::members(tx, &team.id)?.len(), fresh.now);
    let lent = Some(own.lent.clone());
    let begun = Session { model_override: new.model.clone(), lent, ..child(&member, &lead, fresh) };
    sessions::ensure(tx, &begun)?;
    let replaced = match &known {
        Some(old) => {
            sessions::set_team_role(tx, &old.session, None, fresh.now)?;
            teams::replace_member(tx, &member)?;
            (old.state == MemberState::Active).then(|| retire(tx, old, fresh.now)).transpose()?
        }
        None => teams::add_member(tx, &member).map(|()| None)?,
    };
    let Some(task) = new.task.as_ref().filter(|task| !task.trim().is_empty()) else {
        let (letters, _) = letters::waiting(tx, &team.id, &member.name)?;
        let ready = match letters {
            0 => None,
            _ => wake(tx, &team, &member.session, fresh, settings)?,
        };
        return Ok(Ok(Life { member, replaced, first: None, ready }));
    };
    let first = first_message(&team, &member);
    let fresh = Fresh { trace: team.trace.clone(), ..fresh.clone() };
    match ingress::inject(tx, (&member.session, task), first, &fresh, here)? {
        (Ok((accepted, begun)), inbound) => {
            Ok(Ok(Life { member, replaced, first: Some((accepted, inbound, begun)), ready: None }))
        }
        // Nothing of this transaction stands.
        (Err(refused), _) => Err(polyclaw_store::Error::Conflict(ingress::in_words(&refused))),
    }
}

/// The earlier life of a member does nothing more, also where nobody comes back from here to say so.
fn retire(tx: &mut Tx<'_>, old: &Member, now: Millis) -> polyclaw_store::Result<(SessionKey, Vec<After>)> {
    let (_, after) = stop(tx, &old.session, now)?;
    sessions::set_status(tx, &old.session, Status::Archived)?;
    Ok((old.session.clone(), after))
}

fn check(
    tx: &mut Tx<'_>,
    team: &Team,
    (lead, agent): (&Session, &AgentId),
    new: &NewMember,
    (known, most): (Option<&Member>, u32),
) -> polyclaw_store::Result<std::result::Result<(), Error>> {
    if known.is_some_and(|member| member.state == MemberState::Active && !new.replaces) {
        return Ok(Err(Refusal::MemberExists(new.name.clone()).into()));
    }
    let active = teams::members(tx, &team.id)?;
    let active =
        active.iter().filter(|member| member.state == MemberState::Active && member.name != new.name);
    if active.count() >= usize::try_from(most).unwrap_or(usize::MAX) {
        return Ok(Err(Refusal::TooManyMembers(most).into()));
    }
    let own = agents::get(tx, &lead.active_agent)?.map(|stored| stored.spec);
    let own = own.unwrap_or_else(|| AgentSpec::named(lead.active_agent.clone()));
    let Some(target) = agents::get(tx, agent)?.map(|stored| stored.spec) else {
        return Ok(Err(Error::UnknownAgent(agent.to_string())));
    };
    if let Err(refused) = check_walls(lead, &own, &target) {
        return Ok(Err(refused));
    }
    if !own.subagents.allows(&own.agent_id, agent) {
        return Ok(Err(Error::Family(format!(
            "'{}' may not begin members that are '{agent}'; add it to subagents.allow_agents",
            own.agent_id
        ))));
    }
    let limits = Limits { depth: own.subagents.max_spawn_depth.min(DEEPEST), children: u32::MAX };
    let deep = limits.check(lead.spawn_depth + 1, 0);
    Ok(deep.map_err(|refused| Error::TooMany(RunKind::Subagent, refused)))
}

fn member(
    team: &Team,
    new: &NewMember,
    (session, agent): (SessionKey, AgentId),
    known: Option<&Member>,
    n: usize,
    now: Millis,
) -> Member {
    Member {
        team: team.id.clone(),
        name: new.name.clone(),
        session,
        agent,
        role: new
            .role
            .clone()
            .or_else(|| known.map(|old| old.role.clone()))
            .unwrap_or_else(|| "member".to_owned()),
        capabilities: match (new.capabilities.is_empty(), known) {
            (true, Some(old)) => old.capabilities.clone(),
            _ => new.capabilities.clone(),
        },
        color: known.map_or_else(|| team::color(n).to_owned(), |old| old.color.clone()),
        state: MemberState::Active,
        joined_at: known.map_or(now, |old| old.joined_at),
        last_active_at: now,
    }
}

/// Nothing it says leaves by itself: its team sees what it sends.
fn child(member: &Member, lead: &Session, fresh: &Fresh) -> Session {
    let begun =
        Session::begun(member.session.clone(), fresh.session.clone(), member.agent.clone(), fresh.now);
    Session {
        owner: Some(lead.key.clone()),
        lane: Lane::Teammate,
        spawn_depth: lead.spawn_depth + 1,
        delegation_depth: lead.delegation_depth,
        delivers: false,
        sends: false,
        address: Some(Address::internal()),
        title: Some(member.name.clone()),
        team_role: Some(TeamRole::Member),
        ..begun
    }
}

fn first_message(team: &Team, member: &Member) -> Injection {
    let relayed = Relayed { from: team.lead.clone(), hop: 1, trace: team.trace.clone(), way: Way::Begin };
    let meta = Some(json!({ "asked_by": team.asked_by() }));
    Injection {
        meta,
        ..Injection::between(team.lead_agent.clone(), relayed, format!("begin:{}", member.session))
    }
}
