//! Strangers: who is not known is told a code and nothing else, and nothing of what they write is kept.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use polyclaw_domain::channel::InboundMessage;
use polyclaw_domain::delivery::{DeliveryPolicy, apply_gate};
use polyclaw_domain::event::EventKind;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::inbound::InboundContext;
use polyclaw_domain::pairing::{CODE_EXPIRY_MS, CODE_REPEAT_INTERVAL_MS, PairingCode};
use polyclaw_domain::time::Millis;
use polyclaw_store::pairings::{self, Pairing, PairingSender};
use polyclaw_store::{Tx, cron_jobs, events, outbox};
use serde_json::{Value, json};

use super::route::session_key_for;
use super::{receipt_for, sessionless_event};
use crate::command_action::ActionOutcome;
use crate::core::Engine;
use crate::delivery::{OutboxKey, build_outbox_messages};
use crate::error::{Error, Result};

/// What somebody who was let in is told.
const PAIRING_APPROVED_TEXT: &str = "You are let in: write to me now.";

/// Longest name of a sender that is kept.
const MAX_SENDER_NAME_LEN: usize = 80;

impl Engine {
    pub(super) async fn is_paired(&self, arrival: &InboundContext) -> Result<bool> {
        let sender = sender_of(arrival);
        Ok(self.db().read(move |tx| pairings::is_paired(tx, &sender)).await?)
    }

    /// Tells a stranger their code, now and then again. Two copies of one letter, or two strangers, may meet at the
    /// database: the one that comes second looks again.
    pub(super) async fn pair_sender(&self, message: &InboundMessage) -> Result<()> {
        match self.send_pairing_code(message).await {
            Err(Error::Store(polyclaw_store::Error::Conflict(_))) => self.send_pairing_code(message).await,
            result => result,
        }
    }

