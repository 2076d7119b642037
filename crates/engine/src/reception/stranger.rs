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

use super::route::key_of;
use super::{event, receipt};
use crate::core::Engine;
use crate::deed::Done;
use crate::delivery::{Label, parcels};
use crate::error::{Error, Result};

/// What somebody who was let in is told.
const WELCOME: &str = "You are let in: write to me now.";

/// Longest name of a sender that is kept.
const LONGEST_NAME: usize = 80;

impl Engine {
    pub(super) async fn is_paired(&self, arrival: &InboundContext) -> Result<bool> {
        let sender = sender(arrival);
        Ok(self.db().read(move |tx| pairings::is_paired(tx, &sender)).await?)
    }

    /// Tells a stranger their code, now and then again. Two copies of one letter, or two strangers, may meet at the
    /// database: the one that comes second looks again.
    pub(super) async fn pair(&self, letter: &InboundMessage) -> Result<()> {
        match self.tell_code(letter).await {
            Err(Error::Store(polyclaw_store::Error::Conflict(_))) => self.tell_code(letter).await,
            told => told,
        }
    }

    async fn tell_code(&self, letter: &InboundMessage) -> Result<()> {
        let settings = self.settings();
        let default = settings.reception.router.choose_agent(&letter.context).agent;
        let receipt = receipt(letter, &key_of(&settings.reception, default, &letter.context));
        if self.is_known(&receipt).await? {
            return Ok(());
        }
        let (who, now) = (sender(&letter.context), self.now());
        let wanted = who.clone();
        match self.db().read(move |tx| pairings::find_pending_code(tx, &wanted, now)).await? {
            Some((_, told_at)) if now.since(told_at) < CODE_REPEAT_INTERVAL_MS => Ok(()),
            Some((code, _)) => {
                let text = code.user_message();
                let tell = move |tx: &mut Tx<'_>| {
                    pairings::mark_code_sent(tx, &who, now).map(|()| Some(Done::said(&*text)))
                };
                self.settle_with(&receipt, tell).await.map(drop)
            }
            None => {
                let pairing = self.pairing(letter, now);
                let asked = event(EventKind::PairingRequested, about(&pairing.sender));
                let text = pairing.code.user_message();
                let begin = move |tx: &mut Tx<'_>| {
                    let has_room = pairings::insert_pending(tx, &pairing, now)?;
                    if has_room {
                        events::record(tx, &asked, now)?;
                    }
                    Ok(has_room.then(|| Done::said(&*text)))
                };
                match self.settle_with(&receipt, begin).await? {
                    Some(_) => Ok(()),
                    None => self.too_many(letter).await,
                }
            }
        }
    }

    /// Strangers beyond the last place are told nothing: that is what a code is limited for.
    async fn too_many(&self, letter: &InboundMessage) -> Result<()> {
        tracing::warn!(
            channel = letter.context.channel,
            account = letter.context.account,
            "too many strangers wait for a code"
        );
        if self.refused.is_news(&letter.context, "pairing", self.now()) {
            self.record(event(EventKind::PairingRefused, about(&sender(&letter.context)))).await;
        }
        Ok(())
    }

    fn pairing(&self, letter: &InboundMessage, now: Millis) -> Pairing {
        let plain = |name: &String| {
            let name = name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect::<String>();
            self.redactor().redact_text(&name).into_owned()
        };
        Pairing {
            sender: sender(&letter.context),
            name: letter.sender_name.as_ref().map(plain),
            code: PairingCode::from_nonce(&self.nonce()),
            is_approved: false,
            address: letter.address.clone(),
            created_at: now,
            expires_at: now.plus(CODE_EXPIRY_MS),
        }
    }

    /// Those who wait, then those who were let in.
    pub async fn pairings(&self) -> Result<Vec<Pairing>> {
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
            events::record(tx, &event(EventKind::PairingApproved, about(&pairing.sender)), now)?;
            engine.welcome(&pairing, &id, now).iter().try_for_each(|parcel| outbox::push(tx, parcel))?;
            Ok(Some(pairing))
        };
        let approved = self.db().write(write).await?.ok_or_else(unknown)?;
        self.outbox_wake.notify_one();
        Ok(approved)
    }

    fn welcome(&self, pairing: &Pairing, id: &str, now: Millis) -> Vec<outbox::OutboxMessage> {
        let agent = &self.settings().default_agent;
        let session = polyclaw_domain::session_key::SessionKey::main(agent);
        let turn = TurnId::new(id);
        let label = Label { session: &session, turn: &turn, key: id, first: 0, now };
        let outgoing =
            apply_gate(Some(pairing.address.clone()), DeliveryPolicy::ALLOW_ALL, WELCOME.to_owned());
        outgoing.map(|outgoing| parcels(self, outgoing, &label)).unwrap_or_default()
    }

    /// Takes somebody's access or code away, and the errands that were made for them.
    pub async fn revoke_pairing(&self, sender: PairingSender) -> Result<()> {
        let (revoked, now) = (event(EventKind::PairingRevoked, about(&sender)), self.now());
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
        self.time_wake.notify_one();
        if found { Ok(()) } else { Err(unknown) }
    }
}

fn sender(arrival: &InboundContext) -> PairingSender {
    PairingSender {
        channel: arrival.channel.clone(),
        account: arrival.account.clone(),
        id: arrival.sender.clone(),
    }
}

fn about(sender: &PairingSender) -> Value {
    json!({ "channel": sender.channel, "account": sender.account, "sender": sender.id })
}

/// Whom something was refused, so that who goes on writing does not fill the record.
#[derive(Default)]
pub(crate) struct Refused(Mutex<HashMap<String, Millis>>);

impl Refused {
    const AGAIN_MS: i64 = 60 * 60 * 1000;
    const MOST: usize = 1_000;

    /// Whether this was not refused to them for a while.
    pub fn is_news(&self, arrival: &InboundContext, why: &str, now: Millis) -> bool {
        let InboundContext { channel, account, sender, peer, .. } = arrival;
        let key = format!("{channel}\0{account}\0{sender}\0{}\0{why}", peer.id);
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.get(&key).is_some_and(|last| now.since(*last) < Self::AGAIN_MS) {
            return false;
        }
        if seen.len() >= Self::MOST {
            seen.clear();
        }
        seen.insert(key, now);
        true
    }
}
