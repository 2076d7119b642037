//! The composition root: one instance, put together from its home.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use polyclaw_channel::discord::{self, DiscordAdapter};
use polyclaw_channel::matrix::{self, MatrixAdapter};
use polyclaw_channel::slack::{self, SlackAdapter};
use polyclaw_channel::telegram::{self, TelegramAdapter};
use polyclaw_channel::webhook::{self, WebhookAdapter};
use polyclaw_channel::whatsapp::{self, WhatsappAdapter};
use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::channel::ChannelAdapter;
use polyclaw_domain::config::{AccountsInUse, Config};
use polyclaw_domain::kill_points::FaultInjector;
use polyclaw_domain::patch;
use polyclaw_domain::port::{BoxFuture, WallClock};
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::span::Telemetry;
use polyclaw_engine::ToolRegistry;
use polyclaw_engine::memory::{MemoryLocation, MemoryStore, VectorIndex};
use polyclaw_engine::toolbox::memory::MemoryToolbox;
use polyclaw_engine::{Engine, EnginePorts};
use polyclaw_provider::ModelProviders;
use polyclaw_provider::embedded::EmbeddedChat;
use polyclaw_server::{ConfigReloader, LoginCodes, RestartSections};
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_store::{Db, DbTarget, TeamDatabases, default_accounts};
use polyclaw_tool::{FileBriefings, McpToolbox, SharedSkills};

use crate::broker_client::{self, BrokerClient};
use crate::clock::SystemClock;
use crate::confinement;
use crate::embedder;
use crate::failure::CommandFailure;
use crate::faults::{self, ArmedFaults, NoFaults};
use crate::home::{Home, HomeLock};
use crate::hooks::{HookListeners, HooksHandle};
use crate::hot_swap::HotSwap;
use crate::ids::SortableIds;
use crate::model_selection::ModelSelection;
use crate::redaction;
use crate::settings;
use crate::telemetry::{self, ExporterTask, SpanExporter};
use crate::tools;
use crate::weights::{CHAT_WEIGHTS, EMBEDDING_WEIGHTS, ModelDir};

/// How often a model is looked for where there is none.
const MODEL_SEARCH_INTERVAL: Duration = Duration::from_secs(2);
/// Connections to PostgreSQL, for one node.
const MAX_POSTGRES_CONNECTIONS: usize = 8;

/// What the command line says over the config.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConfigOverrides {
    pub port: Option<u16>,
    pub bind: Option<IpAddr>,
    /// Log less: what a person wants to know is said on the terminal.
    pub quiet: bool,
}

pub struct InstanceRuntime {
    pub home: Home,
    pub config: Config,
    pub token: String,
    pub engine: Engine,
    /// One-time links for browsers.
    pub logins: LoginCodes,
    /// What must not be seen, for the log too.
    redactor: Arc<HotSwap<Redactor>>,
    model_selection: Mutex<ModelSelection>,
    /// The config that is in force now.
    current_config: Mutex<Arc<Config>>,
    models: Arc<HotSwap<ModelProviders>>,
    /// The model inside Polyclaw. It outlives a reload, and is loaded when it is first asked.
    chat: Arc<EmbeddedChat>,
    /// The weights that make embeddings now, where those inside Polyclaw do.
    embeddings: Mutex<Option<(u64, SystemTime)>>,
    tools: Arc<HotSwap<ToolRegistry>>,
    briefings: Arc<FileBriefings>,
    pub mcp: Arc<McpToolbox>,
    /// The way to other instances, under a control plane.
    pub broker_client: Option<Arc<BrokerClient>>,
    clock: Arc<dyn WallClock>,
    hooks: Mutex<Option<HooksHandle>>,
    telemetry: Telemetry,
    span_exporter: Mutex<Option<SpanExporter>>,
    /// One config is taken up at a time.
    reloading: tokio::sync::Mutex<()>,
    overrides: ConfigOverrides,
    _lock: HomeLock,
}

