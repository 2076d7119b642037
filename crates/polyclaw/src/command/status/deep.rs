//! `polyclaw status --deep`: the state of the external services that an instance uses.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::array_items;
use crate::client::ApiClient;
use crate::failure::CommandFailure;
use crate::output::{cell_text, visible_line};

/// Probes one instance; `at` is the path prefix that leads to it. `models` was just fetched, which probed the
/// providers.
pub async fn probe_deep(client: &ApiClient, at: &str, models: &Value) -> Result<Value, CommandFailure> {
    let mcp = client.get(&format!("{at}/mcp")).await?["servers"].take();
    Ok(json!({ "providers": provider_health(models), "mcp": mcp }))
}

/// Returns the status of each provider: the best status among its models.
fn provider_health(models: &Value) -> Vec<Value> {
    let mut found: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for model in array_items(&models["models"]) {
        let name = cell_text(&model["model"]);
        let provider = name.split_once('/').map_or(name.as_str(), |(provider, _)| provider);
        let status = cell_text(&model["status"]);
        let entry = found.entry(provider.to_owned()).or_insert((0, status.clone()));
        entry.0 += 1;
        if status == "ready" {
            entry.1 = status;
        }
    }
    let view = |(provider, (models, status)): (String, (usize, String))| json!({ "provider": provider, "status": status, "models": models });
    found.into_iter().map(view).collect()
}

pub fn probe_lines(found: &Value) -> Vec<String> {
    let provider = |one: &Value| {
        format!(
            "provider {}: {}, {} model(s)",
            cell_text(&one["provider"]),
            cell_text(&one["status"]),
            one["models"]
        )
    };
    let server = |one: &Value| {
        let why = one["error"].as_str().map(|why| format!(": {}", visible_line(why))).unwrap_or_default();
        format!("mcp {}: {}{why}", cell_text(&one["name"]), cell_text(&one["state"]))
    };
    array_items(&found["providers"]).map(provider).chain(array_items(&found["mcp"]).map(server)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_as_well_as_the_best_of_its_models() {
        let models = json!({ "models": [
            { "model": "lab/a", "status": "cooling" },
            { "model": "lab/org/b", "status": "ready" },
            { "model": "away/c", "status": "unreachable" },
        ] });
        let found = json!({ "providers": provider_health(&models), "mcp": null });
        assert_eq!(
            probe_lines(&found),
            ["provider away: unreachable, 1 model(s)", "provider lab: ready, 2 model(s)"]
        );
    }
}
