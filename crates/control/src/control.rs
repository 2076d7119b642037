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

/// Reads the text of a config as the daemon of that folder would, references and all.
pub type ConfigLoader = Arc<dyn Fn(&Path, &str) -> std::result::Result<Config, ConfigErrors> + Send + Sync>;

/// What the binary gives.
pub struct ControlDependencies {
    pub home: PathBuf,
    pub clock: Arc<dyn WallClock>,
    pub ids: Arc<dyn IdGenerator>,
    /// The program instances run.
    pub program: OsString,
    pub load: ConfigLoader,
    /// The same, and takes every reference to be there without looking.
    pub check: ConfigLoader,
    /// What every instance gets besides, such as where weights are.
    pub environment: Vec<(OsString, OsString)>,
    /// The token of the home's own instance, where that was stated.
    pub home_token: Option<String>,
    /// Keeps secrets of instances.
    pub keep_secret: SecretKeeper,
    /// A running instance that does not answer for this long is ended, and started again if its policy says so; none if
    /// not given.
    pub hung_after: Option<Duration>,
    /// What `~` means in files that are brought in.
    pub user_home: Option<PathBuf>,
}

/// A clone is a pointer.
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
    /// Instances whose start somebody asked for and waits for.
    starting: Mutex<HashSet<InstanceId>>,
    /// Why the last start that somebody asked for failed.
    start_failures: Mutex<HashMap<InstanceId, String>>,
    /// Where this server listens, once it does.
    url: OnceLock<String>,
    own_port: OnceLock<u16>,
    pub(crate) feed: InstanceFeed,
    pub(crate) broker: MessageBroker,
    pub(crate) children: ChildProcesses,
    /// What this server starts is to end with it, or with one that follows if it is killed.
    pub(crate) ends_children: AtomicBool,
    pub(crate) endpoints: EndpointCache,
    pub(crate) instance_dbs: InstanceDbCache,
    pub(crate) token_lifetimes: TokenLifetimes,
    pub(crate) liveness: LivenessProbes,
    /// It was said that the audit does not fit what was noted of it.
    pub(crate) audit_doubted: AtomicBool,
    /// A reason for the supervisor to look at once.
    pub(crate) wake_supervisor: Notify,
    /// One instance is made at a time: ports and names are looked at, then taken.
    pub(crate) creation_lock: tokio::sync::Mutex<()>,
    /// Who changes the config of an instance waits here for their turn.
    pub(crate) config_locks: Mutex<HashMap<InstanceId, Arc<tokio::sync::Mutex<()>>>>,
    /// The turns of configs that are read.
    pub(crate) loads: Arc<tokio::sync::Semaphore>,
    /// Ports of this life of the server that are not what the config says.
    ports: Mutex<HashMap<InstanceId, u16>>,
    _lock: HeldLock,
}

impl Deref for Control {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// Does work that goes on to its end even where whoever asked is gone: a caller that hangs up drops what waits for it,
/// and half a change would stay.
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

/// In the folder of the control plane, held while one runs.
pub const LOCK_FILE: &str = "cp.lock";

impl Control {
    /// Opens the control plane of a home; there is one at a time. Blocks.
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

    /// What a server that died left unfinished.
    pub async fn recover(&self) -> Result<()> {
        self.db.write(idempotency::delete_unfinished).await?;
        self.sweep_unfinished().await?;
        let now = self.now();
        Ok(self.db.write(move |tx| imports::roll_back_unfinished(tx, now)).await?)
    }

    /// Instances are told where to find us, and never get our port.
    pub fn set_listen_address(&self, url: String, port: u16) {
        let _ = self.url.set(url);
        let _ = self.own_port.set(port);
    }

    /// Says so of all that is started from now on.
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

    /// A word nobody can guess.
    pub fn nonce(&self) -> String {
        self.ids.fresh_nonce()
    }

    /// For as long as this server lives, the instance listens there, whatever its config says.
    pub fn override_port(&self, id: &InstanceId, port: u16) {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), port);
    }

    /// Until what is returned is dropped, the instance is being started.
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

/// A start that somebody waits for.
pub(crate) struct StartingGuard {
    control: Control,
    id: InstanceId,
}

impl Drop for StartingGuard {
    fn drop(&mut self) {
        self.control.starting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
