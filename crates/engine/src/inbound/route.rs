//! Who answers a letter, and in which session. The same code decides and explains.

use polyclaw_domain::channel::{InboundMessage, PULL_CHANNELS};
use polyclaw_domain::command::{UnknownCommand, menu_name, split_command, unknown_command_word};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::inbound::InboundContext;
use polyclaw_domain::route::BindingTier;
use polyclaw_domain::session::Session;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::{Tx, agents, messages, sessions};
use serde::Serialize;

use super::reachable_agents::{ReachableAgents, unreachable_reply};
use super::rules::InboundRules;
use crate::core::Engine;
use crate::error::Result;

/// What decided, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteLayer {
    /// Several agents answer this conversation.
    Broadcast,
    /// The agent was named in front, for this message only.
    Prefix,
    /// The conversation goes on in another session.
    Focus,
    /// The conversation was switched to another agent.
    Active,
    Binding,
    Classifier,
    /// The hook it comes by names its agent.
    Hook,
    Default,
}

impl RouteLayer {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Broadcast => "broadcast",
            Self::Prefix => "prefix",
            Self::Focus => "focus",
            Self::Active => "active",
            Self::Binding => "binding",
            Self::Classifier => "classifier",
            Self::Hook => "hook",
            Self::Default => "default",
        }
    }
}

/// A session, and who answers in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RouteTarget {
    pub session: SessionKey,
    /// Whose session it is, if it is new.
    pub agent: AgentId,
    /// Who answers this one, whomever the session was switched to.
    pub by: Option<AgentId>,
}

impl RouteTarget {
    pub(super) fn new(session: SessionKey, agent: AgentId) -> Self {
        Self { session, agent, by: None }
    }
}

/// Where a letter belongs before its text is looked at: what the bindings say.
#[derive(Clone, Debug)]
pub(super) struct BindingRoute {
    pub agent: AgentId,
    pub key: SessionKey,
    pub tier: BindingTier,
    /// The session, if something was said there before.
    pub session: Option<Session>,
}

pub(super) enum RouteDecision {
    One {
        target: RouteTarget,
        text: String,
        layer: RouteLayer,
    },
    Several(Vec<RouteTarget>),
    /// An agent was named and nothing said to it, or a command was meant that there is not.
    Usage(String),
}

/// Where a conversation goes on. A session that is gone is no place for that, and neither is one in which nothing was
/// said for as long as `/session ttl` of the conversation says.
fn resolve_focus(
    tx: &mut Tx<'_>,
    from: &Session,
    there: &SessionKey,
    now: Millis,
) -> polyclaw_store::Result<Option<SessionKey>> {
    let Some(there) = sessions::get(tx, there)? else { return Ok(None) };
    let last = messages::last_message_at(tx, &there.key)?.unwrap_or(from.updated_at).max(from.updated_at);
    let is_over = from.ttl_ms.is_some_and(|ttl_ms| now.since(last) > ttl_ms);
    Ok((!is_over).then_some(there.key))
}

impl Engine {
    pub(super) async fn match_bindings(&self, arrival: &InboundContext) -> Result<BindingRoute> {
        let settings = self.settings();
        let rules = &settings.inbound;
        let choice = rules.router.choose_agent(arrival);
        let key = rules.session_key(choice.agent, arrival, choice);
        let (agent, tier) = (choice.agent.clone(), choice.tier);
        let session = self.session_and_focus(&key).await?;
        Ok(BindingRoute { agent, key, tier, session })
    }