impl InstanceRuntime {
    /// Opens a home that is there, with the config read from it. Blocks, so it comes before any runtime.
    pub fn open(
        home: Home,
        config: Config,
        redactor: Arc<HotSwap<Redactor>>,
        overrides: ConfigOverrides,
    ) -> Result<Self, CommandFailure> {
        let lock = home.lock_for_daemon()?;
        confinement::sweep_leftover_runs(&home);
        let token = home.ensure_token()?;
        let choice = ModelSelection::from_config(&config, |name| std::env::var(name).ok());
        let chat = Arc::new(EmbeddedChat::new(ModelDir::for_home(&home).weights_path(&CHAT_WEIGHTS)));
        let clock: Arc<dyn WallClock> = Arc::new(SystemClock);
        let embeddings = Mutex::new(ModelDir::for_home(&home).file_stamp(&EMBEDDING_WEIGHTS));
        let (db, clients) = open_database_during(&store_target(&config, &home), || {
            let embedder = embedder::choose_embedder(&config, &choice, &ModelDir::for_home(&home))?;
            Ok((build_models(&choice, &chat, &clock)?, build_channels(&config, &clock)?, embedder))
        });
        let (models, mut channels, embedder) = clients?;
        let models = Arc::new(HotSwap::new(models));
        let ids = Arc::new(SortableIds::new(Arc::clone(&clock)));
        let memory_store = Arc::new(build_memory_store(&config, &home, &clock, &ids));
        memory_store.set_embedder(embedder);
        let memories = Arc::new(MemoryToolbox::new(Arc::clone(&memory_store)));
        let briefings = Arc::new(FileBriefings::new(home.workspace_dir(), home.skills_dir()));
        briefings.set_shared_skills(shared_skills(&config, &home));
        let mcp = Arc::new(McpToolbox::default());
        let tools = Arc::new(HotSwap::new(tools::join_toolboxes(&config, &home, &briefings, (&mcp, &[]))));
        let db = db?;
        let exchange = BrokerClient::from_environment(&db, &redactor)?.map(Arc::new);
        let mut boxes = vec![Arc::clone(&tools) as _, memories as _];
        if let Some(exchange) = &exchange {
            exchange.set_granted_agents(&config.tools.instances);
            channels.insert(broker_client::INSTANCE_CHANNEL.to_owned(), Arc::clone(exchange) as _);
            boxes.push(Arc::clone(exchange) as _);
        }
        let ports = EnginePorts {
            ledgers: Arc::new(TeamDatabases::for_db(&db, home.teams_dir())),
            db,
            provider: Arc::clone(&models) as _,
            tools: Arc::new(ToolRegistry::new(boxes)),
            briefings: Arc::clone(&briefings) as _,
            channels,
            clock: Arc::clone(&clock),
            ids,
            faults: faults_from_environment()?,
            memory_store,
        };
        let (telemetry, exporter) = telemetry::open_exporter(&config.telemetry)?;
        let mut settings = settings::engine_settings(&config, &choice, &home, redactor.get());
        settings.telemetry = telemetry.clone();
        let engine = Engine::new(ports, settings, &home.node_name()?);
        let (choice, taken) = (Mutex::new(choice), Mutex::new(Arc::new(config.clone())));
        let logins = LoginCodes::default();
        Ok(Self {
            home,
            config,
            token,
            engine,
            logins,
            redactor,
            model_selection: choice,
            current_config: taken,
            models,
            chat,
            embeddings,
            tools,
            briefings,
            mcp,
            broker_client: exchange,
            clock,
            hooks: Mutex::default(),
            telemetry,
            span_exporter: Mutex::new(exporter),
            reloading: tokio::sync::Mutex::default(),
            overrides,
            _lock: lock,
        })
    }

