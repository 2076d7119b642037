//! `polyclaw config`: where the config is, what it says, and whether it can be read. Needs no daemon.

use std::path::Path;

use polyclaw_domain::config::{self, Config};
use serde_json::json;

use crate::cli::CommandContext;
use crate::redaction;

/// The config file: where it is, whether it is right, what is in force.
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
    /// Where the file is.
    #[command(after_help = "Examples:
  polyclaw config path
  $EDITOR \"$(polyclaw config path)\"")]
    Path,
    /// Read the file and say everything that is wrong with it.
    #[command(after_help = "Examples:
  polyclaw config check")]
    Check,
    /// Everything in force, defaults included, secrets hidden.
    #[command(after_help = "Examples:
  polyclaw config show
  polyclaw config show --json")]
    Show,
    /// The JSON Schema of the file, for editors.
    #[command(after_help = "Examples:
  polyclaw config schema > config.schema.json")]
    Schema,
}

fn check_result(config: &Config, path: &Path) -> serde_json::Value {
    let elsewhere: Vec<String> = config.unknown_agents.iter().map(|one| one.error.to_string()).collect();
    json!({ "path": path, "exists": path.exists(), "agents": config.agents.agent_specs().len(), "not_in_file": elsewhere })
}

/// The database is not looked at here: what was made while the instance ran is checked when it starts.
fn config_summary(config: &Config, path: &Path) -> String {
    let agents = config.agents.agent_specs().len();
    if !path.exists() {
        return format!("There is no {}: the defaults hold, with {agents} agent(s).", path.display());
    }
    let mut lines = vec![format!("{} is fine: {agents} agent(s).", path.display())];
    lines.extend(config.unknown_agents.iter().map(|one| {
        format!(
            "{} in the file; one made with `polyclaw agents add` is looked for at the next start",
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
            // A variable may stand in any text, and may hold a secret.
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
