//! `polyclaw models`: what can answer.

use serde_json::Value;

use crate::cli::Context;
use crate::client::Client;
use crate::output::cell;
use crate::weights::PULL_AGAIN;

/// Which models can be used, and which one is.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw models list
  polyclaw models status --json")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Every model that the instance knows.
    #[command(after_help = "Examples:
  polyclaw models list")]
    List,
    /// The model in use, or what to set.
    #[command(after_help = "Examples:
  polyclaw models status
  polyclaw models status --json")]
    Status,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let answer = Client::new(context)?.get("/models").await?;
    match args.verb {
        None | Some(Verb::List) => {
            let models = answer["models"].as_array().cloned().unwrap_or_default();
            let row =
                |model: &Value| vec![cell(&model["model"]), cell(&model["context_window"]), status(model)];
            let rows: Vec<_> = models.iter().map(row).collect();
            context.output.say(&answer, |output| output.table(&["MODEL", "CONTEXT", "STATUS"], &rows))?;
        }
        Some(Verb::Status) => {
            context.output.say(&answer, |_| in_use(&answer))?;
        }
    }
    Ok(())
}

/// The default model with its status, or the sentence that says what to set.
pub fn in_use(answer: &Value) -> String {
    let Some(default) = answer["default_model"].as_str() else {
        return crate::choice::NO_MODEL.to_owned();
    };
    let listed = answer["models"].as_array().into_iter().flatten();
    let found = listed.clone().find(|model| model["model"] == default);
    let state = found.map_or_else(|| "not listed by its provider".to_owned(), status);
    match found {
        Some(model) if model["status"] == "damaged" => {
            format!("{default} ({state})\nIts weights can not be loaded: {PULL_AGAIN}.")
        }
        Some(model) if model["demo"] == true => {
            format!("{default} ({state})\nThis is {}.", crate::choice::DEMO)
        }
        _ => format!("{default} ({state})"),
    }
}

fn status(model: &Value) -> String {
    let demo = if model["demo"] == true { ", demo" } else { "" };
    format!("{}{demo}", cell(&model["status"]))
}
