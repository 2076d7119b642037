//! Commands that change something. Each is a deed: done in one transaction with the receipt of whoever gave it.

use polyclaw_domain::approval::ApprovalDecision;
use polyclaw_domain::id::SessionId;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::schedule;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{agents, sessions};

use super::{Order, names};
use crate::agent::find_exactly;
use crate::core::Engine;
use crate::deed::{After, Deed, Done, on, say};
use crate::error::{Error, Result};
use crate::ingress::Fresh;
use crate::reception::refusal;
use crate::session::{self, Stopped};

impl Engine {
    /// `None` if the command only tells something.
    pub(super) async fn change(&self, session: &SessionKey, order: &Order<'_>) -> Result<Option<Deed>> {
        let rest = order.rest;
        Ok(Some(match order.command.name {
            "new" => self.new_deed(session),
            "stop" => self.stop_deed(session),
            "compact" => self.compact_deed(session),
            "model" if !rest.is_empty() => self.model_deed(session, rest).await?,
            "agent" => self.agent_deed(session, order).await?,
            "subagents" => self.subagents_deed(session, order).await?,
            "focus" => self.focus_deed(session, rest).await?,
            "unfocus" => self.unfocus_deed(session),
            "session" => self.ttl_deed(session, rest),
            "approve" => self.answer_deed(session, ApprovalDecision::Approve, rest, order.by.clone()),
            "deny" => self.answer_deed(session, ApprovalDecision::Deny, rest, order.by.clone()),
            _ => return Ok(None),
        }))
    }

    fn new_deed(&self, session: &SessionKey) -> Deed {
        let (id, now) = (SessionId::new(self.next_id()), self.now());
        on(session, move |tx, session| {
            let after = session::renew(tx, &session.key, &id, now)?;
            Ok(Done { after, ..Done::said("A new conversation. The old one is kept.") })
        })
    }

    fn stop_deed(&self, session: &SessionKey) -> Deed {
        let engine = self.clone();
        on(session, move |tx, session| {
            let (stopped, after) = session::stop_all(tx, &engine, &session.key)?;
            Ok(Done { after, ..Done::said(sentence(&stopped)) })
        })
    }

    fn compact_deed(&self, session: &SessionKey) -> Deed {
        let fresh = Fresh::new(self, None);
        on(session, move |tx, session| {
            Ok(match session::compact(tx, session, &fresh)? {
                Some(lane) => Done {
                    after: vec![After::Wake(lane)],
                    ..Done::said("Folding old history into a summary.")
                },
                None => Done::refused(session::busy()),
            })
        })
    }

    async fn model_deed(&self, session: &SessionKey, rest: &str) -> Result<Deed> {
        let (model, said) = match rest {
            "default" => (None, "Back to the agent's own model.".to_owned()),
            name => match ModelRef::parse(name) {
                Ok(model) => (Some(model), format!("{name} from the next turn on.")),
                Err(error) => return Ok(say(error.to_string())),
            },
        };
        match self.check_model(model.as_ref()).await {
            Err(error @ (Error::UnknownProvider(_) | Error::UnknownModel(_))) => {
                return Ok(say(format!("{error}. /models shows the models there are.")));
            }
            checked => checked?,
        }
        let now = self.now();
        Ok(on(session, move |tx, session| {
            sessions::set_model(tx, &session.key, model.as_ref(), now)?;
            Ok(Done::said(&*said))
        }))
    }

    async fn agent_deed(&self, session: &SessionKey, order: &Order<'_>) -> Result<Deed> {
        let rest = order.rest;
        if rest.is_empty() {
            return Ok(say("Say which agent: /agent <id or name>. /agents shows those there are."));
        }
        let listed = self.db().read(agents::list).await?;
        let (id, now) = (find_exactly(&listed, rest)?.spec.agent_id.clone(), self.now());
        if !order.reachable.includes(&id, &listed, &self.settings().default_agent) {
            return Ok(say(refusal(&id)));
        }
        Ok(on(session, move |tx, session| {
            Ok(match session::set_agent(tx, session, &id, now)? {
                true => Done::said(format!("{id} answers from the next turn on.")),
                false => Done::refused(Error::UnknownAgent(id.to_string())),
            })
        }))
    }

    /// What is written here goes to another session from now on, until somebody says otherwise.
    async fn focus_deed(&self, session: &SessionKey, rest: &str) -> Result<Deed> {
        if rest.is_empty() {
            let usage = "Say which session: /focus <session key>, a member of your team by name, or a sub-agent by number, label or run id.";
            return Ok(say(usage));
        }
        let target = match SessionKey::parse(rest) {
            Ok(target) => target,
            Err(_) => match self.member_session(session, rest).await? {
                Some(member) => member,
                None => self.find_child(session, rest.trim_matches('"')).await?.run.child,
            },
        };
        let now = self.now();
        let refused = |words: String| Ok(Done::refused(Error::NotNow(words)));
        Ok(on(session, move |tx, session| {
            let Some(there) = sessions::get(tx, &target)? else {
                return refused(format!("there is no session {target}"));
            };
            if target == session.key || there.focus.is_some() {
                return refused(format!("{target} is no place to go on"));
            }
            sessions::set_focus(tx, &session.key, Some(&target), now)?;
            Ok(Done::said(format!("What you write here goes to {target} now. /unfocus brings you back.")))
        }))
    }

    fn unfocus_deed(&self, session: &SessionKey) -> Deed {
        let now = self.now();
        on(session, move |tx, session| {
            sessions::set_focus(tx, &session.key, None, now)?;
            Ok(Done::said(match session.focus {
                Some(_) => "Back in this conversation.",
                None => "This conversation has no focus: what you write stays here.",
            }))
        })
    }

    fn ttl_deed(&self, session: &SessionKey, rest: &str) -> Deed {
        const USAGE: &str = "Say how long: /session ttl 12h, or /session ttl off.";
        let Some(length) = rest.strip_prefix("ttl").map(str::trim).filter(|length| !length.is_empty()) else {
            return say(USAGE);
        };
        let ttl_ms = match length {
            "off" => None,
            _ => match schedule::parse_interval(length) {
                Ok(millis) => Some(millis),
                Err(why) => return say(format!("{length:?} is no length of time: {why}. {USAGE}")),
            },
        };
        let said = match ttl_ms {
            Some(_) => format!("After {length} of silence a new conversation begins."),
            None => "This conversation goes on until you say /new.".to_owned(),
        };
        let now = self.now();
        on(session, move |tx, session| {
            sessions::set_ttl(tx, &session.key, ttl_ms, now)?;
            Ok(Done::said(&*said))
        })
    }
}

fn sentence(stopped: &Stopped) -> String {
    let said = match (&stopped.turn, stopped.interrupted_tasks) {
        (None, 0) if stopped.children.is_empty() => return "Nothing is running.".to_owned(),
        (_, 0) => "Stopped.".to_owned(),
        (_, tasks) => format!("Stopped, with {tasks} interrupted task(s) given up."),
    };
    match stopped.children.is_empty() {
        true => said,
        false => format!("{said} Sub-agents stopped: {}.", names(&stopped.children)),
    }
}
