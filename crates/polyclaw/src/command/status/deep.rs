//! `polyclaw status --deep`: the state of the external services that an instance uses.

use std::collections::BTreeMap;

use polyclaw_api::mcp::{McpServerView, McpServers};
use polyclaw_api::models::ModelList;
use polyclaw_domain::provider::ModelStatus;
use serde::Serialize;

use crate::client::ApiClient;
use crate::failure::CommandFailure;
use crate::output::{cell, visible_line};

/// The external services of an instance, as printed with `--json`.
#[derive(Serialize)]
pub struct DeepReport {
    providers: Vec<ProviderHealth>,
    mcp: Vec<McpServerView>,
}

/// The best status among the models of a provider, and the number of its models.
#[derive(Serialize)]
struct ProviderHealth {
    provider: String,
    status: ModelStatus,
    models: usize,
}

/// Probes one instance; `at` is the path prefix that leads to it. `models` was just fetched, which probed the
/// providers.
pub async fn probe_deep(
    client: &ApiClient,
    at: &str,
    models: &ModelList,
) -> Result<DeepReport, CommandFailure> {
    let mcp: McpServers = client.get_as(&format!("{at}/mcp")).await?;
    Ok(DeepReport { providers: provider_health(models), mcp: mcp.servers })
}

fn provider_health(models: &ModelList) -> Vec<ProviderHealth> {
    let mut found: BTreeMap<String, ProviderHealth> = BTreeMap::new();
    for model in &models.models {
        let provider = &model.model.provider;
        let entry = found.entry(provider.clone()).or_insert_with(|| ProviderHealth {
            provider: provider.clone(),
            status: model.status,
            models: 0,
        });
        entry.models += 1;
        if model.status == ModelStatus::Ready {
            entry.status = model.status;
        }
    }
    found.into_values().collect()
}

pub fn probe_lines(found: &DeepReport) -> Vec<String> {
    let provider = |one: &ProviderHealth| {
        format!("provider {}: {}, {} model(s)", visible_line(&one.provider), cell(&one.status), one.models)
    };
    let server = |one: &McpServerView| {
        let why = one.error.as_ref().map(|why| format!(": {}", visible_line(why))).unwrap_or_default();
        format!("mcp {}: {}{why}", visible_line(&one.name), cell(&one.state))
    };
    found.providers.iter().map(provider).chain(found.mcp.iter().map(server)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn provider_health_is_that_of_its_best_model() {
        let model = |name: &str, status: &str| json!({ "model": name, "context_window": null, "status": status, "demo": false });
        let models = json!({ "default_model": null, "in_use": "", "models": [
            model("lab/a", "cooling"), model("lab/org/b", "ready"), model("away/c", "unreachable"),
        ] });
        let models: ModelList = serde_json::from_value(models).unwrap();
        let found = DeepReport { providers: provider_health(&models), mcp: Vec::new() };
        assert_eq!(
            probe_lines(&found),
            ["provider away: unreachable, 1 model(s)", "provider lab: ready, 2 model(s)"]
        );
    }
}
