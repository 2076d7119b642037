//! All the SQL there is. A query is a constant beside the function that runs it; the same text runs on SQLite
//! and on PostgreSQL, and only the migrations differ.

pub mod agents;
pub mod approvals;
pub mod backlog;
pub mod brain;
pub mod budgets;
pub mod check;
mod copy;
mod db;
pub mod drafts;
mod error;
pub mod events;
pub mod history;
pub mod ingress;
pub mod intents;
pub mod jobs;
mod ledgers;
pub mod letters;
mod live;
pub mod messages;
mod migrate;
pub mod outbox;
pub mod pairings;
mod peek;
mod pg;
pub mod registry;
pub mod rounds;
pub mod runs;
pub mod schedules;
pub mod sessions;
mod sqlite;
pub mod tasks;
pub mod teams;
pub mod todos;
pub mod turns;
mod tx;
pub mod usage;

pub use copy::{copy, copy_registry};
pub use db::{Db, Target};
pub use error::{Error, Result};
pub use ledgers::Ledgers;
pub use live::Signal;
pub use peek::peek;
pub use tx::{Param, Row, Tx};