    pub fn model_selection(&self) -> ModelSelection {
        self.model_selection.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Which account of each platform is meant where none is named, from the config and the store. What is settled once
    /// stays, so that an account that is added later takes over nobody's conversations.
    async fn resolve_default_accounts(&self, config: &mut Config) -> Result<(), CommandFailure> {
        let channels: Vec<String> =
            config.channels.default_accounts().keys().map(|name| (*name).to_owned()).collect();
        let read = move |tx: &mut polyclaw_store::Tx<'_>| {
            let recorded = default_accounts::list(tx)?.into_iter().collect();
            let mut in_use = BTreeMap::new();
            for channel in &channels {
                in_use.extend(
                    default_accounts::infer_from_sessions(tx, channel)?
                        .map(|account| (channel.clone(), account)),
                );
            }
            Ok(AccountsInUse { recorded, in_use })
        };
        let known = self.engine.db().read(read).await?;
        let settled = config.channels.apply_default_accounts(&known);
        for one in settled.iter().filter(|one| one.is_guessed) {
            tracing::warn!(
                channel = one.channel,
                account = %one.account,
                "several accounts and none is marked default: this one is meant where no account is named; \
                 write default = true in the one you mean"
            );
        }
        let changed: Vec<_> =
            settled.into_iter().filter(|one| known.recorded.get(one.channel) != Some(&one.account)).collect();
        if changed.is_empty() {
            return Ok(());
        }
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            changed.iter().try_for_each(|one| default_accounts::upsert(tx, one.channel, &one.account))
        };
        Ok(self.engine.db().write(write).await?)
    }

    /// Before anybody is answered: what the store knows that the config does not say.
    pub async fn apply_stored_accounts(&self) -> Result<(), CommandFailure> {
        let mut config = self.config.clone();
        self.resolve_default_accounts(&mut config).await?;
        let made = tools::made_workspaces(self.engine.db(), &config, &self.home).await?;
        self.mcp.apply_settings(tools::mcp_settings(&config, &self.home, &made));
        self.apply_config(&config, self.model_selection())
    }

    /// The agents of the config, into the store. Those it no longer names go; those of the API stay.
    pub async fn store_agents(&self, config: &Config) -> Result<(), CommandFailure> {
        let (mut specs, now) = (config.agents.agent_specs(), self.clock.now());
        specs.iter_mut().for_each(|spec| self.redactor.get().redact_spec(spec));
        let ids: Vec<_> = specs.iter().map(|spec| spec.agent_id.clone()).collect();
        let others = self.engine.db().read(agents::list).await?;
        let others = others.into_iter().filter(|known| known.source == AgentSource::Api);
        let others: Vec<_> = others.map(|known| known.spec.agent_id).collect();
        config.check_agents(&others).map_err(|errors| {
            CommandFailure::failed("bad_config", errors.to_string())
                .hint("correct the names or remove those rules; `polyclaw agents unbind <agent> --all` removes bindings")
        })?;
        let is_implicit = config.agents.implicit_agent().is_some();
        let stored = self.engine.db().write(move |tx| {
            agents::retain_configured(tx, &ids)?;
            for spec in specs.iter().cloned() {
                let spec = if is_implicit { with_stored_overlay(tx, spec)? } else { spec };
                agents::upsert(tx, &spec, AgentSource::Config, now)?;
            }
            Ok(())
        });
        stored.await.map_err(|error| match error {
            polyclaw_store::Error::Conflict(_) => CommandFailure::failed(
                "agent_name_taken",
                "an agent of the config has the name of one made by the API",
            )
            .hint("give it another name, or delete the other with `polyclaw agents delete`"),
            error => error.into(),
        })
    }

    /// Starts the MCP servers that agents name. Nobody waits for them here.
    pub async fn start_servers(&self) -> Result<(), CommandFailure> {
        let stored = self.engine.db().read(agents::list).await?;
        self.mcp.start(stored.iter().map(|one| one.spec.mcp.as_slice()));
        Ok(())
    }

    /// From now on these are told what happens.
    pub fn start_hooks(&self, config: &Config) -> Result<(), CommandFailure> {
        let listening = HookListeners::from_config(&config.hooks)?.start(&self.engine);
        *self.hooks.lock().unwrap_or_else(PoisonError::into_inner) = listening;
        Ok(())
    }

    /// From now on spans go to the collector, if one is named.
    pub fn start_telemetry(&self) -> Option<ExporterTask> {
        self.span_exporter.lock().unwrap_or_else(PoisonError::into_inner).take().map(SpanExporter::start)
    }

    /// Looks for a model on this machine, where nothing else names one. Takes up to a second.
    pub async fn search_model(&self) -> Result<(), CommandFailure> {
        let _turn = self.reloading.lock().await;
        let mut choice = self.model_selection();
        if choice.model.is_some() || !self.find_model(&mut choice).await {
            return Ok(());
        }
        let config = Arc::clone(&self.current_config.lock().unwrap_or_else(PoisonError::into_inner));
        self.apply_config(&config, choice)
    }

    /// Where nothing names a model, one that turns up later is taken: pulled weights, or a server that was started.
    /// Never returns.
    pub async fn await_model(&self) {
        loop {
            tokio::time::sleep(MODEL_SEARCH_INTERVAL).await;
            self.renew_embedder().await;
            let choice = self.model_selection();
            if choice.model.is_some() || !choice.providers.is_empty() {
                continue;
            }
            match self.search_model().await {
                Err(error) => tracing::error!(%error, "the model found on this machine can not be used"),
                Ok(()) if self.model_selection().model.is_some() => {
                    tracing::info!(model = %self.model_selection().describe_selection(), "model in use");
                    self.prepare_model().await;
                }
                Ok(()) => {}
            }
        }
    }

    /// Weights of embeddings that were pulled, pulled again or removed meanwhile.
    async fn renew_embedder(&self) {
        // Beside a reload the embeddings of the config before could be set last.
        let _turn = self.reloading.lock().await;
        let models = ModelDir::for_home(&self.home);
        let found = models.file_stamp(&EMBEDDING_WEIGHTS);
        let known =
            std::mem::replace(&mut *self.embeddings.lock().unwrap_or_else(PoisonError::into_inner), found);
        if known == found {
            return;
        }
        let config = Arc::clone(&self.current_config.lock().unwrap_or_else(PoisonError::into_inner));
        match embedder::choose_embedder(&config, &self.model_selection(), &models) {
            Ok(embedder) => self.engine.memory_store().set_embedder(embedder),
            Err(error) => tracing::error!(%error, "the embeddings on this machine can not be used"),
        }
    }

    /// Where the model inside Polyclaw answers, it is loaded and told the default agent's opening before anybody asks:
    /// that takes it longer than a short question.
    pub async fn prepare_model(&self) {
        if !self.model_selection().is_demo() || !self.chat.weights_exist() {
            return;
        }
        match self.engine.opening_prompt(&self.engine.settings().default_agent).await {
            Ok(opening) => self.chat.warm_up(opening).await,
            Err(error) => tracing::warn!(%error, "the embedded model is not prepared"),
        }
    }

    /// Reads the config again. What can fail is done before anything is changed: a config that is not taken up leaves
    /// the old one in force, whole. Returns the sections that take effect at the next start.
    pub async fn reload(&self) -> Result<RestartSections, CommandFailure> {
        let _turn = self.reloading.lock().await;
        let mut config = self.overrides.apply_overrides(self.home.read_config()?)?;
        self.resolve_default_accounts(&mut config).await?;
        let mut choice = ModelSelection::from_config(&config, |name| std::env::var(name).ok());
        let made = build_models(&choice, &self.chat, &self.clock)?;
        let hooks = HookListeners::from_config(&config.hooks)?;
        let embedder = embedder::choose_embedder(&config, &choice, &ModelDir::for_home(&self.home))?;
        // They are not taken into use; whether they could be shows at the next start otherwise.
        build_channels(&config, &self.clock)?;
        self.redactor.replace(redaction::build_redactor(&config, &self.home));
        if let Err(failure) = self.store_agents(&config).await {
            let taken = Arc::clone(&self.current_config.lock().unwrap_or_else(PoisonError::into_inner));
            self.redactor.replace(redaction::build_redactor(&taken, &self.home));
            return Err(failure);
        }
        self.models.replace(made);
        if choice.model.is_none() {
            self.find_model(&mut choice).await;
        }
        self.engine.memory_store().set_embedder(embedder);
        self.briefings.set_shared_skills(shared_skills(&config, &self.home));
        let made = tools::made_workspaces(self.engine.db(), &config, &self.home).await?;
        self.tools.replace(tools::join_toolboxes(&config, &self.home, &self.briefings, (&self.mcp, &made)));
        self.broker_client.iter().for_each(|exchange| exchange.set_granted_agents(&config.tools.instances));
        if let Err(error) = self.start_servers().await {
            tracing::error!(%error, "the MCP servers were not started");
        }
        *self.hooks.lock().unwrap_or_else(PoisonError::into_inner) = hooks.start(&self.engine);
        tracing::info!(model = %choice.describe_selection(), "model in use");
        self.apply_config(&config, choice)?;
        Ok(restart_sections(&self.config, &config))
    }

    /// The first model a configured provider lists, or one of a server on this machine.
    async fn find_model(&self, choice: &mut ModelSelection) -> bool {
        if choice.providers.is_empty() {
            return choice.search_local_servers(&ModelDir::for_home(&self.home)).await;
        }
        let listed = self.engine.provider().list_models().await;
        choice.model = listed.into_iter().map(|info| info.model).find(|model| !model.model.contains("embed"));
        choice.source = "the first one its provider lists".to_owned();
        choice.model.is_some()
    }

    fn apply_config(&self, config: &Config, choice: ModelSelection) -> Result<(), CommandFailure> {
        self.models.replace(build_models(&choice, &self.chat, &self.clock)?);
        let mut settings = settings::engine_settings(config, &choice, &self.home, self.redactor.get());
        settings.telemetry = self.telemetry.clone();
        self.engine.reload_settings(settings);
        *self.model_selection.lock().unwrap_or_else(PoisonError::into_inner) = choice;
        *self.current_config.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(config.clone());
        Ok(())
    }
}

