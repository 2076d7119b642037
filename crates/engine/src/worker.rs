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
use polyclaw_domain::time::Millis;
use polyclaw_store::jobs::{self, Claim, Claimer, Renewal};
use polyclaw_store::{events, ingress, pairings, rounds};
use serde_json::json;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::budget::Spent;
use crate::core::Engine;
use crate::draft::Drafts;
use crate::error::Result;
use crate::hub::FrameKind;
use crate::lanes::{Lanes, Slot};
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
    /// The model call that is under way, or not stored yet.
    spent: Mutex<Option<Spent>>,
    /// Its end is being stored.
    ending: AtomicBool,
    /// The turn that was claimed as this one ended, for its slot.
    next: Mutex<Option<Claimed>>,
    /// The slot it runs in. It has none while it waits for a person.
    slot: Mutex<Option<Slot>>,
    waits: Mutex<Waits>,
    /// What platforms show of its answer already.
    pub drafts: Arc<Drafts>,
    /// It has waited for runs.
    waited: AtomicBool,
    /// How far its answer has come, where somebody may want to know.
    said: Mutex<String>,
}

/// Time spent waiting for a person, which is not the turn's own.
#[derive(Default)]
struct Waits {
    since: Option<Instant>,
    over: Duration,
}

/// A claimed turn, with its rows if they are few.
pub(crate) type Claimed = (Claim, Option<Rows>);

impl Running {
    pub fn new(claim: Claim, rows: Option<Rows>) -> Arc<Self> {
        Arc::new(Self {
            cancelled: AtomicBool::new(claim.stopping),
            claim,
            cancel: Notify::new(),
            began: Instant::now(),
            progress: AtomicU64::new(0),
            rows: Mutex::new(rows),
            spent: Mutex::default(),
            ending: AtomicBool::new(false),
            next: Mutex::default(),
            slot: Mutex::default(),
            waits: Mutex::default(),
            drafts: Arc::default(),
            waited: AtomicBool::new(false),
            said: Mutex::default(),
        })
    }

    /// When it began, by the clock that is now at this.
    pub fn began(&self, now: Millis) -> Millis {
        now.plus(-i64::try_from(self.age_ms()).unwrap_or(0))
    }

    pub fn say_anew(&self) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub fn say_more(&self, text: &str) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
    }

    pub fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn has_waited(&self) -> bool {
        self.waited.load(Ordering::Relaxed)
    }

    pub fn note_waiting(&self) {
        self.waited.store(true, Ordering::Relaxed);
    }

    /// From here on it waits for a person: its slot is free for others, and its time stands still.
    pub fn wait(self: &Arc<Self>, lanes: &Arc<Lanes>) -> Waiting {
        drop(self.slot.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.waits.lock().unwrap_or_else(PoisonError::into_inner).since = Some(Instant::now());
        Waiting { running: Arc::clone(self), lanes: Arc::clone(lanes) }
    }

    /// How long it has worked.
    pub fn worked(&self) -> Duration {
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = waits.over + waits.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.began.elapsed().saturating_sub(waited)
    }

    pub fn take_rows(&self) -> Option<Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Notes a call, or that it is stored.
    pub fn spend(&self, spent: Option<Spent>) {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner) = spent;
    }

    pub fn spent(&self) -> Option<Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_ending(&self, ending: bool) {
        self.ending.store(ending, Ordering::SeqCst);
    }

    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    pub fn leave_to(&self, next: Option<Claimed>) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = next;
    }

    fn take_next(&self) -> Option<Claimed> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).take()
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

/// A turn's wait for a person; over when dropped. Its turn runs already, so it is not made to wait for a slot.
pub(crate) struct Waiting {
    running: Arc<Running>,
    lanes: Arc<Lanes>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let slot = self.lanes.add(self.running.claim.lane);
        *self.running.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(slot);
        let mut waits = self.running.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let since = waits.since.take();
        waits.over += since.map_or(Duration::ZERO, |since| since.elapsed());
    }
}

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
    let mut orphans = true;
    loop {
        if std::mem::take(&mut orphans) {
            let taken = take_over(engine, &mut turns).await;
            orphans = later(engine, taken).await;
            engine.lanes.wake_all();
        }
        tokio::select! {
            () = engine.lanes.woken() => {}
            Some(begun) = started.recv() => start(engine, begun, &mut turns),
            Some(ended) = turns.join_next() => note(ended),
            () = tokio::time::sleep(look_around) => orphans = true,
        }
        while let Some(ended) = turns.try_join_next() {
            note(ended);
        }
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
    lane: Lane,
    free: usize,
    claimer: Claimer,
}

