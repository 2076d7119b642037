//! Words and rules of Polyclaw. Nothing here reads a file, a clock or a socket: a rule takes values and
//! returns values, so that every one of them can be tested in a table and replayed by a seed.

pub mod admission;
pub mod agent;
pub mod approval;
pub mod arrival;
pub mod backlog;
pub mod channel;
pub mod config;
pub mod delivery;
pub mod embedding;
pub mod event;
pub mod fault;
pub mod id;
pub mod job;
pub mod key;
pub mod message;
pub mod port;
pub mod prompt;
pub mod provider;
pub mod relay;
pub mod route;
pub mod schedule;
pub mod scope;
pub mod session;
pub mod time;
pub mod tool;
pub mod turn;
