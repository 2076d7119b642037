//! The home of an instance: its paths, their creation at the first start, and their permissions.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use polyclaw_control::{InstancePaths, file, lock};
use polyclaw_domain::agent::{OVERLAP_HINT, find_overlaps};
use polyclaw_domain::config::{self, Config, ConfigError, ConfigErrors, ExternalReference};
use polyclaw_domain::hex::encode_hex;

use crate::failure::{CommandFailure, FailureExit};
use crate::ids::random_bytes;
use crate::keyring;
use crate::secrets::SecretStore;

/// Readable by the owner only, because files hold secrets and conversations.
const FILE_MODE: u32 = file::FILE_MODE;
/// Names the model directory that several instances share.
pub const MODELS_DIR_ENV: &str = "POLYCLAW_MODELS";

#[derive(Clone, Debug)]
pub struct Home(PathBuf);

impl Home {
    /// Returns `POLYCLAW_HOME`, else `~/.polyclaw`.
    pub fn locate() -> Result<Self, CommandFailure> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let path = set("POLYCLAW_HOME").or_else(|| set("HOME").map(|home| home.join(".polyclaw")));
        let path = path.ok_or_else(|| {
            CommandFailure::usage("neither POLYCLAW_HOME nor HOME is set")
                .hint("set POLYCLAW_HOME to a folder")
        })?;
        let absolute = std::path::absolute(&path).unwrap_or(path);
        // Sandboxed programs see the home's real path, but perhaps not a symlink to it.
        Ok(Self(absolute.canonicalize().unwrap_or(absolute)))
    }

    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn config_file(&self) -> PathBuf {
        InstancePaths::from_folder(self.0.clone()).config_file()
    }

    pub fn token_file(&self) -> PathBuf {
        self.0.join("token")
    }

    /// The encrypted secrets.
    pub fn secrets_file(&self) -> PathBuf {
        self.0.join("secrets.json")
    }

    /// The key of the secrets, if the system has no keyring.
    pub fn secrets_key(&self) -> PathBuf {
        self.0.join("secrets.key")
    }

    pub fn workspace_dir(&self) -> PathBuf {
        self.0.join("workspace")
    }

    /// Skills for all agents.
    pub fn skills_dir(&self) -> PathBuf {
        self.0.join("skills")
    }

    pub fn memory_dir(&self) -> PathBuf {
        self.0.join("memory")
    }

    pub fn database_file(&self) -> PathBuf {
        self.memory_dir().join("sessions.db")
    }

    /// The memories of agents.
    pub fn memory_database(&self) -> PathBuf {
        self.memory_dir().join("brain.db")
    }

    /// Temporary folders of single program runs.
    pub fn temporary_dir(&self) -> PathBuf {
        self.0.join("tmp")
    }

    /// Weights of the built-in models. `POLYCLAW_MODELS` overrides it if instances share them.
    pub fn models_dir(&self) -> PathBuf {
        let shared = std::env::var_os(MODELS_DIR_ENV).filter(|path| !path.is_empty());
        shared.map_or_else(|| self.0.join("models"), PathBuf::from)
    }

    /// The control plane's files.
    pub fn control_dir(&self) -> PathBuf {
        self.0.join("cp")
    }

    /// Transcripts of removed sessions.
    pub fn archive_dir(&self) -> PathBuf {
        self.0.join("archive")
    }

    /// Teams, their tasks and messages.
    pub fn teams_dir(&self) -> PathBuf {
        self.0.join("teams")
    }

    pub fn chat_history(&self) -> PathBuf {
        self.0.join("chat_history")
    }

    pub fn pid_file(&self) -> PathBuf {
        self.0.join("daemon.pid")
    }

    /// URL of the running daemon, for clients on this machine.
    pub fn url_file(&self) -> PathBuf {
        self.0.join("daemon.url")
    }

    pub fn log_file(&self) -> PathBuf {
        self.0.join("daemon.log")
    }

    /// Creates missing files and folders. Existing ones are not changed.
    pub fn create_missing(&self) -> Result<(), CommandFailure> {
        for folder in [self.0.clone(), self.workspace_dir(), self.memory_dir()] {
            make_private(&folder)?;
        }
        let config = self.config_file();
        if !config.exists() {
            write_private(&config, config::first_run_text())
                .map_err(|error| access_failure(&config, &error))?;
        }
        Ok(())
    }

    /// Makes this process the only daemon of the home until the lock is dropped or the process dies.
    pub fn lock_for_daemon(&self) -> Result<HomeLock, CommandFailure> {
        let path = self.lock_file();
        let held = lock::try_acquire(&path)
            .map_err(|error| access_failure(&path, &error))?
            .ok_or_else(|| self.already_running())?;
        let pid = self.pid_file();
        write_note(&pid, &format!("{}\n", std::process::id()))
            .map_err(|error| access_failure(&pid, &error))?;
        Ok(HomeLock { _held: held, left: vec![pid, self.url_file()] })
    }

    fn already_running(&self) -> CommandFailure {
        let pid = self.daemon_pid().map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
        let home = self.0.display();
        CommandFailure::new(
            FailureExit::Conflict,
            "already_running",
            format!("a daemon (pid {pid}) already runs on {home}"),
        )
        .hint("stop it, or set POLYCLAW_HOME to another home")
    }

    /// Returns the daemon's process ID as last written. The process may have died since.
    pub fn daemon_pid(&self) -> Option<u32> {
        fs::read_to_string(self.pid_file()).ok()?.trim().parse().ok()
    }

    fn lock_file(&self) -> PathBuf {
        self.0.join("daemon.lock")
    }

    /// Returns whether a daemon of this home runs. If none does, another program may have its port.
    pub fn is_daemon_running(&self) -> bool {
        lock::is_held(&self.lock_file())
    }

    /// Returns the token from `POLYCLAW_TOKEN`, else from the file.
    pub fn read_token(&self) -> Option<String> {
        let stored = || fs::read_to_string(self.token_file()).ok().and_then(|token| usable_token(&token));
        stated_token().or_else(stored)
    }

    /// Returns the token, creating it at the first start.
    pub fn ensure_token(&self) -> Result<String, CommandFailure> {
        self.read_token().map_or_else(|| make_token(&self.token_file()), Ok)
    }

    /// Returns this node's name. It stays the same across restarts, so that the node recognizes its earlier
    /// processes.
    pub fn node_name(&self) -> Result<String, CommandFailure> {
        let path = self.0.join("node");
        let stored = fs::read_to_string(&path).unwrap_or_default().trim().to_owned();
        if !stored.is_empty() {
            return Ok(stored);
        }
        let name = format!("node-{}", encode_hex(&random_bytes::<6>()));
        write_private(&path, &format!("{name}\n")).map_err(|error| access_failure(&path, &error))?;
        Ok(name)
    }

    /// Reads the config. A home without a config file has the defaults.
    pub fn read_config(&self) -> Result<Config, CommandFailure> {
        let text = self.read_config_text()?;
        self.load_config(&text).map_err(|errors| bad_config(&errors))
    }

    /// Reads the config without resolving secrets that only the daemon's environment has.
    pub fn read_unresolved_config(&self) -> Result<Config, CommandFailure> {
        let text = self.read_config_text()?;
        self.load_unresolved(&text).map_err(|errors| bad_config(&errors))
    }

    fn read_config_text(&self) -> Result<String, CommandFailure> {
        let path = self.config_file();
        if let [one, other, ..] = &*InstancePaths::from_folder(self.0.clone()).list_config_files() {
            let what = format!("there are two configs: {} and {}", one.display(), other.display());
            return Err(
                CommandFailure::failed("bad_config", what).hint("keep one of them and remove the other")
            );
        }
        match file::read_text(&path, file::MAX_CONFIG_BYTES) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let what = format!("{} is not valid UTF-8", path.display());
                Err(CommandFailure::failed("bad_config", what).hint("save it as UTF-8"))
            }
            Err(error) => Err(access_failure(&path, &error)),
        }
    }

    /// Parses a config text, assuming that every reference resolves.
    pub fn check_config(&self, text: &str) -> Result<Config, ConfigErrors> {
        let file = self.config_file().display().to_string();
        let loaded =
            config::load(text, &file, &|_: ExternalReference<'_>| Ok(UNRESOLVED_ADDRESS.to_owned()))?;
        self.check_workspaces(loaded)
    }

    /// Returns the config unless the workspace of one agent is inside that of another. The paths as written were checked
    /// when the file was read; this check follows links.
    fn check_workspaces(&self, config: Config) -> Result<Config, ConfigErrors> {
        let folders = config.agents.workspace_folders(&self.workspace_dir());
        let real = folders.into_iter().map(|(id, folder)| (id, polyclaw_folder::resolve_existing(&folder)));
        let overlaps = find_overlaps(&real.collect());
        let errors = overlaps.iter().map(|overlap| ConfigError {
            file: self.config_file().display().to_string(),
            line: None,
            path: config.agents.overlap_path(overlap),
            message: overlap.to_string(),
            hint: Some(OVERLAP_HINT.to_owned()),
        });
        let errors: Vec<ConfigError> = errors.collect();
        if errors.is_empty() { Ok(config) } else { Err(ConfigErrors(errors)) }
    }

    /// Parses a config text and resolves every reference.
    pub fn load_config(&self, text: &str) -> Result<Config, ConfigErrors> {
        let file = self.config_file().display().to_string();
        // Opened once, and only if the config refers to a stored secret.
        let stored = std::cell::LazyCell::new(|| SecretStore::for_home(self).open_all());
        let look_up = |source: ExternalReference<'_>| match source {
            ExternalReference::Stored(name) => match &*stored {
                Ok(stored) => stored
                    .get(name)
                    .map(|value| value.expose().to_owned())
                    .ok_or_else(|| "it is not stored in this home".to_owned()),
                Err(failure) => Err(failure.message.clone()),
            },
            other => resolve_source(other),
        };
        self.check_workspaces(config::load_with_unknown_agents(text, &file, &look_up)?)
    }

    /// Parses a config text for an edit of the file. References that only the daemon's environment can resolve get a
    /// placeholder; the daemon resolves them at a start or reload.
    pub fn load_unresolved(&self, text: &str) -> Result<Config, ConfigErrors> {
        let file = self.config_file().display().to_string();
        let look_up = |source: ExternalReference<'_>| {
            Ok(resolve_source(source).unwrap_or_else(|_| UNRESOLVED_TOKEN.to_owned()))
        };
        self.check_workspaces(config::load_with_unknown_agents(text, &file, &look_up)?)
    }
}

