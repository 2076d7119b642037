//! Adapters to chat platforms, one file or folder each. An adapter sends what passed the gate and reports the outcome
//! truthfully; the engine decides about retries.

mod accounts;
mod attachment;
mod client;
mod connection_state;
pub mod discord;
mod error;
pub mod event_hook;
pub mod matrix;
mod response;
mod retry_timing;
mod signature;
pub mod slack;
mod socket;
pub mod telegram;
pub mod webhook;
mod webhook_request;
pub mod whatsapp;

pub use error::Error;
pub use retry_timing::RetryTiming;