    /// A conversation as it is stored, with a focus only where one still holds. One that does not is given up.
    pub(super) async fn session_and_focus(&self, key: &SessionKey) -> Result<Option<Session>> {
        let (wanted, now) = (key.clone(), self.now());
        let read = move |tx: &mut Tx<'_>| {
            let Some(session) = sessions::get(tx, &wanted)? else { return Ok(None) };
            let focus = match &session.focus {
                Some(there) => resolve_focus(tx, &session, there, now)?,
                None => None,
            };
            Ok(Some((session.focus.is_some() && focus.is_none(), Session { focus, ..session })))
        };
        let found = self.db().read(read).await?;
        if found.as_ref().is_some_and(|(is_over, _)| *is_over) {
            let from = key.clone();
            self.db().write(move |tx| sessions::set_focus(tx, &from, None, now)).await?;
        }
        Ok(found.map(|(_, session)| session))
    }

    pub(super) async fn route_message(
        &self,
        message: &InboundMessage,
        place: BindingRoute,
    ) -> Result<RouteDecision> {
        let reachable = self.reachable_agents(message, &place);
        match self.route_without_classifier(message, place).await? {
            RouteDecision::One { target, text, layer: RouteLayer::Default } => {
                self.apply_classifier(message, target, (text, &reachable)).await
            }
            routed => Ok(routed),
        }
    }

    /// Every step but the one that asks a model.
    pub(super) async fn route_without_classifier(
        &self,
        message: &InboundMessage,
        place: BindingRoute,
    ) -> Result<RouteDecision> {
        let (arrival, text) = (&message.context, message.text.as_str());
        let settings = self.settings();
        let rules = &settings.inbound;
        if let Some(unknown) = self.find_unknown_command(text).await? {
            return Ok(RouteDecision::Usage(unknown.user_message()));
        }
        if let Some(targets) = broadcast_targets(rules, arrival) {
            return Ok(RouteDecision::Several(targets));
        }
        if let Some((id, rest)) = self.split_agent_prefix(text).await? {
            if rest.is_empty() && message.attachments.is_empty() {
                return Ok(RouteDecision::Usage(format!("Say what {id} is to do: /{id} <message>")));
            }
            if !self.can_reach_agent(&self.reachable_agents(message, &place), &id).await? {
                return Ok(RouteDecision::Usage(unreachable_reply(&id)));
            }
            let session = match PULL_CHANNELS.contains(&arrival.channel.as_str()) {
                true => place.key,
                false => session_key_for(rules, &id, arrival),
            };
            let target = RouteTarget { by: Some(id.clone()), ..RouteTarget::new(session, id) };
            return Ok(RouteDecision::One { target, text: rest.to_owned(), layer: RouteLayer::Prefix });
        }
        let layer = match &place.session {
            Some(Session { focus: Some(_), .. }) => RouteLayer::Focus,
            Some(session) if session.active_agent != session.agent => RouteLayer::Active,
            _ if place.tier == BindingTier::Default => RouteLayer::Default,
            _ => RouteLayer::Binding,
        };
        let focus = place.session.and_then(|session| session.focus);
        let session = focus.unwrap_or(place.key);
        Ok(RouteDecision::One {
            target: RouteTarget::new(session, place.agent),
            text: text.to_owned(),
            layer,
        })
    }

    /// What a line is that looks like a command and names neither one nor an agent. No model could make sense of it.
    pub(super) async fn find_unknown_command(&self, text: &str) -> Result<Option<UnknownCommand>> {
        let Some(word) = unknown_command_word(text) else { return Ok(None) };
        if self.split_agent_prefix(text).await?.is_some() {
            return Ok(None);
        }
        let listed = self.db().read(agents::list).await?;
        Ok(Some(UnknownCommand::new(word, listed.iter().map(|stored| &stored.spec.agent_id))))
    }

    /// The agent named in front of a message, and the rest: by its id, or as a menu writes it.
    pub(super) async fn split_agent_prefix<'a>(&self, text: &'a str) -> Result<Option<(AgentId, &'a str)>> {
        let Some((word, rest)) = split_command(text).filter(|(word, _)| !word.is_empty()) else {
            return Ok(None);
        };
        let (word, listed) = (word.to_ascii_lowercase(), self.db().read(agents::list).await?);
        let ids = || listed.iter().map(|stored| &stored.spec.agent_id);
        let found = ids().find(|id| id.as_str() == word).or_else(|| ids().find(|id| menu_name(id) == word));
        Ok(found.map(|id| (id.clone(), rest)))
    }

    /// A default that a model may replace by a better agent.
    async fn apply_classifier(
        &self,
        message: &InboundMessage,
        target: RouteTarget,
        (text, reachable): (String, &ReachableAgents),
    ) -> Result<RouteDecision> {
        let settings = self.settings();
        match self.classify_message(message, &text).await? {
            Some(agent) if agent != target.agent && self.can_reach_agent(reachable, &agent).await? => {
                let session = session_key_for(&settings.inbound, &agent, &message.context);
                let target = RouteTarget { by: Some(agent.clone()), ..RouteTarget::new(session, agent) };
                Ok(RouteDecision::One { target, text, layer: RouteLayer::Classifier })
            }
            _ => Ok(RouteDecision::One { target, text, layer: RouteLayer::Default }),
        }
    }
}

pub(super) fn broadcast_targets(rules: &InboundRules, arrival: &InboundContext) -> Option<Vec<RouteTarget>> {
    let listed = rules.broadcast_agents(arrival)?;
    let target = |agent: &AgentId| RouteTarget {
        by: Some(agent.clone()),
        ..RouteTarget::new(session_key_for(rules, agent, arrival), agent.clone())
    };
    Some(listed.iter().map(target).collect())
}

/// The conversation of an agent there, kept apart as the binding that holds there says.
pub(super) fn session_key_for(rules: &InboundRules, agent: &AgentId, arrival: &InboundContext) -> SessionKey {
    rules.session_key(agent, arrival, rules.router.choose_agent(arrival))
}
