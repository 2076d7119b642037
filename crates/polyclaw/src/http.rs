//! The HTTP server of a running instance.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::net::TcpListener;
use std::sync::Arc;

use polyclaw_domain::config::{self, Config};
use polyclaw_server::{AppSetup, AppState, AuthMode, SignedHook, instance_router, serve};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::failure::CommandFailure;
use crate::instance::InstanceRuntime;

pub struct HttpServer {
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl HttpServer {
    pub fn start(instance: &Arc<InstanceRuntime>, listener: TcpListener) -> io::Result<Self> {
        Self::from_router(instance_router(AppState::new(server_setup(instance))), listener)
    }

    pub fn from_router(router: axum::Router, listener: TcpListener) -> io::Result<Self> {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(serve(listener, router, async move {
            // Dropping the sender also stops the server.
            let _ = stopped.await;
        }));
        Ok(Self { stop, task })
    }

    /// Returns if serving ends unexpectedly.
    pub async fn wait_for_end(&mut self) -> CommandFailure {
        let why = match (&mut self.task).await {
            Ok(Ok(())) => "it stopped".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        CommandFailure::failed("server_ended", format!("the HTTP server ended: {why}"))
    }

    /// Stops accepting connections and lets open requests finish.
    pub async fn stop(self) {
        let _ = self.stop.send(());
        // A finished task must not be awaited again.
        if !self.task.is_finished() {
            let _ = self.task.await;
        }
    }
}

fn server_setup(instance: &Arc<InstanceRuntime>) -> AppSetup {
    let gateway = &instance.config.gateway;
    let mut allowed_hosts = gateway.allowed_hosts.clone();
    allowed_hosts.extend(host_name_of_bind(gateway.bind));
    AppSetup {
        engine: instance.engine.clone(),
        auth: match gateway.auth {
            config::GatewayAuth::Token => AuthMode::Token(instance.token.clone()),
            config::GatewayAuth::Off => AuthMode::Off,
        },
        allowed_hosts,
        allowed_origins: gateway.allowed_origins.clone(),
        hooks: configured_hooks(&instance.config),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: instance.engine.now(),
        port: gateway.port,
        logins: instance.logins.clone(),
        mcp: Arc::clone(&instance.mcp) as _,
        reload: Arc::clone(instance) as _,
    }
}

/// Returns the bind address as an allowed host name, if others can reach it. IPv6 is in brackets, as browsers write
/// it.
pub fn host_name_of_bind(bind: IpAddr) -> Option<String> {
    let is_reached = !bind.is_loopback() && !bind.is_unspecified();
    is_reached.then(|| match bind {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    })
}

fn configured_hooks(config: &Config) -> HashMap<String, SignedHook> {
    let hook = |webhook: &config::WebhookConfig| SignedHook {
        secret: webhook.secret.expose().to_owned(),
        agent: webhook.agent.clone(),
        map: webhook.map.clone(),
    };
    config.channels.webhook.iter().map(|(name, webhook)| (name.clone(), hook(webhook))).collect()
}
