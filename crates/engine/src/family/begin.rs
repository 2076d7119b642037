//! Beginning a run: limits, the child, the run and its first message, all or nothing.

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

use super::commits::head;
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::ingress::{self, Fresh, Here, Injection, Provenance, Relayed, Way};
use crate::prompt;
use crate::team;

/// No chain of runs is longer.
const LONGEST_CHAIN: usize = 32;

/// What one session asks of another that is to begin.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Names the run for ever: the same wish, made again after a crash, is the same run.
    pub id: RunId,
    pub kind: RunKind,
    pub owner: SessionKey,
    pub asked: AskedBy,
    pub agent: AgentId,
    pub task: RunTask,
    pub model: Option<ModelRef>,
    pub thinking: Option<ReasoningEffort>,
    pub timeout_ms: i64,
    pub is_deleted_after: bool,
    /// The turn waits for the end.
    pub is_awaited: bool,
    /// The people of the turn see what is said meanwhile.
    pub is_streamed: bool,
}

/// Who asks for a run.
#[derive(Clone, Debug)]
pub(crate) enum AskedBy {
    Turn(TurnId),
    /// A person of this authority, by a command; the owner's answer to its announce goes there.
    Person(Option<ChatAddress>, Authority),
}

impl AskedBy {
    fn turn(&self) -> Option<&TurnId> {
        match self {
            Self::Turn(turn) => Some(turn),
            Self::Person(..) => None,
        }
    }
}

/// What a run takes over from whoever asks.
struct Asker {
    agent: AgentId,
    hop: u32,
    trace: TraceId,
    reply_to: Vec<ChatAddress>,
    asked_by: Vec<String>,
}

/// What is new about a child.
struct New {
    uuid: String,
    /// What a sub-agent is lent by the turn that asks.
    lent: Option<InheritedTools>,
    /// The commit at which its workspace stands; empty where there is none.
    commit: String,
}

type Begun = std::result::Result<(SubagentRun, Option<ingress::Stored>), Error>;

impl Engine {
    /// Begins what is wished for, or finds that it was begun before.
    pub(crate) async fn begin_run(&self, mut wish: Wish) -> Result<SubagentRun> {
        if self.is_draining() {
            return Err(Error::Draining);
        }
        self.redactor().redact_in_place(&mut wish.task.prompt);
        self.redactor().redact_in_place(&mut wish.task.label);
        let lent = match wish.kind {
            RunKind::Subagent => Some(self.lent_by(&wish.owner, wish.asked.turn()).await?),
            // Work is given to an agent as it is: whom an agent may give it to is a setting of its own. It has no
            // more than its owner only where that was lent something itself.
            RunKind::Delegate => None,
        };
        let commit = self.workspace_commit(&wish.agent).await;
        let begun = New { uuid: self.nonce().to_lowercase(), lent, commit };
        let (fresh, here) = (Fresh::new(self, None), Arc::new(Here::of(self)));
        let mut refused = refusal(&wish);
        let write = move |tx: &mut Tx<'_>| begin(tx, &wish, &begun, &fresh, &here);
        let (run, stored) = match self.db().write(write).await? {
            Ok(begun) => begun,
            Err(error) => {
                refused.data["code"] = error.code().into();
                self.record(refused).await;
                return Err(error);
            }
        };
        if let Some((accepted, inbound, begun)) = stored {
            self.announce_accepted(&accepted, inbound);
            self.go_on(&accepted, begun);
            self.run_begun.notify_one();
        }
        Ok(run)
    }
}

impl Engine {
    async fn workspace_commit(&self, agent: &AgentId) -> String {
        let Ok(stored) = self.agent(agent).await else { return String::new() };
        let key = SessionKey::main(agent);
        let scope = ToolScope::for_session(&stored.spec, key, &self.settings().workspace, false);
        head(&scope.workspace).unwrap_or_default()
    }
}

