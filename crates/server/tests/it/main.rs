//! The server as its clients see it: real sockets, the real engine on SQLite, a model that does as it is told.

mod agents;
mod bad_input;
mod chat;
mod document;
mod guard;
mod hooks;
mod instance;
mod messages;
mod page;
mod ports;
mod records;
mod responses;
mod sessions;
mod shutdown;
mod socket;
mod stream;
