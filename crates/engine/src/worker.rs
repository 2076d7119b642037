//! The worker loop: claims turns and drives them.

mod housekeeping;
mod running_turn;
mod streamed_text;
mod takeover;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::job::JobLane;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_store::jobs::{self, TurnClaim, TurnClaimer};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::core::Engine;
use crate::error::Result;
use crate::lanes::LaneSlot;
use crate::prompt::{self, TurnRows};
use crate::turn;

pub(crate) use housekeeping::{listen_for_signals, run_lease_loop, run_sweep_loop, shared_node_name};
pub(crate) use running_turn::{RunningTurn, TurnWaitGuard};
pub(crate) use streamed_text::StreamedText;
use takeover::{SuspectQuarantine, take_over_orphans};

/// A claimed turn, with its rows if its history is short.
pub(crate) type ClaimWithRows = (TurnClaim, Option<TurnRows>);

/// A claimed turn and its lane slot, on their way to the worker.
pub(crate) struct TurnStart {
    pub running: Arc<RunningTurn>,
    pub slot: LaneSlot,
}

/// Runs the worker loop. It returns no error while turns run, because leaving the loop would drop them.
pub(crate) async fn run_worker(engine: &Engine) -> Result<()> {
    let mut started = engine.started.lock().await;
    let mut served = HashMap::new();
    let mut turns = JoinSet::new();
    let look_around = Duration::from_secs(if engine.db().is_shared() { 1 } else { 10 });
    let mut quarantine = SuspectQuarantine::default();
    let mut orphans = true;
    let mut next_look = Instant::now();
    loop {
        if std::mem::take(&mut orphans) {
            let taken = take_over_orphans(engine, &mut turns, &mut quarantine).await;
            orphans = pause_after_error(engine, taken).await;
            let usual = Instant::now() + look_around;
            next_look = quarantine.probation_end().map_or(usual, |until| usual.min(until));
            engine.lanes.wake_all();
        }
        tokio::select! {
            () = engine.lanes.wait_for_wake() => {}
            Some(start) = started.recv() => spawn_turn(engine, start, &mut turns),
            Some(ended) = turns.join_next() => log_task_end(ended),
            () = tokio::time::sleep_until(next_look) => orphans = true,
        }
        while let Some(ended) = turns.try_join_next() {
            log_task_end(ended);
        }
        orphans |= quarantine.can_start_next(engine);
        if engine.is_draining() {
            return drain_turns(engine, &mut started, turns).await;
        }
        let filled = fill_lanes(engine, &mut served, &mut turns).await;
        pause_after_error(engine, filled).await;
    }
}

/// Lets running turns reach a boundary. Turns that have not started are released for another worker.
async fn drain_turns(
    engine: &Engine,
    started: &mut mpsc::UnboundedReceiver<TurnStart>,
    mut turns: JoinSet<()>,
) -> Result<()> {
    let node = engine.node.clone();
    if let Err(error) = engine.db().write(move |tx| jobs::record_drain(tx, &node)).await {
        tracing::warn!(%error, "cannot record the drain; turns that outlast it count as cut off");
    }
    started.close();
    while let Some(start) = started.recv().await {
        engine.give_back_turn(start).await;
    }
    while turns.join_next().await.is_some() {}
    Ok(())
}

fn log_task_end(ended: std::result::Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "turn task ended abnormally");
    }
}

/// Waits a moment after a database error. Returns whether to try again.
pub(crate) async fn pause_after_error(engine: &Engine, outcome: Result<()>) -> bool {
    let Err(error) = outcome else { return false };
    tracing::error!(%error, "database error; retrying in 1 s");
    tokio::time::sleep(Duration::from_secs(1)).await;
    engine.lanes.wake_all();
    true
}

/// Free slots of a lane in which something may be ready.
#[derive(Clone)]
pub(crate) struct LaneCapacity {
    lane: JobLane,
    free: usize,
    claimer: TurnClaimer,
}

impl LaneCapacity {
    /// Returns the slot that an ending turn frees. `None` if no new turn may start.
    pub fn freed_by(engine: &Engine, ended: &TurnClaim) -> Option<Self> {
        let slots = engine.settings().lane_slots(ended.lane);
        if engine.is_draining() || engine.lanes.used_slots(ended.lane) > slots {
            return None;
        }
        let claimer = TurnClaimer { last: Some(ended.agent.clone()), ..build_claimer(engine) };
        Some(Self { lane: ended.lane, free: 1, claimer })
    }

