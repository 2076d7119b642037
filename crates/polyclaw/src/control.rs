//! Runs the control plane of a home: serves its API and supervises its instances. When it ends, instances keep
//! running unless it was asked to stop them.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use polyclaw_control::{Control, ControlCaller, ControlDependencies, DRAIN_TIMEOUT, LOCK_FILE, lock};
use polyclaw_domain::config::{self, GatewayConfig, ObservabilityConfig};
use polyclaw_domain::port::{BoxFuture, WallClock};
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::safety::{self, InstanceExposure};
use polyclaw_server::control::{ControlSetup, ControlState, control_router};
use polyclaw_server::{AuthMode, BrowserPrincipal, LoginCodes};

use crate::client::base_url;
use crate::clock::SystemClock;
use crate::daemon::{self, StopSignals};
use crate::failure::CommandFailure;
use crate::home::{self, Home, MODELS_DIR_ENV};
use crate::hot_swap::HotSwap;
use crate::http::{HttpServer, host_name_of_bind};
use crate::ids::SortableIds;
use crate::log;
use crate::redaction::RedactedLog;
use crate::secrets::SecretStore;

/// Default port of a control plane.
pub const DEFAULT_CONTROL_PORT: u16 = 18800;
/// How long open responses may take to finish at shutdown.
const RESPONSE_DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// Options of a control plane.
#[derive(Clone, Debug)]
pub struct ControlPlaneOptions {
    pub bind: IpAddr,
    /// `None` uses the default port.
    pub port: Option<u16>,
    /// Use any free port if the default port is taken by another home.
    pub takes_any_port: bool,
    pub asks_for_token: bool,
    /// Host names accepted besides loopback and the listen address.
    pub allowed_hosts: Vec<String>,
    /// Stop the instances that it started when it ends.
    pub stops_instances: bool,
    /// Log less, because the essentials are printed on the terminal.
    pub quiet: bool,
    /// Idle timeout of sockets. Defaults to 90 seconds.
    pub idle: Option<Duration>,
}

impl ControlPlaneOptions {
    /// Reads the options from the command line, else from `POLYCLAW_CP_BIND` and `POLYCLAW_CP_PORT`. Allowed hosts
    /// come from the environment; the caller adds its own.
    pub fn from_options(bind: Option<IpAddr>, port: Option<u16>) -> Result<Self, CommandFailure> {
        let stated = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let wrong = |name: &str| CommandFailure::usage(format!("{name} is invalid"));
        let from =
            |name: &str| stated(name).map(|text| text.parse::<IpAddr>().map_err(|_| wrong(name))).transpose();
        let number =
            |name: &str| stated(name).map(|text| text.parse::<u16>().map_err(|_| wrong(name))).transpose();
        let bind = bind.map_or_else(|| from("POLYCLAW_CP_BIND"), |bind| Ok(Some(bind)))?;
        let port = port.map_or_else(|| number("POLYCLAW_CP_PORT"), |port| Ok(Some(port)))?;
        Ok(Self {
            bind: bind.unwrap_or(Ipv4Addr::LOCALHOST.into()),
            port,
            takes_any_port: false,
            asks_for_token: true,
            allowed_hosts: parse_hosts(&stated(ALLOWED_HOSTS_ENV).unwrap_or_default()),
            stops_instances: false,
            quiet: false,
            idle: number("POLYCLAW_CP_IDLE_SECS")?.map(|seconds| Duration::from_secs(seconds.into())),
        })
    }

    fn gateway_config(&self, port: u16) -> GatewayConfig {
        GatewayConfig { bind: self.bind, port, ..GatewayConfig::default() }
    }

    /// Binds the listen port. Falls back to any free port only for the default port, never for one that was asked
    /// for.
    fn bind_listener(&self) -> Result<TcpListener, CommandFailure> {
        let usual = daemon::bind_listener(&self.gateway_config(self.port.unwrap_or(DEFAULT_CONTROL_PORT)));
        match usual {
            Err(failure) if self.takes_any_port && self.port.is_none() && failure.code == "port_in_use" => {
                daemon::bind_listener(&self.gateway_config(0))
            }
            other => other,
        }
        .map_err(control_plane_failure)
    }
}

/// Replaces hints about an instance's config: a control plane's address is not set there.
fn control_plane_failure(failure: CommandFailure) -> CommandFailure {
    let hint = match failure.code.as_str() {
        "port_in_use" => {
            "stop the program that uses it, or set another with POLYCLAW_CP_PORT or `polyclaw control serve --port`"
        }
        "port_refused" => "ports below 1024 need special privileges; the default is 18800",
        _ => "POLYCLAW_CP_BIND or `polyclaw control serve --bind` must be an address of this machine",
    };
    failure.hint(hint)
}

