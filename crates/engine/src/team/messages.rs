//! Team messages: each is stored in one transaction with the turn that its recipient needs to read it.

use std::sync::Arc;

use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::TeamMessageId;
use polyclaw_domain::job::JobLane;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::{LEAD_NAME, MemberState, Team, TeamMember, TeamRefusal};
use polyclaw_domain::team_message::{self, TeamMessage, TeamMessageKind, TeamMessageState};
use polyclaw_domain::time::Millis;
use polyclaw_store::{Tx, events, sessions, team_messages, teams};
use serde::Serialize;
use serde_json::json;

use super::actor::{TeamActor, TeamCaller};
use super::create::has_lost_lead;
use super::team_event;
use super::wake::wake_session;
use crate::core::Engine;
use crate::error::Result;
use crate::hub::FrameKind;
use crate::ingress::NewIds;
use crate::settings::EngineSettings;

/// A message that a caller wants to send.
#[derive(Clone, Debug)]
pub struct OutgoingTeamMessage {
    pub kind: TeamMessageKind,
    /// A member name or session key; `None` for everyone.
    pub to: Option<String>,
    pub content: String,
    pub summary: Option<String>,
    pub request_id: Option<String>,
    pub approve: Option<bool>,
    pub reason: Option<String>,
}

/// The result for the sender. The state of a message can be queried by its id.
#[derive(Clone, Debug, Serialize)]
pub struct TeamMessageReceipt {
    pub message_ids: Vec<TeamMessageId>,
    pub recipients: Vec<String>,
    pub request_id: Option<String>,
    /// Recipients whose sessions are gone. The message waits for their replacements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

/// A message to send, with the ids of the turn that its recipient would need.
#[derive(Clone)]
pub(super) struct PreparedTeamMessage {
    pub message: TeamMessage,
    pub fresh: NewIds,
    /// The message waits until something else wakes the recipient.
    pub is_quiet: bool,
}

impl Engine {
    pub(super) fn new_team_message(
        &self,
        team: &Team,
        from: &str,
        to: &str,
        kind: TeamMessageKind,
        content: String,
    ) -> TeamMessage {
        let mut content = content;
        self.redactor().redact_in_place(&mut content);
        TeamMessage {
            id: TeamMessageId::new(self.next_id()),
            team: team.id.clone(),
            from: from.to_owned(),
            to: to.to_owned(),
            kind,
            summary: team_message::summarize_message(None, &content),
            content,
            request_id: None,
            approve: None,
            reason: None,
            state: TeamMessageState::Queued,
            turn: None,
            created_at: self.now(),
            read_at: None,
        }
    }

    pub(super) fn prepare_message(&self, message: TeamMessage) -> PreparedTeamMessage {
        PreparedTeamMessage { message, fresh: NewIds::new(self, None), is_quiet: false }
    }

    /// Sends a message of a member, the lead or a person. Answers to requests are processed too.
    pub async fn send_team_message(
        &self,
        actor: &TeamActor,
        team: &str,
        outgoing: OutgoingTeamMessage,
    ) -> Result<TeamMessageReceipt> {
        let caller = self.find_team_caller(actor, team).await?;
        self.check_team_message(&outgoing)?;
        match outgoing.kind {
            TeamMessageKind::ShutdownResponse => {
                return self.answer_shutdown(actor, &caller, outgoing).await;
            }
            TeamMessageKind::PlanApprovalRequest => return self.submit_plan(actor, &caller, outgoing).await,
            TeamMessageKind::PlanApprovalResponse => {
                return self.answer_plan(actor, &caller, outgoing).await;
            }
            TeamMessageKind::ShutdownRequest => caller.require_lead()?,
            _ => {}
        }
        let recipients = self.resolve_recipients(&caller, &outgoing).await?;
        let mut posts = Vec::with_capacity(recipients.len());
        for name in &recipients {
            let mut message = self.message_to(actor, &caller, &outgoing, name);
            if outgoing.kind == TeamMessageKind::ShutdownRequest {
                message.request_id = Some(
                    self.request_member_shutdown(actor, &caller.team, (name, outgoing.request_id.as_deref()))
                        .await?,
                );
            }
            posts.push(self.prepare_message(message));
        }
        let request_id = posts.first().and_then(|post| post.message.request_id.clone());
        let message_ids = posts.iter().map(|post| post.message.id.clone()).collect();
        let lost = self.lost_recipients(&caller.team, &recipients).await?;
        self.deliver_team_messages(&caller.team, posts).await?;
        Ok(TeamMessageReceipt { message_ids, recipients, lost, request_id })
    }

