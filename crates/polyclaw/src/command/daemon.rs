//! `polyclaw daemon`: runs one instance in the foreground, for service managers.

use std::net::IpAddr;

use crate::cli::CommandContext;
use crate::instance::ConfigOverrides;

/// Run one instance in the foreground for a service manager. Prints no link; logs to stderr.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw daemon
  polyclaw daemon --port 18900
  POLYCLAW_HOME=/srv/claw polyclaw daemon --bind 0.0.0.0

SIGTERM and SIGINT drain: new work is rejected, running turns get 30 s to reach a boundary, and the rest resumes at the
next start. A second signal exits immediately. SIGHUP reloads the config.")]
pub struct Args {
    /// Port to listen on. Overrides the config.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Address to listen on. Overrides the config.
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
}

pub fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let overrides = ConfigOverrides { port: args.port, bind: args.bind, quiet: false };
    crate::daemon::run(&context.home, overrides, |_| Ok(()))
}