impl ConfigReloader for InstanceRuntime {
    fn reload_config(&self) -> BoxFuture<'_, Result<RestartSections, String>> {
        Box::pin(async move { self.reload().await.map_err(|failure| failure.redacted().message) })
    }
}

/// The sections in which two configs differ and that are read at start only. Who may write to an account holds at once.
fn restart_sections(running: &Config, config: &Config) -> RestartSections {
    let differs = [
        ("gateway", running.gateway != config.gateway),
        ("store", running.store != config.store),
        ("telemetry", running.telemetry != config.telemetry),
        ("channels", running.channels.without_access() != config.channels.without_access()),
        ("observability", running.observability != config.observability),
        ("memory", running.memory.cache_mb != config.memory.cache_mb),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(section, _)| section).collect()
}

impl ConfigOverrides {
    pub fn apply_overrides(self, mut config: Config) -> Result<Config, CommandFailure> {
        config.gateway.port = self.port.unwrap_or(config.gateway.port);
        config.gateway.bind = self.bind.unwrap_or(config.gateway.bind);
        if config.gateway.auth == polyclaw_domain::config::GatewayAuth::Off
            && !config.gateway.bind.is_loopback()
        {
            return Err(CommandFailure::usage("without a token only a loopback address can be bound")
                .hint("take gateway.auth = \"off\" out of the config, or bind 127.0.0.1"));
        }
        Ok(config)
    }
}

