//! Transactions that change a session. Each stores the whole change together with its request.

use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::{AgentId, SessionId, TurnId};
use polyclaw_domain::job::{JobLane, JobPriority, JobState};
use polyclaw_domain::provider::TokenUsage;
use polyclaw_domain::run::SubagentRun;
use polyclaw_domain::session::Session;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::{MemberState, TeamMember, TeamStatus};
use polyclaw_domain::time::Millis;
use polyclaw_store::jobs::{NewTurnJob, TurnJobKind};
use polyclaw_store::{Tx, agents, backlog, events, jobs, messages, runs, sessions, teams, todos};
use serde_json::{Value, json};

use super::StopOutcome;
use crate::command_action::PostCommitEffect;
use crate::core::Engine;
use crate::error::{Error, StateConflict};
use crate::hub::FrameKind;
use crate::ingress::NewIds;
use crate::subagents::{complete_if_idle, stop_children, stop_run};

/// Stops a session with all its descendants and the members of teams that it leads.
pub(crate) fn stop_session_tree(
    tx: &mut Tx<'_>,
    engine: &Engine,
    key: &SessionKey,
) -> polyclaw_store::Result<(StopOutcome, Vec<PostCommitEffect>)> {
    let mut after = Vec::new();
    let stopped = match runs::find_running_by_child(tx, key)? {
        Some(run) => stop_run(tx, engine, &run, &mut after)?,
        None => {
            let (stopped, effects) = stop_session_work(tx, key, engine.now())?;
            after.extend(effects);
            stopped
        }
    };
    let mut children = run_labels(stop_children(tx, engine, key, &mut after)?);
    for member in list_led_members(tx, key)? {
        let (own, effects) = stop_session_work(tx, &member.session, engine.now())?;
        after.extend(effects);
        children.extend(own.turn.map(|_| member.name));
        children.extend(run_labels(stop_children(tx, engine, &member.session, &mut after)?));
    }
    // Locked after the session rows, as everywhere.
    teams::cancel_retries(tx, key)?;
    Ok((StopOutcome { children, ..stopped }, after))
}

fn run_labels(runs: Vec<SubagentRun>) -> Vec<String> {
    runs.into_iter().map(|run| run.task.label).collect()
}

fn list_led_members(tx: &mut Tx<'_>, lead: &SessionKey) -> polyclaw_store::Result<Vec<TeamMember>> {
    let mut members = Vec::new();
    for team in teams::list_led_by(tx, lead)?.iter().filter(|team| team.status != TeamStatus::Shutdown) {
        members.extend(teams::list_members(tx, &team.id)?);
    }
    members.retain(|member| member.state == MemberState::Active);
    Ok(members)
}

/// Stops the work of one session. If it works for another session, its queued messages are cancelled too, because the
/// requester no longer wants the work.
pub(crate) fn stop_session_work(
    tx: &mut Tx<'_>,
    key: &SessionKey,
    now: Millis,
) -> polyclaw_store::Result<(StopOutcome, Vec<PostCommitEffect>)> {
    sessions::allocate_positions(tx, key, 0, now)?;
    let interrupted_tasks = backlog::cancel_waiting(tx, key)?;
    let running = jobs::request_stop(tx, key)?;
    let queued = match running {
        _ if runs::find_running_by_child(tx, key)?.is_some() => {
            runs::release_all_announces(tx, key)?;
            jobs::cancel_queued_and_held(tx, key, now)?
        }
        // A queued message of a person is still answered. A turn with only agents' messages is held.
        Some(_) => jobs::hold_agent_only_turn(tx, key).map(|()| None)?,
        None => jobs::cancel_queued(tx, key, now)?,
    };
    if let Some(turn) = queued.as_ref().filter(|_| running.is_none()) {
        // It may have been queued behind a turn: move its messages out from between that turn's lines. Behind a running
        // turn they are moved when that one ends.
        messages::move_to_end(tx, key, turn, now)?;
    }
    tx.notify_nodes(&format!("session {key}"))?;
    let mut after: Vec<PostCommitEffect> = running.clone().map(PostCommitEffect::Stop).into_iter().collect();
    after.extend(
        queued.as_ref().map(|turn| PostCommitEffect::Publish(key.clone(), never_started_frame(turn))),
    );
    if interrupted_tasks > 0 {
        after.push(PostCommitEffect::Publish(key.clone(), FrameKind::Changed));
    }
    Ok((StopOutcome { turn: running.or(queued), interrupted_tasks, children: Vec::new() }, after))
}

