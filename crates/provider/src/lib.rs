//! Calls models. Many providers behind one port: streaming, tool calls, usage, error classes, fallbacks.
//!
//! [`ModelProviders`] implements the port; [`detect`] finds a model on a fresh machine.

mod answer;
mod catalog;
mod cooldown;
pub mod detect;
pub mod embedded;
mod embedding;
mod endpoint;
mod error;
mod error_class;
mod http;
mod models;
mod openai;
mod prompt;
mod settings;
mod stream;
mod thinking;
mod tool_calls;
mod wire;

pub use embedding::RemoteEmbeddings;
pub use error::Error;
pub use models::ModelProviders;
pub use settings::{ApiKey, ModelProvidersSettings, ProviderSettings, ProviderVendor};
