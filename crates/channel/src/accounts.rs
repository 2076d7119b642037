//! All accounts of one platform. Routes each call to the account that it names.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, ready};

use polyclaw_domain::admission::AccountAccess;
use polyclaw_domain::channel::{
    AttachmentRef, ChannelAdapter, ChannelCapabilities, ChatAddress, ConnectionState, InboundSink, MenuItem,
    SendOutcome, WebhookRequest, WebhookResponse,
};
use polyclaw_domain::delivery::OutgoingMessage;
use polyclaw_domain::message::MessageAttachment;
use polyclaw_domain::port::BoxFuture;

use crate::attachment::{self, AttachmentContent};
use crate::{Error, webhook_request};

/// One account of a platform. Default methods stand for features that the platform does not support.
pub trait PlatformAccount: Send + Sync + Sized {
    /// The channel's name in addresses.
    const CHANNEL: &'static str;
    const CAPABILITIES: ChannelCapabilities;
    /// How long the platform recognises a repeated idempotency key. `None`: forever.
    const IDEMPOTENCY_WINDOW_MS: Option<i64> = None;
    /// Completes the error "<channel> account '<name>' …" when there is no such account.
    const NOT_FOUND_REASON: &'static str = "is not configured or not enabled";

    fn capabilities(&self) -> ChannelCapabilities {
        Self::CAPABILITIES
    }

    fn connection_state(&self) -> ConnectionState {
        ConnectionState::WebhookOnly
    }

    fn send(&self, key: &str, outgoing: &OutgoingMessage) -> impl Future<Output = SendOutcome> + Send;

    fn edit(
        &self,
        _platform_id: &str,
        _outgoing: &OutgoingMessage,
    ) -> impl Future<Output = SendOutcome> + Send {
        ready(SendOutcome::Rejected { reason: "this channel does not support editing messages".to_owned() })
    }

    fn send_typing(&self, _address: &ChatAddress) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Downloads the content of an attachment that a model can use: text or an image.
    fn fetch_attachment(
        &self,
        _attached: &AttachmentRef,
    ) -> impl Future<Output = Option<AttachmentContent>> + Send {
        ready(None)
    }

    fn set_command_menu(&self, _items: &[MenuItem]) -> impl Future<Output = Result<(), String>> + Send {
        ready(Ok(()))
    }

    /// Whether the account receives over a connection of its own rather than by webhook.
    fn has_receive_loop(&self) -> bool {
        false
    }

    /// Receives messages until the future is dropped.
    fn receive_messages(&self, _inbox: &dyn InboundSink) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Answers a webhook request of the platform to this account. Messages in it may belong to another account of
    /// `all`.
    fn handle_webhook(
        &self,
        _call: &WebhookRequest,
        _inbox: &dyn InboundSink,
        _all: &BTreeMap<String, Self>,
    ) -> impl Future<Output = WebhookResponse> + Send {
        ready(webhook_request::text_response(404, ""))
    }
}

pub struct PlatformAccounts<A> {
    table: BTreeMap<String, A>,
}

impl<A> PlatformAccounts<A> {
    /// Opens the accounts that are enabled in the config.
    pub(crate) fn from_enabled<S>(
        settings: &BTreeMap<String, S>,
        access: impl Fn(&S) -> &AccountAccess,
        open: impl Fn(&str, &S) -> Result<A, Error>,
    ) -> Result<Self, Error> {
        let enabled = settings.iter().filter(|(_, settings)| access(settings).enabled);
        enabled.map(|(name, settings)| Ok((name.clone(), open(name, settings)?))).collect()
    }
}

impl<A: PlatformAccount> PlatformAccounts<A> {
    fn get(&self, account: &str) -> Result<&A, String> {
        self.table
            .get(account)
            .ok_or_else(|| format!("{} account '{account}' {}", A::CHANNEL, A::NOT_FOUND_REASON))
    }

    fn find_sender(&self, outgoing: &OutgoingMessage) -> Result<&A, SendOutcome> {
        self.get(&outgoing.address().account).map_err(|reason| SendOutcome::Rejected { reason })
    }
}

impl<A: PlatformAccount> ChannelAdapter for PlatformAccounts<A> {
    fn capabilities(&self, account: &str) -> ChannelCapabilities {
        self.table.get(account).map_or(A::CAPABILITIES, A::capabilities)
    }

    fn connection_state(&self, account: &str) -> Option<ConnectionState> {
        self.table.get(account).map(A::connection_state)
    }

    fn idempotency_window_ms(&self, _: &str) -> Option<i64> {
        A::IDEMPOTENCY_WINDOW_MS
    }

    fn send<'a>(&'a self, key: &'a str, outgoing: &'a OutgoingMessage) -> BoxFuture<'a, SendOutcome> {
        Box::pin(async move {
            match self.find_sender(outgoing) {
                Ok(account) => account.send(key, outgoing).await,
                Err(rejected) => rejected,
            }
        })
    }

    fn edit_message<'a>(
        &'a self,
        platform_id: &'a str,
        outgoing: &'a OutgoingMessage,
    ) -> BoxFuture<'a, SendOutcome> {
        Box::pin(async move {
            match self.find_sender(outgoing) {
                Ok(account) => account.edit(platform_id, outgoing).await,
                Err(rejected) => rejected,
            }
        })
    }

    fn send_typing<'a>(&'a self, address: &'a ChatAddress) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Ok(account) = self.get(&address.account) {
                account.send_typing(address).await;
            }
        })
    }

    fn fetch_attachment<'a>(
        &'a self,
        account: &'a str,
        attached: &'a AttachmentRef,
    ) -> BoxFuture<'a, MessageAttachment> {
        Box::pin(async move {
            let content = match self.table.get(account).filter(|_| attachment::should_fetch(attached)) {
                Some(account) => account.fetch_attachment(attached).await,
                None => None,
            };
            attachment::to_attachment(attached, content)
        })
    }

    fn set_command_menu<'a>(
        &'a self,
        account: &'a str,
        items: &'a [MenuItem],
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { self.get(account)?.set_command_menu(items).await })
    }

    fn connection_accounts(&self) -> Vec<String> {
        self.table
            .iter()
            .filter(|(_, account)| account.has_receive_loop())
            .map(|(name, _)| name.clone())
            .collect()
    }

    fn receive_messages<'a>(&'a self, account: &'a str, inbox: &'a dyn InboundSink) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(account) = self.table.get(account) {
                account.receive_messages(inbox).await;
            }
        })
    }

    fn handle_webhook<'a>(
        &'a self,
        account: &'a str,
        call: WebhookRequest,
        inbox: &'a dyn InboundSink,
    ) -> BoxFuture<'a, WebhookResponse> {
        Box::pin(async move {
            match self.table.get(account) {
                Some(account) => account.handle_webhook(&call, inbox, &self.table).await,
                None => webhook_request::text_response(404, ""),
            }
        })
    }
}

impl<A> FromIterator<(String, A)> for PlatformAccounts<A> {
    fn from_iter<I: IntoIterator<Item = (String, A)>>(accounts: I) -> Self {
        Self { table: accounts.into_iter().collect() }
    }
}

/// Shows account names only, because an account holds secrets.
impl<A> fmt::Debug for PlatformAccounts<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.table.keys()).finish()
    }
}

/// Returns the description of a command for the platform's menu. Falls back to the command itself, because some
/// platforms reject an empty description.
pub(crate) fn menu_description(item: &MenuItem, most: usize) -> String {
    let description = if item.description.is_empty() { &item.command } else { &item.description };
    description.chars().take(most).collect()
}