/// Comma-separated host names.
const ALLOWED_HOSTS_ENV: &str = "POLYCLAW_CP_ALLOWED_HOSTS";

fn parse_hosts(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|host| !host.is_empty()).map(str::to_owned).collect()
}

/// Tells instances where the control plane's notes are.
pub const CONTROL_FOLDER_ENV: &str = "POLYCLAW_CP_FOLDER";

/// Files that a running control plane leaves in the home for clients.
pub struct ControlPlaneNotes(PathBuf);

impl ControlPlaneNotes {
    pub fn for_home(home: &Home) -> Self {
        Self::in_folder(home.control_dir())
    }

    pub fn in_folder(folder: PathBuf) -> Self {
        Self(folder)
    }

    fn read_note(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.0.join(name)).ok()?.trim().to_owned();
        Some(text).filter(|text| !text.is_empty())
    }

    /// Returns the control plane's URL. Ignores the note of a killed control plane, because another program may have
    /// its port now.
    pub fn url(&self) -> Option<String> {
        self.read_note("control.url").filter(|_| lock::is_held(&self.0.join(LOCK_FILE)))
    }

    pub fn pid(&self) -> Option<u32> {
        self.read_note("control.pid")?.parse().ok()
    }

    /// Returns the token from `POLYCLAW_TOKEN`, else from the file.
    pub fn token(&self) -> Option<String> {
        home::stated_token().or_else(|| self.read_note("token"))
    }

    fn ensure_token(&self) -> Result<String, CommandFailure> {
        self.token().map_or_else(|| home::make_token(&self.0.join("token")), Ok)
    }

    fn write_url(&self, url: &str) -> Result<(), CommandFailure> {
        for (name, text) in [("control.url", url.to_owned()), ("control.pid", std::process::id().to_string())]
        {
            let path = self.0.join(name);
            home::write_note(&path, &format!("{text}\n"))
                .map_err(|error| home::access_failure(&path, &error))?;
        }
        Ok(())
    }

    fn remove_notes(&self) {
        for name in ["control.url", "control.pid"] {
            let _ = fs::remove_file(self.0.join(name));
        }
    }
}

/// Returns the time after which an unresponsive instance is killed: `POLYCLAW_CP_HUNG_AFTER` in seconds, 0 for never.
fn hung_timeout() -> Result<Option<Duration>, CommandFailure> {
    const HUNG_AFTER_ENV: &str = "POLYCLAW_CP_HUNG_AFTER";
    const DEFAULT_HUNG_AFTER_SECONDS: u64 = 120;
    let stated = std::env::var(HUNG_AFTER_ENV).ok().filter(|value| !value.is_empty());
    let seconds = stated.map_or(Ok(DEFAULT_HUNG_AFTER_SECONDS), |text| text.parse());
    let seconds = seconds
        .map_err(|_| CommandFailure::usage(format!("{HUNG_AFTER_ENV} must be a number of seconds")))?;
    Ok(Some(Duration::from_secs(seconds)).filter(|limit| !limit.is_zero()))
}

/// Opens the control plane of a home. Blocks.
pub fn open(home: &Home) -> Result<Control, CommandFailure> {
    let clock: Arc<dyn WallClock> = Arc::new(SystemClock);
    let program =
        std::env::current_exe().map_err(|error| CommandFailure::failed("no_program", error.to_string()))?;
    let setup = ControlDependencies {
        home: home.path().to_owned(),
        ids: Arc::new(SortableIds::new(Arc::clone(&clock))),
        clock,
        program: program.into(),
        load: Arc::new(|folder, text| Home::at(folder.to_owned()).load_config(text)),
        hung_after: hung_timeout()?,
        check: Arc::new(|folder, text| Home::at(folder.to_owned()).check_config(text)),
        environment: vec![
            (MODELS_DIR_ENV.into(), home.models_dir().into()),
            (CONTROL_FOLDER_ENV.into(), home.control_dir().into()),
        ],
        home_token: home::stated_token(),
        keep_secret: Arc::new(|folder, name, value| {
            SecretStore::for_home(&Home::at(folder.to_owned()))
                .set(name, value)
                .map_err(|failure| failure.message)
        }),
        user_home: std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from),
    };
    Control::open(setup).map_err(|error| match error {
        polyclaw_control::Error::ServerRunning(place) => {
            let pid = ControlPlaneNotes::for_home(home)
                .pid()
                .map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
            let message = format!("a control plane (pid {pid}) already runs on {place}");
            CommandFailure { message, ..CommandFailure::from(polyclaw_control::Error::ServerRunning(place)) }
        }
        other => other.into(),
    })
}

/// Callback that runs once the control plane serves.
pub type OnControlReady =
    Box<dyn FnOnce(Control, String) -> BoxFuture<'static, Result<(), CommandFailure>> + Send>;

