//! `polyclaw sessions`: conversations, and what people do with them besides talking.

mod cleanup;
mod tree;

use serde_json::{Value, json};

use crate::ask::agent_id;
use crate::cli::Context;
use crate::client::{Client, LOST, segment};
use crate::failure::{Exit, Failure};
use crate::output::{Output, Tone, cell, safe};
use crate::stream::Frames;

const LISTED: usize = 100;

/// Conversations: list, show, tail, export, stop, new, delete, tree, cleanup.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw sessions
  polyclaw sessions --agent ops --json
  polyclaw sessions show agent:main:main
  polyclaw sessions tail agent:main:main
  polyclaw sessions export agent:main:main > talk.jsonl
  polyclaw sessions stop agent:main:main
  polyclaw sessions tree
  polyclaw sessions cleanup --dry-run

A session is one conversation. Its key begins with whose it is; agent:main:main is where `polyclaw chat` talks.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: List,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Conversations, those in which something happened last first; 100 of them unless --limit says otherwise.
    #[command(after_help = "Examples:
  polyclaw sessions list
  polyclaw sessions list --agent ops --limit 20 --json")]
    List(List),
    /// Show the state of one conversation and its last messages.
    #[command(after_help = "Examples:
  polyclaw sessions show agent:main:main
  polyclaw sessions show agent:main:main -n 5")]
    Show {
        /// Which conversation: a key as `polyclaw sessions` lists it.
        key: String,
        /// How many of the last messages.
        #[arg(long, short = 'n', default_value_t = 20)]
        lines: usize,
    },
    /// Follow a conversation as it happens, until Ctrl-C.
    #[command(after_help = "Examples:
  polyclaw sessions tail agent:main:main")]
    Tail {
        /// Which conversation: a key as `polyclaw sessions` lists it.
        key: String,
    },
    /// Write every message to stdout, one JSON object per line.
    #[command(after_help = "Examples:
  polyclaw sessions export agent:main:main > talk.jsonl")]
    Export {
        /// Which conversation: a key as `polyclaw sessions` lists it.
        key: String,
    },
    /// Stop what the agent is doing in it now.
    #[command(alias = "kill")]
    #[command(after_help = "Examples:
  polyclaw sessions stop agent:main:main")]
    Stop {
        /// Which conversation: a key as `polyclaw sessions` lists it.
        key: String,
    },
    /// Start a new conversation under the same key; the old one is kept.
    #[command(after_help = "Examples:
  polyclaw sessions new agent:main:main")]
    New {
        /// Which conversation: a key as `polyclaw sessions` lists it.
        key: String,
    },
    /// Delete a conversation and all its messages.
    #[command(after_help = "Examples:
  polyclaw sessions delete agent:main:web:dm:old")]
    Delete {
        /// Which conversation: a key as `polyclaw sessions` lists it.
        key: String,
    },
    /// Remove conversations that nobody uses any more, as [session.maintenance] of the config says.
    #[command(after_help = "Examples:
  polyclaw sessions cleanup --dry-run
  polyclaw sessions cleanup --yes")]
    Cleanup(cleanup::Args),
    /// Show a conversation and those that were begun from it, with what each is doing.
    #[command(after_help = "Examples:
  polyclaw sessions tree
  polyclaw sessions tree agent:main:main")]
    Tree {
        /// Which conversation: a key as `polyclaw sessions` lists it. All that began others if left out.
        key: Option<String>,
    },
}

#[derive(clap::Args)]
struct List {
    /// Only those of this agent.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// List at most so many; 100 if left out.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let client = Client::new(context)?;
    let output = context.output;
    if args.verb.is_some() && (args.list.agent.is_some() || args.list.limit.is_some()) {
        return Err(Failure::usage("--agent and --limit are said of the list").into());
    }
    match &args.verb {
        None => list(&client, output, &args.list).await,
        Some(Verb::List(args)) => list(&client, output, args).await,
        Some(Verb::Show { key, lines }) => show(&client, output, key, *lines).await,
        Some(Verb::Tail { key }) => tail(&client, output, key).await,
        Some(Verb::Export { key }) => export(&client, output, key).await,
        Some(Verb::Stop { key }) => stop(&client, output, key).await,
        Some(Verb::New { key }) => {
            act(&client, output, key, "new", "A new conversation. The old one is kept.").await
        }
        Some(Verb::Delete { key }) => {
            let gone = client.delete(&path(key, "")).await?;
            Ok(output.say(&gone, |_| format!("{key} is gone."))?)
        }
        Some(Verb::Cleanup(args)) => cleanup::run(&client, output, args).await,
        Some(Verb::Tree { key }) => tree::run(&client, output, key.as_deref()).await,
    }
}

pub fn path(key: &str, rest: &str) -> String {
    format!("/sessions/{}{rest}", segment(key))
}

async fn list(client: &Client, output: Output, args: &List) -> anyhow::Result<()> {
    let limit = args.limit.unwrap_or(LISTED);
    let filter = match &args.agent {
        Some(agent) => format!("?agent={}", segment(&agent_id(client, agent).await?)),
        None => String::new(),
    };
    let sessions = client.list(&format!("/sessions{filter}"), "sessions", limit).await?;
    let row = |session: &Value| {
        let doing = if session["running_turn_id"].is_null() { "idle" } else { "answering" };
        vec![
            cell(&session["session_key"]),
            cell(&session["active_agent_id"]),
            doing.to_owned(),
            cell(&session["queued"]),
            cell(&session["updated_at"]),
        ]
    };
    let rows: Vec<_> = sessions.iter().map(row).collect();
    let head = ["SESSION", "AGENT", "STATE", "WAITING", "UPDATED"];
    Ok(output.say(&json!({ "sessions": sessions }), |output| {
        if rows.is_empty() {
            "No conversations yet: `polyclaw chat` begins one.".to_owned()
        } else {
            let table = output.table(&head, &rows);
            match rows.len() < limit {
                true => table,
                false => {
                    format!("{table}\nThere may be more: these are {limit}; --limit shows others.")
                }
            }
        }
    })?)
}

