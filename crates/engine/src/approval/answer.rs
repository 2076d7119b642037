//! A person's answer to a question. Only this releases a call.

use std::collections::HashSet;
use std::sync::PoisonError;

use polyclaw_domain::approval::{Answerer, ApprovalState, Decision, Invalid, check};
use polyclaw_domain::channel::Address;
use polyclaw_domain::delivery::{Policy, gate};
use polyclaw_domain::event::{Event, EventKind};
use polyclaw_domain::id::{ApprovalId, MessageId, TurnId};
use polyclaw_domain::key::SessionKey;
use polyclaw_store::approvals::{self, Approval};
use polyclaw_store::{Tx, events, ingress, outbox};
use serde_json::json;

use super::announce;
use crate::command;
use crate::core::Engine;
use crate::delivery::{Label, parcels};
use crate::error::{Error, Result};
use crate::ingress::Inbound;

/// Who answers, and what.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub decision: Decision,
    pub reason: Option<String>,
    pub by: Answerer,
    /// The fingerprint of what the person was shown, where they can say it.
    pub shown: Option<String>,
}

/// What the transaction found.
enum Found {
    Decided(Approval),
    /// Somebody or the time was first; this is how it stands.
    TooLate(Approval),
    NotYours(Approval, Invalid),
    Nothing,
}

/// Answered once: a second answer, one that comes too late, or one of somebody else is refused with the reason.
pub async fn decide(engine: &Engine, id: &ApprovalId, mut verdict: Verdict) -> Result<Approval> {
    verdict.reason.iter_mut().for_each(|reason| engine.redactor().string(reason));
    let (wanted, now) = (id.clone(), engine.now());
    let driven: HashSet<TurnId> =
        engine.running.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
    let write = move |tx: &mut Tx<'_>| {
        let Some(asked) = approvals::get(tx, &wanted)? else { return Ok(Found::Nothing) };
        if let Err(invalid) = check(asked.bound(), &verdict.by, verdict.shown.as_deref()) {
            events::record(tx, &refused_event(&asked, &verdict.by, invalid), now)?;
            return Ok(Found::NotYours(asked, invalid));
        }
        // A turn that waits in this process ends the question itself; the clock may have been set since.
        let waits = driven.contains(&asked.turn);
        let at = if waits { now.min(asked.expires_at.minus(1)) } else { now };
        let state = match verdict.decision {
            Decision::Approve => ApprovalState::Approved,
            Decision::Deny => ApprovalState::Denied,
        };
        let by = verdict.by.name();
        let decided = approvals::decide(tx, &wanted, state, (verdict.reason.as_deref(), Some(&by)), at)?;
        let asked = approvals::get(tx, &wanted)?.unwrap_or(asked);
        if decided {
            events::record(tx, &decided_event(&asked), now)?;
        }
        Ok(if decided { Found::Decided(asked) } else { Found::TooLate(asked) })
    };
    match engine.db().write(write).await? {
        Found::Decided(approval) => {
            announce(engine, &approval, approval.state);
            Ok(approval)
        }
        Found::TooLate(approval) => {
            // One that still says it is pending came too late.
            let known = if approval.state == ApprovalState::Pending {
                ApprovalState::Expired
            } else {
                approval.state
            };
            Err(Error::NotNow(format!("this question is already {}", known.as_str())))
        }
        Found::NotYours(approval, invalid) => {
            tracing::warn!(approval.id = %approval.id, reason = invalid.sentence(), "an answer was refused");
            Err(Error::NotYours(invalid))
        }
        Found::Nothing => Err(Error::UnknownApproval(id.to_string())),
    }
}

fn decided_event(approval: &Approval) -> Event {
    let data = json!({ "approval_id": approval.id.as_str(), "tool": approval.tool, "state": approval.state.as_str(),
        "by": approval.decided_by });
    event(approval, data)
}

fn refused_event(approval: &Approval, by: &Answerer, invalid: Invalid) -> Event {
    let data = json!({ "approval_id": approval.id.as_str(), "tool": approval.tool, "refused": invalid.sentence(),
        "by": by.name() });
    event(approval, data)
}

