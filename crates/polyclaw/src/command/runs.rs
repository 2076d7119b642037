//! `polyclaw runs`: what conversations asked of others they began, and what of it waits for you.

use serde_json::{Value, json};

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::failure::{Exit, Failure};
use crate::output::cell;

/// Work that agents gave to sub-agents and to each other: list, held, show, dismiss, pairs.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw runs list agent:main:main
  polyclaw runs held
  polyclaw runs show 01j…
  polyclaw runs dismiss 01j… 01k…
  polyclaw runs dismiss --all
  polyclaw runs pairs

When a run ends, the conversation that asked for it is told. Where agents have talked long enough among themselves that
waits until you write there: such runs are `held`. Dismiss one, and no answer is made of it.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// What one conversation asked for, the newest first.
    #[command(after_help = "Examples:
  polyclaw runs list agent:main:main")]
    List {
        /// Which conversation: a key as `polyclaw sessions` lists it.
        key: Option<String>,
        /// List at most so many.
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
    },
    /// Those whose end waits for you to be told.
    #[command(after_help = "Examples:
  polyclaw runs held")]
    Held,
    /// Show one with its result.
    #[command(after_help = "Examples:
  polyclaw runs show 01j…")]
    Show {
        /// The ID that `polyclaw runs` lists.
        id: String,
    },
    /// Take note of held ones: no answer is made of them.
    #[command(after_help = "Examples:
  polyclaw runs dismiss 01j… 01k…
  polyclaw runs dismiss --all")]
    Dismiss {
        /// The IDs that `polyclaw runs held` lists.
        #[arg(value_name = "ID", required_unless_present = "all")]
        ids: Vec<String>,
        /// All that are held.
        #[arg(long, conflicts_with = "ids")]
        all: bool,
    },
    /// Which agents gave work to which: how often, how it ended, how long it took.
    #[command(after_help = "Examples:
  polyclaw runs pairs")]
    Pairs,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let client = Client::new(context)?;
    match &args.verb {
        None | Some(Verb::Held) => list(&client, context, HELD.to_owned(), NONE_HELD).await,
        Some(Verb::List { key, limit }) => {
            let key = key.as_ref().ok_or_else(|| {
                Failure::usage("say whose: polyclaw runs list <KEY>")
                    .hint("`polyclaw sessions tree` shows the conversations that began others")
            })?;
            let path = format!("/runs?owner={}&limit={limit}", segment(key));
            list(&client, context, path, "This conversation has asked for nothing.").await
        }
        Some(Verb::Show { id }) => show(&client, context, id).await,
        Some(Verb::Dismiss { ids, all }) => dismiss(&client, context, ids, *all).await,
        Some(Verb::Pairs) => pairs(&client, context).await,
    }
}

const HELD: &str = "/runs?held=true&limit=1000";

/// Dismisses those that are named, or all there are.
async fn dismiss(client: &Client, context: &Context, ids: &[String], all: bool) -> anyhow::Result<()> {
    if let [id] = ids {
        let run = dismiss_one(client, id).await?;
        return Ok(context.output.say(&run, |_| "It is dismissed.".to_owned())?);
    }
    let mut dismissed = Vec::new();
    let mut failed = dismiss_each(client, ids, &mut dismissed).await.err();
    while all && failed.is_none() {
        let held = client.get(HELD).await?;
        let next: Vec<String> =
            held["runs"].as_array().into_iter().flatten().map(|run| cell(&run["run_id"])).collect();
        let before = dismissed.len();
        failed = dismiss_each(client, &next, &mut dismissed).await.err();
        if dismissed.len() == before {
            break;
        }
    }
    if let Some(failure) = failed {
        let message = format!("{}; {} were dismissed before that", failure.message, dismissed.len());
        return Err(Failure { message, ..failure }.into());
    }
    let told = json!({ "runs": dismissed });
    Ok(context.output.say(&told, |_| format!("{} dismissed.", dismissed.len()))?)
}

/// One of several that somebody else took up meanwhile needs no word.
async fn dismiss_each(client: &Client, ids: &[String], dismissed: &mut Vec<Value>) -> Result<(), Failure> {
    for id in ids {
        match dismiss_one(client, id).await {
            Ok(run) => dismissed.push(run),
            Err(failure) if failure.exit == Exit::Conflict => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

async fn dismiss_one(client: &Client, id: &str) -> Result<Value, Failure> {
    client.post(&format!("/runs/{}/dismiss", segment(id)), &json!({})).await
}

/// Said by `polyclaw runs` alone, too: whoever looks for something else learns where it is.
const NONE_HELD: &str = "No run waits for you to be told of its end. `polyclaw runs list <session>` shows all that a \
conversation asked for, ended or not; `polyclaw sessions` lists the conversations.";

async fn list(client: &Client, context: &Context, path: String, none: &str) -> anyhow::Result<()> {
    let answer = client.get(&path).await?;
    let fields = ["run_id", "agent_id", "status", "held", "label", "created_at"];
    let rows = rows(&answer["runs"], &fields);
    Ok(context.output.say(&answer, |output| match rows.is_empty() {
        true => none.to_owned(),
        false => output.table(&["ID", "AGENT", "STATUS", "HELD", "LABEL", "BEGUN"], &rows),
    })?)
}

async fn show(client: &Client, context: &Context, id: &str) -> anyhow::Result<()> {
    let run = client.get(&format!("/runs/{}", segment(id))).await?;
    Ok(context.output.say(&run, |_| {
        let fields = [
            "run_id",
            "kind",
            "caller_agent_id",
            "agent_id",
            "session_key",
            "owner_session_key",
            "trace_id",
            "status",
            "held",
            "error_code",
            "tokens",
            "created_at",
            "ended_at",
            "task",
            "result",
        ];
        fields.map(|name| format!("{name} {}", cell(&run[name]))).join("\n")
    })?)
}

async fn pairs(client: &Client, context: &Context) -> anyhow::Result<()> {
    let answer = client.get("/delegations").await?;
    let fields = [
        "caller",
        "target",
        "active",
        "completed",
        "timeout",
        "error",
        "cancelled",
        "rejected",
        "p50_ms",
        "p95_ms",
    ];
    let rows = rows(&answer["delegations"], &fields);
    let head = [
        "CALLER",
        "TARGET",
        "ACTIVE",
        "DONE",
        "TIMEOUT",
        "ERROR",
        "CANCELLED",
        "REJECTED",
        "P50_MS",
        "P95_MS",
    ];
    Ok(context.output.say(&answer, |output| match rows.is_empty() {
        true => "No agent gave work to another since the start.".to_owned(),
        false => output.table(&head, &rows),
    })?)
}

fn rows(list: &Value, fields: &[&str]) -> Vec<Vec<String>> {
    let row = |one: &Value| fields.iter().map(|field| cell(&one[*field])).collect();
    list.as_array().into_iter().flatten().map(row).collect()
}
