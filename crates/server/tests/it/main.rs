//! The server as its clients see it: real sockets, the real engine on SQLite, a model that does as it is told.
#![allow(clippy::unwrap_used, reason = "the lint's own exception for tests does not reach fixtures")]

mod a2a;
mod agents;
mod app;
mod bad_input;
mod channels;
mod chat;
mod client_tools;
mod cron;
mod document;
mod guard;
mod hooks;
mod images;
mod instance;
mod logs;
mod mcp;
mod messages;
mod page;
mod ports;
mod records;
mod responses;
mod runs;
mod sessions;
mod shutdown;
mod socket;
mod stream;
mod teams;
