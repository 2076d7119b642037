//! Runs one instance: serves it, reads its config again on SIGHUP, drains it on SIGTERM and SIGINT.

mod store_wait;

use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclaw_domain::config::{Config, GatewayConfig};
use polyclaw_engine::{BackgroundTask, Engine};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::client::base_url;
use crate::failure::{CommandFailure, FailureExit};
use crate::home::{self, Home};
use crate::hot_swap::HotSwap;
use crate::http;
use crate::instance::{ConfigOverrides, InstanceRuntime, store_target};
use crate::log;
use crate::redaction::{self, RedactedLog};

/// How long running turns get to reach a boundary. What is left goes on at the next start.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long answers on the wire get to end once nothing runs any more.
const RESPONSE_DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

const OPEN_FILE_LIMIT: u64 = 32 * 1024;
/// Sent with a write beyond the size a file may have.
const SIGXFSZ: i32 = rustix::process::Signal::XFSZ.as_raw();

/// Runs until a signal ends it. `ready` is called once it serves and the model is known.
pub fn run<F>(home: &Home, overrides: ConfigOverrides, ready: F) -> anyhow::Result<()>
where
    F: FnOnce(&InstanceRuntime) -> io::Result<()> + Send + 'static,
{
    disable_huge_pages();
    let began = Instant::now();
    home.create_missing()?;
    let config = overrides.apply_overrides(home.read_config()?)?;
    home.ensure_token()?;
    let redactor = Arc::new(HotSwap::new(redaction::build_redactor(&config, home)));
    log::start_logging(&config.observability, overrides.quiet, RedactedLog::new(Arc::clone(&redactor)));
    log::log_panics();
    raise_open_file_limit();
    disable_core_dumps();
    store_wait::wait_for_store(&config, &store_target(&config, home));
    let instance = Arc::new(InstanceRuntime::open(home.clone(), config, redactor, overrides)?);
    let listener = bind_listener(&instance.config.gateway)?;
    let runtime = build_runtime()?;
    let outcome = runtime.block_on(serve_instance(&instance, listener, began, ready));
    runtime.shutdown_timeout(Duration::from_millis(500));
    outcome
}

/// With pages of 2 MB a daemon at rest holds twice the memory it uses.
fn disable_huge_pages() {
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// The usual limit of 1,024 descriptors is less than a busy gateway has connections, and is there for programs of
/// another age. What it can not be raised to is lived with.
pub fn raise_open_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(OPEN_FILE_LIMIT, |most| most.min(OPEN_FILE_LIMIT));
    if limit.current.is_some_and(|now| now < wanted) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
    }
}

/// Whether a start would get as far as listening: nothing is fetched for one that would not. [`run`] says why.
pub fn can_start(home: &Home, overrides: ConfigOverrides) -> bool {
    let config = || overrides.apply_overrides(home.read_config()?);
    home.create_missing().is_ok() && config().is_ok_and(|config| bind_listener(&config.gateway).is_ok())
}

/// A dump of this process is all its secrets in one file.
pub fn disable_core_dumps() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}

/// Where clients on this machine reach an instance with this config.
pub fn local_url(config: &Config) -> String {
    base_url(&config.gateway)
}

/// Few threads: the work is waiting for models, and each thread costs memory. One for blocking work is started
/// now and none ever ends: where no more can be started, work waits for those there are.
pub fn build_runtime() -> io::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let runtime = Builder::new_multi_thread()
        .worker_threads(cores.clamp(2, 4))
        .max_blocking_threads(16)
        .thread_keep_alive(Duration::from_secs(u64::from(u32::MAX)))
        .enable_all()
        .build()?;
    drop(runtime.spawn_blocking(|| {}));
    Ok(runtime)
}

pub fn bind_listener(gateway: &GatewayConfig) -> Result<TcpListener, CommandFailure> {
    let address = SocketAddr::new(gateway.bind, gateway.port);
    let refused = |error: io::Error| {
        let unavailable =
            |code: &str, what: String| CommandFailure::new(FailureExit::Unavailable, code, what);
        match error.kind() {
            io::ErrorKind::AddrInUse => CommandFailure::new(
                FailureExit::Conflict,
                "port_in_use",
                format!("port {} is taken", gateway.port),
            )
            .hint("stop what listens there, or use another with --port or gateway.port"),
            io::ErrorKind::PermissionDenied => {
                unavailable("port_refused", format!("{address} can not be listened on: {error}"))
                    .hint("ports below 1024 need rights of their own; the default is 18801")
            }
            _ => unavailable("bind_failed", format!("{address} can not be listened on: {error}"))
                .hint("gateway.bind must be an address of this machine"),
        }
    };
    let listener = TcpListener::bind(address).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    Ok(listener)
}

