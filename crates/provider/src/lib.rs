//! Asks models. Many providers behind one port: streaming, tool calls, usage, error classes, fallbacks.
//!
//! [`Models`] is the port's implementation; [`detect`] finds something to answer with on a fresh machine.

mod answer;
mod calls;
mod catalog;
mod cooldown;
pub mod detect;
pub mod embedded;
mod embedding;
mod endpoint;
mod error;
mod fault;
mod http;
mod models;
mod openai;
mod prompt;
mod reading;
mod settings;
mod thinking;
mod wire;

pub use embedding::RemoteEmbeddings;
pub use error::Error;
pub use models::Models;
pub use settings::{ApiKey, Kind, ProviderSettings, Settings};
