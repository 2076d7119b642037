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

use crate::choice::Choice;
use crate::clock::SystemClock;
use crate::confinement;
use crate::current::Current;
use crate::embedder;
use crate::exchange::{self, Exchange};
use crate::failure::Failure;
use crate::faults::{self, Armed, Calm};
use crate::home::{Home, Lock};
use crate::hooks::{Hooks, Listening};
use crate::ids::SortableIds;
use crate::redaction;
use crate::settings;
use crate::telemetry::{self, Carrying, Courier};
use crate::tools;
use crate::weights::{CHAT, EMBEDDINGS, Shelf};

/// How often a model is looked for where there is none.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Connections to PostgreSQL, for one node.
const CONNECTIONS: usize = 8;

/// What the command line says over the config.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overrides {
    pub port: Option<u16>,
    pub bind: Option<IpAddr>,
    /// Log less: what a person wants to know is said on the terminal.
    pub quiet: bool,
}

pub struct Instance {
    pub home: Home,
    pub config: Config,
    pub token: String,
    pub engine: Engine,
    /// One-time links for browsers.
    pub logins: LoginCodes,
    /// What must not be seen, for the log too.
    redactor: Arc<Current<Redactor>>,
    choice: Mutex<Choice>,
    /// The config that is in force now.
    taken: Mutex<Arc<Config>>,
    models: Arc<Current<ModelProviders>>,
    /// The model inside Polyclaw. It outlives a reload, and is loaded when it is first asked.
    chat: Arc<EmbeddedChat>,
    /// The weights that make embeddings now, where those inside Polyclaw do.
    embeddings: Mutex<Option<(u64, SystemTime)>>,
    tools: Arc<Current<ToolRegistry>>,
    briefings: Arc<FileBriefings>,
    pub mcp: Arc<McpToolbox>,
    /// The way to other instances, under a control plane.
    pub exchange: Option<Arc<Exchange>>,
    clock: Arc<dyn WallClock>,
    hooks: Mutex<Option<Listening>>,
    telemetry: Telemetry,
    courier: Mutex<Option<Courier>>,
    /// One config is taken up at a time.
    reloading: tokio::sync::Mutex<()>,
    overrides: Overrides,
    _lock: Lock,
}

impl Instance {
    /// Opens a home that is there, with the config read from it. Blocks, so it comes before any runtime.
    pub fn open(
        home: Home,
        config: Config,
        redactor: Arc<Current<Redactor>>,
        overrides: Overrides,
    ) -> Result<Self, Failure> {
        let lock = home.lock()?;
        confinement::sweep(&home);
        let token = home.ensure_token()?;
        let choice = Choice::known(&config, |name| std::env::var(name).ok());
        let chat = Arc::new(EmbeddedChat::new(Shelf::of(&home).path(&CHAT)));
        let clock: Arc<dyn WallClock> = Arc::new(SystemClock);
        let embeddings = Mutex::new(Shelf::of(&home).mark(&EMBEDDINGS));
        let (db, clients) = open_beside(&target(&config, &home), || {
            let embedder = embedder::choose(&config, &choice, &Shelf::of(&home))?;
            Ok((models(&choice, &chat, &clock)?, channels(&config, &clock)?, embedder))
        });
        let (models, mut channels, embedder) = clients?;
        let models = Arc::new(Current::new(models));
        let ids = Arc::new(SortableIds::new(Arc::clone(&clock)));
        let brain = Arc::new(brain(&config, &home, &clock, &ids));
        brain.set_embedder(embedder);
        let memories = Arc::new(MemoryToolbox::new(Arc::clone(&brain)));
        let briefings = Arc::new(FileBriefings::new(home.workspace(), home.skills()));
        briefings.set_shared_skills(shared(&config, &home));
        let mcp = Arc::new(McpToolbox::default());
        let tools = Arc::new(Current::new(tools::join(&config, &home, &briefings, (&mcp, &[]))));
        let db = db?;
        let exchange = Exchange::from_environment(&db, &redactor)?.map(Arc::new);
        let mut boxes = vec![Arc::clone(&tools) as _, memories as _];
        if let Some(exchange) = &exchange {
            exchange.grant(&config.tools.instances);
            channels.insert(exchange::CHANNEL.to_owned(), Arc::clone(exchange) as _);
            boxes.push(Arc::clone(exchange) as _);
        }
        let ports = EnginePorts {
            ledgers: Arc::new(TeamDatabases::for_db(&db, home.teams())),
            db,
            provider: Arc::clone(&models) as _,
            tools: Arc::new(ToolRegistry::new(boxes)),
            briefings: Arc::clone(&briefings) as _,
            channels,
            clock: Arc::clone(&clock),
            ids,
            faults: faults()?,
            memory_store: brain,
        };
        let (telemetry, courier) = telemetry::open(&config.telemetry)?;
        let mut settings = settings::engine(&config, &choice, &home, redactor.get());
        settings.telemetry = telemetry.clone();
        let engine = Engine::new(ports, settings, &home.node()?);
        let (choice, taken) = (Mutex::new(choice), Mutex::new(Arc::new(config.clone())));
        let logins = LoginCodes::default();
        Ok(Self {
            home,
            config,
            token,
            engine,
            logins,
            redactor,
            choice,
            taken,
            models,
            chat,
            embeddings,
            tools,
            briefings,
            mcp,
            exchange,
            clock,
            hooks: Mutex::default(),
            telemetry,
            courier: Mutex::new(courier),
            reloading: tokio::sync::Mutex::default(),
            overrides,
            _lock: lock,
        })
    }

