//! `polyclaw instances`: the instances a control plane looks after.

mod config;

use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::output::{cell, safe};

const LISTED: usize = 10_000;
/// How often new log lines are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The instances of this home: list, create, start, stop, restart, archive, clone, delete, logs, config.
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
    verb: Option<Verb>,
}

#[derive(clap::Args)]
struct Which {
    /// Its name or id.
    instance: String,
}

#[derive(clap::Args)]
struct Ending {
    /// Its name or id.
    instance: String,
    /// Seconds that running work gets to reach a safe point.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// All of them, as they are now.
    List {
        /// Archived ones too.
        #[arg(long)]
        all: bool,
    },
    /// One of them, as it is now.
    Status(Which),
    /// Make one. It does not run yet.
    Create {
        /// Letters, digits and hyphens.
        name: String,
        /// The port to listen on; the first free one from 18801 on if not given.
        #[arg(long, value_name = "PORT")]
        port: Option<u16>,
        /// The provider its models are of.
        #[arg(long)]
        provider: Option<String>,
        /// The model of its agents, as provider/model.
        #[arg(long)]
        model: Option<String>,
        /// When it is started again by itself.
        #[arg(long, value_parser = ["never", "on-failure", "always"])]
        restart: Option<String>,
    },
    /// Start one and wait until it answers.
    Start(Which),
    /// Let running work reach a safe point, then end it.
    Stop(Ending),
    /// Stop it, if it runs, and start it.
    Restart(Ending),
    /// Stop it and put it aside.
    Archive(Ending),
    /// Take an archived one back.
    Unarchive(Which),
    /// Make another with the same config, files and secrets.
    Clone {
        /// The name or id of the one there is.
        instance: String,
        /// The name of the new one.
        new_name: String,
        /// The port of the new one.
        #[arg(long, value_name = "PORT")]
        port: Option<u16>,
    },
    /// Remove an archived one with all it has.
    Delete(Which),
    /// The last lines of its log.
    Logs {
        /// Its name or id.
        instance: String,
        /// How many.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        lines: usize,
        /// Go on with new lines as they come.
        #[arg(short, long)]
        follow: bool,
    },
    /// Its config: get, set, edit, validate, diff.
    Config {
        #[command(subcommand)]
        verb: config::Verb,
    },
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let client = Client::of_control(context)?;
    let at = |instance: &str, verb: &str| format!("/instances/{}{verb}", segment(instance));
    let ending =
        |verb: &str, ending: &Ending| at(&ending.instance, &format!("/{verb}?timeout={}", ending.timeout));
    let none = json!({});
    match &args.verb {
        None => list(&client, context, false).await,
        Some(Verb::List { all }) => list(&client, context, *all).await,
        Some(Verb::Status(which)) => said(context, client.get(&at(&which.instance, "")).await?),
        Some(Verb::Create { name, port, provider, model, restart }) => {
            let mut body = json!({ "name": name });
            let wishes = [
                ("port", json!(port)),
                ("provider", json!(provider)),
                ("model", json!(model)),
                ("restart", json!(restart)),
            ];
            wishes.into_iter().filter(|(_, wish)| !wish.is_null()).for_each(|(key, wish)| body[key] = wish);
            said(context, client.post("/instances", &body).await?)
        }
        Some(Verb::Start(which)) => said(context, client.post(&at(&which.instance, "/start"), &none).await?),
        Some(Verb::Stop(end)) => {
            said(context, client.post_for(&ending("stop", end), &none, end.timeout).await?)
        }
        Some(Verb::Restart(end)) => {
            said(context, client.post_for(&ending("restart", end), &none, end.timeout).await?)
        }
        Some(Verb::Archive(end)) => {
            said(context, client.post_for(&ending("archive", end), &none, end.timeout).await?)
        }
        Some(Verb::Unarchive(which)) => {
            said(context, client.post(&at(&which.instance, "/unarchive"), &none).await?)
        }
        Some(Verb::Clone { instance, new_name, port }) => {
            let body = json!({ "new_name": new_name, "port": port });
            said(context, client.post(&at(instance, "/clone"), &body).await?)
        }
        Some(Verb::Delete(which)) => {
            let answer = client.delete(&at(&which.instance, "")).await?;
            Ok(context.output.say(&answer, |_| format!("{} is gone.", safe(&which.instance)))?)
        }
        Some(Verb::Config { verb }) => config::run(verb, client, context).await,
        Some(Verb::Logs { instance, lines, follow }) => {
            logs(&client, context, &at(instance, "/logs"), *lines, *follow).await
        }
    }
}

fn said(context: &Context, instance: Value) -> anyhow::Result<()> {
    Ok(context.output.say(&instance, |_| {
        let place = format!("http://127.0.0.1:{}", instance["port"]);
        let why = instance["error"].as_str().map(|why| format!(": {}", safe(why))).unwrap_or_default();
        format!(
            "{} is {}{why} ({place}, {})",
            cell(&instance["name"]),
            cell(&instance["status"]),
            cell(&instance["id"])
        )
    })?)
}

async fn list(client: &Client, context: &Context, all: bool) -> anyhow::Result<()> {
    let instances = client.list(&format!("/instances?include_archived={all}"), "instances", LISTED).await?;
    let row = |one: &Value| {
        ["name", "status", "port", "pid", "restart", "id"].map(|name| cell(&one[name])).to_vec()
    };
    let rows: Vec<_> = instances.iter().map(row).collect();
    Ok(context.output.say(&json!({ "instances": instances }), |output| match rows.is_empty() {
        true => "There is none. `polyclaw instances create <name>` makes one.".to_owned(),
        false => output.table(&["NAME", "STATUS", "PORT", "PID", "RESTART", "ID"], &rows),
    })?)
}

async fn logs(
    client: &Client,
    context: &Context,
    path: &str,
    lines: usize,
    follow: bool,
) -> anyhow::Result<()> {
    if follow && context.output.json {
        return Err(Failure::usage("--json is one answer; leave out --follow").into());
    }
    let answer = client.get(&format!("{path}?lines={lines}")).await?;
    context.output.say(&answer, |_| joined(&answer))?;
    // The place where the log ends now: what comes behind it is new.
    let mut cursor = if follow { end_of(client, path).await? } else { return Ok(()) };
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let page = client.get(&format!("{path}?mode=page&lines=1000&cursor={}", segment(&cursor))).await?;
        context.output.line(&joined(&page))?;
        cursor = page["next_cursor"].as_str().unwrap_or(&cursor).to_owned();
    }
}

async fn end_of(client: &Client, path: &str) -> anyhow::Result<String> {
    let mut cursor = String::new();
    loop {
        let page = client.get(&format!("{path}?mode=page&lines=10000&cursor={}", segment(&cursor))).await?;
        cursor = page["next_cursor"].as_str().unwrap_or_default().to_owned();
        if page["has_more"] != true {
            return Ok(cursor);
        }
    }
}

fn joined(answer: &Value) -> String {
    let lines = answer["lines"].as_array().into_iter().flatten().filter_map(Value::as_str);
    lines.map(safe).collect::<Vec<_>>().join("\n")
}
