//! `polyclaw sessions cleanup`: conversations that nobody uses any more.

use serde_json::{Value, json};

use crate::client::Client;
use crate::output::{Output, cell};

pub async fn run(client: &Client, output: Output, dry_run: bool) -> anyhow::Result<()> {
    let told = client.post("/sessions/cleanup", &json!({ "dry_run": dry_run })).await?;
    let unused = told["unused"].as_array().cloned().unwrap_or_default();
    let row = |one: &Value| vec![cell(&one["agent_id"]), cell(&one["updated_at"]), cell(&one["session_key"])];
    let rows: Vec<_> = unused.iter().map(row).collect();
    Ok(output.say(&told, |output| {
        let done = match dry_run {
            true => format!("{} would be removed. Nothing was changed.", rows.len()),
            false => format!("{} removed; what was said there is in archive/.", cell(&told["removed"])),
        };
        match rows.is_empty() {
            true => "Nothing is unused.".to_owned(),
            false => format!("{}\n\n{done}", output.table(&["AGENT", "LAST USED", "SESSION"], &rows)),
        }
    })?)
}
