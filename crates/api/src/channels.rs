//! Accounts of chat platforms and their connection state.

use polyclaw_domain::channel::ConnectionState;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ChannelAccountList {
    /// All accounts of chat platforms.
    pub channels: Vec<ChannelAccountView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ChannelAccountView {
    /// The channel, such as `telegram`.
    pub channel: String,
    /// The account name in the config.
    pub account: String,
    /// `connected`, `connecting`, `disconnected`, `webhook_only` (the platform calls Polyclaw), `on_other_node`
    /// (another node serves the account) or `restart_needed` (new in the config, used after a restart).
    pub state: String,
    /// Why the account is disconnected.
    pub reason: Option<String>,
    /// The node that serves the account, if it is another one.
    pub node: Option<String>,
}

impl From<(String, String, Option<ConnectionState>)> for ChannelAccountView {
    fn from((channel, account, connection_state): (String, String, Option<ConnectionState>)) -> Self {
        let (state, why, node) = match connection_state {
            Some(ConnectionState::Connecting) => ("connecting", None, None),
            Some(ConnectionState::Connected) => ("connected", None, None),
            Some(ConnectionState::Disconnected(why)) => ("disconnected", Some(why), None),
            Some(ConnectionState::WebhookOnly) => ("webhook_only", None, None),
            Some(ConnectionState::OnOtherNode(node)) => ("on_other_node", None, Some(node)),
            None => ("restart_needed", None, None),
        };
        Self { channel, account, state: state.to_owned(), reason: why, node }
    }
}
