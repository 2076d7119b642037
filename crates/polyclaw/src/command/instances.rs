//! `polyclaw instances`: manages the instances of a control plane.

mod config;
mod logs;

use std::path::PathBuf;

use futures_util::StreamExt;
use polyclaw_api::control::instances::{InstanceList, InstanceView};
use polyclaw_api::control::observe::InstanceUsageView;
use serde::Serialize;
use serde_json::{Value, json};

use super::usage::format_dollars;
use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::log_level::LOG_LEVELS;
use crate::output::{cell, visible_line};

const MAX_LISTED_INSTANCES: usize = 10_000;
const LIST_COLUMNS: [&str; 8] = ["NAME", "STATUS", "PORT", "PID", "RESTART", "TOKENS 24H", "COST 24H", "ID"];
/// Maximum number of concurrent usage requests.
const MAX_CONCURRENT_USAGE_REQUESTS: usize = 8;

/// Manage the instances of this home: list, create, start, stop, restart, archive, clone, delete, logs, config.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw instances list
  polyclaw instances create research --model openai/gpt-5-mini
  polyclaw instances start research
  polyclaw instances logs research -f
  polyclaw instances config set research turns.max_rounds 20
  polyclaw instances clone research research-2
  polyclaw instances archive research && polyclaw instances delete research

A control plane must run: `polyclaw up` or `polyclaw control`.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<InstancesCommand>,
}

#[derive(clap::Args)]
struct InstanceArg {
    /// Name or ID of the instance.
    instance: String,
}

#[derive(clap::Args)]
struct InstancesStopArgs {
    /// Name or ID of the instance.
    instance: String,
    /// Seconds that running work has to reach a safe point.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
}

