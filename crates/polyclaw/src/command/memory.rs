//! `polyclaw memory`: what agents remember.

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use polyclaw_domain::agent::MemoryScope;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::memory::MemoryEntry;
use polyclaw_domain::memory::file::{self, MemoryFileOwner};
use polyclaw_domain::port::WallClock;
use polyclaw_domain::session_key::SessionKey;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::clock::SystemClock;
use crate::failure::Failure;
use crate::output::cell;
use crate::progress::Progress;

const LISTED: usize = 100;
/// More than any file of memories has.
const ALL: usize = 10_000_000;
/// Bytes of memories in one call, well below the largest body the instance takes.
const CALL_BYTES: usize = 512 * 1024;
const CALL_ROWS: usize = 500;
/// How often it is looked how many have a vector.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What agents remember: search, list, forget, export, import, embed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw memory
  polyclaw memory search \"where does Ana live\" --agent main
  polyclaw memory list --agent main --kind preference
  polyclaw memory forget 01j…
  polyclaw memory export --format md > memory.md
  polyclaw memory import MEMORY.md --agent main

Without a verb it says how many memories there are and how they are found.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(clap::Args, Clone, Default)]
struct Whose {
    /// Only what this agent stored.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Only what was learnt in this session.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Only this scope: shared, agent or session.
    #[arg(long)]
    scope: Option<String>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Find memories by words and by meaning, best first.
    #[command(after_help = "Examples:
  polyclaw memory search \"where does Ana live\"
  polyclaw memory search \"deploy\" --agent ops --limit 3 --json")]
    Search {
        /// What to look for, in words or as a question.
        query: String,
        /// Search as this agent does, seeing what it may see.
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        /// In this session of the agent; its main one if left out.
        #[arg(long, value_name = "KEY", requires = "agent")]
        session: Option<String>,
        /// Show at most so many.
        #[arg(long, value_name = "N", default_value_t = 10)]
        limit: usize,
    },
    /// All of them, the oldest change first.
    #[command(after_help = "Examples:
  polyclaw memory list
  polyclaw memory list --agent main --kind preference")]
    List {
        #[command(flatten)]
        whose: Whose,
        /// Only memories of this kind, such as fact or preference.
        #[arg(long)]
        kind: Option<String>,
        /// List at most so many.
        #[arg(long, value_name = "N", default_value_t = LISTED)]
        limit: usize,
    },
    /// Forget memories by id, or all of an agent or a session.
    #[command(after_help = "Examples:
  polyclaw memory forget 01j…
  polyclaw memory forget --agent ops")]
    Forget {
        /// The ids that `polyclaw memory list` shows.
        ids: Vec<String>,
        #[command(flatten)]
        whose: Whose,
    },
    /// Print all memories as a file: jsonl to keep, md to read.
    #[command(after_help = "Examples:
  polyclaw memory export > memory.jsonl
  polyclaw memory export --format md --agent main > memory.md")]
    Export {
        /// jsonl or md.
        #[arg(long, default_value = "jsonl")]
        format: Format,
        #[command(flatten)]
        whose: Whose,
    },
    /// Wait until every memory has a vector, so that it is found by its meaning too.
    #[command(after_help = "Examples:
  polyclaw memory import notes.md && polyclaw memory embed")]
    Embed,
    /// Bring memories in: an export, or a MEMORY.md written by hand.
    #[command(after_help = "Examples:
  polyclaw memory import memory.jsonl
  polyclaw memory import MEMORY.md --agent main --scope shared")]
    Import {
        /// The file; `-` is standard input. What ends in .md is Markdown.
        file: PathBuf,
        /// jsonl or md, if the name does not say it.
        #[arg(long)]
        format: Option<Format>,
        /// Whose memories a file written by hand becomes.
        #[arg(long, value_name = "ID", default_value = "main")]
        agent: String,
        /// Where they were learnt: the agent's main session if left out.
        #[arg(long, value_name = "KEY")]
        session: Option<String>,
        /// Who sees them: shared, agent or session.
        #[arg(long, default_value = "agent")]
        scope: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Md,
    Jsonl,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let client = Client::new(context)?;
    match &args.verb {
        None => status(&client, context).await,
        Some(Verb::Search { query, agent, session, limit }) => {
            let whose = Whose { agent: agent.clone(), session: session.clone(), scope: None };
            let joint = filter(&whose, None).replace('?', "&");
            search(&client, context, &format!("/memory?q={}&limit={limit}{joint}", segment(query))).await
        }
        Some(Verb::List { whose, kind, limit }) => {
            list(&client, context, whose, kind.as_deref(), *limit).await
        }
        Some(Verb::Embed) => embed(&client, context).await,
        Some(Verb::Forget { ids, whose }) => forget(&client, context, ids, whose).await,
        Some(Verb::Export { format, whose }) => export(&client, context, *format, whose).await,
        Some(Verb::Import { file, format, agent, session, scope }) => {
            let text = read(file)?;
            let memories = match format.unwrap_or_else(|| named(file)) {
                Format::Jsonl => file::from_jsonl(&text),
                Format::Md => {
                    let owner = owner(agent, session.as_deref(), scope)?;
                    // Nobody would ever be told what an agent that is not there remembers.
                    client.get(&format!("/agents/{}", owner.agent)).await?;
                    file::from_markdown(&text, &owner)
                }
            };
            import(&client, context, memories.map_err(|error| unreadable(file, &error))?).await
        }
    }
}

