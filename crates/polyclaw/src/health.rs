//! The checks of `polyclaw doctor`. A check inspects and judges; it changes nothing.

mod workspace;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::SystemTime;

use polyclaw_api::channels::{ChannelAccountList, ChannelAccountView};
use polyclaw_api::memory::MemoryStatus;
use polyclaw_api::models::ModelList;
use polyclaw_domain::config::Config;
use polyclaw_domain::provider::ModelStatus;
use polyclaw_domain::safety;
use polyclaw_provider::embedded;
use polyclaw_store::integrity;

use crate::accounts;
use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::command::memory::status_sentence;
use crate::command::secrets::CLOSE_KEY_HINT;
use crate::failure::{CommandFailure, FailureExit};
use crate::home::{Home, access_failure, free_space, is_open_to_others};
use crate::model_selection::{DEMO_MODEL_NOTICE, ModelSelection};
use crate::output::visible_line;
use crate::weights::{ALL_WEIGHTS, ModelDir, PULL_AGAIN_HINT, WeightsState};

/// Below this much free space, doctor warns that the database cannot grow for long.
const LOW_DISK_BYTES: u64 = 500 * 1024 * 1024;
const FULL_DISK_BYTES: u64 = 20 * 1024 * 1024;
/// The start of 2025. An earlier clock makes every ID and lease wrong.
const EARLIEST_PLAUSIBLE_UNIX_SECS: u64 = 1_735_689_600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckVerdict {
    Ok,
    Warn,
    Fail,
}

impl CheckVerdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

pub struct HealthCheck {
    pub name: &'static str,
    pub verdict: CheckVerdict,
    pub finding: String,
    pub hint: Option<String>,
}

impl HealthCheck {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, verdict: CheckVerdict::Ok, finding: found.into(), hint: None }
    }

    fn warn(name: &'static str, found: impl Into<String>, hint: &str) -> Self {
        Self { name, verdict: CheckVerdict::Warn, finding: found.into(), hint: Some(hint.to_owned()) }
    }

    fn fail(name: &'static str, found: impl Into<String>, hint: &str) -> Self {
        Self { verdict: CheckVerdict::Fail, ..Self::warn(name, found, hint) }
    }

    fn from_failure(name: &'static str, failure: CommandFailure) -> Self {
        Self { name, verdict: CheckVerdict::Fail, finding: failure.message, hint: failure.hint }
    }
}

/// Creates missing files and restricts permissions to the owner.
pub fn fix_home(home: &Home) -> Result<(), CommandFailure> {
    home.create_missing()?;
    home.ensure_token()?;
    let private = [home.token_file(), home.secrets_key(), home.secrets_file()].map(|path| (path, 0o600));
    for (path, mode) in [(home.path().to_owned(), 0o700)].into_iter().chain(private) {
        if path.exists() {
            let closed = fs::set_permissions(&path, fs::Permissions::from_mode(mode));
            closed.map_err(|error| access_failure(&path, &error))?;
        }
    }
    Ok(())
}

pub async fn run_all_checks(context: &CommandContext) -> Vec<HealthCheck> {
    let home = &context.home;
    // A running daemon resolved its config in its own environment, which this process does not have.
    let config = if home.is_daemon_running() { home.read_unresolved_config() } else { home.read_config() };
    let mut checks = vec![
        check_home_folder(home),
        check_disk(home),
        check_clock(),
        check_token(home),
        check_config(home, &config),
    ];
    let config = config.unwrap_or_default();
    checks.extend(workspace::check_folders(home, &config));
    checks.extend(unsafe_settings(&config));
    checks.push(check_sqlite());
    if config.store.url.is_none() {
        checks.push(check_database(home));
    }
    let (daemon, models) = check_daemon(context).await;
    let is_up = daemon.verdict == CheckVerdict::Ok;
    checks.push(daemon);
    if is_up {
        checks.extend(check_channels(context).await);
    }
    if !config.mcp.servers.is_empty() {
        checks.push(check_mcp(context, &config).await);
    }
    checks.push(check_model(home, &config, models.as_ref()).await);
    checks.push(check_memory(context).await);
    checks.extend(check_weights(home));
    checks.extend(check_secrets_key(home));
    checks
}

/// Returns one check for each unsafe setting.
fn unsafe_settings(config: &Config) -> Vec<HealthCheck> {
    let found = safety::config_warnings(config, rustix::process::geteuid().is_root());
    found.into_iter().map(|found| HealthCheck::warn("safety", found.message, &found.hint)).collect()
}

fn check_home_folder(home: &Home) -> HealthCheck {
    let path = home.path();
    let Ok(meta) = fs::metadata(path) else {
        return HealthCheck::warn(
            "home",
            format!("{} does not exist yet", path.display()),
            "`polyclaw up` creates it",
        );
    };
    if rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_err() {
        return HealthCheck::fail(
            "home",
            format!("cannot write to {}", path.display()),
            "check its owner and mode",
        );
    }
    match meta.mode() & 0o077 {
        0 => HealthCheck::ok("home", path.display().to_string()),
        _ => HealthCheck::warn(
            "home",
            format!("other users can access {}", path.display()),
            "`polyclaw doctor --fix` restricts it",
        ),
    }
}

