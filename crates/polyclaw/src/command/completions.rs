//! `polyclaw completions`: shell completions.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;

/// Generate shell completions.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw completions bash > ~/.local/share/bash-completion/completions/polyclaw
  polyclaw completions zsh > ~/.zfunc/_polyclaw
  polyclaw completions fish > ~/.config/fish/completions/polyclaw.fish")]
pub struct Args {
    /// Shell to generate completions for.
    shell: Shell,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "polyclaw", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(())
}
