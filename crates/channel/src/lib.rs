//! Adapters to where people are, one file or folder each. An adapter takes what passed the gate to its platform
//! and says truthfully what became of it; when to try again is the engine's decision.

mod accounts;
mod answer;
mod attachment;
mod backoff;
mod call;
mod client;
pub mod discord;
mod error;
pub mod hook;
mod link;
pub mod matrix;
mod pace;
mod signature;
pub mod slack;
mod socket;
pub mod telegram;
pub mod webhook;
pub mod whatsapp;

pub use error::Error;
pub use pace::Pace;
