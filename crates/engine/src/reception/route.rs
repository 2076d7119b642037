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

use super::reach::{Reachable, refusal};
use super::rules::Rules;
use crate::core::Engine;
use crate::error::Result;

/// What decided, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
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

impl Layer {
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
pub(super) struct Target {
    pub session: SessionKey,
    /// Whose session it is, if it is new.
    pub agent: AgentId,
    /// Who answers this one, whomever the session was switched to.
    pub by: Option<AgentId>,
}

impl Target {
    pub(super) fn new(session: SessionKey, agent: AgentId) -> Self {
        Self { session, agent, by: None }
    }
}

/// Where a letter belongs before its text is looked at: what the bindings say.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub agent: AgentId,
    pub key: SessionKey,
    pub tier: BindingTier,
    /// The session, if something was said there before.
    pub session: Option<Session>,
}

pub(super) enum Routed {
    One {
        target: Target,
        text: String,
        layer: Layer,
    },
    Several(Vec<Target>),
    /// An agent was named and nothing said to it, or a command was meant that there is not.
    Usage(String),
}

/// Where a conversation goes on. A session that is gone is no place for that, and neither is one in which nothing was
/// said for as long as `/session ttl` of the conversation says.
fn focus(
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
    pub(super) async fn place(&self, arrival: &InboundContext) -> Result<Place> {
        let settings = self.settings();
        let rules = &settings.reception;
        let choice = rules.router.choose_agent(arrival);
        let key = rules.key(choice.agent, arrival, choice);
        let (agent, tier) = (choice.agent.clone(), choice.tier);
        let session = self.session_and_focus(&key).await?;
        Ok(Place { agent, key, tier, session })
    }

    /// A conversation as it is stored, with a focus only where one still holds. One that does not is given up.
    pub(super) async fn session_and_focus(&self, key: &SessionKey) -> Result<Option<Session>> {
        let (wanted, now) = (key.clone(), self.now());
        let read = move |tx: &mut Tx<'_>| {
            let Some(session) = sessions::get(tx, &wanted)? else { return Ok(None) };
            let focus = match &session.focus {
                Some(there) => focus(tx, &session, there, now)?,
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

    pub(super) async fn route(&self, letter: &InboundMessage, place: Place) -> Result<Routed> {
        let reachable = self.reachable(letter, &place);
        match self.without_classifier(letter, place).await? {
            Routed::One { target, text, layer: Layer::Default } => {
                self.judged(letter, target, (text, &reachable)).await
            }
            routed => Ok(routed),
        }
    }

    /// Every step but the one that asks a model.
    pub(super) async fn without_classifier(&self, letter: &InboundMessage, place: Place) -> Result<Routed> {
        let (arrival, text) = (&letter.context, letter.text.as_str());
        let settings = self.settings();
        let rules = &settings.reception;
        if let Some(unknown) = self.unknown_command(text).await? {
            return Ok(Routed::Usage(unknown.user_message()));
        }
        if let Some(targets) = group(rules, arrival) {
            return Ok(Routed::Several(targets));
        }
        if let Some((id, rest)) = self.prefix(text).await? {
            if rest.is_empty() && letter.attachments.is_empty() {
                return Ok(Routed::Usage(format!("Say what {id} is to do: /{id} <message>")));
            }
            if !self.may_reach(&self.reachable(letter, &place), &id).await? {
                return Ok(Routed::Usage(refusal(&id)));
            }
            let session = match PULL_CHANNELS.contains(&arrival.channel.as_str()) {
                true => place.key,
                false => key_of(rules, &id, arrival),
            };
            let target = Target { by: Some(id.clone()), ..Target::new(session, id) };
            return Ok(Routed::One { target, text: rest.to_owned(), layer: Layer::Prefix });
        }
        let layer = match &place.session {
            Some(Session { focus: Some(_), .. }) => Layer::Focus,
            Some(session) if session.active_agent != session.agent => Layer::Active,
            _ if place.tier == BindingTier::Default => Layer::Default,
            _ => Layer::Binding,
        };
        let focus = place.session.and_then(|session| session.focus);
        let session = focus.unwrap_or(place.key);
        Ok(Routed::One { target: Target::new(session, place.agent), text: text.to_owned(), layer })
    }

    /// What a line is that looks like a command and names neither one nor an agent. No model could make sense of it.
    pub(super) async fn unknown_command(&self, text: &str) -> Result<Option<UnknownCommand>> {
        let Some(word) = unknown_command_word(text) else { return Ok(None) };
        if self.prefix(text).await?.is_some() {
            return Ok(None);
        }
        let listed = self.db().read(agents::list).await?;
        Ok(Some(UnknownCommand::new(word, listed.iter().map(|stored| &stored.spec.agent_id))))
    }

    /// The agent named in front of a message, and the rest: by its id, or as a menu writes it.
    pub(super) async fn prefix<'a>(&self, text: &'a str) -> Result<Option<(AgentId, &'a str)>> {
        let Some((word, rest)) = split_command(text).filter(|(word, _)| !word.is_empty()) else {
            return Ok(None);
        };
        let (word, listed) = (word.to_ascii_lowercase(), self.db().read(agents::list).await?);
        let ids = || listed.iter().map(|stored| &stored.spec.agent_id);
        let found = ids().find(|id| id.as_str() == word).or_else(|| ids().find(|id| menu_name(id) == word));
        Ok(found.map(|id| (id.clone(), rest)))
    }

    /// A default that a model may replace by a better agent.
    async fn judged(
        &self,
        letter: &InboundMessage,
        target: Target,
        (text, reachable): (String, &Reachable),
    ) -> Result<Routed> {
        let settings = self.settings();
        match self.classify(letter, &text).await? {
            Some(agent) if agent != target.agent && self.may_reach(reachable, &agent).await? => {
                let session = key_of(&settings.reception, &agent, &letter.context);
                let target = Target { by: Some(agent.clone()), ..Target::new(session, agent) };
                Ok(Routed::One { target, text, layer: Layer::Classifier })
            }
            _ => Ok(Routed::One { target, text, layer: Layer::Default }),
        }
    }
}

pub(super) fn group(rules: &Rules, arrival: &InboundContext) -> Option<Vec<Target>> {
    let listed = rules.group(arrival)?;
    let target = |agent: &AgentId| Target {
        by: Some(agent.clone()),
        ..Target::new(key_of(rules, agent, arrival), agent.clone())
    };
    Some(listed.iter().map(target).collect())
}

/// The conversation of an agent there, kept apart as the binding that holds there says.
pub(super) fn key_of(rules: &Rules, agent: &AgentId, arrival: &InboundContext) -> SessionKey {
    rules.key(agent, arrival, rules.router.choose_agent(arrival))
}
