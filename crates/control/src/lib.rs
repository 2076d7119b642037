//! Many instances on one machine: makes, starts, supervises, adopts, configures and watches them. An instance is a
//! process of its own on a home of its own, and outlives whoever supervises it.

mod access;
mod audit;
pub mod backup;
mod call;
mod child;
mod clone;
pub mod config;
mod control;
mod create;
mod error;
pub mod file;
pub mod import;
mod lifecycle;
pub mod lock;
pub mod log;
pub mod message;
pub mod observe;
mod passage;
mod place;
mod process;
mod pulse;
mod reach;
mod remove;
mod supervise;
mod view;

pub use access::{Caller, Made, Stay, Stays};
pub use call::call;
pub use control::{Control, LOCK, Loader, Setup, to_its_end};
pub use create::Wish;
pub use error::{Action, Error, Result};
pub use lifecycle::DRAIN;
pub use passage::{Kind, Passage, needed_to_approve};
pub use place::Place;
pub use pulse::while_it_answers;
pub use view::{Change, View};
