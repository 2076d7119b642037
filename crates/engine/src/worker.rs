//! The loops around turns: claim and drive, renew leases, take over what a dead node left.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use polyclaw_domain::event::{Event, EventKind};
use polyclaw_domain::fault::KillPoint;
use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::job::Lane;
use polyclaw_domain::key::SessionKey;
use polyclaw_store::jobs::{self, Claim, Claimer, Renewal};
use polyclaw_store::{events, ingress};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::core::Engine;
use crate::error::Result;
use crate::hub::FrameKind;
use crate::prompt::{self, Rows};
use crate::turn;

/// A turn this node is driving.
pub(crate) struct Running {
    pub claim: Claim,
    pub cancelled: AtomicBool,
    pub cancel: Notify,
    began: Instant,
    /// Milliseconds from `began` to when it last did something: a token, tool output, a stored step. Not by the
    /// clock on the wall: one that is set would end turns, or never.
    progress: AtomicU64,
    /// What was read with the claim, for the first look.
    rows: Mutex<Option<Rows>>,
}

impl Running {
    fn new(claim: Claim, rows: Option<Rows>) -> Arc<Self> {
        Arc::new(Self {
            claim,
            cancelled: AtomicBool::new(false),
            cancel: Notify::new(),
            began: Instant::now(),
            progress: AtomicU64::new(0),
            rows: Mutex::new(rows),
        })
    }

    pub fn take_rows(&self) -> Option<Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn pulse(&self) {
        self.progress.store(self.age_ms(), Ordering::Relaxed);
    }

    pub fn silent_ms(&self) -> u64 {
        self.age_ms().saturating_sub(self.progress.load(Ordering::Relaxed))
    }

    fn age_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub fn stop(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.cancel.notify_one();
    }
}

/// Which lanes have room, who was served last in each, and where jobs may be left.
#[derive(Default)]
struct Lanes {
    used: HashMap<Lane, usize>,
    last: HashMap<Lane, AgentId>,
    /// Had no room for what may be ready: looked at again when a slot is free.
    full: HashSet<Lane>,
}

/// Never returns an error while turns run: leaving the loop would drop them.
pub(crate) async fn work(engine: &Engine) -> Result<()> {
    let mut lanes = Lanes::default();
    let mut turns: JoinSet<Lane> = JoinSet::new();
    let look_around = Duration::from_secs(if engine.db().is_shared() { 1 } else { 10 });
    let mut orphans = true;
    loop {
        if std::mem::take(&mut orphans) {
            let taken = take_over(engine, &mut lanes, &mut turns).await;
            orphans = later(engine, taken).await;
            engine.wake_all();
        }
        tokio::select! {
            () = engine.jobs_wake.notified() => {}
            Some(ended) = turns.join_next() => lanes.free(engine, ended),
            () = tokio::time::sleep(look_around) => orphans = true,
        }
        while let Some(ended) = turns.try_join_next() {
            lanes.free(engine, ended);
        }
        if engine.is_draining() {
            while turns.join_next().await.is_some() {}
            return Ok(());
        }
        let filled = fill(engine, &mut lanes, &mut turns).await;
        later(engine, filled).await;
    }
}

/// Waits a moment after an error, which is in the database's hands; says whether to try again.
pub(crate) async fn later(engine: &Engine, outcome: Result<()>) -> bool {
    let Err(error) = outcome else { return false };
    tracing::error!(%error, "the database refuses, trying again");
    tokio::time::sleep(Duration::from_secs(1)).await;
    engine.wake_all();
    true
}

impl Lanes {
    fn free(&mut self, engine: &Engine, ended: std::result::Result<Lane, tokio::task::JoinError>) {
        match ended {
            Ok(lane) => {
                *self.used.entry(lane).or_insert(1) -= 1;
                if self.full.remove(&lane) {
                    engine.wake(lane);
                }
            }
            Err(error) => tracing::error!(%error, "a turn's task ended abnormally"),
        }
    }

    /// The free slots of the lanes in which something may be ready.
    fn room(&mut self, engine: &Engine) -> Vec<Room> {
        let settings = engine.settings();
        let mut rooms = Vec::new();
        for lane in engine.take_ready() {
            let slots = settings.slots.get(&lane).copied().unwrap_or(1);
            let free = slots.saturating_sub(self.used.get(&lane).copied().unwrap_or(0));
            if free > 0 {
                rooms.push(Room { lane, free, last: self.last.get(&lane).cloned() });
            } else {
                self.full.insert(lane);
            }
        }
        rooms
    }
}

#[derive(Clone)]
struct Room {
    lane: Lane,
    free: usize,
    last: Option<AgentId>,
}

/// Claims what is ready in the lanes that have room, all in one transaction.
async fn fill(engine: &Engine, lanes: &mut Lanes, turns: &mut JoinSet<Lane>) -> Result<()> {
    let rooms = lanes.room(engine);
    if rooms.is_empty() {
        return Ok(());
    }
    let (claimer, wanted) = (claimer(engine), rooms.clone());
    let write = move |tx: &mut polyclaw_store::Tx<'_>| {
        let mut claims = Vec::new();
        for room in &wanted {
            claim(tx, room, &claimer, &mut claims)?;
        }
        Ok(claims)
    };
    let claims = engine.db().write(write).await?;
    for room in rooms {
        if claims.iter().filter(|(claim, _)| claim.lane == room.lane).count() == room.free {
            lanes.full.insert(room.lane);
        }
    }
    for (claim, rows) in claims {
        lanes.last.insert(claim.lane, claim.agent.clone());
        start(engine, Running::new(claim, rows), lanes, turns);
    }
    Ok(())
}

