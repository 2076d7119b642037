//! How an instance is reached: its address, its token, its log, and its own API.

use std::net::SocketAddr;
use std::time::Duration;

use hyper::Method;
use polyclaw_domain::instance::Process;
use polyclaw_store::registry::Instance;
use serde_json::Value;

use crate::call::ask;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::place::HOME;
use crate::view::Live;

impl Control {
    /// Where it listens, or will.
    pub(crate) fn address(&self, one: &Instance) -> SocketAddr {
        let place = self.place(one);
        let text = std::fs::read_to_string(place.config()).unwrap_or_default();
        let gateway = (self.load)(place.path(), &text).map(|config| config.gateway).unwrap_or_default();
        SocketAddr::new(gateway.local().ip(), one.port)
    }

    /// The token of the instance's own API, as its file says now.
    pub(crate) fn token_of(&self, one: &Instance) -> Option<String> {
        let stored = || std::fs::read_to_string(self.place(one).token_file()).ok();
        let token = self.stated_token(one).or_else(stored)?;
        Some(token.trim().to_owned()).filter(|token| !token.is_empty())
    }

    /// A token that was stated is the home's own instance's, and no other's.
    pub(crate) fn stated_token(&self, one: &Instance) -> Option<String> {
        self.home_token.clone().filter(|_| one.folder == HOME)
    }

    /// Where to reach a running instance, and with which token.
    pub async fn door(&self, word: &str) -> Result<(SocketAddr, Option<String>)> {
        let one = self.active(word).await?;
        if Live::of(&one, &self.place(&one)).process != Process::Ours {
            return Err(Error::NotRunning(one.name.to_string()));
        }
        Ok((self.address(&one), self.token_of(&one)))
    }

    /// Its log, whether it is there yet or not.
    pub async fn log_of(&self, word: &str) -> Result<std::path::PathBuf> {
        let one = self.row(word).await?;
        Ok(self.place(&one).log())
    }

    /// A call of an instance's own API, with its own token.
    pub(crate) async fn ask(
        &self,
        one: &Instance,
        method: Method,
        path: &str,
        patience: Duration,
    ) -> Result<(u16, Value)> {
        let token = self.token_of(one);
        let answered = ask(self.address(one), token.as_deref(), method, path, patience).await;
        answered.map_err(|error| Error::Unreachable { name: one.name.to_string(), why: error.to_string() })
    }
}
