//! A new member, or a new life of an old one: limits, session, member and first message, all or nothing.

use std::sync::Arc;

use polyclaw_domain::agent::{AgentSpec, MemberTools};
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{AgentId, uuid_for_call};
use polyclaw_domain::job::JobLane;
use polyclaw_domain::policy::InheritedTools;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::run::{RunKind, SpawnLimits};
use polyclaw_domain::session::{Session, SessionStatus};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::{
    self, MAX_CAPABILITIES, MemberState, PlanApproval, Team, TeamMember, TeamRefusal, TeamRole, TeamStatus,
};
use polyclaw_domain::time::Millis;
use polyclaw_store::{Tx, agents, sessions, tasks, team_messages, teams};
use serde::Serialize;
use serde_json::json;

use super::actor::{Actor, Insider};
use super::wake::wake;
use crate::core::Engine;
use crate::deed::After;
use crate::error::{Error, Result};
use crate::family::check_walls;
use crate::ingress::{self, Fresh, Here, Injection, Relayed, Way};
use crate::session::stop_all;
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
    /// It may only read until the lead approves its plan.
    pub plan_mode_required: bool,
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
    member: TeamMember,
    /// What the end of its earlier life means here.
    stopped: Vec<After>,
    /// Its first message.
    first: Option<ingress::Stored>,
    /// The lane in which it is ready to read what waited for its name.
    ready: Option<JobLane>,
}

/// What is new about its session.
struct Own {
    uuid: String,
    lent: Option<InheritedTools>,
}

type Joined = std::result::Result<Life, Error>;

impl Engine {
    pub async fn spawn_teammate(&self, actor: &Actor, team: &str, new: NewMember) -> Result<Spawned> {
        let insider = self.insider(actor, team).await?;
        insider.only_lead()?;
        insider.only_active()?;
        team::check_member_name(&new.name)?;
        let new = self.cleaned(new)?;
        self.check_model(new.model.as_ref()).await?;
        let lent = self.lent_to_members(&insider.team, actor).await?;
        let own = Own { uuid: uuid_for_call(actor.call()), lent };
        let Life { member, stopped, first, ready } = self.begin_life(&insider.team, new, own).await?;
        self.follow(stopped);
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

    /// What members may use at most. An agent whose config says so leads members that have the tools of their own agents:
    /// then nothing is lent, and nothing that the lead lacks is kept from them.
    async fn lent_to_members(&self, team: &Team, actor: &Actor) -> Result<Option<InheritedTools>> {
        let lead = team.lead.clone();
        let read = move |tx: &mut Tx<'_>| {
            let Some(session) = sessions::get(tx, &lead)? else { return Ok(None) };
            Ok(agents::get(tx, &session.active_agent)?.map(|stored| stored.spec.subagents.member_tools))
        };
        if self.db().read(read).await? == Some(MemberTools::Own) {
            return Ok(None);
        }
        self.lent_by(&team.lead, actor.turn()).await.map(Some)
    }

    async fn begin_life(&self, team: &Team, new: NewMember, own: Own) -> Result<Life> {
        let (fresh, here, asked) = (Fresh::new(self, None), Arc::new(Here::of(self)), Arc::new((new, own)));
        loop {
            let (engine, wanted, asked) = (self.clone(), team.clone(), Arc::clone(&asked));
            let (fresh, here) = (fresh.clone(), Arc::clone(&here));
            let write =
                move |tx: &mut Tx<'_>| join(tx, &engine, &wanted, (&asked.0, &asked.1), (&fresh, &here));
            if let Some(life) = self.db().write(write).await? {
                return life;
            }
        }
    }

    fn cleaned(&self, mut new: NewMember) -> Result<NewMember> {
        if new.capabilities.len() > MAX_CAPABILITIES {
            return Err(TeamRefusal::Message("a member has at most 8 capabilities").into());
        }
        for text in new.task.iter_mut().chain(new.role.iter_mut()) {
            self.redactor().redact_in_place(text);
        }
        Ok(new)
    }

    async fn inherit(
        &self,
        insider: &Insider,
        member: &TeamMember,
    ) -> Result<Vec<polyclaw_domain::task::TaskNo>> {
        let (id, name, session) = (insider.team.id.clone(), member.name.clone(), member.session.clone());
        let (now, lease_ms) = (self.now(), self.task_lease_ms());
        let write =
            move |tx: &mut Tx<'_>| tasks::reassign_to_session(tx, &id, &name, &session, (now, lease_ms));
        Ok(self.ledger(&insider.team)?.write(write).await?)
    }
}

