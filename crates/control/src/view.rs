//! Snapshots of instances, and the feed of their changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use polyclaw_domain::id::InstanceId;
use polyclaw_domain::instance::{
    DesiredState, InstanceFacts, InstanceName, InstanceStatus, ProcessState, RestartPolicy, derive_status,
};
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::time::Millis;
use polyclaw_store::Tx;
use polyclaw_store::registry::{self, InstanceRecord, ProcessId};
use serde::Serialize;
use tokio::sync::broadcast;

use crate::control::Control;
use crate::error::{Error, Result};
use crate::instance_paths::InstancePaths;
use crate::process;

/// Buffered changes; a reader that falls further behind re-reads everything.
const CHANGE_BUFFER_SIZE: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstanceSnapshot {
    pub id: InstanceId,
    pub name: InstanceName,
    pub status: InstanceStatus,
    pub port: u16,
    pub pid: Option<i32>,
    pub desired_state: DesiredState,
    pub restart: RestartPolicy,
    /// Why the instance does not run although it should, or that it runs and does not answer.
    pub error: Option<String>,
    pub archived_at: Option<Millis>,
    pub created_at: Millis,
}

/// A change of an instance.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InstanceChange {
    StatusChanged { instance: InstanceSnapshot },
    InstanceCreated { instance: InstanceSnapshot },
    InstanceArchived { instance: InstanceSnapshot },
    InstanceUnarchived { instance: InstanceSnapshot },
    InstanceDeleted { instance: InstanceSnapshot },
}

/// The status, pid and error of an instance as last reported.
type ReportedStatus = (InstanceStatus, Option<i32>, Option<String>);

/// Publishes changes to readers.
pub(crate) struct InstanceFeed {
    changes: broadcast::Sender<Arc<InstanceChange>>,
    /// The last reported status of each instance.
    reported: Mutex<HashMap<InstanceId, ReportedStatus>>,
}

impl InstanceFeed {
    pub fn new() -> Self {
        Self { changes: broadcast::channel(CHANGE_BUFFER_SIZE).0, reported: Mutex::default() }
    }

    fn publish(&self, change: InstanceChange) {
        // There may be no readers.
        let _ = self.changes.send(Arc::new(change));
    }

    /// Records the status. Returns whether it differs from the last reported one.
    fn is_new(&self, view: &InstanceSnapshot) -> bool {
        let mut notice = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (view.status, view.pid, view.error.clone());
        notice.insert(view.id.clone(), now.clone()) != Some(now)
    }

