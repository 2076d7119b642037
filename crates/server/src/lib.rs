//! The network interfaces of an instance: HTTP, server-sent events, WebSocket, the OpenAI-compatible API, webhooks
//! and the chat page. This crate only translates; the engine decides.

mod a2a;
mod access;
mod app;
mod auth;
mod browser;
pub mod control;
mod cors;
mod error;
mod extract;
mod guard;
mod http;
mod idle_timeout;
mod login;
pub mod mcp;
mod metrics;
mod observe;
mod openai;
mod page;
mod paging;
mod redact;
mod reload;
mod route_table;
mod router;
mod serde_errors;
mod serve;
mod sse;
mod state;
mod turn_follower;
mod ws;

pub use auth::BrowserPrincipal;
pub use error::{Error, Result};
pub use login::{LoginCodes, login_path};
pub use reload::{ConfigReloader, RestartSections};
pub use router::{instance_router, openapi};
pub use serve::serve;
pub use state::{AppSetup, AppState, AuthMode, SignedHook};
