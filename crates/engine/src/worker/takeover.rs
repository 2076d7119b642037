//! Takes over turns of dead processes. A turn that died often without storing a step may be what kills the process:
//! such suspects are started one at a time, so that the next death identifies one and the others get their answers.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::time::Duration;

use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::TurnId;
use polyclaw_store::Tx;
use polyclaw_store::events;
use polyclaw_store::jobs::{self, OrphanSearch, TurnClaim, TurnClaimer};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{RunningTurn, TurnStart, build_claimer, shared_node_name, spawn_turn};
use crate::core::Engine;
use crate::error::Result;

/// A suspect that runs for this long without killing the process no longer blocks the others.
const PROBATION_PERIOD: Duration = Duration::from_secs(10);

/// The suspect on probation, and whether others wait for it.
#[derive(Default)]
pub(super) struct SuspectQuarantine {
    current: Option<(TurnId, Instant)>,
    is_waited_for: bool,
}

impl SuspectQuarantine {
    /// Whether the next suspect waits and may be started.
    pub fn can_start_next(&self, engine: &Engine) -> bool {
        self.is_waited_for && self.is_free(engine)
    }

    /// Returns when the suspect on probation stops blocking the others.
    pub fn probation_end(&self) -> Option<Instant> {
        self.current.as_ref().filter(|_| self.is_waited_for).map(|(_, since)| *since + PROBATION_PERIOD)
    }

    fn is_free(&self, engine: &Engine) -> bool {
        let Some((turn, since)) = &self.current else { return true };
        let running = engine.running.lock().unwrap_or_else(PoisonError::into_inner);
        since.elapsed() >= PROBATION_PERIOD || !running.contains_key(turn)
    }
}

/// The result of one takeover pass.
struct TakeoverOutcome {
    claims: Vec<TurnClaim>,
    /// Number of orphans found, including those another node took.
    seen: usize,
    suspect: Option<TurnId>,
    is_waited_for: bool,
}

/// Resumes turns whose node has died: those of an earlier process of this node immediately, others when their lease
/// ends.
pub(super) async fn take_over_orphans(
    engine: &Engine,
    turns: &mut JoinSet<()>,
    quarantine: &mut SuspectQuarantine,
) -> Result<()> {
    while take_over_batch(engine, turns, quarantine).await? == jobs::ORPHAN_BATCH_SIZE {}
    Ok(())
}

/// Takes over one batch and returns how many orphans were found.
async fn take_over_batch(
    engine: &Engine,
    turns: &mut JoinSet<()>,
    quarantine: &mut SuspectQuarantine,
) -> Result<usize> {
    let claimer = build_claimer(engine);
    let search = OrphanSearch {
        node: claimer.node.clone(),
        node_name: shared_node_name(engine),
        now: claimer.now,
        suspect_after: engine.settings().attempts,
    };
    let driven: HashSet<TurnId> =
        engine.running.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
    let may_start_suspect = quarantine.is_free(engine);
    let write = move |tx: &mut Tx<'_>| {
        jobs::record_deaths(tx, &search)?;
        let orphans = jobs::list_orphans(tx, &search)?;
        let mut taken = TakeoverOutcome { claims: Vec::new(), seen: 0, suspect: None, is_waited_for: false };
        for (turn, _) in orphans.into_iter().filter(|(turn, _)| !driven.contains(turn)) {
            taken.claims.extend(take_over_turn(tx, &turn, &claimer, &search)?);
            taken.seen += 1;
        }
        for turn in jobs::list_suspects(tx, &search)?.into_iter().filter(|turn| !driven.contains(turn)) {
            if taken.suspect.is_some() || !may_start_suspect {
                taken.is_waited_for = true;
                break;
            }
            if let Some(claim) = take_over_turn(tx, &turn, &claimer, &search)? {
                taken.suspect = Some(turn);
                taken.claims.push(claim);
            }
        }
        Ok(taken)
    };
    let taken = engine.db().write(write).await?;
    quarantine.is_waited_for = taken.is_waited_for;
    if let Some(suspect) = taken.suspect {
        tracing::warn!(turn.id = %suspect, "turn was cut off repeatedly; starting it alone");
        quarantine.current = Some((suspect, Instant::now()));
    }
    for claim in taken.claims {
        tracing::info!(turn.id = %claim.turn, session.key = %claim.session, attempt = claim.attempt,
            "resuming orphaned turn");
        let slot = engine.lanes.add_slot(claim.lane);
        spawn_turn(engine, TurnStart { running: RunningTurn::new(claim, None), slot }, turns);
    }
    Ok(taken.seen)
}

fn take_over_turn(
    tx: &mut Tx<'_>,
    turn: &TurnId,
    claimer: &TurnClaimer,
    search: &OrphanSearch,
) -> polyclaw_store::Result<Option<TurnClaim>> {
    let claim = jobs::take_over_orphan(tx, turn, claimer, search.node_name.as_deref())?;
    if let Some(claim) = &claim {
        events::record(tx, &takeover_event(claim), claimer.now)?;
    }
    Ok(claim)
}

fn takeover_event(claim: &TurnClaim) -> NewEvent {
    NewEvent {
        kind: EventKind::TurnTakenOver,
        session: Some(claim.session.clone()),
        turn: Some(claim.turn.clone()),
        agent: Some(claim.agent.clone()),
        trace: Some(claim.trace.clone()),
        data: json!({ "attempt": claim.attempt }),
    }
}
