//! The rows of a turn, read in one transaction.

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::authority::Authority;
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{SessionId, TurnId};
use polyclaw_domain::prompt::TranscriptLine;
use polyclaw_domain::run::SubagentRun;
use polyclaw_domain::session::Session;
use polyclaw_domain::team::TeamRole;
use polyclaw_store::agents::AgentSource;
use polyclaw_store::backlog::BacklogEntry;
use polyclaw_store::jobs::{QueuedTurnRow, TurnClaim};
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::sessions::{CompactionPoint, SessionSnapshot};
use polyclaw_store::{Tx, agents, backlog, jobs, messages, runs, sessions, teams};

use super::drop_image_bytes;
use crate::stream_mirror::{DelegationWaiters, StreamMirror};
use crate::team;

/// Rows that a turn reads before it starts. Short histories are read together with the claim.
#[derive(Clone)]
pub(crate) struct TurnRows {
    pub(super) session: Session,
    pub(super) session_id: SessionId,
    pub(super) spec: Option<AgentSpec>,
    /// The agent is defined in the config file.
    pub(super) in_config: bool,
    pub(super) compaction: CompactionPoint,
    pub(super) lines: Vec<TranscriptLine>,
    /// `lines` has only the lines after the cached history.
    pub(super) is_continuation: bool,
    pub(super) stored: Vec<SessionMessage>,
    pub(super) resumed_tasks: Vec<BacklogEntry>,
    pub(super) resumed_messages: Vec<SessionMessage>,
    pub(super) steered: bool,
    /// The run that this session works on.
    pub(super) run: Option<SubagentRun>,
    pub(super) mirror: Option<StreamMirror>,
    /// For a team member: addresses of the people the team works for.
    pub(super) team_people: Vec<ChatAddress>,
    /// For a team member: its plan is not approved yet.
    pub(super) awaits_plan: bool,
    /// The lowest authority granted by the teams it works for.
    pub(super) team_authority: Authority,
    pub(super) waiters: Option<DelegationWaiters>,
}

/// A cached history: its conversation, the position through which it was compacted, and its last position.
pub(super) type KnownHistory = (SessionId, i64, i64);

/// Longest history, in positions, that is read on the writer thread. A longer one would delay other writes.
const MAX_SHORT_HISTORY: i64 = 64;

/// Reads a claimed turn's rows in the claiming transaction if its history is short.
pub(crate) fn read_short_rows(
    tx: &mut Tx<'_>,
    claim: &TurnClaim,
) -> polyclaw_store::Result<Option<TurnRows>> {
    match sessions::get_snapshot(tx, &claim.session)? {
        Some(snapshot) if snapshot.uncompacted_tickets() <= MAX_SHORT_HISTORY => {
            skip_unreadable(read_rows(tx, claim, snapshot, None))
        }
        _ => Ok(None),
    }
}

/// Unreadable rows must not prevent an accept or a claim. The turn reports the error itself.
fn skip_unreadable(rows: polyclaw_store::Result<TurnRows>) -> polyclaw_store::Result<Option<TurnRows>> {
    match rows {
        Err(polyclaw_store::Error::Unreadable(_)) => Ok(None),
        rows => rows.map(Some),
    }
}

/// Reads the rows of a turn that starts with the message that asks for it. Nothing else waits in its session, and its
/// stored messages are passed in.
pub(crate) fn read_first_rows(
    tx: &mut Tx<'_>,
    claim: &TurnClaim,
    snapshot: SessionSnapshot,
    stored: Vec<SessionMessage>,
) -> polyclaw_store::Result<Option<TurnRows>> {
    if snapshot.uncompacted_tickets() > MAX_SHORT_HISTORY {
        return Ok(None);
    }
    // Only a turn without a person's message resumes interrupted tasks as it starts.
    let stored = stored.into_iter().map(drop_image_bytes).collect();
    match claim.has_person {
        true => skip_unreadable(assemble_rows(
            tx,
            claim,
            snapshot,
            (TurnOwnRows { stored, ..TurnOwnRows::default() }, None),
        )),
        false => skip_unreadable(read_rows(tx, claim, snapshot, None)),
    }
}

/// Rows of one turn: its messages, the tasks it resumes, and the turn queued behind it.
#[derive(Default)]
struct TurnOwnRows {
    stored: Vec<SessionMessage>,
    resumed_tasks: Vec<BacklogEntry>,
    resumed_messages: Vec<SessionMessage>,
    queued: Option<QueuedTurnRow>,
}

