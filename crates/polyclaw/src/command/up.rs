//! `polyclaw up`: the one command. Runs an instance and says where it is and which model answers.

use std::process::{Command, Stdio};

use crate::choice::Choice;
use crate::cli::Context;
use crate::client::Client;
use crate::daemon;
use crate::failure::Failure;
use crate::instance::{Instance, Overrides};
use crate::output::{Output, Tone};
use crate::progress::Progress;
use crate::weights::{CHAT, Pull, Shelf, pull};

/// Start an instance and print the link and the model in use.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw up
  polyclaw up --open
  POLYCLAW_HOME=~/work-claw polyclaw up --port 18900

Ctrl-C stops cleanly: running turns reach a boundary, and what is left goes on at the next start.")]
pub struct Args {
    /// Open the link in the browser.
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
    if !args.no_pull {
        first_model(context);
    }
    let overrides = Overrides { port: args.port, bind: None, quiet: true };
    let (output, opens) = (context.output, args.open);
    let ready = move |instance: &Instance| {
        let link = link(&daemon::address(&instance.config), &instance.token);
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
    let token = context.home.token().unwrap_or_default();
    let link = link(Client::new(context)?.url(), &token);
    if args.open {
        open(&link);
    }
    let value = serde_json::json!({ "running": true, "pid": context.home.pid(), "link": link });
    context.output.say(&value, |output| {
        format!(
            "{error}\n\n  {}  {link}\n  {}  polyclaw chat",
            output.paint(Tone::Bold, "open"),
            output.paint(Tone::Bold, "talk")
        )
    })?;
    Ok(())
}

fn greet(output: Output, link: &str, model: &str) -> std::io::Result<()> {
    let value =
        serde_json::json!({ "running": true, "pid": std::process::id(), "link": link, "model": model });
    output.say(&value, |output| {
        let line = |name: &str, text: &str| format!("  {}  {text}", output.paint(Tone::Bold, name));
        let title = format!("Polyclaw {} is up.", env!("CARGO_PKG_VERSION"));
        [title, String::new(), line("open ", link), line("model", model), line("talk ", "polyclaw chat")]
            .join("\n")
    })
}

fn link(url: &str, token: &str) -> String {
    format!("{url}/?token={token}")
}

/// Best effort: a machine without a browser has the link on its terminal.
fn open(link: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let _ = Command::new(opener).arg(link).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}
