//! What a letter comes to that is no message: a command's answer, a code, a refusal. Its platform's id is remembered
//! together with what is sent back, so that the same letter comes to nothing a second time.

use polyclaw_domain::channel::Address;
use polyclaw_domain::delivery::{Policy, gate};
use polyclaw_domain::fault::KillPoint;
use polyclaw_domain::id::{MessageId, TurnId};
use polyclaw_domain::key::SessionKey;
use polyclaw_store::{Tx, ingress, outbox};

use crate::core::Engine;
use crate::delivery::{Label, parcels};
use crate::error::Result;
use crate::ingress::{Inbound, MAX_KEY_BYTES};

/// Which letter, and where its answer goes.
#[derive(Clone, Debug)]
pub(crate) struct Receipt {
    /// The conversation in whose order the answer leaves.
    pub session: SessionKey,
    pub address: Address,
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
        Ok(self.db().read(move |tx| ingress::find(tx, &address, &id)).await?.is_some())
    }

    /// Answers a letter for good.
    pub(crate) async fn settle(&self, receipt: &Receipt, text: &str) -> Result<()> {
        self.settle_with(receipt, text, |_| Ok(true)).await.map(drop)
    }

    /// The same, together with what is stored beside it. `false`: `beside` said no, and nothing stands. Another
    /// copy of the letter that was first is what this one comes to.
    pub(crate) async fn settle_with<F>(&self, receipt: &Receipt, text: &str, beside: F) -> Result<bool>
    where
        F: Fn(&mut Tx<'_>) -> polyclaw_store::Result<bool> + Send + 'static,
    {
        let (id, now) = (self.next_id(), self.now());
        let turn = TurnId::new(id.clone());
        let key = format!("answer-{id}");
        let label = Label { session: &receipt.session, turn: &turn, key: &key, first: 0, now };
        let policy = Policy { wanted: receipt.deliver, ..Policy::OPEN };
        let text = self.redactor().text(text).into_owned();
        let outgoing = gate(Some(receipt.address.clone()), policy, text).ok();
        let outgoing = outgoing.filter(|outgoing| !outgoing.address().is_pulled());
        let sent = outgoing.map(|outgoing| parcels(self, outgoing, &label)).unwrap_or_default();
        let (address, platform_id) = (receipt.address.clone(), receipt.id().map(str::to_owned));
        let write = move |tx: &mut Tx<'_>| {
            if !beside(tx)? {
                return Ok(false);
            }
            if let Some(platform_id) = &platform_id {
                ingress::remember(tx, &address, platform_id, &MessageId::new(id.clone()), now)?;
            }
            sent.iter().try_for_each(|parcel| outbox::push(tx, parcel))?;
            Ok(true)
        };
        self.reach(KillPoint::ReceiptBefore).await;
        let stored = match self.db().write(write).await {
            Err(polyclaw_store::Error::Conflict(_)) if self.is_known(receipt).await? => return Ok(true),
            stored => stored?,
        };
        self.reach(KillPoint::ReceiptCommitted).await;
        self.outbox_wake.notify_one();
        Ok(stored)
    }
}
