//! `--all`: every instance, as its control plane and it itself say.

use serde_json::{Value, json};

use super::{deep, list, troubles};
use crate::accounts;
use crate::cli::Context;
use crate::client::{Client, segment};
use crate::output::cell;

const LISTED: usize = 10_000;

pub async fn run(context: &Context, is_deep: bool) -> anyhow::Result<()> {
    let client = Client::of_control(context)?;
    let mut instances = client.list("/instances?include_archived=false", "instances", LISTED).await?;
    for one in &mut instances {
        if one["status"] == "running" {
            let found = look(&client, one, is_deep).await;
            one["now"] = found;
        }
    }
    let value = json!({ "instances": instances });
    Ok(context.output.say(&value, |_| match instances.is_empty() {
        true => "There is none. `polyclaw instances create <name>` makes one.".to_owned(),
        false => instances.iter().map(told).collect::<Vec<_>>().join("\n"),
    })?)
}

/// What a running instance says of itself; why it says nothing, where it does not.
async fn look(client: &Client, instance: &Value, is_deep: bool) -> Value {
    let at = format!("/instances/{}/gateway", segment(&cell(&instance["id"])));
    let asked = async {
        let mut now = client.get(&format!("{at}/status")).await?;
        now["health"] = client.get(&format!("{at}/health")).await?;
        let models = client.get(&format!("{at}/models")).await?;
        now["model"] = models["default_model"].clone();
        now["channels"] = client.get(&format!("{at}/channels")).await?["channels"].take();
        if is_deep {
            let found = deep::look(client, &at, &models).await?;
            (now["providers"], now["mcp"]) = (found["providers"].clone(), found["mcp"].clone());
        }
        Ok::<Value, crate::failure::Failure>(now)
    };
    asked.await.unwrap_or_else(|failure| json!({ "error": failure.code, "message": failure.message }))
}

fn told(instance: &Value) -> String {
    let mut lines = vec![format!(
        "{} {} (port {}, {})",
        cell(&instance["name"]),
        cell(&instance["status"]),
        cell(&instance["port"]),
        cell(&instance["id"])
    )];
    let now = &instance["now"];
    if now["error"].is_string() {
        lines.push(format!("it does not say how it is: {}", cell(&now["message"])));
    } else if now.is_object() {
        lines.extend(troubles(&now["health"]));
        lines.push(format!("model {}", cell(&now["model"])));
        lines.push(format!(
            "{} session(s), {} answering, {} waiting",
            now["sessions"], now["running"], now["waiting"]
        ));
        lines.extend(list(&now["channels"]).map(accounts::sentence));
        lines.extend(deep::lines(now));
    }
    lines.join("\n  ")
}
