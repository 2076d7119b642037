//! The state shared by all handlers. Built once; cloning copies a pointer.

use std::collections::HashMap;
use std::sync::Arc;

use polyclaw_domain::config::WebhookMapping;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::mcp::McpServerRegistry;
use polyclaw_domain::time::Millis;
use polyclaw_engine::Engine;

use crate::auth::{BrowserAuth, NamesSource, ServerNames};
use crate::browser::BrowserLogins;
use crate::login::{LoginCodes, LoginHost};
use crate::reload::ConfigReloader;

/// How callers authenticate.
#[derive(Clone)]
pub enum AuthMode {
    Token(String),
    /// No authentication. Allowed only on a loopback address, which the composition root checks.
    Off,
}

/// A sender that signs its posts to `/hooks/<name>`.
#[derive(Clone)]
pub struct SignedHook {
    pub secret: String,
    /// The agent that answers. `None` lets the bindings decide.
    pub agent: Option<AgentId>,
    pub map: WebhookMapping,
}

/// Dependencies that the binary passes in.
pub struct AppSetup {
    pub engine: Engine,
    pub auth: AuthMode,
    /// Names of the instance besides loopback, with or without a port.
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub hooks: HashMap<String, SignedHook>,
    pub version: String,
    pub started: Millis,
    /// Browsers share cookies between all ports of a host, so the cookie name contains the port.
    pub port: u16,
    pub logins: LoginCodes,
    pub mcp: Arc<dyn McpServerRegistry>,
    /// Reloads the config.
    pub reload: Arc<dyn ConfigReloader>,
}

#[derive(Clone)]
pub struct AppState(Arc<AppInner>);

pub struct AppInner {
    pub engine: Engine,
    pub auth: BrowserAuth,
    pub browsers: BrowserLogins,
    pub hooks: HashMap<String, SignedHook>,
    pub version: String,
    pub started: Millis,
    /// The id of this server process. Frame numbers of another process are meaningless here.
    pub epoch: String,
    pub mcp: Arc<dyn McpServerRegistry>,
    pub reload: Arc<dyn ConfigReloader>,
}

impl std::ops::Deref for AppState {
    type Target = AppInner;

    fn deref(&self) -> &AppInner {
        &self.0
    }
}

impl AppState {
    pub fn new(setup: AppSetup) -> Self {
        let names = ServerNames {
            hosts: setup.allowed_hosts,
            origins: setup.allowed_origins,
            setting: NamesSource::Config,
        };
        Self(Arc::new(AppInner {
            epoch: setup.engine.next_id(),
            browsers: BrowserLogins::new(setup.engine.db().clone()),
            engine: setup.engine,
            auth: BrowserAuth::new(setup.auth, names, setup.logins, setup.port),
            hooks: setup.hooks,
            version: setup.version,
            started: setup.started,
            mcp: setup.mcp,
            reload: setup.reload,
        }))
    }
}

impl LoginHost for AppState {
    fn browsers(&self) -> &BrowserLogins {
        &self.browsers
    }

    fn now(&self) -> Millis {
        self.engine.now()
    }

    fn new_nonce(&self) -> String {
        self.engine.nonce()
    }
}

impl AsRef<BrowserAuth> for AppState {
    fn as_ref(&self) -> &BrowserAuth {
        &self.auth
    }
}