fn bad_config(errors: &ConfigErrors) -> CommandFailure {
    CommandFailure::failed("bad_config", errors.to_string())
        .hint("fix the lines above; `polyclaw config check` checks the file without starting")
}

/// Placeholder for an unresolved value. It has the form of a platform token.
const UNRESOLVED_TOKEN: &str = "1:unresolved";

/// Held while the daemon runs. Dropping it removes the files that tell clients where the daemon is.
pub struct HomeLock {
    _held: lock::HeldLock,
    left: Vec<PathBuf>,
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        for path in &self.left {
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns the token from the environment.
pub fn stated_token() -> Option<String> {
    std::env::var("POLYCLAW_TOKEN").ok().and_then(|token| usable_token(&token))
}

fn usable_token(token: &str) -> Option<String> {
    Some(token.trim().to_owned()).filter(|token| !token.is_empty())
}

/// Creates a folder that only its owner can access, with missing parents.
pub fn make_private(folder: &Path) -> Result<(), CommandFailure> {
    file::make_private(folder).map_err(|error| access_failure(folder, &error))
}

/// Writes a file atomically. Only its owner can read it.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    file::write_atomically(path, text.as_bytes())
}

/// Creates a random token in a file of its own.
pub fn make_token(path: &Path) -> Result<String, CommandFailure> {
    let token = encode_hex(&random_bytes::<32>());
    write_private(path, &format!("{token}\n")).map_err(|error| access_failure(path, &error))?;
    Ok(token)
}

/// Writes an owner-only file without waiting for the disk. For content that is worthless after a crash.
pub fn write_note(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(FILE_MODE).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(FILE_MODE))?;
    file.write_all(text.as_bytes())
}

