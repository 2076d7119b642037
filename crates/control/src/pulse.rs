//! Whether running instances answer. A process that is there may hang: the process table does not tell, so each is asked
//! now and then.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::Method;
use polyclaw_domain::id::InstanceId;
use polyclaw_domain::instance::ProcessState;
use polyclaw_store::registry::{self, InstanceRecord};
use tokio::task::JoinSet;

use crate::call::ask;
use crate::control::Control;
use crate::error::Result;
use crate::view::Live;

const EVERY: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(5);
/// Silences in a row: a machine that is busy for a moment is no reason to give an instance up.
const MISSES: u32 = 2;

/// How often in a row each did not answer.
#[derive(Default)]
pub(crate) struct Pulses(Mutex<HashMap<InstanceId, Silence>>);

/// Questions in a row that got no answer, and when the first was asked.
struct Silence {
    misses: u32,
    since: Instant,
}

impl Pulses {
    pub fn felt(&self, id: &InstanceId, answers: bool) {
        let mut misses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match answers {
            true => drop(misses.remove(id)),
            false => {
                let begun = || Silence { misses: 0, since: Instant::now() };
                misses.entry(id.clone()).or_insert_with(begun).misses += 1;
            }
        }
    }

    pub fn is_silent(&self, id: &InstanceId) -> bool {
        let misses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        misses.get(id).is_some_and(|silence| silence.misses >= MISSES)
    }

    /// For how long it has not answered.
    pub fn silent_for(&self, id: &InstanceId) -> Option<Duration> {
        let misses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        misses.get(id).filter(|silence| silence.misses >= MISSES).map(|silence| silence.since.elapsed())
    }
}

impl Control {
    /// Runs until it is dropped.
    pub(crate) async fn feel_pulses(&self) {
        loop {
            match self.db.read(registry::list).await {
                Ok(rows) => self.feel(rows).await,
                Err(error) => tracing::error!(%error, "the instances could not be asked how they are"),
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// All at once: one that does not answer must not hold the others up.
    async fn feel(&self, rows: Vec<InstanceRecord>) {
        let mut asked = JoinSet::new();
        for one in rows.into_iter().filter(|one| one.archived_at.is_none()) {
            let control = self.clone();
            asked.spawn(async move {
                if let Err(error) = control.feel_one(&one).await {
                    tracing::debug!(instance = %one.name, %error, "it could not be asked how it is");
                }
            });
        }
        while asked.join_next().await.is_some() {}
    }

    async fn feel_one(&self, one: &InstanceRecord) -> Result<()> {
        let live = Live::of(one, &self.place(one));
        if live.process != ProcessState::Ours {
            self.pulses.felt(&one.id, true);
            return Ok(());
        }
        let address = self.address(one, &live)?;
        self.pulses.felt(&one.id, answers(address).await);
        self.refresh(&one.id).await.map(drop)
    }
}

async fn answers(address: SocketAddr) -> bool {
    ask(address, None, Method::GET, "/health", PATIENCE).await.is_ok()
}

/// Waits for an answer for as long as the instance is there to give one: a turn may take its time, and a process that
/// hangs never ends one. `None`: it does not answer anything any more.
pub async fn while_it_answers<T>(address: SocketAddr, answer: impl Future<Output = T>) -> Option<T> {
    patiently(answer, || answers(address)).await
}

async fn patiently<T, P>(answer: impl Future<Output = T>, probe: impl Fn() -> P) -> Option<T>
where
    P: Future<Output = bool>,
{
    let mut misses = 0;
    tokio::pin!(answer);
    while misses < MISSES {
        let probed = async {
            tokio::time::sleep(EVERY).await;
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
    async fn who_hangs_is_given_up() {
        // The kernel takes connections for a process that does nothing.
        let hung = TcpListener::bind("127.0.0.1:0").await.unwrap();
        assert!(while_it_answers(hung.local_addr().unwrap(), pending::<()>()).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn who_answers_is_waited_for_however_long_a_turn_takes() {
        let turn = async {
            sleep(100 * EVERY).await;
            "done"
        };
        assert_eq!(patiently(turn, || ready(true)).await, Some("done"));
        let asked = std::cell::Cell::new(0);
        let now_and_then = || {
            asked.set(asked.get() + 1);
            ready(asked.get() % 2 == 0)
        };
        assert_eq!(patiently(sleep(20 * EVERY), now_and_then).await, Some(()), "one silence is forgiven");
    }

    #[test]
    fn one_silence_is_no_reason_and_an_answer_ends_it() {
        let (pulses, id) = (Pulses::default(), InstanceId::new("one"));
        pulses.felt(&id, false);
        assert!(!pulses.is_silent(&id));
        pulses.felt(&id, false);
        assert!(pulses.is_silent(&id));
        pulses.felt(&id, true);
        assert!(!pulses.is_silent(&id));
    }
}