async fn serve_instance<F>(
    instance: &Arc<InstanceRuntime>,
    listener: TcpListener,
    began: Instant,
    ready: F,
) -> anyhow::Result<()>
where
    F: FnOnce(&InstanceRuntime) -> io::Result<()> + Send + 'static,
{
    let (mut reloads, mut stops) = (signal(SignalKind::hangup())?, StopSignals::listen()?);
    // Heard and ignored: a file at its size limit is a write that fails, not the end of the process.
    let _oversized = signal(SignalKind::from_raw(SIGXFSZ))?;
    instance.apply_stored_accounts().await?;
    instance.store_agents(&instance.config).await?;
    instance
        .engine
        .export_agents()
        .await
        .map_err(|error| CommandFailure::failed(error.code(), error.to_string()))?;
    let made = instance.engine.create_agent_folders().await;
    made.map_err(|error| CommandFailure::failed(error.code(), error.to_string()))?;
    instance.start_hooks(&instance.config)?;
    let carrying = instance.start_telemetry();
    let (looked, is_looked) = oneshot::channel();
    let mut tasks = DaemonTasks::start(&instance.engine, is_looked);
    let _exchange =
        instance.broker_client.as_ref().map(|exchange| exchange.start_receivers(&instance.engine));
    // Before anybody is answered: whoever is answered reads where to ask on.
    let url = local_url(&instance.config);
    write_url(&instance.home, &url)?;
    let mut server = http::HttpServer::start(instance, listener)?;
    tracing::info!(%url, pid = std::process::id(), ready_ms = began.elapsed().as_millis(), "ready");
    warn_about_unsafe_settings(instance).await;
    tokio::spawn(remove_unfinished_writes(Arc::clone(instance)));
    tokio::spawn(finish_startup(Arc::clone(instance), looked, ready));
    tokio::spawn(release_freed_memory());
    loop {
        tokio::select! {
            _ = reloads.recv() => reload_config(instance).await,
            () = stops.recv() => break,
            ended = server.wait_for_end() => return Err(ended.into()),
        }
    }
    tokio::select! {
        () = drain_instance(instance, &mut tasks, server) => {
            if let Some(carrying) = carrying {
                let _ = tokio::time::timeout(RESPONSE_DRAIN_TIMEOUT, carrying.flush_and_stop()).await;
            }
            Ok(())
        }
        () = stops.recv() => {
            Err(CommandFailure::failed("interrupted", "a second signal: stopped at once")
                .hint("what was running goes on at the next start").into())
        }
    }
}

/// What an earlier life left in workspaces in the middle of a write.
async fn remove_unfinished_writes(instance: Arc<InstanceRuntime>) {
    let Ok(agents) = instance.engine.list_agents().await else { return };
    let (root, default) = (instance.home.workspace_dir(), instance.config.agents.default_agent_id());
    let folders: BTreeSet<PathBuf> = agents
        .iter()
        .map(|agent| agent.spec.workspace_folder(&root, &default))
        .chain([root.clone()])
        .collect();
    let sweep = move || folders.iter().map(|folder| polyclaw_tool::sweep_temporary(folder)).sum::<usize>();
    if let Ok(removed @ 1..) = tokio::task::spawn_blocking(sweep).await {
        tracing::info!(removed, "temporary files of an earlier life were removed from workspaces");
    }
}

/// Named at every start: what was meant once may be forgotten.
async fn warn_about_unsafe_settings(instance: &InstanceRuntime) {
    match instance.engine.safety_warnings().await {
        Ok(found) => log::log_safety_warnings(found),
        Err(error) => tracing::warn!(%error, "unsafe settings could not be looked for"),
    }
}

fn write_url(home: &Home, url: &str) -> Result<(), CommandFailure> {
    let path = home.url_file();
    home::write_note(&path, &format!("{url}\n")).map_err(|error| home::access_failure(&path, &error))
}

