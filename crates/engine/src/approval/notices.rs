//! Messages of an approval request: to the conversation that may answer it, or to the owners with a notice to the
//! requester.

use polyclaw_domain::approval as rules;
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::delivery::{DeliveryPolicy, apply_gate};
use polyclaw_domain::locale::Locale;
use polyclaw_domain::sanitize::quote_literal;
use polyclaw_store::approvals::StoredApproval;
use polyclaw_store::outbox::OutboxMessage;
use polyclaw_store::{Tx, sessions};

use super::requester_address;
use crate::core::Engine;
use crate::delivery::{OutboxKey, build_outbox_messages};
use crate::prompt::TurnContext;
use crate::reply_text;
use crate::turn::{TurnAbort, TurnResult};

/// Maximum private sessions per account that are searched for owners.
const MAX_SCANNED_SESSIONS: usize = 1_000;

/// Builds all messages of an approval request, through the gate.
pub(super) async fn build_approval_messages(
    engine: &Engine,
    context: &TurnContext,
    asked: &StoredApproval,
) -> TurnResult<Vec<OutboxMessage>> {
    let locale = engine.settings().locale_for(&context.session);
    if let Some(origin) = &asked.origin {
        let text =
            rules::format_question(locale, context.approval_name(), asked.id.as_str(), &asked.question);
        let policy = policy_towards(context, origin);
        let key = rules::question_key(asked.id.as_str());
        return Ok(gate_and_split(
            engine,
            (origin, policy),
            text,
            &approval_outbox_key(context, asked, &key, 0),
        ));
    }
    let Some(waiting) = requester_address(context) else { return Ok(Vec::new()) };
    let policy = policy_towards(context, &waiting);
    let waits = format!("waits-{}", asked.id);
    let owners = load_owner_addresses(engine).await?;
    let notice = match owners.is_empty() {
        true => reply_text::approval::waiting_in_command_center(locale),
        false => reply_text::approval::waiting_for_owner(locale),
    };
    let mut found =
        gate_and_split(engine, (&waiting, policy), notice, &approval_outbox_key(context, asked, &waits, 0));
    let key = rules::question_key(asked.id.as_str());
    for (owner, locale) in owners {
        let text = owner_question_text(locale, context, asked);
        let text = rules::format_question(locale, context.approval_name(), asked.id.as_str(), &text);
        let label = approval_outbox_key(context, asked, &key, found.len());
        found.extend(gate_and_split(engine, (&owner, DeliveryPolicy::ALLOW_ALL), text, &label));
    }
    Ok(found)
}

/// Members deliver nothing on their own, but their approval requests reach the people their team works for.
fn policy_towards(context: &TurnContext, to: &ChatAddress) -> DeliveryPolicy {
    let is_of_team = context.team_people.contains(to);
    if let Some(waiters) = context.waiters.as_ref().filter(|_| !is_of_team) {
        return waiters.policy;
    }
    DeliveryPolicy {
        requested: true,
        session_delivers: is_of_team || context.session.delivers,
        session_sends: is_of_team || context.session.sends,
    }
}

/// The request text for owners. It names the requester, because owners answer in another conversation.
fn owner_question_text(locale: Locale, context: &TurnContext, asked: &StoredApproval) -> String {
    let by: Vec<String> = context.requester_names().iter().map(|sender| quote_literal(sender, 200)).collect();
    let by = reply_text::join_list(locale, &by);
    reply_text::approval::question_for_owner(locale, &by, asked.session.as_str(), &asked.question)
}

/// Outbox key of a request. If someone waits for a delegation, it follows the order of their conversation.
fn approval_outbox_key<'a>(
    context: &'a TurnContext,
    asked: &'a StoredApproval,
    key: &'a str,
    first: usize,
) -> OutboxKey<'a> {
    let session = context.waiters.as_ref().map_or(&asked.session, |waiters| &waiters.session);
    OutboxKey { session, turn: &asked.turn, key, first, now: asked.created_at }
}

fn gate_and_split(
    engine: &Engine,
    (to, policy): (&ChatAddress, DeliveryPolicy),
    text: String,
    label: &OutboxKey<'_>,
) -> Vec<OutboxMessage> {
    let outgoing = apply_gate(Some(to.clone()), policy, text);
    outgoing.map(|outgoing| build_outbox_messages(engine, outgoing, label)).unwrap_or_default()
}

/// Private conversations in which account owners have written, with their languages. Addresses are never constructed, so
/// an owner who never wrote can answer only in the command center or the CLI.
async fn load_owner_addresses(engine: &Engine) -> TurnResult<Vec<(ChatAddress, Locale)>> {
    let settings = engine.settings();
    let accounts = settings.inbound.account_owners();
    let read = move |tx: &mut Tx<'_>| {
        let mut found: Vec<(ChatAddress, Locale)> = Vec::new();
        for (channel, account, owners) in &accounts {
            let known = sessions::list_by_account(tx, channel, account, MAX_SCANNED_SESSIONS)?;
            let private = known.into_iter().filter(|session| session.key.is_private());
            for session in private {
                let locale = settings.locale_for(&session);
                let Some(address) = session.address else { continue };
                if owners.contains(&address.peer) && !found.iter().any(|(known, _)| *known == address) {
                    found.push((address, locale));
                }
            }
        }
        Ok(found)
    };
    engine.db().read(read).await.map_err(|error| TurnAbort::Lost(error.into()))
}
