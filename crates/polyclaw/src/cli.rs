//! The command line. The enum is the table of contents: one command, one file.

use clap::{Args, Parser, Subcommand};

use crate::command::{
    agent, agents, approvals, bench, chat, completions, config, daemon, doctor, events, model, models,
    outbox, selftest, sessions, status, up, usage,
};
use crate::home::Home;
use crate::output::Output;

#[derive(Parser)]
#[command(
    name = "polyclaw",
    version,
    about = "A gateway for many agents: one program, one home, no lost message."
)]
#[command(after_help = "Examples:
  polyclaw up                                 start, and print the link and the model in use
  polyclaw chat                               talk in the terminal
  polyclaw agent --message \"What is new?\"     one question, the answer on stdout

Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 unavailable.
The home is POLYCLAW_HOME, else ~/.polyclaw.")]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Args, Clone, Debug)]
pub struct Global {
    /// One JSON object for machines: {"ok": …} or {"error": {code, message, hint}}.
    #[arg(long, global = true)]
    pub json: bool,
    /// Where the instance is, if not where this home's daemon listens.
    #[arg(long, global = true, env = "POLYCLAW_URL", value_name = "URL")]
    pub url: Option<String>,
    /// The instance's token, if not this home's. POLYCLAW_TOKEN sets it too.
    #[arg(long, global = true, value_name = "TOKEN")]
    pub token: Option<String>,
}

#[derive(Subcommand)]
pub enum Command {
    Up(up::Args),
    Daemon(daemon::Args),
    Chat(chat::Args),
    Agent(agent::Args),
    Agents(agents::Args),
    Sessions(sessions::Args),
    Models(models::Args),
    Model(model::Args),
    Approvals(approvals::Args),
    Outbox(outbox::Args),
    Usage(usage::Args),
    Events(events::Args),
    Status(status::Args),
    Doctor(doctor::Args),
    Config(config::Args),
    Completions(completions::Args),
    Selftest(selftest::Args),
    Bench(bench::Args),
}

/// What every command gets.
pub struct Context {
    pub home: Home,
    pub output: Output,
    pub global: Global,
}

impl Cli {
    pub fn run(self) -> anyhow::Result<()> {
        let context =
            Context { home: Home::locate()?, output: Output::new(self.global.json), global: self.global };
        match self.command {
            Command::Up(args) => up::run(&args, &context),
            Command::Daemon(args) => daemon::run(&args, &context),
            Command::Config(args) => config::run(&args, &context),
            Command::Completions(args) => completions::run(&args),
            Command::Selftest(args) => selftest::run(&args, &context),
            Command::Bench(args) => bench::run(&args, &context),
            other => client_runtime()?.block_on(other.talk(&context)),
        }
    }
}

impl Command {
    /// The commands that talk to an instance.
    async fn talk(self, context: &Context) -> anyhow::Result<()> {
        match self {
            Self::Chat(args) => chat::run(&args, context).await,
            Self::Agent(args) => agent::run(&args, context).await,
            Self::Agents(args) => agents::run(&args, context).await,
            Self::Sessions(args) => sessions::run(&args, context).await,
            Self::Models(args) => models::run(&args, context).await,
            Self::Model(args) => model::run(&args, context).await,
            Self::Approvals(args) => approvals::run(&args, context).await,
            Self::Outbox(args) => outbox::run(&args, context).await,
            Self::Usage(args) => usage::run(&args, context).await,
            Self::Events(args) => events::run(&args, context).await,
            Self::Status(args) => status::run(&args, context).await,
            Self::Doctor(args) => doctor::run(&args, context).await,
            Self::Up(_) | Self::Daemon(_) | Self::Config(_) | Self::Completions(_) => Ok(()),
            Self::Selftest(_) | Self::Bench(_) => Ok(()),
        }
    }
}

fn client_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
