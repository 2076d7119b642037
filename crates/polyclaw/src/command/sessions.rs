//! `polyclaw sessions`: lists, shows and manages sessions.

mod cleanup;
mod tree;

use polyclaw_api::sessions::{SessionList, SessionView, StopResult};
use polyclaw_api::transcript::{SessionMessageView, TranscriptPage};
use polyclaw_domain::frame::FrameKind;
use polyclaw_domain::message::{MessageOrigin, MessagePart, MessageRole};
use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::{ApiClient, CONNECTION_LOST_CODE, encode_segment};
use crate::failure::{CommandFailure, FailureExit};
use crate::one_shot::agent_id;
use crate::output::{CliOutput, TextTone, cell, visible_line};
use crate::stream::{FrameStream, StreamFrame};

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
            let gone: Value = client.delete_as(&session_path(key, "")).await?;
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
    let sessions: Vec<SessionView> =
        client.list_pages::<SessionList>(&format!("/sessions{filter}"), limit).await?;
    let row = |session: &SessionView| {
        let state = if session.running_turn_id.is_some() { "answering" } else { "idle" };
        vec![
            cell(&session.session_key),
            cell(&session.active_agent_id),
            state.to_owned(),
            cell(&session.queued),
            cell(&session.updated_at),
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
    let session: SessionView = client.get_as(&session_path(key, "")).await?;
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

fn session_heading(session: &SessionView) -> String {
    let fields = [
        ("session_key", cell(&session.session_key)),
        ("active_agent_id", cell(&session.active_agent_id)),
        ("model", cell(&session.model)),
        ("status", cell(&session.status)),
        ("queued", cell(&session.queued)),
        ("running_turn_id", cell(&session.running_turn_id)),
        ("updated_at", cell(&session.updated_at)),
    ];
    fields.map(|(name, value)| format!("{name} {value}")).join("\n")
}

/// Returns the author and time of a message. For internal messages, the author is their origin, not "user".
fn message_author(message: &SessionMessageView) -> String {
    let who = if message.role == MessageRole::User { cell(&message.origin) } else { cell(&message.role) };
    format!("{who} · {}", message.created_at)
}

/// Returns the text streamed before a turn was cut off, the message text, the model's tool calls and the sandbox
/// note.
fn message_body(message: &SessionMessageView) -> String {
    let calls: Vec<String> = message
        .parts
        .iter()
        .filter_map(|part| match part {
            MessagePart::ToolCall(call) => Some(format!("→ {} {}", visible_line(&call.name), call.arguments)),
            _ => None,
        })
        .collect();
    let meta = message.meta.as_ref().unwrap_or(&Value::Null);
    let reply = visible_line(meta["said"].as_str().unwrap_or_default());
    let text = visible_line(&message.text);
    let sandbox = meta["sandbox"]["line"].as_str().map(|line| format!("({})", visible_line(line)));
    [reply, text, calls.join("\n"), sandbox.unwrap_or_default()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns every message of a session, oldest first.
async fn fetch_transcript(client: &ApiClient, key: &str) -> Result<Vec<SessionMessageView>, CommandFailure> {
    const TRANSCRIPT_PAGE_SIZE: usize = 500;
    let mut messages: Vec<SessionMessageView> = Vec::new();
    let mut after = 0;
    loop {
        let path = session_path(key, &format!("/transcript?after={after}&limit={TRANSCRIPT_PAGE_SIZE}"));
        let page: TranscriptPage = client.get_as(&path).await?;
        messages.extend(page.messages);
        match page.next_after {
            Some(next) => after = next,
            None => return Ok(messages),
        }
    }
}

async fn export_session(client: &ApiClient, output: CliOutput, key: &str) -> anyhow::Result<()> {
    for message in fetch_transcript(client, key).await? {
        output.print_line(&serde_json::to_value(message)?.to_string())?;
    }
    Ok(())
}

async fn tail_session(client: &ApiClient, output: CliOutput, key: &str) -> anyhow::Result<()> {
    let _: SessionView = client.get_as(&session_path(key, "")).await?;
    let mut frames = FrameStream::new(client.open_stream(&session_path(key, "/stream")).await?);
    while let Some(frame) = frames.next().await {
        let line = if output.json { frame.data.to_string() } else { frame_line(&frame) };
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
fn frame_line(frame: &StreamFrame) -> String {
    match frame.frame_kind() {
        Some(FrameKind::Delta { .. } | FrameKind::Reasoning { .. } | FrameKind::ToolOutput { .. }) => {
            String::new()
        }
        Some(FrameKind::Accepted { origin: MessageOrigin::User, text, .. }) => {
            format!("> {}", visible_line(text))
        }
        Some(FrameKind::Accepted { origin, text, .. }) => {
            format!("> ({}) {}", cell(origin), visible_line(text))
        }
        Some(FrameKind::ToolStarted { name, arguments, .. }) => {
            format!("→ {} {arguments}", visible_line(name))
        }
        Some(FrameKind::ToolEnded { name, is_error, .. }) => {
            format!("← {} {}", visible_line(name), if *is_error { "failed" } else { "ok" })
        }
        Some(FrameKind::Ended { text, state, .. }) => {
            text.as_deref().map_or_else(|| format!("({})", cell(state)), visible_line)
        }
        _ => format!("({})", visible_line(&frame.kind)),
    }
}

async fn stop_session(client: &ApiClient, output: CliOutput, key: &str) -> anyhow::Result<()> {
    let answer: StopResult = client.post_as(&session_path(key, "/stop"), &json!({})).await?;
    Ok(output.print_value(&answer, |_| stop_summary(&answer))?)
}

/// Describes what was stopped, including interrupted tasks and child sessions.
fn stop_summary(answer: &StopResult) -> String {
    let children: Vec<String> = answer.children.iter().map(|name| visible_line(name)).collect();
    let text = match (answer.turn_id.is_none(), answer.interrupted_tasks) {
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
    let answer: Value = client.post_as(&session_path(key, &format!("/{verb}")), &json!({})).await?;
    Ok(output.print_value(&answer, |_| done.to_owned())?)
}
