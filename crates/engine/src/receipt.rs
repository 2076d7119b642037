//! What a letter comes to that is no message: a command's answer, a code, a refusal. Its platform's id is remembered
//! together with what is sent back, so that the same letter comes to nothing a second time.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::delivery::{DeliveryPolicy, apply_gate};
use polyclaw_domain::id::{MessageId, TurnId};
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::{Tx, ingress, outbox};

use crate::core::Engine;
use crate::deed::{Deed, Done, say};
use crate::delivery::{Label, parcels};
use crate::error::Result;
use crate::ingress::{Inbound, MAX_KEY_BYTES};

/// What is said to a letter that comes again.
pub(crate) const TAKEN: &str = "This was taken before.";

/// Which letter, and where its answer goes.
#[derive(Clone, Debug)]
pub(crate) struct Receipt {
    /// The conversation in whose order the answer leaves.
    pub session: SessionKey,
    pub address: ChatAddress,
    pub platform_id: Option<String>,
    /// Whoever wrote wants to be answered there.
    pub deliver: bool,
}

impl Receipt {
    pub fn of(inbound: &Inbound) -> Self {
        Self {
            session: inbound.session.clone(),
            address: inbound.address.clone(),
            platform_id: inbound.platform_id.clone(),
            deliver: inbound.deliver,
        }
    }

    /// The id, if it is one that can be stored.
    fn id(&self) -> Option<&str> {
        self.platform_id.as_deref().filter(|id| id.len() <= MAX_KEY_BYTES)
    }
}

impl Engine {
    /// The letter was taken before, whatever it came to.
    pub(crate) async fn is_known(&self, receipt: &Receipt) -> Result<bool> {
        let Some(id) = receipt.id().map(str::to_owned) else { return Ok(false) };
        let address = receipt.address.clone();
        Ok(self.db().read(move |tx| ingress::find_duplicate(tx, &address, &id)).await?.is_some())
    }

    /// Answers a letter for good.
    pub(crate) async fn settle(&self, receipt: &Receipt, text: &str) -> Result<()> {
        self.settle_by(receipt, say(text)).await.map(drop)
    }

    /// Does what a letter asks for and answers it, in one transaction: the same letter finds all of it or nothing.
    /// Returns what was said.
    pub(crate) async fn settle_by(&self, receipt: &Receipt, deed: Deed) -> Result<String> {
        let done = self.settle_with(receipt, move |tx| deed(tx).map(Some)).await?;
        let said = done.as_ref().map(Done::sentence).unwrap_or_default();
        self.follow(done.map(|done| done.after).unwrap_or_default());
        Ok(said)
    }

    /// The same for what may come to nothing: then nothing stands. Another copy of the letter that was first is what
    /// this one comes to.
    pub(crate) async fn settle_with<F>(&self, receipt: &Receipt, act: F) -> Result<Option<Done>>
    where
        F: Fn(&mut Tx<'_>) -> polyclaw_store::Result<Option<Done>> + Send + 'static,
    {
        let (engine, own, id, now) = (self.clone(), receipt.clone(), self.next_id(), self.now());
        let write = move |tx: &mut Tx<'_>| {
            let Some(done) = act(tx)? else { return Ok(None) };
            if let Some(platform_id) = own.id() {
                ingress::record_platform_id(tx, &own.address, platform_id, &MessageId::new(id.clone()), now)?;
            }
            let sent = engine.reply(&own, &done.sentence(), (&id, now));
            sent.iter().try_for_each(|parcel| outbox::push(tx, parcel))?;
            Ok(Some(done))
        };
        self.reach(KillPoint::ReplyOnceBefore).await;
        let stored = match self.db().write(write).await {
            Err(polyclaw_store::Error::Conflict(_)) if self.is_known(receipt).await? => {
                return Ok(Some(Done::said(TAKEN)));
            }
            stored => stored?,
        };
        self.reach(KillPoint::ReplyOnceCommitted).await;
        self.outbox_wake.notify_one();
        Ok(stored)
    }

    /// What is sent back, if anybody waits for it.
    fn reply(&self, receipt: &Receipt, text: &str, (id, now): (&str, Millis)) -> Vec<outbox::OutboxMessage> {
        let (turn, key) = (TurnId::new(id), format!("answer-{id}"));
        let label = Label { session: &receipt.session, turn: &turn, key: &key, first: 0, now };
        let policy = DeliveryPolicy { requested: receipt.deliver, ..DeliveryPolicy::ALLOW_ALL };
        let text = self.redactor().redact_text(text).into_owned();
        let outgoing = apply_gate(Some(receipt.address.clone()), policy, text).ok();
        let outgoing = outgoing.filter(|outgoing| !outgoing.address().is_pull_channel());
        outgoing.map(|outgoing| parcels(self, outgoing, &label)).unwrap_or_default()
    }
}
