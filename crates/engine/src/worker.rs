//! The loop that claims turns and drives them.

mod running;
mod said;
mod take_over;
mod upkeep;

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
use crate::lanes::Slot;
use crate::prompt::{self, Rows};
use crate::turn;

pub(crate) use running::{Running, Waiting};
pub(crate) use said::Said;
use take_over::{Quarantine, take_over};
pub(crate) use upkeep::{family, keep, listen, sweep};

/// A claimed turn, with its rows if they are few.
pub(crate) type Claimed = (TurnClaim, Option<Rows>);

/// A claimed turn and the slot it runs in, on their way to the worker.
pub(crate) struct Start {
    pub running: Arc<Running>,
    pub slot: Slot,
}

/// Never returns an error while turns run: leaving the loop would drop them.
pub(crate) async fn work(engine: &Engine) -> Result<()> {
    let mut started = engine.started.lock().await;
    let mut served = HashMap::new();
    let mut turns = JoinSet::new();
    let look_around = Duration::from_secs(if engine.db().is_shared() { 1 } else { 10 });
    let mut quarantine = Quarantine::default();
    let mut orphans = true;
    let mut next_look = Instant::now();
    loop {
        if std::mem::take(&mut orphans) {
            let taken = take_over(engine, &mut turns, &mut quarantine).await;
            orphans = later(engine, taken).await;
            let usual = Instant::now() + look_around;
            next_look = quarantine.until().map_or(usual, |until| usual.min(until));
            engine.lanes.wake_all();
        }
        tokio::select! {
            () = engine.lanes.woken() => {}
            Some(begun) = started.recv() => start(engine, begun, &mut turns),
            Some(ended) = turns.join_next() => note(ended),
            () = tokio::time::sleep_until(next_look) => orphans = true,
        }
        while let Some(ended) = turns.try_join_next() {
            note(ended);
        }
        orphans |= quarantine.may_go_on(engine);
        if engine.is_draining() {
            return drain(engine, &mut started, turns).await;
        }
        let filled = fill(engine, &mut served, &mut turns).await;
        later(engine, filled).await;
    }
}

/// Lets running turns reach a boundary; what had not begun is left to whoever comes next.
async fn drain(
    engine: &Engine,
    started: &mut mpsc::UnboundedReceiver<Start>,
    mut turns: JoinSet<()>,
) -> Result<()> {
    let node = engine.node.clone();
    if let Err(error) = engine.db().write(move |tx| jobs::record_drain(tx, &node)).await {
        tracing::warn!(%error, "turns that do not end in time will count as cut off");
    }
    started.close();
    while let Some(start) = started.recv().await {
        engine.give_back(start).await;
    }
    while turns.join_next().await.is_some() {}
    Ok(())
}

fn note(ended: std::result::Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a turn's task ended abnormally");
    }
}

/// Waits a moment after an error, which is in the database's hands; says whether to try again.
pub(crate) async fn later(engine: &Engine, outcome: Result<()>) -> bool {
    let Err(error) = outcome else { return false };
    tracing::error!(%error, "the database refuses, trying again");
    tokio::time::sleep(Duration::from_secs(1)).await;
    engine.lanes.wake_all();
    true
}

/// Room in a lane where something may be ready.
#[derive(Clone)]
pub(crate) struct Room {
    lane: JobLane,
    free: usize,
    claimer: TurnClaimer,
}

impl Room {
    /// The slot a turn leaves as it ends. None where nothing new is begun.
    pub fn after(engine: &Engine, ended: &TurnClaim) -> Option<Self> {
        let slots = engine.settings().slots_of(ended.lane);
        if engine.is_draining() || engine.lanes.used(ended.lane) > slots {
            return None;
        }
        let claimer = TurnClaimer { last: Some(ended.agent.clone()), ..claimer(engine) };
        Some(Self { lane: ended.lane, free: 1, claimer })
    }

