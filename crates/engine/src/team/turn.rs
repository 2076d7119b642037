//! What a turn in a team is shown besides its conversation: team messages and the team's state. The transaction that
//! ends the turn marks the messages as read and stores them as a line of the conversation.

use std::collections::HashSet;

use polyclaw_domain::authority::Authority;
use polyclaw_domain::id::{MessageId, TeamId, TeamMessageId, TurnId};
use polyclaw_domain::job::{JobLane, JobState};
use polyclaw_domain::message::MessageRole;
use polyclaw_domain::run;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::state::TeamStateReader;
use polyclaw_domain::team::{LEAD_NAME, MemberState, Team, TeamRole, TeamStatus};
use polyclaw_domain::team_message::{self, TeamMessage, TeamMessageKind};
use polyclaw_domain::time::Millis;
use polyclaw_store::jobs::{TurnClaim, TurnJobEnd};
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::{Tx, jobs, sessions, team_messages, teams};
use serde_json::json;

use super::messages::mark_undeliverable;
use super::plan::changes_tools;
use super::prompt_context::fit_messages;
use super::reconcile::ignore_ended_team;
use super::wake::{ROUND_LIMIT_REASON, wake_session, wake_session_for};
use crate::core::Engine;
use crate::error::Result;
use crate::ingress::NewIds;
use crate::prompt::TurnContext;
use crate::settings::EngineSettings;
use crate::turn::{TurnAbort, TurnResult, check_claim};

/// Maximum number of messages in one prompt. The rest waits for the next turn.
const MAX_MAIL_MESSAGES: usize = 50;

/// The teams in which a session receives messages, and its name in each.
type TeamMailboxes = Vec<(Team, String)>;

fn mailboxes_of(tx: &mut Tx<'_>, claim: &TurnClaim) -> polyclaw_store::Result<TeamMailboxes> {
    let mut names: TeamMailboxes = Vec::new();
    for team in teams::list_led_by(tx, &claim.session)? {
        names.push((team, LEAD_NAME.to_owned()));
    }
    if let Some(member) =
        teams::find_member_by_session(tx, &claim.session)?.filter(|one| one.state != MemberState::Closed)
        && let Some(team) = teams::get(tx, &member.team)?
    {
        names.push((team, member.name));
    }
    Ok(names)
}

impl TurnContext {
    /// Loads team messages before each model call, and the team's state before the first.
    pub async fn load_team_context(&mut self, engine: &Engine, claim: &TurnClaim) -> TurnResult<()> {
        let Some(role) = self.session.team_role else { return Ok(()) };
        let is_laid = std::mem::replace(&mut self.team_prompt.is_loaded, true);
        if !is_laid {
            self.load_team_state(engine, claim, role).await.map_err(TurnAbort::Lost)?;
            self.load_answered_messages(engine, claim).await.map_err(TurnAbort::Lost)?;
        }
        let wanted = claim.clone();
        let due = engine.db().read(move |tx| due_messages(tx, &wanted)).await;
        let (due, authority) = due.map_err(|e| TurnAbort::Lost(e.into()))?;
        self.lower_authority(engine, authority);
        // Without new messages the token budget is not needed.
        if self.team_prompt.contains_all(&due) {
            return Ok(());
        }
        let (owned, room, now) = (claim.clone(), self.mail_token_budget(engine), engine.now());
        if !self.team_prompt.contains_all(&fit_messages(due, &self.team_prompt.answered, room)) {
            let answered = self.team_prompt.answered.clone();
            let write = move |tx: &mut Tx<'_>| mark_due_shown(tx, &owned, (&answered, room), now);
            let (messages, authority) = engine.write_with_retry(write).await.map_err(TurnAbort::Lost)?;
            self.team_prompt.messages = messages;
            self.lower_authority(engine, authority);
            self.refresh_plan_state(engine, claim).await.map_err(TurnAbort::Lost)?;
        }
        Ok(())
    }

    /// An answer to the member's plan may have arrived, which changes the tools of the next step.
    async fn refresh_plan_state(&mut self, engine: &Engine, claim: &TurnClaim) -> Result<()> {
        if !self.team_prompt.messages.iter().any(changes_tools) {
            return Ok(());
        }
        let session = claim.session.clone();
        let member = engine.db().read(move |tx| teams::find_member_by_session(tx, &session)).await?;
        let awaits_plan = member.is_some_and(|member| member.plan.is_some());
        if std::mem::replace(&mut self.awaits_plan, awaits_plan) != awaits_plan {
            self.refresh_tools(engine);
        }
        Ok(())
    }

