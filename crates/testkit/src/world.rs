//! A complete engine in one value: real store, real background tasks, scripted edges.
//! `World::new().await.send_and_wait("hi").await` sends a message as a person and returns the answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::authority::Authority;
use polyclaw_domain::channel::{ChannelAdapter, ChatAddress};
use polyclaw_domain::config;
use polyclaw_domain::embedding::Embedder;
use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::job::JobState;
use polyclaw_domain::kill_points::FaultInjector;
use polyclaw_domain::port::WallClock;
use polyclaw_domain::provider::{ModelProvider, ModelRef};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::ToolRegistry;
use polyclaw_engine::inbound::InboundRules;
use polyclaw_engine::ingress::{AcceptedMessage, IngressMessage};
use polyclaw_engine::memory::{MemoryLocation, MemoryStore, VectorIndex};
use polyclaw_engine::toolbox::memory::MemoryToolbox;
use polyclaw_engine::{BackgroundTask, Engine, EnginePorts, EngineSettings, Error, TurnAnswer};
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::{Db, TeamDatabases, jobs, messages, sessions};
use tokio::task::JoinSet;

use crate::ports::fake_channel::FakeChannel;
use crate::ports::script::ScriptedProvider;
use crate::ports::{FakeBriefings, KillPointFaults, RecordingToolbox, SequentialIds, SimClock};

/// Everything that survives the death of an engine: the disk and the outside world.
#[derive(Clone)]
pub struct DurableWorld {
    pub db: Db,
    pub ids: Arc<SequentialIds>,
    pub clock: Arc<SimClock>,
    pub tools: Arc<RecordingToolbox>,
    pub briefings: Arc<FakeBriefings>,
    pub fake_channel: Arc<FakeChannel>,
    pub provider: Arc<dyn ModelProvider>,
    pub settings: EngineSettings,
    /// The memory database.
    pub memories: Db,
    /// The embedder of memories. Without one they are found by keyword only.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// The task databases of teams.
    pub ledgers: Arc<TeamDatabases>,
    /// Name of the node. Two worlds on one PostgreSQL database have two names.
    pub node_name: String,
}

impl DurableWorld {
    pub async fn from_db(db: Db, provider: Arc<dyn ModelProvider>) -> Self {
        let mut settings = EngineSettings::with_workspace(PathBuf::from("workspace"));
        settings.default_model = ModelRef::parse("scripted/model").ok();
        let ground = Self {
            db,
            ids: Arc::default(),
            clock: SimClock::start(),
            tools: Arc::default(),
            briefings: Arc::default(),
            fake_channel: FakeChannel::new(false),
            provider,
            settings,
            memories: Db::memory_db_in_memory().expect("a database in memory"),
            embedder: None,
            ledgers: Arc::new(TeamDatabases::in_memory()),
            node_name: "world".to_owned(),
        };
        ground.add_agent("main").await;
        ground
    }

    pub async fn add_agent(&self, id: &str) {
        let spec = AgentSpec::with_id(AgentId::parse(id).expect("an agent id"));
        let now = self.clock.now();
        let write =
            move |tx: &mut polyclaw_store::Tx<'_>| agents::upsert(tx, &spec, AgentSource::Config, now);
        self.db.write(write).await.expect("a database that can be written");
    }

    /// Loads agents and inbound rules from a config.
    pub async fn configure(&mut self, config: &str) {
        let config = config::load(config, "config.toml", &|_| Err("no lookup".to_owned())).expect("a config");
        for spec in config.agents.agent_specs() {
            let now = self.clock.now();
            let write =
                move |tx: &mut polyclaw_store::Tx<'_>| agents::upsert(tx, &spec, AgentSource::Config, now);
            self.db.write(write).await.expect("a database that can be written");
        }
        self.settings.default_agent = config.agents.default_agent_id();
        self.settings.inbound = Arc::new(InboundRules::from_config(&config));
        self.settings.language = config.delivery.language;
    }

    /// Starts an engine on this world.
    pub fn start_engine(&self, faults: Arc<impl FaultInjector + 'static>) -> World {
        let place = MemoryLocation::Open(self.memories.clone());
        let vectors = VectorIndex::new(1 << 24, polyclaw_domain::embedding::dot_product);
        let memory_store =
            MemoryStore::new(place, Arc::clone(&self.clock) as _, Arc::clone(&self.ids) as _, vectors);
        memory_store.set_embedder(self.embedder.clone());
        let memory_store = Arc::new(memory_store);
        let memories = Arc::new(MemoryToolbox::new(Arc::clone(&memory_store)));
        let ports = EnginePorts {
            db: self.db.clone(),
            provider: Arc::clone(&self.provider),
            tools: Arc::new(ToolRegistry::new(vec![Arc::clone(&self.tools) as _, memories])),
            memory_store,
            briefings: Arc::clone(&self.briefings) as _,
            // One platform under two names: `chat` for messages passed in directly, `telegram` for inbound messages.
            channels: ["chat", "telegram"]
                .map(|name| (name.to_owned(), Arc::clone(&self.fake_channel) as Arc<dyn ChannelAdapter>))
                .into(),
            clock: Arc::clone(&self.clock) as _,
            ids: Arc::clone(&self.ids) as _,
            faults,
            ledgers: Arc::clone(&self.ledgers),
        };
        let engine = Engine::new(ports, self.settings.clone(), &self.node_name);
        let mut loops = JoinSet::new();
        for task in BackgroundTask::ALL {
            let engine = engine.clone();
            loops.spawn(async move { engine.run_task(task).await });
        }
        World { engine, ground: self.clone(), loops }
    }
}

