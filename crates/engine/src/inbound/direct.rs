//! Messages to an explicitly named session: from the web page, terminal, API and webhooks. Routing has the same order
//! as in chats (broadcast before prefix), but the sender is already known.

use polyclaw_domain::channel::{ChatAddress, WEBHOOK_CHANNEL};
use polyclaw_domain::hex::digest_words;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::inbound::{ChatPeer, InboundContext, PeerKind};
use polyclaw_domain::message::MessageOrigin;
use polyclaw_domain::route::BindingTier;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::broadcasts::{self, Broadcast, TargetOutcome};

use super::reachable_agents::ReachableAgents;
use super::route::RouteTarget;
use crate::core::Engine;
use crate::error::{Error, Result, StateConflict};
use crate::ingress::{AcceptedMessage, IngressMessage};
use crate::reply_once::InboundReceipt;

/// Bindings' view of a message without a platform.
fn spoken_at(channel: &str, account: &str, peer: &str) -> InboundContext {
    InboundContext {
        channel: channel.to_owned(),
        account: account.to_owned(),
        peer: ChatPeer { kind: PeerKind::Dm, id: peer.to_owned() },
        parent: None,
        thread: None,
        guild: None,
        team: None,
        roles: Vec::new(),
        sender: peer.to_owned(),
    }
}

impl Engine {
    /// Returns the agent that the bindings choose for a sender.
    pub fn agent_by_bindings(&self, channel: &str, account: &str, peer: &str) -> AgentId {
        self.settings().inbound.router.choose_agent(&spoken_at(channel, account, peer)).agent.clone()
    }

    /// Agents that a non-owner can address by name.
    pub(crate) fn reachable_from(&self, address: &ChatAddress, agent: &AgentId) -> ReachableAgents {
        let arrival = spoken_at(&address.channel, &address.account, &address.peer);
        let is_bound = self.settings().inbound.router.choose_agent(&arrival).tier != BindingTier::Default;
        ReachableAgents::From { routed: agent.clone(), named: Vec::new(), is_bound }
    }

    /// Routes a message to the agent named as its prefix, or to the session that its conversation is focused on. On
    /// channels where people read the session itself, the named agent answers in that session; on others it has a
    /// session of its own. A message whose agent is fixed is returned unchanged.
    pub async fn resolve_addressee(&self, inbound: IngressMessage) -> Result<IngressMessage> {
        let is_spoken =
            matches!(inbound.origin, MessageOrigin::User | MessageOrigin::Hook) && inbound.relay.is_none();
        if !is_spoken || inbound.by.is_some() {
            return Ok(inbound);
        }
        if let Some(unknown) = self.find_unknown_command(&inbound.text).await? {
            return Err(Error::UnknownCommand(unknown));
        }
        if self.broadcast_targets_for(&inbound).is_some() {
            return Ok(inbound);
        }
        let Some((agent, rest)) = self.split_agent_prefix(&inbound.text).await? else {
            return self.apply_focus(inbound).await;
        };
        let reachable = match inbound.origin {
            // Signing a webhook call does not make the sender an owner.
            MessageOrigin::Hook => self.reachable_from(&inbound.address, &inbound.agent),
            _ => ReachableAgents::Every,
        };
        if !self.can_reach_agent(&reachable, &agent).await? {
            return Err(Error::AgentNotAllowed(agent));
        }
        if rest.is_empty() && inbound.parts.is_empty() {
            return Err(Error::OnlyAName(agent));
        }
        let own = inbound.session.with_agent(&agent).filter(|_| !inbound.address.is_pull_channel());
        let text = rest.to_owned();
        Ok(match own {
            Some(session) => {
                IngressMessage { session, agent: agent.clone(), by: Some(agent), text, ..inbound }
            }
            None => IngressMessage { by: Some(agent), text, ..inbound },
        })
    }

    /// Redirects a message to the session that its conversation is focused on. Tool results belong to the turn that
    /// called, and webhooks do not follow a person's `/focus`.
    async fn apply_focus(&self, inbound: IngressMessage) -> Result<IngressMessage> {
        if inbound.origin != MessageOrigin::User || !inbound.tool_results.is_empty() {
            return Ok(inbound);
        }
        let there = self.session_and_focus(&inbound.session).await?.and_then(|session| session.focus);
        Ok(match there {
            Some(session) => IngressMessage { session, ..inbound },
            None => inbound,
        })
    }

    /// Accepts a message for every agent that should answer. For a broadcast, returns the turn of the named session,
    /// else of the first agent.
    pub async fn submit_message(&self, inbound: IngressMessage) -> Result<AcceptedMessage> {
        match self.broadcast_targets_for(&inbound) {
            None => self.accept_message(inbound).await,
            Some(targets) => self.submit_broadcast(inbound, targets).await,
        }
    }

    /// Agents that all answer this conversation, each in its own session. `None`: one agent is fixed or no broadcast is
    /// configured.
    pub(super) fn broadcast_targets_for(&self, inbound: &IngressMessage) -> Option<Vec<RouteTarget>> {
        if inbound.by.is_some() {
            return None;
        }
        let settings = self.settings();
        let listed =
            settings.inbound.broadcast_agents_by_peer(&inbound.address.channel, &inbound.address.peer)?;
        let target = |agent: &AgentId| {
            let session = inbound.session.with_agent(agent)?;
            Some(RouteTarget { by: Some(agent.clone()), ..RouteTarget::new(session, agent.clone()) })
        };
        listed.iter().map(target).collect()
    }

