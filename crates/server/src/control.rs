//! The control plane over HTTP: many instances at one address. Translates; what a call means is decided by `control`.

mod audit;
mod configs;
mod gateway;
mod guard;
mod health;
mod imports;
mod instances;
mod logs;
mod observe;
mod page;
mod repeat;
mod router;
mod state;
mod tokens;
mod ws;

pub use imports::Imported;
pub use router::{openapi, router};
pub use state::{ControlSetup, ControlState};