pub(super) fn read_rows(
    tx: &mut Tx<'_>,
    claim: &TurnClaim,
    snapshot: SessionSnapshot,
    known: Option<&KnownHistory>,
) -> polyclaw_store::Result<TurnRows> {
    let stored = messages::list_by_turn(tx, &claim.turn)?;
    let taken = backlog::list_assigned_to_turn(tx, &claim.turn)?;
    let messages = load_resumed_messages(tx, &taken)?;
    let queued = jobs::find_queued(tx, &claim.session)?;
    assemble_rows(
        tx,
        claim,
        snapshot,
        (TurnOwnRows { stored, resumed_tasks: taken, resumed_messages: messages, queued }, known),
    )
}

/// Loads the messages that started the tasks a turn resumes.
fn load_resumed_messages(
    tx: &mut Tx<'_>,
    taken: &[BacklogEntry],
) -> polyclaw_store::Result<Vec<SessionMessage>> {
    let mut messages = Vec::new();
    for row in taken {
        messages.extend(messages::get(tx, &row.task.token.message_id)?);
    }
    Ok(messages)
}

/// Loads the messages a turn answers: those that started the tasks it resumes, then its own.
pub(crate) fn load_answered_inputs(
    tx: &mut Tx<'_>,
    turn: &TurnId,
) -> polyclaw_store::Result<Vec<SessionMessage>> {
    let taken = backlog::list_assigned_to_turn(tx, turn)?;
    let mut asked = load_resumed_messages(tx, &taken)?;
    asked.extend(messages::list_by_turn(tx, turn)?);
    Ok(asked)
}

fn assemble_rows(
    tx: &mut Tx<'_>,
    claim: &TurnClaim,
    snapshot: SessionSnapshot,
    (TurnOwnRows { stored, resumed_tasks: taken, resumed_messages: messages, queued }, known): (
        TurnOwnRows,
        Option<&KnownHistory>,
    ),
) -> polyclaw_store::Result<TurnRows> {
    let SessionSnapshot { session, compaction, .. } = snapshot;
    let found = agents::get(tx, &claim.agent)?;
    let in_config = found.as_ref().is_some_and(|stored| stored.source == AgentSource::Config);
    let spec = found.map(|stored| stored.spec);
    let session_id = stored.first().map_or_else(|| session.id.clone(), |own| own.session_id.clone());
    let conversation = (&claim.session, &session_id);
    let known = known.filter(|(id, through, _)| (id, *through) == (&session_id, compaction.through));
    let after = known.map_or(compaction.through, |(_, _, last)| *last);
    let behind = queued.as_ref().map(|queued| &queued.turn);
    let lines = messages::load_history(tx, conversation, after, behind)?;
    let steered = queued.is_some_and(|queued| queued.is_steering);
    let run = session.owner.as_ref().map_or(Ok(None), |_| runs::find_running_by_child(tx, &session.key))?;
    let listeners = run.as_ref().map_or(Ok(None), |run| StreamMirror::for_run(tx, run))?;
    let (team_people, awaits_plan) = load_team_people(tx, &session)?;
    let team_authority = match session.team_role {
        Some(_) => team::authority_of_teams(tx, &session.key, &claim.turn)?,
        None => Authority::Owner,
    };
    let waiters = run.as_ref().map_or(Ok(None), |run| DelegationWaiters::for_run(tx, run))?;
    Ok(TurnRows {
        session,
        session_id,
        spec,
        in_config,
        compaction,
        lines,
        is_continuation: known.is_some(),
        stored,
        resumed_tasks: taken,
        resumed_messages: messages,
        steered,
        run,
        mirror: listeners,
        team_people,
        awaits_plan,
        team_authority,
        waiters,
    })
}

/// Loads the addresses that receive a team member's questions, which are those waiting for its lead, and whether its
/// plan waits for approval.
fn load_team_people(tx: &mut Tx<'_>, session: &Session) -> polyclaw_store::Result<(Vec<ChatAddress>, bool)> {
    if session.team_role != Some(TeamRole::Member) {
        return Ok((Vec::new(), false));
    }
    let Some(member) = teams::find_member_by_session(tx, &session.key)? else {
        return Ok((Vec::new(), false));
    };
    let people = teams::get(tx, &member.team)?.map(|team| team.reply_to).unwrap_or_default();
    Ok((people, member.plan.is_some()))
}