    async fn lost_recipients(&self, team: &Team, names: &[String]) -> Result<Vec<String>> {
        let (team, names) = (team.clone(), names.to_vec());
        let read = move |tx: &mut Tx<'_>| {
            let mut lost = names.clone();
            let members = teams::list_members(tx, &team.id)?;
            let is_lead_lost = has_lost_lead(tx, &team)?;
            lost.retain(|name| match name.as_str() {
                LEAD_NAME => is_lead_lost,
                _ => members.iter().any(|one| one.name == *name && one.state == MemberState::Lost),
            });
            Ok(lost)
        };
        Ok(self.db().read(read).await?)
    }

    fn check_team_message(&self, outgoing: &OutgoingTeamMessage) -> Result<()> {
        self.check_length(&[&outgoing.content])?;
        let other = [&outgoing.reason, &outgoing.request_id].map(|text| text.as_deref().unwrap_or_default());
        self.check_length(&other)?;
        let refusal = match outgoing {
            OutgoingTeamMessage { kind: TeamMessageKind::Idle | TeamMessageKind::Task, .. } => {
                TeamRefusal::Message("only the runtime sends messages of this type")
            }
            OutgoingTeamMessage { kind: TeamMessageKind::Message, content, .. }
                if content.trim().is_empty() =>
            {
                TeamRefusal::Message("content must not be empty")
            }
            OutgoingTeamMessage { kind: TeamMessageKind::Broadcast, content, .. }
                if content.trim().is_empty() =>
            {
                TeamRefusal::Message("content must not be empty")
            }
            OutgoingTeamMessage { kind: TeamMessageKind::PlanApprovalRequest, content, .. }
                if content.trim().is_empty() =>
            {
                TeamRefusal::Message("content is missing: it must contain the plan")
            }
            OutgoingTeamMessage { kind: TeamMessageKind::Broadcast, to: Some(_), .. } => {
                TeamRefusal::Message("a broadcast goes to all teammates and takes no recipient")
            }
            OutgoingTeamMessage {
                kind: TeamMessageKind::Message | TeamMessageKind::ShutdownRequest,
                to: None,
                ..
            } => TeamRefusal::Message("recipient is missing"),
            _ => return Ok(()),
        };
        Err(refusal.into())
    }

    /// Checks the size limit of one message.
    pub(super) fn check_length(&self, texts: &[&str]) -> Result<()> {
        let most = usize::try_from(self.settings().teams.max_message_bytes).unwrap_or(usize::MAX);
        let length = texts.iter().map(|text| text.len()).sum();
        if length > most { Err(TeamRefusal::TooLong(length, most).into()) } else { Ok(()) }
    }

    /// Resolves the recipients' names. Unknown recipients are rejected.
    async fn resolve_recipients(
        &self,
        caller: &TeamCaller,
        outgoing: &OutgoingTeamMessage,
    ) -> Result<Vec<String>> {
        let (id, lead) = (caller.team.id.clone(), caller.team.lead.clone());
        let members = self.db().read(move |tx| teams::list_members(tx, &id)).await?;
        // Messages to a lost member wait for its replacement.
        let there = members.into_iter().filter(|member| member.state != MemberState::Closed);
        let mut all: Vec<(String, SessionKey)> =
            there.map(|TeamMember { name, session, .. }| (name, session)).collect();
        all.push((LEAD_NAME.to_owned(), lead));
        if outgoing.to.as_ref().is_some_and(|to| *to == caller.worker.name) {
            return Err(TeamRefusal::Message("you cannot send a message to yourself").into());
        }
        all.retain(|(name, _)| *name != caller.worker.name);
        match (&outgoing.to, outgoing.kind) {
            (_, TeamMessageKind::Broadcast) => Ok(all.into_iter().map(|(name, _)| name).collect()),
            (Some(to), _) => {
                let found = all.into_iter().find(|(name, key)| name == to || key.as_str() == to);
                let unknown = || TeamRefusal::NotAMember(quote_safely(to));
                Ok(vec![found.map(|(name, _)| name).ok_or_else(unknown)?])
            }
            (None, _) => Err(TeamRefusal::Message("recipient is missing").into()),
        }
    }

