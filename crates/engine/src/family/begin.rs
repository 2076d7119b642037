//! Beginning a run: limits, the child, the run and its first message, all or nothing.

use std::sync::Arc;

use polyclaw_domain::agent::{AgentSpec, SandboxMode};
use polyclaw_domain::channel::{Address, INTERNAL};
use polyclaw_domain::id::{AgentId, RunId, TurnId};
use polyclaw_domain::job::{Lane, Priority};
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::message::Origin;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::relay::{self, Relay};
use polyclaw_domain::run::{Limits, Run, RunKind, RunStatus, Task};
use polyclaw_domain::session::Session;
use polyclaw_store::{Tx, agents, jobs, messages, runs, sessions};

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::ingress::{self, Fresh, Here, Inbound, Relayed, Way};

/// What one session asks of another that is to begin.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Names the run for ever: the same wish, made again after a crash, is the same run.
    pub id: RunId,
    pub kind: RunKind,
    pub owner: SessionKey,
    /// The turn that asks.
    pub turn: TurnId,
    pub agent: AgentId,
    pub task: Task,
    pub model: Option<ModelRef>,
    pub timeout_ms: i64,
    pub is_deleted_after: bool,
    /// The turn waits for the end.
    pub is_awaited: bool,
}

type Begun = std::result::Result<(Run, Option<ingress::Stored>), Error>;

impl Engine {
    /// Begins what is wished for, or finds that it was begun before.
    pub(crate) async fn begin_run(&self, mut wish: Wish) -> Result<Run> {
        if self.is_draining() {
            return Err(Error::Draining);
        }
        self.redactor().string(&mut wish.task.prompt);
        self.redactor().string(&mut wish.task.label);
        let uuid = self.nonce().to_lowercase();
        let (fresh, here) = (Fresh::new(self, None), Arc::new(Here::of(self)));
        let write = move |tx: &mut Tx<'_>| begin(tx, &wish, &uuid, &fresh, &here);
        let (run, stored) = self.db().write(write).await??;
        if let Some((accepted, inbound, begun)) = stored {
            self.announce_accepted(&accepted, inbound);
            self.go_on(&accepted, begun);
        }
        Ok(run)
    }
}

fn begin(
    tx: &mut Tx<'_>,
    wish: &Wish,
    uuid: &str,
    fresh: &Fresh,
    here: &Here,
) -> polyclaw_store::Result<Begun> {
    if let Some(run) = runs::get(tx, &wish.id)? {
        return Ok(Ok((run, None)));
    }
    // Its row first: two wishes at once are counted one after the other.
    sessions::take_tickets(tx, &wish.owner, 0, fresh.now)?;
    let Some(owner) = sessions::get(tx, &wish.owner)? else {
        return Ok(Err(Error::UnknownSession(wish.owner.to_string())));
    };
    let Some(turn) = jobs::get(tx, &wish.turn)? else {
        return Ok(Err(Error::UnknownTurn(wish.turn.to_string())));
    };
    let sent = Relay { from: wish.owner.clone(), hop: turn.hop + 1, automatic_turns: 0 };
    if let Err(refusal) = relay::check(&sent, &SessionKey::of(&wish.agent, &[uuid]), u32::MAX) {
        return Ok(Err(Error::Relay(refusal)));
    }
    let own = agents::get(tx, &turn.agent)?.map(|stored| stored.spec);
    let own = own.unwrap_or_else(|| AgentSpec::named(turn.agent.clone()));
    let Some(target) = agents::get(tx, &wish.agent)?.map(|stored| stored.spec) else {
        return Ok(Err(Error::UnknownAgent(wish.agent.to_string())));
    };
    let at_work = runs::at_work(tx, &wish.owner)?.iter().filter(|run| run.kind == wish.kind).count();
    if let Err(refused) = check(wish, &owner, (&own, &target), u32::try_from(at_work).unwrap_or(u32::MAX)) {
        return Ok(Err(refused));
    }
    let trace = turn.trace.clone();
    let run = Run {
        id: wish.id.clone(),
        kind: wish.kind,
        child: SessionKey::of(&wish.agent, &[wish.kind.as_str(), uuid]),
        agent: wish.agent.clone(),
        owner: wish.owner.clone(),
        owner_turn: wish.turn.clone(),
        trace: trace.clone(),
        hop: turn.hop + 1,
        task: wish.task.clone(),
        reply_to: reply_to(tx, &wish.turn)?,
        awaited_by: wish.is_awaited.then(|| wish.turn.clone()),
        deadline: Some(fresh.now.plus(wish.timeout_ms)),
        is_deleted_after: wish.is_deleted_after,
        status: RunStatus::Running,
        result: None,
        created_at: fresh.now,
        ended_at: None,
    };
    sessions::ensure(tx, &child(&run, &owner, wish, fresh))?;
    runs::insert(tx, &run)?;
    let inbound = first_message(&run, turn.agent);
    let fresh = Fresh { trace, ..fresh.clone() };
    match ingress::store(tx, &inbound, &fresh, here)? {
        Ok((accepted, begun)) => Ok(Ok((run, Some((accepted, inbound, begun))))),
        // Nothing of this transaction stands.
        Err(refused) => Err(polyclaw_store::Error::Conflict(ingress::in_words(&refused))),
    }
}

