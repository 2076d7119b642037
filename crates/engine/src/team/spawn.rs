//! Spawning a member, or a new session for an existing member name. The limits are checked, and the session, the member
//! and its first message are stored in one transaction.

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

use super::actor::{TeamActor, TeamCaller};
use super::wake::wake_session;
use crate::command_action::PostCommitEffect;
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::ingress::{self, InternalMessage, NewIds, NodeContext, RelayInfo, RelayKind};
use crate::session::stop_session_tree;
use crate::settings::EngineSettings;
use crate::subagents::check_sandbox_mode;

#[derive(Clone, Debug, Default)]
pub struct NewMember {
    pub name: String,
    pub agent: Option<AgentId>,
    pub model: Option<ModelRef>,
    /// Its first message. Without one it waits for team messages.
    pub task: Option<String>,
    pub role: Option<String>,
    pub capabilities: Vec<String>,
    /// The name may be taken from an active member.
    pub replaces: bool,
    /// It may only read until the lead approves its plan.
    pub plan_mode_required: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct SpawnedTeammate {
    pub name: String,
    pub session_key: SessionKey,
    /// Tasks that the previous session of this name held.
    pub inherited: Vec<polyclaw_domain::task::TaskNo>,
}

/// Upper bound of the agent's `max_spawn_depth` for team members.
const MAX_TEAM_SPAWN_DEPTH: u32 = 5;

/// The stored result of a join.
struct JoinedMember {
    member: TeamMember,
    /// Effects of stopping the previous session.
    stopped: Vec<PostCommitEffect>,
    /// Its first message.
    first: Option<ingress::StoredIngress>,
    /// The lane in which it is ready to read messages that waited for its name.
    ready: Option<JobLane>,
}

/// Generated values of a new member session.
struct NewMemberSession {
    uuid: String,
    inherited_tools: Option<InheritedTools>,
}

type JoinResult = std::result::Result<JoinedMember, Error>;

impl Engine {
    pub async fn spawn_teammate(
        &self,
        actor: &TeamActor,
        team: &str,
        new: NewMember,
    ) -> Result<SpawnedTeammate> {
        let caller = self.find_team_caller(actor, team).await?;
        caller.require_lead()?;
        caller.require_active()?;
        team::check_member_name(&new.name)?;
        let new = self.redact_new_member(new)?;
        self.check_model(new.model.as_ref()).await?;
        let inherited_tools = self.member_inherited_tools(&caller.team, actor).await?;
        let own = NewMemberSession { uuid: uuid_for_call(actor.call_id()), inherited_tools };
        let JoinedMember { member, stopped, first, ready } = self.join_member(&caller.team, new, own).await?;
        self.apply_effects(stopped);
        let inherited = self.inherit_tasks(&caller, &member).await?;
        if let Some((accepted, inbound, claimed)) = first {
            self.publish_accepted(&accepted, inbound);
            self.start_or_wake_turn(&accepted, claimed);
        }
        ready.into_iter().for_each(|lane| self.lanes.wake(lane));
        self.write_team_files(&caller.team).await?;
        let data = json!({ "team": caller.team.name, "change": "joined", "member": member.name,
            "session_key": member.session });
        self.record_team_event(&caller.team, data).await;
        self.wake_reconciler();
        Ok(SpawnedTeammate { name: member.name, session_key: member.session, inherited })
    }

    /// Returns the most that members may use. If the lead's agent is configured with `MemberTools::Own`, members have
    /// the tools of their own agents: nothing is inherited, and nothing is withheld because the lead lacks it.
    async fn member_inherited_tools(&self, team: &Team, actor: &TeamActor) -> Result<Option<InheritedTools>> {
        let lead = team.lead.clone();
        let read = move |tx: &mut Tx<'_>| {
            let Some(session) = sessions::get(tx, &lead)? else { return Ok(None) };
            Ok(agents::get(tx, &session.active_agent)?.map(|stored| stored.spec.subagents.member_tools))
        };
        if self.db().read(read).await? == Some(MemberTools::Own) {
            return Ok(None);
        }
        self.inherited_tools_from(&team.lead, actor.turn_id()).await.map(Some)
    }

    async fn join_member(&self, team: &Team, new: NewMember, own: NewMemberSession) -> Result<JoinedMember> {
        let (fresh, here, asked) =
            (NewIds::new(self, None), Arc::new(NodeContext::from_engine(self)), Arc::new((new, own)));
        loop {
            let (engine, wanted, asked) = (self.clone(), team.clone(), Arc::clone(&asked));
            let (fresh, here) = (fresh.clone(), Arc::clone(&here));
            let write =
                move |tx: &mut Tx<'_>| join_team(tx, &engine, &wanted, (&asked.0, &asked.1), (&fresh, &here));
            if let Some(life) = self.db().write(write).await? {
                return life;
            }
        }
    }

