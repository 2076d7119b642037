//! `polyclaw config`: locates, checks and shows the config. Needs no daemon.

use std::path::Path;

use polyclaw_domain::config::{self, Config};
use serde_json::json;

use crate::cli::CommandContext;
use crate::redaction;

/// Locate, check and show the config file.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw config path
  polyclaw config check
  polyclaw config show --json
  polyclaw config schema > config.schema.json")]
pub struct Args {
    #[command(subcommand)]
    verb: ConfigCommand,
}

#[derive(clap::Subcommand)]
enum ConfigCommand {
    /// Print the path of the file.
    #[command(after_help = "Examples:
  polyclaw config path
  $EDITOR \"$(polyclaw config path)\"")]
    Path,
    /// Check the file and report every error.
    #[command(after_help = "Examples:
  polyclaw config check")]
    Check,
    /// Show the effective config: defaults included, secrets hidden.
    #[command(after_help = "Examples:
  polyclaw config show
  polyclaw config show --json")]
    Show,
    /// Print the JSON Schema of the file, for editors.
    #[command(after_help = "Examples:
  polyclaw config schema > config.schema.json")]
    Schema,
}

fn check_result(config: &Config, path: &Path) -> serde_json::Value {
    let elsewhere: Vec<String> = config.unknown_agents.iter().map(|one| one.error.to_string()).collect();
    json!({ "path": path, "exists": path.exists(), "agents": config.agents.agent_specs().len(), "not_in_file": elsewhere })
}

/// Does not read the database: agents created at run time are checked when the instance starts.
fn config_summary(config: &Config, path: &Path) -> String {
    let agents = config.agents.agent_specs().len();
    if !path.exists() {
        return format!("{} does not exist: the defaults apply, with {agents} agent(s).", path.display());
    }
    let mut lines = vec![format!("{} is valid: {agents} agent(s).", path.display())];
    lines.extend(config.unknown_agents.iter().map(|one| {
        format!(
            "{} in the file; the next start also checks the agents created with `polyclaw agents add`",
            one.error
        )
    }));
    lines.join("\n")
}

pub fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let (output, path) = (context.output, context.home.config_file());
    match args.verb {
        ConfigCommand::Path => output.print_value(&path, |_| path.display().to_string())?,
        ConfigCommand::Check => {
            let config = context.home.read_config()?;
            output.print_value(&check_result(&config, &path), |_| config_summary(&config, &path))?;
        }
        ConfigCommand::Show => {
            let config = context.home.read_config()?;
            // Any text may contain an environment variable's value, which may be a secret.
            let redactor = redaction::build_redactor(&config, &context.home);
            let text = redactor.redact_text(&toml::to_string_pretty(&config)?).into_owned();
            let mut value = serde_json::to_value(&config)?;
            redactor.redact_json(&mut value);
            output.print_value(&value, |_| text)?;
        }
        ConfigCommand::Schema => {
            output.print_line(&serde_json::to_string_pretty(&config::config_schema())?)?;
        }
    }
    Ok(())
}
