//! Inbound: turns a message from a channel into a message for one agent, a broadcast, a command, or nothing.
//!
//! The order is fixed: admission, commands, broadcast, an agent named as prefix, the agent the conversation was
//! switched to, bindings, the classifier, the default agent. Attachments are fetched only then. A message is handled
//! once, whatever the result. The platform is asked to deliver it again only if the store fails, the engine drains, or
//! another copy is being processed.

mod account_leases;
mod attachments;
mod broadcast;
mod channels;
mod classifier;
mod command_targets;
mod commands;
mod direct;
mod explain;
mod in_flight;
mod language;
mod pairing;
mod reachable_agents;
mod route;
mod rules;

use polyclaw_domain::admission::{IgnoreReason, SenderAdmission, SenderFacts};
use polyclaw_domain::author::MessageAuthor;
use polyclaw_domain::channel::{ChatAddress, InboundMessage, InboundSink, IngestOutcome};
use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::inbound::PeerKind;
use polyclaw_domain::job::JobPriority;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::port::BoxFuture;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{Tx, sessions};
use serde_json::{Value, json};

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::ingress::{IngressMessage, MAX_KEY_BYTES};
use crate::reply_once::InboundReceipt;
use crate::reply_text;
use route::{RouteDecision, RouteTarget, session_key_for};

pub(crate) use account_leases::AccountLeases;
pub(crate) use broadcast::{broadcast_position_of, run_broadcast_loop};
pub(crate) use channels::run_channels;
pub(crate) use classifier::ClassifierCache;
pub use explain::{AnsweringAgent, HookRoute, InboundExplanation};
pub(crate) use in_flight::InFlightMessages;
pub(crate) use pairing::RefusalThrottle;
pub(crate) use reachable_agents::ReachableAgents;
pub use route::RouteLayer;
pub use rules::InboundRules;

/// Maximum number of recent sessions whose addresses an adapter gets.
const MAX_CORRESPONDENTS: usize = 200;

/// Maximum length of an agent id.
const MAX_AGENT_ID_LEN: usize = 64;

impl InboundSink for Engine {
    fn ingest_message(&self, message: InboundMessage) -> BoxFuture<'_, IngestOutcome> {
        Box::pin(async move {
            match message.attachments.is_empty() {
                true => self.accept_from_channel(message).await,
                false => self.accept_with_attachments(message).await,
            }
        })
    }

    fn recent_dm_addresses<'a>(
        &'a self,
        channel: &'a str,
        account: &'a str,
    ) -> BoxFuture<'a, Vec<ChatAddress>> {
        let (named, own) = (channel.to_owned(), account.to_owned());
        Box::pin(async move {
            let read = move |tx: &mut Tx<'_>| sessions::list_by_account(tx, &named, &own, MAX_CORRESPONDENTS);
            let found = self.db().read(read).await;
            let found = found.inspect_err(|error| tracing::warn!(%error, "could not load recent senders"));
            let private = found.unwrap_or_default().into_iter().filter(|session| session.key.is_private());
            private.filter_map(|session| session.address).collect()
        })
    }
}

impl Engine {
    async fn accept_from_channel(&self, message: InboundMessage) -> IngestOutcome {
        let (channel, account) = (message.context.channel.clone(), message.context.account.clone());
        match self.process_inbound(message).await {
            Ok(()) => IngestOutcome::Done,
            Err(error) if !is_retryable(&error) => {
                // Redelivering it forever would block all later messages.
                tracing::error!(channel, account, %error, "inbound message cannot be processed; dropping it");
                IngestOutcome::Done
            }
            Err(error) => {
                tracing::warn!(channel, account, %error, "could not store inbound message; waiting for redelivery");
                IngestOutcome::Retry { reason: error.to_string() }
            }
        }
    }

    /// Keeps running if the platform drops the request. Otherwise a platform whose timeout is shorter than the download
    /// could never deliver the message.
    async fn accept_with_attachments(&self, message: InboundMessage) -> IngestOutcome {
        let later = |reason: &str| IngestOutcome::Retry { reason: reason.to_owned() };
        let Some(entered) = self.in_flight_messages.try_enter(&message) else {
            return later("another copy of it is just being taken");
        };
        let engine = self.clone();
        let taken = tokio::spawn(async move {
            let _entered = entered;
            engine.accept_from_channel(message).await
        });
        taken.await.unwrap_or_else(|_| later("taking it broke off"))
    }

    /// Returns an error only if a later delivery could succeed.
    async fn process_inbound(&self, message: InboundMessage) -> Result<()> {
        if self.is_draining() {
            return Err(Error::Draining);
        }
        if !self.is_storable(&message) {
            tracing::warn!(
                channel = message.context.channel,
                "inbound message dropped: its ids are too long to store"
            );
            return Ok(());
        }
        let admission = self.admit_sender(&message).await?;
        let arrival = &message.context;
        tracing::debug!(
            channel = arrival.channel,
            account = arrival.account,
            peer.kind = arrival.peer.kind.as_str(),
            admission = ?admission,
            "inbound message received"
        );
        match admission {
            SenderAdmission::Ignored(reason) => self.record_ignored(&message, reason).await,
            SenderAdmission::Pair => self.pair_sender(&message).await,
            SenderAdmission::Admitted => self.handle_admitted(message).await,
        }
    }

    /// Whether the message's ids fit into a session key with any agent id in front.
    fn is_storable(&self, message: &InboundMessage) -> bool {
        let settings = self.settings();
        let key = session_key_for(&settings.inbound, &AgentId::main(), &message.context);
        let names = [&message.context.sender, &message.platform_id, &message.address.peer];
        key.as_str().len() + MAX_AGENT_ID_LEN <= MAX_KEY_BYTES
            && names.iter().all(|name| name.len() <= MAX_KEY_BYTES)
    }