    fn forget_instance(&self, id: &InstanceId) {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// The process of an instance, as the process table shows it.
pub(crate) struct InstanceProcess {
    pub process: ProcessState,
    pub pid: Option<ProcessId>,
    /// Whether the pid file of the daemon exists.
    pub has_pid_file: bool,
}

impl InstanceProcess {
    pub fn for_instance(one: &InstanceRecord, place: &InstancePaths) -> Self {
        let written = place.read_pid();
        let number = written.or(one.pid.map(|pid| pid.number));
        let has_pid_file = written.is_some();
        let Some(number) = number else {
            return Self { process: ProcessState::Gone, pid: None, has_pid_file };
        };
        let recorded = one.pid.filter(|pid| pid.number == number).map(|pid| pid.started);
        let process = match process::inspect_process(number, recorded, place.path()) {
            // The daemon removed its pid file, so another process with its pid does not matter.
            ProcessState::Foreign if !has_pid_file => ProcessState::Gone,
            found => found,
        };
        let started = recorded.or_else(|| process::start_time(number)).unwrap_or_default();
        Self { process, pid: Some(ProcessId { number, started }), has_pid_file }
    }

    pub fn status(&self, one: &InstanceRecord) -> InstanceStatus {
        let known = InstanceFacts {
            archived: one.archived_at.is_some(),
            desired: one.desired_state,
            broken: one.broken.is_some(),
            pid_left: self.has_pid_file,
            restarting: one.restarting,
        };
        derive_status(known, self.process)
    }
}

impl Control {
    /// Finds the record of an instance by id or name.
    pub(crate) async fn find_instance(&self, word: &str) -> Result<InstanceRecord> {
        let wanted = word.to_owned();
        let found = self.db.read(move |tx: &mut Tx<'_>| registry::find_by_id_or_name(tx, &wanted)).await?;
        found.ok_or_else(|| Error::UnknownInstance(quote_safely(word)))
    }

    pub fn instance_paths(&self, one: &InstanceRecord) -> InstancePaths {
        InstancePaths::for_instance(&self.home, one)
    }

    pub async fn get(&self, word: &str) -> Result<InstanceSnapshot> {
        let one = self.find_instance(word).await?;
        self.build_view(one).await
    }

    /// Lists instances, active ones first.
    pub async fn list_instances(&self, with_archived: bool) -> Result<Vec<InstanceSnapshot>> {
        let rows = self.db.read(registry::list).await?;
        let mut views = Vec::with_capacity(rows.len());
        for one in rows.into_iter().filter(|one| with_archived || one.archived_at.is_none()) {
            views.push(self.build_view(one).await?);
        }
        Ok(views)
    }

    pub(crate) async fn build_view(&self, one: InstanceRecord) -> Result<InstanceSnapshot> {
        let live = InstanceProcess::for_instance(&one, &self.instance_paths(&one));
        let status = match live.status(&one) {
            InstanceStatus::Running if self.liveness.is_unresponsive(&one.id) => InstanceStatus::Unresponsive,
            InstanceStatus::Crashed if self.is_starting(&one.id) => InstanceStatus::Starting,
            status => status,
        };
        let error = match status {
            InstanceStatus::Error => one.broken.clone(),
            InstanceStatus::Unresponsive => Some("it does not respond".to_owned()),
            InstanceStatus::Stopped => self.start_failure(&one.id),
            InstanceStatus::Crashed => {
                let id = one.id.clone();
                let last = self.db.read(move |tx: &mut Tx<'_>| registry::find_last_crash(tx, &id)).await?;
                last.map(|(_, why)| why)
            }
            _ => None,
        };
        let has_process = matches!(
            status,
            InstanceStatus::Running
                | InstanceStatus::Unresponsive
                | InstanceStatus::StalePid
                | InstanceStatus::Unknown
        );
        let pid = live.pid.filter(|_| has_process);
        Ok(InstanceSnapshot {
            id: one.id,
            name: one.name,
            status,
            port: one.port,
            pid: pid.map(|pid| pid.number),
            desired_state: one.desired_state,
            restart: one.restart,
            error,
            archived_at: one.archived_at,
            created_at: one.created_at,
        })
    }

    /// Subscribes to changes from now on.
    pub fn subscribe_changes(&self) -> broadcast::Receiver<Arc<InstanceChange>> {
        self.feed.changes.subscribe()
    }

    /// Reads the state of an instance and publishes it if it changed.
    pub(crate) async fn refresh_instance(&self, id: &InstanceId) -> Result<InstanceSnapshot> {
        let view = self.get(id.as_str()).await?;
        if self.feed.is_new(&view) {
            self.feed.publish(InstanceChange::StatusChanged { instance: view.clone() });
        }
        Ok(view)
    }

    pub(crate) async fn publish_change(
        &self,
        id: &InstanceId,
        change: fn(InstanceSnapshot) -> InstanceChange,
    ) -> Result<InstanceSnapshot> {
        let view = self.get(id.as_str()).await?;
        self.feed.is_new(&view);
        self.feed.publish(change(view.clone()));
        Ok(view)
    }

    pub(crate) fn publish_deleted(&self, view: InstanceSnapshot) {
        self.feed.forget_instance(&view.id);
        self.feed.publish(InstanceChange::InstanceDeleted { instance: view });
    }
}
