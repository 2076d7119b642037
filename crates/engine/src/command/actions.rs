//! Commands that change something. Each builds an action that runs in one transaction with the command's receipt.

use polyclaw_domain::approval::ApprovalDecision;
use polyclaw_domain::id::SessionId;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::schedule;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{agents, sessions};

use super::{CommandRequest, join_labels};
use crate::agent::find_agent_exact;
use crate::command_action::{ActionOutcome, CommandAction, PostCommitEffect, on_session, reply_only};
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::inbound::unreachable_reply;
use crate::ingress::NewIds;
use crate::session::{self, StopOutcome};

impl Engine {
    /// Builds the action of a command. `None`: the command changes nothing.
    pub(super) async fn build_change_action(
        &self,
        session: &SessionKey,
        order: &CommandRequest<'_>,
    ) -> Result<Option<CommandAction>> {
        let rest = order.rest;
        Ok(Some(match order.command.name {
            "new" => self.new_session_action(session),
            "stop" => self.stop_action(session),
            "compact" => self.compact_action(session),
            "model" if !rest.is_empty() => self.model_action(session, rest).await?,
            "agent" => self.agent_action(session, order).await?,
            "subagents" => self.subagents_action(session, order).await?,
            "focus" => self.focus_action(session, rest).await?,
            "unfocus" => self.unfocus_action(session),
            "session" => self.ttl_action(session, rest),
            "approve" => self.approval_action(session, ApprovalDecision::Approve, rest, order.by.clone()),
            "deny" => self.approval_action(session, ApprovalDecision::Deny, rest, order.by.clone()),
            _ => return Ok(None),
        }))
    }

    fn new_session_action(&self, session: &SessionKey) -> CommandAction {
        let (id, now) = (SessionId::new(self.next_id()), self.now());
        on_session(session, move |tx, session| {
            let after = session::start_new_conversation(tx, &session.key, &id, now)?;
            Ok(ActionOutcome {
                effects: after,
                ..ActionOutcome::with_reply("A new conversation. The old one is kept.")
            })
        })
    }

    fn stop_action(&self, session: &SessionKey) -> CommandAction {
        let engine = self.clone();
        on_session(session, move |tx, session| {
            let (stopped, after) = session::stop_session_tree(tx, &engine, &session.key)?;
            Ok(ActionOutcome { effects: after, ..ActionOutcome::with_reply(stop_reply(&stopped)) })
        })
    }

    fn compact_action(&self, session: &SessionKey) -> CommandAction {
        let fresh = NewIds::new(self, None);
        on_session(session, move |tx, session| {
            Ok(match session::queue_compaction(tx, session, &fresh)? {
                Some(lane) => ActionOutcome {
                    effects: vec![PostCommitEffect::Wake(lane)],
                    ..ActionOutcome::with_reply("Folding old history into a summary.")
                },
                None => ActionOutcome::with_error(session::busy_error()),
            })
        })
    }

    async fn model_action(&self, session: &SessionKey, rest: &str) -> Result<CommandAction> {
        let (model, text) = match rest {
            "default" => (None, "Back to the agent's own model.".to_owned()),
            name => match ModelRef::parse(name) {
                Ok(model) => (Some(model), format!("{name} from the next turn on.")),
                Err(error) => return Ok(reply_only(error.to_string())),
            },
        };
        match self.check_model(model.as_ref()).await {
            Err(error @ (Error::UnknownProvider(_) | Error::UnknownModel(_))) => {
                return Ok(reply_only(format!("{error}. /models shows the models there are.")));
            }
            checked => checked?,
        }
        let now = self.now();
        Ok(on_session(session, move |tx, session| {
            sessions::set_model(tx, &session.key, model.as_ref(), now)?;
            Ok(ActionOutcome::with_reply(&*text))
        }))
    }