    fn redact_new_member(&self, mut new: NewMember) -> Result<NewMember> {
        if new.capabilities.len() > MAX_CAPABILITIES {
            return Err(TeamRefusal::Message("a member has at most 8 capabilities").into());
        }
        for text in new.task.iter_mut().chain(new.role.iter_mut()) {
            self.redactor().redact_in_place(text);
        }
        Ok(new)
    }

    async fn inherit_tasks(
        &self,
        caller: &TeamCaller,
        member: &TeamMember,
    ) -> Result<Vec<polyclaw_domain::task::TaskNo>> {
        let (id, name, session) = (caller.team.id.clone(), member.name.clone(), member.session.clone());
        let (now, lease_ms) = (self.now(), self.task_lease_ms());
        let write =
            move |tx: &mut Tx<'_>| tasks::reassign_to_session(tx, &id, &name, &session, (now, lease_ms));
        Ok(self.open_ledger(&caller.team)?.write(write).await?)
    }
}

/// Returns `None` if the name was given to another session while this call waited for the team's row.
fn join_team(
    tx: &mut Tx<'_>,
    engine: &Engine,
    team: &Team,
    (new, own): (&NewMember, &NewMemberSession),
    (fresh, here): (&NewIds, &NodeContext),
) -> polyclaw_store::Result<Option<JoinResult>> {
    let settings = engine.settings();
    let most = settings.teams.max_members;
    let before = match plan_join(tx, team, (new, own), most)? {
        Ok(plan) => plan,
        Err(refused) => return Ok(Some(Err(refused))),
    };
    // Stop the previous holder of the name and its children. Session rows are locked before the team's, as everywhere.
    // If the join is rejected afterwards, the member stays in the team, stopped.
    let mut stopped = Vec::new();
    if let Some(old) = &before.known {
        sessions::lock(tx, &old.session)?;
    }
    if let Some(old) = before.replaced_member() {
        stopped = stop_session_tree(tx, engine, &old.session)?.1;
    }
    // Lock the team's row before the final check, so that concurrent joins are counted one after the other.
    teams::lock_team(tx, &team.id)?;
    Ok(match plan_join(tx, team, (new, own), most)? {
        Ok(plan) if plan.session_before() != before.session_before() => None,
        Ok(plan) => Some(
            store_member(tx, &settings, plan, (new, own), (fresh, here))?
                .map(|life| JoinedMember { stopped, ..life }),
        ),
        Err(refused) => Some(Err(refused)),
    })
}

/// A checked join.
struct JoinPlan {
    team: Team,
    lead: Session,
    agent: AgentId,
    session: SessionKey,
    /// The current holder of the name.
    known: Option<TeamMember>,
}

impl JoinPlan {
    fn session_before(&self) -> Option<&SessionKey> {
        self.known.as_ref().map(|member| &member.session)
    }

    /// The member that an earlier execution of this call created.
    fn already_joined(&self) -> Option<&TeamMember> {
        self.known.as_ref().filter(|member| member.session == self.session)
    }

    /// The active member that this join replaces.
    fn replaced_member(&self) -> Option<&TeamMember> {
        self.known.as_ref().filter(|old| old.state == MemberState::Active && old.session != self.session)
    }
}

/// Checks whether the join is allowed.
fn plan_join(
    tx: &mut Tx<'_>,
    team: &Team,
    (new, own): (&NewMember, &NewMemberSession),
    most: u32,
) -> polyclaw_store::Result<std::result::Result<JoinPlan, Error>> {
    let Some(team) = teams::get(tx, &team.id)? else {
        return Ok(Err(TeamRefusal::Unknown(team.name.clone()).into()));
    };
    let Some(lead) = sessions::get(tx, &team.lead)? else {
        return Ok(Err(Error::UnknownSession(team.lead.to_string())));
    };
    let agent = new.agent.clone().unwrap_or_else(|| lead.active_agent.clone());
    let known = teams::get_member(tx, &team.id, &new.name)?;
    let session = SessionKey::from_parts(&agent, &["teammate", &own.uuid]);
    let plan = JoinPlan { team, lead, agent, session, known };
    if plan.already_joined().is_some() {
        return Ok(Ok(plan));
    }
    // The team may be shutting down since the first check, and nobody would ask a member that joins now.
    if plan.team.status != TeamStatus::Active {
        return Ok(Err(TeamRefusal::NotActive(plan.team.name, plan.team.status).into()));
    }
    Ok(check_join(tx, &plan, new, most)?.map(|()| plan))
}

