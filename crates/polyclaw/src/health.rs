//! What `polyclaw doctor` looks at. A check finds something out and judges it; it changes nothing.

mod workspace;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::SystemTime;

use polyclaw_domain::config::Config;
use polyclaw_domain::safety;
use polyclaw_provider::embedded;
use polyclaw_store::integrity;
use serde_json::Value;

use crate::accounts;
use crate::choice::{Choice, DEMO};
use crate::cli::Context;
use crate::client::Client;
use crate::command::memory::sentence;
use crate::command::secrets::CLOSE_KEY;
use crate::failure::{Exit, Failure};
use crate::home::{Home, free_space, is_open_to_others, refused};
use crate::output::safe;
use crate::weights::{ALL, Found, PULL_AGAIN, Shelf};

/// Below this a database can not grow for long.
const LOW_DISK: u64 = 500 * 1024 * 1024;
const FULL_DISK: u64 = 20 * 1024 * 1024;
/// 2025: a clock before that makes every id and lease wrong.
const EARLIEST: u64 = 1_735_689_600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Ok,
    Warn,
    Fail,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

pub struct Check {
    pub name: &'static str,
    pub verdict: Verdict,
    pub found: String,
    pub hint: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Ok, found: found.into(), hint: None }
    }

    fn warn(name: &'static str, found: impl Into<String>, hint: &str) -> Self {
        Self { name, verdict: Verdict::Warn, found: found.into(), hint: Some(hint.to_owned()) }
    }

    fn fail(name: &'static str, found: impl Into<String>, hint: &str) -> Self {
        Self { verdict: Verdict::Fail, ..Self::warn(name, found, hint) }
    }

    fn failed(name: &'static str, failure: Failure) -> Self {
        Self { name, verdict: Verdict::Fail, found: failure.message, hint: failure.hint }
    }
}

/// Creates what is missing and takes away what others may do.
pub fn fix(home: &Home) -> Result<(), Failure> {
    home.create()?;
    home.ensure_token()?;
    let private = [home.token_file(), home.secrets_key(), home.secrets_file()].map(|path| (path, 0o600));
    for (path, mode) in [(home.path().to_owned(), 0o700)].into_iter().chain(private) {
        if path.exists() {
            let closed = fs::set_permissions(&path, fs::Permissions::from_mode(mode));
            closed.map_err(|error| refused(&path, &error))?;
        }
    }
    Ok(())
}

pub async fn all(context: &Context) -> Vec<Check> {
    let home = &context.home;
    // A running daemon has read its config with everything in its own environment, which is not this one.
    let config = if home.is_served() { home.read_unresolved_config() } else { home.read_config() };
    let mut checks = vec![folder(home), disk(home), clock(), token(home), configured(home, &config)];
    let config = config.unwrap_or_default();
    checks.extend(workspace::folders(home, &config));
    checks.extend(unsafe_settings(&config));
    checks.push(sqlite());
    if config.store.url.is_none() {
        checks.push(database(home));
    }
    let (daemon, models) = daemon(context).await;
    let is_up = daemon.verdict == Verdict::Ok;
    checks.push(daemon);
    if is_up {
        checks.extend(channels(context).await);
    }
    if !config.mcp.servers.is_empty() {
        checks.push(mcp(context, &config).await);
    }
    checks.push(model(home, &config, models.as_ref()).await);
    checks.push(memory(context).await);
    checks.extend(weights(home));
    checks.extend(key(home));
    checks
}

/// One line for each unsafe setting.
fn unsafe_settings(config: &Config) -> Vec<Check> {
    let found = safety::config_warnings(config, rustix::process::geteuid().is_root());
    found.into_iter().map(|found| Check::warn("safety", found.message, &found.hint)).collect()
}

fn folder(home: &Home) -> Check {
    let path = home.path();
    let Ok(meta) = fs::metadata(path) else {
        return Check::warn(
            "home",
            format!("{} is not there yet", path.display()),
            "`polyclaw up` creates it",
        );
    };
    if rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_err() {
        return Check::fail(
            "home",
            format!("{} can not be written", path.display()),
            "check its owner and mode",
        );
    }
    match meta.mode() & 0o077 {
        0 => Check::ok("home", path.display().to_string()),
        _ => Check::warn(
            "home",
            format!("{} is open to others", path.display()),
            "`polyclaw doctor --fix` closes it",
        ),
    }
}

