//! Wakes a session for its team. This is the only place where a team adds a line to a conversation.

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

/// A line that a team adds to a session, with its metadata.
pub(super) struct TeamNotice {
    pub to: SessionKey,
    pub from: AgentId,
    pub text: String,
    pub key: String,
    pub meta: Value,
}

/// Stores a line in a session and queues a turn for it, or joins the queued one.
pub(super) fn inject_team_notice(
    tx: &mut Tx<'_>,
    team: &Team,
    line: TeamNotice,
    fresh: &NewIds,
    settings: &EngineSettings,
) -> polyclaw_store::Result<Option<JobLane>> {
    // Every team action is one hop after a person's request to the lead. Endless mutual wake-ups are prevented by the
    // team's turn budget instead.
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

/// Returns the key of the team as a sender. It differs from the session it writes to.
fn team_sender_key(team: &Team) -> SessionKey {
    SessionKey::from_parts(&team.lead_agent, &["team", &team.name])
}

/// Wakes an idle session. A running turn sees its messages at its next model call, and a queued one at its first.
pub(super) fn wake_session(
    tx: &mut Tx<'_>,
    team: &Team,
    to: &SessionKey,
    fresh: &NewIds,
    settings: &EngineSettings,
) -> polyclaw_store::Result<Option<JobLane>> {
    wake_session_for(tx, team, (to, "news"), fresh, settings)
}

/// Wake reason for a member whose turn reached the round limit.
pub(super) const ROUND_LIMIT_REASON: &str =
    "continue: your last turn ended at its round limit, not because of a failure";

/// Like `wake_session`, with a reason.
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
        // One line for each turn it starts.
        key: format!("news:{}", fresh.turn),
        meta,
    };
    inject_team_notice(tx, team, line, fresh, settings)
}
