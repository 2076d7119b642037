//! The control plane of one home.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use polyclaw_domain::config::{Config, ConfigErrors};
use polyclaw_domain::id::InstanceId;
use polyclaw_domain::port::{IdGenerator, WallClock};
use polyclaw_domain::time::Millis;
use polyclaw_store::Db;
use polyclaw_store::registry::{idempotency, imports};
use tokio::sync::Notify;
use tracing::Instrument as _;

use crate::access::TokenLifetimes;
use crate::child::ChildProcesses;
use crate::config::MAX_LOADS;
use crate::error::{Error, Result};
use crate::file;
use crate::import::SecretKeeper;
use crate::instance_client::EndpointCache;
use crate::liveness::LivenessProbes;
use crate::lock::{self, HeldLock};
use crate::message::MessageBroker;
use crate::observe::InstanceDbCache;
use crate::view::InstanceFeed;

/// Loads the text of a config as the daemon of that folder would, including references.
pub type ConfigLoader = Arc<dyn Fn(&Path, &str) -> std::result::Result<Config, ConfigErrors> + Send + Sync>;

/// Dependencies that the binary passes in.
pub struct ControlDependencies {
    pub home: PathBuf,
    pub clock: Arc<dyn WallClock>,
    pub ids: Arc<dyn IdGenerator>,
    /// The program that instances run.
    pub program: OsString,
    pub load: ConfigLoader,
    /// Like `load`, but assumes that every reference resolves without reading it.
    pub check: ConfigLoader,
    /// Extra environment variables for every instance, such as the model directory.
    pub environment: Vec<(OsString, OsString)>,
    /// The token of the home instance, if one is configured.
    pub home_token: Option<String>,
    /// Stores secrets of instances.
    pub keep_secret: SecretKeeper,
    /// A running instance that does not answer for this long is killed, and restarted if its restart policy allows.
    /// `None` disables this.
    pub hung_after: Option<Duration>,
    /// The folder that `~` stands for in imported files.
    pub user_home: Option<PathBuf>,
}

/// The control plane of a home. Cloning copies a pointer.
#[derive(Clone)]
pub struct Control(Arc<Inner>);

pub struct Inner {
    pub home: PathBuf,
    pub(crate) db: Db,
    pub(crate) clock: Arc<dyn WallClock>,
    pub(crate) ids: Arc<dyn IdGenerator>,
    pub(crate) program: OsString,
    pub(crate) load: ConfigLoader,
    pub(crate) check: ConfigLoader,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) home_token: Option<String>,
    pub(crate) keep_secret: SecretKeeper,
    pub(crate) user_home: Option<PathBuf>,
    pub(crate) hung_after: Option<Duration>,
    /// Instances that are being started on request.
    starting: Mutex<HashSet<InstanceId>>,
    /// Why the last requested start of an instance failed.
    start_failures: Mutex<HashMap<InstanceId, String>>,
    /// The URL this server listens on, once it does.
    url: OnceLock<String>,
    own_port: OnceLock<u16>,
    pub(crate) feed: InstanceFeed,
    pub(crate) broker: MessageBroker,
    pub(crate) children: ChildProcesses,
    /// Whether instances started by this server end with it, or with its successor if it is killed.
    pub(crate) ends_children: AtomicBool,
    pub(crate) endpoints: EndpointCache,
    pub(crate) instance_dbs: InstanceDbCache,
    pub(crate) token_lifetimes: TokenLifetimes,
    pub(crate) liveness: LivenessProbes,
    /// Whether the mismatch between the audit log and `cp/audit.head` was already logged.
    pub(crate) audit_doubted: AtomicBool,
    /// Wakes the supervisor before its next interval.
    pub(crate) wake_supervisor: Notify,
    /// Serializes instance creation, because ports and names are checked before they are taken.
    pub(crate) creation_lock: tokio::sync::Mutex<()>,
    /// Serializes config writers of an instance.
    pub(crate) config_locks: Mutex<HashMap<InstanceId, Arc<tokio::sync::Mutex<()>>>>,
    /// Limits concurrent config loads.
    pub(crate) loads: Arc<tokio::sync::Semaphore>,
    /// Ports that override the config for the lifetime of this server.
    ports: Mutex<HashMap<InstanceId, u16>>,
    _lock: HeldLock,
}

impl Deref for Control {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// Runs work to completion even if the caller goes away. A client that disconnects drops its future, which would
/// leave a change half applied.
pub async fn run_to_completion<T, E>(
    work: impl Future<Output = std::result::Result<T, E>> + Send + 'static,
) -> std::result::Result<T, E>
where
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let done = tokio::spawn(work.in_current_span()).await;
    done.unwrap_or_else(|error| Err(Error::Failed(error.to_string()).into()))
}