/// Runs until a signal arrives. Ends with the error of `ready` if that fails.
pub fn run(home: &Home, plan: &ControlPlaneOptions, ready: OnControlReady) -> anyhow::Result<()> {
    if !plan.asks_for_token && !plan.bind.is_loopback() {
        return Err(CommandFailure::usage("without a token only a loopback address can be bound")
            .hint("omit --no-token, or bind 127.0.0.1")
            .into());
    }
    home::make_private(&home.control_dir())?;
    let control = open(home)?;
    let token = ControlPlaneNotes::for_home(home).ensure_token()?;
    let redactor = || Redactor::new([token.clone()].into_iter().chain(home.read_token()));
    control.set_redactor(redactor());
    let redactor = Arc::new(HotSwap::new(redactor()));
    log::start_logging(&ObservabilityConfig::default(), plan.quiet, RedactedLog::new(redactor));
    log::log_panics();
    daemon::raise_open_file_limit();
    daemon::disable_core_dumps();
    let listener = plan.bind_listener()?;
    let runtime = daemon::build_runtime()?;
    let outcome = runtime.block_on(serve_until_stopped(home, plan, control, token, listener, ready));
    ControlPlaneNotes::for_home(home).remove_notes();
    runtime.shutdown_timeout(Duration::from_millis(500));
    outcome
}

async fn serve_until_stopped(
    home: &Home,
    plan: &ControlPlaneOptions,
    control: Control,
    token: String,
    listener: TcpListener,
    ready: OnControlReady,
) -> anyhow::Result<()> {
    let mut stops = StopSignals::with_terminal()?;
    let port = listener.local_addr()?.port();
    let url = base_url(&plan.gateway_config(port));
    control.set_listen_address(url.clone(), port);
    if plan.stops_instances {
        control.set_ends_children();
    }
    control.recover().await.map_err(CommandFailure::from)?;
    adopt_instances(home, &control).await?;
    let logins = LoginCodes::default();
    let mut server = start_server(plan, &control, token, port, &logins, listener)?;
    ControlPlaneNotes::for_home(home).write_url(&url)?;
    tracing::info!(%url, pid = std::process::id(), "control plane is ready");
    warn_about_exposure(plan);
    let (looking, keeping) = (control.clone(), control.clone());
    let supervisor = tokio::spawn(async move { looking.run_supervisor().await });
    let keeper = tokio::spawn(async move { keeping.run_message_sweeper().await });
    let code = control.nonce();
    logins.open_code(code.clone(), BrowserPrincipal::Owner, control.now());
    let link = format!("{url}{}", polyclaw_server::login_path(&code));
    let work = async {
        ready(control.clone(), link).await?;
        std::future::pending::<Result<(), CommandFailure>>().await
    };
    let outcome = tokio::select! {
        failed = work => failed,
        () = stops.recv() => Ok(()),
        ended = server.wait_for_end() => Err(ended),
    };
    tracing::info!("control plane is shutting down");
    supervisor.abort();
    keeper.abort();
    let _ = tokio::time::timeout(RESPONSE_DRAIN_TIMEOUT, server.stop()).await;
    if plan.stops_instances {
        tokio::select! {
            () = control.stop_children(DRAIN_TIMEOUT) => {}
            () = stops.recv() => tracing::warn!("second signal received; instances are left running"),
        }
    }
    outcome.map_err(anyhow::Error::from)
}

/// Checks only the control plane's own exposure; the home's instance checks its own.
fn warn_about_exposure(plan: &ControlPlaneOptions) {
    let auth = if plan.asks_for_token { config::GatewayAuth::Token } else { config::GatewayAuth::Off };
    let is_root = rustix::process::geteuid().is_root();
    let exposure = InstanceExposure { is_root, bind: plan.bind, auth, unconfined_servers: Vec::new() };
    log::log_safety_warnings(safety::exposure_warnings(&exposure));
}

async fn adopt_instances(home: &Home, control: &Control) -> Result<(), CommandFailure> {
    if home.config_file().exists() {
        control.adopt_home(&ControlCaller::operator(), &home.read_config().unwrap_or_default()).await?;
    }
    Ok(())
}

fn start_server(
    plan: &ControlPlaneOptions,
    control: &Control,
    token: String,
    port: u16,
    logins: &LoginCodes,
    listener: TcpListener,
) -> io::Result<HttpServer> {
    let setup = ControlSetup {
        control: control.clone(),
        auth: if plan.asks_for_token { AuthMode::Token(token) } else { AuthMode::Off },
        allowed_hosts: host_name_of_bind(plan.bind)
            .into_iter()
            .chain(plan.allowed_hosts.iter().cloned())
            .collect(),
        allowed_origins: Vec::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        port,
        logins: logins.clone(),
        socket_idle_timeout: plan.idle,
    };
    HttpServer::from_router(control_router(ControlState::new(setup)), listener)
}
