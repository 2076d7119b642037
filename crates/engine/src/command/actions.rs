//! Commands that change something. Each builds an action that runs in one transaction with the command's receipt.

use polyclaw_domain::approval::ApprovalDecision;
use polyclaw_domain::id::SessionId;
use polyclaw_domain::locale::{ConversationLanguage, LanguageSetting, Locale};
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::schedule;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{agents, sessions};

use super::{CommandRequest, join_labels};
use crate::agent::find_agent_exact;
use crate::command_action::{ActionOutcome, CommandAction, PostCommitEffect, on_session, reply_only};
use crate::core::Engine;
use crate::error::{Error, Result, StateConflict};
use crate::ingress::NewIds;
use crate::reply_text;
use crate::session::{self, StopOutcome};

impl Engine {
    /// Builds the action of a command. `None`: the command changes nothing.
    pub(super) async fn build_change_action(
        &self,
        session: &SessionKey,
        order: &CommandRequest<'_>,
    ) -> Result<Option<CommandAction>> {
        let (rest, locale) = (order.rest, order.locale);
        Ok(Some(match order.command.name {
            "new" => self.new_session_action(session, locale),
            "stop" => self.stop_action(session, locale),
            "compact" => self.compact_action(session, locale),
            "model" if !rest.is_empty() => self.model_action(session, rest, locale).await?,
            "agent" => self.agent_action(session, order).await?,
            "subagents" => self.subagents_action(session, order).await?,
            "focus" => self.focus_action(session, rest, locale).await?,
            "unfocus" => self.unfocus_action(session, locale),
            "session" => self.ttl_action(session, rest, locale),
            "language" if !rest.is_empty() => self.language_action(session, rest, locale),
            "approve" => self.approval_action(session, ApprovalDecision::Approve, order),
            "deny" => self.approval_action(session, ApprovalDecision::Deny, order),
            _ => return Ok(None),
        }))
    }

    fn new_session_action(&self, session: &SessionKey, locale: Locale) -> CommandAction {
        let (id, now) = (SessionId::new(self.next_id()), self.now());
        on_session(session, move |tx, session| {
            let after = session::start_new_conversation(tx, &session.key, &id, now)?;
            Ok(ActionOutcome {
                effects: after,
                ..ActionOutcome::with_reply(reply_text::command::new_conversation(locale))
            })
        })
    }

    fn stop_action(&self, session: &SessionKey, locale: Locale) -> CommandAction {
        let engine = self.clone();
        on_session(session, move |tx, session| {
            let (stopped, after) = session::stop_session_tree(tx, &engine, &session.key)?;
            Ok(ActionOutcome { effects: after, ..ActionOutcome::with_reply(stop_reply(locale, &stopped)) })
        })
    }

    fn compact_action(&self, session: &SessionKey, locale: Locale) -> CommandAction {
        let fresh = NewIds::new(self, None);
        on_session(session, move |tx, session| {
            Ok(match session::queue_compaction(tx, session, &fresh)? {
                Some(lane) => ActionOutcome {
                    effects: vec![PostCommitEffect::Wake(lane)],
                    ..ActionOutcome::with_reply(reply_text::command::compaction_started(locale))
                },
                None => ActionOutcome::with_error(session::busy_error()),
            })
        })
    }

