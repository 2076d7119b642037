//! Formats the daemon's chat accounts, one line each.

use serde_json::Value;

use crate::output::cell_text;

/// Formats an account from `GET /channels`, such as `telegram/main: connected`.
pub fn describe_account(account: &Value) -> String {
    let state = match account["state"].as_str().unwrap_or_default() {
        "connecting" => "not connected yet".to_owned(),
        "disconnected" => format!("not connected: {}", cell_text(&account["reason"])),
        "on_other_node" => format!("connected by another node, {}", cell_text(&account["node"])),
        "webhook_only" => "receives webhooks".to_owned(),
        "restart_needed" => "new in the config: restart Polyclaw to connect it".to_owned(),
        state => state.to_owned(),
    };
    format!("{}/{}: {state}", cell_text(&account["channel"]), cell_text(&account["account"]))
}

pub fn is_disconnected(account: &Value) -> bool {
    account["state"] == "disconnected"
}
