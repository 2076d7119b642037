//! Request and response types of the instance API (`/api/v1`) and of the control plane API (`/api`, module
//! [`control`]), one file per noun as in the server. The server and every client use these types, so that a renamed
//! field fails to compile. Doc comments are the descriptions in the OpenAPI documents.
//!
//! Responses accept unknown fields, because an older client may talk to a newer server. Request bodies reject them.

pub mod agents;
pub mod approvals;
pub mod attachments;
pub mod channels;
pub mod cleanup;
pub mod commands;
pub mod config;
pub mod context;
pub mod control;
pub mod cron;
pub mod delegations;
pub mod error;
pub mod events;
pub mod files;
pub mod health;
pub mod history;
pub mod logins;
pub mod mcp;
pub mod memory;
pub mod messages;
pub mod models;
pub mod outbox;
pub mod paging;
pub mod pairing;
pub mod route;
pub mod runs;
pub mod schema;
pub mod sessions;
pub mod skills;
pub mod status;
pub mod stream;
pub mod teams;
mod tolerant;
pub mod tools;
pub mod transcript;
pub mod tree;
pub mod turns;
pub mod usage;
