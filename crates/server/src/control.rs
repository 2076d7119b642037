//! The HTTP API of the control plane, which manages many instances. It only translates; the `control` crate decides.

mod audit;
mod configs;
pub mod connection_lifetime;
mod gateway;
mod guard;
mod health;
mod idempotency;
mod imports;
mod instances;
mod logs;
mod messages;
mod observe;
mod page;
mod pending;
mod router;
mod rules;
mod state;
mod tokens;
mod tunnel;
mod ws;

pub use imports::import_result;
pub use router::{control_router, openapi};
pub use state::{ControlSetup, ControlState};
