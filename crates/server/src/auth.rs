//! Authentication of a server: the names it accepts and the credentials that let a caller in.

use polyclaw_domain::hex::encode_hex;
use polyclaw_store::logins::LoginOwner;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::browser::LOGIN_LIFETIME_MS;
use crate::login::LoginCodes;
use crate::state::AuthMode;

/// The names of a server besides loopback, and the pages that may call it.
#[derive(Clone, Debug, Default)]
pub struct ServerNames {
    /// With or without a port.
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    /// Where these names are configured.
    pub setting: NamesSource,
}

/// Where the names of a server are configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamesSource {
    /// The config of an instance.
    #[default]
    Config,
    /// The command line or the environment of a control plane.
    Command,
}

/// The principal of a browser login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrowserPrincipal {
    /// The holder of the server's own token.
    Owner,
    /// The holder of an issued token, by token id. Its access is looked up for every call.
    Token(String),
}

pub struct BrowserAuth {
    pub names: ServerNames,
    pub logins: LoginCodes,
    auth: AuthMode,
    pub cookie_name: String,
}

impl BrowserAuth {
    /// Browsers share cookies between all ports of a host, so the cookie name contains the port.
    pub fn new(auth: AuthMode, names: ServerNames, logins: LoginCodes, port: u16) -> Self {
        let lower = |names: Vec<String>| names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        let names =
            ServerNames { hosts: lower(names.hosts), origins: lower(names.origins), setting: names.setting };
        Self { names, logins, auth, cookie_name: format!("polyclaw_{port}") }
    }

    /// Whether authentication is off, so that everybody is let in.
    pub fn is_auth_off(&self) -> bool {
        matches!(self.auth, AuthMode::Off)
    }

    pub fn accepts_token(&self, given: &str) -> bool {
        match &self.auth {
            AuthMode::Token(token) => token.as_bytes().ct_eq(given.as_bytes()).into(),
            AuthMode::Off => true,
        }
    }

    /// Returns the principal of a login. Logins with the server's own token end when that token changes.
    pub fn principal_of(&self, owner: &LoginOwner) -> Option<BrowserPrincipal> {
        match owner {
            LoginOwner::Token { id } => Some(BrowserPrincipal::Token(id.clone())),
            LoginOwner::Server { token_hash } => {
                let ours = self.token_hash()?;
                bool::from(ours.as_bytes().ct_eq(token_hash.as_bytes())).then_some(BrowserPrincipal::Owner)
            }
        }
    }

    /// Returns the owner of a new login. `None` if authentication is off.
    pub fn owner_of(&self, principal: BrowserPrincipal) -> Option<LoginOwner> {
        let token_hash = self.token_hash()?;
        Some(match principal {
            BrowserPrincipal::Owner => LoginOwner::Server { token_hash },
            BrowserPrincipal::Token(id) => LoginOwner::Token { id },
        })
    }

    /// Returns the cookie of a login, or one that clears it.
    pub fn set_cookie(&self, login: Option<&str>) -> String {
        let (value, seconds) = login.map_or(("", 0), |value| (value, LOGIN_LIFETIME_MS / 1000));
        format!("{}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}", self.cookie_name)
    }

    fn token_hash(&self) -> Option<String> {
        match &self.auth {
            AuthMode::Token(token) => Some(token_proof("polyclaw page\0", token)),
            AuthMode::Off => None,
        }
    }
}

/// The secret comes last, so that extending the hash yields no valid proof.
fn token_proof(of: &str, token: &str) -> String {
    encode_hex(&Sha256::new().chain_update(of).chain_update(token).finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_token_invalidates_owner_logins() {
        let door = |token: &str| {
            BrowserAuth::new(AuthMode::Token(token.into()), ServerNames::default(), LoginCodes::default(), 1)
        };
        let owner = door("secret").owner_of(BrowserPrincipal::Owner).unwrap();
        assert_eq!(door("secret").principal_of(&owner), Some(BrowserPrincipal::Owner));
        assert_eq!(door("another").principal_of(&owner), None);
        let reader = BrowserPrincipal::Token("t-1".into());
        let owner = door("secret").owner_of(reader.clone()).unwrap();
        assert_eq!(door("secret").principal_of(&owner), Some(reader));
    }
}
