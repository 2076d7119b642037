//! What an audience is left with: of a run that spoke there, and of the turn that let it.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::delivery::{DeliveryPolicy, apply_gate, is_silence};
use polyclaw_store::outbox::OutboxMessage;
use polyclaw_store::{Tx, drafts, outbox};

use super::{Last, pass_gate};
use crate::core::Engine;
use crate::delivery::{self, Label};
use crate::draft::Draft;
use crate::hub::FrameKind;
use crate::prompt::Context;
use crate::turn::{Driven, check_claim, lost};
use crate::worker::Running;

/// What the conversation is left with in which a run was shown: its answer, or what it had said and that it was cut
/// short. Of one that failed before it said anything, its owner tells.
pub(super) fn tell(
    engine: &Engine,
    context: &Context,
    last: &mut Last,
    (text, error): (&str, Option<&'static str>),
) {
    let Some(listeners) = &context.listeners else { return };
    let said = error.map(|_| last.said.whole(&context.stored)).unwrap_or_default();
    let whole = match error {
        None if is_silence(text) => return,
        None => text.to_owned(),
        Some(code) => format!("{said}\n\n{}", listeners.cut_short(code, last.now)).trim().to_owned(),
    };
    for address in listeners.addresses() {
        let draft = last.drafts.message(address);
        if error.is_none() || draft.is_some() || !said.is_empty() {
            pass_gate(engine, last, (address.clone(), draft), listeners.policy(), &context.signed(&whole));
        }
    }
    let speaker = listeners.speaker(&context.spec.agent_id, &context.spec.name);
    last.told = Some(FrameKind::DelegateEnded { speaker, text: whole, is_whole: error.is_none() });
}

/// Before another agent is shown in this conversation: what this turn has shown there is not written over by its
/// answer, which comes after the other's words.
pub(in crate::turn) async fn release_drafts(
    engine: &Engine,
    running: &Running,
    context: &Context,
) -> Driven<()> {
    let released = running.drafts.release();
    if released.is_empty() {
        return Ok(());
    }
    let claim = running.claim.clone();
    let last_words: Vec<_> =
        released.into_iter().map(|draft| stand(engine, running, context, draft)).collect();
    let write = move |tx: &mut Tx<'_>| {
        check_claim(tx, &claim)?;
        for (address, parcels) in &last_words {
            drafts::delete(tx, &claim.turn, address)?;
            parcels.iter().try_for_each(|parcel| outbox::push(tx, parcel))?;
        }
        Ok(())
    };
    lost(engine.persist(write).await)?;
    engine.outbox_wake.notify_one();
    Ok(())
}

/// A draft as it is to stand: with all that was said in the step, which the draft may be behind of.
fn stand(
    engine: &Engine,
    running: &Running,
    context: &Context,
    draft: Draft,
) -> (ChatAddress, Vec<OutboxMessage>) {
    let claim = &running.claim;
    let said = context.last_step().map(|step| step.text.as_str()).filter(|text| !text.is_empty());
    let text = said.map_or(draft.text, |said| context.signed(said));
    let key = format!("{}-said-{}", claim.turn, engine.next_id());
    let session = context.listeners.as_ref().map_or(&claim.session, |listeners| listeners.session());
    let label = Label { session, turn: &claim.turn, key: &key, first: 0, now: engine.now() };
    let outgoing = apply_gate(Some(draft.address.clone()), DeliveryPolicy::ALLOW_ALL, text);
    let mut parcels =
        outgoing.map_or_else(|_| Vec::new(), |passed| delivery::parcels(engine, passed, &label));
    if let Some(first) = parcels.first_mut() {
        first.platform_id = draft.platform_id;
    }
    (draft.address, parcels)
}
