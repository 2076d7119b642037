//! The channels of a running instance: each account receives in its own task and publishes its command menu.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use polyclaw_domain::backoff::BackoffPolicy;
use polyclaw_domain::channel::{ChannelAdapter, ConnectionState, MenuItem, WebhookRequest, WebhookResponse};
use polyclaw_domain::command;
use polyclaw_store::account_leases::ChannelAccount;
use tokio::task::JoinSet;

use super::account_leases;
use crate::core::Engine;
use crate::error::Result;

const RESTART_BACKOFF: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(1), Duration::from_secs(60));
/// A menu may keep failing until a person acts, for example because of a wrong token.
const MENU_BACKOFF: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(1), Duration::from_secs(600));
/// Timeout of publishing a menu.
const MENU_TIMEOUT: Duration = Duration::from_secs(30);

/// Receives from all accounts this node holds until the engine drains. Later messages are delivered again at the next
/// start.
pub(crate) async fn run_channels(engine: &Engine) -> Result<()> {
    let ((), ()) = tokio::join!(account_leases::run_accounts(engine), run_menu_loop(engine));
    Ok(())
}

async fn run_menu_loop(engine: &Engine) {
    while !engine.is_draining() {
        let mut accounts = engine.settings().inbound.enabled_accounts();
        accounts.retain(|account| engine.has_account(account));
        tokio::select! {
            () = engine.offer_menus(accounts) => {}
            () = engine.agents_changed.notified() => {}
            () = engine.account_leases.wait_for_change() => {}
            () = engine.wait_for_drain() => {}
        }
    }
}

/// Runs one account and restarts it after a panic; other accounts are not affected.
pub(super) async fn run_account(
    engine: Engine,
    (name, account): ChannelAccount,
    channel: Arc<dyn ChannelAdapter>,
) {
    let mut backoff = RESTART_BACKOFF.start((name.as_str(), account.as_str()));
    while AssertUnwindSafe(channel.receive_messages(&account, &engine)).catch_unwind().await.is_err() {
        let pause = backoff.next_delay();
        tracing::error!(channel = name, account, ?pause, "channel account panicked; reopening it");
        tokio::time::sleep(pause).await;
    }
}

impl Engine {
    /// Publishes the commands and agents to every account, and retries accounts that fail. Never returns: the menu
    /// stays valid until the caller drops this future because something changed.
    async fn offer_menus(&self, mut accounts: Vec<(String, String)>) {
        let mut backoff = MENU_BACKOFF.start(self.node_name.as_str());
        loop {
            let pending = accounts.clone();
            accounts = self.offer_menus_once(accounts).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "could not build the command menus; retrying");
                pending
            });
            if accounts.is_empty() {
                return std::future::pending().await;
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Publishes the menus once and returns the accounts that failed.
    async fn offer_menus_once(&self, accounts: Vec<(String, String)>) -> Result<Vec<(String, String)>> {
        let items = Arc::new(self.build_menu().await?);
        let mut notice = JoinSet::new();
        for (channel, account) in accounts {
            let Some(port) = self.ports.channels.get(&channel).cloned() else { continue };
            let items = Arc::clone(&items);
            notice.spawn(async move {
                let answer =
                    tokio::time::timeout(MENU_TIMEOUT, port.set_command_menu(&account, &items)).await;
                let why = match answer.unwrap_or_else(|_| Err("it took too long".to_owned())) {
                    Ok(()) => return None,
                    Err(why) => why,
                };
                tracing::warn!(channel, account, why, "platform refused the command menu; retrying later");
                Some((channel, account))
            });
        }
        let mut left = Vec::new();
        while let Some(ended) = notice.join_next().await {
            // An adapter that panicked would panic again.
            left.extend(ended.ok().flatten());
        }
        Ok(left)
    }

    /// Connection state of every enabled account: channel, account, state. `None`: the account is new in the config and
    /// is opened at the next start.
    pub fn list_connection_states(&self) -> Vec<(String, String, Option<ConnectionState>)> {
        let mut accounts = self.settings().inbound.enabled_accounts();
        accounts.sort();
        let status_of = |(channel, account): (String, String)| {
            let port = self.ports.channels.get(&channel);
            let state = port.and_then(|port| port.connection_state(&account));
            let place = (channel, account);
            let state = state.map(|state| self.connection_state_here(&place, state));
            (place.0, place.1, state)
        };
        accounts.into_iter().map(status_of).collect()
    }

    async fn build_menu(&self) -> Result<Vec<MenuItem>> {
        let agents = self.list_agents().await?;
        let named = agents.iter().map(|stored| (&stored.spec.agent_id, stored.spec.description.as_str()));
        let locale = self.settings().language.locale().unwrap_or_default();
        let (items, left_out) = command::build_menu(named, locale);
        for id in left_out {
            tracing::warn!(agent.id = %id, "menu name is taken; the agent is reachable only by typing /{id}");
        }
        Ok(items)
    }

    /// Handles a platform's call to one account. `None`: there is no such channel.
    pub async fn handle_webhook_call(
        &self,
        channel: &str,
        account: &str,
        call: WebhookRequest,
    ) -> Option<WebhookResponse> {
        let port = self.ports.channels.get(channel)?;
        Some(port.handle_webhook(account, call, self).await)
    }
}
