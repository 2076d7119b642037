//! Spawning a run: its limits are checked, and the child, the run and its first message are stored in one transaction.

use std::sync::Arc;

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::authority::Authority;
use polyclaw_domain::channel::{ChatAddress, INTERNAL_CHANNEL};
use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::{AgentId, RunId, TraceId, TurnId};
use polyclaw_domain::job::JobLane;
use polyclaw_domain::policy::InheritedTools;
use polyclaw_domain::provider::{ModelRef, ReasoningEffort};
use polyclaw_domain::relay::{self, RelayRequest};
use polyclaw_domain::run::{
    RunAudience, RunKind, RunStatus, RunTask, SpawnLimitExceeded, SpawnLimits, SubagentRun,
};
use polyclaw_domain::session::Session;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::ToolScope;
use polyclaw_store::{Tx, agents, jobs, runs, sessions};
use serde_json::json;

use super::git_head::read_head_commit;
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::ingress::{self, InternalMessage, MessageProvenance, NewIds, NodeContext, RelayInfo, RelayKind};
use crate::prompt;
use crate::team;

/// Maximum length of a chain of runs.
const MAX_RUN_CHAIN: usize = 32;

/// A request of one session to start another.
#[derive(Clone, Debug)]
pub(crate) struct SpawnRequest {
    /// Permanent id of the run. A request repeated after a crash has the same id and finds the same run.
    pub id: RunId,
    pub kind: RunKind,
    pub owner: SessionKey,
    pub requester: RunRequester,
    pub agent: AgentId,
    pub task: RunTask,
    pub model: Option<ModelRef>,
    pub thinking: Option<ReasoningEffort>,
    pub timeout_ms: i64,
    pub is_deleted_after: bool,
    /// The turn waits for the run to end.
    pub is_awaited: bool,
    /// The turn's audience sees the run's text while it streams.
    pub is_streamed: bool,
}

/// Who requests a run.
#[derive(Clone, Debug)]
pub(crate) enum RunRequester {
    Turn(TurnId),
    /// A person of this authority, by a command. The owner's reply to the announce goes to this address.
    Person(Option<ChatAddress>, Authority),
}

impl RunRequester {
    fn turn_id(&self) -> Option<&TurnId> {
        match self {
            Self::Turn(turn) => Some(turn),
            Self::Person(..) => None,
        }
    }
}

/// What a run takes over from its requester.
struct RequesterContext {
    agent: AgentId,
    hop: u32,
    trace: TraceId,
    reply_to: Vec<ChatAddress>,
    asked_by: Vec<String>,
}

/// Generated values of a new child.
struct NewChild {
    uuid: String,
    /// Tools that a sub-agent inherits from the requesting turn.
    inherited_tools: Option<InheritedTools>,
    /// The workspace's current commit; empty if there is none.
    commit: String,
}

type SpawnResult = std::result::Result<(SubagentRun, Option<ingress::StoredIngress>), Error>;

impl Engine {
    /// Starts the requested run, or returns the run that this request started before.
    pub(crate) async fn spawn_subagent(&self, mut request: SpawnRequest) -> Result<SubagentRun> {
        if self.is_draining() {
            return Err(Error::Draining);
        }
        self.redactor().redact_in_place(&mut request.task.prompt);
        self.redactor().redact_in_place(&mut request.task.label);
        let inherited = match request.kind {
            RunKind::Subagent => {
                Some(self.inherited_tools_from(&request.owner, request.requester.turn_id()).await?)
            }
            // A delegate runs with its agent's own tools; which agents may be delegated to is configured separately. It
            // is restricted only by what its owner inherited itself.
            RunKind::Delegate => None,
        };
        let commit = self.workspace_commit(&request.agent).await;
        let child = NewChild { uuid: self.nonce().to_lowercase(), inherited_tools: inherited, commit };
        let (fresh, here) = (NewIds::new(self, None), Arc::new(NodeContext::from_engine(self)));
        let mut refused = spawn_refused_event(&request);
        let write = move |tx: &mut Tx<'_>| spawn_run(tx, &request, &child, &fresh, &here);
        let (run, stored) = match self.db().write(write).await? {
            Ok(claimed) => claimed,
            Err(error) => {
                refused.data["code"] = error.code().into();
                self.record_event(refused).await;
                return Err(error);
            }
        };
        if let Some((accepted, inbound, claimed)) = stored {
            self.publish_accepted(&accepted, inbound);
            self.start_or_wake_turn(&accepted, claimed);
            self.run_started.notify_one();
        }
        Ok(run)
    }
}

