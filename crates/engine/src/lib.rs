//! The one-way flow: `ingress` accepts, `worker` claims, `turn` drives, `delivery` sends. A stage calls only
//! the next; nothing calls back.

mod agent;
mod approval;
mod briefing;
mod budget;
pub mod command;
mod compact;
pub mod context;
mod core;
pub mod delivery;
mod draft;
mod error;
mod family;
mod history;
pub mod hub;
mod import;
pub mod ingress;
mod lanes;
mod live;
pub mod maintenance;
pub mod memory;
mod prompt;
mod receipt;
pub mod reception;
mod redact;
pub mod schedule;
pub mod session;
mod settings;
mod tasks;
pub mod team;
pub mod toolbox;
mod turn;
mod wait;
mod worker;

pub use crate::core::{Engine, Ports};
pub use agent::Explained;
pub use approval::{Verdict, decide};
pub use budget::Balance;
pub use error::{Action, Error, Result};
pub use import::Past;
pub use prompt::opening;
pub use settings::Settings;
pub use tasks::{Task, TaskState};
pub use toolbox::Toolboxes;
pub use wait::Answer;