/// Looks for a model where none is named, for which turns wait, then says which one answers.
async fn finish_startup<F>(instance: Arc<InstanceRuntime>, looked: oneshot::Sender<()>, ready: F)
where
    F: FnOnce(&InstanceRuntime) -> io::Result<()>,
{
    if let Err(error) = instance.search_model().await {
        tracing::error!(%error, "the model found on this machine can not be used");
    }
    let _ = looked.send(());
    if let Err(error) = instance.start_servers().await {
        tracing::error!(%error, "the MCP servers were not started");
    }
    let choice = instance.model_selection();
    tracing::info!(model = %choice.describe_selection(), "model in use");
    let _ = ready(&instance);
    instance.prepare_model().await;
    instance.await_model().await;
}

async fn reload_config(instance: &InstanceRuntime) {
    match instance.reload().await {
        Ok(later) if later.is_empty() => tracing::info!("config read again"),
        Ok(later) => tracing::warn!(
            sections = later.join(", "),
            "config read again; these take effect at the next start"
        ),
        Err(error) => tracing::error!(%error, "the config was not taken up; the old one stays in force"),
    }
}

/// Nothing new is accepted; turns reach a boundary; then the last answers leave the wire.
async fn drain_instance(instance: &InstanceRuntime, tasks: &mut DaemonTasks, server: http::HttpServer) {
    tracing::info!("draining: nothing new is accepted");
    instance.engine.start_draining();
    match tokio::time::timeout(DRAIN_TIMEOUT, tasks.wait_for_end()).await {
        Ok(()) => tracing::info!("drained"),
        Err(_) => {
            tracing::warn!("some turns reached no boundary in time; they go on at the next start");
            tasks.working.shutdown().await;
            instance.engine.hand_back_all_turns().await;
        }
    }
    let _ = tokio::join!(
        tokio::time::timeout(RESPONSE_DRAIN_TIMEOUT, server.stop()),
        tokio::time::timeout(2 * RESPONSE_DRAIN_TIMEOUT, instance.mcp.stop())
    );
    if let Err(error) = instance.engine.checkpoint_databases() {
        tracing::warn!(%error, "the log of a database stays beside it: both files belong together");
    }
}

/// The allocator gives freed memory back to the machine when something large is freed a while later, and an idle daemon
/// frees nothing: a model that was unloaded would stay in memory for hours.
async fn release_freed_memory() {
    const RELEASE_TRIGGER_BYTES: usize = 2 * 1024 * 1024;
    tokio::time::sleep(Duration::from_secs(2)).await;
    loop {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(RELEASE_TRIGGER_BYTES)));
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
}

/// The signals that end a daemon.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    /// Of one that runs in a terminal: the terminal was closed. Heard once, for a shell and the kernel both say it.
    hangup: Option<Signal>,
}

impl StopSignals {
    pub fn listen() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())?, hangup: None })
    }

    /// The same, and the end of the terminal, unless whoever started this process wants it to outlive that.
    pub fn with_terminal() -> io::Result<Self> {
        let hangup = (!ignores_hangup()).then(|| signal(SignalKind::hangup())).transpose()?;
        Ok(Self { hangup, ..Self::listen()? })
    }

    pub async fn recv(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        let hung_up = tokio::select! {
            _ = self.terminate.recv() => false,
            _ = self.interrupt.recv() => false,
            () = hangup => true,
        };
        if hung_up {
            self.hangup = None;
        }
    }
}

/// `nohup` starts a program deaf to it, and a program that listens would hear it again. Where the system does not
/// tell, nobody asked for it.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// The engine's loops. Channels stop receiving at once when it drains, turns and deliveries when they are done; the
/// others only wait and are let go.
struct DaemonTasks {
    working: JoinSet<()>,
    _waiting: JoinSet<()>,
}

impl DaemonTasks {
    /// Turns begin when it is known which model there is: before, each would end for want of one.
    fn start(engine: &Engine, is_looked: oneshot::Receiver<()>) -> Self {
        let (mut working, mut waiting) = (JoinSet::new(), JoinSet::new());
        let worker = engine.clone();
        working.spawn(async move {
            let _ = is_looked.await;
            worker.run_task(BackgroundTask::Work).await;
        });
        for task in BackgroundTask::ALL.into_iter().filter(|task| *task != BackgroundTask::Work) {
            let engine = engine.clone();
            let set = if matches!(task, BackgroundTask::Receive | BackgroundTask::Deliver) {
                &mut working
            } else {
                &mut waiting
            };
            set.spawn(async move { engine.run_task(task).await });
        }
        Self { working, _waiting: waiting }
    }

    async fn wait_for_end(&mut self) {
        while self.working.join_next().await.is_some() {}
    }
}