/// `None`: the name was given to another while this one waited for the team's row.
fn join(
    tx: &mut Tx<'_>,
    engine: &Engine,
    team: &Team,
    (new, own): (&NewMember, &Own),
    (fresh, here): (&Fresh, &Here),
) -> polyclaw_store::Result<Option<Joined>> {
    let settings = engine.settings();
    let most = settings.teams.max_members;
    let before = match plan(tx, team, (new, own), most)? {
        Ok(plan) => plan,
        Err(refused) => return Ok(Some(Err(refused))),
    };
    // Whoever had the name does nothing more, nor does what it began; rows of sessions come before the team's, as
    // everywhere. Where this is refused after all, it was stopped and is still there.
    let mut stopped = Vec::new();
    if let Some(old) = &before.known {
        sessions::lock(tx, &old.session)?;
    }
    if let Some(old) = before.replaced() {
        stopped = stop_all(tx, engine, &old.session)?.1;
    }
    // The team's row before it is looked at for good: two at once are counted one after the other.
    teams::lock_team(tx, &team.id)?;
    Ok(match plan(tx, team, (new, own), most)? {
        Ok(plan) if plan.session_before() != before.session_before() => None,
        Ok(plan) => {
            Some(begin(tx, &settings, plan, (new, own), (fresh, here))?.map(|life| Life { stopped, ..life }))
        }
        Err(refused) => Some(Err(refused)),
    })
}

/// What a new life would be.
struct Plan {
    team: Team,
    lead: Session,
    agent: AgentId,
    session: SessionKey,
    /// Whoever bears the name.
    known: Option<TeamMember>,
}

impl Plan {
    fn session_before(&self) -> Option<&SessionKey> {
        self.known.as_ref().map(|member| &member.session)
    }

    /// The life that this very call began when it was made before.
    fn made(&self) -> Option<&TeamMember> {
        self.known.as_ref().filter(|member| member.session == self.session)
    }

    /// The life that ends with this one.
    fn replaced(&self) -> Option<&TeamMember> {
        self.known.as_ref().filter(|old| old.state == MemberState::Active && old.session != self.session)
    }
}

/// Where it may be.
fn plan(
    tx: &mut Tx<'_>,
    team: &Team,
    (new, own): (&NewMember, &Own),
    most: u32,
) -> polyclaw_store::Result<std::result::Result<Plan, Error>> {
    let Some(team) = teams::get(tx, &team.id)? else {
        return Ok(Err(TeamRefusal::Unknown(team.name.clone()).into()));
    };
    let Some(lead) = sessions::get(tx, &team.lead)? else {
        return Ok(Err(Error::UnknownSession(team.lead.to_string())));
    };
    let agent = new.agent.clone().unwrap_or_else(|| lead.active_agent.clone());
    let known = teams::get_member(tx, &team.id, &new.name)?;
    let session = SessionKey::from_parts(&agent, &["teammate", &own.uuid]);
    let plan = Plan { team, lead, agent, session, known };
    if plan.made().is_some() {
        return Ok(Ok(plan));
    }
    // It may have been asked to end since it was looked at: whoever came now would be asked by nobody.
    if plan.team.status != TeamStatus::Active {
        return Ok(Err(TeamRefusal::NotActive(plan.team.name, plan.team.status).into()));
    }
    Ok(check(tx, &plan, new, most)?.map(|()| plan))
}

fn begin(
    tx: &mut Tx<'_>,
    settings: &Settings,
    plan: Plan,
    (new, own): (&NewMember, &Own),
    (fresh, here): (&Fresh, &Here),
) -> polyclaw_store::Result<Joined> {
    let there = |member: TeamMember| Life { member, stopped: Vec::new(), first: None, ready: None };
    if let Some(again) = plan.made() {
        return Ok(Ok(there(again.clone())));
    }
    let member = member(&plan, new, teams::list_members(tx, &plan.team.id)?.len(), fresh.now);
    let Plan { team, lead, known, .. } = plan;
    let lent = own.lent.clone();
    let begun =
        Session { model_override: new.model.clone(), inherited: lent, ..child(&member, &lead, fresh) };
    sessions::ensure(tx, &begun)?;
    match &known {
        Some(old) => {
            sessions::set_team_role(tx, &old.session, None, fresh.now)?;
            sessions::set_status(tx, &old.session, SessionStatus::Archived)?;
            teams::replace_member(tx, &member)?;
        }
        None => teams::add_member(tx, &member)?,
    }
    let Some(task) = new.task.as_ref().filter(|task| !task.trim().is_empty()) else {
        let (letters, _) = team_messages::count_waiting(tx, &team.id, &member.name)?;
        let ready = match letters {
            0 => None,
            _ => wake(tx, &team, &member.session, fresh, settings)?,
        };
        return Ok(Ok(Life { ready, ..there(member) }));
    };
    let first = first_message(&team, &member);
    let fresh = Fresh { trace: team.trace.clone(), ..fresh.clone() };
    match ingress::inject(tx, (&member.session, task), first, &fresh, here)? {
        (Ok((accepted, begun)), inbound) => {
            Ok(Ok(Life { first: Some((accepted, inbound, begun)), ..there(member) }))
        }
        // Nothing of this transaction stands.
        (Err(refused), _) => Err(polyclaw_store::Error::Conflict(ingress::in_words(&refused))),
    }
}

