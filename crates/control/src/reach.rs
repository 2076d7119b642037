//! How an instance is reached: its address, its token, its log, and its own API.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hyper::Method;
use polyclaw_domain::id::InstanceId;
use polyclaw_domain::instance::ProcessState;
use polyclaw_store::registry::{InstanceRecord, ProcessId};
use serde_json::Value;

use crate::call::ask;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::file;
use crate::place::HOME;
use crate::process;
use crate::view::Live;

/// Where processes listen that were started or looked at by this server.
#[derive(Default)]
pub(crate) struct Doors(Mutex<HashMap<InstanceId, (ProcessId, SocketAddr)>>);

impl Doors {
    fn of(&self, id: &InstanceId, pid: ProcessId) -> Option<SocketAddr> {
        let doors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        doors.get(id).filter(|(known, _)| *known == pid).map(|(_, address)| *address)
    }

    pub fn set(&self, id: &InstanceId, pid: ProcessId, address: SocketAddr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), (pid, address));
    }
}

impl Control {
    /// Where a running instance listens: as it was started, or as its own note says where its process does. What its
    /// config says by now is no answer: who may write there could have its token sent anywhere.
    pub(crate) fn address(&self, one: &InstanceRecord, live: &Live) -> Result<SocketAddr> {
        let unknown = || Error::Unreachable {
            name: one.name.to_string(),
            why: "where it listens is not known; a restart makes it known".to_owned(),
        };
        let pid = live.pid.filter(|_| live.process == ProcessState::Ours);
        let pid = pid.ok_or_else(|| Error::NotRunning(one.name.to_string()))?;
        if let Some(known) = self.doors.of(&one.id, pid) {
            return Ok(known);
        }
        let noted = self.place(one).noted_address().ok_or_else(unknown)?;
        if !process::listens(pid.number, noted) {
            return Err(unknown());
        }
        self.doors.set(&one.id, pid, noted);
        Ok(noted)
    }

    /// The token of the instance's own API, as its file says now.
    pub(crate) fn token_of(&self, one: &InstanceRecord) -> Option<String> {
        let stored = || file::read_text(&self.place(one).token_file(), file::SMALL).ok();
        let token = self.stated_token(one).or_else(stored)?;
        Some(token.trim().to_owned()).filter(|token| !token.is_empty())
    }

    /// A token that was stated is the home's own instance's, and no other's.
    pub(crate) fn stated_token(&self, one: &InstanceRecord) -> Option<String> {
        self.home_token.clone().filter(|_| one.folder == HOME)
    }

    /// Where to reach a running instance, and with which token.
    pub async fn door(&self, word: &str) -> Result<(SocketAddr, Option<String>)> {
        let one = self.active(word).await?;
        let address = self.address(&one, &Live::of(&one, &self.place(&one)))?;
        Ok((address, self.token_of(&one)))
    }

    /// Its log, whether it is there yet or not.
    pub async fn log_of(&self, word: &str) -> Result<std::path::PathBuf> {
        let one = self.row(word).await?;
        Ok(self.place(&one).log())
    }

    /// A call of an instance's own API, with its own token.
    pub(crate) async fn ask(
        &self,
        one: &InstanceRecord,
        method: Method,
        path: &str,
        patience: Duration,
    ) -> Result<(u16, Value)> {
        let address = self.address(one, &Live::of(one, &self.place(one)))?;
        let token = self.token_of(one);
        let answered = ask(address, token.as_deref(), method, path, patience).await;
        answered.map_err(|error| Error::Unreachable { name: one.name.to_string(), why: error.to_string() })
    }
}
