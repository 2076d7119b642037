//! Chat commands. They are the same on every surface and are never stored as messages.

mod actions;
mod subagents;
mod team;
mod usage;

use std::collections::HashSet;

use polyclaw_domain::approval::ApprovalResponder;
use polyclaw_domain::authority::Authority;
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::command::{CallerRole, ChatCommand, parse};
use polyclaw_domain::locale::{ConversationLanguage, LanguageSetting, Locale};
use polyclaw_domain::provider::ModelInfo;
use polyclaw_domain::sanitize;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{agents, backlog, jobs};

use crate::command_action::{CommandAction, reply_only};
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::inbound::ReachableAgents;
use crate::ingress::IngressMessage;
use crate::reply_once::InboundReceipt;
use crate::reply_text;
use crate::reply_text::command::LanguageSource;
use crate::reply_text::status::{self, QueueState, ShownModel};

const MAX_SHOWN_MODELS: usize = 60;
/// Commands that do not act on a session.
const COMMANDS_WITHOUT_SESSION: [&str; 6] = ["help", "models", "agents", "team", "approve", "deny"];
/// Session key parts of sessions that only agents create.
const AGENT_SESSION_PREFIXES: [&str; 3] = ["subagent", "delegate", "team"];

/// A command with its caller.
pub(crate) struct CommandRequest<'a> {
    pub command: &'static ChatCommand,
    pub rest: &'a str,
    pub speaker: CallerRole,
    /// Identity under which an approval is answered.
    pub by: ApprovalResponder,
    /// Address and message id of the command; `None` if it came through the API.
    pub origin: Option<CommandOrigin<'a>>,
    /// Agents that the caller can address.
    pub reachable: ReachableAgents,
    /// Authority that is passed on to everything the command starts.
    pub authority: Authority,
    /// Language of the reply.
    pub locale: Locale,
}

/// Address where a command was given.
#[derive(Clone, Copy)]
pub(crate) struct CommandOrigin<'a> {
    pub address: &'a ChatAddress,
    pub platform_id: Option<&'a str>,
}

impl Engine {
    /// Runs a command of the token holder if the line starts with `/`. `None`: the line is not a command.
    pub async fn run_command(&self, session: &SessionKey, line: &str) -> Option<Result<String>> {
        self.run_command_as(session, line, Authority::Owner).await
    }

    /// Runs a command of an API caller with the given authority.
    pub async fn run_command_as(
        &self,
        session: &SessionKey,
        line: &str,
        authority: Authority,
    ) -> Option<Result<String>> {
        let (command, rest) = parse(line)?;
        let (speaker, by, reachable) = (CallerRole::Owner, ApprovalResponder::Owner, ReachableAgents::Every);
        let locale = self.session_locale(session).await;
        let order = CommandRequest { command, rest, speaker, by, origin: None, reachable, authority, locale };
        Some(self.perform_command(session, &order).await)
    }

    async fn perform_command(&self, session: &SessionKey, order: &CommandRequest<'_>) -> Result<String> {
        self.ensure_session(session, order.command).await?;
        let action = self.build_command_action(session, order).await?;
        self.perform_action(action).await
    }

    /// Creates the session if the command is the first line of a conversation. Never creates sessions that only agents
    /// create.
    async fn ensure_session(&self, key: &SessionKey, command: &ChatCommand) -> Result<()> {
        let is_agents =
            key.parts().get(2).is_some_and(|part| AGENT_SESSION_PREFIXES.contains(&part.as_str()));
        let agent =
            key.agent_id().filter(|_| !is_agents && !COMMANDS_WITHOUT_SESSION.contains(&command.name));
        let Some(agent) = agent else { return Ok(()) };
        match self.load_session(key).await {
            Err(Error::UnknownSession(_)) => self.create_session(key, &agent, None).await.map(drop),
            found => found.map(drop),
        }
    }

    /// Runs a command that came as a channel message: once, without storing it as a message, and with its result sent
    /// back. `None`: the message is not a command.
    pub async fn run_inbound_command(
        &self,
        inbound: &IngressMessage,
        speaker: CallerRole,
    ) -> Result<Option<String>> {
        // Text relayed by a program or another agent is never a command.
        let Some((command, rest)) = parse(&inbound.text).filter(|_| inbound.relay.is_none()) else {
            return Ok(None);
        };
        let locale = self.session_locale(&inbound.session).await;
        let receipt = InboundReceipt::from_message(inbound, locale);
        if self.is_already_accepted(&receipt).await? {
            return Ok(Some(reply_text::inbound::already_processed(locale)));
        }
        let place = CommandOrigin { address: &inbound.address, platform_id: inbound.platform_id.as_deref() };
        let by = approval_responder_for(speaker, &inbound.address);
        let (reachable, authority) = match speaker {
            CallerRole::Owner => (ReachableAgents::Every, Authority::Owner),
            CallerRole::Alone | CallerRole::AmongOthers => {
                (self.reachable_from(&inbound.address, &inbound.agent), Authority::NonOwner)
            }
        };
        let order =
            CommandRequest { command, rest, speaker, by, origin: Some(place), reachable, authority, locale };
        let action = self.resolve_command_action(&inbound.session, &order).await?;
        self.run_action_once(&receipt, action).await.map(Some)
    }

