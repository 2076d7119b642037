//! Runs the control plane of a home: serves it, supervises its instances, and ends without ending them unless it is
//! asked to.

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
use crate::current::Current;
use crate::daemon::{self, Stops};
use crate::failure::Failure;
use crate::home::{self, Home, MODELS};
use crate::http::{Server, own_name};
use crate::ids::SortableIds;
use crate::log;
use crate::redaction::CleanLog;
use crate::secrets::Secrets;

/// Where a control plane listens that is told nothing else.
pub const PORT: u16 = 18800;
/// How long answers on the wire get to end.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// How a control plane is to run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub bind: IpAddr,
    /// `None`: the usual one.
    pub port: Option<u16>,
    /// Where another home has the usual port, any will do.
    pub takes_any_port: bool,
    pub asks_for_token: bool,
    /// Names it is reached by besides loopback and the address it listens on.
    pub allowed_hosts: Vec<String>,
    /// At the end those it started end too.
    pub stops_instances: bool,
    /// Log less: what a person wants to know is said on the terminal.
    pub quiet: bool,
    /// Whoever says nothing on a socket for this long is let go; 90 seconds if not stated.
    pub idle: Option<Duration>,
}

impl Plan {
    /// From the command line, else `POLYCLAW_CP_BIND` and `POLYCLAW_CP_PORT`. Names are added to those of the environment.
    pub fn of(bind: Option<IpAddr>, port: Option<u16>) -> Result<Self, Failure> {
        let stated = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let wrong = |name: &str| Failure::usage(format!("{name} can not be read"));
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
            allowed_hosts: hosts(&stated(HOSTS).unwrap_or_default()),
            stops_instances: false,
            quiet: false,
            idle: number("POLYCLAW_CP_IDLE_SECS")?.map(|seconds| Duration::from_secs(seconds.into())),
        })
    }

    fn gateway(&self, port: u16) -> GatewayConfig {
        GatewayConfig { bind: self.bind, port, ..GatewayConfig::default() }
    }

    /// The usual port may be another home's; one that was asked for is taken or nothing is.
    fn listen(&self) -> Result<TcpListener, Failure> {
        let usual = daemon::bind(&self.gateway(self.port.unwrap_or(PORT)));
        match usual {
            Err(failure) if self.takes_any_port && self.port.is_none() && failure.code == "port_in_use" => {
                daemon::bind(&self.gateway(0))
            }
            other => other,
        }
        .map_err(in_own_words)
    }
}

/// Where a control plane listens is no setting of an instance's config.
fn in_own_words(failure: Failure) -> Failure {
    let hint = match failure.code.as_str() {
        "port_in_use" => {
            "stop what listens there, or name another in POLYCLAW_CP_PORT or with `polyclaw control serve --port`"
        }
        "port_refused" => "ports below 1024 need rights of their own; the default is 18800",
        _ => "POLYCLAW_CP_BIND or `polyclaw control serve --bind` must be an address of this machine",
    };
    failure.hint(hint)
}

/// Names, with commas between them.
const HOSTS: &str = "POLYCLAW_CP_ALLOWED_HOSTS";

fn hosts(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|host| !host.is_empty()).map(str::to_owned).collect()
}

/// Tells instances where the notes are.
pub const FOLDER: &str = "POLYCLAW_CP_FOLDER";

/// What a running control plane leaves in the home for clients.
pub struct Notes(PathBuf);

impl Notes {
    pub fn of(home: &Home) -> Self {
        Self::below(home.control())
    }

    pub fn below(folder: PathBuf) -> Self {
        Self(folder)
    }