    async fn agent_action(&self, session: &SessionKey, order: &CommandRequest<'_>) -> Result<CommandAction> {
        let rest = order.rest;
        if rest.is_empty() {
            return Ok(reply_only("Say which agent: /agent <id or name>. /agents shows those there are."));
        }
        let listed = self.db().read(agents::list).await?;
        let (id, now) = (find_agent_exact(&listed, rest)?.spec.agent_id.clone(), self.now());
        if !order.reachable.includes(&id, &listed, &self.settings().default_agent) {
            return Ok(reply_only(unreachable_reply(&id)));
        }
        Ok(on_session(session, move |tx, session| {
            Ok(match session::set_agent(tx, session, &id, now)? {
                true => ActionOutcome::with_reply(format!("{id} answers from the next turn on.")),
                false => ActionOutcome::with_error(Error::UnknownAgent(id.to_string())),
            })
        }))
    }

    /// Redirects messages of this conversation to another session until the focus is removed.
    async fn focus_action(&self, session: &SessionKey, rest: &str) -> Result<CommandAction> {
        if rest.is_empty() {
            let usage = "Say which session: /focus <session key>, a member of your team by name, or a sub-agent by number, label or run id.";
            return Ok(reply_only(usage));
        }
        let target = match SessionKey::parse(rest) {
            Ok(target) => target,
            Err(_) => match self.member_session(session, rest).await? {
                Some(member) => member,
                None => self.find_child_run(session, rest.trim_matches('"')).await?.run.child,
            },
        };
        let now = self.now();
        let refused = |words: String| Ok(ActionOutcome::with_error(Error::InvalidState(words)));
        Ok(on_session(session, move |tx, session| {
            let Some(there) = sessions::get(tx, &target)? else {
                return refused(format!("there is no session {target}"));
            };
            if target == session.key || there.focus.is_some() {
                return refused(format!("{target} is no place to go on"));
            }
            sessions::set_focus(tx, &session.key, Some(&target), now)?;
            Ok(ActionOutcome::with_reply(format!(
                "What you write here goes to {target} now. /unfocus brings you back."
            )))
        }))
    }

    fn unfocus_action(&self, session: &SessionKey) -> CommandAction {
        let now = self.now();
        on_session(session, move |tx, session| {
            sessions::set_focus(tx, &session.key, None, now)?;
            Ok(ActionOutcome::with_reply(match session.focus {
                Some(_) => "Back in this conversation.",
                None => "This conversation has no focus: what you write stays here.",
            }))
        })
    }

    fn ttl_action(&self, session: &SessionKey, rest: &str) -> CommandAction {
        const TTL_USAGE: &str = "Say how long: /session ttl 12h, or /session ttl off.";
        let Some(length) = rest.strip_prefix("ttl").map(str::trim).filter(|length| !length.is_empty()) else {
            return reply_only(TTL_USAGE);
        };
        let ttl_ms = match length {
            "off" => None,
            _ => match schedule::parse_interval(length) {
                Ok(millis) => Some(millis),
                Err(why) => {
                    return reply_only(format!("{length:?} is no length of time: {why}. {TTL_USAGE}"));
                }
            },
        };
        let text = match ttl_ms {
            Some(_) => format!("After {length} of silence a new conversation begins."),
            None => "This conversation goes on until you say /new.".to_owned(),
        };
        let now = self.now();
        on_session(session, move |tx, session| {
            sessions::set_ttl(tx, &session.key, ttl_ms, now)?;
            Ok(ActionOutcome::with_reply(&*text))
        })
    }
}

fn stop_reply(stopped: &StopOutcome) -> String {
    let text = match (&stopped.turn, stopped.interrupted_tasks) {
        (None, 0) if stopped.children.is_empty() => return "Nothing is running.".to_owned(),
        (_, 0) => "Stopped.".to_owned(),
        (_, tasks) => format!("Stopped, with {tasks} interrupted task(s) given up."),
    };
    match stopped.children.is_empty() {
        true => text,
        false => format!("{text} Sub-agents stopped: {}.", join_labels(&stopped.children)),
    }
}