pub struct World {
    pub engine: Engine,
    pub ground: DurableWorld,
    loops: JoinSet<()>,
}

/// How long a test waits for an answer that should come immediately.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3_600);

impl World {
    /// Creates an engine on an in-memory database, with a model that echoes.
    pub async fn new() -> Self {
        Self::with_provider(ScriptedProvider::echo()).await
    }

    pub async fn with_provider(provider: Arc<dyn ModelProvider>) -> Self {
        let db = Db::in_memory().expect("a database in memory");
        DurableWorld::from_db(db, provider).await.start_engine(KillPointFaults::no_kill())
    }

    /// Kills the engine. Everything that it had not stored is lost.
    pub async fn kill(mut self) -> DurableWorld {
        self.loops.abort_all();
        while self.loops.join_next().await.is_some() {}
        self.ground.clone()
    }

    pub fn session_key(name: &str) -> SessionKey {
        SessionKey::for_direct(&AgentId::main(), "chat", name)
    }

    pub fn inbound(name: &str, text: &str) -> IngressMessage {
        let address =
            ChatAddress { channel: "chat".into(), account: "test".into(), peer: name.into(), thread: None };
        // Owner rights, because most tests are not about permissions.
        let mut meta = None;
        Authority::Owner.write_to_meta(&mut meta);
        IngressMessage {
            meta,
            ..IngressMessage::from_person(Self::session_key(name), AgentId::main(), address, text)
        }
    }

    pub async fn send_text(&self, name: &str, text: &str) -> Result<AcceptedMessage, Error> {
        self.engine.accept_message(Self::inbound(name, text)).await
    }

    /// Sends a text in the session `me` and returns the answer.
    pub async fn send_and_wait(&self, text: &str) -> TurnAnswer {
        let accepted = self.send_text("me", text).await.expect("accepted");
        self.wait_answer(&accepted).await
    }

    pub async fn wait_answer(&self, accepted: &AcceptedMessage) -> TurnAnswer {
        let answer =
            self.engine.wait_for_answer(&accepted.session_key, &accepted.turn_id, ANSWER_TIMEOUT).await;
        answer.expect("a readable answer").expect("an answer in time")
    }

    pub async fn turn_state(&self, turn: &TurnId) -> JobState {
        let turn = turn.clone();
        let job = self.engine.db().read(move |tx| jobs::get(tx, &turn)).await.expect("readable");
        job.expect("a turn").state
    }

    pub async fn transcript(&self, name: &str) -> Vec<SessionMessage> {
        let key = Self::session_key(name);
        let read = move |tx: &mut polyclaw_store::Tx<'_>| {
            let Some(session) = sessions::get(tx, &key)? else { return Ok(Vec::new()) };
            messages::list_page(tx, &key, &session.id, 0, 10_000)
        };
        self.engine.db().read(read).await.expect("readable")
    }

    /// Waits until nothing is queued, running or being sent.
    pub async fn wait_settled(&self) {
        wait_settled(self.engine.db()).await;
    }
}

/// Waits until a database contains no work except work that waits for a person. Polls, because another engine may be
/// working on it.
pub async fn wait_settled(db: &Db) {
    let mut left = String::new();
    for _ in 0..60_000 {
        let read = |tx: &mut polyclaw_store::Tx<'_>| {
            let unsent = polyclaw_store::outbox::count_unsent(tx)?;
            let jobs = jobs::count_by_state(tx)?;
            let idle = unsent == 0 && all_wait_for_people(tx, &jobs)?;
            Ok((idle, format!("jobs {jobs:?}, unsent {unsent}")))
        };
        let (idle, work) = db.read(read).await.expect("readable");
        if idle {
            return;
        }
        left = work;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("work is left after ten minutes: {left}");
}

fn all_wait_for_people(
    tx: &mut polyclaw_store::Tx<'_>,
    counts: &[(String, i64)],
) -> polyclaw_store::Result<bool> {
    if counts.iter().any(|(state, _)| state == "running") {
        return Ok(false);
    }
    let count = counts.iter().map(|(_, count)| usize::try_from(*count).unwrap_or(0)).sum();
    for job in jobs::list(tx, None, Some(JobState::Queued), count)? {
        if !jobs::is_held_for_person(tx, &job.turn)? {
            return Ok(false);
        }
    }
    Ok(true)
}