/// Stops one turn, or the turn that resumed its task. Returns `None` if the turn is unknown.
pub(crate) fn stop_turn(
    tx: &mut Tx<'_>,
    engine: &Engine,
    turn: &TurnId,
) -> polyclaw_store::Result<Option<Vec<PostCommitEffect>>> {
    let Some(job) = jobs::find_answering(tx, turn)? else { return Ok(None) };
    let (key, now) = (job.session, engine.now());
    if job.state.is_terminal() && job.state != JobState::Steered {
        return Ok(Some(Vec::new()));
    }
    sessions::allocate_positions(tx, &key, 0, now)?;
    let queued = match job.state {
        JobState::Queued => jobs::cancel_queued(tx, &key, now)?,
        _ => None,
    };
    // It may have started meanwhile.
    let Some(queued) = queued else { return Ok(Some(stop_session_tree(tx, engine, &key)?.1)) };
    let mut after = vec![PostCommitEffect::Publish(key.clone(), never_started_frame(&queued))];
    if jobs::session_load(tx, &key)?.running.is_none() {
        messages::move_to_end(tx, &key, &queued, now)?;
        after.extend(complete_if_idle(tx, engine, &key)?);
    }
    tx.notify_nodes(&format!("session {key}"))?;
    Ok(Some(after))
}

pub(crate) fn start_new_conversation(
    tx: &mut Tx<'_>,
    key: &SessionKey,
    id: &SessionId,
    now: Millis,
) -> polyclaw_store::Result<Vec<PostCommitEffect>> {
    sessions::renew_session_id(tx, key, id, now)?;
    todos::clear(tx, key)?;
    backlog::cancel_waiting(tx, key)?;
    jobs::cancel_empty(tx, key, now)?;
    jobs::mark_queued_as_held(tx, key)?;
    let running = jobs::request_stop(tx, key)?;
    tx.notify_nodes(&format!("session {key}"))?;
    events::record(tx, &renewed_event(key, json!({ "session_id": id.as_str() })), now)?;
    let changed = PostCommitEffect::Publish(key.clone(), FrameKind::Changed);
    Ok(running.map(PostCommitEffect::Stop).into_iter().chain([changed]).collect())
}

/// Returns false if there is no such agent.
pub(crate) fn set_agent(
    tx: &mut Tx<'_>,
    session: &Session,
    agent: &AgentId,
    now: Millis,
) -> polyclaw_store::Result<bool> {
    if agents::get(tx, agent)?.is_none() {
        return Ok(false);
    }
    let switched = sessions::set_agent(tx, &session.key, agent, now)?;
    // A queued turn has not started, so it is the next turn.
    jobs::reassign_queued(tx, &session.key, &session.active_agent, agent)?;
    Ok(switched)
}

/// Queues a compaction and returns its lane, or `None` if another turn runs or is queued.
pub(crate) fn queue_compaction(
    tx: &mut Tx<'_>,
    session: &Session,
    fresh: &NewIds,
) -> polyclaw_store::Result<Option<JobLane>> {
    sessions::allocate_positions(tx, &session.key, 0, fresh.now)?;
    let load = jobs::session_load(tx, &session.key)?;
    if load.running.is_some() || load.queued.is_some() {
        return Ok(None);
    }
    let job = NewTurnJob {
        turn: fresh.turn.clone(),
        session: session.key.clone(),
        agent: session.active_agent.clone(),
        kind: TurnJobKind::Compact,
        lane: session.lane,
        priority: JobPriority::Background,
        held: false,
        inputs: 0,
        is_steering: false,
        hop: 0,
        trace: fresh.trace.clone(),
        queued_at: fresh.now,
    };
    jobs::insert(tx, &job)?;
    Ok(Some(session.lane))
}

pub(crate) fn busy_error() -> Error {
    StateConflict::TurnRunning.into()
}

pub(crate) fn renewed_event(key: &SessionKey, data: Value) -> NewEvent {
    let session = Some(key.clone());
    NewEvent { kind: EventKind::SessionRenewed, session, turn: None, agent: None, trace: None, data }
}

/// The end frame of a turn that was stopped before it started.
fn never_started_frame(turn: &TurnId) -> FrameKind {
    FrameKind::Ended {
        turn_id: turn.clone(),
        state: JobState::Cancelled,
        message_id: None,
        text: None,
        model: None,
        usage: TokenUsage::default(),
        error_code: Some("stopped".to_owned()),
        truncated: false,
    }
}