    /// Loads which messages were in a prompt that an earlier attempt of this turn got answered.
    async fn load_answered_messages(&mut self, engine: &Engine, claim: &TurnClaim) -> Result<()> {
        let Some(step) = self.last_step() else { return Ok(()) };
        let (turn, at) = (claim.turn.clone(), step.created_at);
        let shown = engine.db().read(move |tx| team_messages::list_in_prompt_before(tx, &turn, at)).await?;
        self.team_prompt.answered = shown.into_iter().collect();
        Ok(())
    }

    /// Sets the role that this turn just got, so that its next step has the team's tools.
    pub fn set_team_role(&mut self, engine: &Engine, role: TeamRole) {
        self.session.team_role = Some(role);
        self.scope.team_role = Some(role);
        self.refresh_tools(engine);
    }

    async fn load_team_state(&mut self, engine: &Engine, claim: &TurnClaim, role: TeamRole) -> Result<()> {
        if role == TeamRole::Lead && claim.has_person {
            let (lead, trace, now) = (claim.session.clone(), claim.trace.clone(), engine.now());
            let asked = self
                .waiting_addresses()
                .into_iter()
                .filter(|(_, wanted)| *wanted)
                .map(|(address, _)| address);
            let reply_to: Vec<_> = asked.collect();
            let write = move |tx: &mut Tx<'_>| {
                teams::set_request_origin(tx, &lead, &trace, &reply_to)?;
                resume_held_members(tx, &lead)?;
                teams::retry_teams_led_by(tx, &lead, now).map(drop)
            };
            engine.db().write(write).await?;
            engine.lanes.wake(JobLane::Teammate);
            engine.wake_reconciler();
        }
        let wanted = claim.clone();
        for (team, name) in engine.db().read(move |tx| mailboxes_of(tx, &wanted)).await? {
            if team.status != TeamStatus::Shutdown {
                let reader =
                    if name == LEAD_NAME { TeamStateReader::Lead } else { TeamStateReader::Member(&name) };
                let view = engine.load_team_snapshot(team).await.map(Some).or_else(ignore_ended_team)?;
                self.team_prompt.state.extend(view.map(|view| view.prompt_block(reader)));
            }
        }
        Ok(())
    }
}

/// A person wrote to the lead: resumes members that were held after too many automatic turns.
fn resume_held_members(tx: &mut Tx<'_>, lead: &SessionKey) -> polyclaw_store::Result<()> {
    for team in teams::list_led_by(tx, lead)? {
        for member in teams::list_members(tx, &team.id)? {
            let load = jobs::session_load(tx, &member.session)?;
            if let Some(turn) = &load.queued {
                jobs::resume_held(tx, turn, load.running.is_some())?;
            }
        }
    }
    Ok(())
}

/// Returns the messages this turn already shows and those that arrived since, with the lowest authority of the teams it
/// works for. A member always works for its team; a lead works for a team whose messages it reads.
fn due_messages(tx: &mut Tx<'_>, claim: &TurnClaim) -> polyclaw_store::Result<(Vec<TeamMessage>, Authority)> {
    let (mut due, mut authority) = (Vec::new(), Authority::Owner);
    for (team, name) in mailboxes_of(tx, claim)? {
        let messages = team_messages::list_for_prompt(tx, &team.id, &name, &claim.turn, MAX_MAIL_MESSAGES)?;
        if name != LEAD_NAME || !messages.is_empty() {
            authority = authority.min(team.authority);
        }
        due.extend(messages);
    }
    Ok((due, authority))
}

/// The same authority, from stored rows only: messages not shown yet do not count.
pub(crate) fn authority_of_teams(
    tx: &mut Tx<'_>,
    session: &SessionKey,
    turn: &TurnId,
) -> polyclaw_store::Result<Authority> {
    let own = teams::find_member_by_session(tx, session)?.map(|member| member.team);
    let mut ids: Vec<TeamId> =
        team_messages::list_in_prompt(tx, turn)?.into_iter().map(|message| message.team).chain(own).collect();
    ids.sort();
    ids.dedup();
    let mut authority = Authority::Owner;
    for id in ids {
        authority = teams::get(tx, &id)?.map_or(authority, |team| authority.min(team.authority));
    }
    Ok(authority)
}

/// Marks the due messages as shown in this turn's prompts. The teams' rows are locked first: if a name is given to
/// another session meanwhile, its messages go with it and nothing is due here.
fn mark_due_shown(
    tx: &mut Tx<'_>,
    claim: &TurnClaim,
    (answered, room): (&HashSet<TeamMessageId>, usize),
    now: Millis,
) -> polyclaw_store::Result<(Vec<TeamMessage>, Authority)> {
    sessions::lock(tx, &claim.session)?;
    check_claim(tx, claim)?;
    for (team, _) in mailboxes_of(tx, claim)? {
        teams::lock_team(tx, &team.id)?;
    }
    let (due, authority) = due_messages(tx, claim)?;
    let due = fit_messages(due, answered, room);
    due.iter().try_for_each(|message| team_messages::mark_in_prompt(tx, &message.id, &claim.turn, now))?;
    Ok((due, authority))
}