impl Engine {
    async fn workspace_commit(&self, agent: &AgentId) -> String {
        let Ok(stored) = self.load_agent(agent).await else { return String::new() };
        let key = SessionKey::main(agent);
        let scope = ToolScope::for_session(&stored.spec, key, &self.settings().workspace, false);
        read_head_commit(&scope.workspace).unwrap_or_default()
    }
}

fn spawn_run(
    tx: &mut Tx<'_>,
    request: &SpawnRequest,
    new: &NewChild,
    fresh: &NewIds,
    here: &NodeContext,
) -> polyclaw_store::Result<SpawnResult> {
    if let Some(run) = runs::get(tx, &request.id)? {
        return Ok(Ok((run, None)));
    }
    // Lock the owner's row first, so that concurrent requests are counted one after the other.
    sessions::allocate_positions(tx, &request.owner, 0, fresh.now)?;
    let Some(owner) = sessions::get(tx, &request.owner)? else {
        return Ok(Err(Error::UnknownSession(request.owner.to_string())));
    };
    let asker = match resolve_requester(tx, request, &owner, fresh)? {
        Ok(asker) => asker,
        Err(refused) => return Ok(Err(refused)),
    };
    let sent = RelayRequest { from: request.owner.clone(), hop: asker.hop + 1, automatic_turns: 0 };
    if let Err(refusal) =
        relay::check_relay(&sent, &SessionKey::from_parts(&request.agent, &[&new.uuid]), u32::MAX)
    {
        return Ok(Err(Error::Relay(refusal)));
    }
    let own = agents::get(tx, &asker.agent)?.map(|stored| stored.spec);
    let own = own.unwrap_or_else(|| AgentSpec::with_id(asker.agent.clone()));
    let Some(target) = agents::get(tx, &request.agent)?.map(|stored| stored.spec) else {
        return Ok(Err(Error::UnknownAgent(request.agent.to_string())));
    };
    let at_work = runs::list_running_by_owner(tx, &request.owner)?
        .iter()
        .filter(|run| run.kind == request.kind)
        .count();
    if let Err(refused) =
        check_spawn_allowed(request, &owner, (&own, &target), u32::try_from(at_work).unwrap_or(u32::MAX))
    {
        return Ok(Err(refused));
    }
    if let Err(refused) = check_concurrency(tx, request.kind, &own)? {
        return Ok(Err(Error::TooMany(request.kind, refused)));
    }
    if request.kind == RunKind::Delegate
        && let Err(refused) = check_chain_depth(tx, &request.owner)?
    {
        return Ok(Err(Error::TooMany(request.kind, refused)));
    }
    let audience = resolve_audience(tx, request, &asker.reply_to)?;
    let child_key = SessionKey::from_parts(&request.agent, &[request.kind.as_str(), &new.uuid]);
    let run = SubagentRun { audience, ..build_run(request, asker, &own, child_key, fresh.now) };
    // Tools that the owner inherited also bound a delegate: an agent cannot pass on what it does not have.
    let inherited = new.inherited_tools.clone().or(owner.inherited.clone());
    sessions::ensure(tx, &Session { inherited, ..build_child_session(&run, &owner, request, fresh) })?;
    runs::insert(tx, &run)?;
    runs::set_commit_before(tx, &run.id, &new.commit)?;
    let first = first_child_message(&run);
    let fresh = NewIds { trace: run.trace.clone(), ..fresh.clone() };
    match ingress::inject_in_tx(tx, (&run.child, &run.task.prompt), first, &fresh, here)? {
        (Ok((accepted, claimed)), inbound) => Ok(Ok((run, Some((accepted, inbound, claimed))))),
        // Rolls back the transaction.
        (Err(refused), _) => Err(polyclaw_store::Error::Conflict(ingress::refusal_text(&refused))),
    }
}