    /// Builds the message to one recipient. The same call to the same name gives the same message id.
    pub(super) fn message_to(
        &self,
        actor: &TeamActor,
        caller: &TeamCaller,
        outgoing: &OutgoingTeamMessage,
        to: &str,
    ) -> TeamMessage {
        let message = self.new_team_message(
            &caller.team,
            &caller.worker.name,
            to,
            outgoing.kind,
            outgoing.content.clone(),
        );
        let redacted = |text: &Option<String>| {
            text.clone().map(|mut text| {
                self.redactor().redact_in_place(&mut text);
                text
            })
        };
        TeamMessage {
            id: TeamMessageId::new(format!("{}-{to}", actor.call_id())),
            summary: team_message::summarize_message(
                redacted(&outgoing.summary).as_deref(),
                &message.content,
            ),
            request_id: outgoing.request_id.clone(),
            approve: outgoing.approve,
            reason: redacted(&outgoing.reason),
            ..message
        }
    }

    /// Stores messages and wakes their recipients.
    pub(super) async fn deliver_team_messages(
        &self,
        team: &Team,
        posts: Vec<PreparedTeamMessage>,
    ) -> Result<()> {
        let (wanted, settings, now) = (team.clone(), self.settings(), self.now());
        let copies: Vec<TeamMessage> = posts.iter().map(|post| post.message.clone()).collect();
        let posts = Arc::new(posts);
        let write = move |tx: &mut Tx<'_>| store_messages(tx, &wanted, &posts, &settings, now);
        let ready = self.write_with_retry(write).await?;
        self.hit_kill_point(KillPoint::TeamMessageStored).await;
        self.wake_recipients(team, ready, copies).await;
        Ok(())
    }

    /// Wakes the recipients of stored messages and publishes the messages to the team's watchers.
    pub(super) async fn wake_recipients(&self, team: &Team, ready: Vec<JobLane>, messages: Vec<TeamMessage>) {
        ready.into_iter().for_each(|lane| self.lanes.wake(lane));
        for message in &messages {
            self.hub.publish(&team.lead, FrameKind::Team { change: message_sent_event(team, message).data });
        }
        self.copy_messages_to_inbox(team).await;
    }
}

/// Stores messages, each once, and returns the lanes in which their recipients are ready.
pub(super) fn store_messages(
    tx: &mut Tx<'_>,
    team: &Team,
    posts: &[PreparedTeamMessage],
    settings: &EngineSettings,
    now: Millis,
) -> polyclaw_store::Result<Vec<JobLane>> {
    let mut ready = Vec::new();
    for post in posts {
        let Some(session) = recipient_session(tx, team, &post.message.to)? else { continue };
        if !team_messages::insert_once(tx, &post.message)? {
            continue;
        }
        events::record(tx, &message_sent_event(team, &post.message), now)?;
        if !post.is_quiet {
            ready.extend(wake_session(tx, team, &session, &post.fresh, settings)?);
        }
    }
    Ok(ready)
}

/// Locks the recipients' session rows. These are locked before the team's row, as everywhere.
pub(super) fn lock_recipients(
    tx: &mut Tx<'_>,
    team: &Team,
    posts: &[PreparedTeamMessage],
) -> polyclaw_store::Result<()> {
    for post in posts {
        if let Some(session) = recipient_session(tx, team, &post.message.to)? {
            sessions::lock(tx, &session)?;
        }
    }
    Ok(())
}

/// Returns the session that currently has a name.
pub(super) fn recipient_session(
    tx: &mut Tx<'_>,
    team: &Team,
    name: &str,
) -> polyclaw_store::Result<Option<SessionKey>> {
    if name == LEAD_NAME {
        return Ok(Some(team.lead.clone()));
    }
    let found = teams::get_member(tx, &team.id, name)?;
    let active = found.filter(|member| member.state != MemberState::Closed);
    Ok(active.map(|member| member.session))
}

/// Records that messages will never be read, so that their senders can see it.
pub(super) fn mark_undeliverable(
    tx: &mut Tx<'_>,
    team: &Team,
    messages: &[TeamMessage],
    now: Millis,
) -> polyclaw_store::Result<()> {
    for message in messages {
        let writer = teams::get_member(tx, &team.id, &message.from)?.map(|member| member.session);
        let event = message_sent_event(team, message);
        let event =
            NewEvent { kind: EventKind::MailUndeliverable, session: writer.or(event.session), ..event };
        events::record(tx, &event, now)?;
    }
    Ok(())
}

/// Builds a message's event. Others see only the summary.
fn message_sent_event(team: &Team, message: &TeamMessage) -> NewEvent {
    let data = json!({
        "team": team.name,
        "message_id": message.id,
        "from": message.from,
        "to": message.to,
        "type": message.kind,
        "summary": message.summary,
    });
    team_event(EventKind::MailSent, team, data)
}
