//! Process isolation: the tools of an agent run in a worker process that is itself confined to the agent's workspace.
//!
//! The engine decides what may run, here as everywhere; a worker is handed a call and the list it was decided by, and
//! refuses what is not on it. It holds no secret and no state: what needs either is asked of the host ([`wire`]). So a
//! worker that crashes, hangs or is taken over costs one call.

mod host;
mod pool;
mod serve;
mod toolbox;
mod wire;

pub use pool::WorkerPoolSettings;
pub use serve::serve_worker;
pub use toolbox::IsolatedToolbox;

/// The tools a worker has; all others are the engine's.
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
