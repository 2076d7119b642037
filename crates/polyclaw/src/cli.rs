//! The command line. The `Command` enum is the table of contents: one command, one file.

use clap::{Args, Parser, Subcommand};

use crate::command::{
    acp, agent, agents, approvals, audit, backup, bench, chat, completions, config, control, cron, daemon,
    doctor, events, guard, instances, logs, mcp, memory, messages, migrate, model, models, outbox, pairing,
    restore, route, runs, sandbox_exec, secrets, selftest, service, sessions, skills, status, teams, tools,
    up, usage, worker,
};
use crate::home::Home;
use crate::output::CliOutput;

#[derive(Parser)]
#[command(
    name = "polyclaw",
    version,
    about = "Runs AI agents on this machine and stores their conversations. No message is lost or answered twice."
)]
#[command(after_help = "Examples:
  polyclaw up                                 start, and print the link to the chat page and the model in use
  polyclaw chat                               talk in the terminal
  polyclaw agent --message \"What is new?\"     one question, the answer on stdout

Terms:
  home      the folder of an instance: its config, token, files and database (POLYCLAW_HOME, else ~/.polyclaw)
  instance  a running Polyclaw process, started by `up` or `daemon` on a home; the other commands connect to it
  agent     a model with instructions, tools and files; every instance has one called `main`
  session   one conversation, named by a key such as agent:main:main; `polyclaw sessions` lists them
  turn      the processing of one message, from its start to the answer

Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 unavailable.")]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalOptions,
    #[command(subcommand)]
    pub command: Command,
}

/// Help heading that separates the global options from those of the command.
const GLOBAL_OPTIONS_HEADING: &str = "Global options";

#[derive(Args, Clone, Debug)]
pub struct GlobalOptions {
    /// Print one JSON object for scripts: {"ok": …} or {"error": {code, message, hint}}.
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS_HEADING)]
    pub json: bool,
    /// Connect to the instance at this URL instead of the one of this home.
    #[arg(long, global = true, env = "POLYCLAW_URL", value_name = "URL", help_heading = GLOBAL_OPTIONS_HEADING)]
    pub url: Option<String>,
    /// Token of that instance. Visible in the process list; prefer POLYCLAW_TOKEN.
    #[arg(long, global = true, value_name = "TOKEN", help_heading = GLOBAL_OPTIONS_HEADING)]
    pub token: Option<String>,
}

impl GlobalOptions {
    /// Returns the address from `--url` or POLYCLAW_URL. An empty variable counts as unset.
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref().filter(|url| !url.is_empty())
    }
}

