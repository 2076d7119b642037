//! The composition root: builds one instance from its home.

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

/// Interval between searches for a model while there is none.
const MODEL_SEARCH_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum number of PostgreSQL connections of one node.
const MAX_POSTGRES_CONNECTIONS: usize = 8;

/// Command-line options that override the config.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConfigOverrides {
    pub port: Option<u16>,
    pub bind: Option<IpAddr>,
    /// Log less, because the essentials are printed on the terminal.
    pub quiet: bool,
}

pub struct InstanceRuntime {
    pub home: Home,
    pub config: Config,
    pub token: String,
    pub engine: Engine,
    /// One-time login links for browsers.
    pub logins: LoginCodes,
    /// Redacts secrets, also in the log.
    redactor: Arc<HotSwap<Redactor>>,
    model_selection: Mutex<ModelSelection>,
    /// The config in effect.
    current_config: Mutex<Arc<Config>>,
    models: Arc<HotSwap<ModelProviders>>,
    /// The built-in chat model. It survives a reload and is loaded at its first use.
    chat: Arc<EmbeddedChat>,
    /// Stamp of the embedding weights in use, if the built-in model makes the embeddings.
    embeddings: Mutex<Option<(u64, SystemTime)>>,
    tools: Arc<HotSwap<ToolRegistry>>,
    briefings: Arc<FileBriefings>,
    pub mcp: Arc<McpToolbox>,
    /// Client of the control plane's broker, if a control plane started this instance.
    pub broker_client: Option<Arc<BrokerClient>>,
    clock: Arc<dyn WallClock>,
    hooks: Mutex<Option<HooksHandle>>,
    telemetry: Telemetry,
    span_exporter: Mutex<Option<SpanExporter>>,
    /// Serializes config changes.
    reloading: tokio::sync::Mutex<()>,
    overrides: ConfigOverrides,
    _lock: HomeLock,
}

impl InstanceRuntime {
    /// Opens an existing home with the config read from it. Blocks, so it runs before any async runtime.
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

    /// Determines each platform's default account from the config and the store. A recorded default stays, so that an
    /// account added later does not take over existing conversations.
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
                "several accounts and no default; this one is used where no account is given; set default = true on \
                 the preferred one"
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

    /// Completes the config from the store before requests are served: default accounts and workspaces of agents
    /// created at run time.
    pub async fn apply_stored_accounts(&self) -> Result<(), CommandFailure> {
        let mut config = self.config.clone();
        self.resolve_default_accounts(&mut config).await?;
        let made = tools::made_workspaces(self.engine.db(), &config, &self.home).await?;
        self.mcp.apply_settings(tools::mcp_settings(&config, &self.home, &made));
        self.apply_config(&config, self.model_selection())
    }

