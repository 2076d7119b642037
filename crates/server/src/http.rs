//! The instance API, one group of endpoints per file.

pub mod agents;
pub mod approvals;
pub mod attachments;
pub mod commands;
pub mod context;
pub mod cron;
pub mod document;
pub mod events;
pub mod health;
pub mod hooks;
pub mod logins;
pub mod mcp;
pub mod memory;
pub mod messages;
pub mod models;
pub mod monitor;
pub mod outbox;
pub mod sessions;
pub mod skills;
pub mod status;
pub mod stream;
pub mod tools;
pub mod transcript;
pub mod turns;
pub mod usage;
