//! `polyclaw sandbox-exec`: this program as the sandbox's helper. Polyclaw starts it; people have no use for it.

/// Confine this process and become a tool's program.
#[derive(clap::Args)]
pub struct Args {
    /// Which part of the work this process does.
    #[arg(value_parser = polyclaw_tool::sandbox::HELPER_STAGES)]
    stage: String,
}

/// Ends the process: nothing of ours is to run after what is confined.
pub fn run(args: &Args) -> ! {
    std::process::exit(polyclaw_tool::sandbox::run_helper(&args.stage).into())
}
