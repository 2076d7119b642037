//! Waking a session for its team: the one place where a team puts a line into a conversation.

use std::sync::Arc;

use polyclaw_domain::id::AgentId;
use polyclaw_domain::job::JobLane;
use polyclaw_domain::run::{self, TEAM_NEWS_KIND};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::{LEAD_NAME, Team};
use polyclaw_store::{Tx, jobs, sessions, teams};
use serde_json::{Value, json};

use crate::ingress::{self, InternalMessage, NewIds, NodeContext, RelayInfo, RelayKind};
use crate::settings::EngineSettings;

/// What a team says to a session, as it is stored: a line, and what goes with it.
pub(super) struct TeamNotice {
    pub to: SessionKey,
    pub from: AgentId,
    pub text: String,
    pub key: String,
    pub meta: Value,
}

/// Stores a line in a session and has a turn take it up, or joins it to the one that waits.
pub(super) fn inject_team_notice(
    tx: &mut Tx<'_>,
    team: &Team,
    line: TeamNotice,
    fresh: &NewIds,
    settings: &EngineSettings,
) -> polyclaw_store::Result<Option<JobLane>> {
    // Every act of a team is a first hop behind what a person asked of its lead. What keeps members from waking each
    // other for ever is the team's own budget of turns.
    let relayed = RelayInfo {
        from: team_sender_key(team),
        hop: 1,
        trace: team.trace.clone(),
        kind: RelayKind::Announce,
    };
    let mut meta = Some(line.meta);
    let authority = teams::get(tx, &team.id)?.map_or(team.authority, |team| team.authority);
    authority.write_to_meta(&mut meta);
    let how = InternalMessage { meta, ..InternalMessage::from_session(line.from, relayed, line.key) };
    let fresh = NewIds { trace: team.trace.clone(), ..fresh.clone() };
    let settings = EngineSettings { automatic_budget: settings.teams.automatic_turns, ..settings.clone() };
    let here = NodeContext::queue_only(&Arc::new(settings));
    let (verdict, _) = ingress::inject_in_tx(tx, (&line.to, &line.text), how, &fresh, &here)?;
    Ok(verdict.ok().and_then(|(accepted, _)| accepted.ready_lane()))
}

/// A team is not a session, and must not be taken for the one it writes to.
fn team_sender_key(team: &Team) -> SessionKey {
    SessionKey::from_parts(&team.lead_agent, &["team", &team.name])
}

/// Wakes a session that does nothing. One at work sees its mail at its next model call, and one that is about to
/// work with its first.
pub(super) fn wake_session(
    tx: &mut Tx<'_>,
    team: &Team,
    to: &SessionKey,
    fresh: &NewIds,
    settings: &EngineSettings,
) -> polyclaw_store::Result<Option<JobLane>> {
    wake_session_for(tx, team, (to, "news"), fresh, settings)
}

/// Why a member is woken whose turn had as many rounds as a turn may have.
pub(super) const ROUND_LIMIT_REASON: &str =
    "go on: your last turn ended at its limit of rounds, not because of a failure";

/// The same with what it is woken for.
pub(super) fn wake_session_for(
    tx: &mut Tx<'_>,
    team: &Team,
    (to, why): (&SessionKey, &str),
    fresh: &NewIds,
    settings: &EngineSettings,
) -> polyclaw_store::Result<Option<JobLane>> {
    if sessions::allocate_positions(tx, to, 0, fresh.now)?.is_none() {
        return Ok(None);
    }
    let load = jobs::session_load(tx, to)?;
    if load.running.is_some() || load.queued.is_some() {
        return Ok(None);
    }
    let mut meta = json!({ "internal": true, "kind": TEAM_NEWS_KIND, "team": team.name, "requested_by": team.requested_by() });
    if *to == team.lead {
        meta["reply_to"] = json!(team.reply_to);
        if teams::get_failure_streak(tx, &team.id, LEAD_NAME)?.is_some() {
            run::mark_redelivered(&mut meta);
        }
    }
    let line = TeamNotice {
        to: to.clone(),
        from: team.lead_agent.clone(),
        text: format!("[@team:{}] {why}", team.name),
        // One for each turn it wakes.
        key: format!("news:{}", fresh.turn),
        meta,
    };
    inject_team_notice(tx, team, line, fresh, settings)
}
