//! `/subagents`: shows and controls the sub-agents below a session.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{AgentId, RunId};
use polyclaw_domain::locale::Locale;
use polyclaw_domain::message::MessageRole;
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::run::{RunKind, RunStatus, RunTask, reply_session_meta};
use polyclaw_domain::sanitize;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::format_duration;
use polyclaw_store::{Tx, messages, runs, sessions};

use super::{CommandRequest, join_labels};
use crate::command_action::{ActionOutcome, CommandAction, on_session, reply_only};
use crate::core::Engine;
use crate::error::{Error, Result, StateConflict};
use crate::ingress::{InternalMessage, MessageProvenance};
use crate::reply_text::subagent as texts;
use crate::subagents::{ChildRun, RunRequester, SpawnRequest, kill_run, stop_children};

const DEFAULT_LOG_LINES: usize = 10;
const MAX_LOG_LINES: usize = 50;
const MAX_LOG_LINE_CHARS: usize = 300;

impl Engine {
    /// The action of `/subagents`. Commands that spawn or write to a child have an idempotency key, so they run once
    /// even if the receipt is stored later.
    pub(super) async fn subagents_action(
        &self,
        session: &SessionKey,
        order: &CommandRequest<'_>,
    ) -> Result<CommandAction> {
        let (word, rest) = order.rest.split_once(char::is_whitespace).unwrap_or((order.rest, ""));
        let rest = rest.trim();
        let locale = order.locale;
        if !matches!(word, "" | "list") && rest.is_empty() {
            return Ok(reply_only(texts::usage_line(locale)));
        }
        self.load_session(session).await?;
        match word {
            "" | "list" => self.list_children(session, locale).await.map(reply_only),
            "info" => {
                let run = self.find_child_run(session, strip_quotes(rest)).await?.run;
                Ok(reply_only(texts::run_details(locale, &run)))
            }
            "log" => self.child_log(session, rest, locale).await.map(reply_only),
            "kill" => self.kill_action(session, strip_quotes(rest), locale).await,
            "send" | "steer" => self.send_to_child(session, order, rest).await.map(reply_only),
            "spawn" => self.spawn_child(session, order, rest).await.map(reply_only),
            _ => Ok(reply_only(texts::usage_line(locale))),
        }
    }

    async fn list_children(&self, session: &SessionKey, locale: Locale) -> Result<String> {
        let now = self.now();
        let children = self.child_runs(session).await?;
        let line = |child: &ChildRun| {
            let ChildRun { number, run, depth, .. } = child;
            let age = format_duration(now.since(run.created_at));
            texts::list_line(locale, &format!("{number} {}", "  ".repeat(depth - 1)), run, &age)
        };
        let lines: Vec<String> = children.iter().filter(|child| child.is_listed).map(line).collect();
        Ok(if lines.is_empty() { texts::none_here(locale) } else { lines.join("\n") })
    }

