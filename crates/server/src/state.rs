//! What every handler may use. Built once; a clone is a pointer.

use std::collections::HashMap;
use std::sync::Arc;

use polyclaw_domain::hex::hex;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::mcp::Servers;
use polyclaw_domain::time::Millis;
use polyclaw_engine::Engine;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::login::Logins;

/// Who may call.
#[derive(Clone)]
pub enum Auth {
    Token(String),
    /// On a loopback address only; the composition root sees to that.
    Off,
}

/// A sender that signs what it posts to `/hooks/<name>`.
#[derive(Clone)]
pub struct Hook {
    pub secret: String,
    pub agent: AgentId,
}

/// What the binary gives.
pub struct Setup {
    pub engine: Engine,
    pub auth: Auth,
    /// Names under which the instance is reached besides loopback, with or without a port.
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub hooks: HashMap<String, Hook>,
    pub version: String,
    pub started: Millis,
    /// Browsers keep one set of cookies for all ports of a host, so the page's cookie is named after ours.
    pub port: u16,
    pub logins: Logins,
    pub mcp: Arc<dyn Servers>,
}

#[derive(Clone)]
pub struct AppState(Arc<Inner>);

pub struct Inner {
    pub engine: Engine,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub hooks: HashMap<String, Hook>,
    pub version: String,
    pub started: Millis,
    /// This life of the server: frame numbers of another mean nothing here.
    pub epoch: String,
    pub logins: Logins,
    pub mcp: Arc<dyn Servers>,
    auth: Auth,
    pub cookie_name: String,
    /// What the page's cookie holds: proof of the token, never the token itself.
    cookie: Option<String>,
}

impl std::ops::Deref for AppState {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl AppState {
    pub fn new(setup: Setup) -> Self {
        let lower = |names: Vec<String>| names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        let cookie = match &setup.auth {
            Auth::Token(token) => Some(proof(token)),
            Auth::Off => None,
        };
        Self(Arc::new(Inner {
            epoch: setup.engine.next_id(),
            engine: setup.engine,
            allowed_hosts: lower(setup.allowed_hosts),
            allowed_origins: lower(setup.allowed_origins),
            hooks: setup.hooks,
            version: setup.version,
            started: setup.started,
            logins: setup.logins,
            mcp: setup.mcp,
            auth: setup.auth,
            cookie_name: format!("polyclaw_{}", setup.port),
            cookie,
        }))
    }
}

impl Inner {
    /// Without a token to ask for, everybody is let in.
    pub fn is_open(&self) -> bool {
        matches!(self.auth, Auth::Off)
    }

    pub fn accepts_token(&self, given: &str) -> bool {
        match &self.auth {
            Auth::Token(token) => token.as_bytes().ct_eq(given.as_bytes()).into(),
            Auth::Off => true,
        }
    }

    pub fn accepts_cookie(&self, given: &str) -> bool {
        self.cookie.as_ref().is_some_and(|cookie| cookie.as_bytes().ct_eq(given.as_bytes()).into())
    }

    pub fn cookie(&self) -> Option<&str> {
        self.cookie.as_deref()
    }
}

fn proof(token: &str) -> String {
    hex(&Sha256::new().chain_update("polyclaw page\0").chain_update(token).finalize())
}
