//! The chat's connection to the instance: performs effects and sends events. A broken stream resumes where it broke.

use std::time::Duration;

use polyclaw_api::approvals::{ApprovalDecisionBody, ApprovalList};
use polyclaw_api::messages::{NewSessionMessage, SessionMessageReceipt, WaitQuery};
use polyclaw_api::sessions::StopResult;
use polyclaw_api::teams::{TeamDetail, TeamList};
use polyclaw_api::transcript::{SessionMessageView, TranscriptPage, TranscriptQuery};
use polyclaw_api::turns::TurnView;
use polyclaw_domain::command::parse;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;

use super::state::{ChatEffect, ChatEvent, LinkState};
use super::stream_position::StreamPosition;
use crate::client::{ApiClient, encode_segment, with_query};
use crate::failure::{CommandFailure, FailureExit};
use crate::one_shot;
use crate::stream::FrameStream;

const RECONNECT_RETRY_AFTER: Duration = Duration::from_millis(500);
const TRANSCRIPT_PAGE_SIZE: usize = 500;
/// Seconds that one request waits for an answer.
const ANSWER_POLL_SECONDS: f64 = 20.0;

/// Why reading a stream stopped.
#[derive(PartialEq, Eq)]
enum FrameStreamEnd {
    Broken,
    /// Frames were missed; the server's retained frames are requested from the start.
    Gap,
}

#[derive(Clone)]
pub struct ChatConnection {
    pub client: ApiClient,
    pub session: String,
    pub agent: Option<String>,
    /// ID of this chat process. As part of the idempotency key it prevents duplicate messages.
    pub run: String,
    pub events: UnboundedSender<ChatEvent>,
}

impl ChatConnection {
    fn session_path(&self, rest: &str) -> String {
        format!("/sessions/{}{rest}", encode_segment(&self.session))
    }

    fn send_event(&self, event: ChatEvent) {
        // The receiver is gone once the chat has ended.
        let _ = self.events.send(event);
    }

    /// Follows the session for as long as the chat runs.
    pub async fn follow_session(self) {
        let mut place = StreamPosition::default();
        loop {
            let path = with_query(&self.session_path("/stream"), &place.after_query());
            if let Ok(response) = self.client.open_stream(&path).await {
                self.send_event(ChatEvent::Link(LinkState::Live));
                if self.forward_frames(FrameStream::new(response), &mut place).await == FrameStreamEnd::Gap {
                    continue;
                }
            }
            self.send_event(ChatEvent::Link(LinkState::Lost));
            tokio::time::sleep(RECONNECT_RETRY_AFTER).await;
        }
    }

    async fn forward_frames(&self, mut frames: FrameStream, place: &mut StreamPosition) -> FrameStreamEnd {
        while let Some(frame) = frames.next().await {
            let is_gap = frame.is_gap();
            if place.advance_to(&frame) {
                self.send_event(ChatEvent::Frame(frame));
            }
            if is_gap {
                return FrameStreamEnd::Gap;
            }
        }
        FrameStreamEnd::Broken
    }

    /// Loads the stored session; a session that does not exist yet is empty. Retries while the daemon is unavailable.
    async fn load_conversation(&self) {
        loop {
            match self.fetch_conversation().await {
                Ok(event) => return self.send_event(event),
                Err(failure) if failure.exit == FailureExit::NotFound => {
                    return self.send_event(ChatEvent::Loaded {
                        session: None,
                        messages: Vec::new(),
                        approvals: Vec::new(),
                    });
                }
                Err(failure) if failure.exit == FailureExit::Unavailable => {
                    tokio::time::sleep(RECONNECT_RETRY_AFTER).await;
                }
                Err(failure) => return self.send_event(ChatEvent::NotLoaded(failure_text(&failure))),
            }
        }
    }

    async fn fetch_conversation(&self) -> Result<ChatEvent, CommandFailure> {
        let session = self.client.get_as(&self.session_path("")).await?;
        let mut messages: Vec<SessionMessageView> = Vec::new();
        let mut after = Some(0);
        while let Some(ticket) = after {
            let query = TranscriptQuery { after: Some(ticket), limit: Some(TRANSCRIPT_PAGE_SIZE) };
            let path = with_query(&self.session_path("/transcript"), &query);
            let page: TranscriptPage = self.client.get_as(&path).await?;
            messages.extend(page.messages);
            after = page.next_after;
        }
        let ApprovalList { approvals } = self.client.get_as("/approvals").await?;
        Ok(ChatEvent::Loaded { session: Some(session), messages, approvals })
    }

