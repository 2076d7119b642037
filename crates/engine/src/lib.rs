//! The one-way flow: `ingress` accepts, `worker` claims, `turn` drives, `delivery` sends. A stage calls only
//! the next; nothing calls back.

mod agent;
mod approval;
mod briefing;
pub mod command;
mod compact;
mod core;
pub mod delivery;
mod error;
mod history;
pub mod hub;
mod import;
pub mod ingress;
mod lanes;
mod prompt;
pub mod session;
mod settings;
mod tasks;
mod turn;
mod wait;
mod worker;

pub use crate::core::{Engine, Ports};
pub use agent::Rule;
pub use approval::decide;
pub use error::{Action, Error, Result};
pub use import::Past;
pub use settings::Settings;
pub use tasks::{Task, TaskState};
pub use wait::Answer;
