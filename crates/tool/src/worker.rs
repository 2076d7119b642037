//! Process isolation: the tools of an agent run in a worker process that is confined to the agent's workspace.
//!
//! The engine decides what may run; a worker receives a call and the list of allowed tools, and rejects tools that are
//! not on it. It holds no secrets and no state, and requests from the host what needs them ([`wire`]). A worker that
//! crashes, hangs or is compromised therefore costs one call.

mod host;
mod pool;
mod serve;
mod toolbox;
mod wire;

pub use pool::WorkerPoolSettings;
pub use serve::serve_worker;
pub use toolbox::IsolatedToolbox;

/// The tools that run in a worker; all others run in the engine.
pub const WORKER_TOOLS: [&str; 9] = [
    "read_file",
    "write_file",
    "edit_file",
    "apply_patch",
    "list_dir",
    "search_files",
    "image_view",
    "shell",
    "http_fetch",
];
