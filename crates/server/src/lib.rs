//! The instance at its edges: HTTP, server-sent events, WebSocket, the OpenAI-shaped API, webhooks and the chat
//! page. This crate translates; what a call means is decided by the engine.

mod a2a;
mod access;
mod app;
mod browser;
pub mod control;
mod cors;
mod door;
mod error;
mod extract;
mod follow;
mod guard;
mod http;
mod login;
pub mod mcp;
mod metrics;
mod observe;
mod openai;
mod page;
mod paging;
mod patience;
mod redact;
mod refusal;
mod reload;
mod router;
mod serve;
mod sse;
mod state;
mod table;
mod ws;

pub use door::Guest;
pub use error::{Error, Result};
pub use login::{Logins, path as login_path};
pub use reload::{Later, Reload};
pub use router::{openapi, router};
pub use serve::serve;
pub use state::{AppState, Auth, Hook, Setup};
