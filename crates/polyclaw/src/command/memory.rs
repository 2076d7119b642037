//! `polyclaw memory`: the memories of agents.

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use polyclaw_api::agents::AgentView;
use polyclaw_api::memory::{
    ForgetResult, MemoryImportResult, MemoryList, MemoryListItem, MemoryStatus, MemoryView,
};
use polyclaw_domain::agent::MemoryScope;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::memory::MemoryEntry;
use polyclaw_domain::memory::file::{self, MemoryFileOwner};
use polyclaw_domain::port::WallClock;
use polyclaw_domain::session_key::SessionKey;
use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::clock::SystemClock;
use crate::failure::CommandFailure;
use crate::output::{cell, visible_line};
use crate::progress::ProgressDisplay;

const DEFAULT_LISTED_MEMORIES: usize = 100;
/// More than any memory store holds.
const MAX_EXPORTED_MEMORIES: usize = 10_000_000;
/// Maximum bytes of memories in one request, well below the instance's body limit.
const IMPORT_BATCH_BYTES: usize = 512 * 1024;
const IMPORT_BATCH_SIZE: usize = 500;
/// Interval between two checks of the embedding progress.
const EMBEDDING_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Manage the memories of agents: search, list, forget, export, import, embed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw memory
  polyclaw memory search \"where does Ana live\" --agent main
  polyclaw memory list --agent main --kind preference
  polyclaw memory forget 01j…
  polyclaw memory export --format md > memory.md
  polyclaw memory import MEMORY.md --agent main

Without a subcommand it shows the number of memories and how they are searched.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<MemoryCommand>,
}

#[derive(clap::Args, Clone, Default)]
struct MemoryOwnerArgs {
    /// Only memories stored by this agent.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Only memories stored in this session.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Only memories of this scope: shared, agent or session.
    #[arg(long)]
    scope: Option<String>,
}

