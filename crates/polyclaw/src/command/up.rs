//! `polyclaw up`: the one command. Runs an instance and says where it is and which model answers.

use std::process::{Command, Stdio};

use polyclaw_server::login_path;
use serde_json::json;

use crate::choice::Choice;
use crate::cli::{Context, client_runtime};
use crate::client::Client;
use crate::daemon;
use crate::failure::Failure;
use crate::instance::{Instance, Overrides};
use crate::output::{Output, Tone};
use crate::progress::Progress;
use crate::weights::{CHAT, Pull, Shelf, pull};

/// What is said beside a link.
const ONCE: &str = "(works once, for ten minutes; `polyclaw up` prints another)";

/// Start Polyclaw in this terminal; print the link to the chat page and the model in use.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw up
  polyclaw up --open
  POLYCLAW_HOME=~/work-claw polyclaw up --port 18900

The link lets one browser in, once. If Polyclaw runs on this home already, `up` prints another link to it.
Ctrl-C stops cleanly: what the agents are doing reaches a safe point, and the rest goes on at the next start.")]
pub struct Args {
    /// Open the link in the browser too.
    #[arg(long)]
    open: bool,
    /// The port to listen on, instead of the config's.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Do not fetch the demo model where nothing else can answer. POLYCLAW_NO_PULL=1 says the same.
    #[arg(long)]
    no_pull: bool,
}

pub fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let overrides = Overrides { port: args.port, bind: None, quiet: true };
    if !args.no_pull && daemon::could_start(&context.home, overrides) {
        first_model(context);
    }
    let (output, opens) = (context.output, args.open);
    let ready = move |instance: &Instance| {
        let link = link(instance);
        if opens {
            open(&link);
        }
        greet(output, &link, &instance.choice().sentence())
    };
    match daemon::run(&context.home, overrides, ready) {
        Err(error) if Failure::of(&error).code == "already_running" => already(args, context, &error),
        other => other,
    }
}

/// On a machine where nothing can answer the demo model is fetched, so that the first message gets a reply. What
/// goes wrong is said and does not keep Polyclaw from starting.
fn first_model(context: &Context) {
    let shelf = Shelf::of(&context.home);
    let switched_off =
        std::env::var("POLYCLAW_NO_PULL").is_ok_and(|value| !matches!(value.as_str(), "" | "0"));
    let Ok(config) = context.home.read_config() else { return };
    let mut choice = Choice::known(&config, |name| std::env::var(name).ok());
    if switched_off || choice.model.is_some() || !choice.providers.is_empty() || shelf.has(&CHAT) {
        return;
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let progress = Progress::new(context.output.json);
    runtime.block_on(async {
        if choice.search(&shelf).await {
            return;
        }
        progress.note(&format!(
            "No key and no model server here: fetching a small demo model ({} MB, once). Ctrl-C and `polyclaw up \
             --no-pull` start without it.",
            CHAT.megabytes()
        ));
        let asked = Pull { shelf: &shelf, weights: &CHAT, from: None, progress: Progress::new(context.output.json) };
        if let Err(failure) = pull(&asked).await {
            progress.note(&format!("{}. Polyclaw starts without a model.", failure.message));
        }
    });
}

fn already(args: &Args, context: &Context, error: &anyhow::Error) -> anyhow::Result<()> {
    let client = Client::new(context)?;
    let login = client_runtime()?.block_on(client.post("/logins", &json!({})));
    // One that does not answer yet is told where it will be; its page asks for the token.
    let path = login.ok().and_then(|login| login["path"].as_str().map(str::to_owned)).unwrap_or_default();
    let link = format!("{}{path}", client.url());
    if args.open {
        open(&link);
    }
    let value = json!({ "running": true, "pid": context.home.pid(), "link": link });
    context.output.say(&value, |output| {
        format!(
            "{error}\n\n  {}  {link}\n         {ONCE}\n  {}  polyclaw chat",
            output.paint(Tone::Bold, "open "),
            output.paint(Tone::Bold, "talk ")
        )
    })?;
    Ok(())
}

fn greet(output: Output, link: &str, model: &str) -> std::io::Result<()> {
    let value = json!({ "running": true, "pid": std::process::id(), "link": link, "model": model });
    output.say(&value, |output| {
        let line = |name: &str, text: &str| format!("  {}  {text}", output.paint(Tone::Bold, name));
        let title = format!("Polyclaw {} is up.", env!("CARGO_PKG_VERSION"));
        let open = format!("{}\n         {ONCE}", line("open ", link));
        [title, String::new(), open, line("model", model), line("talk ", "polyclaw chat")].join("\n")
    })
}

/// A link that lets one browser in, once. It may be read by others, in a process list for example, so it does not
/// hold the token.
fn link(instance: &Instance) -> String {
    let code = instance.engine.nonce();
    instance.logins.open(code.clone(), instance.engine.now());
    format!("{}{}", daemon::address(&instance.config), login_path(&code))
}

/// Best effort: a machine without a browser has the link on its terminal.
fn open(link: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let _ = Command::new(opener).arg(link).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}
