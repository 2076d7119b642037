//! Replies to inbound messages that start no turn: command replies, pairing codes, refusals. The platform's message id
//! is stored in the same transaction as the reply, so a repeated message has no second effect.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::delivery::{DeliveryPolicy, apply_gate};
use polyclaw_domain::id::{MessageId, TurnId};
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::{Tx, ingress, outbox};

use crate::command_action::{ActionOutcome, CommandAction, reply_only};
use crate::core::Engine;
use crate::delivery::{OutboxKey, build_outbox_messages};
use crate::error::Result;
use crate::ingress::{IngressMessage, MAX_KEY_BYTES};
use crate::reply_text;

/// Identifies an inbound message and where its reply goes.
#[derive(Clone, Debug)]
pub(crate) struct InboundReceipt {
    /// The session in whose delivery order the reply is sent.
    pub session: SessionKey,
    pub address: ChatAddress,
    pub platform_id: Option<String>,
    /// Language of the reply.
    pub locale: Locale,
    /// The sender wants the reply delivered there.
    pub deliver: bool,
}

impl InboundReceipt {
    pub fn from_message(inbound: &IngressMessage, locale: Locale) -> Self {
        Self {
            locale,
            session: inbound.session.clone(),
            address: inbound.address.clone(),
            platform_id: inbound.platform_id.clone(),
            deliver: inbound.deliver,
        }
    }

    /// Returns the id if it is short enough to be stored.
    fn id(&self) -> Option<&str> {
        self.platform_id.as_deref().filter(|id| id.len() <= MAX_KEY_BYTES)
    }
}

impl Engine {
    /// Whether the message was accepted before, with any outcome.
    pub(crate) async fn is_already_accepted(&self, receipt: &InboundReceipt) -> Result<bool> {
        let Some(id) = receipt.id().map(str::to_owned) else { return Ok(false) };
        let address = receipt.address.clone();
        Ok(self.db().read(move |tx| ingress::find_duplicate(tx, &address, &id)).await?.is_some())
    }

    /// Replies to a message exactly once.
    pub(crate) async fn reply_once(&self, receipt: &InboundReceipt, text: &str) -> Result<()> {
        self.run_action_once(receipt, reply_only(text)).await.map(drop)
    }

    /// Performs a message's action and replies, in one transaction, so a repeated message finds all of it or nothing.
    /// Returns the reply.
    pub(crate) async fn run_action_once(
        &self,
        receipt: &InboundReceipt,
        action: CommandAction,
    ) -> Result<String> {
        let done = self.commit_once(receipt, move |tx| action(tx).map(Some)).await?;
        let text = done.as_ref().map(|done| done.reply_text(receipt.locale)).unwrap_or_default();
        self.apply_effects(done.map(|done| done.effects).unwrap_or_default());
        Ok(text)
    }

    /// Like `run_action_once`, for an action that may have no outcome; then nothing is stored. If a copy of the message
    /// was first, its outcome is returned.
    pub(crate) async fn commit_once<F>(
        &self,
        receipt: &InboundReceipt,
        act: F,
    ) -> Result<Option<ActionOutcome>>
    where
        F: Fn(&mut Tx<'_>) -> polyclaw_store::Result<Option<ActionOutcome>> + Send + 'static,
    {
        let (engine, own, id, now) = (self.clone(), receipt.clone(), self.next_id(), self.now());
        let write = move |tx: &mut Tx<'_>| {
            let Some(done) = act(tx)? else { return Ok(None) };
            if let Some(platform_id) = own.id() {
                ingress::record_platform_id(tx, &own.address, platform_id, &MessageId::new(id.clone()), now)?;
            }
            let sent = engine.build_reply_messages(&own, &done.reply_text(own.locale), (&id, now));
            sent.iter().try_for_each(|message| outbox::push(tx, message))?;
            Ok(Some(done))
        };
        self.hit_kill_point(KillPoint::ReplyOnceBefore).await;
        let stored = match self.db().write(write).await {
            Err(polyclaw_store::Error::Conflict(_)) if self.is_already_accepted(receipt).await? => {
                return Ok(Some(ActionOutcome::with_reply(reply_text::inbound::already_processed(
                    receipt.locale,
                ))));
            }
            stored => stored?,
        };
        self.hit_kill_point(KillPoint::ReplyOnceCommitted).await;
        self.outbox_wake.notify_one();
        Ok(stored)
    }

    /// Builds the reply's outbox messages, if the sender wants one.
    fn build_reply_messages(
        &self,
        receipt: &InboundReceipt,
        text: &str,
        (id, now): (&str, Millis),
    ) -> Vec<outbox::OutboxMessage> {
        let (turn, key) = (TurnId::new(id), format!("answer-{id}"));
        let label = OutboxKey { session: &receipt.session, turn: &turn, key: &key, first: 0, now };
        let policy = DeliveryPolicy { requested: receipt.deliver, ..DeliveryPolicy::ALLOW_ALL };
        let text = self.redactor().redact_text(text).into_owned();
        let outgoing = apply_gate(Some(receipt.address.clone()), policy, text).ok();
        let outgoing = outgoing.filter(|outgoing| !outgoing.address().is_pull_channel());
        outgoing.map(|outgoing| build_outbox_messages(self, outgoing, &label)).unwrap_or_default()
    }
}