fn disk(home: &Home) -> Check {
    let Some(free) = free_space(home.path()) else {
        return Check::warn("disk", "its free space is not known", "");
    };
    let found = format!("{} MiB free", free / (1024 * 1024));
    match free {
        0..FULL_DISK => Check::fail("disk", found, "free some space: nothing can be accepted on a full disk"),
        FULL_DISK..LOW_DISK => Check::warn("disk", found, "free some space before it is full"),
        _ => Check::ok("disk", found),
    }
}

fn clock() -> Check {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    match now > EARLIEST {
        true => Check::ok(
            "clock",
            polyclaw_domain::time::Millis(i64::try_from(now * 1000).unwrap_or(0)).to_string(),
        ),
        false => Check::fail("clock", "it is years behind", "set the system's time"),
    }
}

fn token(home: &Home) -> Check {
    if std::env::var("POLYCLAW_TOKEN").is_ok_and(|token| !token.is_empty()) {
        return Check::ok("token", "from POLYCLAW_TOKEN");
    }
    match fs::metadata(home.token_file()) {
        Err(_) => Check::warn("token", "not made yet", "`polyclaw up` makes it"),
        Ok(meta) if meta.mode() & 0o077 != 0 => Check::fail(
            "token",
            "others can read it",
            "`polyclaw doctor --fix` closes it; then make a new one",
        ),
        Ok(_) => Check::ok("token", home.token_file().display().to_string()),
    }
}

fn configured(home: &Home, config: &Result<Config, Failure>) -> Check {
    match config {
        Ok(config) => Check::ok(
            "config",
            format!("{}, {} agent(s)", home.config().display(), config.agents.agent_specs().len()),
        ),
        Err(failure) => Check::failed("config", failure.clone()),
    }
}

fn sqlite() -> Check {
    match integrity::check_linked_sqlite() {
        Ok(version) => Check::ok("sqlite", version),
        Err(error) => Check::failed("sqlite", error.into()),
    }
}

fn database(home: &Home) -> Check {
    let path = home.database();
    if !path.exists() {
        return Check::warn("database", "not made yet", "`polyclaw up` makes it");
    }
    match integrity::check_main_file(&path) {
        Ok(problems) if problems.is_empty() => Check::ok("database", path.display().to_string()),
        Ok(problems) => Check::fail("database", problems.join("; "), "restore it from a copy"),
        Err(error) => Check::failed("database", error.into()),
    }
}

/// The file of memories, and how they are found.
async fn memory(context: &Context) -> Check {
    let path = context.home.brain();
    if path.exists() {
        match integrity::check_memory_file(&path) {
            Ok(problems) if problems.is_empty() => {}
            Ok(problems) => {
                return Check::fail("memory", problems.join("; "), "restore brain.db from a copy");
            }
            Err(error) => return Check::failed("memory", error.into()),
        }
    }
    let status = match Client::new(context) {
        Ok(client) => client.get("/memory/status").await.ok(),
        Err(_) => None,
    };
    match status {
        Some(status) if status["error"].is_string() => {
            Check::fail("memory", sentence(&status), "mend that; vectors are made as soon as it works again")
        }
        Some(status) if status["embeddings"].is_string() => Check::ok("memory", sentence(&status)),
        Some(status) => Check::warn(
            "memory",
            format!("{} memories, found by words alone", status["memories"]),
            "`polyclaw model pull all-minilm-l6-v2`",
        ),
        None if path.exists() => Check::ok("memory", path.display().to_string()),
        None => Check::ok("memory", "nothing is remembered yet"),
    }
}

/// Nothing is said of weights that are as they should be: they are for those who want them.
fn weights(home: &Home) -> Option<Check> {
    let shelf = Shelf::of(home);
    let damaged = ALL.iter().filter(|weights| shelf.examine(weights) == Found::Damaged);
    let names: Vec<&str> = damaged.map(|weights| weights.name).collect();
    let found = || format!("damaged: {}", names.join(", "));
    (!names.is_empty()).then(|| Check::fail("weights", found(), PULL_AGAIN))
}

