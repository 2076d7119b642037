//! The accounts of chat platforms as a daemon sees them, in a line each.

use serde_json::Value;

use crate::output::cell;

/// `telegram/main: connected`, for one of `GET /channels`.
pub fn sentence(account: &Value) -> String {
    let state = match account["state"].as_str().unwrap_or_default() {
        "opening" => "not connected yet".to_owned(),
        "apart" => format!("not connected: {}", cell(&account["why"])),
        "elsewhere" => format!("held by another node, {}", cell(&account["node"])),
        "called" => "waits to be called by its platform".to_owned(),
        "restart_needed" => "new in the config: it is there after a restart".to_owned(),
        state => state.to_owned(),
    };
    format!("{}/{}: {state}", cell(&account["channel"]), cell(&account["account"]))
}

pub fn is_apart(account: &Value) -> bool {
    account["state"] == "apart"
}
