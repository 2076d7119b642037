//! Team members, by name.

use polyclaw_domain::id::{TeamId, TurnId};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::{MemberState, PlanApproval, Team, TeamMember};
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::messages::{from_json, to_json};
use crate::params;
use crate::team_messages;
use crate::tx::{Row, Tx};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT team_id, name, session_key, agent_id, role, capabilities_json, color, state, joined_at,
             last_active_at, plan_status, plan_request_id FROM members ",
            $rest
        )
    };
}

pub fn add_member(tx: &mut Tx<'_>, member: &TeamMember) -> Result<()> {
    const SQL: &str =
        "INSERT INTO members (team_id, name, session_key, agent_id, role, capabilities_json, color,
          state, joined_at, last_active_at, plan_status, plan_request_id)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    tx.execute(
        SQL,
        params![
            &member.team,
            &member.name,
            &member.session,
            &member.agent,
            &member.role,
            &to_json(&member.capabilities)?,
            &member.color,
            member.state.as_str(),
            member.joined_at,
            member.last_active_at,
            member.plan.as_ref().map(PlanApproval::as_str),
            member.plan.as_ref().and_then(PlanApproval::request_id),
        ],
    )
    .map(drop)
}

/// Gives a name to another session, which gets its messages from now on, including those shown in an unfinished turn of
/// the previous session.
pub fn replace_member(tx: &mut Tx<'_>, member: &TeamMember) -> Result<()> {
    const SQL: &str = "UPDATE members SET session_key = $3, agent_id = $4, role = $5, capabilities_json = $6,
          state = $7, last_active_at = $8, plan_status = $9, plan_request_id = $10
        WHERE team_id = $1 AND name = $2";
    let capabilities = to_json(&member.capabilities)?;
    let params = params![
        &member.team,
        &member.name,
        &member.session,
        &member.agent,
        &member.role,
        &capabilities,
        member.state.as_str(),
        member.last_active_at,
        member.plan.as_ref().map(PlanApproval::as_str),
        member.plan.as_ref().and_then(PlanApproval::request_id),
    ];
    tx.execute(SQL, params)?;
    super::clear_failures(tx, &member.team, &member.name)?;
    // The shutdown request was meant for the previous session.
    super::delete_request_of_member(tx, &member.team, &member.name)?;
    team_messages::requeue_by_recipient(tx, &member.team, &member.name)
}

/// Lists members in the order they joined.
pub fn list_members(tx: &mut Tx<'_>, team: &TeamId) -> Result<Vec<TeamMember>> {
    tx.query(select!("WHERE team_id = $1 ORDER BY joined_at, name"), params![team], member_from_row)
}

pub fn get_member(tx: &mut Tx<'_>, team: &TeamId, name: &str) -> Result<Option<TeamMember>> {
    tx.query_one(select!("WHERE team_id = $1 AND name = $2"), params![team, name], member_from_row)
}

/// Returns the member whose current session this is.
pub fn find_member_by_session(tx: &mut Tx<'_>, session: &SessionKey) -> Result<Option<TeamMember>> {
    tx.query_one(select!("WHERE session_key = $1"), params![session], member_from_row)
}

pub fn set_member_state(
    tx: &mut Tx<'_>,
    team: &TeamId,
    name: &str,
    state: MemberState,
    now: Millis,
) -> Result<()> {
    const SQL: &str = "UPDATE members SET state = $3, last_active_at = $4 WHERE team_id = $1 AND name = $2";
    tx.execute(SQL, params![team, name, state.as_str(), now]).map(drop)
}

/// Sets the plan approval; `None` lets the member start work.
pub fn set_plan_approval(
    tx: &mut Tx<'_>,
    team: &TeamId,
    name: &str,
    plan: Option<&PlanApproval>,
) -> Result<()> {
    const SQL: &str =
        "UPDATE members SET plan_status = $3, plan_request_id = $4 WHERE team_id = $1 AND name = $2";
    let request = plan.and_then(PlanApproval::request_id);
    tx.execute(SQL, params![team, name, plan.map(PlanApproval::as_str), request]).map(drop)
}

/// Records that a turn of a member's session has ended, so that the reconciler notifies the lead.
pub fn record_turn_end(
    tx: &mut Tx<'_>,
    session: &SessionKey,
    turn: &TurnId,
    ended_badly: bool,
    now: Millis,
) -> Result<()> {
    const SQL: &str = "UPDATE members SET last_active_at = $4, ended_turn = $2, last_turn_failed = $3
        WHERE session_key = $1 AND state = 'active'";
    tx.execute(SQL, params![session, turn, ended_badly, now]).map(drop)
}

