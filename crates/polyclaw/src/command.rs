//! One command per file. Each has its arguments, its help with examples, and a `run`.

pub mod agent;
pub mod agents;
pub mod approvals;
pub mod bench;
pub mod chat;
pub mod completions;
pub mod config;
pub mod daemon;
pub mod doctor;
pub mod events;
pub mod guard;
pub mod mcp;
pub mod memory;
pub mod model;
pub mod models;
pub mod outbox;
pub mod sandbox_exec;
pub mod secrets;
pub mod selftest;
pub mod sessions;
pub mod skills;
pub mod status;
pub mod tools;
pub mod up;
pub mod usage;
pub mod worker;