fn resolve_requester(
    tx: &mut Tx<'_>,
    request: &SpawnRequest,
    owner: &Session,
    fresh: &NewIds,
) -> polyclaw_store::Result<std::result::Result<RequesterContext, Error>> {
    let turn = match &request.requester {
        RunRequester::Turn(turn) => turn,
        RunRequester::Person(address, authority) => {
            let agent = owner.active_agent.clone();
            let reply_to: Vec<ChatAddress> = address.iter().cloned().collect();
            let asked_by =
                reply_to.iter().map(ChatAddress::sender_key).chain(authority.sender_mark()).collect();
            return Ok(Ok(RequesterContext {
                agent,
                hop: 0,
                trace: fresh.trace.clone(),
                reply_to,
                asked_by,
            }));
        }
    };
    let Some(job) = jobs::get(tx, turn)? else { return Ok(Err(Error::UnknownTurn(turn.to_string()))) };
    if job.cancel {
        return Ok(Err(Error::Subagent("the requesting turn is being stopped".to_owned())));
    }
    let (reply_to, asked_by) = (reply_addresses(tx, turn)?, requesters_of_turn(tx, &request.owner, turn)?);
    Ok(Ok(RequesterContext { agent: job.agent, hop: job.hop, trace: job.trace, reply_to, asked_by }))
}

fn build_run(
    request: &SpawnRequest,
    asker: RequesterContext,
    own: &AgentSpec,
    child: SessionKey,
    now: Millis,
) -> SubagentRun {
    let archive_after_ms = Some(i64::from(own.subagents.archive_after_minutes) * 60_000);
    SubagentRun {
        id: request.id.clone(),
        kind: request.kind,
        child,
        agent: request.agent.clone(),
        owner: request.owner.clone(),
        caller: asker.agent,
        owner_turn: request.requester.turn_id().cloned(),
        trace: asker.trace,
        hop: asker.hop + 1,
        task: RunTask { requested_by: asker.asked_by, ..request.task.clone() },
        reply_to: asker.reply_to,
        awaited_by: request.requester.turn_id().filter(|_| request.is_awaited).cloned(),
        audience: None,
        deadline: Some(now.plus(request.timeout_ms)),
        is_deleted_after: request.is_deleted_after,
        archive_after_ms: archive_after_ms.filter(|after| *after > 0),
        held: None,
        status: RunStatus::Running,
        result: None,
        created_at: now,
        ended_at: None,
    }
}

/// Returns the child's first message, from the requesting agent or person.
fn first_child_message(run: &SubagentRun) -> InternalMessage {
    let relayed =
        RelayInfo { from: run.owner.clone(), hop: run.hop, trace: run.trace.clone(), kind: RelayKind::Begin };
    let between = InternalMessage::from_session(run.caller.clone(), relayed, run.id.to_string());
    match run.owner_turn {
        Some(_) => between,
        None => InternalMessage { provenance: MessageProvenance::Person(run.agent.clone()), ..between },
    }
}