/// Opens the database while something else is made: HTTP clients read all of the system's certificates.
fn open_database_during<T: Send>(
    target: &DbTarget,
    make: impl FnOnce() -> Result<T, CommandFailure> + Send,
) -> (Result<Db, CommandFailure>, Result<T, CommandFailure>) {
    std::thread::scope(|scope| {
        let made = scope.spawn(make);
        let db = Db::open(target).map_err(CommandFailure::from);
        (
            db,
            made.join()
                .unwrap_or_else(|_| Err(CommandFailure::failed("panicked", "a part could not be made"))),
        )
    })
}

/// Skills for all agents besides those of the home.
fn shared_skills(config: &Config, home: &Home) -> SharedSkills {
    SharedSkills {
        folders: config.skills.skill_folders(home.path()),
        list_limits: config.skills.list_limits(),
    }
}

pub(crate) fn store_target(config: &Config, home: &Home) -> DbTarget {
    match &config.store.url {
        Some(url) => {
            DbTarget::Postgres { url: url.expose().to_owned(), connections: MAX_POSTGRES_CONNECTIONS }
        }
        None => DbTarget::Sqlite(home.database_file()),
    }
}

/// The embedded model is listed where it could answer: its weights are here, or somebody named it.
fn build_models(
    choice: &ModelSelection,
    chat: &Arc<EmbeddedChat>,
    clock: &Arc<dyn WallClock>,
) -> Result<ModelProviders, CommandFailure> {
    let embedded = (choice.is_demo() || chat.weights_exist()).then(|| Arc::clone(chat));
    let settings =
        polyclaw_provider::ModelProvidersSettings { providers: choice.providers.clone(), embedded };
    ModelProviders::new(settings, Arc::clone(clock)).map_err(|error| {
        CommandFailure::failed(error.code(), error.to_string()).hint("look at [providers] in config.toml")
    })
}