    /// Claims jobs of the lane and opens their turns.
    pub fn claim_turns(&self, tx: &mut polyclaw_store::Tx<'_>) -> polyclaw_store::Result<Vec<ClaimWithRows>> {
        let mut claims = Vec::new();
        let mut claimer = self.claimer.clone();
        while claims.len() < self.free
            && let Some(claim) = jobs::claim_next(tx, self.lane, &claimer)?
        {
            turn::open_turn(tx, &claim, claimer.now)?;
            claimer.last = Some(claim.agent.clone());
            let rows = prompt::read_short_rows(tx, &claim)?;
            claims.push((claim, rows));
        }
        Ok(claims)
    }
}

/// Claims ready jobs in the lanes with free slots, one transaction per lane.
async fn fill_lanes(
    engine: &Engine,
    served: &mut HashMap<JobLane, AgentId>,
    turns: &mut JoinSet<()>,
) -> Result<()> {
    let settings = engine.settings();
    let mut outcome = Ok(());
    for lane in engine.lanes.take_ready() {
        let slots = settings.lane_slots(lane);
        let free = engine.lanes.take_free_slots(lane, slots);
        if free.is_empty() {
            continue;
        }
        let claimer = TurnClaimer { last: served.get(&lane).cloned(), ..build_claimer(engine) };
        let room = LaneCapacity { lane, free: free.len(), claimer };
        match engine.db().write(move |tx| room.claim_turns(tx)).await {
            Ok(claims) => {
                served.extend(claims.last().map(|(claim, _)| (lane, claim.agent.clone())));
                if claims.len() == free.len() {
                    engine.lanes.mark_full(lane, slots);
                }
                for ((claim, rows), slot) in claims.into_iter().zip(free) {
                    spawn_turn(engine, TurnStart { running: RunningTurn::new(claim, rows), slot }, turns);
                }
            }
            Err(error) => outcome = Err(error.into()),
        }
    }
    outcome
}

pub(crate) fn build_claimer(engine: &Engine) -> TurnClaimer {
    TurnClaimer {
        node: engine.node.clone(),
        now: engine.now(),
        lease_ms: engine.settings().lease_ms,
        last: None,
    }
}

impl Engine {
    /// Hands a claimed turn to the worker.
    pub(crate) fn hand_to_worker(&self, start: TurnStart) {
        self.register_running(&start.running);
        if let Err(mpsc::error::SendError(start)) = self.starts.send(start) {
            let engine = self.clone();
            tokio::spawn(async move { engine.give_back_turn(start).await });
        }
    }

    /// Registers a turn, so that it can be stopped and its lease is renewed.
    fn register_running(&self, running: &Arc<RunningTurn>) {
        let mut all = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(running.claim.turn.clone(), Arc::clone(running));
    }

    /// Releases the turns this node still holds. Call it when nothing drives them any more, before the process exits.
    pub async fn hand_back_all_turns(&self) {
        let claims: Vec<TurnClaim> = {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.values().map(|running| running.claim.clone()).collect()
        };
        let hand_back = move |tx: &mut polyclaw_store::Tx<'_>| {
            claims.iter().try_for_each(|claim| jobs::release_claim(tx, claim))
        };
        if let Err(error) = self.db().write(hand_back).await {
            tracing::error!(%error, "cannot release turns; they are taken over when their leases end");
        }
    }

    /// Releases a claimed turn that will not start here.
    async fn give_back_turn(&self, TurnStart { running, .. }: TurnStart) {
        let claim = running.claim.clone();
        if let Err(error) = self.db().write(move |tx| jobs::release_claim(tx, &claim)).await {
            tracing::error!(%error, "cannot release turn; it is taken over when its lease ends");
        }
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&running.claim.turn);
    }
}

fn spawn_turn(engine: &Engine, TurnStart { running, slot }: TurnStart, turns: &mut JoinSet<()>) {
    engine.register_running(&running);
    running.set_slot(slot);
    let engine = engine.clone();
    turns.spawn(async move {
        engine.hit_kill_point(KillPoint::TurnClaimed).await;
        let driven = AssertUnwindSafe(turn::drive_turn(&engine, &running)).catch_unwind().await;
        if driven.is_err()
            && AssertUnwindSafe(turn::fail_panicked_turn(&engine, &running)).catch_unwind().await.is_err()
        {
            tracing::error!("turn panicked twice; it is retried when its lease ends");
        }
        engine.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&running.claim.turn);
        running.drop_hub_text(&engine.hub);
        let slot = running.release_slot();
        if let Some((claim, rows)) = running.take_next() {
            let slot = slot.unwrap_or_else(|| engine.lanes.add_slot(claim.lane));
            engine.hand_to_worker(TurnStart { running: RunningTurn::new(claim, rows), slot });
        }
    });
}
