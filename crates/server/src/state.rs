//! What every handler may use. Built once; a clone is a pointer.

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

/// Who may call.
#[derive(Clone)]
pub enum AuthMode {
    Token(String),
    /// On a loopback address only; the composition root sees to that.
    Off,
}

/// A sender that signs what it posts to `/hooks/<name>`.
#[derive(Clone)]
pub struct SignedHook {
    pub secret: String,
    /// Who answers; none where bindings say it.
    pub agent: Option<AgentId>,
    pub map: WebhookMapping,
}

/// What the binary gives.
pub struct AppSetup {
    pub engine: Engine,
    pub auth: AuthMode,
    /// Names under which the instance is reached besides loopback, with or without a port.
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub hooks: HashMap<String, SignedHook>,
    pub version: String,
    pub started: Millis,
    /// Browsers keep one set of cookies for all ports of a host, so the page's cookie is named after ours.
    pub port: u16,
    pub logins: LoginCodes,
    pub mcp: Arc<dyn McpServerRegistry>,
    /// Takes up a config that was changed.
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
    /// This life of the server: frame numbers of another mean nothing here.
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