    fn read(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.0.join(name)).ok()?.trim().to_owned();
        Some(text).filter(|text| !text.is_empty())
    }

    /// Where it listens. A note of one that was killed is none: whoever has its port now is somebody else.
    pub fn url(&self) -> Option<String> {
        self.read("control.url").filter(|_| lock::is_held(&self.0.join(LOCK_FILE)))
    }

    pub fn pid(&self) -> Option<u32> {
        self.read("control.pid")?.parse().ok()
    }

    /// `POLYCLAW_TOKEN`, else the one in the file.
    pub fn token(&self) -> Option<String> {
        home::stated_token().or_else(|| self.read("token"))
    }

    fn ensure_token(&self) -> Result<String, Failure> {
        self.token().map_or_else(|| home::make_token(&self.0.join("token")), Ok)
    }

    fn write(&self, url: &str) -> Result<(), Failure> {
        for (name, text) in [("control.url", url.to_owned()), ("control.pid", std::process::id().to_string())]
        {
            let path = self.0.join(name);
            home::write_note(&path, &format!("{text}\n")).map_err(|error| home::refused(&path, &error))?;
        }
        Ok(())
    }

    fn clear(&self) {
        for name in ["control.url", "control.pid"] {
            let _ = fs::remove_file(self.0.join(name));
        }
    }
}

/// After how long an instance that answers nothing is ended: `POLYCLAW_CP_HUNG_AFTER` in seconds, 0 for never.
fn hung_after() -> Result<Option<Duration>, Failure> {
    const NAME: &str = "POLYCLAW_CP_HUNG_AFTER";
    const USUAL_SECONDS: u64 = 120;
    let stated = std::env::var(NAME).ok().filter(|value| !value.is_empty());
    let seconds = stated.map_or(Ok(USUAL_SECONDS), |text| text.parse());
    let seconds = seconds.map_err(|_| Failure::usage(format!("{NAME} is a number of seconds")))?;
    Ok(Some(Duration::from_secs(seconds)).filter(|limit| !limit.is_zero()))
}

/// Opens the control plane of a home. Blocks.
pub fn open(home: &Home) -> Result<Control, Failure> {
    let clock: Arc<dyn WallClock> = Arc::new(SystemClock);
    let program =
        std::env::current_exe().map_err(|error| Failure::failed("no_program", error.to_string()))?;
    let setup = ControlDependencies {
        home: home.path().to_owned(),
        ids: Arc::new(SortableIds::new(Arc::clone(&clock))),
        clock,
        program: program.into(),
        load: Arc::new(|folder, text| Home::at(folder.to_owned()).load(text)),
        hung_after: hung_after()?,
        check: Arc::new(|folder, text| Home::at(folder.to_owned()).check(text)),
        environment: vec![(MODELS.into(), home.models().into()), (FOLDER.into(), home.control().into())],
        home_token: home::stated_token(),
        keep_secret: Arc::new(|folder, name, value| {
            Secrets::of(&Home::at(folder.to_owned())).set(name, value).map_err(|failure| failure.message)
        }),
        user_home: std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from),
    };
    Control::open(setup).map_err(|error| match error {
        polyclaw_control::Error::ServerRunning(place) => {
            let pid = Notes::of(home).pid().map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
            let message = format!("a control plane (pid {pid}) already runs on {place}");
            Failure { message, ..Failure::from(polyclaw_control::Error::ServerRunning(place)) }
        }
        other => other.into(),
    })
}

/// What a command does once the control plane serves.
pub type Ready = Box<dyn FnOnce(Control, String) -> BoxFuture<'static, Result<(), Failure>> + Send>;

