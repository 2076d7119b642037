//! Ending a team. Every member gets a request with its own id; a member that does not answer is decided for at the
//! deadline. With `force`, members are not asked.

use std::collections::HashSet;

use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::session::SessionStatus;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::shutdown::{
    ShutdownAnswer, ShutdownRequest, ShutdownVerdict, answer_at_deadline, shutdown_verdict,
};
use polyclaw_domain::team::{
    LEAD_NAME, MemberState, RUNTIME_NAME, Team, TeamMember, TeamRefusal, TeamStatus,
};
use polyclaw_domain::team_message::TeamMessageKind;
use polyclaw_store::{Tx, sessions, team_messages, teams};
use serde::Serialize;
use serde_json::json;

use super::actor::{TeamActor, TeamCaller};
use super::messages::{
    OutgoingTeamMessage, PreparedTeamMessage, TeamMessageReceipt, lock_recipients, mark_undeliverable,
    store_messages,
};
use super::reconcile::ignore_ended_team;
use crate::command_action::PostCommitEffect;
use crate::core::Engine;
use crate::error::Result;
use crate::session::stop_session_tree;

/// The state of a shutdown.
#[derive(Clone, Debug, Serialize)]
pub struct TeamShutdownStatus {
    pub status: TeamStatus,
    pub members: Vec<MemberShutdownOutcome>,
}

/// A member's answer to the shutdown.
#[derive(Clone, Debug, Serialize)]
pub struct MemberShutdownOutcome {
    pub name: String,
    pub request_id: String,
    pub answer: Option<ShutdownAnswer>,
}

const OPEN_STATUSES: &[TeamStatus] = &[TeamStatus::Active, TeamStatus::ShuttingDown];

impl Engine {
    /// Asks every member to stop; with `force` it stops them without asking. A repeated call returns the current state.
    pub async fn shut_down_team(
        &self,
        actor: &TeamActor,
        team: &str,
        reason: &str,
        force: bool,
    ) -> Result<TeamShutdownStatus> {
        self.check_length(&[reason])?;
        let caller = loop {
            if let Some(ended) = self.find_earlier_shutdown(actor, team).await? {
                return Ok(ended);
            }
            let caller = self.find_team_caller(actor, team).await?;
            caller.require_lead()?;
            let members = self.active_members(&caller.team).await?;
            let has_started = if force {
                self.stop_members(actor, &caller.team, &members).await?
            } else {
                let questions = self.shutdown_requests(actor, &caller, &members, reason);
                self.request_shutdown_of_all(actor, &caller.team, members, questions).await?
            };
            // Repeat until members that joined in between are asked too.
            if has_started {
                break caller;
            }
        };
        self.hit_kill_point(KillPoint::ShutdownRequested).await;
        self.write_team_files(&caller.team).await?;
        self.advance_shutdown(&caller.team).await
    }

    /// Builds each member's request and the message that carries it.
    fn shutdown_requests(
        &self,
        actor: &TeamActor,
        caller: &TeamCaller,
        members: &[TeamMember],
        reason: &str,
    ) -> Vec<(ShutdownRequest, PreparedTeamMessage)> {
        let question = |member: &TeamMember| {
            let request = self.shutdown_request(actor, &member.name);
            let outgoing = OutgoingTeamMessage {
                kind: TeamMessageKind::ShutdownRequest,
                to: Some(member.name.clone()),
                content: format!(
                    "The team is shutting down. {reason}\nFinish your current work, then answer with SendMessage, \
                     type shutdown_response, request_id {}, approve true or false, and a reason if false.",
                    request.id
                ),
                summary: Some("the team is shutting down".to_owned()),
                request_id: Some(request.id.clone()),
                approve: None,
                reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
            };
            (request, self.prepare_message(self.message_to(actor, caller, &outgoing, &member.name)))
        };
        members.iter().map(question).collect()
    }