fn event(approval: &Approval, data: serde_json::Value) -> Event {
    Event {
        kind: EventKind::ApprovalDecided,
        session: Some(approval.session.clone()),
        turn: Some(approval.turn.clone()),
        agent: None,
        trace: None,
        data,
    }
}

impl Engine {
    /// `/approve <id>` and `/deny <id> why`, in the conversation where the question was asked.
    pub(crate) async fn answer_command(
        &self,
        session: &SessionKey,
        decision: Decision,
        rest: &str,
        by: Answerer,
    ) -> Result<String> {
        let (id, why) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if id.is_empty() {
            return Ok("Say which: /approve <id> or /deny <id>, with the id of the question.".to_owned());
        }
        let id = ApprovalId::new(id);
        let wanted = id.clone();
        let asked = self.db().read(move |tx| approvals::get(tx, &wanted)).await?;
        if asked.is_some_and(|asked| asked.session != *session) {
            return Err(Error::NotYours(Invalid::OtherConversation));
        }
        let reason = Some(why.trim().to_owned()).filter(|why| !why.is_empty());
        decide(self, &id, Verdict { decision, reason, by, shown: None }).await?;
        Ok(match decision {
            Decision::Approve => "Approved: it runs now.".to_owned(),
            Decision::Deny => "Denied: the agent is told.".to_owned(),
        })
    }

    /// An answer that came as a message of a channel: it is taken once, never stored as a message, and what became
    /// of it is sent back. `None` if the message is no answer.
    pub async fn answer_from(&self, inbound: &Inbound) -> Result<Option<String>> {
        let decision = match command::parse(&inbound.text) {
            Some(("approve", rest)) => (Decision::Approve, rest),
            Some(("deny", rest)) => (Decision::Deny, rest),
            _ => return Ok(None),
        };
        // What a program or another agent relays is no person's word.
        if inbound.relayed.is_some() {
            return Ok(None);
        }
        let (address, platform_id) = (inbound.address.clone(), inbound.platform_id.clone());
        let known = self.db().read(move |tx| match &platform_id {
            Some(id) => ingress::find(tx, &address, id),
            None => Ok(None),
        });
        if known.await?.is_some() {
            return Ok(Some("This answer was taken before.".to_owned()));
        }
        let by = Answerer::Sender(inbound.address.clone());
        let said = match self.answer_command(&inbound.session, decision.0, decision.1, by).await {
            Err(error @ (Error::Store(_) | Error::Draining)) => return Err(error),
            answered => answered.unwrap_or_else(|error| format!("That does not count: {error}.")),
        };
        self.send_back(inbound, &said).await?;
        Ok(Some(said))
    }

    async fn send_back(&self, inbound: &Inbound, text: &str) -> Result<()> {
        let (id, now) = (self.next_id(), self.now());
        let turn = TurnId::new(id.clone());
        let key = format!("answer-{id}");
        let label = Label { session: &inbound.session, turn: &turn, key: &key, first: 0, now };
        let policy = Policy { wanted: inbound.deliver, ..Policy::OPEN };
        let outgoing = gate(Some(inbound.address.clone()), policy, text.to_owned()).ok();
        let outgoing = outgoing.filter(|outgoing| !outgoing.address().is_pulled());
        let sent = outgoing.map(|outgoing| parcels(self, outgoing, &label)).unwrap_or_default();
        let (address, platform_id): (Address, Option<String>) =
            (inbound.address.clone(), inbound.platform_id.clone());
        let write = move |tx: &mut Tx<'_>| {
            if let Some(platform_id) = &platform_id {
                ingress::remember(tx, &address, platform_id, &MessageId::new(id.clone()), now)?;
            }
            sent.iter().try_for_each(|parcel| outbox::push(tx, parcel))
        };
        self.db().write(write).await?;
        self.outbox_wake.notify_one();
        Ok(())
    }
}
