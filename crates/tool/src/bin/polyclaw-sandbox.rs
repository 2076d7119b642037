//! The sandbox's helper alone, for tests of this crate: in the product it is `polyclaw sandbox-exec`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let stage = std::env::args().next_back().unwrap_or_default();
    ExitCode::from(polyclaw_tool::sandbox::helper(&stage))
}
