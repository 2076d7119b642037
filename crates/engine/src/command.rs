//! Chat commands: the same on every surface, never stored as messages.

mod place;
mod team;
mod usage;

use std::collections::HashSet;

use polyclaw_domain::approval::{Answerer, Decision};
use polyclaw_domain::channel::Address;
use polyclaw_domain::command::{COMMANDS, Command, Speaker, parse};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::provider::{ModelInfo, ModelRef};
use polyclaw_store::{agents, backlog, jobs};

use crate::agent::find_exactly;
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::ingress::Inbound;
use crate::receipt::Receipt;

const MODELS_SHOWN: usize = 60;

/// A command as it was given, and by whom.
pub(crate) struct Order<'a> {
    pub command: &'static Command,
    pub rest: &'a str,
    pub speaker: Speaker,
    /// As whom a question is answered.
    pub by: Answerer,
}

impl Engine {
    /// Runs a line of whoever holds the token, if it starts with `/`; `None` if it is no command but a message.
    pub async fn command(&self, session: &SessionKey, line: &str) -> Option<Result<String>> {
        let (command, rest) = parse(line)?;
        let order = Order { command, rest, speaker: Speaker::Owner, by: Answerer::Owner };
        Some(self.obey(session, &order).await)
    }

    /// A command that came as a message of a channel: it is taken once, never stored as a message, and what became of
    /// it is sent back. `None` if the message is no command.
    pub async fn command_from(&self, inbound: &Inbound, speaker: Speaker) -> Result<Option<String>> {
        // What a program or another agent relays is no person's word.
        let Some((command, rest)) = parse(&inbound.text).filter(|_| inbound.relayed.is_none()) else {
            return Ok(None);
        };
        let receipt = Receipt::of(inbound);
        if self.is_known(&receipt).await? {
            return Ok(Some("This was taken before.".to_owned()));
        }
        let order = Order { command, rest, speaker, by: answerer(speaker, &inbound.address) };
        let said = self.answered(&inbound.session, &order).await?;
        self.settle(&receipt, &said).await?;
        Ok(Some(said))
    }

    /// What is said about an order in a chat. Commands may be repeated: a letter that comes again after a crash
    /// finds done what it asks for. Only what the store or a drain refuses is an error.
    pub(crate) async fn answered(&self, session: &SessionKey, order: &Order<'_>) -> Result<String> {
        match self.obey(session, order).await {
            Err(error @ (Error::Store(_) | Error::Draining)) => Err(error),
            Err(Error::UnknownSession(_)) => Ok("Nothing was said here yet.".to_owned()),
            obeyed => Ok(obeyed.unwrap_or_else(|error| format!("That does not count: {error}."))),
        }
    }

    async fn obey(&self, session: &SessionKey, order: &Order<'_>) -> Result<String> {
        let (command, rest) = (order.command, order.rest);
        if !order.speaker.may(command.reach_with(rest)) {
            return Ok(format!("/{} is for the owner of this assistant.", command.name));
        }
        match command.name {
            "help" => Ok(help()),
            "new" => {
                self.renew(session).await?;
                Ok("A new conversation. The old one is kept.".to_owned())
            }
            "stop" => self.stop_command(session).await,
            "status" => self.status(session).await,
            "queue" => self.queue(session, rest).await,
            "compact" => {
                self.compact(session).await?;
                Ok("Folding old history into a summary.".to_owned())
            }
            "context" => self.context_command(session).await,
            "usage" => self.usage_command(session).await,
            "models" => Ok(self.models_command().await),
            "model" => self.model_command(session, rest).await,
            "agents" => self.agents_command(session).await,
            "agent" => self.agent_command(session, rest).await,
            "focus" => self.focus_command(session, rest).await,
            "unfocus" => self.unfocus_command(session).await,
            "session" => self.session_command(session, rest).await,
            "team" => self.team_command(rest).await,
            "approve" => self.answer_command(session, Decision::Approve, rest, order.by.clone()).await,
            "deny" => self.answer_command(session, Decision::Deny, rest, order.by.clone()).await,
            _ => self.whoami(session).await,
        }
    }

    async fn stop_command(&self, session: &SessionKey) -> Result<String> {
        let stopped = self.stop(session).await?;
        Ok(match (stopped.turn, stopped.interrupted_tasks) {
            (None, 0) => "Nothing is running.".to_owned(),
            (_, 0) => "Stopped.".to_owned(),
            (_, tasks) => format!("Stopped, with {tasks} interrupted task(s) given up."),
        })
    }

