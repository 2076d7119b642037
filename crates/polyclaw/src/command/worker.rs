//! `polyclaw worker`: a worker process. Polyclaw starts it; it is not for people.

/// Run the tools of an agent with `isolation = "process"`.
#[derive(clap::Args)]
pub struct Args {}

/// Serves tool calls. Ends the process when the daemon ends.
pub fn run(_: &Args) -> ! {
    let helper = ["/proc/self/exe", "sandbox-exec"].map(str::to_owned).to_vec();
    std::process::exit(polyclaw_tool::worker::serve_worker(helper).into())
}