async fn status(client: &Client, context: &Context) -> anyhow::Result<()> {
    let status = client.get("/memory/status").await?;
    Ok(context.output.say(&status, |_| sentence(&status))?)
}

/// The instance makes vectors by itself; whoever must not go on before they are there waits here.
async fn embed(client: &Client, context: &Context) -> anyhow::Result<()> {
    let progress = Progress::new(context.output.json);
    loop {
        let status = client.get("/memory/status").await?;
        let (all, pending) =
            (status["memories"].as_u64().unwrap_or(0), status["pending"].as_u64().unwrap_or(0));
        if status["embeddings"].is_null() {
            progress.end();
            return Err(Failure::failed("no_embeddings", "no vectors are made: there is no embedding model")
                .hint("`polyclaw model pull all-minilm-l6-v2` fetches one (91 MB)")
                .into());
        }
        if pending == 0 {
            progress.end();
            return Ok(context.output.say(&status, |_| sentence(&status))?);
        }
        if let Some(why) = status["error"].as_str() {
            progress.end();
            return Err(Failure::failed("embedding_failed", format!("no vectors are made: {why}"))
                .hint("mend that; it is tried again every minute, and memories are found by their words meanwhile")
                .into());
        }
        progress.count("vectors", all.saturating_sub(pending), all);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// How memories are found, for people.
pub fn sentence(status: &Value) -> String {
    let (memories, pending) = (&status["memories"], &status["pending"]);
    match status["embeddings"].as_str() {
        Some(model) if pending.as_i64() == Some(0) => {
            format!("{memories} memories, found by words and by meaning ({model})")
        }
        Some(model) if status["error"].is_string() => format!(
            "{memories} memories, {pending} of them without a vector of {model}: {}",
            cell(&status["error"])
        ),
        Some(model) => format!("{memories} memories, {pending} of them still without a vector of {model}"),
        None => format!(
            "{memories} memories, found by words alone: there is no embedding model. \
             `polyclaw model pull all-minilm-l6-v2` fetches one (91 MB)"
        ),
    }
}

async fn search(client: &Client, context: &Context, path: &str) -> anyhow::Result<()> {
    let found = client.get(path).await?;
    let memories = found["memories"].as_array().cloned().unwrap_or_default();
    Ok(context.output.say(&found, |output| match memories.is_empty() {
        true => "Nothing is remembered about that.".to_owned(),
        false => output.table(&["ID", "AGENT", "SCOPE", "KIND", "CONTENT"], &rows(&memories)),
    })?)
}

fn rows(memories: &[Value]) -> Vec<Vec<String>> {
    let row = |one: &Value| {
        let short: String = cell(&one["content"]).chars().take(100).collect();
        vec![cell(&one["id"]), cell(&one["agent_id"]), cell(&one["scope"]), cell(&one["kind"]), short]
    };
    memories.iter().map(row).collect()
}

fn filter(whose: &Whose, kind: Option<&str>) -> String {
    let named = [("agent", &whose.agent), ("session", &whose.session), ("scope", &whose.scope)];
    let named = named.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
    let parts: Vec<String> = named
        .chain(kind.map(|kind| ("kind", kind)))
        .map(|(name, value)| format!("{name}={}", segment(value)))
        .collect();
    if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
}

async fn list(
    client: &Client,
    context: &Context,
    whose: &Whose,
    kind: Option<&str>,
    limit: usize,
) -> anyhow::Result<()> {
    let memories = client.list(&format!("/memory{}", filter(whose, kind)), "memories", limit).await?;
    Ok(context.output.say(&json!({ "memories": memories }), |output| match memories.is_empty() {
        true => "Nothing is remembered.".to_owned(),
        false => output.table(&["ID", "AGENT", "SCOPE", "KIND", "CONTENT"], &rows(&memories)),
    })?)
}

async fn forget(client: &Client, context: &Context, ids: &[String], whose: &Whose) -> anyhow::Result<()> {
    let all = filter(whose, None);
    let forgotten = match (ids.is_empty(), whose.agent.is_some() || whose.session.is_some()) {
        (false, _) if !all.is_empty() => {
            return Err(Failure::usage("name memories, or whose they are, not both").into());
        }
        (false, _) => {
            for id in ids {
                client.delete(&format!("/memory/{}", segment(id))).await?;
            }
            json!({ "forgotten": ids.len() })
        }
        (true, true) => client.delete(&format!("/memory{all}")).await?,
        (true, false) => {
            let what = Failure::usage("name what to forget");
            return Err(what.hint("an id of `polyclaw memory list`, or --agent or --session").into());
        }
    };
    Ok(context.output.say(&forgotten, |_| format!("Forgotten: {}.", forgotten["forgotten"]))?)
}

async fn export(client: &Client, context: &Context, format: Format, whose: &Whose) -> anyhow::Result<()> {
    let listed = client.list(&format!("/memory{}", filter(whose, None)), "memories", ALL).await?;
    let memories: Vec<MemoryEntry> =
        listed.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
    if context.output.json {
        return Ok(context.output.say(&json!({ "memories": memories }), |_| String::new())?);
    }
    let text = match format {
        Format::Jsonl => file::to_jsonl(&memories),
        Format::Md => file::to_markdown(&memories),
    };
    Ok(context.output.piece(&text)?)
}

async fn import(client: &Client, context: &Context, memories: Vec<MemoryEntry>) -> anyhow::Result<()> {
    let progress = Progress::new(context.output.json);
    let total = memories.len() as u64;
    let (mut stored, mut batch, mut bytes) = (0, Vec::new(), 0);
    for memory in memories {
        let value = serde_json::to_value(memory)?;
        bytes += value.to_string().len();
        batch.push(value);
        if batch.len() >= CALL_ROWS || bytes >= CALL_BYTES {
            stored += send(client, std::mem::take(&mut batch)).await?;
            bytes = 0;
            progress.count("import", stored, total);
        }
    }
    if !batch.is_empty() {
        stored += send(client, batch).await?;
    }
    progress.end();
    Ok(context.output.say(&json!({ "stored": stored }), |_| format!("Remembered: {stored}."))?)
}

async fn send(client: &Client, batch: Vec<Value>) -> Result<u64, Failure> {
    let answer = client.post("/memory/import", &json!({ "memories": batch })).await?;
    Ok(answer["stored"].as_u64().unwrap_or(0))
}

fn named(file: &std::path::Path) -> Format {
    let markdown = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md"));
    if markdown { Format::Md } else { Format::Jsonl }
}

fn read(file: &std::path::Path) -> Result<String, Failure> {
    let mut text = String::new();
    let done = match file.as_os_str() == "-" {
        true => std::io::stdin().read_to_string(&mut text).map(drop),
        false => std::fs::read_to_string(file).map(|read| text = read),
    };
    done.map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    Ok(text)
}

fn owner(agent: &str, session: Option<&str>, scope: &str) -> Result<MemoryFileOwner, Failure> {
    let agent = AgentId::parse(agent).map_err(|error| Failure::usage(error.to_string()))?;
    let session = match session {
        Some(key) => SessionKey::parse(key).map_err(|error| Failure::usage(error.to_string()))?,
        None => SessionKey::main(&agent),
    };
    let unknown = || Failure::usage(format!("'{scope}' is no scope: there are shared, agent and session"));
    let scope = MemoryScope::parse(scope).ok_or_else(unknown)?;
    Ok(MemoryFileOwner { agent, session, scope, now: SystemClock.now() })
}

fn unreadable(file: &std::path::Path, error: &file::MemoryFileError) -> Failure {
    Failure::usage(format!("{}, {error}", file.display()))
        .hint("a file of `polyclaw memory export`, or Markdown with --format md, can be read")
}
