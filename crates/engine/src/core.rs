//! The engine: its ports, its settings and its in-memory state. Everything that must survive a crash is in the
//! database.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use polyclaw_domain::backoff::BackoffPolicy;
use polyclaw_domain::briefing::BriefingSource;
use polyclaw_domain::channel::ChannelAdapter;
use polyclaw_domain::id::{NodeId, TurnId};
use polyclaw_domain::kill_points::{FaultInjector, KillPoint};
use polyclaw_domain::port::{IdGenerator, WallClock};
use polyclaw_domain::provider::ModelProvider;
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::Toolbox;
use polyclaw_store::{Db, TeamDatabases, Tx};
use tokio::sync::{Notify, mpsc};

use crate::agent::WorkspaceCache;
use crate::agent_turns::AgentTurnCounters;
use crate::background::BackgroundTasks;
use crate::context_windows::ContextWindows;
use crate::error::{Error, Result};
use crate::history::HistoryCache;
use crate::hub::Hub;
use crate::inbound::{AccountLeases, ClassifierCache, InFlightMessages, RefusalThrottle};
use crate::lanes::LaneScheduler;
use crate::memory::MemoryStore;
use crate::settings::EngineSettings;
use crate::subagents::{DelegationStats, WaitGraph};
use crate::toolbox::ToolRegistry;
use crate::toolbox::cron::CronTool;
use crate::toolbox::engine_tool::EngineToolbox;
use crate::toolbox::message::MessageTool;
use crate::toolbox::settings::SettingsTool;
use crate::toolbox::subagents::SubagentTool;
use crate::toolbox::team::TeamTool;
use crate::worker::{RunningTurn, TurnStart};

/// Delays between attempts to write what must not be lost.
const WRITE_BACKOFF: BackoffPolicy = BackoffPolicy::new(Duration::from_millis(200), Duration::from_secs(5));

/// Ports: everything the engine needs from outside.
pub struct EnginePorts {
    pub db: Db,
    pub provider: Arc<dyn ModelProvider>,
    pub tools: Arc<dyn Toolbox>,
    pub briefings: Arc<dyn BriefingSource>,
    pub channels: HashMap<String, Arc<dyn ChannelAdapter>>,
    pub clock: Arc<dyn WallClock>,
    pub ids: Arc<dyn IdGenerator>,
    pub faults: Arc<dyn FaultInjector>,
    pub memory_store: Arc<MemoryStore>,
    /// Task databases of teams.
    pub ledgers: Arc<TeamDatabases>,
}

#[derive(Clone)]
pub struct Engine(Arc<Inner>);

pub struct Inner {
    pub(crate) ports: EnginePorts,
    /// All tools: those of the ports and the engine's own.
    tools: ToolRegistry,
    settings: RwLock<Arc<EngineSettings>>,
    /// Name of this node across restarts; a lease of an earlier process is taken over immediately.
    pub(crate) node_name: String,
    pub(crate) node: NodeId,
    pub hub: Hub,
    pub(crate) lanes: Arc<LaneScheduler>,
    pub(crate) history_cache: HistoryCache,
    pub(crate) context_windows: ContextWindows,
    /// Turns that were claimed when their message was stored, on their way to the worker.
    pub(crate) starts: mpsc::UnboundedSender<TurnStart>,
    pub(crate) started: tokio::sync::Mutex<mpsc::UnboundedReceiver<TurnStart>>,
    pub(crate) outbox_wake: Notify,
    /// Cron jobs changed, or the engine is draining.
    pub(crate) cron_wake: Notify,
    pub(crate) running: Mutex<HashMap<TurnId, Arc<RunningTurn>>>,
    draining: AtomicBool,
    drain_began: Notify,
    /// A turn has ended, so a broadcast may advance.
    pub(crate) turn_ended: Notify,
    pub(crate) broadcast_started: Notify,
    /// A run has started whose deadline may be earlier than all others.
    pub(crate) run_started: Notify,
    /// Something happened in a team that the team reconciler must handle.
    pub(crate) team_wake: Notify,
    /// Called before a task is completed and before a member becomes idle.
    pub(crate) team_hooks: std::sync::Mutex<Option<std::sync::Arc<dyn crate::team::TeamHooks>>>,
    /// Teams whose task databases may have events that have not been relayed yet.
    pub(crate) marked_teams: std::sync::Mutex<std::collections::HashSet<polyclaw_domain::id::TeamId>>,
    /// Held while team files are written, so that an older state never overwrites a newer one.
    pub(crate) team_files: tokio::sync::Mutex<crate::team::TeamFileCache>,
    /// The agents changed, so channel command menus must be updated.
    pub(crate) agents_changed: Notify,
    /// Platform accounts that this node holds.
    pub(crate) account_leases: AccountLeases,
    pub(crate) classifier_cache: ClassifierCache,
    /// Where agents work, and who may not.
    pub(crate) workspace_cache: WorkspaceCache,
    pub(crate) refusal_throttle: RefusalThrottle,
    pub(crate) in_flight_messages: InFlightMessages,
    pub(crate) background_tasks: BackgroundTasks,
    /// Counts of delegations between agents.
    pub(crate) delegation_stats: DelegationStats,
    /// Turn counters of each agent.
    pub(crate) turn_counters: AgentTurnCounters,
    /// Which sessions wait for which.
    pub(crate) wait_graph: Arc<WaitGraph>,
}

impl From<Arc<Inner>> for Engine {
    fn from(inner: Arc<Inner>) -> Self {
        Self(inner)
    }
}