    /// Builds a member's request. A repeated call gives the same id.
    fn shutdown_request(&self, actor: &TeamActor, member: &str) -> ShutdownRequest {
        let deadline = self.now().plus(i64::from(self.settings().teams.shutdown_seconds) * 1000);
        let id = format!("{}-{member}-stop", actor.call_id());
        ShutdownRequest { id, member: member.to_owned(), deadline, answer: None }
    }

    /// Returns the state of the team that an earlier execution of this call ended. Otherwise, if no open team has the
    /// name, that of the last team of this name, provided that the caller could have ended it.
    async fn find_earlier_shutdown(
        &self,
        actor: &TeamActor,
        name: &str,
    ) -> Result<Option<TeamShutdownStatus>> {
        let led_by = match actor {
            TeamActor::Session { key, .. } => Some(key.clone()),
            TeamActor::OnBehalfOf { name, .. } if name != LEAD_NAME => return Ok(None),
            TeamActor::Operator { .. } | TeamActor::OnBehalfOf { .. } => None,
        };
        let (name, call) = (name.to_owned(), actor.call_id().to_owned());
        let read = move |tx: &mut Tx<'_>| {
            let could_end = |team: &Team| led_by.as_ref().is_none_or(|lead| *lead == team.lead);
            let past = match teams::find_by_shutdown_call(tx, &call)? {
                Some(team) => Some(team).filter(|team| team.status == TeamStatus::Shutdown),
                None if teams::find_open_by_name(tx, &name)?.is_some() => None,
                None => teams::list_ended_by_name(tx, &name)?.into_iter().find(could_end),
            };
            let Some(team) = past else { return Ok(None) };
            let members = member_outcomes(&teams::list_shutdown_requests(tx, &team.id)?);
            Ok(Some(TeamShutdownStatus { status: TeamStatus::Shutdown, members }))
        };
        Ok(self.db().read(read).await?)
    }

    /// Sets the team to shutting down and asks every member, in one transaction. If that happened before, nothing
    /// changes. Returns `false` if the members have changed or the call is bound to another team.
    async fn request_shutdown_of_all(
        &self,
        actor: &TeamActor,
        team: &Team,
        members: Vec<TeamMember>,
        questions: Vec<(ShutdownRequest, PreparedTeamMessage)>,
    ) -> Result<bool> {
        let (requests, posts): (Vec<_>, Vec<_>) = questions.into_iter().unzip();
        let (wanted, settings, now) = (team.clone(), self.settings(), self.now());
        let actor = actor.clone();
        let write = move |tx: &mut Tx<'_>| {
            lock_recipients(tx, &wanted, &posts)?;
            let found = teams::lock_team(tx, &wanted.id)?;
            if !bind_call_to_team(tx, &actor, &wanted)? {
                return Ok(None);
            }
            if found.is_none_or(|team| team.status != TeamStatus::Active) {
                return Ok(Some(None));
            }
            if !is_full_member_list(tx, &wanted, &members)? {
                return Ok(None);
            }
            teams::set_status(tx, &wanted.id, (OPEN_STATUSES, TeamStatus::ShuttingDown), now)?;
            teams::delete_shutdown_requests(tx, &wanted.id)?;
            requests
                .iter()
                .try_for_each(|request| teams::insert_shutdown_request(tx, &wanted.id, request, now))?;
            store_messages(tx, &wanted, &posts, &settings, now).map(Some).map(Some)
        };
        let Some(asked) = self.write_with_retry(write).await? else { return Ok(false) };
        if let Some(ready) = asked {
            ready.into_iter().for_each(|lane| self.lanes.wake(lane));
            self.copy_messages_to_inbox(team).await;
            let data = json!({ "team": team.name, "change": "shutting_down" });
            self.record_team_event(team, data).await;
        }
        Ok(true)
    }

    /// Stops every member and sets the team to shutting down, in one transaction. Returns `false` if the members have
    /// changed. All requests are stored as answered, so after a crash nobody has to be asked.
    async fn stop_members(&self, actor: &TeamActor, team: &Team, members: &[TeamMember]) -> Result<bool> {
        let (engine, wanted, now, members) = (self.clone(), team.clone(), self.now(), members.to_vec());
        let requests: Vec<ShutdownRequest> =
            members.iter().map(|member| self.shutdown_request(actor, &member.name)).collect();
        let actor = actor.clone();
        let write = move |tx: &mut Tx<'_>| {
            // Session rows are locked first, as everywhere.
            members.iter().try_for_each(|member| sessions::lock(tx, &member.session).map(drop))?;
            let mut after = Vec::new();
            for member in &members {
                after.extend(stop_session_tree(tx, &engine, &member.session)?.1);
            }
            let found = teams::lock_team(tx, &wanted.id)?;
            let is_meant = bind_call_to_team(tx, &actor, &wanted)?;
            if is_meant && found.is_none_or(|team| team.status == TeamStatus::Shutdown) {
                return Ok((true, after));
            }
            if !is_meant || !is_full_member_list(tx, &wanted, &members)? {
                return Ok((false, after));
            }
            teams::set_status(tx, &wanted.id, (OPEN_STATUSES, TeamStatus::ShuttingDown), now)?;
            // Answers of members that have left are kept.
            let mut answered = teams::list_shutdown_requests(tx, &wanted.id)?;
            answered.retain(|request| request.answer.as_ref().is_some_and(ShutdownAnswer::allows_shutdown));
            answered.retain(|request| members.iter().all(|member| member.name != request.member));
            teams::delete_shutdown_requests(tx, &wanted.id)?;
            let stopped = requests
                .iter()
                .map(|one| ShutdownRequest { answer: Some(ShutdownAnswer::Stopped), ..one.clone() });
            for request in answered.into_iter().chain(stopped) {
                teams::insert_shutdown_request(tx, &wanted.id, &request, now)?;
                request
                    .answer
                    .iter()
                    .try_for_each(|how| teams::record_shutdown_answer(tx, &request.id, how).map(drop))?;
            }
            for member in &members {
                teams::set_member_state(tx, &wanted.id, &member.name, MemberState::Closed, now)?;
                sessions::set_status(tx, &member.session, SessionStatus::Archived)?;
            }
            Ok((true, after))
        };
        let (has_started, after) = self.write_with_retry(write).await?;
        self.apply_effects(after);
        Ok(has_started)
    }

    async fn active_members(&self, team: &Team) -> Result<Vec<TeamMember>> {
        let id = team.id.clone();
        let mut members = self.db().read(move |tx| teams::list_members(tx, &id)).await?;
        members.retain(|member| member.state == MemberState::Active);
        Ok(members)
    }

    /// Asks one member to stop and returns the request id. An open request is reused; a new one gets the given id, if
    /// any.
    pub(super) async fn request_member_shutdown(
        &self,
        actor: &TeamActor,
        team: &Team,
        (name, given): (&str, Option<&str>),
    ) -> Result<String> {
        let mut request = self.shutdown_request(actor, name);
        if let Some(given) = given {
            given.clone_into(&mut request.id);
        }
        let (team, now) = (team.id.clone(), self.now());
        let write = move |tx: &mut Tx<'_>| {
            teams::lock_team(tx, &team)?;
            let asked = teams::list_shutdown_requests(tx, &team)?
                .into_iter()
                .find(|one| one.member == request.member);
            match asked {
                Some(asked) => Ok(asked.id),
                None => teams::insert_shutdown_request(tx, &team, &request, now).map(|()| request.id.clone()),
            }
        };
        self.write_with_retry(write).await
    }

    /// Stores a member's answer once and notifies the lead.
    pub(super) async fn answer_shutdown(
        &self,
        actor: &TeamActor,
        caller: &TeamCaller,
        outgoing: OutgoingTeamMessage,
    ) -> Result<TeamMessageReceipt> {
        let Some(member) = &caller.member else {
            return Err(TeamRefusal::NotAMember(LEAD_NAME.to_owned()).into());
        };
        let id = outgoing.request_id.clone().ok_or(TeamRefusal::Message("request_id is missing"))?;
        let approve = outgoing.approve.ok_or(TeamRefusal::Message("approve is missing"))?;
        let asked = self.load_shutdown_requests(&caller.team).await?.into_iter().find(|one| one.id == id);
        if asked.is_none_or(|one| one.member != member.name) {
            return Err(TeamRefusal::UnknownRequest(id).into());
        }
        let reason = outgoing.reason.clone().unwrap_or_else(|| outgoing.content.clone());
        let answer = if approve { ShutdownAnswer::Approved } else { ShutdownAnswer::Refused { reason } };
        let message = self.message_to(actor, caller, &outgoing, LEAD_NAME);
        let receipt = TeamMessageReceipt {
            message_ids: vec![message.id.clone()],
            recipients: vec![LEAD_NAME.to_owned()],
            lost: Vec::new(),
            request_id: Some(id.clone()),
        };
        let after = self
            .store_shutdown_answer(&caller.team, member, (&id, answer), Some(self.prepare_message(message)))
            .await?;
        self.hit_kill_point(KillPoint::ShutdownAnswered).await;
        self.advance_shutdown(&caller.team).await?;
        // Last, because it ends the turn that sent this answer.
        self.apply_effects(after);
        Ok(receipt)
    }

    async fn load_shutdown_requests(&self, team: &Team) -> Result<Vec<ShutdownRequest>> {
        let id = team.id.clone();
        Ok(self.db().read(move |tx| teams::list_shutdown_requests(tx, &id)).await?)
    }

    /// Stores an answer and its notice to the lead. A member that agrees is closed and stopped in the same transaction,
    /// because a closed member could not answer again.
    async fn store_shutdown_answer(
        &self,
        team: &Team,
        member: &TeamMember,
        (request, answer): (&str, ShutdownAnswer),
        notice: Option<PreparedTeamMessage>,
    ) -> Result<Vec<PostCommitEffect>> {
        let engine = self.clone();
        let copies = notice.iter().map(|post| post.message.clone()).collect();
        let (wanted, name, session) = (team.clone(), member.name.clone(), member.session.clone());
        let (request, settings, now) = (request.to_owned(), self.settings(), self.now());
        let write = move |tx: &mut Tx<'_>| {
            let mut after = Vec::new();
            // The session's row is locked first, as everywhere.
            sessions::lock(tx, &session)?;
            // The name may belong to another session by now, which was not asked.
            let is_same =
                teams::get_member(tx, &wanted.id, &name)?.is_some_and(|member| member.session == session);
            if is_same && teams::record_shutdown_answer(tx, &request, &answer)? && answer.allows_shutdown() {
                after = stop_session_tree(tx, &engine, &session)?.1;
                teams::set_member_state(tx, &wanted.id, &name, MemberState::Closed, now)?;
                sessions::set_status(tx, &session, SessionStatus::Archived)?;
            }
            if notice.is_some() {
                team_messages::mark_request_read(tx, &wanted.id, (&name, &request), now)?;
            }
            Ok((store_messages(tx, &wanted, notice.as_slice(), &settings, now)?, after))
        };
        let (ready, after) = self.write_with_retry(write).await?;
        self.wake_recipients(team, ready, copies).await;
        Ok(after)
    }

    /// Checks the state of a shutdown and completes it if it is decided.
    pub(super) async fn advance_shutdown(&self, team: &Team) -> Result<TeamShutdownStatus> {
        self.answer_for_silent_members(team).await?;
        let id = team.id.clone();
        let read = move |tx: &mut Tx<'_>| Ok((teams::get(tx, &id)?, teams::list_shutdown_requests(tx, &id)?));
        let (found, requests) = self.db().read(read).await?;
        let status = match (found.map_or(team.status, |team| team.status), shutdown_verdict(&requests)) {
            (TeamStatus::Active, _) => {
                self.clear_shutdown_answers(team).await.map(|()| TeamStatus::Active)?
            }
            // The task that ended the team may not have moved its folder yet.
            (TeamStatus::Shutdown, _) => self.clear_folder(team).await.map(|_| TeamStatus::Shutdown)?,
            (TeamStatus::ShuttingDown, ShutdownVerdict::Waiting) => TeamStatus::ShuttingDown,
            (TeamStatus::ShuttingDown, ShutdownVerdict::Ends) => {
                self.end_team(team, &requests).await.map(|()| TeamStatus::Shutdown)?
            }
            (TeamStatus::ShuttingDown, ShutdownVerdict::Rejected { member, reason }) => {
                self.cancel_shutdown(team, &member, &reason).await.map(|()| TeamStatus::Active)?
            }
        };
        Ok(TeamShutdownStatus { status, members: member_outcomes(&requests) })
    }

    async fn answer_for_silent_members(&self, team: &Team) -> Result<()> {
        let id = team.id.clone();
        let read = move |tx: &mut Tx<'_>| {
            // A member whose children are working is working.
            let with_runs = teams::list_members_with_runs(tx, &id)?.into_iter().map(|member| member.name);
            Ok(teams::list_members_at_work(tx, &id)?.into_iter().chain(with_runs).collect::<Vec<_>>())
        };
        let at_work = self.db().read(read).await?;
        for request in self.load_shutdown_requests(team).await? {
            let is_working = at_work.contains(&request.member);
            let Some(answer) = answer_at_deadline(&request, is_working, self.now()) else { continue };
            let (id, name) = (team.id.clone(), request.member.clone());
            if let Some(member) = self.db().read(move |tx| teams::get_member(tx, &id, &name)).await? {
                let after = self.store_shutdown_answer(team, &member, (&request.id, answer), None).await?;
                self.apply_effects(after);
            }
        }
        Ok(())
    }

    /// Cancels a shutdown that a member rejected, and tells the lead why.
    async fn cancel_shutdown(&self, team: &Team, member: &str, reason: &str) -> Result<()> {
        let agreed = |request: &ShutdownRequest| match request.answer {
            Some(ShutdownAnswer::Approved | ShutdownAnswer::Idle | ShutdownAnswer::Stopped) => {
                Some(request.member.clone())
            }
            _ => None,
        };
        let closed: Vec<String> =
            self.load_shutdown_requests(team).await?.iter().filter_map(agreed).collect();
        let mut text = format!("The shutdown is cancelled: {member} objected. {reason}");
        if !closed.is_empty() {
            text.push_str(&format!(
                "\nClosed, because they had already agreed: {}. TeammateSpawn starts a member again under its name.",
                closed.join(", ")
            ));
        }
        let post = self.prepare_message(self.new_team_message(
            team,
            RUNTIME_NAME,
            LEAD_NAME,
            TeamMessageKind::Task,
            text,
        ));
        let (wanted, settings, now) = (team.clone(), self.settings(), self.now());
        let write = move |tx: &mut Tx<'_>| {
            lock_recipients(tx, &wanted, std::slice::from_ref(&post))?;
            let was = (&[TeamStatus::ShuttingDown][..], TeamStatus::Active);
            if !teams::set_status(tx, &wanted.id, was, now)? {
                return Ok(Vec::new());
            }
            teams::delete_shutdown_requests(tx, &wanted.id)?;
            store_messages(tx, &wanted, std::slice::from_ref(&post), &settings, now)
        };
        let ready = self.write_with_retry(write).await?;
        ready.into_iter().for_each(|lane| self.lanes.wake(lane));
        self.copy_messages_to_inbox(team).await;
        let data = json!({ "team": team.name, "change": "kept", "member": member, "closed": closed });
        self.record_team_event(team, data).await;
        self.write_team_files(team).await
    }

    /// Removes answered requests of members that were asked to leave a team that continues.
    async fn clear_shutdown_answers(&self, team: &Team) -> Result<()> {
        let id = team.id.clone();
        let write = move |tx: &mut Tx<'_>| match teams::lock_team(tx, &id)? {
            Some(Team { status: TeamStatus::Active, .. }) => teams::delete_answered_requests(tx, &id),
            // The whole team is being shut down by now, so the answers are kept.
            _ => Ok(()),
        };
        self.write_with_retry(write).await?;
        self.write_team_files(team).await
    }

    /// Ends the team: frees its tasks and its name, and moves its files to the trash.
    async fn end_team(&self, team: &Team, requests: &[ShutdownRequest]) -> Result<()> {
        self.free_unfinished_tasks(team).await.or_else(ignore_ended_team)?;
        let texts: Vec<String> = requests.iter().map(outcome_line).collect();
        let text = format!("The team {} has shut down. {}", team.name, texts.join("; "));
        let post = self.prepare_message(self.new_team_message(
            team,
            RUNTIME_NAME,
            LEAD_NAME,
            TeamMessageKind::Task,
            text,
        ));
        let (wanted, settings, now) = (team.clone(), self.settings(), self.now());
        let write = move |tx: &mut Tx<'_>| {
            lock_recipients(tx, &wanted, std::slice::from_ref(&post))?;
            if !teams::set_status(tx, &wanted.id, (OPEN_STATUSES, TeamStatus::Shutdown), now)? {
                return Ok(None);
            }
            let left = team_messages::mark_undeliverable(tx, &wanted.id)?;
            mark_undeliverable(tx, &wanted, &left, now)?;
            store_messages(tx, &wanted, std::slice::from_ref(&post), &settings, now).map(Some)
        };
        let Some(ready) = self.write_with_retry(write).await? else {
            return self.clear_folder(team).await.map(drop);
        };
        self.hit_kill_point(KillPoint::ShutdownEnded).await;
        ready.into_iter().for_each(|lane| self.lanes.wake(lane));
        let data = json!({ "team": team.name, "change": "ended" });
        self.record_team_event(team, data).await;
        self.copy_messages_to_inbox(team).await;
        self.ports.ledgers.close_for_good(&team.id);
        self.move_to_trash(team).await
    }

    /// Returns unfinished tasks to pending, with the reason.
    async fn free_unfinished_tasks(&self, team: &Team) -> Result<()> {
        let id = team.id.clone();
        let members = self.db().read(move |tx| teams::list_members(tx, &id)).await?;
        let (id, now) = (team.id.clone(), self.now());
        let write = move |tx: &mut Tx<'_>| {
            members.iter().try_for_each(|member| {
                polyclaw_store::tasks::release_all(
                    tx,
                    &id,
                    &member.name,
                    "the team was shut down before the task was done",
                    now,
                )
                .map(drop)
            })
        };
        Ok(self.open_ledger(team)?.write(write).await?)
    }
}