fn begin(
    tx: &mut Tx<'_>,
    wish: &Wish,
    new: &New,
    fresh: &Fresh,
    here: &Here,
) -> polyclaw_store::Result<Begun> {
    if let Some(run) = runs::get(tx, &wish.id)? {
        return Ok(Ok((run, None)));
    }
    // Its row first: two wishes at once are counted one after the other.
    sessions::allocate_tickets(tx, &wish.owner, 0, fresh.now)?;
    let Some(owner) = sessions::get(tx, &wish.owner)? else {
        return Ok(Err(Error::UnknownSession(wish.owner.to_string())));
    };
    let asker = match asker(tx, wish, &owner, fresh)? {
        Ok(asker) => asker,
        Err(refused) => return Ok(Err(refused)),
    };
    let sent = RelayRequest { from: wish.owner.clone(), hop: asker.hop + 1, automatic_turns: 0 };
    if let Err(refusal) =
        relay::check_relay(&sent, &SessionKey::from_parts(&wish.agent, &[&new.uuid]), u32::MAX)
    {
        return Ok(Err(Error::Relay(refusal)));
    }
    let own = agents::get(tx, &asker.agent)?.map(|stored| stored.spec);
    let own = own.unwrap_or_else(|| AgentSpec::with_id(asker.agent.clone()));
    let Some(target) = agents::get(tx, &wish.agent)?.map(|stored| stored.spec) else {
        return Ok(Err(Error::UnknownAgent(wish.agent.to_string())));
    };
    let at_work =
        runs::list_running_by_owner(tx, &wish.owner)?.iter().filter(|run| run.kind == wish.kind).count();
    if let Err(refused) = check(wish, &owner, (&own, &target), u32::try_from(at_work).unwrap_or(u32::MAX)) {
        return Ok(Err(refused));
    }
    if let Err(refused) = check_at_once(tx, wish.kind, &own)? {
        return Ok(Err(Error::TooMany(wish.kind, refused)));
    }
    if wish.kind == RunKind::Delegate
        && let Err(refused) = check_chain(tx, &wish.owner)?
    {
        return Ok(Err(Error::TooMany(wish.kind, refused)));
    }
    let audience = audience(tx, wish, &asker.reply_to)?;
    let child_key = SessionKey::from_parts(&wish.agent, &[wish.kind.as_str(), &new.uuid]);
    let run = SubagentRun { audience, ..run(wish, asker, &own, child_key, fresh.now) };
    // What the owner was lent itself holds for an agent it gives work to, too: nobody gives away what was not theirs.
    let lent = new.lent.clone().or(owner.inherited.clone());
    sessions::ensure(tx, &Session { inherited: lent, ..child(&run, &owner, wish, fresh) })?;
    runs::insert(tx, &run)?;
    runs::set_commit_before(tx, &run.id, &new.commit)?;
    let first = first_message(&run);
    let fresh = Fresh { trace: run.trace.clone(), ..fresh.clone() };
    match ingress::inject(tx, (&run.child, &run.task.prompt), first, &fresh, here)? {
        (Ok((accepted, begun)), inbound) => Ok(Ok((run, Some((accepted, inbound, begun))))),
        // Nothing of this transaction stands.
        (Err(refused), _) => Err(polyclaw_store::Error::Conflict(ingress::in_words(&refused))),
    }
}

fn asker(
    tx: &mut Tx<'_>,
    wish: &Wish,
    owner: &Session,
    fresh: &Fresh,
) -> polyclaw_store::Result<std::result::Result<Asker, Error>> {
    let turn = match &wish.asked {
        AskedBy::Turn(turn) => turn,
        AskedBy::Person(address, authority) => {
            let agent = owner.active_agent.clone();
            let reply_to: Vec<ChatAddress> = address.iter().cloned().collect();
            let asked_by =
                reply_to.iter().map(ChatAddress::sender_key).chain(authority.sender_mark()).collect();
            return Ok(Ok(Asker { agent, hop: 0, trace: fresh.trace.clone(), reply_to, asked_by }));
        }
    };
    let Some(job) = jobs::get(tx, turn)? else { return Ok(Err(Error::UnknownTurn(turn.to_string()))) };
    if job.cancel {
        return Ok(Err(Error::Family("its turn is being stopped".to_owned())));
    }
    let (reply_to, asked_by) = (reply_to(tx, turn)?, asked_by(tx, &wish.owner, turn)?);
    Ok(Ok(Asker { agent: job.agent, hop: job.hop, trace: job.trace, reply_to, asked_by }))
}