/// Of the store of secrets, where it is a file and not as it should be.
fn key(home: &Home) -> Option<Check> {
    let is_open = is_open_to_others(&home.secrets_key());
    is_open.then(|| Check::fail("secrets", "others can read the key of the secrets", CLOSE_KEY))
}

async fn daemon(context: &Context) -> (Check, Option<Value>) {
    let client = match Client::new(context) {
        Ok(client) => client,
        Err(failure) => return (Check::failed("daemon", failure), None),
    };
    match client.get("/models").await {
        Ok(models) => (Check::ok("daemon", format!("answers at {}", client.url())), Some(models)),
        Err(failure) if failure.exit == Exit::Unavailable => {
            (Check::warn("daemon", failure.message, "start it with `polyclaw up`"), None)
        }
        Err(failure) => (Check::failed("daemon", failure), None),
    }
}

/// Each account of a chat platform as the daemon sees it.
async fn channels(context: &Context) -> Vec<Check> {
    let told = match Client::new(context) {
        Ok(client) => client.get("/channels").await,
        Err(failure) => Err(failure),
    };
    let told = match told {
        Ok(told) => told,
        Err(failure) => return vec![Check::failed("channel", failure)],
    };
    let check = |account: &Value| match accounts::is_apart(account) {
        true => Check::fail(
            "channel",
            safe(&accounts::sentence(account)),
            "correct its section in config.toml and restart the daemon; docs/guide/channels.md says what it needs",
        ),
        false => Check::ok("channel", safe(&accounts::sentence(account))),
    };
    told["channels"].as_array().into_iter().flatten().map(check).collect()
}

/// Each server as it answers now, and whether anybody uses it.
async fn mcp(context: &Context, config: &Config) -> Check {
    let states = match crate::command::mcp::probe(context, None).await {
        Ok(states) => states,
        Err(failure) => return Check::failed("mcp", failure),
    };
    let down = states.iter().filter_map(|state| Some(format!("{}: {}", state.name, state.error.as_ref()?)));
    let down: Vec<String> = down.collect();
    if !down.is_empty() {
        let hint = "run its command by hand, or look at its section in config.toml";
        return Check::fail("mcp", safe(&down.join("; ")), hint);
    }
    let specs = config.agents.agent_specs();
    let is_named = |name: &str| specs.iter().any(|spec| spec.mcp.iter().any(|one| one == "*" || one == name));
    let idle: Vec<&str> =
        states.iter().map(|state| state.name.as_str()).filter(|name| !is_named(name)).collect();
    let found = states
        .iter()
        .map(|state| format!("{} ({} tools)", state.name, state.tools.len()))
        .collect::<Vec<_>>();
    match idle.is_empty() {
        true => Check::ok("mcp", found.join(", ")),
        false => Check::warn(
            "mcp",
            format!("{}; no agent of the config names {}", found.join(", "), idle.join(", ")),
            "name it in an agent's mcp = […]: no agent has the tools of a server it does not name",
        ),
    }
}

/// As the daemon sees it; without one, as it would be chosen.
async fn model(home: &Home, config: &Config, models: Option<&Value>) -> Check {
    let mut choice = Choice::known(config, |name| std::env::var(name).ok());
    if choice.model.is_none() && models.is_none() {
        choice.search(&Shelf::of(home)).await;
    }
    let in_use = models.and_then(|models| models["default_model"].as_str()).map(str::to_owned);
    let Some(chosen) = in_use.or_else(|| choice.model.as_ref().map(ToString::to_string)) else {
        return Check::warn("model", "none", &choice.sentence());
    };
    let listed = models.and_then(|models| models["models"].as_array()).into_iter().flatten();
    let status = listed.clone().find(|one| one["model"] == *chosen).and_then(|one| one["status"].as_str());
    match status {
        Some("unreachable") => Check::fail(
            "model",
            format!("{chosen} can not be reached"),
            "start its server, or look at its base_url in config.toml",
        ),
        Some("damaged") => Check::fail("model", format!("{chosen} can not be loaded"), PULL_AGAIN),
        Some("cooling") => {
            Check::warn("model", format!("{chosen} failed just now"), "`polyclaw events` says why")
        }
        _ if chosen == embedded::chat_model().to_string() => {
            Check::warn("model", format!("{chosen}: degraded, a demo model"), &format!("this is {DEMO}"))
        }
        _ => Check::ok("model", chosen),
    }
}
