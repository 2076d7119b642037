//! Target sessions of a chat command: the conversation's own session and all other work for the same chat. It does not
//! matter to readers of the chat which agent does the work.

use polyclaw_domain::channel::{ChatAddress, InboundMessage};
use polyclaw_domain::command::{ChatCommand, parse};
use polyclaw_domain::id::{ApprovalId, TurnId};
use polyclaw_domain::inbound::InboundContext;
use polyclaw_domain::session::Session;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::approvals::StoredApproval;
use polyclaw_store::{Tx, agents, jobs, messages, runs, sessions};

use super::route::{BindingRoute, RouteTarget, session_key_for};
use super::rules::InboundRules;
use crate::core::Engine;
use crate::error::Result;
use crate::subagents::reply_addresses;

/// Commands about the conversation itself, wherever it is focused.
const CONVERSATION_COMMANDS: [&str; 5] = ["focus", "unfocus", "session", "subagents", "language"];

impl Engine {
    /// A command after an agent prefix, and that agent's session with this chat.
    pub(super) async fn find_named_command<'a>(
        &self,
        message: &'a InboundMessage,
        place: &BindingRoute,
    ) -> Result<Option<(BindingRoute, (&'static ChatCommand, &'a str))>> {
        let Some((agent, behind)) = self.split_agent_prefix(&message.text).await? else { return Ok(None) };
        let Some(line) = parse(behind) else { return Ok(None) };
        let key = session_key_for(&self.settings().inbound, &agent, &message.context);
        let wanted = key.clone();
        let session = self.db().read(move |tx| sessions::get(tx, &wanted)).await?;
        // An agent prefix ignores the focus, as it does for messages.
        let session = session.map(|session| Session { focus: None, ..session });
        Ok(Some((BindingRoute { agent, key, tier: place.tier, session }, line)))
    }

    /// Sessions other than `own` that a command without an agent prefix concerns.
    pub(super) async fn other_command_targets(
        &self,
        command: &str,
        message: &InboundMessage,
        own: &[SessionKey],
    ) -> Result<Vec<RouteTarget>> {
        let find = match command {
            "stop" | "status" | "queue" => stoppable_targets,
            "new" => targets_written_from,
            _ => return Ok(Vec::new()),
        };
        let (settings, arrival, address) =
            (self.settings(), message.context.clone(), message.address.clone());
        let read = move |tx: &mut Tx<'_>| {
            let known = agent_conversations(tx, &settings.inbound, &arrival)?;
            find(tx, known, &address)
        };
        let mut found = self.db().read(read).await?;
        found.retain(|target| !own.contains(&target.session));
        Ok(found)
    }

    /// The approval request that a line such as `/approve <id>` answers.
    pub(super) async fn find_answered_approval(&self, rest: &str) -> Result<Option<StoredApproval>> {
        let id = ApprovalId::new(rest.split_whitespace().next().unwrap_or_default());
        self.find_approval(&id).await
    }
}

/// The session the conversation is focused on, or for some commands its own session.
pub(super) fn conversation_session(place: &BindingRoute, command: &str) -> SessionKey {
    let focus = place.session.as_ref().and_then(|session| session.focus.clone());
    focus.filter(|_| !CONVERSATION_COMMANDS.contains(&command)).unwrap_or_else(|| place.key.clone())
}

/// The session key that each agent has for this chat, whether or not the session exists.
fn agent_conversations(
    tx: &mut Tx<'_>,
    rules: &InboundRules,
    arrival: &InboundContext,
) -> polyclaw_store::Result<Vec<RouteTarget>> {
    let ids = agents::list(tx)?.into_iter().map(|stored| stored.spec.agent_id);
    Ok(ids.map(|id| RouteTarget::new(session_key_for(rules, &id, arrival), id)).collect())
}

/// Sessions with stoppable work whose answer goes to this address.
fn stoppable_targets(
    tx: &mut Tx<'_>,
    known: Vec<RouteTarget>,
    address: &ChatAddress,
) -> polyclaw_store::Result<Vec<RouteTarget>> {
    let mut found: Vec<RouteTarget> = Vec::new();
    for running in jobs::list_running(tx)? {
        if let Some(session) = answering_session(tx, &running.session, &running.turn, address)? {
            let agent = session.agent_id().unwrap_or(running.agent);
            found.push(RouteTarget::new(session, agent));
        }
    }
    for target in known {
        let load = jobs::session_load(tx, &target.session)?;
        let Some(turn) = load.queued.filter(|_| load.running.is_none()) else { continue };
        if reply_addresses(tx, &turn)?.contains(address) {
            found.push(target);
        }
    }
    found.sort_by(|one, other| one.session.as_str().cmp(other.session.as_str()));
    found.dedup_by(|one, other| one.session == other.session);
    Ok(found)
}

/// The session that answers this address for a turn: the turn's own session or that of a waiting ancestor.
fn answering_session(
    tx: &mut Tx<'_>,
    session: &SessionKey,
    turn: &TurnId,
    address: &ChatAddress,
) -> polyclaw_store::Result<Option<SessionKey>> {
    if reply_addresses(tx, turn)?.contains(address) {
        return Ok(Some(session.clone()));
    }
    let mut child = session.clone();
    while let Some(run) = runs::find_running_by_child(tx, &child)? {
        if run.reply_to.contains(address) {
            return Ok(Some(run.owner));
        }
        child = run.owner;
    }
    Ok(None)
}

/// Sessions that have messages from this address.
fn targets_written_from(
    tx: &mut Tx<'_>,
    known: Vec<RouteTarget>,
    address: &ChatAddress,
) -> polyclaw_store::Result<Vec<RouteTarget>> {
    let mut found = Vec::new();
    for target in known {
        if messages::has_message_from(tx, &target.session, address)? {
            found.push(target);
        }
    }
    Ok(found)
}
