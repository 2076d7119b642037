//! Chooses the agent and session that answer an inbound message. The same code decides and explains.

use polyclaw_domain::channel::{InboundMessage, PULL_CHANNELS};
use polyclaw_domain::command::{UnknownCommand, menu_name, split_command, unknown_command_word};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::inbound::InboundContext;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::route::BindingTier;
use polyclaw_domain::session::Session;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::{Tx, agents, messages, sessions};
use serde::Serialize;

use super::reachable_agents::ReachableAgents;
use super::rules::InboundRules;
use crate::core::Engine;
use crate::error::Result;
use crate::reply_text;

/// The rule that decided, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteLayer {
    /// Several agents answer this conversation.
    Broadcast,
    /// The message names its agent as prefix.
    Prefix,
    /// The conversation continues in another session.
    Focus,
    /// The conversation was switched to another agent.
    Active,
    Binding,
    Classifier,
    /// The webhook names its agent.
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

/// A session and the agent that answers in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RouteTarget {
    pub session: SessionKey,
    /// Agent of the session if the session is new.
    pub agent: AgentId,
    /// Agent that answers this message, even if the session was switched to another.
    pub by: Option<AgentId>,
}

impl RouteTarget {
    pub(super) fn new(session: SessionKey, agent: AgentId) -> Self {
        Self { session, agent, by: None }
    }
}

/// The bindings' choice for a message, before its text is read.
#[derive(Clone, Debug)]
pub(super) struct BindingRoute {
    pub agent: AgentId,
    pub key: SessionKey,
    pub tier: BindingTier,
    /// The session, if it exists.
    pub session: Option<Session>,
}

pub(super) enum RouteDecision {
    One {
        target: RouteTarget,
        text: String,
        layer: RouteLayer,
    },
    Several(Vec<RouteTarget>),
    /// No agent gets the message; the sender gets a reply.
    Usage(UsageReply),
}

/// Why no agent gets a message.
pub(super) enum UsageReply {
    UnknownCommand(UnknownCommand),
    /// The message only names an agent.
    MessageMissing(AgentId),
    /// The sender may not address this agent.
    AgentUnavailable(AgentId),
}

impl UsageReply {
    pub fn text(&self, locale: Locale) -> String {
        match self {
            Self::UnknownCommand(unknown) => unknown.user_message(locale),
            Self::MessageMissing(agent) => reply_text::inbound::message_missing(locale, agent),
            Self::AgentUnavailable(agent) => reply_text::inbound::agent_unavailable(locale, agent),
        }
    }
}

/// Returns the session that a focus points to. `None`: that session is gone, or the focus was silent for longer than
/// the `/session ttl` of the conversation.
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

    /// Loads a session. A focus that no longer holds is removed, also in the database.
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

    /// Runs all routing steps except the classifier.
    pub(super) async fn route_without_classifier(
        &self,
        message: &InboundMessage,
        place: BindingRoute,
    ) -> Result<RouteDecision> {
        let (arrival, text) = (&message.context, message.text.as_str());
        let settings = self.settings();
        let rules = &settings.inbound;
        if let Some(unknown) = self.find_unknown_command(text).await? {
            return Ok(RouteDecision::Usage(UsageReply::UnknownCommand(unknown)));
        }
        if let Some(targets) = broadcast_targets(rules, arrival) {
            return Ok(RouteDecision::Several(targets));
        }
        if let Some((id, rest)) = self.split_agent_prefix(text).await? {
            if rest.is_empty() && message.attachments.is_empty() {
                return Ok(RouteDecision::Usage(UsageReply::MessageMissing(id)));
            }
            if !self.can_reach_agent(&self.reachable_agents(message, &place), &id).await? {
                return Ok(RouteDecision::Usage(UsageReply::AgentUnavailable(id)));
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

    /// Returns the unknown command if a line looks like a command but names neither a command nor an agent. Models
    /// cannot make sense of such a line.
    pub(super) async fn find_unknown_command(&self, text: &str) -> Result<Option<UnknownCommand>> {
        let Some(word) = unknown_command_word(text) else { return Ok(None) };
        if self.split_agent_prefix(text).await?.is_some() {
            return Ok(None);
        }
        let listed = self.db().read(agents::list).await?;
        Ok(Some(UnknownCommand::new(word, listed.iter().map(|stored| &stored.spec.agent_id))))
    }

    /// Splits off the agent named in front of a message, by its id or by its menu name.
    pub(super) async fn split_agent_prefix<'a>(&self, text: &'a str) -> Result<Option<(AgentId, &'a str)>> {
        let Some((word, rest)) = split_command(text).filter(|(word, _)| !word.is_empty()) else {
            return Ok(None);
        };
        let (word, listed) = (word.to_ascii_lowercase(), self.db().read(agents::list).await?);
        let ids = || listed.iter().map(|stored| &stored.spec.agent_id);
        let found = ids().find(|id| id.as_str() == word).or_else(|| ids().find(|id| menu_name(id) == word));
        Ok(found.map(|id| (id.clone(), rest)))
    }

    /// Replaces the default agent by a better one if the classifier is sure.
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

/// Session key of an agent's conversation, scoped as the matching binding says.
pub(super) fn session_key_for(rules: &InboundRules, agent: &AgentId, arrival: &InboundContext) -> SessionKey {
    rules.session_key(agent, arrival, rules.router.choose_agent(arrival))
}
