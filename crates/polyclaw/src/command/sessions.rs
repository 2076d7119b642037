//! `polyclaw sessions`: lists, shows and manages sessions.

mod cleanup;
mod tree;

use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::{ApiClient, CONNECTION_LOST_CODE, encode_segment};
use crate::failure::{CommandFailure, FailureExit};
use crate::one_shot::agent_id;
use crate::output::{CliOutput, TextTone, cell_text, visible_line};
use crate::stream::FrameStream;

const DEFAULT_LISTED_SESSIONS: usize = 100;

/// Manage sessions: list, show, tail, export, stop, new, delete, tree, cleanup.
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

A session is one conversation. Its key starts with its agent; `polyclaw chat` uses agent:main:main by default.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<SessionsCommand>,
    #[command(flatten)]
    list: SessionsListArgs,
}

#[derive(clap::Subcommand)]
enum SessionsCommand {
    /// List sessions, most recently active first. Shows 100 unless --limit is given.
    #[command(after_help = "Examples:
  polyclaw sessions list
  polyclaw sessions list --agent ops --limit 20 --json")]
    List(SessionsListArgs),
    /// Show the state of a session and its last messages.
    #[command(after_help = "Examples:
  polyclaw sessions show agent:main:main
  polyclaw sessions show agent:main:main -n 5")]
    Show {
        /// Session key, as `polyclaw sessions` lists it.
        key: String,
        /// Number of last messages to show.
        #[arg(long, short = 'n', default_value_t = 20)]
        lines: usize,
    },
    /// Follow a session live, until Ctrl-C.
    #[command(after_help = "Examples:
  polyclaw sessions tail agent:main:main")]
    Tail {
        /// Session key, as `polyclaw sessions` lists it.
        key: String,
    },
    /// Write every message of a session to stdout, one JSON object per line.
    #[command(after_help = "Examples:
  polyclaw sessions export agent:main:main > talk.jsonl")]
    Export {
        /// Session key, as `polyclaw sessions` lists it.
        key: String,
    },
    /// Stop the turn that runs in a session.
    #[command(alias = "kill")]
    #[command(after_help = "Examples:
  polyclaw sessions stop agent:main:main")]
    Stop {
        /// Session key, as `polyclaw sessions` lists it.
        key: String,
    },
    /// Start a new conversation under the same key. The old one is kept.
    #[command(after_help = "Examples:
  polyclaw sessions new agent:main:main")]
    New {
        /// Session key, as `polyclaw sessions` lists it.
        key: String,
    },
    /// Delete a session with all its messages.
    #[command(after_help = "Examples:
  polyclaw sessions delete agent:main:web:dm:old")]
    Delete {
        /// Session key, as `polyclaw sessions` lists it.
        key: String,
    },
    /// Remove unused sessions, as [session.maintenance] of the config defines them.
    #[command(after_help = "Examples:
  polyclaw sessions cleanup --dry-run
  polyclaw sessions cleanup --yes")]
    Cleanup(cleanup::Args),
    /// Show a session with the sessions started from it, and what each is doing.
    #[command(after_help = "Examples:
  polyclaw sessions tree
  polyclaw sessions tree agent:main:main")]
    Tree {
        /// Session key, as `polyclaw sessions` lists it. Defaults to all sessions that started others.
        key: Option<String>,
    },
}

#[derive(clap::Args)]
struct SessionsListArgs {
    /// Only sessions of this agent.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Maximum number of sessions to list. Defaults to 100.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::new(context)?;
    let output = context.output;
    if args.verb.is_some() && (args.list.agent.is_some() || args.list.limit.is_some()) {
        return Err(CommandFailure::usage("--agent and --limit apply only to the list").into());
    }
    match &args.verb {
        None => list_sessions(&client, output, &args.list).await,
        Some(SessionsCommand::List(args)) => list_sessions(&client, output, args).await,
        Some(SessionsCommand::Show { key, lines }) => show_session(&client, output, key, *lines).await,
        Some(SessionsCommand::Tail { key }) => tail_session(&client, output, key).await,
        Some(SessionsCommand::Export { key }) => export_session(&client, output, key).await,
        Some(SessionsCommand::Stop { key }) => stop_session(&client, output, key).await,
        Some(SessionsCommand::New { key }) => {
            post_session_action(
                &client,
                output,
                key,
                "new",
                "Started a new conversation; the old one is kept.",
            )
            .await
        }
        Some(SessionsCommand::Delete { key }) => {
            let gone = client.delete(&session_path(key, "")).await?;
            Ok(output.print_value(&gone, |_| format!("Deleted session {key}."))?)
        }
        Some(SessionsCommand::Cleanup(args)) => cleanup::run(&client, output, args).await,
        Some(SessionsCommand::Tree { key }) => tree::run(&client, output, key.as_deref()).await,
    }
}