    pub fn choice(&self) -> Choice {
        self.choice.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Which account of each platform is meant where none is named, from the config and the store. What is settled once
    /// stays, so that an account that is added later takes over nobody's conversations.
    async fn settle_accounts(&self, config: &mut Config) -> Result<(), Failure> {
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
    pub async fn settle(&self) -> Result<(), Failure> {
        let mut config = self.config.clone();
        self.settle_accounts(&mut config).await?;
        let made = tools::made_workspaces(self.engine.db(), &config, &self.home).await?;
        self.mcp.apply_settings(tools::mcp_settings(&config, &self.home, &made));
        self.take_up(&config, self.choice())
    }

    /// The agents of the config, into the store. Those it no longer names go; those of the API stay.
    pub async fn store_agents(&self, config: &Config) -> Result<(), Failure> {
        let (mut specs, now) = (config.agents.agent_specs(), self.clock.now());
        specs.iter_mut().for_each(|spec| self.redactor.get().redact_spec(spec));
        let ids: Vec<_> = specs.iter().map(|spec| spec.agent_id.clone()).collect();
        let others = self.engine.db().read(agents::list).await?;
        let others = others.into_iter().filter(|known| known.source == AgentSource::Api);
        let others: Vec<_> = others.map(|known| known.spec.agent_id).collect();
        config.check_agents(&others).map_err(|errors| {
            Failure::failed("bad_config", errors.to_string())
                .hint("correct the names or remove those rules; `polyclaw agents unbind <agent> --all` removes bindings")
        })?;
        let is_implicit = config.agents.implicit_agent().is_some();
        let stored = self.engine.db().write(move |tx| {
            agents::retain_configured(tx, &ids)?;
            for spec in specs.iter().cloned() {
                let spec = if is_implicit { with_overlay(tx, spec)? } else { spec };
                agents::upsert(tx, &spec, AgentSource::Config, now)?;
            }
            Ok(())
        });
        stored.await.map_err(|error| match error {
            polyclaw_store::Error::Conflict(_) => Failure::failed(
                "agent_name_taken",
                "an agent of the config has the name of one made by the API",
            )
            .hint("give it another name, or delete the other with `polyclaw agents delete`"),
            error => error.into(),
        })
    }

    /// Starts the MCP servers that agents name. Nobody waits for them here.
    pub async fn start_servers(&self) -> Result<(), Failure> {
        let stored = self.engine.db().read(agents::list).await?;
        self.mcp.start(stored.iter().map(|one| one.spec.mcp.as_slice()));
        Ok(())
    }

    /// From now on these are told what happens.
    pub fn start_hooks(&self, config: &Config) -> Result<(), Failure> {
        let listening = Hooks::from_config(&config.hooks)?.start(&self.engine);
        *self.hooks.lock().unwrap_or_else(PoisonError::into_inner) = listening;
        Ok(())
    }

    /// From now on spans go to the collector, if one is named.
    pub fn start_telemetry(&self) -> Option<Carrying> {
        self.courier.lock().unwrap_or_else(PoisonError::into_inner).take().map(Courier::start)
    }

    /// Looks for a model on this machine, where nothing else names one. Takes up to a second.
    pub async fn search_model(&self) -> Result<(), Failure> {
        let _turn = self.reloading.lock().await;
        let mut choice = self.choice();
        if choice.model.is_some() || !self.find_model(&mut choice).await {
            return Ok(());
        }
        let config = Arc::clone(&self.taken.lock().unwrap_or_else(PoisonError::into_inner));
        self.take_up(&config, choice)
    }

    /// Where nothing names a model, one that turns up later is taken: pulled weights, or a server that was started.
    /// Never returns.
    pub async fn await_model(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            self.renew_embedder().await;
            let choice = self.choice();
            if choice.model.is_some() || !choice.providers.is_empty() {
                continue;
            }
            match self.search_model().await {
                Err(error) => tracing::error!(%error, "the model found on this machine can not be used"),
                Ok(()) if self.choice().model.is_some() => {
                    tracing::info!(model = %self.choice().sentence(), "model in use");
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
        let shelf = Shelf::of(&self.home);
        let found = shelf.mark(&EMBEDDINGS);
        let known =
            std::mem::replace(&mut *self.embeddings.lock().unwrap_or_else(PoisonError::into_inner), found);
        if known == found {
            return;
        }
        let config = Arc::clone(&self.taken.lock().unwrap_or_else(PoisonError::into_inner));
        match embedder::choose(&config, &self.choice(), &shelf) {
            Ok(embedder) => self.engine.memory_store().set_embedder(embedder),
            Err(error) => tracing::error!(%error, "the embeddings on this machine can not be used"),
        }
    }

    /// Where the model inside Polyclaw answers, it is loaded and told the default agent's opening before anybody asks:
    /// that takes it longer than a short question.
    pub async fn prepare_model(&self) {
        if !self.choice().is_demo() || !self.chat.weights_exist() {
            return;
        }
        match self.engine.opening_prompt(&self.engine.settings().default_agent).await {
            Ok(opening) => self.chat.warm_up(opening).await,
            Err(error) => tracing::warn!(%error, "the embedded model is not prepared"),
        }
    }

    /// Reads the config again. What can fail is done before anything is changed: a config that is not taken up leaves
    /// the old one in force, whole. Returns the sections that take effect at the next start.
    pub async fn reload(&self) -> Result<RestartSections, Failure> {
        let _turn = self.reloading.lock().await;
        let mut config = self.overrides.apply(self.home.read_config()?)?;
        self.settle_accounts(&mut config).await?;
        let mut choice = Choice::known(&config, |name| std::env::var(name).ok());
        let made = models(&choice, &self.chat, &self.clock)?;
        let hooks = Hooks::from_config(&config.hooks)?;
        let embedder = embedder::choose(&config, &choice, &Shelf::of(&self.home))?;
        // They are not taken into use; whether they could be shows at the next start otherwise.
        channels(&config, &self.clock)?;
        self.redactor.replace(redaction::redactor(&config, &self.home));
        if let Err(failure) = self.store_agents(&config).await {
            let taken = Arc::clone(&self.taken.lock().unwrap_or_else(PoisonError::into_inner));
            self.redactor.replace(redaction::redactor(&taken, &self.home));
            return Err(failure);
        }
        self.models.replace(made);
        if choice.model.is_none() {
            self.find_model(&mut choice).await;
        }
        self.engine.memory_store().set_embedder(embedder);
        self.briefings.set_shared_skills(shared(&config, &self.home));
        let made = tools::made_workspaces(self.engine.db(), &config, &self.home).await?;
        self.tools.replace(tools::join(&config, &self.home, &self.briefings, (&self.mcp, &made)));
        self.exchange.iter().for_each(|exchange| exchange.grant(&config.tools.instances));
        if let Err(error) = self.start_servers().await {
            tracing::error!(%error, "the MCP servers were not started");
        }
        *self.hooks.lock().unwrap_or_else(PoisonError::into_inner) = hooks.start(&self.engine);
        tracing::info!(model = %choice.sentence(), "model in use");
        self.take_up(&config, choice)?;
        Ok(later(&self.config, &config))
    }

    /// The first model a configured provider lists, or one of a server on this machine.
    async fn find_model(&self, choice: &mut Choice) -> bool {
        if choice.providers.is_empty() {
            return choice.search(&Shelf::of(&self.home)).await;
        }
        let listed = self.engine.provider().list_models().await;
        choice.model = listed.into_iter().map(|info| info.model).find(|model| !model.model.contains("embed"));
        choice.source = "the first one its provider lists".to_owned();
        choice.model.is_some()
    }

    fn take_up(&self, config: &Config, choice: Choice) -> Result<(), Failure> {
        self.models.replace(models(&choice, &self.chat, &self.clock)?);
        let mut settings = settings::engine(config, &choice, &self.home, self.redactor.get());
        settings.telemetry = self.telemetry.clone();
        self.engine.reload_settings(settings);
        *self.choice.lock().unwrap_or_else(PoisonError::into_inner) = choice;
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(config.clone());
        Ok(())
    }
}

impl ConfigReloader for Instance {
    fn reload_config(&self) -> BoxFuture<'_, Result<RestartSections, String>> {
        Box::pin(async move { self.reload().await.map_err(|failure| failure.cleaned().message) })
    }
}

/// The sections in which two configs differ and that are read at start only. Who may write to an account holds at once.
fn later(running: &Config, config: &Config) -> RestartSections {
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

impl Overrides {
    pub fn apply(self, mut config: Config) -> Result<Config, Failure> {
        config.gateway.port = self.port.unwrap_or(config.gateway.port);
        config.gateway.bind = self.bind.unwrap_or(config.gateway.bind);
        if config.gateway.auth == polyclaw_domain::config::GatewayAuth::Off
            && !config.gateway.bind.is_loopback()
        {
            return Err(Failure::usage("without a token only a loopback address can be bound")
                .hint("take gateway.auth = \"off\" out of the config, or bind 127.0.0.1"));
        }
        Ok(config)
    }
}

/// Opens the database while something else is made: HTTP clients read all of the system's certificates.
fn open_beside<T: Send>(
    target: &DbTarget,
    make: impl FnOnce() -> Result<T, Failure> + Send,
) -> (Result<Db, Failure>, Result<T, Failure>) {
    std::thread::scope(|scope| {
        let made = scope.spawn(make);
        let db = Db::open(target).map_err(Failure::from);
        (db, made.join().unwrap_or_else(|_| Err(Failure::failed("panicked", "a part could not be made"))))
    })
}

/// Skills for all agents besides those of the home.
fn shared(config: &Config, home: &Home) -> SharedSkills {
    SharedSkills {
        folders: config.skills.skill_folders(home.path()),
        list_limits: config.skills.list_limits(),
    }
}

pub(crate) fn target(config: &Config, home: &Home) -> DbTarget {
    match &config.store.url {
        Some(url) => DbTarget::Postgres { url: url.expose().to_owned(), connections: CONNECTIONS },
        None => DbTarget::Sqlite(home.database()),
    }
}

/// The embedded model is listed where it could answer: its weights are here, or somebody named it.
fn models(
    choice: &Choice,
    chat: &Arc<EmbeddedChat>,
    clock: &Arc<dyn WallClock>,
) -> Result<ModelProviders, Failure> {
    let embedded = (choice.is_demo() || chat.weights_exist()).then(|| Arc::clone(chat));
    let settings =
        polyclaw_provider::ModelProvidersSettings { providers: choice.providers.clone(), embedded };
    ModelProviders::new(settings, Arc::clone(clock)).map_err(|error| {
        Failure::failed(error.code(), error.to_string()).hint("look at [providers] in config.toml")
    })
}

fn brain(config: &Config, home: &Home, clock: &Arc<dyn WallClock>, ids: &Arc<SortableIds>) -> MemoryStore {
    let cache = usize::try_from(config.memory.cache_mb).unwrap_or(usize::MAX).saturating_mul(1 << 20);
    let vectors = VectorIndex::new(cache, polyclaw_provider::embedded::byte_dot_product);
    MemoryStore::new(MemoryLocation::File(home.brain()), Arc::clone(clock), Arc::clone(ids) as _, vectors)
}

/// Every adapter there is. One that has an account in the config is put in; each is a line here.
fn channels(
    config: &Config,
    clock: &Arc<dyn WallClock>,
) -> Result<HashMap<String, Arc<dyn ChannelAdapter>>, Failure> {
    let accounts = &config.channels;
    let mut channels: HashMap<String, Arc<dyn ChannelAdapter>> = HashMap::new();
    let mut add = |name: &str, is_used: bool, make: &dyn Fn() -> Made| {
        if is_used {
            let adapter = make()
                .map_err(|error| Failure::failed(error.code(), error.to_string()).hint(error.hint()))?;
            channels.insert(name.to_owned(), adapter);
        }
        Ok::<(), Failure>(())
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
fn with_overlay(tx: &mut polyclaw_store::Tx<'_>, spec: AgentSpec) -> polyclaw_store::Result<AgentSpec> {
    let Some(overlay) = agents::get_overlay(tx, &spec.agent_id)? else { return Ok(spec) };
    Ok(patch::apply_patch(&spec, "agent_id", overlay).unwrap_or_else(|error| {
        tracing::warn!(agent = %spec.agent_id, error, "stored changes of the agent do not fit; its defaults are used");
        spec
    }))
}

type Made = Result<Arc<dyn ChannelAdapter>, polyclaw_channel::Error>;

fn faults() -> Result<Arc<dyn FaultInjector>, Failure> {
    match std::env::var(faults::VARIABLE) {
        Ok(plan) if !plan.is_empty() => {
            tracing::warn!(plan, "kill points are armed: this process will kill itself");
            Ok(Arc::new(Armed::parse(&plan)?))
        }
        _ => Ok(Arc::new(Calm)),
    }
}
