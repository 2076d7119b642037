//! Chat commands: the same on every surface, never stored as messages.

use std::collections::HashSet;

use polyclaw_domain::approval::{Answerer, Decision};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::provider::{ModelInfo, ModelRef};
use polyclaw_store::{agents, backlog, jobs};

use crate::agent::find_exactly;
use crate::core::Engine;
use crate::error::Result;

/// Name, arguments, what it does.
pub const COMMANDS: &[(&str, &str, &str)] = &[
    ("help", "", "what you can type"),
    ("new", "", "start a new conversation; the old one is kept"),
    ("status", "", "what this session is doing"),
    ("stop", "", "stop the running turn"),
    ("queue", "", "what waits in this session"),
    ("compact", "", "fold old history into a summary"),
    ("context", "", "what the model's context is filled with"),
    ("models", "", "the models there are"),
    ("model", "<provider>/<model> | default", "use another model from the next turn on"),
    ("agents", "", "the agents there are"),
    ("agent", "<id or name>", "talk to another agent from the next turn on"),
    ("approve", "<id>", "allow what you were asked about, once"),
    ("deny", "<id> [why]", "do not allow it; the agent is told why"),
    ("whoami", "", "the session and agent you talk to"),
];

const MODELS_SHOWN: usize = 60;

impl Engine {
    /// Runs a line of the owner that starts with `/`; `None` if it is no command but a message.
    pub async fn command(&self, session: &SessionKey, line: &str) -> Option<Result<String>> {
        let (name, rest) = parse(line)?;
        Some(self.run_command(session, name, rest).await)
    }

    async fn run_command(&self, session: &SessionKey, name: &str, rest: &str) -> Result<String> {
        match name {
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
            "models" => Ok(self.models_command().await),
            "model" => self.model_command(session, rest).await,
            "agents" => self.agents_command(session).await,
            "agent" => self.agent_command(session, rest).await,
            "approve" => self.answer_command(session, Decision::Approve, rest, Answerer::Owner).await,
            "deny" => self.answer_command(session, Decision::Deny, rest, Answerer::Owner).await,
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

pub(crate) fn parse(line: &str) -> Option<(&'static str, &str)> {
    let rest = line.trim().strip_prefix('/')?;
    let (word, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let known = COMMANDS.iter().find(|(name, _, _)| *name == word)?;
    Some((known.0, arguments.trim()))
}

fn help() -> String {
    let line = |(name, arguments, does): &(&str, &str, &str)| {
        format!("/{name} {arguments}").trim_end().to_owned() + "  " + does
    };
    COMMANDS.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_words_after_a_slash_are_commands() {
        assert_eq!(parse("/model openai/x "), Some(("model", "openai/x")));
        assert_eq!(parse(" /stop"), Some(("stop", "")));
        assert_eq!(parse("/etc/passwd"), None);
        assert_eq!(parse("stop"), None);
        assert_eq!(parse("/steer do this"), None, "an ordinary message");
    }
}
