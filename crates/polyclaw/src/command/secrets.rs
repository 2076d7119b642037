//! `polyclaw secrets`: the instance's secret store. Needs no daemon. No command shows a value.

use polyclaw_domain::redact::MIN_SECRET_BYTES;
use serde_json::json;

use crate::cli::CommandContext;
use crate::failure::CommandFailure;
use crate::home::is_open_to_others;
use crate::secrets::{self, SecretStore};

/// Manage secrets: stored encrypted in the home, used as `secret:name` in the config.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw secrets set openai                 asks for the value and does not show it
  pass show openai | polyclaw secrets set openai
  polyclaw secrets list
  polyclaw secrets check                      decrypt every secret and resolve every reference

In config.toml: api_key = \"secret:openai\". A running instance applies changes when it reloads its config (SIGHUP)
or restarts. A value is never shown again; to change it, set it again.")]
pub struct Args {
    #[command(subcommand)]
    verb: SecretsCommand,
}

/// Hint for a key that others can read. Rotates the key because somebody may have read it.
pub const CLOSE_KEY_HINT: &str =
    "run `polyclaw doctor --fix` to restrict it, then `polyclaw secrets rotate` to replace it";

#[derive(clap::Subcommand)]
enum SecretsCommand {
    /// Store a secret. Reads the value from the terminal without echo, or from standard input.
    #[command(after_help = "Examples:
  polyclaw secrets set openai
  pass show openai | polyclaw secrets set openai")]
    Set {
        /// Name of the secret. The config refers to it as `secret:<name>`.
        name: String,
    },
    /// List the names of stored secrets.
    #[command(after_help = "Examples:
  polyclaw secrets list")]
    List,
    /// Remove a secret.
    #[command(after_help = "Examples:
  polyclaw secrets remove openai")]
    Remove {
        /// Name of the secret.
        name: String,
    },
    /// Decrypt every secret, resolve every reference in the config, and report failures.
    #[command(after_help = "Examples:
  polyclaw secrets check")]
    Check,
    /// Re-encrypt all secrets with a new key.
    #[command(after_help = "Examples:
  polyclaw secrets rotate")]
    Rotate,
}

pub fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let (output, store) = (context.output, SecretStore::for_home(&context.home));
    match &args.verb {
        SecretsCommand::Set { name } => {
            secrets::check_name(name)?;
            store.set(name, &secrets::secret_prompt::read_secret(name)?)?;
            output.print_value(&json!({ "name": name }), |_| {
                format!("Stored. Refer to it as secret:{name} in the config.")
            })?;
        }
        SecretsCommand::List => {
            let names = store.names()?;
            output.print_value(&json!({ "secrets": names }), |_| {
                if names.is_empty() { "No secrets stored.".to_owned() } else { names.join("\n") }
            })?;
        }
        SecretsCommand::Remove { name } => {
            secrets::check_name(name)?;
            store.remove(name)?;
            output.print_value(&json!({ "name": name }), |_| format!("Removed {name}."))?;
        }
        SecretsCommand::Check => check_secrets(context)?,
        SecretsCommand::Rotate => {
            let count = store.rotate_key()?;
            output.print_value(&json!({ "secrets": count }), |_| {
                format!("Re-encrypted {count} secret(s) with a new key.")
            })?;
        }
    }
    Ok(())
}

fn check_secrets(context: &CommandContext) -> Result<(), CommandFailure> {
    let store = SecretStore::for_home(&context.home);
    let kept = store.open_all()?;
    let place = store.key_place()?.unwrap_or("not created yet");
    let config = context.home.read_config()?;
    let referred = config.secrets.len();
    // A value this short resembles ordinary words. It is encrypted, but not redacted from texts.
    let is_short = |value: &str| value.len() < MIN_SECRET_BYTES;
    let short: Vec<&String> =
        kept.iter().filter(|(_, value)| is_short(value.expose())).map(|(name, _)| name).collect();
    let in_config = config.secrets.iter().filter(|value| is_short(value.expose())).count();
    let is_open = is_open_to_others(&context.home.secrets_key());
    let value = json!({ "kept": kept.len(), "key": place, "config_secrets": referred, "short": short, "short_in_config": in_config, "key_open_to_others": is_open });
    let text = |_: &_| {
        let mut lines = vec![format!(
            "{} stored, all can be decrypted; key: {place}. The config refers to {referred} secret(s), all resolve.",
            kept.len()
        )];
        if !short.is_empty() || in_config > 0 {
            lines.push(format!(
                "{} shorter than {MIN_SECRET_BYTES} characters: too short to be redacted from texts. Use longer ones.",
                short.len().max(in_config)
            ));
        }
        if is_open {
            lines.push(format!("Other users can read the key: {CLOSE_KEY_HINT}."));
        }
        lines.join("\n")
    };
    context
        .output
        .print_value(&value, text)
        .map_err(|error| CommandFailure::failed("failed", error.to_string()))
}