#[derive(clap::Subcommand)]
enum InstancesCommand {
    /// List all instances with their current state.
    #[command(after_help = "Examples:
  polyclaw instances list
  polyclaw instances list --all --json")]
    List {
        /// Include archived instances.
        #[arg(long)]
        all: bool,
    },
    /// Show the current state of one instance.
    #[command(after_help = "Examples:
  polyclaw instances status main")]
    Status(InstanceArg),
    /// Create an instance. It is not started.
    #[command(after_help = "Examples:
  polyclaw instances create research
  polyclaw instances create research --model openai/gpt-5-mini --restart always")]
    Create {
        /// Name of the instance: letters, digits and hyphens.
        name: String,
        /// Port to listen on. Defaults to the first free port from 18801.
        #[arg(long, value_name = "PORT")]
        port: Option<u16>,
        /// Model provider of the instance.
        #[arg(long)]
        provider: Option<String>,
        /// Model of the instance's agents, as provider/model.
        #[arg(long)]
        model: Option<String>,
        /// Restart policy: when the control plane restarts the instance automatically.
        #[arg(long, value_parser = ["never", "on-failure", "always"])]
        restart: Option<String>,
    },
    /// Start an instance and wait until it responds.
    #[command(after_help = "Examples:
  polyclaw instances start research")]
    Start(InstanceArg),
    /// Stop an instance after running work has reached a safe point.
    #[command(after_help = "Examples:
  polyclaw instances stop research
  polyclaw instances stop research --timeout 120")]
    Stop(InstancesStopArgs),
    /// Restart an instance. Starts it if it is stopped.
    #[command(after_help = "Examples:
  polyclaw instances restart research")]
    Restart(InstancesStopArgs),
    /// Stop an instance and archive it.
    #[command(after_help = "Examples:
  polyclaw instances archive research")]
    Archive(InstancesStopArgs),
    /// Restore an archived instance.
    #[command(after_help = "Examples:
  polyclaw instances unarchive research")]
    Unarchive {
        #[command(flatten)]
        which: InstanceArg,
        /// Port to listen on. Defaults to the former port, or to a free one.
        #[arg(long, value_name = "PORT")]
        port: Option<u16>,
    },
    /// Create an instance with the config, files and secrets of another.
    #[command(after_help = "Examples:
  polyclaw instances clone research research-2")]
    Clone {
        /// Name or ID of the instance to copy.
        instance: String,
        /// Name of the new instance.
        new_name: String,
        /// Port of the new instance.
        #[arg(long, value_name = "PORT")]
        port: Option<u16>,
    },
    /// Delete an archived instance with all its data.
    #[command(after_help = "Examples:
  polyclaw instances archive research && polyclaw instances delete research")]
    Delete(InstanceArg),
    /// Show the last lines of an instance's log.
    #[command(after_help = "Examples:
  polyclaw instances logs research
  polyclaw instances logs research -f --level warn
  polyclaw instances logs research --save research.log")]
    Logs {
        /// Name or ID of the instance.
        instance: String,
        /// Number of lines.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        lines: usize,
        /// Keep printing new lines as they are written.
        #[arg(short, long)]
        follow: bool,
        /// Only lines of this level and above.
        #[arg(long, value_parser = LOG_LEVELS)]
        level: Option<String>,
        /// Save the whole stored log to this file instead.
        #[arg(long, value_name = "FILE", conflicts_with_all = ["follow", "level", "lines"])]
        save: Option<PathBuf>,
    },
    /// Read and change an instance's config: get, set, edit, validate, diff.
    #[command(after_help = "Examples:
  polyclaw instances config get research
  polyclaw instances config set research turns.max_rounds 20")]
    Config {
        #[command(subcommand)]
        verb: config::InstancesConfigCommand,
    },
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::for_control_plane(context)?;
    let at = |instance: &str, verb: &str| format!("/instances/{}{verb}", encode_segment(instance));
    let ending = |verb: &str, ending: &InstancesStopArgs| {
        at(&ending.instance, &format!("/{verb}?timeout={}", ending.timeout))
    };
    let none = json!({});
    match &args.verb {
        None => list_instances(&client, context, false).await,
        Some(InstancesCommand::List { all }) => list_instances(&client, context, *all).await,
        Some(InstancesCommand::Status(which)) => {
            print_instance(context, client.get_as(&at(&which.instance, "")).await?)
        }
        Some(InstancesCommand::Create { name, port, provider, model, restart }) => {
            let mut body = json!({ "name": name });
            let wishes = [
                ("port", json!(port)),
                ("provider", json!(provider)),
                ("model", json!(model)),
                ("restart", json!(restart)),
            ];
            wishes
                .into_iter()
                .filter(|(_, requested)| !requested.is_null())
                .for_each(|(key, requested)| body[key] = requested);
            let made: InstanceView = client.post_as("/instances", &body).await?;
            let names_one = model.is_some() || provider.is_some();
            let hint = if names_one { None } else { Some(no_model_hint(&client, name).await) };
            print_instance_with_hint(context, made, hint)
        }
        Some(InstancesCommand::Start(which)) => {
            print_instance(context, client.post_as(&at(&which.instance, "/start"), &none).await?)
        }
        Some(InstancesCommand::Stop(end)) => print_instance(
            context,
            client.post_as_with_extra_time(&ending("stop", end), &none, end.timeout).await?,
        ),
        Some(InstancesCommand::Restart(end)) => print_instance(
            context,
            client.post_as_with_extra_time(&ending("restart", end), &none, end.timeout).await?,
        ),
        Some(InstancesCommand::Archive(end)) => print_instance(
            context,
            client.post_as_with_extra_time(&ending("archive", end), &none, end.timeout).await?,
        ),
        Some(InstancesCommand::Unarchive { which, port }) => {
            let body = json!({ "port": port });
            print_instance(context, client.post_as(&at(&which.instance, "/unarchive"), &body).await?)
        }
        Some(InstancesCommand::Clone { instance, new_name, port }) => {
            let body = json!({ "new_name": new_name, "port": port });
            print_instance(context, client.post_as(&at(instance, "/clone"), &body).await?)
        }
        Some(InstancesCommand::Delete(which)) => {
            let answer: Value = client.delete_as(&at(&which.instance, "")).await?;
            Ok(context
                .output
                .print_value(&answer, |_| format!("Deleted instance {}.", visible_line(&which.instance)))?)
        }
        Some(InstancesCommand::Config { verb }) => config::run(verb, client, context).await,
        Some(InstancesCommand::Logs { instance, save: Some(file), .. }) => {
            logs::save_logs(&client, context, &at(instance, "/logs/download"), file).await
        }
        Some(InstancesCommand::Logs { instance, lines, follow, level, save: None }) => {
            let query = logs::LogQuery { lines: *lines, follow: *follow, level: level.as_deref() };
            logs::show_logs(&client, context, &at(instance, "/logs"), &query).await
        }
    }
}