/// The end of a member's turn.
#[derive(Clone, Debug)]
pub struct MemberTurnEnd {
    pub name: String,
    pub turn: TurnId,
    pub ended_badly: bool,
}

/// Lists turn ends that are not handled yet.
pub fn list_turn_ends(tx: &mut Tx<'_>, team: &TeamId) -> Result<Vec<MemberTurnEnd>> {
    const SQL: &str = "SELECT name, ended_turn, last_turn_failed FROM members
        WHERE team_id = $1 AND state = 'active' AND ended_turn IS NOT NULL ORDER BY last_active_at, name";
    tx.query(SQL, params![team], |row| {
        Ok(MemberTurnEnd { name: row.text(0)?, turn: TurnId::new(row.text(1)?), ended_badly: row.flag(2)? })
    })
}

/// Clears a handled turn end. Returns `false` if another turn has ended meanwhile.
pub fn clear_turn_end(tx: &mut Tx<'_>, team: &TeamId, rested: &MemberTurnEnd) -> Result<bool> {
    const SQL: &str = "UPDATE members SET ended_turn = NULL, last_turn_failed = 0
        WHERE team_id = $1 AND name = $2 AND ended_turn = $3";
    Ok(tx.execute(SQL, params![team, &rested.name, &rested.turn])? > 0)
}

/// Lists active members whose sessions were deleted.
pub fn list_members_without_session(tx: &mut Tx<'_>, team: &TeamId) -> Result<Vec<String>> {
    const SQL: &str = "SELECT m.name FROM members m WHERE m.team_id = $1 AND m.state = 'active'
        AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session_key = m.session_key) ORDER BY m.name";
    tx.query(SQL, params![team], |row| row.text(0))
}

/// Lists members with a running or ready turn. A turn held for a person does not count.
pub fn list_members_at_work(tx: &mut Tx<'_>, team: &TeamId) -> Result<Vec<String>> {
    const SQL: &str = "SELECT DISTINCT m.name FROM members m JOIN jobs j ON j.session_key = m.session_key
        WHERE m.team_id = $1 AND m.state = 'active' AND j.state IN ('queued', 'running') AND j.held <> 2
        ORDER BY m.name";
    tx.query(SQL, params![team], |row| row.text(0))
}

/// Lists members with any turn, even one held for a person, so that they need no wake-up.
pub fn list_members_with_turns(tx: &mut Tx<'_>, team: &TeamId) -> Result<Vec<String>> {
    const SQL: &str = "SELECT DISTINCT m.name FROM members m JOIN jobs j ON j.session_key = m.session_key
        WHERE m.team_id = $1 AND m.state = 'active' AND j.state IN ('queued', 'running') ORDER BY m.name";
    tx.query(SQL, params![team], |row| row.text(0))
}

/// Finds a turn of the lead or a member that is held for a person.
pub fn find_waiting_turn(tx: &mut Tx<'_>, team: &Team) -> Result<Option<TurnId>> {
    const SQL: &str = "SELECT j.turn_id FROM jobs j WHERE j.state = 'queued' AND j.held = 2
        AND (j.session_key = $2 OR j.session_key IN
          (SELECT m.session_key FROM members m WHERE m.team_id = $1 AND m.state = 'active'))
        ORDER BY j.seq LIMIT 1";
    tx.query_one(SQL, params![&team.id, &team.lead], |row| row.text(0).map(TurnId::new))
}

/// Lists members with running sub-agents or delegates.
pub fn list_members_with_runs(tx: &mut Tx<'_>, team: &TeamId) -> Result<Vec<TeamMember>> {
    const SQL: &str = select!(
        "WHERE team_id = $1 AND state = 'active' AND EXISTS
           (SELECT 1 FROM runs r WHERE r.owner_key = members.session_key AND r.status = 'running')
         ORDER BY joined_at, name"
    );
    tx.query(SQL, params![team], member_from_row)
}

fn member_from_row(row: &Row<'_>) -> Result<TeamMember> {
    Ok(TeamMember {
        team: TeamId::new(row.text(0)?),
        name: row.text(1)?,
        session: row.session_key(2)?,
        agent: row.agent_id(3)?,
        role: row.text(4)?,
        capabilities: from_json(&row.text(5)?)?,
        color: row.text(6)?,
        state: row.parse_column(7, MemberState::parse)?,
        plan: plan_from_row(row)?,
        joined_at: row.time(8)?,
        last_active_at: row.time(9)?,
    })
}

fn plan_from_row(row: &Row<'_>) -> Result<Option<PlanApproval>> {
    let request = row.opt_text(11)?;
    row.parse_opt_column(10, |status| PlanApproval::parse(status, request.clone()))
}