fn check_spawn_allowed(
    request: &SpawnRequest,
    owner: &Session,
    (own, target): (&AgentSpec, &AgentSpec),
    at_work: u32,
) -> std::result::Result<(), Error> {
    check_sandbox_mode(owner, own, target)?;
    let (depth, limits) = match request.kind {
        RunKind::Subagent if !own.subagents.allows_agent(&own.agent_id, &request.agent) => {
            return Err(Error::Subagent(format!(
                "'{}' may not start sub-agents of '{}'; add it to subagents.allow_agents",
                own.agent_id, request.agent
            )));
        }
        RunKind::Subagent => (owner.spawn_depth + 1, own.subagents.spawn_limits()),
        RunKind::Delegate => (owner.delegation_depth + 1, delegation_limits(own, &request.agent)?),
    };
    limits.check_spawn(depth, at_work).map_err(|refused| Error::TooMany(request.kind, refused))
}

/// Checks an agent's concurrency limit, counted over all its sessions.
fn check_concurrency(
    tx: &mut Tx<'_>,
    kind: RunKind,
    own: &AgentSpec,
) -> polyclaw_store::Result<std::result::Result<(), SpawnLimitExceeded>> {
    let most = match (kind, &own.delegation) {
        (RunKind::Subagent, _) => own.subagents.max_concurrent,
        (RunKind::Delegate, Some(rules)) => rules.max_concurrent,
        (RunKind::Delegate, None) => 0,
    };
    let at_work = runs::count_running_by_caller(tx, &own.agent_id, kind)?;
    Ok(if at_work < most { Ok(()) } else { Err(SpawnLimitExceeded::Concurrent(at_work, most)) })
}

/// Checks the delegation depth against the limit of each delegating agent up the chain.
fn check_chain_depth(
    tx: &mut Tx<'_>,
    owner: &SessionKey,
) -> polyclaw_store::Result<std::result::Result<(), SpawnLimitExceeded>> {
    let (mut at, mut depth) = (owner.clone(), 1);
    for _ in 0..MAX_RUN_CHAIN {
        let Some(run) = runs::find_running_by_child(tx, &at)? else { break };
        if run.kind == RunKind::Delegate {
            depth += 1;
            let spec = agents::get(tx, &run.caller)?.map(|stored| stored.spec);
            let most = spec.and_then(|spec| spec.delegation).map_or(0, |rules| rules.max_depth);
            if depth > most {
                return Ok(Err(SpawnLimitExceeded::Depth(depth, most)));
            }
        }
        at = run.owner;
    }
    Ok(Ok(()))
}

/// Checks that the child's sandbox is at least as restrictive as the owner's.
pub(crate) fn check_sandbox_mode(
    owner: &Session,
    own: &AgentSpec,
    target: &AgentSpec,
) -> std::result::Result<(), Error> {
    let inherited_mode = owner.inherited.as_ref().map_or(own.sandbox.mode, |inherited| inherited.sandbox);
    match target.sandbox.mode < own.sandbox.mode.max(inherited_mode) {
        true => {
            let why = "a sandboxed agent cannot start an agent with a weaker sandbox (sandbox.mode)";
            Err(Error::Subagent(why.to_owned()))
        }
        false => Ok(()),
    }
}

fn delegation_limits(own: &AgentSpec, target: &AgentId) -> std::result::Result<SpawnLimits, Error> {
    let allowed =
        own.delegation.as_ref().filter(|rules| rules.allows_agent(target) && own.agent_id != *target);
    // Concurrency is limited for the agent, not for one of its sessions.
    let limits = allowed.map(|rules| SpawnLimits { depth: rules.max_depth, children: u32::MAX });
    limits.ok_or_else(|| Error::DelegationDenied(own.agent_id.to_string(), target.to_string()))
}

/// Builds the event of a rejected spawn request.
fn spawn_refused_event(request: &SpawnRequest) -> NewEvent {
    NewEvent {
        kind: EventKind::RunRefused,
        session: Some(request.owner.clone()),
        turn: request.requester.turn_id().cloned(),
        agent: None,
        trace: None,
        data: json!({ "kind": request.kind, "agent_id": request.agent }),
    }
}

