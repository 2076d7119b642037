//! `polyclaw status --all`: every instance, as reported by the control plane and by the instance itself.

use polyclaw_api::channels::{ChannelAccountList, ChannelAccountView};
use polyclaw_api::control::instances::{InstanceList, InstanceView};
use polyclaw_api::health::HealthView;
use polyclaw_api::models::ModelList;
use polyclaw_api::status::StatusView;
use polyclaw_domain::provider::ModelRef;
use serde::Serialize;
use serde_json::json;

use super::deep::DeepReport;
use super::{counts_line, deep, health_problems};
use crate::accounts;
use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::failure::CommandFailure;
use crate::output::{cell, visible_line};

const MAX_LISTED_INSTANCES: usize = 10_000;

/// An instance as the control plane lists it, and its own report if it is running.
#[derive(Serialize)]
struct ProbedInstance {
    #[serde(flatten)]
    instance: InstanceView,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<InstanceProbe>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum InstanceProbe {
    Reported(Box<InstanceReport>),
    Failed { error: String, message: String },
}

#[derive(Serialize)]
struct InstanceReport {
    #[serde(flatten)]
    counts: StatusView,
    health: HealthView,
    model: Option<ModelRef>,
    channels: Vec<ChannelAccountView>,
    #[serde(flatten)]
    deep: Option<DeepReport>,
}

pub async fn run(context: &CommandContext, is_deep: bool) -> anyhow::Result<()> {
    let client = ApiClient::for_control_plane(context)?;
    let listed: Vec<InstanceView> =
        client.list_pages::<InstanceList>("/instances?include_archived=false", MAX_LISTED_INSTANCES).await?;
    let mut instances = Vec::new();
    for instance in listed {
        let is_running = instance.status == "running";
        let now = if is_running { Some(probe_instance(&client, &instance, is_deep).await) } else { None };
        instances.push(ProbedInstance { instance, now });
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
async fn probe_instance(client: &ApiClient, instance: &InstanceView, is_deep: bool) -> InstanceProbe {
    match fetch_report(client, instance, is_deep).await {
        Ok(report) => InstanceProbe::Reported(Box::new(report)),
        Err(failure) => InstanceProbe::Failed { error: failure.code, message: failure.message },
    }
}

async fn fetch_report(
    client: &ApiClient,
    instance: &InstanceView,
    is_deep: bool,
) -> Result<InstanceReport, CommandFailure> {
    let at = format!("/instances/{}/gateway", encode_segment(&instance.id));
    let counts: StatusView = client.get_as(&format!("{at}/status")).await?;
    let health: HealthView = client.get_as(&format!("{at}/health")).await?;
    let models: ModelList = client.get_as(&format!("{at}/models")).await?;
    let channels: ChannelAccountList = client.get_as(&format!("{at}/channels")).await?;
    let deep = if is_deep { Some(deep::probe_deep(client, &at, &models).await?) } else { None };
    Ok(InstanceReport { counts, health, model: models.default_model, channels: channels.channels, deep })
}

fn instance_text(ProbedInstance { instance, now }: &ProbedInstance) -> String {
    let mut lines = vec![format!(
        "{} {} (port {}, {})",
        visible_line(&instance.name),
        visible_line(&instance.status),
        instance.port,
        visible_line(&instance.id)
    )];
    match now {
        Some(InstanceProbe::Failed { message, .. }) => {
            lines.push(format!("cannot get its status: {}", visible_line(message)));
        }
        Some(InstanceProbe::Reported(report)) => {
            lines.extend(health_problems(&report.health));
            lines.push(format!("model {}", cell(&report.model)));
            lines.push(counts_line(&report.counts));
            lines.extend(report.channels.iter().map(accounts::account_line));
            lines.extend(report.deep.iter().flat_map(deep::probe_lines));
        }
        None => {}
    }
    lines.join("\n  ")
}