    async fn child_log(&self, session: &SessionKey, rest: &str, locale: Locale) -> Result<String> {
        let (which, count) = split_target_and_text(rest);
        let count = count.parse().unwrap_or(DEFAULT_LOG_LINES).clamp(1, MAX_LOG_LINES);
        let key = self.find_child_run(session, which).await?.run.child;
        let read = move |tx: &mut Tx<'_>| match sessions::get(tx, &key)? {
            Some(found) => messages::list_newest(tx, &key, &found.id, count).map(Some),
            None => Ok(None),
        };
        let Some(found) = self.db().read(read).await? else {
            return Ok(texts::transcript_deleted(locale));
        };
        let line = |message: &messages::SessionMessage| {
            let from = match message.role {
                MessageRole::User => message.origin.to_string(),
                other => other.as_str().to_owned(),
            };
            format!("{from}: {}", sanitize::to_single_line(&message.text, MAX_LOG_LINE_CHARS))
        };
        Ok(found.iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    async fn kill_action(&self, session: &SessionKey, which: &str, locale: Locale) -> Result<CommandAction> {
        let wanted = match which {
            "all" => None,
            _ => Some(self.find_child_run(session, which).await?.run.id),
        };
        let engine = self.clone();
        Ok(on_session(session, move |tx, session| {
            let mut after = Vec::new();
            let stopped = match &wanted {
                None => stop_children(tx, &engine, &session.key, &mut after)?,
                Some(id) => match runs::get(tx, id)? {
                    Some(run) if run.status == RunStatus::Running => {
                        let below = kill_run(tx, &engine, &run, &mut after)?;
                        std::iter::once(run).chain(below).collect()
                    }
                    ended => {
                        let text = texts::run_ended(locale, ended.map(|run| run.status));
                        return Ok(ActionOutcome::with_reply(text));
                    }
                },
            };
            let labels: Vec<String> = stopped.into_iter().map(|run| run.task.label).collect();
            Ok(ActionOutcome { effects: after, ..ActionOutcome::with_reply(stopped_reply(locale, &labels)) })
        }))
    }

    /// Writes a person's message to the child's session. The answer comes here.
    async fn send_to_child(
        &self,
        session: &SessionKey,
        order: &CommandRequest<'_>,
        rest: &str,
    ) -> Result<String> {
        let (which, text) = split_target_and_text(rest);
        if text.is_empty() {
            return Ok(texts::usage_line(order.locale));
        }
        let child = self.find_child_run(session, which).await?;
        if !child.is_listed {
            return Err(StateConflict::SubagentGone.into());
        }
        let run = child.run;
        // Without a chat address, the answer is shown in this session.
        let mut meta = order.origin.is_none().then(|| reply_session_meta(session));
        order.authority.write_to_meta(&mut meta);
        let how = InternalMessage {
            channel: order.origin.map_or_else(ChatAddress::internal, |given| given.address.clone()),
            deliver: order.origin.is_some(),
            idempotency_key: format!("told:{}", self.command_key(order)),
            provenance: MessageProvenance::Person(run.agent),
            meta,
        };
        let accepted = self.inject_message(&run.child, text, how).await?;
        Ok(texts::message_delivered(order.locale, accepted.waiting))
    }

    async fn spawn_child(
        &self,
        session: &SessionKey,
        order: &CommandRequest<'_>,
        rest: &str,
    ) -> Result<String> {
        let owner = self.load_session(session).await?;
        let (first, task) = rest.split_once(char::is_whitespace).unwrap_or(("", ""));
        let named = match first.strip_prefix('@').unwrap_or(first) {
            // With an `@`, the name must be an agent's.
            name if name.len() < first.len() => Some(self.named_agent(name).await?),
            name => match AgentId::parse(name) {
                Ok(id) => self.load_agent(&id).await.ok().map(|stored| stored.spec.agent_id),
                Err(_) => None,
            },
        };
        let (agent, task) = match named {
            Some(agent) => (agent, task.trim()),
            None => (owner.active_agent.clone(), rest),
        };
        let rules = self.load_agent(&owner.active_agent).await?.spec.subagents;
        let label = sanitize::to_single_line(task, 60);
        let run = self
            .spawn_subagent(SpawnRequest {
                // If several agents get the command, each spawns one.
                id: RunId::from_cause(&format!("{}-{session}", self.command_key(order))),
                kind: RunKind::Subagent,
                owner: owner.key,
                requester: RunRequester::Person(
                    order.origin.map(|given| given.address.clone()),
                    order.authority,
                ),
                agent,
                task: RunTask { label, prompt: task.to_owned(), ..RunTask::default() },
                model: rules.model,
                thinking: rules.thinking,
                timeout_ms: i64::from(rules.run_timeout_seconds) * 1000,
                is_deleted_after: false,
                is_awaited: false,
                is_streamed: false,
            })
            .await?;
        Ok(texts::subagent_started(order.locale, &run.child))
    }

    async fn named_agent(&self, name: &str) -> Result<AgentId> {
        let id = AgentId::parse(name).map_err(|_| Error::UnknownAgent(quote_safely(name)))?;
        Ok(self.load_agent(&id).await?.spec.agent_id)
    }

    /// Idempotency key of the command, so that a message repeated after a crash has no second effect.
    fn command_key(&self, order: &CommandRequest<'_>) -> String {
        let given = order.origin.and_then(|given| Some((given.address, given.platform_id?)));
        match given {
            Some((address, id)) => format!("{}:{}:{id}", address.channel, address.account),
            None => self.next_id(),
        }
    }
}

fn stopped_reply(locale: Locale, labels: &[String]) -> String {
    match labels.is_empty() {
        true => texts::none_running(locale),
        false => texts::subagents_stopped(locale, &join_labels(locale, labels)),
    }
}

/// Splits the target from the text. A label of several words needs quotes.
fn split_target_and_text(rest: &str) -> (&str, &str) {
    let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    let (which, text) = quoted.or_else(|| rest.split_once(char::is_whitespace)).unwrap_or((rest, ""));
    (which, text.trim())
}

/// Strips optional quotes around a target that no text follows.
fn strip_quotes(rest: &str) -> &str {
    rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::{split_target_and_text, strip_quotes};

    #[test]
    fn label_without_following_text_needs_no_quotes() {
        for (rest, which) in
            [("2", "2"), ("look it up", "look it up"), ("\"look it up\"", "look it up"), ("\"", "\"")]
        {
            assert_eq!(strip_quotes(rest), which, "{rest}");
        }
    }

    #[test]
    fn label_of_several_words_needs_quotes() {
        for (rest, expected) in [
            ("2 be quick", ("2", "be quick")),
            ("2", ("2", "")),
            ("\"look it up\" be quick", ("look it up", "be quick")),
            ("\"open be quick", ("\"open", "be quick")),
        ] {
            assert_eq!(split_target_and_text(rest), expected, "{rest}");
        }
    }
}
