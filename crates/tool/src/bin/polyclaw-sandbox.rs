//! Sandbox helper and worker alone, for tests of this crate. In the product these are `polyclaw sandbox-exec` and
//! `polyclaw worker`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().next_back().unwrap_or_default().to_string_lossy().as_ref() {
        "worker" => ExitCode::from(polyclaw_tool::worker::serve_worker(vec!["/proc/self/exe".to_owned()])),
        stage => ExitCode::from(polyclaw_tool::sandbox::run_helper(stage)),
    }
}