/// Claims jobs of one lane and opens their turns.
fn claim(
    tx: &mut polyclaw_store::Tx<'_>,
    room: &Room,
    claimer: &Claimer,
    claims: &mut Vec<(Claim, Option<Rows>)>,
) -> polyclaw_store::Result<()> {
    let mut claimer = Claimer { last: room.last.clone(), ..claimer.clone() };
    for _ in 0..room.free {
        let Some(claim) = jobs::claim(tx, room.lane, &claimer)? else { break };
        turn::open(tx, &claim, claimer.now)?;
        claimer.last = Some(claim.agent.clone());
        let rows = prompt::read_short(tx, &claim)?;
        claims.push((claim, rows));
    }
    Ok(())
}

fn claimer(engine: &Engine) -> Claimer {
    Claimer { node: engine.node.clone(), now: engine.now(), lease_ms: engine.settings().lease_ms, last: None }
}

fn start(engine: &Engine, running: Arc<Running>, lanes: &mut Lanes, turns: &mut JoinSet<Lane>) {
    *lanes.used.entry(running.claim.lane).or_default() += 1;
    engine
        .running
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(running.claim.turn.clone(), Arc::clone(&running));
    let engine = engine.clone();
    turns.spawn(async move {
        engine.reach(KillPoint::TurnClaimed).await;
        let driven = AssertUnwindSafe(turn::drive(&engine, &running)).catch_unwind().await;
        if driven.is_err() {
            turn::give_up(&engine, &running).await;
        }
        engine.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&running.claim.turn);
        running.claim.lane
    });
}

/// Goes on with turns whose node has died: at once for an earlier life of this node, else when the lease ends.
async fn take_over(engine: &Engine, lanes: &mut Lanes, turns: &mut JoinSet<Lane>) -> Result<()> {
    let claimer = claimer(engine);
    let family = family(engine);
    let driven: HashSet<TurnId> =
        engine.running.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
    let write = move |tx: &mut polyclaw_store::Tx<'_>| {
        let mut taken = Vec::new();
        let orphans = jobs::orphans(tx, &claimer.node, family.as_deref(), claimer.now)?;
        for (turn, _) in orphans.into_iter().filter(|(turn, _)| !driven.contains(turn)) {
            if let Some(claim) = jobs::take_over(tx, &turn, &claimer, family.as_deref())? {
                events::record(tx, &taken_over(&claim), claimer.now)?;
                taken.push(claim);
            }
        }
        Ok(taken)
    };
    for claim in engine.db().write(write).await? {
        tracing::info!(turn.id = %claim.turn, session.key = %claim.session, attempt = claim.attempt,
            "going on with a turn its node left behind");
        start(engine, Running::new(claim, None), lanes, turns);
    }
    Ok(())
}

/// Which other names are this node's own; `None` where no other node can be.
pub(crate) fn family(engine: &Engine) -> Option<String> {
    engine.db().is_shared().then(|| engine.family.clone())
}

fn taken_over(claim: &Claim) -> Event {
    Event {
        kind: EventKind::TurnTakenOver,
        session: Some(claim.session.clone()),
        turn: Some(claim.turn.clone()),
        agent: Some(claim.agent.clone()),
        trace: Some(claim.trace.clone()),
        data: json!({ "attempt": claim.attempt }),
    }
}

/// Renews the leases of turns that are alive. One that stalls is ended by its own watchdog before its lease is.
pub(crate) async fn keep(engine: &Engine) -> Result<()> {
    loop {
        let settings = engine.settings();
        tokio::time::sleep(Duration::from_millis(settings.lease_ms.unsigned_abs() / 3)).await;
        let running: Vec<_> =
            engine.running.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        match running.is_empty() {
            true if engine.is_draining() => return Ok(()),
            true => continue,
            false => {}
        }
        let claims: Vec<Claim> = running.iter().map(|running| running.claim.clone()).collect();
        let (now, lease_ms) = (engine.now(), settings.lease_ms);
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            let mut stopped = Vec::new();
            for claim in &claims {
                if jobs::renew(tx, claim, now, lease_ms)? == Renewal::Stop {
                    stopped.push(claim.turn.clone());
                }
            }
            Ok(stopped)
        };
        let stopped = engine.db().write(write).await?;
        running
            .iter()
            .filter(|running| stopped.contains(&running.claim.turn))
            .for_each(|running| running.stop());
    }
}

/// Hears other nodes: new jobs, changed sessions.
pub(crate) async fn listen(engine: &Engine) -> Result<()> {
    let Some(mut signals) = engine.db().signals() else { return Ok(()) };
    while let Some(signal) = signals.recv().await {
        match signal.0.split_once(' ') {
            Some(("session", key)) => {
                if let Ok(key) = SessionKey::parse(key) {
                    engine.hub.publish(&key, FrameKind::Changed);
                }
            }
            _ if signal.0 == "outbox" => engine.outbox_wake.notify_one(),
            _ => engine.wake_all(),
        }
    }
    Ok(())
}

/// Forgets old platform ids and the places of readers that have gone.
pub(crate) async fn sweep(engine: &Engine) -> Result<()> {
    while !engine.is_draining() {
        tokio::time::sleep(Duration::from_secs(60)).await;
        engine.hub.sweep();
        let now = engine.now();
        engine.db().write(move |tx| ingress::forget_old(tx, now)).await?;
    }
    Ok(())
}