fn run(wish: &Wish, asker: Asker, own: &AgentSpec, child: SessionKey, now: Millis) -> SubagentRun {
    let archive_after_ms = Some(i64::from(own.subagents.archive_after_minutes) * 60_000);
    SubagentRun {
        id: wish.id.clone(),
        kind: wish.kind,
        child,
        agent: wish.agent.clone(),
        owner: wish.owner.clone(),
        caller: asker.agent,
        owner_turn: wish.asked.turn().cloned(),
        trace: asker.trace,
        hop: asker.hop + 1,
        task: RunTask { asked_by: asker.asked_by, ..wish.task.clone() },
        reply_to: asker.reply_to,
        awaited_by: wish.asked.turn().filter(|_| wish.is_awaited).cloned(),
        audience: None,
        deadline: Some(now.plus(wish.timeout_ms)),
        is_deleted_after: wish.is_deleted_after,
        archive_after_ms: archive_after_ms.filter(|after| *after > 0),
        held: None,
        status: RunStatus::Running,
        result: None,
        created_at: now,
        ended_at: None,
    }
}

/// What the child is told: by the agent that asks, or by the person who does.
fn first_message(run: &SubagentRun) -> Injection {
    let relayed =
        Relayed { from: run.owner.clone(), hop: run.hop, trace: run.trace.clone(), way: Way::Begin };
    let between = Injection::between(run.caller.clone(), relayed, run.id.to_string());
    match run.owner_turn {
        Some(_) => between,
        None => Injection { provenance: Provenance::Person(run.agent.clone()), ..between },
    }
}

fn check(
    wish: &Wish,
    owner: &Session,
    (own, target): (&AgentSpec, &AgentSpec),
    at_work: u32,
) -> std::result::Result<(), Error> {
    check_walls(owner, own, target)?;
    let (depth, limits) = match wish.kind {
        RunKind::Subagent if !own.subagents.allows_agent(&own.agent_id, &wish.agent) => {
            return Err(Error::Family(format!(
                "'{}' may not begin sub-agents that are '{}'; add it to subagents.allow_agents",
                own.agent_id, wish.agent
            )));
        }
        RunKind::Subagent => (owner.spawn_depth + 1, own.subagents.spawn_limits()),
        RunKind::Delegate => (owner.delegation_depth + 1, delegation(own, &wish.agent)?),
    };
    limits.check_spawn(depth, at_work).map_err(|refused| Error::TooMany(wish.kind, refused))
}

