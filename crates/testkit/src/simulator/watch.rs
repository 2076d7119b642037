//! Looks on at every point that a run passes: at no time two turns of one session run.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use polyclaw_domain::kill_points::{FaultInjector, KillPoint};
use polyclaw_domain::port::BoxFuture;
use polyclaw_store::{Db, jobs};

use crate::ports::{Faulty, Tools, lock};
use crate::world::Ground;

#[derive(Clone)]
pub(super) struct Watch {
    db: Db,
    tools: Arc<Tools>,
    seen: Arc<Mutex<Option<String>>>,
}

impl Watch {
    pub fn on(ground: &Ground) -> Self {
        Self { db: ground.db.clone(), tools: Arc::clone(&ground.tools), seen: Arc::default() }
    }

    /// The points of one life, each looked at before it is passed.
    pub fn over(&self, faults: &Arc<Faulty>) -> Arc<Watched> {
        Arc::new(Watched { watch: self.clone(), faults: Arc::clone(faults) })
    }

    /// The first thing that must not be.
    pub fn verdict(&self) -> Result<(), String> {
        lock(&self.seen).clone().or_else(|| self.tools.overlap()).map_or(Ok(()), Err)
    }

    async fn look(&self, point: KillPoint) {
        let running = match self.db.read(jobs::list_running).await {
            Ok(running) => running,
            Err(error) => return self.note(format!("at {}: {error}", point.as_str())),
        };
        let mut sessions = HashSet::new();
        for turn in running {
            if !sessions.insert(turn.session.clone()) {
                self.note(format!("at {} session {} has two running turns", point.as_str(), turn.session));
            }
        }
    }

    fn note(&self, rule: String) {
        lock(&self.seen).get_or_insert(rule);
    }
}

pub(super) struct Watched {
    watch: Watch,
    faults: Arc<Faulty>,
}

impl FaultInjector for Watched {
    fn hit_kill_point(&self, point: KillPoint) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.watch.look(point).await;
            self.faults.hit_kill_point(point).await;
        })
    }
}