    async fn submit_broadcast(
        &self,
        inbound: IngressMessage,
        targets: Vec<RouteTarget>,
    ) -> Result<AcceptedMessage> {
        self.check_message(&inbound)?;
        let (own, id) = (inbound.session.clone(), self.broadcast_id(&inbound));
        let is_new = self.find_broadcast(&id).await?.is_none()
            && self.start_broadcast_once(inbound, targets, &id).await?;
        let round = self.find_broadcast(&id).await?.ok_or(Error::Deleted)?;
        let nobody = || Error::from(StateConflict::NoAgentAccepted);
        let at = answering_target(&round, &own).ok_or_else(nobody)?;
        // Its idempotency key makes this the same message, whether or not it is stored already.
        let accepted = self.accept_message(target_message(&round, at)).await?;
        Ok(AcceptedMessage { duplicate: !is_new, ..accepted })
    }

    async fn find_broadcast(&self, id: &str) -> Result<Option<Broadcast>> {
        let wanted = id.to_owned();
        Ok(self.db().read(move |tx| broadcasts::get(tx, &wanted)).await?)
    }

    /// Starts the broadcast. `false`: a copy of the same message has just started it.
    async fn start_broadcast_once(
        &self,
        inbound: IngressMessage,
        targets: Vec<RouteTarget>,
        id: &str,
    ) -> Result<bool> {
        let locale = self.session_locale(&inbound.session).await;
        let receipt = InboundReceipt::from_message(&inbound, locale);
        match self.start_broadcast(inbound, targets, (id.to_owned(), &receipt)).await {
            Ok(()) => Ok(true),
            Err(Error::Store(polyclaw_store::Error::Conflict(_)))
                if self.find_broadcast(id).await?.is_some() =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Broadcast id, derived from the sender's key so that a repeated message finds its broadcast.
    fn broadcast_id(&self, inbound: &IngressMessage) -> String {
        let Some(key) = inbound.idempotency_key.as_ref().or(inbound.platform_id.as_ref()) else {
            return self.next_id();
        };
        digest_words(&[inbound.session.as_str(), &inbound.address.channel, key])
    }
}

/// The target whose turn is reported: the named session's, else the first that accepted. If none has accepted yet, the
/// first that is still pending.
fn answering_target(round: &Broadcast, own: &SessionKey) -> Option<usize> {
    let is_taken = |at: &usize| matches!(round.targets[*at].outcome, Some(TargetOutcome::Turn(_)));
    let taken: Vec<usize> = (0..round.targets.len()).filter(is_taken).collect();
    let own = taken.iter().copied().find(|at| round.targets[*at].session == *own);
    own.or(taken.first().copied())
        .or_else(|| round.targets.iter().position(|target| target.outcome.is_none()))
}

/// The message for one target. Its idempotency key prevents duplicates.
pub(super) fn target_message(round: &Broadcast, at: usize) -> IngressMessage {
    let target = &round.targets[at];
    let mut meta = round.meta.clone().unwrap_or_else(|| serde_json::json!({}));
    meta["broadcast"] = serde_json::json!({ "id": round.id, "target": at });
    let origin =
        if round.address.channel == WEBHOOK_CHANNEL { MessageOrigin::Hook } else { MessageOrigin::User };
    let (session, address) = (target.session.clone(), round.address.clone());
    IngressMessage {
        by: Some(target.agent.clone()),
        origin,
        parts: round.parts.clone(),
        idempotency_key: Some(format!("round-{}", round.id)),
        priority: round.priority,
        meta: Some(meta),
        ..IngressMessage::from_person(session, target.agent.clone(), address, round.text.clone())
    }
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::channel::ChatAddress;
    use polyclaw_domain::id::TurnId;
    use polyclaw_domain::job::JobPriority;
    use polyclaw_domain::time::Millis;
    use polyclaw_store::broadcasts::BroadcastTarget;

    use super::*;

    fn key(at: usize) -> SessionKey {
        SessionKey::from_parts(&AgentId::main(), &["web", "dm", &at.to_string()])
    }

    fn round(targets: &[Option<TargetOutcome>]) -> Broadcast {
        let target_of = |(at, turn): (usize, &Option<TargetOutcome>)| BroadcastTarget {
            agent: AgentId::main(),
            session: key(at),
            outcome: turn.clone(),
        };
        Broadcast {
            id: "r".into(),
            text: "hello".into(),
            parts: Vec::new(),
            address: ChatAddress::internal(),
            meta: None,
            priority: JobPriority::Direct,
            is_sequential: true,
            see_previous: false,
            targets: targets.iter().enumerate().map(target_of).collect(),
            created_at: Millis(0),
        }
    }

    #[test]
    fn answering_target_is_none_only_if_all_targets_refuse() {
        let taken = || Some(TargetOutcome::Turn(TurnId::new("t")));
        let refused = || Some(TargetOutcome::Refused);
        for (targets, own, expected) in [
            (vec![taken(), taken()], 1, Some(1)),
            (vec![refused(), taken(), None], 0, Some(1)),
            (vec![taken(), None], 1, Some(0)),
            (vec![refused(), None, None], 2, Some(1)),
            (vec![None, None], 1, Some(0)),
            (vec![refused(), refused()], 0, None),
        ] {
            assert_eq!(answering_target(&round(&targets), &key(own)), expected, "{targets:?}");
        }
    }
}