    /// Returns every team with its members and tasks. Skips teams that end meanwhile.
    async fn fetch_teams(&self) -> Result<Vec<TeamDetail>, CommandFailure> {
        let listed: TeamList = self.client.get_as("/teams").await?;
        let mut teams = Vec::new();
        for team in listed.teams {
            let path = format!("/teams/{}", encode_segment(&team.name));
            match self.client.get_as(&path).await {
                Ok(team) => teams.push(team),
                Err(failure) if failure.exit == FailureExit::NotFound => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(teams)
    }

    /// Performs an effect and reports its result as events.
    pub async fn perform_effect(self, effect: ChatEffect) {
        match effect {
            ChatEffect::Send { key, text } => self.send_message(key, text).await,
            ChatEffect::Command(text) => self.run_command(&text).await,
            ChatEffect::Stop => self.stop_turn().await,
            ChatEffect::Decide { id, decision } => {
                let path = format!("/approvals/{}", encode_segment(&id));
                let body = ApprovalDecisionBody { decision, reason: None, fingerprint: None };
                if let Err(failure) = self.client.post_as::<_, IgnoredAny>(&path, &body).await {
                    self.send_event(ChatEvent::Failed(failure_text(&failure)));
                }
            }
            ChatEffect::Reload => self.load_conversation().await,
            ChatEffect::FetchTeams => match self.fetch_teams().await {
                Ok(teams) => self.send_event(ChatEvent::Teams(teams)),
                Err(failure) => self.send_event(ChatEvent::Failed(failure_text(&failure))),
            },
            ChatEffect::Remember(_) | ChatEffect::Quit => {}
        }
    }

    /// Sends a message until it is accepted or refused, retrying while the daemon is unavailable.
    async fn send_message(&self, key: String, text: String) {
        let agent = match one_shot::parse_agent(self.agent.as_deref()) {
            Ok(agent) => agent,
            Err(failure) => {
                return self.send_event(ChatEvent::Refused { key, reason: failure_text(&failure) });
            }
        };
        let body = NewSessionMessage {
            agent,
            idempotency_key: Some(format!("{}-{key}", self.run)),
            channel: Some("cli".to_owned()),
            ..NewSessionMessage::from_text(text)
        };
        loop {
            match self.client.post_as(&self.session_path("/messages"), &body).await {
                Ok(answer) => {
                    let answer: SessionMessageReceipt = answer;
                    self.send_event(ChatEvent::Posted { key, answer: answer.clone() });
                    return self.show_answer_of_other_session(&answer).await;
                }
                Err(failure)
                    if failure.exit == FailureExit::Unavailable && failure.code != "backlog_full" =>
                {
                    tokio::time::sleep(RECONNECT_RETRY_AFTER).await;
                }
                Err(failure) => {
                    return self.send_event(ChatEvent::Refused { key, reason: failure_text(&failure) });
                }
            }
        }
    }

    /// After `/focus` a message and its answer go to another session. Shows that answer here once it is complete.
    async fn show_answer_of_other_session(&self, receipt: &SessionMessageReceipt) {
        let there = receipt.session_key.as_str();
        if there == self.session {
            return;
        }
        let turn = format!("/turns/{}", encode_segment(receipt.turn_id.as_str()));
        let path = with_query(&turn, &WaitQuery { wait: Some(ANSWER_POLL_SECONDS) });
        loop {
            match self.client.get_as(&path).await {
                Ok(TurnView { reply: None, .. }) => {}
                Ok(TurnView { reply: Some(reply), error, .. }) => {
                    let Some(code) = reply.error_code else {
                        let text = format!("{there}: {}", reply.text);
                        return self.send_event(ChatEvent::CommandAnswered { text, changes: false });
                    };
                    let words = error.and_then(|error| error.message).unwrap_or(code);
                    return self.send_event(ChatEvent::Failed(format!("{there}: {words}")));
                }
                Err(failure) if failure.exit == FailureExit::Unavailable => {
                    tokio::time::sleep(RECONNECT_RETRY_AFTER).await;
                }
                Err(failure) => return self.send_event(ChatEvent::Failed(failure_text(&failure))),
            }
        }
    }

    async fn run_command(&self, text: &str) {
        match one_shot::run_chat_command(&self.client, &self.session, text).await {
            Ok(reply) => {
                // These commands change the session, agent or model, so the stored state must be reloaded.
                let changes =
                    parse(text).is_some_and(|(command, _)| matches!(command.name, "new" | "agent" | "model"));
                self.send_event(ChatEvent::CommandAnswered { text: reply.unwrap_or_default(), changes });
            }
            Err(failure) => self.send_event(ChatEvent::Failed(failure_text(&failure))),
        }
    }

    async fn stop_turn(&self) {
        match self.client.post_as(&self.session_path("/stop"), &json!({})).await {
            Ok(StopResult { turn_id: None, .. }) => {
                self.send_event(ChatEvent::CommandAnswered {
                    text: "Nothing is running.".to_owned(),
                    changes: false,
                });
            }
            Ok(_) => {}
            Err(failure) => self.send_event(ChatEvent::Failed(failure_text(&failure))),
        }
    }
}

fn failure_text(failure: &CommandFailure) -> String {
    match &failure.hint {
        Some(hint) => format!("{} ({hint})", failure.message),
        None => failure.message.clone(),
    }
}
