//! `polyclaw models`: the models that an instance can use.

use serde_json::Value;

use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::output::cell_text;
use crate::weights::PULL_AGAIN_HINT;

/// List models and show the active one.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw models list
  polyclaw models status --json")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<ModelsCommand>,
}

#[derive(clap::Subcommand)]
enum ModelsCommand {
    /// List every model that the instance knows.
    #[command(after_help = "Examples:
  polyclaw models list")]
    List,
    /// Show the model in use, or how to set one.
    #[command(after_help = "Examples:
  polyclaw models status
  polyclaw models status --json")]
    Status,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let answer = ApiClient::new(context)?.get("/models").await?;
    match args.verb {
        None | Some(ModelsCommand::List) => {
            let models = answer["models"].as_array().cloned().unwrap_or_default();
            let row = |model: &Value| {
                vec![cell_text(&model["model"]), cell_text(&model["context_window"]), status_text(model)]
            };
            let rows: Vec<_> = models.iter().map(row).collect();
            context
                .output
                .print_value(&answer, |output| output.format_table(&["MODEL", "CONTEXT", "STATUS"], &rows))?;
        }
        Some(ModelsCommand::Status) => {
            context.output.print_value(&answer, |_| default_model_text(&answer))?;
        }
    }
    Ok(())
}

/// Returns the default model with its status, or a hint that says what to set.
pub fn default_model_text(answer: &Value) -> String {
    let Some(default) = answer["default_model"].as_str() else {
        return crate::model_selection::NO_MODEL_HINT.to_owned();
    };
    let listed = answer["models"].as_array().into_iter().flatten();
    let found = listed.clone().find(|model| model["model"] == default);
    let state = found.map_or_else(|| "not listed by its provider".to_owned(), status_text);
    match found {
        Some(model) if model["status"] == "damaged" => {
            format!("{default} ({state})\nCannot load its weights: {PULL_AGAIN_HINT}.")
        }
        Some(model) if model["demo"] == true => {
            format!("{default} ({state})\nThis is {}.", crate::model_selection::DEMO_MODEL_NOTICE)
        }
        _ => format!("{default} ({state})"),
    }
}

fn status_text(model: &Value) -> String {
    let demo = if model["demo"] == true { ", demo" } else { "" };
    format!("{}{demo}", cell_text(&model["status"]))
}