fn store_member(
    tx: &mut Tx<'_>,
    settings: &EngineSettings,
    plan: JoinPlan,
    (new, own): (&NewMember, &NewMemberSession),
    (fresh, here): (&NewIds, &NodeContext),
) -> polyclaw_store::Result<JoinResult> {
    let there = |member: TeamMember| JoinedMember { member, stopped: Vec::new(), first: None, ready: None };
    if let Some(again) = plan.already_joined() {
        return Ok(Ok(there(again.clone())));
    }
    let member = build_member(&plan, new, teams::list_members(tx, &plan.team.id)?.len(), fresh.now);
    let JoinPlan { team, lead, known, .. } = plan;
    let inherited = own.inherited_tools.clone();
    let session = Session {
        model_override: new.model.clone(),
        inherited,
        ..build_member_session(&member, &lead, fresh)
    };
    sessions::ensure(tx, &session)?;
    match &known {
        Some(old) => {
            sessions::set_team_role(tx, &old.session, None, fresh.now)?;
            sessions::set_status(tx, &old.session, SessionStatus::Archived)?;
            teams::replace_member(tx, &member)?;
        }
        None => teams::add_member(tx, &member)?,
    }
    let Some(task) = new.task.as_ref().filter(|task| !task.trim().is_empty()) else {
        let (message_count, _) = team_messages::count_waiting(tx, &team.id, &member.name)?;
        let ready = match message_count {
            0 => None,
            _ => wake_session(tx, &team, &member.session, fresh, settings)?,
        };
        return Ok(Ok(JoinedMember { ready, ..there(member) }));
    };
    let first = first_member_message(&team, &member);
    let fresh = NewIds { trace: team.trace.clone(), ..fresh.clone() };
    match ingress::inject_in_tx(tx, (&member.session, task), first, &fresh, here)? {
        (Ok((accepted, claimed)), inbound) => {
            Ok(Ok(JoinedMember { first: Some((accepted, inbound, claimed)), ..there(member) }))
        }
        // Rolls back the transaction.
        (Err(refused), _) => Err(polyclaw_store::Error::Conflict(ingress::refusal_text(&refused))),
    }
}

fn check_join(
    tx: &mut Tx<'_>,
    JoinPlan { team, lead, agent, known, .. }: &JoinPlan,
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
    if let Err(refused) = check_sandbox_mode(lead, &own, &target) {
        return Ok(Err(refused));
    }
    if !own.subagents.allows_agent(&own.agent_id, agent) {
        return Ok(Err(Error::Subagent(format!(
            "'{}' may not start members of '{agent}'; add it to subagents.allow_agents",
            own.agent_id
        ))));
    }
    let limits =
        SpawnLimits { depth: own.subagents.max_spawn_depth.min(MAX_TEAM_SPAWN_DEPTH), children: u32::MAX };
    let deep = limits.check_spawn(lead.spawn_depth + 1, 0);
    Ok(deep.map_err(|refused| Error::TooMany(RunKind::Subagent, refused)))
}

fn build_member(plan: &JoinPlan, new: &NewMember, n: usize, now: Millis) -> TeamMember {
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
        // A plan that an earlier session had to get approved is also required of this one.
        plan: (new.plan_mode_required || known.is_some_and(|old| old.plan.is_some()))
            .then_some(PlanApproval::Required),
        joined_at: known.map_or(now, |old| old.joined_at),
        last_active_at: now,
    }
}

/// Builds a member's session. It delivers nothing itself; the team sees the messages it sends.
fn build_member_session(member: &TeamMember, lead: &Session, fresh: &NewIds) -> Session {
    let session = Session::new_for_person(
        member.session.clone(),
        fresh.session.clone(),
        member.agent.clone(),
        fresh.now,
    );
    Session {
        owner: Some(lead.key.clone()),
        lane: JobLane::Teammate,
        // Its people are those of its lead.
        language: lead.language,
        spawn_depth: lead.spawn_depth + 1,
        delegation_depth: lead.delegation_depth,
        delivers: false,
        sends: false,
        address: Some(ChatAddress::internal()),
        title: Some(member.name.clone()),
        team_role: Some(TeamRole::Member),
        ..session
    }
}

fn first_member_message(team: &Team, member: &TeamMember) -> InternalMessage {
    let relayed =
        RelayInfo { from: team.lead.clone(), hop: 1, trace: team.trace.clone(), kind: RelayKind::Begin };
    let mut meta = Some(json!({ "requested_by": team.requested_by() }));
    team.authority.write_to_meta(&mut meta);
    InternalMessage {
        meta,
        ..InternalMessage::from_session(team.lead_agent.clone(), relayed, format!("begin:{}", member.session))
    }
}