impl Room {
    /// The slot a turn leaves as it ends. None where nothing new is begun.
    pub fn after(engine: &Engine, ended: &Claim) -> Option<Self> {
        let slots = engine.settings().slots_of(ended.lane);
        if engine.is_draining() || engine.lanes.used(ended.lane) > slots {
            return None;
        }
        let claimer = Claimer { last: Some(ended.agent.clone()), ..claimer(engine) };
        Some(Self { lane: ended.lane, free: 1, claimer })
    }

    /// Claims jobs of the lane and opens their turns.
    pub fn claim(&self, tx: &mut polyclaw_store::Tx<'_>) -> polyclaw_store::Result<Vec<Claimed>> {
        let mut claims = Vec::new();
        let mut claimer = self.claimer.clone();
        while claims.len() < self.free
            && let Some(claim) = jobs::claim(tx, self.lane, &claimer)?
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
async fn fill(engine: &Engine, served: &mut HashMap<Lane, AgentId>, turns: &mut JoinSet<()>) -> Result<()> {
    let settings = engine.settings();
    let mut outcome = Ok(());
    for lane in engine.lanes.take_ready() {
        let slots = settings.slots_of(lane);
        let free = engine.lanes.take_all(lane, slots);
        if free.is_empty() {
            continue;
        }
        let claimer = Claimer { last: served.get(&lane).cloned(), ..claimer(engine) };
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

pub(crate) fn claimer(engine: &Engine) -> Claimer {
    Claimer { node: engine.node.clone(), now: engine.now(), lease_ms: engine.settings().lease_ms, last: None }
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

    /// A turn that was claimed and will not begin here.
    async fn give_back(&self, Start { running, .. }: Start) {
        let claim = running.claim.clone();
        if let Err(error) = self.db().write(move |tx| jobs::hand_back(tx, &claim)).await {
            tracing::error!(%error, "a turn could not be given back: it is taken over when its lease ends");
        }
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&running.claim.turn);
    }
}

fn start(engine: &Engine, Start { running, slot }: Start, turns: &mut JoinSet<()>) {
    engine.note_running(&running);
    *running.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(slot);
    let engine = engine.clone();
    turns.spawn(async move {
        engine.reach(KillPoint::TurnClaimed).await;
        let driven = AssertUnwindSafe(turn::drive(&engine, &running)).catch_unwind().await;
        if driven.is_err() && AssertUnwindSafe(turn::give_up(&engine, &running)).catch_unwind().await.is_err()
        {
            tracing::error!("a turn panicked twice: it is tried again when its lease ends");
        }
        engine.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&running.claim.turn);
        let slot = running.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((claim, rows)) = running.take_next() {
            let slot = slot.unwrap_or_else(|| engine.lanes.add(claim.lane));
            engine.begin(Start { running: Running::new(claim, rows), slot });
        }
    });
}

/// Goes on with turns whose node has died: at once for an earlier life of this node, else when the lease ends.
async fn take_over(engine: &Engine, turns: &mut JoinSet<()>) -> Result<()> {
    while take_over_some(engine, turns).await? == jobs::ORPHANS {}
    Ok(())
}

/// As many as one look finds; says how many.
async fn take_over_some(engine: &Engine, turns: &mut JoinSet<()>) -> Result<usize> {
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
    let taken = engine.db().write(write).await?;
    let count = taken.len();
    for claim in taken {
        tracing::info!(turn.id = %claim.turn, session.key = %claim.session, attempt = claim.attempt,
            "going on with a turn its node left behind");
        let slot = engine.lanes.add(claim.lane);
        start(engine, Start { running: Running::new(claim, None), slot }, turns);
    }
    Ok(count)
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
        engine.end_overdue().await?;
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
            Some(("stop", turn)) => engine.stop_here(&TurnId::new(turn)),
            _ if signal.0 == "outbox" => engine.outbox_wake.notify_one(),
            _ => engine.lanes.wake_all(),
        }
    }
    Ok(())
}

/// How long a round can be looked up after it ended: as long as its message can be delivered again.
const ROUNDS_KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// Forgets old platform ids, codes and rounds, and the places of readers that have gone, and puts sessions away whose
/// work is done.
pub(crate) async fn sweep(engine: &Engine) -> Result<()> {
    while !engine.is_draining() {
        tokio::time::sleep(Duration::from_secs(60)).await;
        engine.hub.sweep();
        let now = engine.now();
        let forget = move |tx: &mut polyclaw_store::Tx<'_>| {
            pairings::forget_expired(tx, now)?;
            rounds::forget(tx, now.minus(ROUNDS_KEPT_MS))?;
            ingress::forget_old(tx, now)
        };
        engine.db().write(forget).await?;
        engine.put_away().await?;
    }
    Ok(())
}
