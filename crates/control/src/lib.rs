//! Manages many instances on one machine: creates, starts, supervises, adopts, configures and observes them. Each
//! instance is a separate process with its own home and outlives its supervisor.

mod access;
mod audit;
pub mod backup;
mod child;
mod clone;
pub mod config;
mod control;
mod create;
mod error;
pub mod file;
mod http_client;
pub mod import;
mod instance_client;
mod instance_paths;
mod lifecycle;
mod liveness;
pub mod lock;
pub mod log;
pub mod message;
pub mod observe;
mod process;
mod proxied_change;
mod remove;
mod supervise;
mod view;

pub use access::{ControlCaller, NewAccessToken, TokenLifetime, TokenLifetimes};
pub use control::{ConfigLoader, Control, ControlDependencies, LOCK_FILE, run_to_completion};
pub use create::NewInstanceSpec;
pub use error::{Error, ErrorAction, Result};
pub use http_client::send_request;
pub use instance_paths::InstancePaths;
pub use lifecycle::DRAIN_TIMEOUT;
pub use liveness::wait_while_answering;
pub use proxied_change::{ProxiedCallKind, ProxiedChange, access_to_approve};
pub use view::{InstanceChange, InstanceSnapshot};