    /// Claims jobs of the lane and opens their turns.
    pub fn claim(&self, tx: &mut polyclaw_store::Tx<'_>) -> polyclaw_store::Result<Vec<Claimed>> {
        let mut claims = Vec::new();
        let mut claimer = self.claimer.clone();
        while claims.len() < self.free
            && let Some(claim) = jobs::claim_next(tx, self.lane, &claimer)?
        {
            turn::open(tx, &claim, claimer.now)?;
            claimer.last = Some(claim.agent.clone());
            let rows = prompt::read_short(tx, &claim)?;
            claims.push((claim, rows));
        }
        Ok(claims)
    }
}

/// Claims what is ready in the lanes that have room, each lane in a transaction of its own.
async fn fill(
    engine: &Engine,
    served: &mut HashMap<JobLane, AgentId>,
    turns: &mut JoinSet<()>,
) -> Result<()> {
    let settings = engine.settings();
    let mut outcome = Ok(());
    for lane in engine.lanes.take_ready() {
        let slots = settings.slots_of(lane);
        let free = engine.lanes.take_all(lane, slots);
        if free.is_empty() {
            continue;
        }
        let claimer = TurnClaimer { last: served.get(&lane).cloned(), ..claimer(engine) };
        let room = Room { lane, free: free.len(), claimer };
        match engine.db().write(move |tx| room.claim(tx)).await {
            Ok(claims) => {
                served.extend(claims.last().map(|(claim, _)| (lane, claim.agent.clone())));
                if claims.len() == free.len() {
                    engine.lanes.mark_full(lane, slots);
                }
                for ((claim, rows), slot) in claims.into_iter().zip(free) {
                    start(engine, Start { running: Running::new(claim, rows), slot }, turns);
                }
            }
            Err(error) => outcome = Err(error.into()),
        }
    }
    outcome
}

pub(crate) fn claimer(engine: &Engine) -> TurnClaimer {
    TurnClaimer {
        node: engine.node.clone(),
        now: engine.now(),
        lease_ms: engine.settings().lease_ms,
        last: None,
    }
}

impl Engine {
    /// Hands a claimed turn to the worker.
    pub(crate) fn begin(&self, start: Start) {
        self.note_running(&start.running);
        if let Err(mpsc::error::SendError(start)) = self.starts.send(start) {
            let engine = self.clone();
            tokio::spawn(async move { engine.give_back(start).await });
        }
    }

    /// From here on it can be stopped, and its lease is renewed.
    fn note_running(&self, running: &Arc<Running>) {
        let mut all = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(running.claim.turn.clone(), Arc::clone(running));
    }

    /// Gives back what this node still drives. Call it when nothing drives it any more: the process is about to end.
    pub async fn hand_back_all(&self) {
        let claims: Vec<TurnClaim> = {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.values().map(|running| running.claim.clone()).collect()
        };
        let hand_back = move |tx: &mut polyclaw_store::Tx<'_>| {
            claims.iter().try_for_each(|claim| jobs::release_claim(tx, claim))
        };
        if let Err(error) = self.db().write(hand_back).await {
            tracing::error!(%error, "turns could not be given back: they are taken over when their lease ends");
        }
    }

    /// A turn that was claimed and will not begin here.
    async fn give_back(&self, Start { running, .. }: Start) {
        let claim = running.claim.clone();
        if let Err(error) = self.db().write(move |tx| jobs::release_claim(tx, &claim)).await {
            tracing::error!(%error, "a turn could not be given back: it is taken over when its lease ends");
        }
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&running.claim.turn);
    }
}

fn start(engine: &Engine, Start { running, slot }: Start, turns: &mut JoinSet<()>) {
    engine.note_running(&running);
    running.take_slot(slot);
    let engine = engine.clone();
    turns.spawn(async move {
        engine.reach(KillPoint::TurnClaimed).await;
        let driven = AssertUnwindSafe(turn::drive(&engine, &running)).catch_unwind().await;
        if driven.is_err() && AssertUnwindSafe(turn::give_up(&engine, &running)).catch_unwind().await.is_err()
        {
            tracing::error!("a turn panicked twice: it is tried again when its lease ends");
        }
        engine.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&running.claim.turn);
        running.fall_silent(&engine.hub);
        let slot = running.leave_slot();
        if let Some((claim, rows)) = running.take_next() {
            let slot = slot.unwrap_or_else(|| engine.lanes.add(claim.lane));
            engine.begin(Start { running: Running::new(claim, rows), slot });
        }
    });
}