    /// Decides whether the sender is admitted. Pairings are looked up only if needed.
    async fn admit_sender(&self, message: &InboundMessage) -> Result<SenderAdmission> {
        let settings = self.settings();
        let Some(access) = settings.inbound.account_access(&message.context) else {
            return Ok(SenderAdmission::Ignored(IgnoreReason::UnknownAccount));
        };
        let known = SenderFacts { paired: false, mentioned: message.mentioned };
        match access.admit_sender(&message.context, known) {
            SenderAdmission::Pair if self.is_paired(&message.context).await? => Ok(SenderAdmission::Admitted),
            admission => Ok(admission),
        }
    }

    /// Records an ignored message as an event, at most once in a while per sender. Nothing else is stored or answered.
    async fn record_ignored(&self, message: &InboundMessage, reason: IgnoreReason) -> Result<()> {
        let arrival = &message.context;
        if reason != IgnoreReason::NotMentioned
            && self.refusal_throttle.should_record(arrival, reason.as_str(), self.now())
        {
            let data = json!({ "channel": arrival.channel, "account": arrival.account, "reason": reason.as_str(),
                "peer": arrival.peer.id, "sender": arrival.sender });
            self.record_event(sessionless_event(EventKind::MessageIgnored, data)).await;
        }
        Ok(())
    }

    async fn handle_admitted(&self, message: InboundMessage) -> Result<()> {
        let place = self.match_bindings(&message.context).await?;
        let locale = self.reply_locale(&message, &place).await?;
        let receipt = receipt_for(&message, &place.key, locale);
        if self.is_already_accepted(&receipt).await? {
            return Ok(());
        }
        if let Some(action) = self.inbound_command_action(&message, &place).await? {
            return self.run_action_once(&receipt, action).await.map(drop);
        }
        match self.route_message(&message, place).await? {
            RouteDecision::Usage(usage) => self.reply_once(&receipt, &usage.text(locale)).await,
            RouteDecision::One { target, text, .. } => {
                let parts = self.fetch_attachments(&message).await;
                let is_shared = self.settings().inbound.is_shared_session(&target.session);
                let mut inbound =
                    IngressMessage { parts, ..self.build_ingress_message(&message, target, text) };
                if let Some(meta) = inbound.meta.as_mut().filter(|_| is_shared) {
                    MessageAuthor::mark_shared(meta);
                }
                self.accept_or_reply(inbound, &receipt).await
            }
            RouteDecision::Several(targets) => self.accept_broadcast(&message, targets, &receipt).await,
        }
    }

    fn build_ingress_message(
        &self,
        message: &InboundMessage,
        target: RouteTarget,
        text: String,
    ) -> IngressMessage {
        let priority = match message.context.peer.kind {
            PeerKind::Dm => JobPriority::Direct,
            PeerKind::Group | PeerKind::Channel => JobPriority::Group,
        };
        let mut meta = Some(MessageAuthor::sender_meta(message));
        self.settings().inbound.sender_authority(&message.context).write_to_meta(&mut meta);
        IngressMessage {
            platform_id: Some(message.platform_id.clone()),
            priority,
            meta,
            by: target.by,
            ..IngressMessage::from_person(target.session, target.agent, message.address.clone(), text)
        }
    }

    /// Submits a message to its session, or replies with the refusal.
    async fn accept_or_reply(&self, inbound: IngressMessage, receipt: &InboundReceipt) -> Result<()> {
        let address = inbound.address.clone();
        match self.accept_message(inbound).await {
            Ok(accepted) if accepted.duplicate => Ok(()),
            Ok(_) => {
                self.show_typing(address);
                Ok(())
            }
            Err(error) => self.reply_refusal(error, receipt).await,
        }
    }

    /// Replies to the sender with the reason of a refusal. Returns retryable errors to the caller instead.
    async fn reply_refusal(&self, error: Error, receipt: &InboundReceipt) -> Result<()> {
        if is_retryable(&error) {
            return Err(error);
        }
        tracing::warn!(code = error.code(), session.key = %receipt.session, "inbound message refused");
        match error {
            // It was accepted before, or its own ids must not be written down.
            Error::Deleted | Error::SecretInKey => Ok(()),
            Error::Store(_) => {
                self.reply_once(receipt, &reply_text::inbound::internal_error(receipt.locale)).await
            }
            error => {
                self.reply_once(receipt, &reply_text::inbound::not_accepted(receipt.locale, &error)).await
            }
        }
    }

    /// Shows a typing indicator in the background, if the platform has one.
    pub(crate) fn show_typing(&self, address: ChatAddress) {
        let Some(channel) = self.ports.channels.get(&address.channel).cloned() else { return };
        tokio::spawn(async move {
            let _ =
                tokio::time::timeout(std::time::Duration::from_secs(5), channel.send_typing(&address)).await;
        });
    }
}

/// Whether a later delivery may succeed, because the store works again or the process is not draining.
fn is_retryable(error: &Error) -> bool {
    match error {
        Error::Draining => true,
        Error::Store(polyclaw_store::Error::Unreadable(_)) => false,
        Error::Store(_) => true,
        _ => false,
    }
}

fn receipt_for(message: &InboundMessage, session: &SessionKey, locale: Locale) -> InboundReceipt {
    InboundReceipt {
        locale,
        session: session.clone(),
        address: message.address.clone(),
        platform_id: Some(message.platform_id.clone()),
        deliver: true,
    }
}

/// An event without a session.
fn sessionless_event(kind: EventKind, data: Value) -> NewEvent {
    NewEvent { kind, session: None, turn: None, agent: None, trace: None, data }
}
