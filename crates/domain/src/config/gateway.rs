//! `[gateway]`: the address the instance listens on, and who may call it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::ConfigReport;

/// The address the instance listens on, and who may call it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// The address to listen on. By default reachable only from this machine.
    pub bind: IpAddr,
    /// The port of the API, the web chat and webhooks.
    #[schemars(range(min = 1))]
    pub port: u16,
    /// Whether callers must present the instance's token.
    pub auth: GatewayAuth,
    /// Host names of the instance besides its own address, such as the name of a reverse proxy. Requests for other
    /// hosts are rejected, to prevent DNS rebinding.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_hosts: Vec<String>,
    /// Web origins whose pages may call the API from a browser, such as `https://chat.example.com`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_origins: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GatewayAuth {
    /// Every call needs `Authorization: Bearer <token>`.
    #[default]
    Token,
    /// No token. Allowed only on a loopback address.
    Off,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 18801,
            auth: GatewayAuth::Token,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }
}

impl GatewayConfig {
    /// Returns the address for clients on this machine: loopback if the instance listens on all addresses.
    pub fn local_address(&self) -> SocketAddr {
        let loopback = match self.bind {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        SocketAddr::new(if self.bind.is_unspecified() { loopback } else { self.bind }, self.port)
    }

    pub(super) fn report_errors(&self, report: &mut ConfigReport) {
        if self.auth == GatewayAuth::Off && !self.bind.is_loopback() {
            let message = format!("no token is required, but other machines can reach {}", self.bind);
            report.add_error("gateway.auth", message, r#"set auth = "token", or bind = "127.0.0.1""#);
        }
        for (index, host) in self.allowed_hosts.iter().enumerate() {
            if host.is_empty() || host.contains(['/', '*']) || host.contains(char::is_whitespace) {
                let hint = "use only the name, like chat.example.com";
                report.add_error(
                    &format!("gateway.allowed_hosts[{index}]"),
                    format!("{host:?} is not a host name"),
                    hint,
                );
            }
        }
        for (index, origin) in
            self.allowed_origins.iter().enumerate().filter(|(_, origin)| !is_origin(origin))
        {
            let hint = "use only scheme and host, like https://chat.example.com";
            report.add_error(
                &format!("gateway.allowed_origins[{index}]"),
                format!("{origin:?} is not a web origin"),
                hint,
            );
        }
    }
}

/// Returns whether a text is an origin as browsers send it: scheme, host and optional port only.
fn is_origin(text: &str) -> bool {
    let host = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    host.is_some_and(|host| {
        !host.is_empty() && !host.contains(['/', '*', '?', '#']) && !host.contains(char::is_whitespace)
    })
}
