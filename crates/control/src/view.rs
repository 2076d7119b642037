//! An instance as it is now, and the news about it.

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
use crate::place::Place;
use crate::process;

/// News on their way to readers; one that is further behind looks at everything again.
const BUFFER: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct View {
    pub id: InstanceId,
    pub name: InstanceName,
    pub status: InstanceStatus,
    pub port: u16,
    pub pid: Option<i32>,
    pub wanted: DesiredState,
    pub restart: RestartPolicy,
    /// Why it does not run although it should, or that it runs and does not answer.
    pub error: Option<String>,
    pub archived_at: Option<Millis>,
    pub created_at: Millis,
}

/// Something that happened to an instance.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Change {
    StatusChanged { instance: View },
    InstanceCreated { instance: View },
    InstanceArchived { instance: View },
    InstanceUnarchived { instance: View },
    InstanceDeleted { instance: View },
}

/// Of an instance: what it is, its pid, and what is wrong with it.
type Told = (InstanceStatus, Option<i32>, Option<String>);

/// Tells readers what is new.
pub(crate) struct Feed {
    news: broadcast::Sender<Arc<Change>>,
    /// What readers were told last.
    told: Mutex<HashMap<InstanceId, Told>>,
}

impl Feed {
    pub fn new() -> Self {
        Self { news: broadcast::channel(BUFFER).0, told: Mutex::default() }
    }

    fn tell(&self, change: Change) {
        // Nobody may be listening.
        let _ = self.news.send(Arc::new(change));
    }

    /// Whether this is not what was told last; it is from now on.
    fn is_new(&self, view: &View) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (view.status, view.pid, view.error.clone());
        told.insert(view.id.clone(), now.clone()) != Some(now)
    }

    fn forget(&self, id: &InstanceId) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// An instance with what the process table says of it.
pub(crate) struct Live {
    pub process: ProcessState,
    pub pid: Option<ProcessId>,
    /// The daemon's own note of its pid is there.
    pub pid_left: bool,
}

impl Live {
    pub fn of(one: &InstanceRecord, place: &Place) -> Self {
        let written = place.pid();
        let number = written.or(one.pid.map(|pid| pid.number));
        let pid_left = written.is_some();
        let Some(number) = number else { return Self { process: ProcessState::Gone, pid: None, pid_left } };
        let recorded = one.pid.filter(|pid| pid.number == number).map(|pid| pid.started);
        let process = match process::look(number, recorded, place.path()) {
            // The daemon took its own note away: whoever has its number now is nobody's concern.
            ProcessState::Foreign if !pid_left => ProcessState::Gone,
            found => found,
        };
        let started = recorded.or_else(|| process::started(number)).unwrap_or_default();
        Self { process, pid: Some(ProcessId { number, started }), pid_left }
    }

    pub fn status(&self, one: &InstanceRecord) -> InstanceStatus {
        let known = InstanceFacts {
            archived: one.archived_at.is_some(),
            desired: one.desired_state,
            broken: one.broken.is_some(),
            pid_left: self.pid_left,
            restarting: one.restarting,
        };
        derive_status(known, self.process)
    }
}

impl Control {
    /// The row of an instance, by id or name.
    pub(crate) async fn row(&self, word: &str) -> Result<InstanceRecord> {
        let wanted = word.to_owned();
        let found = self.db.read(move |tx: &mut Tx<'_>| registry::find_by_id_or_name(tx, &wanted)).await?;
        found.ok_or_else(|| Error::UnknownInstance(quote_safely(word)))
    }

    pub fn place(&self, one: &InstanceRecord) -> Place {
        Place::of(&self.home, one)
    }

    pub async fn get(&self, word: &str) -> Result<View> {
        let one = self.row(word).await?;
        self.view(one).await
    }

    /// Active ones first.
    pub async fn list(&self, with_archived: bool) -> Result<Vec<View>> {
        let rows = self.db.read(registry::list).await?;
        let mut views = Vec::with_capacity(rows.len());
        for one in rows.into_iter().filter(|one| with_archived || one.archived_at.is_none()) {
            views.push(self.view(one).await?);
        }
        Ok(views)
    }

    pub(crate) async fn view(&self, one: InstanceRecord) -> Result<View> {
        let live = Live::of(&one, &self.place(&one));
        let status = match live.status(&one) {
            InstanceStatus::Running if self.pulses.is_silent(&one.id) => InstanceStatus::Unresponsive,
            InstanceStatus::Crashed if self.is_starting(&one.id) => InstanceStatus::Starting,
            status => status,
        };
        let error = match status {
            InstanceStatus::Error => one.broken.clone(),
            InstanceStatus::Unresponsive => Some("it does not answer".to_owned()),
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
        Ok(View {
            id: one.id,
            name: one.name,
            status,
            port: one.port,
            pid: pid.map(|pid| pid.number),
            wanted: one.desired_state,
            restart: one.restart,
            error,
            archived_at: one.archived_at,
            created_at: one.created_at,
        })
    }

    /// What happens from now on.
    pub fn watch(&self) -> broadcast::Receiver<Arc<Change>> {
        self.feed.news.subscribe()
    }

    /// Looks at an instance, and tells readers if it is not what they were told last.
    pub(crate) async fn refresh(&self, id: &InstanceId) -> Result<View> {
        let view = self.get(id.as_str()).await?;
        if self.feed.is_new(&view) {
            self.feed.tell(Change::StatusChanged { instance: view.clone() });
        }
        Ok(view)
    }

    pub(crate) async fn announce(&self, id: &InstanceId, change: fn(View) -> Change) -> Result<View> {
        let view = self.get(id.as_str()).await?;
        self.feed.is_new(&view);
        self.feed.tell(change(view.clone()));
        Ok(view)
    }

    pub(crate) fn announce_end(&self, view: View) {
        self.feed.forget(&view.id);
        self.feed.tell(Change::InstanceDeleted { instance: view });
    }
}
