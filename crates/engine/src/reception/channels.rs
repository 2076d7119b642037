//! The channels of an instance while it runs: each receives in a task of its own, and offers its menu.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use polyclaw_domain::channel::{Call, CallAnswer, Channel, MenuItem};
use polyclaw_domain::command;
use tokio::task::JoinSet;

use crate::core::Engine;
use crate::error::Result;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long a platform may take to be told a menu.
const MENU: Duration = Duration::from_secs(30);

/// Receives by every channel until the engine drains: what comes after that is delivered again at the next start.
pub(crate) async fn receive(engine: &Engine) -> Result<()> {
    let mut tasks = JoinSet::new();
    for (name, channel) in &engine.ports.channels {
        tasks.spawn(open(engine.clone(), name.clone(), Arc::clone(channel)));
    }
    while !engine.is_draining() {
        engine.offer_menus().await;
        tokio::select! {
            () = engine.agents_changed.notified() => {}
            () = engine.drained() => {}
        }
    }
    Ok(())
}

/// A channel that fails takes nothing down with it. One that has nothing to receive returns at once.
async fn open(engine: Engine, name: String, channel: Arc<dyn Channel>) {
    let mut pause = FIRST_PAUSE;
    while AssertUnwindSafe(channel.receive(&engine)).catch_unwind().await.is_err() {
        tracing::error!(channel = name, pause_s = pause.as_secs(), "a channel failed and is opened again");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

impl Engine {
    /// Tells every account which commands and agents it offers.
    async fn offer_menus(&self) {
        let items = match self.menu().await {
            Ok(items) => Arc::new(items),
            Err(error) => return tracing::warn!(%error, "the menus could not be made"),
        };
        let mut told = JoinSet::new();
        for (channel, account) in self.settings().reception.accounts() {
            let Some(port) = self.ports.channels.get(&channel).cloned() else { continue };
            let items = Arc::clone(&items);
            told.spawn(async move {
                match tokio::time::timeout(MENU, port.menu(&account, &items)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(why)) => tracing::warn!(channel, account, why, "the menu was not taken"),
                    Err(_) => tracing::warn!(channel, account, "the menu took too long"),
                }
            });
        }
        tokio::select! {
            () = async { while told.join_next().await.is_some() {} } => {}
            () = self.drained() => {}
        }
    }

    async fn menu(&self) -> Result<Vec<MenuItem>> {
        let agents = self.agents().await?;
        let named = agents.iter().map(|stored| (&stored.spec.agent_id, stored.spec.description.as_str()));
        let (items, left_out) = command::menu(named);
        for id in left_out {
            tracing::warn!(agent.id = %id, "its name in the menu is taken: it is reached by typing /{id} only");
        }
        Ok(items)
    }

    /// A call of a platform to one account. `None`: there is no such channel.
    pub async fn called(&self, channel: &str, account: &str, call: Call) -> Option<CallAnswer> {
        let port = self.ports.channels.get(channel)?;
        Some(port.called(account, call, self).await)
    }
}
