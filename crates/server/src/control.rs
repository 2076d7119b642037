//! The control plane over HTTP: many instances at one address. Translates; what a call means is decided by `control`.

mod audit;
mod configs;
mod gateway;
mod guard;
mod health;
mod imports;
mod instances;
mod logs;
mod messages;
mod observe;
mod page;
mod pending;
mod repeat;
mod router;
mod rules;
mod state;
mod tokens;
mod tunnel;
pub mod until;
mod ws;

pub use imports::ImportResult;
pub use router::{openapi, router};
pub use state::{ControlSetup, ControlState};