async fn show(client: &Client, output: Output, key: &str, lines: usize) -> anyhow::Result<()> {
    let session = client.get(&path(key, "")).await?;
    let messages = transcript(client, key).await?;
    let last = &messages[messages.len().saturating_sub(lines)..];
    Ok(output.say(&json!({ "session": session, "messages": last }), |output| {
        let mut text = head(&session);
        for message in last {
            text += &format!("\n\n{}\n{}", output.paint(Tone::Bold, &speaker(message)), body(message));
        }
        text
    })?)
}

fn head(session: &Value) -> String {
    let field = |name: &str| format!("{name} {}", cell(&session[name]));
    ["session_key", "active_agent_id", "model", "status", "queued", "running_turn_id", "updated_at"]
        .map(field)
        .join("\n")
}

/// Whose message it is: where somebody else than a person wrote in a person's place, that one.
fn speaker(message: &Value) -> String {
    let is_told = message["role"] == "user" && message["origin"].is_string();
    let who = if is_told { &message["origin"] } else { &message["role"] };
    format!("{} · {}", cell(who), cell(&message["created_at"]))
}

/// What was heard before it was cut off, the text, and the calls a model made instead of one.
fn body(message: &Value) -> String {
    let calls = message["parts"].as_array().into_iter().flatten().filter(|part| part["type"] == "tool_call");
    let calls: Vec<String> =
        calls.map(|call| format!("→ {} {}", cell(&call["name"]), call["arguments"])).collect();
    let said = safe(message["meta"]["said"].as_str().unwrap_or_default());
    let text = safe(message["text"].as_str().unwrap_or_default());
    let sandbox = message["meta"]["sandbox"]["line"].as_str().map(|line| format!("({})", safe(line)));
    [said, text, calls.join("\n"), sandbox.unwrap_or_default()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Every message of a conversation, oldest first.
async fn transcript(client: &Client, key: &str) -> Result<Vec<Value>, Failure> {
    const PAGE: usize = 500;
    let mut messages: Vec<Value> = Vec::new();
    loop {
        let after = messages.last().and_then(|message| message["ticket"].as_i64()).unwrap_or(0);
        let page = client.get(&path(key, &format!("/transcript?after={after}&limit={PAGE}"))).await?;
        let page = page["messages"].as_array().cloned().unwrap_or_default();
        let (count, last) = (page.len(), page.last().and_then(|message| message["ticket"].as_i64()));
        messages.extend(page);
        if count == 0 || last.is_none_or(|last| last <= after) {
            return Ok(messages);
        }
    }
}

async fn export(client: &Client, output: Output, key: &str) -> anyhow::Result<()> {
    for message in transcript(client, key).await? {
        output.line(&message.to_string())?;
    }
    Ok(())
}

async fn tail(client: &Client, output: Output, key: &str) -> anyhow::Result<()> {
    client.get(&path(key, "")).await?;
    let mut frames = Frames::new(client.stream(&path(key, "/stream")).await?);
    while let Some(frame) = frames.next().await {
        let line = if output.json { frame.data.to_string() } else { told(&frame.kind, &frame.data) };
        output.line(&line)?;
    }
    // A stream never ends by itself: the daemon went away, or nothing was heard of it for too long.
    Err(Failure::new(Exit::Unavailable, LOST, format!("the connection to {} broke", client.url()))
        .hint("`polyclaw status` says whether the daemon is there")
        .into())
}

/// A frame in a line. Tokens are left out: the answer is there whole at its end.
fn told(kind: &str, data: &Value) -> String {
    match kind {
        "turn.delta" | "turn.reasoning" | "tool.output" => String::new(),
        "message.accepted" => match data["origin"].as_str().filter(|origin| *origin != "user") {
            Some(origin) => format!("> ({}) {}", safe(origin), cell(&data["text"])),
            None => format!("> {}", cell(&data["text"])),
        },
        "tool.started" => format!("→ {} {}", cell(&data["name"]), data["arguments"]),
        "tool.ended" => {
            format!("← {} {}", cell(&data["name"]), if data["is_error"] == true { "failed" } else { "ok" })
        }
        "turn.ended" => data["text"].as_str().map_or_else(|| format!("({})", cell(&data["state"])), safe),
        other => format!("({other})"),
    }
}

async fn stop(client: &Client, output: Output, key: &str) -> anyhow::Result<()> {
    let answer = client.post(&path(key, "/stop"), &json!({})).await?;
    Ok(output.say(&answer, |_| stopped(&answer))?)
}

/// What was stopped, and with it.
fn stopped(answer: &Value) -> String {
    let children: Vec<String> = answer["children"].as_array().into_iter().flatten().map(cell).collect();
    let tasks = answer["interrupted_tasks"].as_u64().unwrap_or_default();
    let said = match (answer["turn_id"].is_null(), tasks) {
        (true, 0) if children.is_empty() => return "Nothing is running.".to_owned(),
        (_, 0) => "Stopped.".to_owned(),
        (_, tasks) => format!("Stopped, with {tasks} interrupted task(s) given up."),
    };
    match children.len() {
        0 => said,
        count => format!("{said} With it {count} that it began: {}.", children.join(", ")),
    }
}

async fn act(client: &Client, output: Output, key: &str, verb: &str, done: &str) -> anyhow::Result<()> {
    let answer = client.post(&path(key, &format!("/{verb}")), &json!({})).await?;
    Ok(output.say(&answer, |_| done.to_owned())?)
}