#[derive(clap::Subcommand)]
enum MemoryCommand {
    /// Search memories by keyword and by meaning, best match first.
    #[command(after_help = "Examples:
  polyclaw memory search \"where does Ana live\"
  polyclaw memory search \"deploy\" --agent ops --limit 3 --json")]
    Search {
        /// Query, as keywords or as a question.
        query: String,
        /// Search as this agent, limited to the memories it may see.
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        /// Session of the agent to search in. Defaults to its main session.
        #[arg(long, value_name = "KEY", requires = "agent")]
        session: Option<String>,
        /// Maximum number of memories to show.
        #[arg(long, value_name = "N", default_value_t = 10)]
        limit: usize,
    },
    /// List memories, least recently changed first.
    #[command(after_help = "Examples:
  polyclaw memory list
  polyclaw memory list --agent main --kind preference")]
    List {
        #[command(flatten)]
        whose: MemoryOwnerArgs,
        /// Only memories of this kind, such as fact or preference.
        #[arg(long)]
        kind: Option<String>,
        /// Maximum number of memories to list.
        #[arg(long, value_name = "N", default_value_t = DEFAULT_LISTED_MEMORIES)]
        limit: usize,
    },
    /// Forget memories by ID, or all of an agent or a session.
    #[command(after_help = "Examples:
  polyclaw memory forget 01j…
  polyclaw memory forget --agent ops")]
    Forget {
        /// IDs that `polyclaw memory list` shows.
        ids: Vec<String>,
        #[command(flatten)]
        whose: MemoryOwnerArgs,
    },
    /// Print all memories: jsonl for backup, md for reading.
    #[command(after_help = "Examples:
  polyclaw memory export > memory.jsonl
  polyclaw memory export --format md --agent main > memory.md")]
    Export {
        /// Output format: jsonl or md.
        #[arg(long, default_value = "jsonl")]
        format: MemoryFileFormat,
        #[command(flatten)]
        whose: MemoryOwnerArgs,
    },
    /// Wait until every memory has an embedding, so that search by meaning finds it.
    #[command(after_help = "Examples:
  polyclaw memory import notes.md && polyclaw memory embed")]
    Embed,
    /// Import memories from an export or from a hand-written MEMORY.md.
    #[command(after_help = "Examples:
  polyclaw memory import memory.jsonl
  polyclaw memory import MEMORY.md --agent main --scope shared")]
    Import {
        /// File to import; `-` reads standard input. Files ending in .md are Markdown.
        file: PathBuf,
        /// File format, jsonl or md. Defaults to the one the file name implies.
        #[arg(long)]
        format: Option<MemoryFileFormat>,
        /// Agent that the memories of a hand-written file are stored for.
        #[arg(long, value_name = "ID", default_value = "main")]
        agent: String,
        /// Session that the memories are assigned to. Defaults to the agent's main session.
        #[arg(long, value_name = "KEY")]
        session: Option<String>,
        /// Visibility of the memories: shared, agent or session.
        #[arg(long, default_value = "agent")]
        scope: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MemoryFileFormat {
    Md,
    Jsonl,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::new(context)?;
    match &args.verb {
        None => show_status(&client, context).await,
        Some(MemoryCommand::Search { query, agent, session, limit }) => {
            let whose = MemoryOwnerArgs { agent: agent.clone(), session: session.clone(), scope: None };
            let joint = owner_query(&whose, None).replace('?', "&");
            search_memories(
                &client,
                context,
                &format!("/memory?q={}&limit={limit}{joint}", encode_segment(query)),
            )
            .await
        }
        Some(MemoryCommand::List { whose, kind, limit }) => {
            list_memories(&client, context, whose, kind.as_deref(), *limit).await
        }
        Some(MemoryCommand::Embed) => wait_for_embeddings(&client, context).await,
        Some(MemoryCommand::Forget { ids, whose }) => forget_memories(&client, context, ids, whose).await,
        Some(MemoryCommand::Export { format, whose }) => {
            export_memories(&client, context, *format, whose).await
        }
        Some(MemoryCommand::Import { file, format, agent, session, scope }) => {
            let text = read_memory_file(file)?;
            let memories = match format.unwrap_or_else(|| format_for_file(file)) {
                MemoryFileFormat::Jsonl => file::from_jsonl(&text),
                MemoryFileFormat::Md => {
                    let owner = memory_owner(agent, session.as_deref(), scope)?;
                    // Rejects an unknown agent: nobody would ever see its memories.
                    let _: AgentView = client.get_as(&format!("/agents/{}", owner.agent)).await?;
                    file::from_markdown(&text, &owner)
                }
            };
            import_memories(&client, context, memories.map_err(|error| unreadable_file(file, &error))?).await
        }
    }
}

async fn show_status(client: &ApiClient, context: &CommandContext) -> anyhow::Result<()> {
    let status: MemoryStatus = client.get_as("/memory/status").await?;
    Ok(context.output.print_value(&status, |_| status_sentence(&status))?)
}

/// Waits until the instance has embedded all memories. The instance embeds them anyway; this command lets a script
/// wait.
async fn wait_for_embeddings(client: &ApiClient, context: &CommandContext) -> anyhow::Result<()> {
    let progress = ProgressDisplay::new(context.output.json);
    loop {
        let status: MemoryStatus = client.get_as("/memory/status").await?;
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        let (all, pending) = (count(status.memories), count(status.pending));
        if status.embeddings.is_none() {
            progress.finish_line();
            return Err(CommandFailure::failed(
                "no_embeddings",
                "no embeddings are computed: there is no embedding model",
            )
            .hint("`polyclaw model pull all-minilm-l6-v2` downloads one (91 MB)")
            .into());
        }
        if pending == 0 {
            progress.finish_line();
            return Ok(context.output.print_value(&status, |_| status_sentence(&status))?);
        }
        if let Some(why) = &status.error {
            progress.finish_line();
            return Err(CommandFailure::failed(
                "embedding_failed",
                format!("cannot compute embeddings: {why}"),
            )
            .hint("fix this; it is retried every minute, and memories are found by keyword meanwhile")
            .into());
        }
        progress.show_count("embeddings", all.saturating_sub(pending), all);
        tokio::time::sleep(EMBEDDING_POLL_INTERVAL).await;
    }
}

/// Describes for people how memories are searched.
pub fn status_sentence(status: &MemoryStatus) -> String {
    let (memories, pending) = (status.memories, status.pending);
    match (&status.embeddings, &status.error) {
        (Some(model), _) if pending == 0 => {
            format!("{memories} memories (keyword and semantic search with {model})")
        }
        (Some(model), Some(error)) => format!(
            "{memories} memories, {pending} of them without an embedding of {model}: {}",
            visible_line(error)
        ),
        (Some(model), None) => {
            format!("{memories} memories, {pending} of them still without an embedding of {model}")
        }
        (None, _) => format!(
            "{memories} memories (keyword search only): there is no embedding model. \
             `polyclaw model pull all-minilm-l6-v2` downloads one (91 MB)"
        ),
    }
}

async fn search_memories(client: &ApiClient, context: &CommandContext, path: &str) -> anyhow::Result<()> {
    let found: MemoryList = client.get_as(path).await?;
    Ok(context.output.print_value(&found, |output| {
        if found.memories.is_empty() {
            "No memories match.".to_owned()
        } else {
            output.format_table(&["ID", "AGENT", "SCOPE", "KIND", "CONTENT"], &memory_rows(&found.memories))
        }
    })?)
}

fn memory_rows(memories: &[MemoryListItem]) -> Vec<Vec<String>> {
    let row = |MemoryListItem { memory, .. }: &MemoryListItem| {
        let short: String = visible_line(&memory.content).chars().take(100).collect();
        vec![cell(&memory.id), cell(&memory.agent_id), cell(&memory.scope), cell(&memory.kind), short]
    };
    memories.iter().map(row).collect()
}

fn owner_query(whose: &MemoryOwnerArgs, kind: Option<&str>) -> String {
    let named = [("agent", &whose.agent), ("session", &whose.session), ("scope", &whose.scope)];
    let named = named.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
    let parts: Vec<String> = named
        .chain(kind.map(|kind| ("kind", kind)))
        .map(|(name, value)| format!("{name}={}", encode_segment(value)))
        .collect();
    if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
}

async fn list_memories(
    client: &ApiClient,
    context: &CommandContext,
    whose: &MemoryOwnerArgs,
    kind: Option<&str>,
    limit: usize,
) -> anyhow::Result<()> {
    let memories: Vec<MemoryListItem> =
        client.list_pages::<MemoryList>(&format!("/memory{}", owner_query(whose, kind)), limit).await?;
    Ok(context.output.print_value(&json!({ "memories": memories }), |output| {
        if memories.is_empty() {
            "No memories.".to_owned()
        } else {
            output.format_table(&["ID", "AGENT", "SCOPE", "KIND", "CONTENT"], &memory_rows(&memories))
        }
    })?)
}

async fn forget_memories(
    client: &ApiClient,
    context: &CommandContext,
    ids: &[String],
    whose: &MemoryOwnerArgs,
) -> anyhow::Result<()> {
    let all = owner_query(whose, None);
    let forgotten = match (ids.is_empty(), whose.agent.is_some() || whose.session.is_some()) {
        (false, _) if !all.is_empty() => {
            return Err(CommandFailure::usage("pass memory IDs, or --agent or --session, not both").into());
        }
        (false, _) => {
            for id in ids {
                let _: Value = client.delete_as(&format!("/memory/{}", encode_segment(id))).await?;
            }
            ForgetResult { forgotten: ids.len() }
        }
        (true, true) => client.delete_as(&format!("/memory{all}")).await?,
        (true, false) => {
            let what = CommandFailure::usage("nothing to forget");
            return Err(what.hint("pass an ID from `polyclaw memory list`, or --agent or --session").into());
        }
    };
    Ok(context.output.print_value(&forgotten, |_| format!("Memories forgotten: {}.", forgotten.forgotten))?)
}

async fn export_memories(
    client: &ApiClient,
    context: &CommandContext,
    format: MemoryFileFormat,
    whose: &MemoryOwnerArgs,
) -> anyhow::Result<()> {
    let listed: Vec<MemoryListItem> = client
        .list_pages::<MemoryList>(&format!("/memory{}", owner_query(whose, None)), MAX_EXPORTED_MEMORIES)
        .await?;
    let memories: Vec<MemoryEntry> = listed.into_iter().map(|item| memory_entry(item.memory)).collect();
    if context.output.json {
        return Ok(context.output.print_value(&json!({ "memories": memories }), |_| String::new())?);
    }
    let text = match format {
        MemoryFileFormat::Jsonl => file::to_jsonl(&memories),
        MemoryFileFormat::Md => file::to_markdown(&memories),
    };
    Ok(context.output.print_piece(&text)?)
}

fn memory_entry(memory: MemoryView) -> MemoryEntry {
    MemoryEntry {
        id: memory.id,
        agent: memory.agent_id,
        session: memory.session_key,
        scope: memory.scope,
        key: memory.key,
        kind: memory.kind,
        content: memory.content,
        metadata: memory.metadata,
        created_at: memory.created_at,
        updated_at: memory.updated_at,
    }
}

async fn import_memories(
    client: &ApiClient,
    context: &CommandContext,
    memories: Vec<MemoryEntry>,
) -> anyhow::Result<()> {
    let progress = ProgressDisplay::new(context.output.json);
    let total = memories.len() as u64;
    let (mut stored, mut batch, mut bytes) = (0, Vec::new(), 0);
    for memory in memories {
        let value = serde_json::to_value(memory)?;
        bytes += value.to_string().len();
        batch.push(value);
        if batch.len() >= IMPORT_BATCH_SIZE || bytes >= IMPORT_BATCH_BYTES {
            stored += send_batch(client, std::mem::take(&mut batch)).await?;
            bytes = 0;
            progress.show_count("import", stored, total);
        }
    }
    if !batch.is_empty() {
        stored += send_batch(client, batch).await?;
    }
    progress.finish_line();
    Ok(context
        .output
        .print_value(&json!({ "stored": stored }), |_| format!("Memories imported: {stored}."))?)
}

async fn send_batch(client: &ApiClient, batch: Vec<Value>) -> Result<u64, CommandFailure> {
    let answer: MemoryImportResult = client.post_as("/memory/import", &json!({ "memories": batch })).await?;
    Ok(answer.stored as u64)
}

fn format_for_file(file: &std::path::Path) -> MemoryFileFormat {
    let markdown = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md"));
    if markdown { MemoryFileFormat::Md } else { MemoryFileFormat::Jsonl }
}

fn read_memory_file(file: &std::path::Path) -> Result<String, CommandFailure> {
    let mut text = String::new();
    let done = if file.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).map(drop)
    } else {
        std::fs::read_to_string(file).map(|read| text = read)
    };
    done.map_err(|error| CommandFailure::usage(format!("{}: {error}", file.display())))?;
    Ok(text)
}

fn memory_owner(agent: &str, session: Option<&str>, scope: &str) -> Result<MemoryFileOwner, CommandFailure> {
    let agent = AgentId::parse(agent).map_err(|error| CommandFailure::usage(error.to_string()))?;
    let session = match session {
        Some(key) => SessionKey::parse(key).map_err(|error| CommandFailure::usage(error.to_string()))?,
        None => SessionKey::main(&agent),
    };
    let unknown = || CommandFailure::usage(format!("invalid scope '{scope}': use shared, agent or session"));
    let scope = MemoryScope::parse(scope).ok_or_else(unknown)?;
    Ok(MemoryFileOwner { agent, session, scope, now: SystemClock.now() })
}

fn unreadable_file(file: &std::path::Path, error: &file::MemoryFileError) -> CommandFailure {
    CommandFailure::usage(format!("{}, {error}", file.display()))
        .hint("pass a file from `polyclaw memory export`, or Markdown with --format md")
}
