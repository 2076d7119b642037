//! The real binary, killed by SIGKILL: at every named point, and as one of two nodes on PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod approvals;
mod chat;
mod cluster;
mod daemon;
mod families;
mod holders;
mod reconnect;
mod sigkill;
mod start;
mod streaming;
mod teams;
