//! A person's answer to an approval request. Only this releases a call.

use polyclaw_domain::approval::{
    ApprovalDecision, ApprovalResponder, ApprovalState, InvalidApproval, check_responder,
};
use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::ApprovalId;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::approvals::{self, StoredApproval};
use polyclaw_store::{Tx, events};
use serde_json::json;

use super::pending::ApprovalClock;
use super::{decision_frame, publish_decision};
use crate::command::CommandRequest;
use crate::command_action::{ActionOutcome, CommandAction, PostCommitEffect, reply_only};
use crate::core::Engine;
use crate::error::{Error, Result, StateConflict};
use crate::reply_text;
use crate::subagents::is_descendant;

/// An answer and who gives it.
#[derive(Clone, Debug)]
pub struct ApprovalAnswer {
    pub decision: ApprovalDecision,
    pub reason: Option<String>,
    pub by: ApprovalResponder,
    /// Fingerprint of the call that the person was shown, if the client sends it.
    pub shown: Option<String>,
}

/// Result of the transaction.
enum ApprovalAnswerOutcome {
    Decided(StoredApproval),
    /// Someone else or the expiry was first; holds the current state.
    TooLate(StoredApproval),
    NotYours(StoredApproval, InvalidApproval),
    Nothing,
}

/// Decides an approval request once. A second, late or unauthorized answer is refused with the reason.
pub async fn decide_approval(
    engine: &Engine,
    id: &ApprovalId,
    verdict: ApprovalAnswer,
) -> Result<StoredApproval> {
    let judge = build_decision(engine, id, verdict);
    let approval = engine.db().write(judge).await?.into_result(id)?;
    publish_decision(engine, &approval, approval.state).await;
    Ok(approval)
}

/// Builds the transaction of an answer.
fn build_decision(
    engine: &Engine,
    id: &ApprovalId,
    mut verdict: ApprovalAnswer,
) -> impl Fn(&mut Tx<'_>) -> polyclaw_store::Result<ApprovalAnswerOutcome> + Send + use<> {
    verdict.reason.iter_mut().for_each(|reason| engine.redactor().redact_in_place(reason));
    let (wanted, watch) = (id.clone(), ApprovalClock::from_engine(engine));
    let now = watch.now;
    move |tx: &mut Tx<'_>| {
        let Some(asked) = approvals::get(tx, &wanted)? else { return Ok(ApprovalAnswerOutcome::Nothing) };
        if let Err(invalid) = check_responder(asked.approval_binding(), &verdict.by, verdict.shown.as_deref())
        {
            events::record(tx, &refused_event(&asked, &verdict.by, invalid), now)?;
            return Ok(ApprovalAnswerOutcome::NotYours(asked, invalid));
        }
        let state = match verdict.decision {
            ApprovalDecision::Approve => ApprovalState::Approved,
            ApprovalDecision::Deny => ApprovalState::Denied,
        };
        let by = verdict.by.name();
        let text = (verdict.reason.as_deref(), Some(&*by));
        let decided = approvals::record_decision(tx, &wanted, state, text, watch.decision_moment(&asked))?;
        let asked = approvals::get(tx, &wanted)?.unwrap_or(asked);
        if decided {
            events::record(tx, &decided_event(&asked), now)?;
        }
        Ok(if decided {
            ApprovalAnswerOutcome::Decided(asked)
        } else {
            ApprovalAnswerOutcome::TooLate(asked)
        })
    }
}

impl ApprovalAnswerOutcome {
    fn into_result(self, id: &ApprovalId) -> Result<StoredApproval> {
        match self {
            Self::Decided(approval) => Ok(approval),
            Self::TooLate(approval) => {
                // A request still pending here has expired.
                let known = if approval.state == ApprovalState::Pending {
                    ApprovalState::Expired
                } else {
                    approval.state
                };
                Err(match approval.reason.as_deref() {
                    Some(approvals::TURN_ENDED_REASON) => StateConflict::ApprovalClosed.into(),
                    _ => StateConflict::ApprovalDecided(known).into(),
                })
            }
            Self::NotYours(approval, invalid) => {
                tracing::warn!(approval.id = %approval.id, reason = invalid.user_message(Locale::English), "approval answer refused");
                Err(Error::NotYours(invalid))
            }
            Self::Nothing => Err(Error::UnknownApproval(id.to_string())),
        }
    }
}

fn decided_event(approval: &StoredApproval) -> NewEvent {
    let data = json!({ "approval_id": approval.id.as_str(), "tool": approval.tool, "state": approval.state.as_str(),
        "by": approval.decided_by });
    decision_event(approval, data)
}

fn refused_event(approval: &StoredApproval, by: &ApprovalResponder, invalid: InvalidApproval) -> NewEvent {
    let data = json!({ "approval_id": approval.id.as_str(), "tool": approval.tool, "refused": invalid.user_message(Locale::English),
        "by": by.name() });
    decision_event(approval, data)
}

fn decision_event(approval: &StoredApproval, data: serde_json::Value) -> NewEvent {
    NewEvent {
        kind: EventKind::ApprovalDecided,
        session: Some(approval.session.clone()),
        turn: Some(approval.turn.clone()),
        agent: None,
        trace: None,
        data,
    }
}

impl Engine {
    /// `/approve <id>` and `/deny <id> why`, in the conversation that shows the request.
    pub(crate) fn approval_action(
        &self,
        session: &SessionKey,
        decision: ApprovalDecision,
        order: &CommandRequest<'_>,
    ) -> CommandAction {
        let (rest, by, locale) = (order.rest, order.by.clone(), order.locale);
        let (id, why) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if id.is_empty() {
            return reply_only(reply_text::approval::id_missing(locale));
        }
        let (id, session) = (ApprovalId::new(id), session.clone());
        let reason = Some(why.trim().to_owned()).filter(|why| !why.is_empty());
        let judge = build_decision(self, &id, ApprovalAnswer { decision, reason, by, shown: None });
        Box::new(move |tx| {
            // Requests of a delegation are shown in the conversation that waits for it.
            if let Some(asked) = approvals::get(tx, &id)?
                && asked.session != session
                && !is_descendant(tx, &session, &asked.session)?
            {
                return Ok(ActionOutcome::with_error(Error::NotYours(InvalidApproval::OtherConversation)));
            }
            Ok(match judge(tx)?.into_result(&id) {
                Ok(approval) => ActionOutcome {
                    reply: Ok(reply_text::approval::request_decided(locale, decision)),
                    effects: vec![PostCommitEffect::Publish(
                        session.clone(),
                        decision_frame(&approval, approval.state),
                    )],
                },
                Err(error) => ActionOutcome::with_error(error),
            })
        })
    }
}