/// The lock file in the folder of the control plane, held while one runs.
pub const LOCK_FILE: &str = "cp.lock";

impl Control {
    /// Opens the control plane of a home. Only one can be open at a time. Blocks.
    pub fn open(setup: ControlDependencies) -> Result<Self> {
        let folder = setup.home.join("cp");
        let made = file::make_private(&folder.join("instances"));
        made.map_err(|error| Error::from_io(&folder, &error))?;
        let lock =
            lock::try_acquire(&folder.join(LOCK_FILE)).map_err(|error| Error::from_io(&folder, &error))?;
        let lock = lock.ok_or_else(|| Error::ServerRunning(setup.home.display().to_string()))?;
        let db = Db::open_registry(&folder.join("registry.db"))?;
        Ok(Self(Arc::new(Inner {
            home: setup.home,
            db,
            clock: setup.clock,
            ids: setup.ids,
            program: setup.program,
            load: setup.load,
            check: setup.check,
            environment: setup.environment,
            home_token: setup.home_token,
            keep_secret: setup.keep_secret,
            user_home: setup.user_home,
            hung_after: setup.hung_after,
            starting: Mutex::default(),
            start_failures: Mutex::default(),
            url: OnceLock::new(),
            own_port: OnceLock::new(),
            feed: InstanceFeed::new(),
            broker: MessageBroker::new(),
            children: ChildProcesses::default(),
            ends_children: AtomicBool::new(false),
            endpoints: EndpointCache::default(),
            instance_dbs: InstanceDbCache::default(),
            token_lifetimes: TokenLifetimes::default(),
            liveness: LivenessProbes::default(),
            audit_doubted: AtomicBool::new(false),
            wake_supervisor: Notify::new(),
            creation_lock: tokio::sync::Mutex::default(),
            config_locks: Mutex::default(),
            loads: Arc::new(tokio::sync::Semaphore::new(MAX_LOADS)),
            ports: Mutex::default(),
            _lock: lock,
        })))
    }

    /// Cleans up after a server that died: unfinished idempotent requests, instance folders and imports.
    pub async fn recover(&self) -> Result<()> {
        self.db.write(idempotency::delete_unfinished).await?;
        self.sweep_unfinished().await?;
        let now = self.now();
        Ok(self.db.write(move |tx| imports::roll_back_unfinished(tx, now)).await?)
    }

    /// Sets the URL that instances are given, and the port that none of them may use.
    pub fn set_listen_address(&self, url: String, port: u16) {
        let _ = self.url.set(url);
        let _ = self.own_port.set(port);
    }

    /// Makes instances started from now on end with this server.
    pub fn set_ends_children(&self) {
        self.ends_children.store(true, Ordering::Relaxed);
    }

    pub(crate) fn listen_url(&self) -> Option<&str> {
        self.url.get().map(String::as_str)
    }

    pub(crate) fn own_port(&self) -> Option<u16> {
        self.own_port.get().copied()
    }

    pub fn db(&self) -> &Db {
        &self.db
    }

    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    /// Returns an unguessable string.
    pub fn nonce(&self) -> String {
        self.ids.fresh_nonce()
    }

    /// Makes the instance listen on this port for the lifetime of this server, whatever its config says.
    pub fn override_port(&self, id: &InstanceId, port: u16) {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), port);
    }

    /// Marks the instance as starting until the guard is dropped.
    pub(crate) fn mark_starting(&self, id: &InstanceId) -> StartingGuard {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        StartingGuard { control: self.clone(), id: id.clone() }
    }

    pub(crate) fn record_start_result(&self, id: &InstanceId, failure: Option<String>) {
        let mut failures = self.start_failures.lock().unwrap_or_else(PoisonError::into_inner);
        match failure {
            Some(why) => failures.insert(id.clone(), why),
            None => failures.remove(id),
        };
    }

    pub(crate) fn start_failure(&self, id: &InstanceId) -> Option<String> {
        self.start_failures.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    pub(crate) fn is_starting(&self, id: &InstanceId) -> bool {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
    }

    pub(crate) fn overridden_port(&self, id: &InstanceId) -> Option<u16> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied()
    }
}

/// Marks an instance as starting while it lives.
pub(crate) struct StartingGuard {
    control: Control,
    id: InstanceId,
}

impl Drop for StartingGuard {
    fn drop(&mut self) {
        self.control.starting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