/// Placeholder for an unresolved reference. Valid as text and as a URL.
const UNRESOLVED_ADDRESS: &str = "http://unresolved.invalid";

fn resolve_source(source: ExternalReference<'_>) -> Result<String, String> {
    match source {
        ExternalReference::Env(name) => std::env::var(name).map_err(|_| "is not set".to_owned()),
        ExternalReference::File(path) => {
            file::read_text(Path::new(path), file::MAX_SMALL_FILE_BYTES).map_err(|error| error.to_string())
        }
        ExternalReference::Keyring(name) => {
            keyring::find_entry(name)?.ok_or_else(|| "there is no such entry".to_owned())
        }
        ExternalReference::Stored(_) => Err("it is not stored in this home".to_owned()),
    }
}

pub fn access_failure(path: &Path, error: &io::Error) -> CommandFailure {
    let what = format!("{}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            CommandFailure::new(FailureExit::Unavailable, "disk_full", format!("the disk is full: {what}"))
                .hint("free some space and restart")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            CommandFailure::failed("home_read_only", format!("cannot write to the home: {what}"))
                .hint("check its owner and mode, or set POLYCLAW_HOME to another folder")
        }
        _ => CommandFailure::failed("home_unusable", format!("cannot use the home: {what}"))
            .hint("POLYCLAW_HOME must be a folder that can be created and written"),
    }
}

/// Returns whether anybody but the owner has any permission on a file.
pub fn is_open_to_others(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0)
}

/// Returns the free bytes of the disk that holds a path. The path need not exist.
pub fn free_space(path: &Path) -> Option<u64> {
    let place = path.ancestors().find(|place| place.exists()).unwrap_or(Path::new("/"));
    rustix::fs::statvfs(place).ok().map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// How long a client waits for a daemon that it started.
pub const DAEMON_START_TIMEOUT: Duration = Duration::from_secs(10);
