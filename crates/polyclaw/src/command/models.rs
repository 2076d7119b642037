//! `polyclaw models`: the models that an instance can use.

use polyclaw_api::models::{ModelList, ModelView};
use polyclaw_domain::provider::ModelStatus;

use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::output::cell;
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
    let answer: ModelList = ApiClient::new(context)?.get_as("/models").await?;
    match args.verb {
        None | Some(ModelsCommand::List) => {
            let row =
                |model: &ModelView| vec![cell(&model.model), cell(&model.context_window), status_text(model)];
            let rows: Vec<_> = answer.models.iter().map(row).collect();
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
pub fn default_model_text(answer: &ModelList) -> String {
    let Some(default) = &answer.default_model else {
        return crate::model_selection::NO_MODEL_HINT.to_owned();
    };
    let found = answer.models.iter().find(|model| model.model == *default);
    let state = found.map_or_else(|| "not listed by its provider".to_owned(), status_text);
    let default = cell(default);
    match found {
        Some(model) if model.status == ModelStatus::Damaged => {
            format!("{default} ({state})\nCannot load its weights: {PULL_AGAIN_HINT}.")
        }
        Some(model) if model.demo => {
            format!("{default} ({state})\nThis is {}.", crate::model_selection::DEMO_MODEL_NOTICE)
        }
        _ => format!("{default} ({state})"),
    }
}

fn status_text(model: &ModelView) -> String {
    let demo = if model.demo { ", demo" } else { "" };
    format!("{}{demo}", cell(&model.status))
}
