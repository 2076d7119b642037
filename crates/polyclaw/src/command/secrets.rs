//! `polyclaw secrets`: the instance's own store. Needs no daemon, and no command shows a value.

use polyclaw_domain::redact::MIN_SECRET_BYTES;
use serde_json::json;

use crate::cli::Context;
use crate::failure::Failure;
use crate::home::is_open_to_others;
use crate::secrets::{self, Secrets};

/// Secrets kept encrypted in the home, for `secret:name` in the config.
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
    verb: Verb,
}

/// What to do about a key that others could read: they may have.
pub const CLOSE_KEY: &str = "`polyclaw doctor --fix` closes it, then `polyclaw secrets rotate` makes another";

#[derive(clap::Subcommand)]
enum Verb {
    /// Keep a value, read from the terminal without an echo or from standard input.
    #[command(after_help = "Examples:
  polyclaw secrets set openai
  pass show openai | polyclaw secrets set openai")]
    Set {
        /// What the config calls it: `secret:<name>`.
        name: String,
    },
    /// The names that are kept.
    #[command(after_help = "Examples:
  polyclaw secrets list")]
    List,
    /// Take a value away.
    #[command(after_help = "Examples:
  polyclaw secrets remove openai")]
    Remove {
        /// Its name.
        name: String,
    },
    /// Open every value and resolve every reference of the config, and say what does not work.
    #[command(after_help = "Examples:
  polyclaw secrets check")]
    Check,
    /// Encrypt everything anew, under a new key.
    #[command(after_help = "Examples:
  polyclaw secrets rotate")]
    Rotate,
}

pub fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let (output, store) = (context.output, Secrets::of(&context.home));
    match &args.verb {
        Verb::Set { name } => {
            secrets::check_name(name)?;
            store.set(name, &secrets::typed::read(name)?)?;
            output.say(&json!({ "name": name }), |_| {
                format!("Kept. Write secret:{name} where the config wants it.")
            })?;
        }
        Verb::List => {
            let names = store.names()?;
            output.say(&json!({ "secrets": names }), |_| match names.is_empty() {
                true => "No secret is kept here.".to_owned(),
                false => names.join("\n"),
            })?;
        }
        Verb::Remove { name } => {
            secrets::check_name(name)?;
            store.remove(name)?;
            output.say(&json!({ "name": name }), |_| format!("{name} is gone."))?;
        }
        Verb::Check => check(context)?,
        Verb::Rotate => {
            let count = store.rotate()?;
            output
                .say(&json!({ "secrets": count }), |_| format!("{count} secret(s) are under a new key."))?;
        }
    }
    Ok(())
}

fn check(context: &Context) -> Result<(), Failure> {
    let store = Secrets::of(&context.home);
    let kept = store.open()?;
    let place = store.key_place()?.unwrap_or("not made yet");
    let config = context.home.read_config()?;
    let referred = config.secrets.len();
    // Too short to be told from a word: it is encrypted, and not hidden from texts it turns up in.
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
            lines.push(format!("Others can read the key. {CLOSE_KEY}."));
        }
        lines.join("\n")
    };
    context.output.say(&value, text).map_err(|error| Failure::failed("failed", error.to_string()))
}
