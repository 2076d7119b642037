//! The reply of a turn, on its way to those who asked.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::delivery::{DeliveryPolicy, OutgoingMessage, apply_gate, is_silence};
use polyclaw_domain::event::EventKind;
use polyclaw_domain::id::MessageId;
use serde_json::json;

use super::FinalCommit;
use crate::core::Engine;
use crate::delivery::{self, OutboxKey};
use crate::prompt::TurnContext;
use crate::turn::{step_message, turn_event};

/// Adds the turn's visible reply: stored, and put into the outbox for every conversation that asked.
pub(super) fn add_reply(
    engine: &Engine,
    context: &TurnContext,
    last: &mut FinalCommit,
    text: String,
    error: Option<&'static str>,
) {
    let mut step = step_message(context, &last.claim, MessageId::new(engine.next_id()), last.now);
    let silent = is_silence(&text);
    step.meta = match error {
        Some(code) => Some(json!({ "error": code })),
        None if silent => Some(json!({ "silent": true })),
        None => context.truncated.then(|| json!({ "finish_reason": "length" })),
    };
    last.end.reply = Some(step.id.clone());
    let is_known = error.is_some() && context.is_retry();
    for (address, wanted) in context.waiting_addresses() {
        let wanted = wanted && !is_known;
        step.channel.clone_from(&address.channel);
        step.deliver |= wanted && !silent;
        let is_asked = context.is_child_asked_from(&address);
        let policy = DeliveryPolicy {
            requested: wanted,
            session_delivers: context.session.delivers || is_asked,
            session_sends: context.session.sends || is_asked,
        };
        let draft = last.drafts.message_id_at(&address);
        let shown = match &draft {
            Some(_) if error.is_some() => {
                append_notice(last.streamed_text.unstored_text(&context.stored), &text)
            }
            _ => text.clone(),
        };
        pass_gate(engine, last, (address, draft), policy, &context.sign_reply(&shown));
    }
    super::mirror::mirror_end(engine, context, last, (&text, error));
    if silent {
        finalize_leftover_drafts(engine, last, "");
    }
    step.text = if silent { String::new() } else { text };
    if !silent {
        last.shown_in = context.shown_in();
    }
    if let Some(closing) = &mut last.child_end {
        closing.text.clone_from(&step.text);
        closing.error_code = error.map(str::to_owned);
    }
    last.steps.push(step);
}

/// Appends a notice to the text that people have already seen.
fn append_notice(text: &str, line: &str) -> String {
    match text.trim_end() {
        "" => line.to_owned(),
        text => format!("{text} …\n\n{line}"),
    }
}

pub(super) fn pass_gate(
    engine: &Engine,
    last: &mut FinalCommit,
    (address, draft): (ChatAddress, Option<String>),
    policy: DeliveryPolicy,
    text: &str,
) {
    let pulled = address.is_pull_channel();
    match apply_gate(Some(address.clone()), policy, text.to_owned()) {
        Ok(_) if pulled => {}
        Ok(outgoing) => {
            let data = json!({ "channel": address.channel });
            last.events.push(turn_event(&last.claim, EventKind::DeliveryQueued, data));
            add_outbox_messages(engine, last, outgoing, draft);
        }
        Err(kept) => {
            let data = json!({ "kept": kept.as_str(), "channel": address.channel });
            last.events.push(turn_event(&last.claim, EventKind::GateSuppressed, data));
        }
    }
}

/// Ends visible drafts of a turn that has no answer with a remark.
pub(super) fn finalize_leftover_drafts(engine: &Engine, last: &mut FinalCommit, remark: &str) {
    for draft in last.drafts.leftover_drafts() {
        let text = format!("{}{remark}", draft.text);
        if let Ok(outgoing) = apply_gate(Some(draft.address), DeliveryPolicy::ALLOW_ALL, text) {
            add_outbox_messages(engine, last, outgoing, draft.platform_id);
        }
    }
}

/// Adds outbox messages. The first one replaces a draft, if there is one.
fn add_outbox_messages(
    engine: &Engine,
    last: &mut FinalCommit,
    outgoing: OutgoingMessage,
    draft: Option<String>,
) {
    let turn = &last.claim.turn;
    let label = OutboxKey {
        session: &last.queue,
        turn,
        key: turn.as_str(),
        first: last.outbox_messages.len(),
        now: last.now,
    };
    let mut messages = delivery::build_outbox_messages(engine, outgoing, &label);
    if let Some(first) = messages.first_mut() {
        first.platform_id = draft;
    }
    last.outbox_messages.extend(messages);
}
