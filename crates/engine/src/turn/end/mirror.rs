//! The end of mirrored text: of a run that was shown in another conversation, and of the turn there.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::delivery::{DeliveryPolicy, apply_gate, is_silence};
use polyclaw_store::outbox::OutboxMessage;
use polyclaw_store::{Tx, drafts, outbox};

use super::{FinalCommit, pass_gate};
use crate::core::Engine;
use crate::delivery::{self, OutboxKey};
use crate::draft::DraftMessage;
use crate::hub::FrameKind;
use crate::prompt::TurnContext;
use crate::turn::{TurnResult, check_claim, or_lost};
use crate::worker::RunningTurn;

/// Adds a run's final message to the conversation that mirrored it: its answer, or its partial text with a notice. A
/// run that failed before showing anything is only reported by its owner.
pub(super) fn mirror_end(
    engine: &Engine,
    context: &TurnContext,
    last: &mut FinalCommit,
    (text, error): (&str, Option<&'static str>),
) {
    let Some(listeners) = &context.mirror else { return };
    let reply = error.map(|_| last.streamed_text.full_text(&context.stored)).unwrap_or_default();
    let whole = match error {
        None if is_silence(text) => return,
        None => text.to_owned(),
        Some(code) => {
            let locale = engine.settings().locale_for(&context.session);
            let notice = listeners.cut_short_reason(code, last.now).text(locale);
            format!("{reply}\n\n{notice}").trim().to_owned()
        }
    };
    for address in listeners.addresses() {
        let draft = last.drafts.message_id_at(address);
        if error.is_none() || draft.is_some() || !reply.is_empty() {
            pass_gate(
                engine,
                last,
                (address.clone(), draft),
                listeners.policy(),
                &context.sign_reply(&whole),
            );
        }
    }
    let speaker = listeners.speaker(&context.spec.agent_id, &context.spec.name);
    last.mirror_frame = Some(FrameKind::DelegateEnded { speaker, text: whole, is_whole: error.is_none() });
}

/// Makes a turn's visible drafts permanent before another agent's text appears in the conversation. The turn's own
/// answer is then a new message after that text.
pub(in crate::turn) async fn release_drafts(
    engine: &Engine,
    running: &RunningTurn,
    context: &TurnContext,
) -> TurnResult<()> {
    let released = running.drafts.release_sent();
    if released.is_empty() {
        return Ok(());
    }
    let claim = running.claim.clone();
    let last_words: Vec<_> =
        released.into_iter().map(|draft| finalize_draft(engine, running, context, draft)).collect();
    let write = move |tx: &mut Tx<'_>| {
        check_claim(tx, &claim)?;
        for (address, messages) in &last_words {
            drafts::delete(tx, &claim.turn, address)?;
            messages.iter().try_for_each(|message| outbox::push(tx, message))?;
        }
        Ok(())
    };
    or_lost(engine.write_with_retry(write).await)?;
    engine.outbox_wake.notify_one();
    Ok(())
}

/// Builds the final version of a draft, with the step's whole text, which the draft may not have reached yet.
fn finalize_draft(
    engine: &Engine,
    running: &RunningTurn,
    context: &TurnContext,
    draft: DraftMessage,
) -> (ChatAddress, Vec<OutboxMessage>) {
    let claim = &running.claim;
    let reply = context.last_step().map(|step| step.text.as_str()).filter(|text| !text.is_empty());
    let text = reply.map_or(draft.text, |reply| context.sign_reply(reply));
    let key = format!("{}-said-{}", claim.turn, engine.next_id());
    let session = context.mirror.as_ref().map_or(&claim.session, |listeners| listeners.session());
    let label = OutboxKey { session, turn: &claim.turn, key: &key, first: 0, now: engine.now() };
    let outgoing = apply_gate(Some(draft.address.clone()), DeliveryPolicy::ALLOW_ALL, text);
    let mut messages = outgoing
        .map_or_else(|_| Vec::new(), |passed| delivery::build_outbox_messages(engine, passed, &label));
    if let Some(first) = messages.first_mut() {
        first.platform_id = draft.platform_id;
    }
    (draft.address, messages)
}
