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
  polyclaw secrets check                      whether every one can be opened, and every reference leads somewhere

In config.toml: api_key = \"secret:openai\". A running instance takes changes up when it reads its config again
(SIGHUP) or starts. A value is never shown again: set it anew.")]
pub struct Args {
    #[command(subcommand)]
    verb: SecretsCommand,
}

/// Hint for a key that others can read. Rotates the key because somebody may have read it.
pub const CLOSE_KEY_HINT: &str =
    "`polyclaw doctor --fix` closes it, then `polyclaw secrets rotate` makes another";

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
                format!("Kept. Write secret:{name} where the config wants it.")
            })?;
        }
        SecretsCommand::List => {
            let names = store.names()?;
            output.print_value(&json!({ "secrets": names }), |_| match names.is_empty() {
                true => "No secret is kept here.".to_owned(),
                false => names.join("\n"),
            })?;
        }
        SecretsCommand::Remove { name } => {
            secrets::check_name(name)?;
            store.remove(name)?;
            output.print_value(&json!({ "name": name }), |_| format!("{name} is gone."))?;
        }
        SecretsCommand::Check => check_secrets(context)?,
        SecretsCommand::Rotate => {
            let count = store.rotate_key()?;
            output.print_value(&json!({ "secrets": count }), |_| {
                format!("{count} secret(s) are under a new key.")
            })?;
        }
    }
    Ok(())
}

fn check_secrets(context: &CommandContext) -> Result<(), CommandFailure> {
    let store = SecretStore::for_home(&context.home);
    let kept = store.open_all()?;
    let place = store.key_place()?.unwrap_or("not made yet");
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
            "{} kept, all open; key: {place}. The config names {referred} secret(s), all resolve.",
            kept.len()
        )];
        if !short.is_empty() || in_config > 0 {
            lines.push(format!(
                "{} shorter than {MIN_SECRET_BYTES} characters: too short to be hidden in texts. Use longer ones.",
                short.len().max(in_config)
            ));
        }
        if is_open {
            lines.push(format!("Others can read the key. {CLOSE_KEY_HINT}."));
        }
        lines.join("\n")
    };
    context
        .output
        .print_value(&value, text)
        .map_err(|error| CommandFailure::failed("failed", error.to_string()))
}
