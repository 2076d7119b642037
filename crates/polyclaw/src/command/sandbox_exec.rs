//! `polyclaw sandbox-exec`: the sandbox helper. Polyclaw starts it; it is not for people.

/// Confine this process and become a tool's program.
#[derive(clap::Args)]
pub struct Args {
    /// Stage of the confinement that this process performs.
    #[arg(value_parser = polyclaw_tool::sandbox::HELPER_STAGES)]
    stage: String,
}

/// Ends the process: none of our code may run after the confined program.
pub fn run(args: &Args) -> ! {
    std::process::exit(polyclaw_tool::sandbox::run_helper(&args.stage).into())
}
