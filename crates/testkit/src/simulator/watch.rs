//! Checks at every kill point that no session has two running turns.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use polyclaw_domain::kill_points::{FaultInjector, KillPoint};
use polyclaw_domain::port::BoxFuture;
use polyclaw_store::{Db, jobs};

use crate::ports::{KillPointFaults, RecordingToolbox, lock};
use crate::world::DurableWorld;

#[derive(Clone)]
pub(super) struct KillPointWatch {
    db: Db,
    tools: Arc<RecordingToolbox>,
    seen: Arc<Mutex<Option<String>>>,
}

impl KillPointWatch {
    pub fn from_ground(ground: &DurableWorld) -> Self {
        Self { db: ground.db.clone(), tools: Arc::clone(&ground.tools), seen: Arc::default() }
    }

    /// Wraps an engine's kill points: each is checked before it is passed.
    pub fn wrap_faults(&self, faults: &Arc<KillPointFaults>) -> Arc<WatchedFaults> {
        Arc::new(WatchedFaults { watch: self.clone(), faults: Arc::clone(faults) })
    }

    /// Returns the first violation as an error.
    pub fn first_violation(&self) -> Result<(), String> {
        lock(&self.seen).clone().or_else(|| self.tools.find_overlap()).map_or(Ok(()), Err)
    }

    async fn check_point(&self, point: KillPoint) {
        let running = match self.db.read(jobs::list_running).await {
            Ok(running) => running,
            Err(error) => return self.record_violation(format!("at {}: {error}", point.as_str())),
        };
        let mut sessions = HashSet::new();
        for turn in running {
            if !sessions.insert(turn.session.clone()) {
                self.record_violation(format!(
                    "at {} session {} has two running turns",
                    point.as_str(),
                    turn.session
                ));
            }
        }
    }

    fn record_violation(&self, rule: String) {
        lock(&self.seen).get_or_insert(rule);
    }
}

pub(super) struct WatchedFaults {
    watch: KillPointWatch,
    faults: Arc<KillPointFaults>,
}

impl FaultInjector for WatchedFaults {
    fn hit_kill_point(&self, point: KillPoint) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.watch.check_point(point).await;
            self.faults.hit_kill_point(point).await;
        })
    }
}
