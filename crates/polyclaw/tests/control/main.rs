//! The control plane: the real server with real instances as its children. The table in `gates` lists which test covers
//! which gate of the plan.

#![allow(clippy::unwrap_used, reason = "the lint's own exception for tests does not reach fixtures")]

mod access;
mod approvals;
mod audit;
mod backup;
mod canary;
mod cluster;
mod codes;
mod commands;
mod config;
mod crowds;
mod crud;
mod deep;
mod doors;
mod gates;
mod gateway;
mod import;
mod left;
mod lifecycle;
mod logs;
mod messages;
mod messages_daemons;
mod messages_kills;
mod messages_live;
mod messages_seen;
mod messages_sockets;
mod observe;
mod passage;
mod paths;
mod plane;
mod revoked;
mod service;
mod sockets;
mod supervisor;
mod ways_out;