fn build_memory_store(
    config: &Config,
    home: &Home,
    clock: &Arc<dyn WallClock>,
    ids: &Arc<SortableIds>,
) -> MemoryStore {
    let cache = usize::try_from(config.memory.cache_mb).unwrap_or(usize::MAX).saturating_mul(1 << 20);
    let vectors = VectorIndex::new(cache, polyclaw_provider::embedded::byte_dot_product);
    MemoryStore::new(
        MemoryLocation::File(home.memory_database()),
        Arc::clone(clock),
        Arc::clone(ids) as _,
        vectors,
    )
}

/// Every adapter there is. One that has an account in the config is put in; each is a line here.
fn build_channels(
    config: &Config,
    clock: &Arc<dyn WallClock>,
) -> Result<HashMap<String, Arc<dyn ChannelAdapter>>, CommandFailure> {
    let accounts = &config.channels;
    let mut channels: HashMap<String, Arc<dyn ChannelAdapter>> = HashMap::new();
    let mut add = |name: &str, is_used: bool, make: &dyn Fn() -> ChannelResult| {
        if is_used {
            let adapter = make().map_err(|error| {
                CommandFailure::failed(error.code(), error.to_string()).hint(error.hint())
            })?;
            channels.insert(name.to_owned(), adapter);
        }
        Ok::<(), CommandFailure>(())
    };
    let clock = || Arc::clone(clock);
    add(discord::CHANNEL_NAME, !accounts.discord.is_empty(), &|| {
        Ok(Arc::new(DiscordAdapter::from_config(&accounts.discord)?))
    })?;
    add(matrix::CHANNEL_NAME, !accounts.matrix.is_empty(), &|| {
        Ok(Arc::new(MatrixAdapter::from_config(&accounts.matrix)?))
    })?;
    add(slack::CHANNEL_NAME, !accounts.slack.is_empty(), &|| {
        Ok(Arc::new(SlackAdapter::from_config(&accounts.slack, clock())?))
    })?;
    add(telegram::CHANNEL_NAME, !accounts.telegram.is_empty(), &|| {
        Ok(Arc::new(TelegramAdapter::from_config(&accounts.telegram)?))
    })?;
    add(webhook::CHANNEL_NAME, !accounts.webhook.is_empty(), &|| {
        Ok(Arc::new(WebhookAdapter::from_config(&accounts.webhook)?))
    })?;
    add(whatsapp::CHANNEL_NAME, !accounts.whatsapp.is_empty(), &|| {
        Ok(Arc::new(WhatsappAdapter::from_config(&accounts.whatsapp, clock())?))
    })?;
    Ok(channels)
}

/// The agent with what was changed at run time. A change that no longer fits is left out and stays stored.
fn with_stored_overlay(
    tx: &mut polyclaw_store::Tx<'_>,
    spec: AgentSpec,
) -> polyclaw_store::Result<AgentSpec> {
    let Some(overlay) = agents::get_overlay(tx, &spec.agent_id)? else { return Ok(spec) };
    Ok(patch::apply_patch(&spec, "agent_id", overlay).unwrap_or_else(|error| {
        tracing::warn!(agent = %spec.agent_id, error, "stored changes of the agent do not fit; its defaults are used");
        spec
    }))
}

type ChannelResult = Result<Arc<dyn ChannelAdapter>, polyclaw_channel::Error>;

fn faults_from_environment() -> Result<Arc<dyn FaultInjector>, CommandFailure> {
    match std::env::var(faults::KILL_AT_ENV) {
        Ok(plan) if !plan.is_empty() => {
            tracing::warn!(plan, "kill points are armed: this process will kill itself");
            Ok(Arc::new(ArmedFaults::parse(&plan)?))
        }
        _ => Ok(Arc::new(NoFaults)),
    }
}
