//! `--deep`: what those say that an instance needs from elsewhere.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::list;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{cell, safe};

/// Asks for one instance; `at` leads to it. The list of models was asked of each provider just now.
pub async fn look(client: &Client, at: &str, models: &Value) -> Result<Value, Failure> {
    let mcp = client.get(&format!("{at}/mcp")).await?["servers"].take();
    Ok(json!({ "providers": providers(models), "mcp": mcp }))
}

/// A provider is as well as the best of its models.
fn providers(models: &Value) -> Vec<Value> {
    let mut found: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for model in list(&models["models"]) {
        let name = cell(&model["model"]);
        let provider = name.split_once('/').map_or(name.as_str(), |(provider, _)| provider);
        let status = cell(&model["status"]);
        let entry = found.entry(provider.to_owned()).or_insert((0, status.clone()));
        entry.0 += 1;
        if status == "ready" {
            entry.1 = status;
        }
    }
    let view = |(provider, (models, status)): (String, (usize, String))| json!({ "provider": provider, "status": status, "models": models });
    found.into_iter().map(view).collect()
}

pub fn lines(found: &Value) -> Vec<String> {
    let provider = |one: &Value| {
        format!("provider {}: {}, {} model(s)", cell(&one["provider"]), cell(&one["status"]), one["models"])
    };
    let server = |one: &Value| {
        let why = one["error"].as_str().map(|why| format!(": {}", safe(why))).unwrap_or_default();
        format!("mcp {}: {}{why}", cell(&one["name"]), cell(&one["standing"]))
    };
    list(&found["providers"]).map(provider).chain(list(&found["mcp"]).map(server)).collect()
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
        let found = json!({ "providers": providers(&models), "mcp": null });
        assert_eq!(
            lines(&found),
            ["provider away: unreachable, 1 model(s)", "provider lab: ready, 2 model(s)"]
        );
    }
}