fn check(
    wish: &Wish,
    owner: &Session,
    (own, target): (&AgentSpec, &AgentSpec),
    at_work: u32,
) -> std::result::Result<(), Error> {
    if own.sandbox.mode != SandboxMode::Off && target.sandbox.mode == SandboxMode::Off {
        return Err(Error::Family("a confined agent cannot begin one that is not (sandbox.mode)".to_owned()));
    }
    let (depth, limits) = match wish.kind {
        RunKind::Subagent if !own.subagents.allows(&own.agent_id, &wish.agent) => {
            return Err(Error::Family(format!(
                "'{}' may not begin sub-agents that are '{}'; add it to subagents.allow_agents",
                own.agent_id, wish.agent
            )));
        }
        RunKind::Subagent => (owner.spawn_depth + 1, own.subagents.limits()),
        RunKind::Delegate => (owner.delegation_depth + 1, delegation(own, &wish.agent)?),
    };
    limits.check(depth, at_work).map_err(|refused| Error::TooMany(wish.kind, refused))
}

fn delegation(own: &AgentSpec, target: &AgentId) -> std::result::Result<Limits, Error> {
    let allowed = own.delegation.as_ref().filter(|rules| rules.allows(target) && own.agent_id != *target);
    let limits = allowed.map(|rules| Limits { depth: rules.max_depth, children: rules.max_concurrent });
    limits.ok_or_else(|| Error::DelegationDenied(own.agent_id.to_string(), target.to_string()))
}

/// Nothing it says leaves by itself: its owner is told.
fn child(run: &Run, owner: &Session, wish: &Wish, fresh: &Fresh) -> Session {
    let begun = Session::begun(run.child.clone(), fresh.session.clone(), run.agent.clone(), fresh.now);
    Session {
        owner: Some(run.owner.clone()),
        lane: Lane::Subagent,
        spawn_depth: owner.spawn_depth + 1,
        delegation_depth: owner.delegation_depth + u32::from(run.kind == RunKind::Delegate),
        delivers: false,
        sends: false,
        model_override: wish.model.clone(),
        address: Some(inside()),
        title: Some(run.task.label.clone()).filter(|label| !label.is_empty()),
        ..begun
    }
}

fn first_message(run: &Run, from: AgentId) -> Inbound {
    let relayed =
        Relayed { from: run.owner.clone(), hop: run.hop, trace: run.trace.clone(), way: Way::Begin };
    Inbound {
        origin: Origin::Agent(from),
        deliver: false,
        priority: Priority::Background,
        idempotency_key: Some(run.id.to_string()),
        relayed: Some(relayed),
        ..Inbound::from_person(run.child.clone(), run.agent.clone(), inside(), run.task.prompt.clone())
    }
}

pub(crate) fn inside() -> Address {
    Address { channel: INTERNAL.to_owned(), account: String::new(), peer: String::new(), thread: None }
}

/// Where the turn that asks answers: people who wait for the end of the run wait there.
pub(crate) fn reply_to(tx: &mut Tx<'_>, turn: &TurnId) -> polyclaw_store::Result<Vec<Address>> {
    let mut places: Vec<Address> = Vec::new();
    for message in messages::of_turn(tx, turn)? {
        let own = message.address.filter(|address| message.deliver && address.channel != INTERNAL);
        let carried = message.meta.as_ref().map(polyclaw_domain::run::reply_to).unwrap_or_default();
        for address in own.into_iter().chain(carried) {
            if !places.contains(&address) {
                places.push(address);
            }
        }
    }
    Ok(places)
}
