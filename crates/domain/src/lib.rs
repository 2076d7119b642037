//! Words and rules of Polyclaw. Nothing here reads a file, a clock or a socket: a rule takes values and
//! returns values, so that every one of them can be tested in a table and replayed by a seed.

pub mod agent;
pub mod approval;
pub mod backlog;
pub mod briefing;
pub mod budget;
pub mod channel;
pub mod config;
pub mod delivery;
pub mod embedding;
pub mod event;
pub mod fault;
pub mod glob;
pub mod id;
pub mod job;
pub mod key;
pub mod mcp;
pub mod memory;
pub mod message;
pub mod plain;
pub mod policy;
pub mod port;
pub mod prompt;
pub mod provider;
pub mod recall;
pub mod redact;
pub mod relay;
pub mod sandbox;
pub mod session;
pub mod skill;
pub mod time;
pub mod todo;
pub mod tool;
pub mod turn;