pub fn session_path(key: &str, rest: &str) -> String {
    format!("/sessions/{}{rest}", encode_segment(key))
}

async fn list_sessions(client: &ApiClient, output: CliOutput, args: &SessionsListArgs) -> anyhow::Result<()> {
    let limit = args.limit.unwrap_or(DEFAULT_LISTED_SESSIONS);
    let filter = match &args.agent {
        Some(agent) => format!("?agent={}", encode_segment(&agent_id(client, agent).await?)),
        None => String::new(),
    };
    let sessions = client.list_items(&format!("/sessions{filter}"), "sessions", limit).await?;
    let row = |session: &Value| {
        let doing = if session["running_turn_id"].is_null() { "idle" } else { "answering" };
        vec![
            cell_text(&session["session_key"]),
            cell_text(&session["active_agent_id"]),
            doing.to_owned(),
            cell_text(&session["queued"]),
            cell_text(&session["updated_at"]),
        ]
    };
    let rows: Vec<_> = sessions.iter().map(row).collect();
    let head = ["SESSION", "AGENT", "STATE", "WAITING", "UPDATED"];
    Ok(output.print_value(&json!({ "sessions": sessions }), |output| {
        if rows.is_empty() {
            "No sessions yet. `polyclaw chat` starts one.".to_owned()
        } else {
            let table = output.format_table(&head, &rows);
            if rows.len() < limit {
                table
            } else {
                format!("{table}\nShowing {limit}; there may be more. Use --limit to show more.")
            }
        }
    })?)
}

async fn show_session(client: &ApiClient, output: CliOutput, key: &str, lines: usize) -> anyhow::Result<()> {
    let session = client.get(&session_path(key, "")).await?;
    let messages = fetch_transcript(client, key).await?;
    let last = &messages[messages.len().saturating_sub(lines)..];
    Ok(output.print_value(&json!({ "session": session, "messages": last }), |output| {
        let mut text = session_heading(&session);
        for message in last {
            text += &format!(
                "\n\n{}\n{}",
                output.paint(TextTone::Bold, &message_author(message)),
                message_body(message)
            );
        }
        text
    })?)
}

fn session_heading(session: &Value) -> String {
    let field = |name: &str| format!("{name} {}", cell_text(&session[name]));
    ["session_key", "active_agent_id", "model", "status", "queued", "running_turn_id", "updated_at"]
        .map(field)
        .join("\n")
}

/// Returns the author and time of a message. For internal messages, the author is their origin, not "user".
fn message_author(message: &Value) -> String {
    let is_notified = message["role"] == "user" && message["origin"].is_string();
    let who = if is_notified { &message["origin"] } else { &message["role"] };
    format!("{} · {}", cell_text(who), cell_text(&message["created_at"]))
}

