//! `polyclaw worker`: this program as a worker process. Polyclaw starts it; people have no use for it.

/// Run the tools of an agent with `isolation = "process"`.
#[derive(clap::Args)]
pub struct Args {}

/// Ends the process when the daemon does.
pub fn run(_: &Args) -> ! {
    let helper = ["/proc/self/exe", "sandbox-exec"].map(str::to_owned).to_vec();
    std::process::exit(polyclaw_tool::worker::serve_worker(helper).into())
}