/// Runs until a signal ends it. Where `ready` fails, it ends with that.
pub fn run(home: &Home, plan: &Plan, ready: Ready) -> anyhow::Result<()> {
    if !plan.asks_for_token && !plan.bind.is_loopback() {
        return Err(Failure::usage("without a token only a loopback address can be bound")
            .hint("leave --no-token out, or bind 127.0.0.1")
            .into());
    }
    home::make_private(&home.control())?;
    let control = open(home)?;
    let token = Notes::of(home).ensure_token()?;
    let redactor = || Redactor::new([token.clone()].into_iter().chain(home.token()));
    control.set_redactor(redactor());
    let redactor = Arc::new(Current::new(redactor()));
    log::start(&ObservabilityConfig::default(), plan.quiet, CleanLog::new(redactor));
    log::catch_panics();
    daemon::raise_open_files();
    daemon::leave_no_core();
    let listener = plan.listen()?;
    let runtime = daemon::runtime()?;
    let outcome = runtime.block_on(serve(home, plan, control, token, listener, ready));
    Notes::of(home).clear();
    runtime.shutdown_timeout(Duration::from_millis(500));
    outcome
}

async fn serve(
    home: &Home,
    plan: &Plan,
    control: Control,
    token: String,
    listener: TcpListener,
    ready: Ready,
) -> anyhow::Result<()> {
    let mut stops = Stops::with_terminal()?;
    let port = listener.local_addr()?.port();
    let url = base_url(&plan.gateway(port));
    control.set_listen_address(url.clone(), port);
    if plan.stops_instances {
        control.set_ends_children();
    }
    control.recover().await.map_err(Failure::from)?;
    adopt(home, &control).await?;
    let logins = LoginCodes::default();
    let mut server = start(plan, &control, token, port, &logins, listener)?;
    Notes::of(home).write(&url)?;
    tracing::info!(%url, pid = std::process::id(), "the control plane is ready");
    warn_of_exposure(plan);
    let (looking, keeping) = (control.clone(), control.clone());
    let supervisor = tokio::spawn(async move { looking.run_supervisor().await });
    let keeper = tokio::spawn(async move { keeping.run_message_sweeper().await });
    let code = control.nonce();
    logins.open_code(code.clone(), BrowserPrincipal::Owner, control.now());
    let link = format!("{url}{}", polyclaw_server::login_path(&code));
    let work = async {
        ready(control.clone(), link).await?;
        std::future::pending::<Result<(), Failure>>().await
    };
    let outcome = tokio::select! {
        failed = work => failed,
        () = stops.recv() => Ok(()),
        ended = server.ended() => Err(ended),
    };
    tracing::info!("the control plane ends");
    supervisor.abort();
    keeper.abort();
    let _ = tokio::time::timeout(LAST_WORDS, server.stop()).await;
    if plan.stops_instances {
        tokio::select! {
            () = control.stop_children(DRAIN_TIMEOUT) => {}
            () = stops.recv() => tracing::warn!("a second signal: instances are left running"),
        }
    }
    outcome.map_err(anyhow::Error::from)
}

/// The home's own instance is one of ours, if there is one.
fn warn_of_exposure(plan: &Plan) {
    let auth = if plan.asks_for_token { config::GatewayAuth::Token } else { config::GatewayAuth::Off };
    let is_root = rustix::process::geteuid().is_root();
    let exposure = InstanceExposure { is_root, bind: plan.bind, auth, unconfined_servers: Vec::new() };
    log::unsafe_settings(safety::exposure_warnings(&exposure));
}

async fn adopt(home: &Home, control: &Control) -> Result<(), Failure> {
    if home.config().exists() {
        control.adopt_home(&ControlCaller::operator(), &home.read_config().unwrap_or_default()).await?;
    }
    Ok(())
}

fn start(
    plan: &Plan,
    control: &Control,
    token: String,
    port: u16,
    logins: &LoginCodes,
    listener: TcpListener,
) -> io::Result<Server> {
    let setup = ControlSetup {
        control: control.clone(),
        auth: if plan.asks_for_token { AuthMode::Token(token) } else { AuthMode::Off },
        allowed_hosts: own_name(plan.bind).into_iter().chain(plan.allowed_hosts.iter().cloned()).collect(),
        allowed_origins: Vec::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        port,
        logins: logins.clone(),
        socket_idle_timeout: plan.idle,
    };
    Server::of(control_router(ControlState::new(setup)), listener)
}
