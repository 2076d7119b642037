//! Tests of the config of an instance, as users write it.

mod bad;
mod documents;
mod guide;
mod hidden;
mod large;
mod reading;

use polyclaw_domain::config::{self, Config, ConfigErrors, ExternalReference};

/// Resolves a fixed set of variables, one file and a few stored secrets.
fn world(source: ExternalReference<'_>) -> Result<String, String> {
    match source {
        ExternalReference::Env("OPENAI_API_KEY") => Ok("canary-env-4711".to_owned()),
        ExternalReference::Env("CI_HOOK_SECRET") => Ok("canary-hook-4711".to_owned()),
        ExternalReference::Env("BRAVE_API_KEY" | "WIKI_AUTH") => Ok("canary-tool-4711".to_owned()),
        ExternalReference::Env("REGION") => Ok("eu-central".to_owned()),
        ExternalReference::Env("DATABASE_URL") => {
            Ok("postgres://me:canary-db-4711@localhost/claw".to_owned())
        }
        ExternalReference::File("/run/secrets/hook") => Ok("canary-file-4711\n".to_owned()),
        ExternalReference::Env(_) => Err("is not set".to_owned()),
        ExternalReference::File(_) => Err("no such file".to_owned()),
        ExternalReference::Keyring("bot") => Ok("canary-keyring-4711".to_owned()),
        ExternalReference::Stored("bot") => Ok("canary-stored-4711".to_owned()),
        ExternalReference::Keyring(_) | ExternalReference::Stored(_) => {
            Err("there is none of that name".to_owned())
        }
    }
}

fn toml(text: &str) -> Result<Config, ConfigErrors> {
    config::load(text, "config.toml", &world)
}

fn json(text: &str) -> Result<Config, ConfigErrors> {
    config::load(text, "openclaw.json", &world)
}