/// What an agent has at work is counted over all of its sessions.
fn check_at_once(
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

/// Each agent above in the chain bounds how far the work it gave away is given on.
fn check_chain(
    tx: &mut Tx<'_>,
    owner: &SessionKey,
) -> polyclaw_store::Result<std::result::Result<(), SpawnLimitExceeded>> {
    let (mut at, mut depth) = (owner.clone(), 1);
    for _ in 0..LONGEST_CHAIN {
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

/// A session begins none that reaches further than its own programs do.
pub(crate) fn check_walls(
    owner: &Session,
    own: &AgentSpec,
    target: &AgentSpec,
) -> std::result::Result<(), Error> {
    let lent = owner.inherited.as_ref().map_or(own.sandbox.mode, |lent| lent.sandbox);
    match target.sandbox.mode < own.sandbox.mode.max(lent) {
        true => {
            let why = "a confined agent cannot begin one that is less confined (sandbox.mode)";
            Err(Error::Family(why.to_owned()))
        }
        false => Ok(()),
    }
}

fn delegation(own: &AgentSpec, target: &AgentId) -> std::result::Result<SpawnLimits, Error> {
    let allowed =
        own.delegation.as_ref().filter(|rules| rules.allows_agent(target) && own.agent_id != *target);
    // How many at once is counted for the agent, not for one of its sessions.
    let limits = allowed.map(|rules| SpawnLimits { depth: rules.max_depth, children: u32::MAX });
    limits.ok_or_else(|| Error::DelegationDenied(own.agent_id.to_string(), target.to_string()))
}

/// Tells that a run was not begun.
fn refusal(wish: &Wish) -> NewEvent {
    NewEvent {
        kind: EventKind::RunRefused,
        session: Some(wish.owner.clone()),
        turn: wish.asked.turn().cloned(),
        agent: None,
        trace: None,
        data: json!({ "kind": wish.kind, "agent_id": wish.agent }),
    }
}

/// Nothing it says leaves by itself: its owner is told.
fn child(run: &SubagentRun, owner: &Session, wish: &Wish, fresh: &Fresh) -> Session {
    let begun =
        Session::new_for_person(run.child.clone(), fresh.session.clone(), run.agent.clone(), fresh.now);
    Session {
        owner: Some(run.owner.clone()),
        lane: JobLane::Subagent,
        spawn_depth: owner.spawn_depth + 1,
        delegation_depth: owner.delegation_depth + u32::from(run.kind == RunKind::Delegate),
        delivers: false,
        sends: false,
        model_override: wish.model.clone(),
        thinking: wish.thinking,
        address: Some(ChatAddress::internal()),
        title: Some(run.task.label.clone()).filter(|label| !label.is_empty()),
        ..begun
    }
}

/// The conversation of the turn that asks, where its people are to see what is said. One that is itself shown in
/// another hands its words on to that.
fn audience(
    tx: &mut Tx<'_>,
    wish: &Wish,
    reply_to: &[ChatAddress],
) -> polyclaw_store::Result<Option<RunAudience>> {
    let Some(turn) = wish.asked.turn().filter(|_| wish.is_streamed) else { return Ok(None) };
    let own = runs::find_running_by_child(tx, &wish.owner)?.and_then(|run| run.audience);
    Ok(Some(own.unwrap_or_else(|| RunAudience {
        session_key: wish.owner.clone(),
        turn_id: turn.clone(),
        addresses: reply_to.to_vec(),
    })))
}

impl Engine {
    /// Where a turn answers, if anywhere.
    pub async fn answers_at(&self, turn: &TurnId) -> Result<Option<ChatAddress>> {
        let turn = turn.clone();
        let places = self.db().read(move |tx: &mut Tx<'_>| reply_to(tx, &turn)).await?;
        Ok(places.into_iter().next())
    }
}

/// Where the turn that asks answers: people who wait for the end of the run wait there.
pub(crate) fn reply_to(tx: &mut Tx<'_>, turn: &TurnId) -> polyclaw_store::Result<Vec<ChatAddress>> {
    let mut places: Vec<ChatAddress> = Vec::new();
    for message in prompt::asked(tx, turn)? {
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

/// For whom a turn of a session works: whoever wrote to it, and whoever those work for who did.
pub(crate) fn asked_by(
    tx: &mut Tx<'_>,
    session: &SessionKey,
    turn: &TurnId,
) -> polyclaw_store::Result<Vec<String>> {
    let run = runs::find_running_by_child(tx, session)?;
    let asked = prompt::asked(tx, turn)?;
    let mut senders = prompt::senders(&asked.iter().collect::<Vec<_>>(), run.as_ref());
    senders.extend(team::authority_of_teams(tx, session, turn)?.sender_mark());
    Ok(senders)
}

/// The least authority of those a turn of a session works for.
pub(crate) fn authority_in(
    tx: &mut Tx<'_>,
    session: &SessionKey,
    turn: &TurnId,
) -> polyclaw_store::Result<Authority> {
    let own = Authority::lowest_of_senders(&asked_by(tx, session, turn)?);
    let lent = sessions::get(tx, session)?.and_then(|session| session.inherited?.authority);
    Ok(lent.map_or(own, |above| above.min(own)))
}
