//! Access to an instance: its address, token, log and API.

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

/// Addresses of processes that this server started or inspected.
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
    /// Returns the address of a running instance: the one it was started with, or the one in its address file if its
    /// process listens there. The config is not trusted, because anyone who can edit it could redirect the token
    /// anywhere.
    pub(crate) fn instance_address(
        &self,
        one: &InstanceRecord,
        live: &InstanceProcess,
    ) -> Result<SocketAddr> {
        let unknown = || Error::Unreachable {
            name: one.name.to_string(),
            why: "its address is unknown; a restart fixes that".to_owned(),
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

    /// Reads the API token of the instance from its file.
    pub(crate) fn read_instance_token(&self, one: &InstanceRecord) -> Option<String> {
        let stored =
            || file::read_text(&self.instance_paths(one).token_file(), file::MAX_SMALL_FILE_BYTES).ok();
        let token = self.home_instance_token(one).or_else(stored)?;
        Some(token.trim().to_owned()).filter(|token| !token.is_empty())
    }

    /// Returns the configured token, which belongs to the home instance only.
    pub(crate) fn home_instance_token(&self, one: &InstanceRecord) -> Option<String> {
        self.home_token.clone().filter(|_| one.folder == HOME_FOLDER)
    }

    /// Returns the address and the token of a running instance.
    pub async fn find_endpoint(&self, word: &str) -> Result<(SocketAddr, Option<String>)> {
        let one = self.find_active(word).await?;
        let address =
            self.instance_address(&one, &InstanceProcess::for_instance(&one, &self.instance_paths(&one)))?;
        Ok((address, self.read_instance_token(&one)))
    }

    /// Returns the path of the log, which may not exist yet.
    pub async fn log_path(&self, word: &str) -> Result<std::path::PathBuf> {
        let one = self.find_instance(word).await?;
        Ok(self.instance_paths(&one).log_file())
    }

    /// Calls the API of an instance with the instance's token.
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