    /// Stores the agents of the config. Removes those that the config no longer names; agents created through the API
    /// stay.
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
                "an agent in the config has the name of one created through the API",
            )
            .hint("rename it, or delete the other with `polyclaw agents delete`"),
            error => error.into(),
        })
    }

    /// Starts the MCP servers that agents name. Does not wait until they are ready.
    pub async fn start_servers(&self) -> Result<(), CommandFailure> {
        let stored = self.engine.db().read(agents::list).await?;
        self.mcp.start(stored.iter().map(|one| one.spec.mcp.as_slice()));
        Ok(())
    }

    /// Starts notifying hooks of events.
    pub async fn start_hooks(&self, config: &Config) -> Result<(), CommandFailure> {
        let listening = self.hook_listeners(config).await?.start(&self.engine);
        *self.hooks.lock().unwrap_or_else(PoisonError::into_inner) = listening;
        Ok(())
    }

    async fn hook_listeners(&self, config: &Config) -> Result<HookListeners, CommandFailure> {
        let made = tools::made_workspaces(self.engine.db(), config, &self.home).await?;
        HookListeners::from_config(&config.hooks, &tools::agent_folders(config, &self.home, &made))
    }

    /// Starts exporting spans, if a collector is configured.
    pub fn start_telemetry(&self) -> Option<ExporterTask> {
        self.span_exporter.lock().unwrap_or_else(PoisonError::into_inner).take().map(SpanExporter::start)
    }

    /// Looks for a model on this machine if none is configured. Takes up to a second.
    pub async fn search_model(&self) -> Result<(), CommandFailure> {
        let _turn = self.reloading.lock().await;
        let mut choice = self.model_selection();
        if choice.model.is_some() || !self.find_model(&mut choice).await {
            return Ok(());
        }
        let config = Arc::clone(&self.current_config.lock().unwrap_or_else(PoisonError::into_inner));
        self.apply_config(&config, choice)
    }

    /// Keeps looking for a model while none is configured, and uses one that appears later: pulled weights or a
    /// started server. Never returns.
    pub async fn await_model(&self) {
        loop {
            tokio::time::sleep(MODEL_SEARCH_INTERVAL).await;
            self.renew_embedder().await;
            let choice = self.model_selection();
            if choice.model.is_some() || !choice.providers.is_empty() {
                continue;
            }
            match self.search_model().await {
                Err(error) => tracing::error!(%error, "model found on this machine cannot be used"),
                Ok(()) if self.model_selection().model.is_some() => {
                    tracing::info!(model = %self.model_selection().describe_selection(), "model in use");
                    self.prepare_model().await;
                }
                Ok(()) => {}
            }
        }
    }

    /// Updates the embedder after embedding weights were pulled, replaced or removed.
    async fn renew_embedder(&self) {
        // Without the lock, a concurrent reload could be overwritten with the old config's embedder.
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
            Err(error) => tracing::error!(%error, "embedding model on this machine cannot be used"),
        }
    }

    /// Loads the built-in model and processes the default agent's opening prompt ahead of time, because that takes
    /// longer than a short question. Does nothing if another model answers.
    pub async fn prepare_model(&self) {
        if !self.model_selection().is_demo() || !self.chat.weights_exist() {
            return;
        }
        match self.engine.opening_prompt(&self.engine.settings().default_agent).await {
            Ok(opening) => self.chat.warm_up(opening).await,
            Err(error) => tracing::warn!(%error, "could not warm up the embedded model"),
        }
    }

    /// Reloads the config. Everything that can fail runs before anything changes, so a rejected config leaves the old
    /// one fully in effect. Returns the sections that take effect at the next start.
    pub async fn reload(&self) -> Result<RestartSections, CommandFailure> {
        let _turn = self.reloading.lock().await;
        let mut config = self.overrides.apply_overrides(self.home.read_config()?)?;
        self.resolve_default_accounts(&mut config).await?;
        let mut choice = ModelSelection::from_config(&config, |name| std::env::var(name).ok());
        let made = build_models(&choice, &self.chat, &self.clock)?;
        let hooks = self.hook_listeners(&config).await?;
        let embedder = embedder::choose_embedder(&config, &choice, &ModelDir::for_home(&self.home))?;
        // Built only to validate them: channels change at the next start, and an error would otherwise show up only
        // then.
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
            tracing::error!(%error, "could not start the MCP servers");
        }
        *self.hooks.lock().unwrap_or_else(PoisonError::into_inner) = hooks.start(&self.engine);
        tracing::info!(model = %choice.describe_selection(), "model in use");
        self.apply_config(&config, choice)?;
        Ok(restart_sections(&self.config, &config))
    }

    /// Picks the first chat model that a configured provider lists, or one of a local server.
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

/// Returns the changed sections that are read only at start. Access rules of channels apply immediately.
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
                .hint("remove gateway.auth = \"off\" from the config, or bind 127.0.0.1"));
        }
        Ok(config)
    }
}

/// Opens the database while `make` runs on another thread. Building HTTP clients is slow, because they load the
/// system's certificates.
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
                .unwrap_or_else(|_| Err(CommandFailure::failed("panicked", "could not build a component"))),
        )
    })
}

/// Skills for all agents, in addition to those in the home.
fn shared_skills(config: &Config, home: &Home) -> SharedSkills {
    SharedSkills {
        folders: config.skills.skill_folders(home.path()),
        workspaces: config.agents.workspace_folders(&home.workspace_dir()).into_values().collect(),
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

/// Includes the embedded model only if it could answer: its weights are present or it was chosen.
fn build_models(
    choice: &ModelSelection,
    chat: &Arc<EmbeddedChat>,
    clock: &Arc<dyn WallClock>,
) -> Result<ModelProviders, CommandFailure> {
    let embedded = (choice.is_demo() || chat.weights_exist()).then(|| Arc::clone(chat));
    let settings =
        polyclaw_provider::ModelProvidersSettings { providers: choice.providers.clone(), embedded };
    ModelProviders::new(settings, Arc::clone(clock)).map_err(|error| {
        CommandFailure::failed(error.code(), error.to_string()).hint("check [providers] in config.toml")
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

/// Builds the adapters that have an account in the config. Each adapter is one entry here.
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

/// Applies the changes made to an agent at run time. Changes that no longer fit are skipped but stay stored.
fn with_stored_overlay(
    tx: &mut polyclaw_store::Tx<'_>,
    spec: AgentSpec,
) -> polyclaw_store::Result<AgentSpec> {
    let Some(overlay) = agents::get_overlay(tx, &spec.agent_id)? else { return Ok(spec) };
    Ok(patch::apply_patch(&spec, "agent_id", overlay).unwrap_or_else(|error| {
        tracing::warn!(agent = %spec.agent_id, error, "stored changes do not fit the agent; using its defaults");
        spec
    }))
}

type ChannelResult = Result<Arc<dyn ChannelAdapter>, polyclaw_channel::Error>;

fn faults_from_environment() -> Result<Arc<dyn FaultInjector>, CommandFailure> {
    match std::env::var(faults::KILL_AT_ENV) {
        Ok(plan) if !plan.is_empty() => {
            tracing::warn!(plan, "kill points are armed; this process will kill itself");
            Ok(Arc::new(ArmedFaults::parse(&plan)?))
        }
        _ => Ok(Arc::new(NoFaults)),
    }
}