    async fn model_action(&self, session: &SessionKey, rest: &str, locale: Locale) -> Result<CommandAction> {
        let (model, text) = match rest {
            "default" => (None, reply_text::command::model_reset(locale)),
            name => match ModelRef::parse(name) {
                Ok(model) => (Some(model), reply_text::command::model_selected(locale, name)),
                Err(error) => {
                    return Ok(reply_only(reply_text::command::malformed_model(locale, &error.to_string())));
                }
            },
        };
        match self.check_model(model.as_ref()).await {
            Err(error @ (Error::UnknownProvider(_) | Error::UnknownModel(_))) => {
                return Ok(reply_only(reply_text::command::unknown_model(locale, &error)));
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
        let (rest, locale) = (order.rest, order.locale);
        if rest.is_empty() {
            return Ok(reply_only(reply_text::command::agent_usage(locale)));
        }
        let listed = self.db().read(agents::list).await?;
        let (id, now) = (find_agent_exact(&listed, rest)?.spec.agent_id.clone(), self.now());
        if !order.reachable.includes(&id, &listed, &self.settings().default_agent) {
            return Ok(reply_only(reply_text::inbound::agent_unavailable(locale, &id)));
        }
        Ok(on_session(session, move |tx, session| {
            Ok(match session::set_agent(tx, session, &id, now)? {
                true => ActionOutcome::with_reply(reply_text::command::agent_selected(locale, &id)),
                false => ActionOutcome::with_error(Error::UnknownAgent(id.to_string())),
            })
        }))
    }

    /// Redirects messages of this conversation to another session until the focus is removed.
    async fn focus_action(&self, session: &SessionKey, rest: &str, locale: Locale) -> Result<CommandAction> {
        if rest.is_empty() {
            return Ok(reply_only(reply_text::command::focus_usage(locale)));
        }
        let target = match SessionKey::parse(rest) {
            Ok(target) => target,
            Err(_) => match self.member_session(session, rest).await? {
                Some(member) => member,
                None => self.find_child_run(session, rest.trim_matches('"')).await?.run.child,
            },
        };
        let now = self.now();
        let refused = |conflict: StateConflict| Ok(ActionOutcome::with_error(conflict.into()));
        Ok(on_session(session, move |tx, session| {
            let Some(there) = sessions::get(tx, &target)? else {
                return refused(StateConflict::FocusMissing(target.clone()));
            };
            if target == session.key || there.focus.is_some() {
                return refused(StateConflict::FocusRefused(target.clone()));
            }
            sessions::set_focus(tx, &session.key, Some(&target), now)?;
            Ok(ActionOutcome::with_reply(reply_text::command::focus_set(locale, &target)))
        }))
    }

    fn unfocus_action(&self, session: &SessionKey, locale: Locale) -> CommandAction {
        let now = self.now();
        on_session(session, move |tx, session| {
            sessions::set_focus(tx, &session.key, None, now)?;
            Ok(ActionOutcome::with_reply(match session.focus {
                Some(_) => reply_text::command::focus_removed(locale),
                None => reply_text::command::no_focus(locale),
            }))
        })
    }

    /// Sets the language of the conversation.
    fn language_action(&self, session: &SessionKey, rest: &str, locale: Locale) -> CommandAction {
        let Some(setting) = LanguageSetting::parse(rest) else {
            return reply_only(reply_text::command::unknown_language(locale, rest));
        };
        let (instance, now) = (self.settings().language, self.now());
        on_session(session, move |tx, session| {
            sessions::set_language(tx, &session.key, setting, now)?;
            let language = ConversationLanguage { chosen: Some(setting), ..session.language };
            let text = reply_text::command::language_set(language.resolve(instance), setting);
            Ok(ActionOutcome::with_reply(text))
        })
    }

    fn ttl_action(&self, session: &SessionKey, rest: &str, locale: Locale) -> CommandAction {
        let Some(length) = rest.strip_prefix("ttl").map(str::trim).filter(|length| !length.is_empty()) else {
            return reply_only(reply_text::command::ttl_usage(locale));
        };
        let ttl_ms = match length {
            "off" => None,
            _ => match schedule::parse_interval(length) {
                Ok(millis) => Some(millis),
                Err(why) => {
                    return reply_only(reply_text::command::invalid_ttl(locale, length, &why.to_string()));
                }
            },
        };
        let text = match ttl_ms {
            Some(_) => reply_text::command::ttl_set(locale, length),
            None => reply_text::command::ttl_off(locale),
        };
        let now = self.now();
        on_session(session, move |tx, session| {
            sessions::set_ttl(tx, &session.key, ttl_ms, now)?;
            Ok(ActionOutcome::with_reply(&*text))
        })
    }
}

fn stop_reply(locale: Locale, stopped: &StopOutcome) -> String {
    let StopOutcome { turn, interrupted_tasks, children } = stopped;
    if turn.is_none() && *interrupted_tasks == 0 && children.is_empty() {
        return reply_text::command::nothing_running(locale);
    }
    let labels = (!children.is_empty()).then(|| join_labels(locale, children));
    reply_text::command::work_stopped(locale, *interrupted_tasks, labels.as_deref())
}