    async fn status(&self, key: &SessionKey) -> Result<String> {
        let session = self.session(key).await?;
        let wanted = key.clone();
        let load = self.db().read(move |tx| jobs::load(tx, &wanted)).await?;
        let doing = match (&load.running, load.waiting) {
            (None, 0) => "idle".to_owned(),
            (None, waiting) => format!("{waiting} waiting"),
            (Some(_), 0) => "answering".to_owned(),
            (Some(_), waiting) => format!("answering, {waiting} waiting"),
        };
        let model = match &session.model_override {
            Some(model) => format!("{model} (picked)"),
            None => {
                self.settings().default_model.as_ref().map_or("the agent's".to_owned(), ToString::to_string)
            }
        };
        Ok(format!("session {key}\nagent {}\nmodel {model}\n{doing}", session.active_agent))
    }

    async fn queue(&self, key: &SessionKey, mode: &str) -> Result<String> {
        if !mode.is_empty() && mode != "steer-backlog" {
            return Ok(format!("'{mode}' is not a queue mode here: there is one, steer-backlog."));
        }
        let wanted = key.clone();
        let read = move |tx: &mut polyclaw_store::Tx<'_>| {
            Ok((jobs::load(tx, &wanted)?, backlog::waiting(tx, &wanted)?.len()))
        };
        let (load, tasks) = self.db().read(read).await?;
        let messages = load.waiting - tasks;
        let running = if load.running.is_some() { "a turn is running" } else { "no turn is running" };
        Ok(format!(
            "mode steer-backlog: {running}, {messages} message(s) and {tasks} interrupted task(s) wait"
        ))
    }

    async fn models_command(&self) -> String {
        let models = self.provider().models().await;
        match models.is_empty() {
            true => "No models are known.".to_owned(),
            false => listed(&models),
        }
    }

    async fn model_command(&self, session: &SessionKey, rest: &str) -> Result<String> {
        if rest.is_empty() {
            return self.status(session).await;
        }
        if rest == "default" {
            self.set_model(session, None).await?;
            return Ok("Back to the agent's own model.".to_owned());
        }
        match ModelRef::parse(rest) {
            Ok(model) => {
                self.set_model(session, Some(model.clone())).await?;
                Ok(format!("{model} from the next turn on."))
            }
            Err(error) => Ok(error.to_string()),
        }
    }

    async fn agents_command(&self, session: &SessionKey) -> Result<String> {
        let active = self.session(session).await.map(|session| session.active_agent).ok();
        let listed = self.db().read(agents::list).await?;
        let line = |stored: &agents::Stored| {
            let mark = if Some(&stored.spec.agent_id) == active.as_ref() { "*" } else { " " };
            format!("{mark} {}  {}", stored.spec.agent_id, stored.spec.description).trim_end().to_owned()
        };
        Ok(listed.iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    async fn agent_command(&self, session: &SessionKey, rest: &str) -> Result<String> {
        let listed = self.db().read(agents::list).await?;
        let id: &AgentId = &find_exactly(&listed, rest)?.spec.agent_id;
        self.set_agent(session, id).await?;
        Ok(format!("{id} answers from the next turn on."))
    }

    async fn whoami(&self, key: &SessionKey) -> Result<String> {
        let session = self.session(key).await?;
        Ok(format!("session {key}, agent {}", session.active_agent))
    }
}

/// `provider/model` lines, at most 60 in all; of a provider with more than its share, how many more.
fn listed(models: &[ModelInfo]) -> String {
    let mut providers: Vec<&str> = models.iter().map(|info| info.model.provider.as_str()).collect();
    providers.dedup();
    let mut seen = HashSet::new();
    providers.retain(|provider| seen.insert(*provider));
    let mut lines = Vec::new();
    for (n, provider) in providers.iter().enumerate() {
        let own: Vec<_> = models.iter().filter(|info| info.model.provider == *provider).collect();
        // What earlier ones left is shared by those that still come.
        let share = MODELS_SHOWN.saturating_sub(lines.len()) / (providers.len() - n);
        lines.extend(own.iter().take(share).map(|info| info.model.to_string()));
        if own.len() > share {
            lines.push(format!("{provider}: + ({} more)", own.len() - share));
        }
    }
    lines.join("\n")
}

/// As whom a speaker answers a question: an owner as one, anybody else as who they are there.
pub(crate) fn answerer(speaker: Speaker, address: &Address) -> Answerer {
    match speaker {
        Speaker::Owner => Answerer::Owner,
        Speaker::Alone | Speaker::AmongOthers => Answerer::Sender(address.clone()),
    }
}

fn help() -> String {
    let line = |command: &Command| {
        let Command { name, arguments, does, .. } = command;
        format!("/{name} {arguments}").trim_end().to_owned() + "  " + does
    };
    let agent = "/<agent id> …  ask another agent, this once".to_owned();
    COMMANDS.iter().map(line).chain([agent]).collect::<Vec<_>>().join("\n")
}
