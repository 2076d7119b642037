//! Probes whether running instances answer. The process table does not show that a process hangs.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::Method;
use polyclaw_domain::id::InstanceId;
use polyclaw_domain::instance::ProcessState;
use polyclaw_store::registry::{self, InstanceRecord};
use tokio::task::JoinSet;

use crate::control::Control;
use crate::error::Result;
use crate::http_client::request_json;
use crate::view::InstanceProcess;

const PROBE_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Missed probes in a row before an instance counts as unresponsive, so that a short load peak does not matter.
const MAX_MISSED_PROBES: u32 = 2;

/// Consecutive missed probes, by instance.
#[derive(Default)]
pub(crate) struct LivenessProbes(Mutex<HashMap<InstanceId, MissedProbes>>);

/// The number of consecutive missed probes, and the time of the first.
struct MissedProbes {
    misses: u32,
    since: Instant,
}

impl LivenessProbes {
    pub fn record_probe(&self, id: &InstanceId, answers: bool) {
        let mut misses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers {
            misses.remove(id);
        } else {
            let start_run = || MissedProbes { misses: 0, since: Instant::now() };
            misses.entry(id.clone()).or_insert_with(start_run).misses += 1;
        }
    }

    pub fn is_unresponsive(&self, id: &InstanceId) -> bool {
        let misses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        misses.get(id).is_some_and(|silence| silence.misses >= MAX_MISSED_PROBES)
    }

    /// How long the instance has been unresponsive.
    pub fn unresponsive_for(&self, id: &InstanceId) -> Option<Duration> {
        let misses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        misses
            .get(id)
            .filter(|silence| silence.misses >= MAX_MISSED_PROBES)
            .map(|silence| silence.since.elapsed())
    }
}

impl Control {
    /// Runs until dropped.
    pub(crate) async fn run_liveness_probes(&self) {
        loop {
            match self.db.read(registry::list).await {
                Ok(rows) => self.probe_all(rows).await,
                Err(error) => tracing::error!(%error, "could not list the instances for liveness probes"),
            }
            tokio::time::sleep(PROBE_INTERVAL).await;
        }
    }

    /// Probes all instances concurrently, so that a hanging one does not delay the others.
    async fn probe_all(&self, rows: Vec<InstanceRecord>) {
        let mut asked = JoinSet::new();
        for one in rows.into_iter().filter(|one| one.archived_at.is_none()) {
            let control = self.clone();
            asked.spawn(async move {
                if let Err(error) = control.probe_instance(&one).await {
                    tracing::debug!(instance = %one.name, %error, "could not probe an instance");
                }
            });
        }
        while asked.join_next().await.is_some() {}
    }

    async fn probe_instance(&self, one: &InstanceRecord) -> Result<()> {
        let live = InstanceProcess::for_instance(one, &self.instance_paths(one));
        if live.process != ProcessState::Ours {
            self.liveness.record_probe(&one.id, true);
            return Ok(());
        }
        let address = self.instance_address(one, &live)?;
        self.liveness.record_probe(&one.id, is_answering(address).await);
        self.refresh_instance(&one.id).await.map(drop)
    }
}

async fn is_answering(address: SocketAddr) -> bool {
    request_json(address, None, Method::GET, "/health", PROBE_TIMEOUT).await.is_ok()
}

/// Waits for an answer while the instance responds to probes: a turn may take long, but a hanging process never
/// answers. Returns `None` if it stops responding.
pub async fn wait_while_answering<T>(address: SocketAddr, answer: impl Future<Output = T>) -> Option<T> {
    wait_while_probed(answer, || is_answering(address)).await
}

async fn wait_while_probed<T, P>(answer: impl Future<Output = T>, probe: impl Fn() -> P) -> Option<T>
where
    P: Future<Output = bool>,
{
    let mut misses = 0;
    tokio::pin!(answer);
    while misses < MAX_MISSED_PROBES {
        let probed = async {
            tokio::time::sleep(PROBE_INTERVAL).await;
            probe().await
        };
        tokio::select! {
            answered = &mut answer => return Some(answered),
            there = probed => misses = if there { 0 } else { misses + 1 },
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::net::TcpListener;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn hung_process_stops_the_wait() {
        // The kernel accepts connections for a process that does nothing.
        let hung = TcpListener::bind("127.0.0.1:0").await.unwrap();
        assert!(wait_while_answering(hung.local_addr().unwrap(), pending::<()>()).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn responsive_process_is_waited_for_without_limit() {
        let turn = async {
            sleep(100 * PROBE_INTERVAL).await;
            "done"
        };
        assert_eq!(wait_while_probed(turn, || ready(true)).await, Some("done"));
        let asked = std::cell::Cell::new(0);
        let now_and_then = || {
            asked.set(asked.get() + 1);
            ready(asked.get() % 2 == 0)
        };
        assert_eq!(
            wait_while_probed(sleep(20 * PROBE_INTERVAL), now_and_then).await,
            Some(()),
            "one silence is forgiven"
        );
    }

    #[test]
    fn two_missed_probes_mark_instance_unresponsive() {
        let (probes, id) = (LivenessProbes::default(), InstanceId::new("one"));
        probes.record_probe(&id, false);
        assert!(!probes.is_unresponsive(&id));
        probes.record_probe(&id, false);
        assert!(probes.is_unresponsive(&id));
        probes.record_probe(&id, true);
        assert!(!probes.is_unresponsive(&id));
    }
}