fn check_disk(home: &Home) -> HealthCheck {
    let Some(free) = free_space(home.path()) else {
        return HealthCheck::warn("disk", "the free space is unknown", "");
    };
    let found = format!("{} MiB free", free / (1024 * 1024));
    match free {
        0..FULL_DISK_BYTES => {
            HealthCheck::fail("disk", found, "free some space: no message can be accepted on a full disk")
        }
        FULL_DISK_BYTES..LOW_DISK_BYTES => {
            HealthCheck::warn("disk", found, "free some space before it is full")
        }
        _ => HealthCheck::ok("disk", found),
    }
}

fn check_clock() -> HealthCheck {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    if now > EARLIEST_PLAUSIBLE_UNIX_SECS {
        HealthCheck::ok(
            "clock",
            polyclaw_domain::time::Millis(i64::try_from(now * 1000).unwrap_or(0)).to_string(),
        )
    } else {
        HealthCheck::fail("clock", "the clock is years behind", "set the system's time")
    }
}

fn check_token(home: &Home) -> HealthCheck {
    if std::env::var("POLYCLAW_TOKEN").is_ok_and(|token| !token.is_empty()) {
        return HealthCheck::ok("token", "from POLYCLAW_TOKEN");
    }
    match fs::metadata(home.token_file()) {
        Err(_) => HealthCheck::warn("token", "not created yet", "`polyclaw up` creates it"),
        Ok(meta) if meta.mode() & 0o077 != 0 => HealthCheck::fail(
            "token",
            "other users can read it",
            "`polyclaw doctor --fix` restricts it; then create a new one",
        ),
        Ok(_) => HealthCheck::ok("token", home.token_file().display().to_string()),
    }
}

fn check_config(home: &Home, config: &Result<Config, CommandFailure>) -> HealthCheck {
    match config {
        Ok(config) => HealthCheck::ok(
            "config",
            format!("{}, {} agent(s)", home.config_file().display(), config.agents.agent_specs().len()),
        ),
        Err(failure) => HealthCheck::from_failure("config", failure.clone()),
    }
}

fn check_sqlite() -> HealthCheck {
    match integrity::check_linked_sqlite() {
        Ok(version) => HealthCheck::ok("sqlite", version),
        Err(error) => HealthCheck::from_failure("sqlite", error.into()),
    }
}

fn check_database(home: &Home) -> HealthCheck {
    let path = home.database_file();
    if !path.exists() {
        return HealthCheck::warn("database", "not created yet", "`polyclaw up` creates it");
    }
    match integrity::check_main_file(&path) {
        Ok(problems) if problems.is_empty() => HealthCheck::ok("database", path.display().to_string()),
        Ok(problems) => HealthCheck::fail("database", problems.join("; "), "restore it from a backup"),
        Err(error) => HealthCheck::from_failure("database", error.into()),
    }
}

/// Checks the memory file and how memories are searched.
async fn check_memory(context: &CommandContext) -> HealthCheck {
    let path = context.home.memory_database();
    if path.exists() {
        match integrity::check_memory_file(&path) {
            Ok(problems) if problems.is_empty() => {}
            Ok(problems) => {
                return HealthCheck::fail("memory", problems.join("; "), "restore brain.db from a backup");
            }
            Err(error) => return HealthCheck::from_failure("memory", error.into()),
        }
    }
    let status = match ApiClient::new(context) {
        Ok(client) => client.get_as::<MemoryStatus>("/memory/status").await.ok(),
        Err(_) => None,
    };
    match status {
        Some(status) if status.error.is_some() => HealthCheck::fail(
            "memory",
            status_sentence(&status),
            "fix this; embeddings are computed as soon as it works again",
        ),
        Some(status) if status.embeddings.is_some() => HealthCheck::ok("memory", status_sentence(&status)),
        Some(status) => HealthCheck::warn(
            "memory",
            format!("{} memories (keyword search only)", status.memories),
            "`polyclaw model pull all-minilm-l6-v2`",
        ),
        None if path.exists() => HealthCheck::ok("memory", path.display().to_string()),
        None => HealthCheck::ok("memory", "no memories yet"),
    }
}

/// Reports damaged model weights. Intact or missing weights are not mentioned, because they are optional.
fn check_weights(home: &Home) -> Option<HealthCheck> {
    let models = ModelDir::for_home(home);
    let damaged =
        ALL_WEIGHTS.iter().filter(|weights| models.verified_state(weights) == WeightsState::Damaged);
    let names: Vec<&str> = damaged.map(|weights| weights.name).collect();
    let found = || format!("damaged: {}", names.join(", "));
    (!names.is_empty()).then(|| HealthCheck::fail("weights", found(), PULL_AGAIN_HINT))
}

