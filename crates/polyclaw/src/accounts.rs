//! Formats the daemon's chat accounts, one line each.

use polyclaw_api::channels::ChannelAccountView;

use crate::output::visible_line;

/// Formats an account, such as `telegram/main: connected`.
pub fn account_line(account: &ChannelAccountView) -> String {
    let named = |text: &Option<String>| visible_line(text.as_deref().unwrap_or("-"));
    let state = match account.state.as_str() {
        "connecting" => "not connected yet".to_owned(),
        "disconnected" => format!("not connected: {}", named(&account.reason)),
        "on_other_node" => format!("connected by another node, {}", named(&account.node)),
        "webhook_only" => "receives webhooks".to_owned(),
        "restart_needed" => "new in the config: restart Polyclaw to connect it".to_owned(),
        state => state.to_owned(),
    };
    format!("{}/{}: {state}", visible_line(&account.channel), visible_line(&account.account))
}

pub fn is_disconnected(account: &ChannelAccountView) -> bool {
    account.state == "disconnected"
}