fn check(
    tx: &mut Tx<'_>,
    Plan { team, lead, agent, known, .. }: &Plan,
    new: &NewMember,
    most: u32,
) -> polyclaw_store::Result<std::result::Result<(), Error>> {
    if known.as_ref().is_some_and(|member| member.state == MemberState::Active && !new.replaces) {
        return Ok(Err(TeamRefusal::MemberExists(new.name.clone()).into()));
    }
    let active = teams::list_members(tx, &team.id)?;
    let active =
        active.iter().filter(|member| member.state == MemberState::Active && member.name != new.name);
    if active.count() >= usize::try_from(most).unwrap_or(usize::MAX) {
        return Ok(Err(TeamRefusal::TooManyMembers(most).into()));
    }
    let own = agents::get(tx, &lead.active_agent)?.map(|stored| stored.spec);
    let own = own.unwrap_or_else(|| AgentSpec::with_id(lead.active_agent.clone()));
    let Some(target) = agents::get(tx, agent)?.map(|stored| stored.spec) else {
        return Ok(Err(Error::UnknownAgent(agent.to_string())));
    };
    if let Err(refused) = check_walls(lead, &own, &target) {
        return Ok(Err(refused));
    }
    if !own.subagents.allows_agent(&own.agent_id, agent) {
        return Ok(Err(Error::Family(format!(
            "'{}' may not begin members that are '{agent}'; add it to subagents.allow_agents",
            own.agent_id
        ))));
    }
    let limits = SpawnLimits { depth: own.subagents.max_spawn_depth.min(DEEPEST), children: u32::MAX };
    let deep = limits.check_spawn(lead.spawn_depth + 1, 0);
    Ok(deep.map_err(|refused| Error::TooMany(RunKind::Subagent, refused)))
}

fn member(plan: &Plan, new: &NewMember, n: usize, now: Millis) -> TeamMember {
    let known = plan.known.as_ref();
    TeamMember {
        team: plan.team.id.clone(),
        name: new.name.clone(),
        session: plan.session.clone(),
        agent: plan.agent.clone(),
        role: new
            .role
            .clone()
            .or_else(|| known.map(|old| old.role.clone()))
            .unwrap_or_else(|| "member".to_owned()),
        capabilities: match (new.capabilities.is_empty(), known) {
            (true, Some(old)) => old.capabilities.clone(),
            _ => new.capabilities.clone(),
        },
        color: known.map_or_else(|| team::member_color(n).to_owned(), |old| old.color.clone()),
        state: MemberState::Active,
        // What was asked of an earlier life and not settled is asked of this one.
        plan: (new.plan_mode_required || known.is_some_and(|old| old.plan.is_some()))
            .then_some(PlanApproval::Required),
        joined_at: known.map_or(now, |old| old.joined_at),
        last_active_at: now,
    }
}

/// Nothing it says leaves by itself: its team sees what it sends.
fn child(member: &TeamMember, lead: &Session, fresh: &Fresh) -> Session {
    let begun = Session::new_for_person(
        member.session.clone(),
        fresh.session.clone(),
        member.agent.clone(),
        fresh.now,
    );
    Session {
        owner: Some(lead.key.clone()),
        lane: JobLane::Teammate,
        spawn_depth: lead.spawn_depth + 1,
        delegation_depth: lead.delegation_depth,
        delivers: false,
        sends: false,
        address: Some(ChatAddress::internal()),
        title: Some(member.name.clone()),
        team_role: Some(TeamRole::Member),
        ..begun
    }
}

fn first_message(team: &Team, member: &TeamMember) -> Injection {
    let relayed = Relayed { from: team.lead.clone(), hop: 1, trace: team.trace.clone(), way: Way::Begin };
    let mut meta = Some(json!({ "asked_by": team.requested_by() }));
    team.authority.write_to_meta(&mut meta);
    Injection {
        meta,
        ..Injection::between(team.lead_agent.clone(), relayed, format!("begin:{}", member.session))
    }
}
