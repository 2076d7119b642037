//! `polyclaw up`: runs the control plane with a first instance, and prints the chat link and the model in use.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use polyclaw_api::logins::LoginLink;
use polyclaw_api::models::ModelList;
use polyclaw_control::{Control, ControlCaller, InstanceSnapshot};
use serde_json::json;

use crate::cli::{CommandContext, client_runtime};
use crate::client::ApiClient;
use crate::control::{self, ControlPlaneNotes, ControlPlaneOptions, OnControlReady};
use crate::daemon;
use crate::failure::CommandFailure;
use crate::instance::ConfigOverrides;
use crate::model_selection::ModelSelection;
use crate::output::{CliOutput, TextTone};
use crate::progress::ProgressDisplay;
use crate::weights::{CHAT_WEIGHTS, ModelDir, WeightsPull, pull_weights};

/// How long to wait while an instance looks for a model on this machine.
const MODEL_SEARCH_TIMEOUT: Duration = Duration::from_secs(3);
/// How long to wait while another caller is starting the instance.
const INSTANCE_START_TIMEOUT: Duration = Duration::from_secs(40);
/// Note printed below a login link.
const ONE_TIME_LINK_NOTICE: &str = "(works once, for ten minutes; run `polyclaw up` for another)";

/// Start Polyclaw in this terminal. Prints the link to the chat page and the model in use.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw up
  polyclaw up --open
  POLYCLAW_HOME=~/work-claw polyclaw up --port 18900

The link logs in one browser, once. If Polyclaw already runs on this home, `up` prints another link to it.
`up` starts the control plane and a first instance, `main`; `polyclaw instances` creates more.
Ctrl-C stops cleanly: running work reaches a safe point, and the rest resumes at the next start.")]
pub struct Args {
    /// Also open the link in the browser.
    #[arg(long)]
    open: bool,
    /// Port of the first instance. Overrides the config.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Leave the instances running when Ctrl-C stops the control plane.
    #[arg(long)]
    detach: bool,
    /// Do not download the demo model when no other model is available. Same as POLYCLAW_NO_PULL=1.
    #[arg(long)]
    no_pull: bool,
}

pub fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let overrides = ConfigOverrides { port: args.port, bind: None, quiet: true };
    context.home.create_missing()?;
    overrides.apply_overrides(context.home.read_config()?)?;
    if !args.no_pull && daemon::can_start(&context.home, overrides) {
        pull_demo_model(context);
    }
    let plan = ControlPlaneOptions {
        stops_instances: !args.detach,
        takes_any_port: true,
        quiet: true,
        ..ControlPlaneOptions::from_options(None, None)?
    };
    let first = FirstStart { context: context.clone(), opens: args.open, port: args.port };
    let ready: OnControlReady = Box::new(move |control, link| {
        Box::pin(async move { first.start_first_instance(&control, &link).await })
    });
    match control::run(&context.home, &plan, ready) {
        Err(error) if CommandFailure::from_error(&error).code == "control_running" => {
            show_running(args, context, &error)
        }
        other => other,
    }
}

/// The steps to run once the control plane serves.
struct FirstStart {
    context: CommandContext,
    opens: bool,
    port: Option<u16>,
}

impl FirstStart {
    /// Starts the first instance and prints its link on the terminal.
    async fn start_first_instance(self, control: &Control, control_link: &str) -> Result<(), CommandFailure> {
        let by = ControlCaller::operator();
        let main = control.adopt_home(&by, &self.context.home.read_config()?).await?;
        if let Some(port) = self.port {
            control.override_port(&main.id, port);
        }
        start_instance(control, &main).await?;
        let client = ApiClient::new(&self.context)?;
        let login: LoginLink = client.post_as("/logins", &json!({})).await?;
        let link = format!("{}{}", client.url(), login.path);
        if self.opens {
            open_browser(&link);
        }
        let model = wait_for_model(&client).await?;
        print_greeting(self.context.output, &link, control_link, &model)
            .map_err(|error| CommandFailure::failed("output", error.to_string()))
    }
}

