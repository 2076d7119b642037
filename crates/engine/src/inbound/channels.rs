//! The channels of an instance while it runs: each receives in a task of its own, and offers its menu.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use polyclaw_domain::channel::{ChannelAdapter, ConnectionState, MenuItem, WebhookRequest, WebhookResponse};
use polyclaw_domain::command;
use polyclaw_store::account_leases::ChannelAccount;
use tokio::task::JoinSet;

use super::account_leases;
use crate::core::Engine;
use crate::error::Result;

const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// A menu that is refused for good, as with a wrong token, is offered in vain this often.
const MAX_MENU_BACKOFF: Duration = Duration::from_secs(600);
/// How long a platform may take to be told a menu.
const MENU_TIMEOUT: Duration = Duration::from_secs(30);

/// Receives by every account this node has until the engine drains: what comes after that is delivered again at the next
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

/// An account that fails takes nothing down with it.
pub(super) async fn run_account(
    engine: Engine,
    (name, account): ChannelAccount,
    channel: Arc<dyn ChannelAdapter>,
) {
    let mut pause = INITIAL_BACKOFF;
    while AssertUnwindSafe(channel.receive_messages(&account, &engine)).catch_unwind().await.is_err() {
        let pause_s = pause.as_secs();
        tracing::error!(channel = name, account, pause_s, "an account failed and is opened again");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_BACKOFF);
    }
}

impl Engine {
    /// Tells every account which commands and agents it offers. One that does not take it, as where its platform is not
    /// reached yet, is told again until it does. It does not return: what it offers holds until agents change.
    async fn offer_menus(&self, mut accounts: Vec<(String, String)>) {
        let mut pause = INITIAL_BACKOFF;
        loop {
            let pending = accounts.clone();
            accounts = self.offer_menus_once(accounts).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "the menus could not be made");
                pending
            });
            if accounts.is_empty() {
                return std::future::pending().await;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_MENU_BACKOFF);
        }
    }

    /// Those that did not take it.
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
                tracing::warn!(channel, account, why, "the menu was not taken; it will be offered again");
                Some((channel, account))
            });
        }
        let mut left = Vec::new();
        while let Some(ended) = notice.join_next().await {
            // An adapter that panicked would do so again.
            left.extend(ended.ok().flatten());
        }
        Ok(left)
    }

    /// How every account that is used stands with its platform: channel, account, standing. `None`: it is new in the
    /// config, and there from the next start on.
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
        let (items, left_out) = command::build_menu(named);
        for id in left_out {
            tracing::warn!(agent.id = %id, "its name in the menu is taken: it is reached by typing /{id} only");
        }
        Ok(items)
    }

    /// A call of a platform to one account. `None`: there is no such channel.
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
