//! Runs one instance: serves its API, reloads the config on SIGHUP, drains on SIGTERM and SIGINT.

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

/// How long running turns may take to reach a boundary. The others resume at the next start.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long open responses may take to finish once all work has ended.
const RESPONSE_DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

const OPEN_FILE_LIMIT: u64 = 32 * 1024;
/// Sent for a write beyond the file size limit.
const SIGXFSZ: i32 = rustix::process::Signal::XFSZ.as_raw();

/// Runs until a signal arrives. Calls `ready` once it serves and the model is known.
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

/// With 2 MB pages an idle daemon would hold twice the memory it uses.
fn disable_huge_pages() {
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Raises the limit of open files. The usual 1,024 is fewer than a busy gateway has connections. A limit that cannot
/// be raised is accepted.
pub fn raise_open_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(OPEN_FILE_LIMIT, |most| most.min(OPEN_FILE_LIMIT));
    if limit.current.is_some_and(|now| now < wanted) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
    }
}

/// Returns whether a start would get as far as listening, so that nothing is downloaded for one that would fail.
/// [`run`] reports the reason.
pub fn can_start(home: &Home, overrides: ConfigOverrides) -> bool {
    let config = || overrides.apply_overrides(home.read_config()?);
    home.create_missing().is_ok() && config().is_ok_and(|config| bind_listener(&config.gateway).is_ok())
}

/// A core dump would contain all secrets of this process.
pub fn disable_core_dumps() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}

/// Returns the URL at which clients on this machine reach an instance with this config.
pub fn local_url(config: &Config) -> String {
    base_url(&config.gateway)
}

/// Builds the runtime. Few threads suffice, because the work is waiting for models and each thread costs memory. One
/// blocking thread starts now and threads never end: if the system allows no more threads, work waits for the
/// existing ones.
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
            .hint("stop the program that uses it, or set another with --port or gateway.port"),
            io::ErrorKind::PermissionDenied => {
                unavailable("port_refused", format!("cannot listen on {address}: {error}"))
                    .hint("ports below 1024 need special privileges; the default is 18801")
            }
            _ => unavailable("bind_failed", format!("cannot listen on {address}: {error}"))
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
    // With a handler installed, a write beyond the file size limit fails instead of killing the process.
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
    instance.start_hooks(&instance.config).await?;
    let carrying = instance.start_telemetry();
    let (looked, is_looked) = oneshot::channel();
    let mut tasks = DaemonTasks::start(&instance.engine, is_looked);
    let _exchange =
        instance.broker_client.as_ref().map(|exchange| exchange.start_receivers(&instance.engine));
    // Written before the server accepts requests, because clients read the address from this file.
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
            Err(CommandFailure::failed("interrupted", "stopped immediately by a second signal")
                .hint("running work resumes at the next start").into())
        }
    }
}

/// Removes temporary files that an earlier process left in workspaces in the middle of a write.
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
        tracing::info!(removed, "removed temporary files of an earlier process from workspaces");
    }
}

/// Warns about unsafe settings at every start, because an old decision may be forgotten.
async fn warn_about_unsafe_settings(instance: &InstanceRuntime) {
    match instance.engine.safety_warnings().await {
        Ok(found) => log::log_safety_warnings(found),
        Err(error) => tracing::warn!(%error, "could not check for unsafe settings"),
    }
}

fn write_url(home: &Home, url: &str) -> Result<(), CommandFailure> {
    let path = home.url_file();
    home::write_note(&path, &format!("{url}\n")).map_err(|error| home::access_failure(&path, &error))
}

/// Looks for a model if none is configured, then lets turns start, starts the MCP servers and reports the model in
/// use.
async fn finish_startup<F>(instance: Arc<InstanceRuntime>, looked: oneshot::Sender<()>, ready: F)
where
    F: FnOnce(&InstanceRuntime) -> io::Result<()>,
{
    if let Err(error) = instance.search_model().await {
        tracing::error!(%error, "model found on this machine cannot be used");
    }
    let _ = looked.send(());
    if let Err(error) = instance.start_servers().await {
        tracing::error!(%error, "could not start the MCP servers");
    }
    let choice = instance.model_selection();
    tracing::info!(model = %choice.describe_selection(), "model in use");
    let _ = ready(&instance);
    instance.prepare_model().await;
    instance.await_model().await;
}

async fn reload_config(instance: &InstanceRuntime) {
    match instance.reload().await {
        Ok(later) if later.is_empty() => tracing::info!("config reloaded"),
        Ok(later) => tracing::warn!(
            sections = later.join(", "),
            "config reloaded; these sections take effect at the next start"
        ),
        Err(error) => tracing::error!(%error, "could not reload the config; the old one stays in force"),
    }
}

/// Stops accepting work, waits until turns reach a boundary, then lets the last responses finish.
async fn drain_instance(instance: &InstanceRuntime, tasks: &mut DaemonTasks, server: http::HttpServer) {
    tracing::info!("draining; new work is rejected");
    instance.engine.start_draining();
    match tokio::time::timeout(DRAIN_TIMEOUT, tasks.wait_for_end()).await {
        Ok(()) => tracing::info!("drained"),
        Err(_) => {
            tracing::warn!("some turns reached no boundary in time; they resume at the next start");
            tasks.working.shutdown().await;
            instance.engine.hand_back_all_turns().await;
        }
    }
    let _ = tokio::join!(
        tokio::time::timeout(RESPONSE_DRAIN_TIMEOUT, server.stop()),
        tokio::time::timeout(2 * RESPONSE_DRAIN_TIMEOUT, instance.mcp.stop())
    );
    if let Err(error) = instance.engine.checkpoint_databases() {
        tracing::warn!(%error, "could not checkpoint a database; keep its log file together with it");
    }
}

/// Makes the allocator return freed memory to the system. It does so when a large block is freed some time later, and
/// an idle daemon frees none: an unloaded model would stay in memory for hours.
async fn release_freed_memory() {
    const RELEASE_TRIGGER_BYTES: usize = 2 * 1024 * 1024;
    tokio::time::sleep(Duration::from_secs(2)).await;
    loop {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(RELEASE_TRIGGER_BYTES)));
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
}

/// The signals that stop a daemon.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    /// SIGHUP for a process in a terminal: the terminal was closed. Received once, because both the shell and the
    /// kernel send it.
    hangup: Option<Signal>,
}

impl StopSignals {
    pub fn listen() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())?, hangup: None })
    }

    /// Like [`Self::listen`], and also stops when the terminal closes, unless SIGHUP was ignored at start.
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

/// Returns whether SIGHUP was ignored when this process started, as with `nohup`: installing a handler would undo
/// that. Returns false if the system does not say.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// The engine's background tasks. `working` holds those that a drain waits for: receivers stop immediately, turns and
/// deliveries when they are done. The others are dropped.
struct DaemonTasks {
    working: JoinSet<()>,
    _waiting: JoinSet<()>,
}

impl DaemonTasks {
    /// Starts the tasks. Turns wait until the model is known; earlier ones would fail for lack of one.
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
