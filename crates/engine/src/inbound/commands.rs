//! Commands that come through a channel. Each acts on all sessions it concerns.

use polyclaw_domain::channel::InboundMessage;
use polyclaw_domain::command::{CallerRole, ChatCommand, RequiredRole, parse};
use polyclaw_domain::id::SessionId;
use polyclaw_domain::locale::{ConversationLanguage, Locale};
use polyclaw_domain::session::Session;
use polyclaw_store::approvals::StoredApproval;
use polyclaw_store::sessions;

use super::command_targets::conversation_session;
use super::route::{BindingRoute, RouteTarget, broadcast_targets};
use crate::command::{CommandOrigin, CommandRequest, approval_responder_for};
use crate::command_action::{ActionOutcome, CommandAction, reply_only};
use crate::core::Engine;
use crate::error::Result;
use crate::reply_text;

/// Commands that change a session's settings; they create the session if needed.
const SETTING_COMMANDS: [&str; 6] = ["agent", "model", "session", "focus", "subagents", "language"];
const APPROVAL_COMMANDS: [&str; 2] = ["approve", "deny"];

impl Engine {
    /// The action of a command. `None`: the message is not a command.
    pub(super) async fn inbound_command_action(
        &self,
        message: &InboundMessage,
        place: &BindingRoute,
    ) -> Result<Option<CommandAction>> {
        if let Some(line) = parse(&message.text) {
            let locale = self.reply_locale(message, place).await?;
            let order = self.build_command_request(message, place, (line, locale));
            let concerned = self.command_targets(message, place, &order).await?;
            return self.run_on_targets(message, place, (concerned, &order)).await.map(Some);
        }
        let Some((named, line)) = self.find_named_command(message, place).await? else { return Ok(None) };
        let language = named.session.as_ref().map(|session| session.language).unwrap_or_default();
        let locale = match language == ConversationLanguage::default() {
            true => self.reply_locale(message, place).await?,
            false => language.resolve(self.settings().language),
        };
        let order = self.build_command_request(message, place, (line, locale));
        if !self.can_reach_agent(&order.reachable, &named.agent).await? {
            return Ok(Some(reply_only(reply_text::inbound::agent_unavailable(locale, &named.agent))));
        }
        let concerned = vec![RouteTarget::new(named.key.clone(), named.agent.clone())];
        self.run_on_targets(message, &named, (concerned, &order)).await.map(Some)
    }

    fn build_command_request<'a>(
        &self,
        message: &'a InboundMessage,
        place: &BindingRoute,
        ((command, rest), locale): ((&'static ChatCommand, &'a str), Locale),
    ) -> CommandRequest<'a> {
        let speaker = self.settings().inbound.caller_role(&message.context);
        let given = CommandOrigin { address: &message.address, platform_id: Some(&message.platform_id) };
        let by = approval_responder_for(speaker, &message.address);
        let reachable = self.reachable_agents(message, place);
        let authority = self.settings().inbound.sender_authority(&message.context);
        CommandRequest { command, rest, speaker, by, origin: Some(given), reachable, authority, locale }
    }

    /// The sessions that a command without an agent prefix concerns.
    async fn command_targets(
        &self,
        message: &InboundMessage,
        place: &BindingRoute,
        order: &CommandRequest<'_>,
    ) -> Result<Vec<RouteTarget>> {
        let name = order.command.name;
        let here = RouteTarget::new(conversation_session(place, name), place.agent.clone());
        if order.command.is_general {
            return Ok(vec![here]);
        }
        let several = broadcast_targets(&self.settings().inbound, &message.context);
        if APPROVAL_COMMANDS.contains(&name) {
            let asked = self.find_answered_approval(order.rest).await?;
            return Ok(approval_targets(order, asked, (here, several)));
        }
        let has_started = several.is_some() || place.session.is_some();
        let mut targets = several.unwrap_or_else(|| vec![here]);
        let own: Vec<_> = targets.iter().map(|target| target.session.clone()).collect();
        // With a focus on another session, `/new` renews only that session.
        let is_focused = place.session.as_ref().is_some_and(|session| session.focus.is_some());
        let others = match name == "new" && is_focused {
            true => Vec::new(),
            false => self.other_command_targets(name, message, &own).await?,
        };
        if !has_started && !others.is_empty() {
            // The conversation's own session does not exist, so there is nothing to report about it.
            targets.clear();
        }
        targets.extend(others);
        Ok(targets)
    }

    /// The actions on all sessions a command concerns, as one.
    async fn run_on_targets(
        &self,
        message: &InboundMessage,
        place: &BindingRoute,
        (concerned, order): (Vec<RouteTarget>, &CommandRequest<'_>),
    ) -> Result<CommandAction> {
        let (command, speaker) = (order.command, order.speaker);
        tracing::info!(command = command.name, session.key = %place.key, ?speaker, "a command came");
        let mut actions = Vec::new();
        for target in concerned {
            actions.push((self.resolve_command_action(&target.session, order).await?, target));
        }
        let action = join_actions(actions, order.locale);
        let reach = command.required_role_for(order.rest);
        let is_setting = SETTING_COMMANDS.contains(&command.name)
            && reach != RequiredRole::Anyone
            && speaker.may_run(reach);
        Ok(if is_setting { self.with_new_session(message, place, action) } else { action })
    }

    /// Creates the conversation's session before the action runs.
    fn with_new_session(
        &self,
        message: &InboundMessage,
        place: &BindingRoute,
        action: CommandAction,
    ) -> CommandAction {
        let id = SessionId::new(self.next_id());
        let new_session = Session::new_for_person(place.key.clone(), id, place.agent.clone(), self.now());
        let session = Session { address: Some(message.address.clone()), ..new_session };
        Box::new(move |tx| {
            sessions::ensure(tx, &session)?;
            action(tx)
        })
    }
}

/// The session whose approval request is answered: the one that sent it to this address, whichever agent it belongs to.
/// Owners answer owner requests from anywhere. Otherwise it is one of the conversation's own sessions, and the answer
/// is checked there.
fn approval_targets(
    order: &CommandRequest<'_>,
    asked: Option<StoredApproval>,
    own: (RouteTarget, Option<Vec<RouteTarget>>),
) -> Vec<RouteTarget> {
    let (here, several) = own;
    let mut targets = several.unwrap_or_else(|| vec![here.clone()]);
    if let Some(asked) = asked {
        let is_here = match &asked.origin {
            Some(origin) => order.origin.is_some_and(|place| place.address == origin),
            None => order.speaker == CallerRole::Owner,
        };
        if is_here {
            let agent = asked.session.agent_id().unwrap_or(here.agent);
            return vec![RouteTarget::new(asked.session, agent)];
        }
        if targets.len() > 1 {
            targets.retain(|target| target.session == asked.session);
        }
    }
    targets.truncate(1);
    targets
}

/// Joins command actions into one. If there are several, each line of the reply starts with the name of the agent.
fn join_actions(mut actions: Vec<(CommandAction, RouteTarget)>, locale: Locale) -> CommandAction {
    match actions.len() {
        0 => reply_only(reply_text::approval::requested_elsewhere(locale)),
        1 => actions.remove(0).0,
        _ => Box::new(move |tx| {
            let (mut lines, mut after) = (Vec::new(), Vec::new());
            for (action, target) in &actions {
                let done = action(tx)?;
                lines.push(format!("{}: {}", target.agent, done.reply_text(locale)));
                after.extend(done.effects);
            }
            Ok(ActionOutcome { reply: Ok(lines.join("\n")), effects: after })
        }),
    }
}