/// Records that a call ends this team. Returns `false` if an earlier execution was bound to another team. Only turns
/// repeat calls.
fn bind_call_to_team(tx: &mut Tx<'_>, actor: &TeamActor, team: &Team) -> polyclaw_store::Result<bool> {
    match actor {
        TeamActor::Session { call, .. } => teams::record_shutdown_call(tx, call, &team.id),
        TeamActor::Operator { .. } | TeamActor::OnBehalfOf { .. } => Ok(true),
    }
}

/// Whether these are all active members, with their current sessions.
fn is_full_member_list(tx: &mut Tx<'_>, team: &Team, members: &[TeamMember]) -> polyclaw_store::Result<bool> {
    let lives = |members: &[TeamMember]| -> HashSet<SessionKey> {
        let there = members.iter().filter(|member| member.state == MemberState::Active);
        there.map(|member| member.session.clone()).collect()
    };
    Ok(lives(&teams::list_members(tx, &team.id)?) == lives(members))
}

fn member_outcomes(requests: &[ShutdownRequest]) -> Vec<MemberShutdownOutcome> {
    let outcome = |request: &ShutdownRequest| MemberShutdownOutcome {
        name: request.member.clone(),
        request_id: request.id.clone(),
        answer: request.answer.clone(),
    };
    requests.iter().map(outcome).collect()
}

fn outcome_line(request: &ShutdownRequest) -> String {
    let how = match &request.answer {
        Some(ShutdownAnswer::Approved) => "agreed",
        Some(ShutdownAnswer::Idle) => "was idle",
        Some(ShutdownAnswer::Stopped) => "was stopped",
        Some(ShutdownAnswer::Refused { .. }) => "objected",
        None => "did not answer",
    };
    format!("{} {how}", request.member)
}