/// Returns the text streamed before a turn was cut off, the message text, the model's tool calls and the sandbox
/// note.
fn message_body(message: &Value) -> String {
    let calls = message["parts"].as_array().into_iter().flatten().filter(|part| part["type"] == "tool_call");
    let calls: Vec<String> =
        calls.map(|call| format!("→ {} {}", cell_text(&call["name"]), call["arguments"])).collect();
    let reply = visible_line(message["meta"]["said"].as_str().unwrap_or_default());
    let text = visible_line(message["text"].as_str().unwrap_or_default());
    let sandbox = message["meta"]["sandbox"]["line"].as_str().map(|line| format!("({})", visible_line(line)));
    [reply, text, calls.join("\n"), sandbox.unwrap_or_default()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns every message of a session, oldest first.
async fn fetch_transcript(client: &ApiClient, key: &str) -> Result<Vec<Value>, CommandFailure> {
    const TRANSCRIPT_PAGE_SIZE: usize = 500;
    let mut messages: Vec<Value> = Vec::new();
    loop {
        let after = messages.last().and_then(|message| message["position"].as_i64()).unwrap_or(0);
        let page = client
            .get(&session_path(key, &format!("/transcript?after={after}&limit={TRANSCRIPT_PAGE_SIZE}")))
            .await?;
        let page = page["messages"].as_array().cloned().unwrap_or_default();
        let (count, last) = (page.len(), page.last().and_then(|message| message["position"].as_i64()));
        messages.extend(page);
        if count == 0 || last.is_none_or(|last| last <= after) {
            return Ok(messages);
        }
    }
}

async fn export_session(client: &ApiClient, output: CliOutput, key: &str) -> anyhow::Result<()> {
    for message in fetch_transcript(client, key).await? {
        output.print_line(&message.to_string())?;
    }
    Ok(())
}

async fn tail_session(client: &ApiClient, output: CliOutput, key: &str) -> anyhow::Result<()> {
    client.get(&session_path(key, "")).await?;
    let mut frames = FrameStream::new(client.open_stream(&session_path(key, "/stream")).await?);
    while let Some(frame) = frames.next().await {
        let line = if output.json { frame.data.to_string() } else { frame_line(&frame.kind, &frame.data) };
        output.print_line(&line)?;
    }
    // The daemon does not end a stream: it stopped, or was silent for too long.
    Err(CommandFailure::new(
        FailureExit::Unavailable,
        CONNECTION_LOST_CODE,
        format!("lost the connection to {}", client.url()),
    )
    .hint("`polyclaw status` shows whether the daemon runs")
    .into())
}

/// Formats a frame as one line. Deltas are omitted, because the turn's end carries the whole answer.
fn frame_line(kind: &str, data: &Value) -> String {
    match kind {
        "turn.delta" | "turn.reasoning" | "tool.output" => String::new(),
        "message.accepted" => match data["origin"].as_str().filter(|origin| *origin != "user") {
            Some(origin) => format!("> ({}) {}", visible_line(origin), cell_text(&data["text"])),
            None => format!("> {}", cell_text(&data["text"])),
        },
        "tool.started" => format!("→ {} {}", cell_text(&data["name"]), data["arguments"]),
        "tool.ended" => {
            format!(
                "← {} {}",
                cell_text(&data["name"]),
                if data["is_error"] == true { "failed" } else { "ok" }
            )
        }
        "turn.ended" => {
            data["text"].as_str().map_or_else(|| format!("({})", cell_text(&data["state"])), visible_line)
        }
        other => format!("({other})"),
    }
}

async fn stop_session(client: &ApiClient, output: CliOutput, key: &str) -> anyhow::Result<()> {
    let answer = client.post(&session_path(key, "/stop"), &json!({})).await?;
    Ok(output.print_value(&answer, |_| stop_summary(&answer))?)
}

/// Describes what was stopped, including interrupted tasks and child sessions.
fn stop_summary(answer: &Value) -> String {
    let children: Vec<String> = answer["children"].as_array().into_iter().flatten().map(cell_text).collect();
    let tasks = answer["interrupted_tasks"].as_u64().unwrap_or_default();
    let text = match (answer["turn_id"].is_null(), tasks) {
        (true, 0) if children.is_empty() => return "Nothing is running.".to_owned(),
        (_, 0) => "Stopped.".to_owned(),
        (_, tasks) => format!("Stopped, and dropped {tasks} interrupted task(s)."),
    };
    match children.len() {
        0 => text,
        count => format!("{text} Also stopped {count} that it started: {}.", children.join(", ")),
    }
}

async fn post_session_action(
    client: &ApiClient,
    output: CliOutput,
    key: &str,
    verb: &str,
    done: &str,
) -> anyhow::Result<()> {
    let answer = client.post(&session_path(key, &format!("/{verb}")), &json!({})).await?;
    Ok(output.print_value(&answer, |_| done.to_owned())?)
}