    /// Builds the action of a chat command. Only store errors and draining are returned as errors; others become a
    /// reply.
    pub(crate) async fn resolve_command_action(
        &self,
        session: &SessionKey,
        order: &CommandRequest<'_>,
    ) -> Result<CommandAction> {
        match self.build_command_action(session, order).await {
            Err(error @ (Error::Store(_) | Error::Draining)) => Err(error),
            Err(error) => Ok(reply_only(reply_text::command::command_failed(order.locale, &error))),
            result => result,
        }
    }

    async fn build_command_action(
        &self,
        session: &SessionKey,
        order: &CommandRequest<'_>,
    ) -> Result<CommandAction> {
        if !order.speaker.may_run(order.command.required_role_for(order.rest)) {
            return Ok(reply_only(reply_text::command::owners_only(order.locale, order.command.name)));
        }
        match self.build_change_action(session, order).await? {
            Some(action) => Ok(action),
            None => self.run_query_command(session, order).await.map(reply_only),
        }
    }

    /// Runs commands that change nothing.
    async fn run_query_command(&self, session: &SessionKey, order: &CommandRequest<'_>) -> Result<String> {
        let locale = order.locale;
        match order.command.name {
            "help" => Ok(reply_text::command::help_text(locale)),
            "status" | "model" => self.status_command(session, locale).await,
            "queue" => self.queue_command(session, order.rest, locale).await,
            "context" => self.context_command(session, locale).await,
            "usage" => self.usage_command(session, locale).await,
            "models" => Ok(self.models_command(locale).await),
            "agents" => self.agents_command(session).await,
            "language" => self.language_command(session, locale).await,
            "team" if order.authority != Authority::Owner && writes_to_a_team(order.rest) => {
                Ok(reply_text::team::owners_only(locale))
            }
            "team" => self.team_command(session, order.rest, locale).await,
            _ => self.load_session(session).await.map(|session| status::whoami(locale, &session)),
        }
    }

    async fn status_command(&self, key: &SessionKey, locale: Locale) -> Result<String> {
        let session = self.load_session(key).await?;
        let wanted = key.clone();
        let load = self.db().read(move |tx| jobs::session_load(tx, &wanted)).await?;
        let model = match &session.model_override {
            Some(model) => ShownModel::Selected(model.to_string()),
            None => {
                let own = match self.load_agent(&session.active_agent).await {
                    Ok(stored) => self.settings().agent_model(&stored.spec),
                    Err(Error::UnknownAgent(_)) => None,
                    Err(error) => return Err(error),
                };
                own.map_or(ShownModel::Missing, |model| ShownModel::OfAgent(model.to_string()))
            }
        };
        Ok(status::session_status(locale, &session, &model, (load.running.is_some(), load.waiting)))
    }

