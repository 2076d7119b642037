//! The last transaction of a turn, and the actions after it.

use std::sync::Arc;

use polyclaw_domain::job::{JobLane, JobState};
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_store::Tx;
use polyclaw_store::messages::SessionMessage;

use super::FinalCommit;
use crate::budget;
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::hub::FrameKind;
use crate::span;
use crate::subagents::RunCompletion;
use crate::worker::{ClaimWithRows, LaneCapacity, RunningTurn};

/// Ends the turn and returns the position of its first line. The transaction also frees its lane slot, so it claims the
/// lane's next turn as well.
pub(super) async fn commit_turn(engine: &Engine, running: &RunningTurn, last: FinalCommit) -> Result<i64> {
    running.set_ending(true);
    let mut ended = end_and_claim(engine, &last, LaneCapacity::freed_by(engine, &last.claim)).await;
    if matches!(&ended, Err(Error::Store(error)) if !error.is_transient()) {
        // Claiming the next turn may have failed, which must not prevent this one from ending.
        ended = end_and_claim(engine, &last, None).await;
    }
    running.set_ending(ended.is_ok());
    let (TurnCommitOutcome { first, notices, next, completed_run: closed }, claimed) = ended?;
    budget::publish_budget_notices(engine, &last.claim, notices);
    let is_under_way = claimed.as_ref().is_some_and(|(claim, _)| claim.session == last.claim.session);
    running.set_next_turn(claimed);
    if last.end.state != JobState::Steered {
        engine.hit_kill_point(KillPoint::FinishCommitted).await;
    }
    if let Some(cause) = &last.cause {
        span::record_turn_span(engine, running, cause, &last.end);
    }
    engine.turn_counters.count_turn(last.claim.agent.as_str(), last.end.state, running.age_ms());
    publish_end(engine, &last);
    if let Some(notice) = &last.mirror_frame {
        engine.hub.publish(&last.queue, notice.clone());
    }
    for session in &last.shown_in {
        engine.hub.publish(session, FrameKind::Changed);
    }
    closed.into_iter().for_each(|closed| engine.publish_run_completion(closed));
    if last.in_team.is_some() {
        engine.wake_reconciler();
    }
    if let Some(lane) = next.filter(|_| !is_under_way) {
        engine.lanes.wake(lane);
    }
    Ok(first)
}

/// The result of a turn's last transaction.
pub(super) struct TurnCommitOutcome {
    /// The position of the first line.
    pub first: i64,
    /// Budget notices to publish.
    pub notices: Vec<String>,
    /// The lane in which the session's next turn is ready.
    pub next: Option<JobLane>,
    /// The run that ended with the turn.
    pub completed_run: Option<RunCompletion>,
}

/// The result, and the next turn claimed with it.
type CommitWithNextClaim = (TurnCommitOutcome, Option<ClaimWithRows>);

async fn end_and_claim(
    engine: &Engine,
    last: &FinalCommit,
    room: Option<LaneCapacity>,
) -> Result<CommitWithNextClaim> {
    let stored = last.clone();
    let write = move |tx: &mut Tx<'_>| {
        let ended = super::store::store_final_commit(tx, &stored)?;
        let claims = room.as_ref().map_or(Ok(Vec::new()), |room| room.claim_turns(tx))?;
        Ok((ended, claims.into_iter().next()))
    };
    engine.write_with_retry(write).await
}

/// Publishes the end of a turn whose last commit reported an error, if it was stored after all, for example because a
/// person's stop came first. Otherwise the next holder of the lease continues the turn.
pub(in crate::turn) async fn publish_stored_end(engine: &Engine, running: &Arc<RunningTurn>, lost: &Error) {
    let claim = &running.claim;
    match engine.load_answer(&claim.turn).await {
        Ok(Some(answer)) => {
            engine.hub.publish(
                &claim.session,
                FrameKind::Ended {
                    turn_id: answer.turn,
                    state: answer.state,
                    message_id: answer.message_id,
                    text: Some(answer.text),
                    model: answer.model,
                    usage: answer.usage,
                    error_code: answer.error_code,
                    truncated: answer.truncated,
                },
            );
            engine.lanes.wake_all();
            engine.outbox_wake.notify_one();
        }
        _ => tracing::warn!(error = %lost, "turn lost; it continues where its lease is taken over"),
    }
}

fn publish_end(engine: &Engine, last: &FinalCommit) {
    let reply = last.steps.iter().rev().find(|step| Some(&step.id) == last.end.reply.as_ref());
    engine.hub.publish(
        &last.claim.session,
        FrameKind::Ended {
            turn_id: last.claim.turn.clone(),
            state: last.end.state,
            message_id: last.end.reply.clone(),
            text: reply.map(|step| step.text.clone()),
            model: last.end.model.clone(),
            usage: last.end.usage,
            error_code: last.end.error_code.map(str::to_owned),
            truncated: reply.is_some_and(SessionMessage::is_truncated),
        },
    );
    engine.turn_ended.notify_one();
    if !last.outbox_messages.is_empty() {
        engine.outbox_wake.notify_one();
    }
}
