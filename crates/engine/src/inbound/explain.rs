//! `route explain`: which agent would answer a message and why, using the code that decides. Changes nothing and calls
//! no model.

use polyclaw_domain::admission::SenderAdmission;
use polyclaw_domain::channel::InboundMessage;
use polyclaw_domain::command::parse;
use polyclaw_domain::id::{AgentId, SessionId};
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::route::{self, BindingTier};
use polyclaw_domain::session::Session;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::sessions;

use super::route::{RouteDecision, RouteLayer, RouteTarget};
use crate::agent::ToolExplanation;
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::ingress::IngressMessage;

/// How a message would be handled.
#[derive(Clone, Debug)]
pub struct InboundExplanation {
    /// `admitted`, `pair`, or the reason why it is ignored.
    pub admission: &'static str,
    /// The rule that decided. `None` if no agent is asked: a command, or only an agent's name.
    pub layer: Option<RouteLayer>,
    /// The command, if the message is one.
    pub command: Option<&'static str>,
    /// The bindings' choice, whichever agent answers in the end.
    pub bindings: route::BindingExplanation,
    /// The classifier would be asked whether another agent fits better.
    pub asks_classifier: bool,
    pub answers: Vec<AnsweringAgent>,
}

/// An agent that would answer, with its model and tools.
#[derive(Clone, Debug)]
pub struct AnsweringAgent {
    pub agent: AgentId,
    pub session: SessionKey,
    pub model: Option<ModelRef>,
    pub tools: Vec<ToolExplanation>,
}

/// The agent and session of a webhook.
#[derive(Clone, Debug)]
pub struct HookRoute {
    pub agent: AgentId,
    pub session: SessionKey,
    /// The hook names its agent; otherwise the bindings choose it.
    pub is_named: bool,
    /// The text is mapped from third-party content, so it is never a command.
    pub is_mapped: bool,
}

impl HookRoute {
    /// The agent that answers every post, if text cannot change it: mapped text chooses no agent, and neither does text
    /// to a hook that names its agent.
    pub fn fixed_agent(&self) -> Option<AgentId> {
        (self.is_named || self.is_mapped).then(|| self.agent.clone())
    }

    /// Whether a text may be a command. Mapped text never is, and `/agent` does not replace the agent that the hook
    /// names.
    pub fn accepts_command(&self, text: &str) -> bool {
        let changes_agent = || parse(text).is_some_and(|(command, _)| command.name == "agent");
        !(self.is_mapped || self.is_named && changes_agent())
    }
}

impl Engine {
    pub async fn explain_route(&self, message: &InboundMessage) -> Result<InboundExplanation> {
        let (arrival, settings) = (&message.context, self.settings());
        let admission = self.admission_name(message).await?;
        if settings.inbound.account_access(arrival).is_none() && !message.address.is_pull_channel() {
            return Ok(self.unanswered_explanation(message, admission));
        }
        let place = self.match_bindings(arrival).await?;
        let named = self.find_named_command(message, &place).await?.map(|(_, line)| line);
        let command = parse(&message.text).or(named).map(|(command, _)| command.name);
        let routed = match command {
            Some(_) => None,
            None => Some(self.route_without_classifier(message, place).await?),
        };
        let (layer, targets) = match routed {
            Some(RouteDecision::Several(targets)) => (Some(RouteLayer::Broadcast), targets),
            Some(RouteDecision::One { target, layer, .. }) => (Some(layer), vec![target]),
            Some(RouteDecision::Usage(_)) | None => (None, Vec::new()),
        };
        let mut answers = Vec::new();
        for target in targets {
            answers.push(self.explain_answerer(target, message).await?);
        }
        Ok(InboundExplanation {
            admission,
            command,
            layer,
            bindings: settings.inbound.router.explain_route(arrival),
            asks_classifier: layer == Some(RouteLayer::Default)
                && settings.inbound.classifier.model.is_some(),
            answers,
        })
    }

