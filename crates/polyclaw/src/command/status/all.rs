//! `polyclaw status --all`: every instance, as reported by the control plane and by the instance itself.

use serde_json::{Value, json};

use super::{array_items, deep, health_problems};
use crate::accounts;
use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::output::cell_text;

const MAX_LISTED_INSTANCES: usize = 10_000;

pub async fn run(context: &CommandContext, is_deep: bool) -> anyhow::Result<()> {
    let client = ApiClient::for_control_plane(context)?;
    let mut instances =
        client.list_items("/instances?include_archived=false", "instances", MAX_LISTED_INSTANCES).await?;
    for one in &mut instances {
        if one["status"] == "running" {
            let found = probe_instance(&client, one, is_deep).await;
            one["now"] = found;
        }
    }
    let value = json!({ "instances": instances });
    Ok(context.output.print_value(&value, |_| {
        if instances.is_empty() {
            "No instances. `polyclaw instances create <name>` creates one.".to_owned()
        } else {
            instances.iter().map(instance_text).collect::<Vec<_>>().join("\n")
        }
    })?)
}

/// Returns the status that a running instance reports, or the error if it does not respond.
async fn probe_instance(client: &ApiClient, instance: &Value, is_deep: bool) -> Value {
    let at = format!("/instances/{}/gateway", encode_segment(&cell_text(&instance["id"])));
    let asked = async {
        let mut now = client.get(&format!("{at}/status")).await?;
        now["health"] = client.get(&format!("{at}/health")).await?;
        let models = client.get(&format!("{at}/models")).await?;
        now["model"] = models["default_model"].clone();
        now["channels"] = client.get(&format!("{at}/channels")).await?["channels"].take();
        if is_deep {
            let found = deep::probe_deep(client, &at, &models).await?;
            (now["providers"], now["mcp"]) = (found["providers"].clone(), found["mcp"].clone());
        }
        Ok::<Value, crate::failure::CommandFailure>(now)
    };
    asked.await.unwrap_or_else(|failure| json!({ "error": failure.code, "message": failure.message }))
}

fn instance_text(instance: &Value) -> String {
    let mut lines = vec![format!(
        "{} {} (port {}, {})",
        cell_text(&instance["name"]),
        cell_text(&instance["status"]),
        cell_text(&instance["port"]),
        cell_text(&instance["id"])
    )];
    let now = &instance["now"];
    if now["error"].is_string() {
        lines.push(format!("cannot get its status: {}", cell_text(&now["message"])));
    } else if now.is_object() {
        lines.extend(health_problems(&now["health"]));
        lines.push(format!("model {}", cell_text(&now["model"])));
        lines.push(format!(
            "{} session(s), {} answering, {} waiting",
            now["sessions"], now["running"], now["waiting"]
        ));
        lines.extend(array_items(&now["channels"]).map(accounts::describe_account));
        lines.extend(deep::probe_lines(now));
    }
    lines.join("\n  ")
}