    async fn send_pairing_code(&self, message: &InboundMessage) -> Result<()> {
        let settings = self.settings();
        let default = settings.inbound.router.choose_agent(&message.context).agent;
        let receipt = receipt_for(message, &session_key_for(&settings.inbound, default, &message.context));
        if self.is_already_accepted(&receipt).await? {
            return Ok(());
        }
        let (who, now) = (sender_of(&message.context), self.now());
        let wanted = who.clone();
        match self.db().read(move |tx| pairings::find_pending_code(tx, &wanted, now)).await? {
            Some((_, notified_at)) if now.since(notified_at) < CODE_REPEAT_INTERVAL_MS => Ok(()),
            Some((code, _)) => {
                let text = code.user_message();
                let tell = move |tx: &mut Tx<'_>| {
                    pairings::mark_code_sent(tx, &who, now).map(|()| Some(ActionOutcome::with_reply(&*text)))
                };
                self.commit_once(&receipt, tell).await.map(drop)
            }
            None => {
                let pairing = self.build_pairing(message, now);
                let asked = sessionless_event(EventKind::PairingRequested, sender_data(&pairing.sender));
                let text = pairing.code.user_message();
                let begin = move |tx: &mut Tx<'_>| {
                    let has_room = pairings::insert_pending(tx, &pairing, now)?;
                    if has_room {
                        events::record(tx, &asked, now)?;
                    }
                    Ok(has_room.then(|| ActionOutcome::with_reply(&*text)))
                };
                match self.commit_once(&receipt, begin).await? {
                    Some(_) => Ok(()),
                    None => self.record_pairing_overflow(message).await,
                }
            }
        }
    }

    /// Strangers beyond the last place are told nothing: that is what a code is limited for.
    async fn record_pairing_overflow(&self, message: &InboundMessage) -> Result<()> {
        tracing::warn!(
            channel = message.context.channel,
            account = message.context.account,
            "too many strangers wait for a code"
        );
        if self.refusal_throttle.should_record(&message.context, "pairing", self.now()) {
            self.record_event(sessionless_event(
                EventKind::PairingRefused,
                sender_data(&sender_of(&message.context)),
            ))
            .await;
        }
        Ok(())
    }

    fn build_pairing(&self, message: &InboundMessage, now: Millis) -> Pairing {
        let plain = |name: &String| {
            let name = name.chars().filter(|c| !c.is_control()).take(MAX_SENDER_NAME_LEN).collect::<String>();
            self.redactor().redact_text(&name).into_owned()
        };
        Pairing {
            sender: sender_of(&message.context),
            name: message.sender_name.as_ref().map(plain),
            code: PairingCode::from_nonce(&self.nonce()),
            is_approved: false,
            address: message.address.clone(),
            created_at: now,
            expires_at: now.plus(CODE_EXPIRY_MS),
        }
    }

    /// Those who wait, then those who were let in.
    pub async fn list_pairings(&self) -> Result<Vec<Pairing>> {
        let now = self.now();
        Ok(self.db().read(move |tx| pairings::list(tx, now)).await?)
    }

    /// Lets in whoever was told this code, and tells them.
    pub async fn approve_pairing(&self, typed: &str) -> Result<Pairing> {
        let unknown = || Error::UnknownPairing(typed.chars().take(40).collect());
        let code = PairingCode::parse(typed).ok_or_else(unknown)?;
        let (now, engine, id) = (self.now(), self.clone(), self.next_id());
        let write = move |tx: &mut Tx<'_>| {
            let Some(pairing) = pairings::approve(tx, &code, now)? else { return Ok(None) };
            events::record(
                tx,
                &sessionless_event(EventKind::PairingApproved, sender_data(&pairing.sender)),
                now,
            )?;
            engine
                .welcome_messages(&pairing, &id, now)
                .iter()
                .try_for_each(|message| outbox::push(tx, message))?;
            Ok(Some(pairing))
        };
        let approved = self.db().write(write).await?.ok_or_else(unknown)?;
        self.outbox_wake.notify_one();
        Ok(approved)
    }

    fn welcome_messages(&self, pairing: &Pairing, id: &str, now: Millis) -> Vec<outbox::OutboxMessage> {
        let agent = &self.settings().default_agent;
        let session = polyclaw_domain::session_key::SessionKey::main(agent);
        let turn = TurnId::new(id);
        let label = OutboxKey { session: &session, turn: &turn, key: id, first: 0, now };
        let outgoing = apply_gate(
            Some(pairing.address.clone()),
            DeliveryPolicy::ALLOW_ALL,
            PAIRING_APPROVED_TEXT.to_owned(),
        );
        outgoing.map(|outgoing| build_outbox_messages(self, outgoing, &label)).unwrap_or_default()
    }

    /// Takes somebody's access or code away, and the errands that were made for them.
    pub async fn revoke_pairing(&self, sender: PairingSender) -> Result<()> {
        let (revoked, now) = (sessionless_event(EventKind::PairingRevoked, sender_data(&sender)), self.now());
        let whose = format!("{}:{}:{}", sender.channel, sender.account, sender.id);
        let unknown = Error::UnknownPairing(whose.clone());
        let write = move |tx: &mut Tx<'_>| {
            let found = pairings::revoke(tx, &sender)?;
            if found {
                cron_jobs::remove_by_requester(tx, &whose)?;
                events::record(tx, &revoked, now)?;
            }
            Ok(found)
        };
        let found = self.db().write(write).await?;
        self.cron_wake.notify_one();
        if found { Ok(()) } else { Err(unknown) }
    }
}

fn sender_of(arrival: &InboundContext) -> PairingSender {
    PairingSender {
        channel: arrival.channel.clone(),
        account: arrival.account.clone(),
        id: arrival.sender.clone(),
    }
}

fn sender_data(sender: &PairingSender) -> Value {
    json!({ "channel": sender.channel, "account": sender.account, "sender": sender.id })
}

/// Whom something was refused, so that who goes on writing does not fill the record.
#[derive(Default)]
pub(crate) struct RefusalThrottle(Mutex<HashMap<String, Millis>>);

impl RefusalThrottle {
    const REFUSAL_LOG_INTERVAL_MS: i64 = 60 * 60 * 1000;
    const MAX_TRACKED_REFUSALS: usize = 1_000;

    /// Whether this was not refused to them for a while.
    pub fn should_record(&self, arrival: &InboundContext, why: &str, now: Millis) -> bool {
        let InboundContext { channel, account, sender, peer, .. } = arrival;
        let key = format!("{channel}\0{account}\0{sender}\0{}\0{why}", peer.id);
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.get(&key).is_some_and(|last| now.since(*last) < Self::REFUSAL_LOG_INTERVAL_MS) {
            return false;
        }
        if seen.len() >= Self::MAX_TRACKED_REFUSALS {
            seen.clear();
        }
        seen.insert(key, now);
        true
    }
}