/// Returns the hint for an instance created without a model: its config is its own and does not inherit another
/// instance's model.
async fn no_model_hint(client: &ApiClient, name: &str) -> String {
    let has_main = name != "main" && client.get_as::<InstanceView>("/instances/main").await.is_ok();
    let clone =
        " `polyclaw instances clone main <new name>` creates one with main's providers and model;".to_owned();
    format!(
        "Its config sets no model: it uses an API key from the environment, a model server on this machine or the \
         demo model, if available.{} --model sets one.",
        if has_main { clone.as_str() } else { "" }
    )
}

fn print_instance(context: &CommandContext, instance: InstanceView) -> anyhow::Result<()> {
    print_instance_with_hint(context, instance, None)
}

/// An instance as printed with `--json`.
#[derive(Serialize)]
struct HintedInstance {
    #[serde(flatten)]
    instance: InstanceView,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// An instance with its usage of the last day, or null if the request failed.
#[derive(Serialize)]
struct ListedInstance {
    #[serde(flatten)]
    instance: InstanceView,
    usage: Option<InstanceUsageView>,
}

fn print_instance_with_hint(
    context: &CommandContext,
    instance: InstanceView,
    hint: Option<String>,
) -> anyhow::Result<()> {
    let value = HintedInstance { instance, hint };
    Ok(context.output.print_value(&value, |_| {
        let HintedInstance { instance, hint } = &value;
        let why = instance.error.as_ref().map(|why| format!(": {}", visible_line(why))).unwrap_or_default();
        let hint = hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
        let state = match instance.status.as_str() {
            "error" => "has failed".to_owned(),
            status => format!("is {}", visible_line(status)),
        };
        format!(
            "{} {state}{why} (http://127.0.0.1:{}, {}){hint}",
            visible_line(&instance.name),
            instance.port,
            visible_line(&instance.id)
        )
    })?)
}

async fn list_instances(client: &ApiClient, context: &CommandContext, all: bool) -> anyhow::Result<()> {
    let instances: Vec<InstanceView> = client
        .list_pages::<InstanceList>(&format!("/instances?include_archived={all}"), MAX_LISTED_INSTANCES)
        .await?;
    let instances = fetch_usage(client, instances).await;
    let row = |ListedInstance { instance, usage }: &ListedInstance| {
        vec![
            cell(&instance.name),
            cell(&instance.status),
            cell(&instance.port),
            cell(&instance.pid),
            cell(&instance.restart),
            cell(&usage.as_ref().and_then(|usage| usage.total_tokens)),
            format_dollars(usage.as_ref().and_then(|usage| usage.cost_usd)),
            cell(&instance.id),
        ]
    };
    let rows: Vec<_> = instances.iter().map(row).collect();
    Ok(context.output.print_value(&json!({ "instances": instances }), |output| {
        if rows.is_empty() {
            "No instances. `polyclaw instances create <name>` creates one.".to_owned()
        } else {
            output.format_table(&LIST_COLUMNS, &rows)
        }
    })?)
}

async fn fetch_usage(client: &ApiClient, instances: Vec<InstanceView>) -> Vec<ListedInstance> {
    let requests = futures_util::stream::iter(instances).map(|instance| async move {
        let path = format!("/instances/{}/usage", encode_segment(&instance.id));
        ListedInstance { usage: client.get_as(&path).await.ok(), instance }
    });
    requests.buffered(MAX_CONCURRENT_USAGE_REQUESTS).collect().await
}
