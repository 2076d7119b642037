//! The door of a server: under which names it is reached, and what lets a caller in.

use polyclaw_domain::hex::hex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::login::Logins;
use crate::state::Auth;

/// Under which names a server is reached besides loopback, and which pages may call it.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// With or without a port.
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
}

pub struct Door {
    pub names: Names,
    pub logins: Logins,
    auth: Auth,
    pub cookie_name: String,
    /// What the page's cookie holds: proof of the token, never the token itself.
    cookie: Option<String>,
}

impl Door {
    /// Browsers keep one set of cookies for all ports of a host, so the page's cookie is named after ours.
    pub fn new(auth: Auth, names: Names, logins: Logins, port: u16) -> Self {
        let lower = |names: Vec<String>| names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        let cookie = match &auth {
            Auth::Token(token) => Some(proof(token)),
            Auth::Off => None,
        };
        let names = Names { hosts: lower(names.hosts), origins: lower(names.origins) };
        Self { names, logins, auth, cookie_name: format!("polyclaw_{port}"), cookie }
    }

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

    /// What a browser that was let in keeps.
    pub fn set_cookie(&self) -> Option<String> {
        let value = self.cookie.as_ref()?;
        Some(format!("{}={value}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name))
    }
}

fn proof(token: &str) -> String {
    hex(&Sha256::new().chain_update("polyclaw page\0").chain_update(token).finalize())
}
