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

use crate::control::Control;
use crate::error::{Error, Result};
use crate::file;
use crate::http_client::request_json;
use crate::instance_paths::HOME_FOLDER;
use crate::process;
use crate::view::InstanceProcess;

/// Where processes listen that were started or looked at by this server.
#[derive(Default)]
pub(crate) struct EndpointCache(Mutex<HashMap<InstanceId, (ProcessId, SocketAddr)>>);

impl EndpointCache {
    fn get(&self, id: &InstanceId, pid: ProcessId) -> Option<SocketAddr> {
        let endpoints = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        endpoints.get(id).filter(|(known, _)| *known == pid).map(|(_, address)| *address)
    }

    pub fn insert(&self, id: &InstanceId, pid: ProcessId, address: SocketAddr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), (pid, address));
    }
}

impl Control {
    /// Where a running instance listens: as it was started, or as its own note says where its process does. What its
    /// config says by now is no answer: who may write there could have its token sent anywhere.
    pub(crate) fn instance_address(
        &self,
        one: &InstanceRecord,
        live: &InstanceProcess,
    ) -> Result<SocketAddr> {
        let unknown = || Error::Unreachable {
            name: one.name.to_string(),
            why: "where it listens is not known; a restart makes it known".to_owned(),
        };
        let pid = live.pid.filter(|_| live.process == ProcessState::Ours);
        let pid = pid.ok_or_else(|| Error::NotRunning(one.name.to_string()))?;
        if let Some(known) = self.endpoints.get(&one.id, pid) {
            return Ok(known);
        }
        let noted = self.instance_paths(one).read_noted_address().ok_or_else(unknown)?;
        if !process::listens_on(pid.number, noted) {
            return Err(unknown());
        }
        self.endpoints.insert(&one.id, pid, noted);
        Ok(noted)
    }

    /// The token of the instance's own API, as its file says now.
    pub(crate) fn read_instance_token(&self, one: &InstanceRecord) -> Option<String> {
        let stored =
            || file::read_text(&self.instance_paths(one).token_file(), file::MAX_SMALL_FILE_BYTES).ok();
        let token = self.home_instance_token(one).or_else(stored)?;
        Some(token.trim().to_owned()).filter(|token| !token.is_empty())
    }

    /// A token that was stated is the home's own instance's, and no other's.
    pub(crate) fn home_instance_token(&self, one: &InstanceRecord) -> Option<String> {
        self.home_token.clone().filter(|_| one.folder == HOME_FOLDER)
    }

    /// Where to reach a running instance, and with which token.
    pub async fn find_endpoint(&self, word: &str) -> Result<(SocketAddr, Option<String>)> {
        let one = self.find_active(word).await?;
        let address =
            self.instance_address(&one, &InstanceProcess::for_instance(&one, &self.instance_paths(&one)))?;
        Ok((address, self.read_instance_token(&one)))
    }

    /// Its log, whether it is there yet or not.
    pub async fn log_path(&self, word: &str) -> Result<std::path::PathBuf> {
        let one = self.find_instance(word).await?;
        Ok(self.instance_paths(&one).log_file())
    }

    /// A call of an instance's own API, with its own token.
    pub(crate) async fn request_instance(
        &self,
        one: &InstanceRecord,
        method: Method,
        path: &str,
        timeout: Duration,
    ) -> Result<(u16, Value)> {
        let address =
            self.instance_address(one, &InstanceProcess::for_instance(one, &self.instance_paths(one)))?;
        let token = self.read_instance_token(one);
        let answered = request_json(address, token.as_deref(), method, path, timeout).await;
        answered.map_err(|error| Error::Unreachable { name: one.name.to_string(), why: error.to_string() })
    }
}