    async fn queue_command(&self, key: &SessionKey, mode: &str, locale: Locale) -> Result<String> {
        if !mode.is_empty() && mode != "steer-backlog" {
            return Ok(status::unknown_queue_mode(locale, mode));
        }
        let wanted = key.clone();
        let read = move |tx: &mut polyclaw_store::Tx<'_>| {
            Ok((jobs::session_load(tx, &wanted)?, backlog::list_waiting(tx, &wanted)?.len()))
        };
        let (load, tasks) = self.db().read(read).await?;
        let held = self.child_runs(key).await?.iter().filter(|child| child.run.held.is_some()).count();
        let messages = load.waiting - tasks;
        let queue = QueueState { is_running: load.running.is_some(), messages, tasks, held };
        Ok(status::queue_state(locale, queue))
    }

    async fn models_command(&self, locale: Locale) -> String {
        let models = self.provider().list_models().await;
        if models.is_empty() { reply_text::command::no_models(locale) } else { model_lines(&models, locale) }
    }

    async fn language_command(&self, session: &SessionKey, locale: Locale) -> Result<String> {
        let language = match self.load_session(session).await {
            Ok(session) => session.language,
            Err(Error::UnknownSession(_)) => ConversationLanguage::default(),
            Err(error) => return Err(error),
        };
        let source = match (language.chosen.and_then(LanguageSetting::locale), language.detected) {
            (Some(_), _) => LanguageSource::Command,
            (None, _) if language.chosen.is_none() && self.settings().language.locale().is_some() => {
                LanguageSource::Config
            }
            (None, Some(_)) => LanguageSource::Messages,
            (None, None) => LanguageSource::Default,
        };
        Ok(reply_text::command::current_language(locale, source))
    }

    async fn agents_command(&self, session: &SessionKey) -> Result<String> {
        let active = self.load_session(session).await.map(|session| session.active_agent).ok();
        let active =
            active.or_else(|| session.agent_id()).unwrap_or_else(|| self.settings().default_agent.clone());
        let listed = self.db().read(agents::list).await?;
        let line = |stored: &agents::StoredAgent| {
            let (id, face) = (&stored.spec.agent_id, self.agent_identity(&stored.spec).face());
            let mark = if *id == active { "*" } else { " " };
            let named = if face == id.as_str() { String::new() } else { format!(" ({face})") };
            format!("{mark} {id}{named}  {}", stored.spec.description).trim_end().to_owned()
        };
        Ok(listed.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

/// Whether a `/team` command writes instead of only showing.
fn writes_to_a_team(rest: &str) -> bool {
    matches!(rest.split_whitespace().next(), Some("send" | "plan"))
}

/// Names of what was stopped, shortened.
fn join_labels(locale: Locale, labels: &[String]) -> String {
    const MAX_SHOWN_LABELS: usize = 10;
    let named: Vec<String> =
        labels.iter().take(MAX_SHOWN_LABELS).map(|label| sanitize::to_single_line(label, 40)).collect();
    reply_text::command::label_list(locale, named, labels.len().saturating_sub(MAX_SHOWN_LABELS))
}

/// Lists `provider/model` lines, at most 60 in all. A provider with more models than its share gets a line with the
/// number left out.
fn model_lines(models: &[ModelInfo], locale: Locale) -> String {
    let mut providers: Vec<&str> = models.iter().map(|info| info.model.provider.as_str()).collect();
    providers.dedup();
    let mut seen = HashSet::new();
    providers.retain(|provider| seen.insert(*provider));
    let (mut lines, mut shown) = (Vec::new(), 0);
    for (n, provider) in providers.iter().enumerate() {
        let own: Vec<_> = models.iter().filter(|info| info.model.provider == *provider).collect();
        // What earlier providers left over is shared by the remaining ones.
        let share = (MAX_SHOWN_MODELS - shown) / (providers.len() - n);
        shown += own.len().min(share);
        lines.extend(own.iter().take(share).map(|info| info.model.to_string()));
        if own.len() > share {
            lines.push(reply_text::command::more_models(locale, provider, own.len() - share));
        }
    }
    lines.join("\n")
}

/// Identity under which a caller answers approvals: owners as owner, anyone else as the sender at this address.
pub(crate) fn approval_responder_for(speaker: CallerRole, address: &ChatAddress) -> ApprovalResponder {
    match speaker {
        CallerRole::Owner => ApprovalResponder::OwnerInChannel(address.clone()),
        CallerRole::Alone | CallerRole::AmongOthers => ApprovalResponder::Sender(address.clone()),
    }
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::provider::{ModelRef, ModelStatus};

    use super::*;

    fn models(provider: &str, count: usize) -> Vec<ModelInfo> {
        let one = |n: usize| ModelInfo {
            model: ModelRef { provider: provider.to_owned(), model: format!("m{n}") },
            context_window: None,
            status: ModelStatus::Ready,
            demo: false,
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn model_list_shows_sixty_models_and_counts_the_rest() {
        let all = [models("big", 100), models("small", 5), models("other", 70)].concat();
        let text = model_lines(&all, Locale::English);
        let (more, shown): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.contains("more)"));
        let of =
            |provider: &str| shown.iter().filter(|line| line.starts_with(&format!("{provider}/"))).count();
        assert_eq!(shown.len(), MAX_SHOWN_MODELS, "{text}");
        assert_eq!((of("big") + of("other"), of("small")), (55, 5), "a small one is shown whole");
        let hidden = |provider: &str, count: usize| format!("{provider}: + ({} more)", count - of(provider));
        assert_eq!(more, [hidden("big", 100), hidden("other", 70)]);
        assert_eq!(model_lines(&models("big", 60), Locale::English).lines().count(), 60);
        assert!(!model_lines(&models("big", 60), Locale::English).contains("more)"));
    }
}