/// Builds the child session. It delivers nothing itself; its owner gets the announce.
fn build_child_session(
    run: &SubagentRun,
    owner: &Session,
    request: &SpawnRequest,
    fresh: &NewIds,
) -> Session {
    let session =
        Session::new_for_person(run.child.clone(), fresh.session.clone(), run.agent.clone(), fresh.now);
    Session {
        owner: Some(run.owner.clone()),
        lane: JobLane::Subagent,
        // Its people are those of its owner.
        language: owner.language,
        spawn_depth: owner.spawn_depth + 1,
        delegation_depth: owner.delegation_depth + u32::from(run.kind == RunKind::Delegate),
        delivers: false,
        sends: false,
        model_override: request.model.clone(),
        thinking: request.thinking,
        address: Some(ChatAddress::internal()),
        title: Some(run.task.label.clone()).filter(|label| !label.is_empty()),
        ..session
    }
}

/// Returns the conversation that sees the run's streamed text. If the owner's own text is mirrored elsewhere, the
/// child's goes there too.
fn resolve_audience(
    tx: &mut Tx<'_>,
    request: &SpawnRequest,
    reply_to: &[ChatAddress],
) -> polyclaw_store::Result<Option<RunAudience>> {
    let Some(turn) = request.requester.turn_id().filter(|_| request.is_streamed) else { return Ok(None) };
    let own = runs::find_running_by_child(tx, &request.owner)?.and_then(|run| run.audience);
    Ok(Some(own.unwrap_or_else(|| RunAudience {
        session_key: request.owner.clone(),
        turn_id: turn.clone(),
        addresses: reply_to.to_vec(),
    })))
}

impl Engine {
    /// Returns the first address a turn answers, if any.
    pub async fn reply_address(&self, turn: &TurnId) -> Result<Option<ChatAddress>> {
        let turn = turn.clone();
        let places = self.db().read(move |tx: &mut Tx<'_>| reply_addresses(tx, &turn)).await?;
        Ok(places.into_iter().next())
    }
}

/// Returns the addresses that a turn answers. People waiting for the run's end wait there.
pub(crate) fn reply_addresses(tx: &mut Tx<'_>, turn: &TurnId) -> polyclaw_store::Result<Vec<ChatAddress>> {
    let mut places: Vec<ChatAddress> = Vec::new();
    for message in prompt::load_answered_inputs(tx, turn)? {
        let own = message.address.filter(|address| message.deliver && address.channel != INTERNAL_CHANNEL);
        let carried = message.meta.as_ref().map(polyclaw_domain::run::reply_addresses).unwrap_or_default();
        for address in own.into_iter().chain(carried) {
            if !places.contains(&address) {
                places.push(address);
            }
        }
    }
    Ok(places)
}

/// Returns everyone a turn works for: the authors of its inputs, and those whom these authors work for.
pub(crate) fn requesters_of_turn(
    tx: &mut Tx<'_>,
    session: &SessionKey,
    turn: &TurnId,
) -> polyclaw_store::Result<Vec<String>> {
    let run = runs::find_running_by_child(tx, session)?;
    let asked = prompt::load_answered_inputs(tx, turn)?;
    let mut senders = prompt::collect_senders(&asked.iter().collect::<Vec<_>>(), run.as_ref());
    senders.extend(team::authority_of_teams(tx, session, turn)?.sender_mark());
    Ok(senders)
}

/// Returns the lowest authority of everyone a turn works for.
pub(crate) fn authority_in(
    tx: &mut Tx<'_>,
    session: &SessionKey,
    turn: &TurnId,
) -> polyclaw_store::Result<Authority> {
    let own = Authority::lowest_of_senders(&requesters_of_turn(tx, session, turn)?);
    let inherited_authority = sessions::get(tx, session)?.and_then(|session| session.inherited?.authority);
    Ok(inherited_authority.map_or(own, |above| above.min(own)))
}
