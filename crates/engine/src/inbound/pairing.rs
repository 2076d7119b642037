//! Pairing: unknown senders get only a pairing code, and their messages are not stored.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use polyclaw_domain::channel::InboundMessage;
use polyclaw_domain::delivery::{DeliveryPolicy, apply_gate};
use polyclaw_domain::event::EventKind;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::inbound::InboundContext;
use polyclaw_domain::locale::{ConversationLanguage, Locale};
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
use crate::reply_text;

/// Maximum length of a stored sender name.
const MAX_SENDER_NAME_LEN: usize = 80;

impl Engine {
    pub(super) async fn is_paired(&self, arrival: &InboundContext) -> Result<bool> {
        let sender = sender_of(arrival);
        Ok(self.db().read(move |tx| pairings::is_paired(tx, &sender)).await?)
    }

    /// Sends an unknown sender their code, repeated after a while. Retries once if two copies of a message or two
    /// senders conflict in the database.
    pub(super) async fn pair_sender(&self, message: &InboundMessage) -> Result<()> {
        match self.send_pairing_code(message).await {
            Err(Error::Store(polyclaw_store::Error::Conflict(_))) => self.send_pairing_code(message).await,
            result => result,
        }
    }

    async fn send_pairing_code(&self, message: &InboundMessage) -> Result<()> {
        let settings = self.settings();
        let default = settings.inbound.router.choose_agent(&message.context).agent;
        let locale = settings.locale_for_text(ConversationLanguage::default(), &message.text);
        let key = session_key_for(&settings.inbound, default, &message.context);
        let receipt = receipt_for(message, &key, locale);
        if self.is_already_accepted(&receipt).await? {
            return Ok(());
        }
        let (who, now) = (sender_of(&message.context), self.now());
        let wanted = who.clone();
        match self.db().read(move |tx| pairings::find_pending_code(tx, &wanted, now)).await? {
            Some((_, notified_at)) if now.since(notified_at) < CODE_REPEAT_INTERVAL_MS => Ok(()),
            Some((code, _)) => {
                let text = code.user_message(locale);
                let tell = move |tx: &mut Tx<'_>| {
                    pairings::mark_code_sent(tx, &who, now).map(|()| Some(ActionOutcome::with_reply(&*text)))
                };
                self.commit_once(&receipt, tell).await.map(drop)
            }
            None => {
                let pairing = self.build_pairing(message, locale, now);
                let asked = sessionless_event(EventKind::PairingRequested, sender_data(&pairing.sender));
                let text = pairing.code.user_message(locale);
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

    /// Records that the limit of pending codes was reached. The sender gets no reply, because that is what the limit is
    /// for.
    async fn record_pairing_overflow(&self, message: &InboundMessage) -> Result<()> {
        tracing::warn!(
            channel = message.context.channel,
            account = message.context.account,
            "too many pending pairing codes; the sender gets none"
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

    fn build_pairing(&self, message: &InboundMessage, locale: Locale, now: Millis) -> Pairing {
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
            locale,
            created_at: now,
            expires_at: now.plus(CODE_EXPIRY_MS),
        }
    }

    /// Pending codes first, then approved senders.
    pub async fn list_pairings(&self) -> Result<Vec<Pairing>> {
        let now = self.now();
        Ok(self.db().read(move |tx| pairings::list(tx, now)).await?)
    }

    /// Approves the sender with this code and notifies them.
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
            reply_text::inbound::pairing_approved(pairing.locale),
        );
        outgoing.map(|outgoing| build_outbox_messages(self, outgoing, &label)).unwrap_or_default()
    }

    /// Revokes a sender's access or code, and removes the cron jobs made for them.
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

/// Recently recorded refusals, so that persistent senders do not flood the event log.
#[derive(Default)]
pub(crate) struct RefusalThrottle(Mutex<HashMap<String, Millis>>);

impl RefusalThrottle {
    const REFUSAL_LOG_INTERVAL_MS: i64 = 60 * 60 * 1000;
    const MAX_TRACKED_REFUSALS: usize = 1_000;

    /// Whether this refusal was not recorded for this sender recently.
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