/// Starts the instance. The supervisor may be starting it already, so a busy instance is retried.
async fn start_instance(control: &Control, main: &InstanceSnapshot) -> Result<(), CommandFailure> {
    let began = Instant::now();
    loop {
        match control.start_instance(&ControlCaller::operator(), main.id.as_str()).await {
            Ok(_) | Err(polyclaw_control::Error::AlreadyRunning { .. }) => return Ok(()),
            Err(polyclaw_control::Error::Busy(_)) if began.elapsed() < INSTANCE_START_TIMEOUT => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Describes the model in use in a sentence. Waits a moment, because a new instance may still be looking for a model.
async fn wait_for_model(client: &ApiClient) -> Result<String, CommandFailure> {
    let began = Instant::now();
    loop {
        let models: ModelList = client.get_as("/models").await?;
        if models.default_model.is_some() || began.elapsed() > MODEL_SEARCH_TIMEOUT {
            return Ok(models.in_use);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Downloads the demo model when this machine has no other model, so that the first message gets a reply. A failure
/// is printed and does not prevent the start.
fn pull_demo_model(context: &CommandContext) {
    let models = ModelDir::for_home(&context.home);
    let switched_off =
        std::env::var("POLYCLAW_NO_PULL").is_ok_and(|value| !matches!(value.as_str(), "" | "0"));
    let Ok(config) = context.home.read_config() else { return };
    let mut choice = ModelSelection::from_config(&config, |name| std::env::var(name).ok());
    if switched_off
        || choice.model.is_some()
        || !choice.providers.is_empty()
        || models.is_present(&CHAT_WEIGHTS)
    {
        return;
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let progress = ProgressDisplay::new(context.output.json);
    runtime.block_on(async {
        if choice.search_local_servers(&models).await {
            return;
        }
        progress.print_note(&format!(
            "No API key and no model server found: downloading a small demo model ({} MB, once). To start without it, \
             press Ctrl-C and run `polyclaw up --no-pull`.",
            CHAT_WEIGHTS.megabytes()
        ));
        let asked = WeightsPull { model_dir: &models, weights: &CHAT_WEIGHTS, from: None, progress: ProgressDisplay::new(context.output.json) };
        if let Err(failure) = pull_weights(&asked).await {
            progress.print_note(&format!("{}. Polyclaw starts without a model.", failure.message));
        }
    });
}

fn show_running(args: &Args, context: &CommandContext, error: &anyhow::Error) -> anyhow::Result<()> {
    let runtime = client_runtime()?;
    let link = runtime.block_on(new_login_link(&ApiClient::new(context)?));
    let fleet =
        ApiClient::for_control_plane(context).map(|control| runtime.block_on(new_login_link(&control))).ok();
    if args.open {
        open_browser(&link);
    }
    let value = json!({ "running": true, "pid": ControlPlaneNotes::for_home(&context.home).pid(), "link": link, "control": fleet });
    context.output.print_value(&value, |output| {
        let line = |name: &str, text: &str| format!("  {}  {text}", output.paint(TextTone::Bold, name));
        let open = format!("{}\n         {ONE_TIME_LINK_NOTICE}", line("open ", &link));
        let fleet = fleet.iter().map(|fleet| line("fleet", fleet));
        let lines = [format!("{error}\n"), open, line("talk ", "polyclaw chat")];
        lines.into_iter().chain(fleet).collect::<Vec<_>>().join("\n")
    })?;
    Ok(())
}

/// Returns a login link. If the instance does not answer yet, returns its plain URL; the page then asks for the
/// token.
async fn new_login_link(client: &ApiClient) -> String {
    let login: Result<LoginLink, CommandFailure> = client.post_as("/logins", &json!({})).await;
    format!("{}{}", client.url(), login.map(|login| login.path).unwrap_or_default())
}

fn print_greeting(output: CliOutput, link: &str, control: &str, model: &str) -> std::io::Result<()> {
    let value = json!({ "running": true, "pid": std::process::id(), "link": link, "control": control, "model": model });
    output.print_value(&value, |output| {
        let line = |name: &str, text: &str| format!("  {}  {text}", output.paint(TextTone::Bold, name));
        let title = format!("Polyclaw {} is up.", env!("CARGO_PKG_VERSION"));
        let open = format!("{}\n         {ONE_TIME_LINK_NOTICE}", line("open ", link));
        let rest = [line("model", model), line("talk ", "polyclaw chat"), line("fleet", control)];
        [vec![title, String::new(), open], rest.to_vec()].concat().join("\n")
    })
}

/// Opens the link in a browser. Errors are ignored: the link is also on the terminal.
fn open_browser(link: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let _ = Command::new(opener).arg(link).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}