#[derive(Subcommand)]
pub enum Command {
    Up(up::Args),
    Instances(instances::Args),
    Messages(messages::Args),
    Control(control::Args),
    Daemon(daemon::Args),
    Chat(chat::Args),
    Agent(agent::Args),
    Agents(agents::Args),
    Sessions(sessions::Args),
    Runs(runs::Args),
    Teams(teams::Args),
    Tools(tools::Args),
    Memory(memory::Args),
    Skills(skills::Args),
    Mcp(mcp::Args),
    Acp(acp::Args),
    Models(models::Args),
    Model(model::Args),
    Approvals(approvals::Args),
    Pairing(pairing::Args),
    Route(route::Args),
    Outbox(outbox::Args),
    Cron(cron::Args),
    Usage(usage::Args),
    Events(events::Args),
    Audit(audit::Args),
    Status(status::Args),
    Logs(logs::Args),
    Doctor(doctor::Args),
    Config(config::Args),
    Migrate(migrate::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Service(service::Args),
    Secrets(secrets::Args),
    Completions(completions::Args),
    Selftest(selftest::Args),
    Bench(bench::Args),
    Guard(guard::Args),
    #[command(hide = true)]
    SandboxExec(sandbox_exec::Args),
    #[command(hide = true)]
    Worker(worker::Args),
}

/// The context that every command receives.
#[derive(Clone)]
pub struct CommandContext {
    pub home: Home,
    pub output: CliOutput,
    pub global: GlobalOptions,
}

impl Cli {
    pub fn run(self) -> anyhow::Result<()> {
        // These commands have no home: they run in the environment of the process that they guard or confine.
        match &self.command {
            Command::Guard(args) => return guard::run(args),
            Command::SandboxExec(args) => sandbox_exec::run(args),
            Command::Worker(args) => worker::run(args),
            _ => {}
        }
        let context = CommandContext {
            home: Home::locate()?,
            output: CliOutput::new(self.global.json),
            global: self.global,
        };
        match self.command {
            Command::Up(args) => up::run(&args, &context),
            Command::Control(args) => control::run(&args, &context),
            Command::Daemon(args) => daemon::run(&args, &context),
            Command::Config(args) => config::run(&args, &context),
            Command::Secrets(args) => secrets::run(&args, &context),
            Command::Backup(args) => backup::run(&args, &context),
            Command::Restore(args) => restore::run(&args, &context),
            Command::Service(args) => service::run(&args, &context),
            Command::Completions(args) => completions::run(&args),
            Command::Selftest(args) => selftest::run(&args, &context),
            Command::Bench(args) => bench::run(&args, &context),
            other => {
                let runtime = client_runtime()?;
                let outcome = runtime.block_on(other.run_client_command(&context));
                // Does not wait for a thread that blocks on stdin: its line may never come.
                runtime.shutdown_background();
                outcome
            }
        }
    }
}

impl Command {
    /// Runs a command that is a client of an instance or of the control plane.
    async fn run_client_command(self, context: &CommandContext) -> anyhow::Result<()> {
        match self {
            Self::Chat(args) => chat::run(&args, context).await,
            Self::Agent(args) => agent::run(&args, context).await,
            Self::Agents(args) => agents::run(&args, context).await,
            Self::Sessions(args) => sessions::run(&args, context).await,
            Self::Runs(args) => runs::run(&args, context).await,
            Self::Teams(args) => teams::run(&args, context).await,
            Self::Tools(args) => tools::run(&args, context).await,
            Self::Memory(args) => memory::run(&args, context).await,
            Self::Mcp(args) => mcp::run(&args, context).await,
            Self::Acp(args) => acp::run(&args, context).await,
            Self::Skills(args) => skills::run(&args, context).await,
            Self::Models(args) => models::run(&args, context).await,
            Self::Model(args) => model::run(&args, context).await,
            Self::Approvals(args) => approvals::run(&args, context).await,
            Self::Cron(args) => cron::run(&args, context).await,
            Self::Pairing(args) => pairing::run(&args, context).await,
            Self::Route(args) => route::run(&args, context).await,
            Self::Outbox(args) => outbox::run(&args, context).await,
            Self::Usage(args) => usage::run(&args, context).await,
            Self::Events(args) => events::run(&args, context).await,
            Self::Instances(args) => instances::run(&args, context).await,
            Self::Messages(args) => messages::run(&args, context).await,
            Self::Audit(args) => audit::run(&args, context).await,
            Self::Migrate(args) => migrate::run(&args, context).await,
            Self::Status(args) => status::run(&args, context).await,
            Self::Logs(args) => logs::run(&args, context).await,
            Self::Doctor(args) => doctor::run(&args, context).await,
            Self::Up(_) | Self::Control(_) | Self::Daemon(_) | Self::Config(_) => Ok(()),
            Self::Completions(_) | Self::Backup(_) | Self::Restore(_) | Self::Service(_) => Ok(()),
            Self::Secrets(_) | Self::Selftest(_) | Self::Bench(_) => Ok(()),
            Self::Guard(_) | Self::SandboxExec(_) | Self::Worker(_) => Ok(()),
        }
    }
}

pub fn client_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn look(command: &clap::Command, path: &str) {
        let path = format!("{path} {}", command.get_name());
        assert!(command.get_about().is_some(), "{path} does not say what it does");
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(command.is_hide_set() || help.starts_with("Examples:"), "{path} has no examples");
        for arg in command.get_arguments() {
            assert!(arg.get_help().is_some(), "{path} does not say what {} is", arg.get_id());
        }
        command.get_subcommands().for_each(|sub| look(sub, &path));
    }

    #[test]
    fn every_command_and_argument_has_help_text() {
        look(&Cli::command(), "");
    }
}