/// Checks the permissions of the secret key, if it is a file.
fn check_secrets_key(home: &Home) -> Option<HealthCheck> {
    let is_open = is_open_to_others(&home.secrets_key());
    is_open
        .then(|| HealthCheck::fail("secrets", "other users can read the key of the secrets", CLOSE_KEY_HINT))
}

async fn check_daemon(context: &CommandContext) -> (HealthCheck, Option<ModelList>) {
    let client = match ApiClient::new(context) {
        Ok(client) => client,
        Err(failure) => return (HealthCheck::from_failure("daemon", failure), None),
    };
    match client.get_as("/models").await {
        Ok(models) => (HealthCheck::ok("daemon", format!("responds at {}", client.url())), Some(models)),
        Err(failure) if failure.exit == FailureExit::Unavailable => {
            (HealthCheck::warn("daemon", failure.message, "start it with `polyclaw up`"), None)
        }
        Err(failure) => (HealthCheck::from_failure("daemon", failure), None),
    }
}

/// Checks each chat account as the daemon reports it.
async fn check_channels(context: &CommandContext) -> Vec<HealthCheck> {
    let listed = match ApiClient::new(context) {
        Ok(client) => client.get_as::<ChannelAccountList>("/channels").await,
        Err(failure) => Err(failure),
    };
    let listed = match listed {
        Ok(listed) => listed,
        Err(failure) => return vec![HealthCheck::from_failure("channel", failure)],
    };
    let check = |account: &ChannelAccountView| {
        if accounts::is_disconnected(account) {
            HealthCheck::fail(
                "channel",
                accounts::account_line(account),
                "fix its section in config.toml and restart the daemon; see docs/guide/channels.md",
            )
        } else {
            HealthCheck::ok("channel", accounts::account_line(account))
        }
    };
    listed.channels.iter().map(check).collect()
}

/// Probes each MCP server now, and warns about servers that no agent uses.
async fn check_mcp(context: &CommandContext, config: &Config) -> HealthCheck {
    let states = match crate::command::mcp::probe_servers(context, None).await {
        Ok(states) => states,
        Err(failure) => return HealthCheck::from_failure("mcp", failure),
    };
    let down = states.iter().filter_map(|state| Some(format!("{}: {}", state.name, state.error.as_ref()?)));
    let down: Vec<String> = down.collect();
    if !down.is_empty() {
        let hint = "run its command by hand, or check its section in config.toml";
        return HealthCheck::fail("mcp", visible_line(&down.join("; ")), hint);
    }
    let specs = config.agents.agent_specs();
    let is_named = |name: &str| specs.iter().any(|spec| spec.mcp.iter().any(|one| one == "*" || one == name));
    let idle: Vec<&str> =
        states.iter().map(|state| state.name.as_str()).filter(|name| !is_named(name)).collect();
    let found = states
        .iter()
        .map(|state| format!("{} ({} tools)", state.name, state.tools.len()))
        .collect::<Vec<_>>();
    if idle.is_empty() {
        HealthCheck::ok("mcp", found.join(", "))
    } else {
        HealthCheck::warn(
            "mcp",
            format!("{}; no agent in the config lists {}", found.join(", "), idle.join(", ")),
            "add it to an agent's mcp = […]: agents have only the tools of servers that they list",
        )
    }
}

/// Checks the model that the daemon uses, or the one it would choose if none runs.
async fn check_model(home: &Home, config: &Config, models: Option<&ModelList>) -> HealthCheck {
    let mut choice = ModelSelection::from_config(config, |name| std::env::var(name).ok());
    if choice.model.is_none() && models.is_none() {
        choice.search_local_servers(&ModelDir::for_home(home)).await;
    }
    let in_use = models.and_then(|models| models.default_model.as_ref()).map(ToString::to_string);
    let Some(chosen) = in_use.or_else(|| choice.model.as_ref().map(ToString::to_string)) else {
        return HealthCheck::warn("model", "none", &choice.describe_selection());
    };
    let mut listed = models.into_iter().flat_map(|models| &models.models);
    let status = listed.find(|model| model.model.to_string() == chosen).map(|model| model.status);
    match status {
        Some(ModelStatus::Unreachable) => HealthCheck::fail(
            "model",
            format!("cannot reach {chosen}"),
            "start its server, or check its base_url in config.toml",
        ),
        Some(ModelStatus::Damaged) => {
            HealthCheck::fail("model", format!("cannot load {chosen}"), PULL_AGAIN_HINT)
        }
        Some(ModelStatus::Cooling) => {
            HealthCheck::warn("model", format!("{chosen} failed recently"), "`polyclaw events` shows why")
        }
        _ if chosen == embedded::chat_model().to_string() => HealthCheck::warn(
            "model",
            format!("{chosen}: degraded, a demo model"),
            &format!("this is {DEMO_MODEL_NOTICE}"),
        ),
        _ => HealthCheck::ok("model", chosen),
    }
}