impl std::ops::Deref for Engine {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Engine {
    /// `node_name` identifies this node across restarts; for example its home directory.
    pub fn new(ports: EnginePorts, settings: EngineSettings, node_name: &str) -> Self {
        let (starts, started) = mpsc::unbounded_channel();
        let node = NodeId::new(format!("{node_name}/{}", ports.ids.next_id()));
        let others = Arc::clone(&ports.tools);
        ports.memory_store.set_redactor(Arc::clone(&settings.redactor));
        Self(Arc::new_cyclic(|engine| Inner {
            tools: ToolRegistry::new(vec![
                others,
                Arc::new(EngineToolbox::<SettingsTool>::new(engine.clone())),
                Arc::new(EngineToolbox::<SubagentTool>::new(engine.clone())),
                Arc::new(EngineToolbox::<TeamTool>::new(engine.clone())),
                Arc::new(EngineToolbox::<MessageTool>::new(engine.clone())),
                Arc::new(EngineToolbox::<CronTool>::new(engine.clone())),
            ]),
            ports,
            settings: RwLock::new(Arc::new(settings)),
            node_name: node_name.to_owned(),
            node,
            hub: Hub::default(),
            lanes: Arc::default(),
            history_cache: HistoryCache::default(),
            context_windows: ContextWindows::default(),
            starts,
            started: tokio::sync::Mutex::new(started),
            outbox_wake: Notify::new(),
            cron_wake: Notify::new(),
            running: Mutex::default(),
            draining: AtomicBool::new(false),
            drain_began: Notify::new(),
            turn_ended: Notify::new(),
            broadcast_started: Notify::new(),
            run_started: Notify::new(),
            team_wake: Notify::new(),
            team_hooks: std::sync::Mutex::default(),
            marked_teams: std::sync::Mutex::default(),
            team_files: tokio::sync::Mutex::default(),
            agents_changed: Notify::new(),
            account_leases: AccountLeases::default(),
            classifier_cache: ClassifierCache::default(),
            workspace_cache: WorkspaceCache::default(),
            refusal_throttle: RefusalThrottle::default(),
            in_flight_messages: InFlightMessages::default(),
            background_tasks: BackgroundTasks::default(),
            delegation_stats: DelegationStats::default(),
            turn_counters: AgentTurnCounters::default(),
            wait_graph: Arc::default(),
        }))
    }
}

impl Inner {
    pub fn db(&self) -> &Db {
        &self.ports.db
    }

    /// Checkpoints each database into a single file. Blocks; call it when no more work is running.
    pub fn checkpoint_databases(&self) -> crate::error::Result<()> {
        self.db().checkpoint_all()?;
        self.memory_store().checkpoint()
    }

    pub fn now(&self) -> Millis {
        self.ports.clock.now()
    }

    /// A new id that sorts after all earlier ids of this node.
    pub fn next_id(&self) -> String {
        self.ports.ids.next_id()
    }

    /// An unguessable random value.
    pub fn nonce(&self) -> String {
        self.ports.ids.fresh_nonce()
    }

    pub fn settings(&self) -> Arc<EngineSettings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Redactor of secrets for everything that is stored, logged or returned.
    pub fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.settings().redactor)
    }

    /// Replaces the settings. They take effect from the next turn.
    pub fn reload_settings(&self, settings: EngineSettings) {
        self.ports.memory_store.set_redactor(Arc::clone(&settings.redactor));
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        self.context_windows.clear();
        self.cron_wake.notify_one();
        self.invalidate_agent_caches();
    }

    /// Drops everything that is derived from the agents, so that it is rebuilt.
    pub(crate) fn invalidate_agent_caches(&self) {
        self.classifier_cache.clear();
        self.workspace_cache.clear();
        self.agents_changed.notify_one();
    }

    pub fn provider(&self) -> &dyn ModelProvider {
        &*self.ports.provider
    }

    pub fn tools(&self) -> &dyn Toolbox {
        &self.tools
    }

    /// The store of agent memories.
    pub fn memory_store(&self) -> &MemoryStore {
        &self.ports.memory_store
    }

    /// Names of the channels this instance can send to, sorted.
    pub fn channel_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.ports.channels.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    pub fn node(&self) -> &NodeId {
        &self.node
    }

    pub(crate) async fn hit_kill_point(&self, point: KillPoint) {
        self.ports.faults.hit_kill_point(point).await;
    }

    /// Stops accepting and claiming. Running turns release their claim at the next boundary.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.lanes.wake_all();
        self.outbox_wake.notify_one();
        self.cron_wake.notify_one();
        self.drain_began.notify_waiters();
    }

    /// Returns when draining has started.
    pub(crate) async fn wait_for_drain(&self) {
        let began = self.drain_began.notified();
        tokio::pin!(began);
        began.as_mut().enable();
        if !self.is_draining() {
            began.await;
        }
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Writes data that must not be lost. Retries while the disk is full or the database is unavailable, until draining
    /// starts.
    pub(crate) async fn write_with_retry<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> polyclaw_store::Result<T> + Send + Sync + 'static,
    {
        let body = Arc::new(body);
        let mut backoff = WRITE_BACKOFF.start(self.node.as_str());
        loop {
            let attempt = Arc::clone(&body);
            match self.ports.db.write(move |tx| attempt(tx)).await {
                Err(error) if error.is_transient() && !self.is_draining() => {
                    let pause = backoff.next_delay();
                    tracing::error!(%error, ?pause, "database write of a turn step failed; retrying");
                    tokio::time::sleep(pause).await;
                }
                answer => return answer.map_err(Error::from),
            }
        }
    }
}