/// Builds the transcript line that keeps the messages a turn was shown. Notices of the runtime are not kept, because
/// the team's state repeats them.
pub(crate) fn mail_line(
    tx: &mut Tx<'_>,
    turn: &TurnId,
    line: SessionMessage,
) -> polyclaw_store::Result<Option<SessionMessage>> {
    let mut shown = team_messages::list_in_prompt(tx, turn)?;
    shown.retain(|message| !matches!(message.kind, TeamMessageKind::Idle | TeamMessageKind::Task));
    let Some(team) = shown.first().map(|message| message.team.clone()) else { return Ok(None) };
    let team = teams::get(tx, &team)?.map(|team| team.name).unwrap_or_default();
    let mut senders: Vec<&str> = shown.iter().map(|message| message.from.as_str()).collect();
    senders.dedup();
    let elements: Vec<String> = shown.iter().map(team_message::render_element).collect();
    Ok(Some(SessionMessage {
        // Derived, so that a repeated transaction writes the same row.
        id: MessageId::new(format!("{turn}-mail")),
        role: MessageRole::User,
        text: format!("[@team:{team}] messages from {}", senders.join(", ")),
        meta: Some(
            json!({ "internal": true, "kind": run::TEAM_MAIL_KIND, "team": team, "mail": elements.join("\n") }),
        ),
        ..line
    }))
}

/// What follows a turn in a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnFollowUp {
    /// Another turn is queued.
    NextTurn,
    /// It stopped before its work was finished.
    GoesOn,
    Nothing,
}

/// Updates the session's teams in the transaction that ends a turn. Returns the lane in which the next turn is ready,
/// if messages have arrived that no prompt has shown.
pub(crate) fn end_team_turn(
    tx: &mut Tx<'_>,
    (claim, end): (&TurnClaim, &TurnJobEnd),
    after: TurnFollowUp,
    (fresh, settings): (&NewIds, &EngineSettings),
) -> polyclaw_store::Result<Option<JobLane>> {
    let ended_well = end.state == JobState::Done;
    for message in team_messages::finish_by_turn(tx, &claim.turn, ended_well.then_some(fresh.now))? {
        if let Some(team) = teams::get(tx, &message.team)? {
            mark_undeliverable(tx, &team, std::slice::from_ref(&message), fresh.now)?;
        }
    }
    let names = mailboxes_of(tx, claim)?;
    if ended_well {
        names.iter().try_for_each(|(team, name)| teams::clear_failures(tx, &team.id, name))?;
    }
    if after == TurnFollowUp::NextTurn || end.state == JobState::Steered {
        return Ok(None);
    }
    if after == TurnFollowUp::GoesOn
        && let Some((team, _)) = names.iter().find(|(team, _)| team.status == TeamStatus::Active)
    {
        return wake_session_for(tx, team, (&claim.session, ROUND_LIMIT_REASON), fresh, settings);
    }
    for (team, name) in names.iter().filter(|_| ended_well) {
        if mail_needs_turn(tx, team, name)?
            && let Some(lane) = wake_session(tx, team, &claim.session, fresh, settings)?
        {
            return Ok(Some(lane));
        }
    }
    let ended_badly = end.state == JobState::Failed;
    // After a failed turn its messages wait, because showing them again immediately could fail forever. The reconciler
    // retries later.
    for (team, name) in names.iter().filter(|_| ended_badly) {
        if team.status != TeamStatus::Shutdown || mail_needs_turn(tx, team, name)? {
            teams::record_failure(tx, &team.id, name, end.error_code.unwrap_or("unknown"), fresh.now)?;
        }
    }
    teams::record_turn_end(tx, &claim.session, &claim.turn, ended_badly, fresh.now)?;
    Ok(None)
}

/// Whether waiting messages need a turn. Idle notices alone need one only if nobody is working.
pub(super) fn mail_needs_turn(tx: &mut Tx<'_>, team: &Team, name: &str) -> polyclaw_store::Result<bool> {
    let (message_count, idle) = team_messages::count_waiting(tx, &team.id, name)?;
    let may_rest = idle > 0 && team.status == TeamStatus::Active;
    Ok(message_count > 0 || may_rest && teams::list_members_at_work(tx, &team.id)?.is_empty())
}
