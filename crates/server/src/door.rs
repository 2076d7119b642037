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
    /// How more of them are named.
    pub setting: Setting,
}

/// Where the names of a server are set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Setting {
    /// The config of an instance.
    #[default]
    Config,
    /// The command line or the environment of a control plane.
    Command,
}

/// Whom a browser is let in for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guest {
    /// Whoever has the server's own token.
    Owner,
    /// Whoever has a token that was given out, by its id. What it may do is asked for anew with every call.
    Token(String),
}

pub struct Door {
    pub names: Names,
    pub logins: Logins,
    auth: Auth,
    pub cookie_name: String,
}

impl Door {
    /// Browsers keep one set of cookies for all ports of a host, so the page's cookie is named after ours.
    pub fn new(auth: Auth, names: Names, logins: Logins, port: u16) -> Self {
        let lower = |names: Vec<String>| names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        let names =
            Names { hosts: lower(names.hosts), origins: lower(names.origins), setting: names.setting };
        Self { names, logins, auth, cookie_name: format!("polyclaw_{port}") }
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

    /// Whom a cookie was given to, if it is one of ours.
    pub fn guest(&self, cookie: &str) -> Option<Guest> {
        let guest = match cookie.split_once('.') {
            Some((id, _)) => Guest::Token(id.to_owned()),
            None => Guest::Owner,
        };
        let ours = self.cookie(&guest)?;
        bool::from(ours.as_bytes().ct_eq(cookie.as_bytes())).then_some(guest)
    }

    /// What a browser that was let in keeps.
    pub fn set_cookie(&self, guest: &Guest) -> Option<String> {
        let value = self.cookie(guest)?;
        Some(format!("{}={value}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name))
    }

    /// What a guest's cookie holds: proof of the server's token, never the token itself.
    fn cookie(&self, guest: &Guest) -> Option<String> {
        let Auth::Token(token) = &self.auth else { return None };
        Some(match guest {
            Guest::Owner => proof("polyclaw page\0", token),
            Guest::Token(id) => format!("{id}.{}", proof(&format!("polyclaw page of {id}\0"), token)),
        })
    }
}

/// The secret stands last: what can be appended to a hash is then no proof of anything.
fn proof(of: &str, token: &str) -> String {
    hex(&Sha256::new().chain_update(of).chain_update(token).finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(token: &str) -> Door {
        Door::new(Auth::Token(token.into()), Names::default(), Logins::default(), 1)
    }

    #[test]
    fn a_cookie_says_whose_it_is_and_nobody_can_write_their_own() {
        let door = door("secret");
        let given = |guest: &Guest| {
            let cookie = door.set_cookie(guest).unwrap();
            cookie["polyclaw_1=".len()..cookie.find(';').unwrap()].to_owned()
        };
        let reader = Guest::Token("t-1".into());
        let (owners, readers) = (given(&Guest::Owner), given(&reader));
        assert_eq!(door.guest(&owners), Some(Guest::Owner));
        assert_eq!(door.guest(&readers), Some(reader));
        let (_, proof) = readers.split_once('.').unwrap();
        for forged in [
            proof.to_owned(),
            format!("t-2.{proof}"),
            format!("t-1.{owners}"),
            format!(".{owners}"),
            String::new(),
        ] {
            assert_eq!(door.guest(&forged), None, "{forged}");
        }
        assert_eq!(self::door("another").guest(&owners), None);
    }
}