    /// Explains the route of a webhook post, whose sessions are named after the hook.
    pub async fn explain_hook(
        &self,
        hook: &HookRoute,
        message: &InboundMessage,
    ) -> Result<InboundExplanation> {
        let command = match hook.accepts_command(&message.text) {
            true => parse(&message.text).map(|(command, _)| command.name),
            false => None,
        };
        let mut explanation =
            InboundExplanation { command, ..self.unanswered_explanation(message, "admitted") };
        if command.is_some() {
            return Ok(explanation);
        }
        let (layer, targets) = self.route_hook(hook, message, explanation.bindings.tier).await?;
        explanation.layer = layer;
        for target in targets {
            explanation.answers.push(self.explain_answerer(target, message).await?);
        }
        Ok(explanation)
    }

    async fn route_hook(
        &self,
        hook: &HookRoute,
        message: &InboundMessage,
        tier: BindingTier,
    ) -> Result<(Option<RouteLayer>, Vec<RouteTarget>)> {
        let layer = match (hook.is_named, tier) {
            (true, _) => RouteLayer::Hook,
            (false, BindingTier::Default) => RouteLayer::Default,
            (false, _) => RouteLayer::Binding,
        };
        let (key, address) = (hook.session.clone(), message.address.clone());
        let own = RouteTarget { by: hook.fixed_agent(), ..RouteTarget::new(key.clone(), hook.agent.clone()) };
        if own.by.is_some() {
            return Ok((Some(layer), vec![own]));
        }
        let line = IngressMessage::from_person(key, hook.agent.clone(), address, message.text.clone());
        if let Some(targets) = self.broadcast_targets_for(&line) {
            return Ok((Some(RouteLayer::Broadcast), targets));
        }
        let named = match self.resolve_addressee(line).await {
            Err(Error::OnlyAName(_) | Error::UnknownCommand(_)) => return Ok((None, Vec::new())),
            named => named?,
        };
        if let Some(agent) = named.by {
            let target = RouteTarget { by: Some(agent.clone()), ..RouteTarget::new(named.session, agent) };
            return Ok((Some(RouteLayer::Prefix), vec![target]));
        }
        Ok((Some(layer), vec![own]))
    }

    /// An explanation in which no agent answers.
    fn unanswered_explanation(
        &self,
        message: &InboundMessage,
        admission: &'static str,
    ) -> InboundExplanation {
        InboundExplanation {
            admission,
            layer: None,
            command: None,
            bindings: self.settings().inbound.router.explain_route(&message.context),
            asks_classifier: false,
            answers: Vec::new(),
        }
    }

    async fn admission_name(&self, message: &InboundMessage) -> Result<&'static str> {
        if message.address.is_pull_channel() {
            // Token holders are admitted by authentication.
            return Ok("admitted");
        }
        Ok(match self.admit_sender(message).await? {
            SenderAdmission::Admitted => "admitted",
            SenderAdmission::Pair => "pair",
            SenderAdmission::Ignored(reason) => reason.as_str(),
        })
    }

    /// Explains one agent in its session, as stored or as it would be created.
    async fn explain_answerer(
        &self,
        target: RouteTarget,
        message: &InboundMessage,
    ) -> Result<AnsweringAgent> {
        let wanted = target.session.clone();
        let stored = self.db().read(move |tx| sessions::get(tx, &wanted)).await?;
        let start_run = || Session {
            address: Some(message.address.clone()),
            ..Session::new_for_person(
                target.session.clone(),
                SessionId::new(""),
                target.agent.clone(),
                self.now(),
            )
        };
        let session = stored.unwrap_or_else(start_run);
        let agent = target.by.as_ref().unwrap_or(&session.active_agent).clone();
        let spec = self.load_agent(&agent).await?.spec;
        let model = session.model_override.clone().or_else(|| self.settings().agent_model(&spec));
        let tools = self.explain_tools_in_session(&agent, Some(&session)).await?;
        Ok(AnsweringAgent { agent, session: target.session, model, tools })
    }
}
