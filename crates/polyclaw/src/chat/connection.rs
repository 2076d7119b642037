//! The chat's connection to the instance: performs effects and sends events. A broken stream resumes where it broke.

use std::time::Duration;

use polyclaw_domain::command::parse;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::state::{ChatEffect, ChatEvent, LinkState};
use super::stream_position::{REPLAY_GAP_KIND, StreamPosition};
use crate::client::{ApiClient, encode_segment};
use crate::failure::{CommandFailure, FailureExit};
use crate::one_shot;
use crate::stream::FrameStream;

const RECONNECT_RETRY_AFTER: Duration = Duration::from_millis(500);
const TRANSCRIPT_PAGE_SIZE: usize = 500;
/// Seconds that one request waits for an answer.
const ANSWER_POLL_SECONDS: u32 = 20;

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
            let path = self.session_path(&format!("/stream{}", place.after_query()));
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
            let is_gap = frame.kind == REPLAY_GAP_KIND;
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
                        session: json!({}),
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
        let session = self.client.get(&self.session_path("")).await?;
        let mut messages: Vec<Value> = Vec::new();
        let mut after = Some(0);
        while let Some(ticket) = after {
            let page = self
                .client
                .get(&self.session_path(&format!("/transcript?after={ticket}&limit={TRANSCRIPT_PAGE_SIZE}")))
                .await?;
            messages.extend(page["messages"].as_array().cloned().unwrap_or_default());
            after = page["next_after"].as_i64();
        }
        let approvals = self.client.get("/approvals").await?;
        let approvals = approvals["approvals"].as_array().cloned().unwrap_or_default();
        Ok(ChatEvent::Loaded { session, messages, approvals })
    }

    /// Returns every team with its members and tasks. Skips teams that end meanwhile.
    async fn fetch_teams(&self) -> Result<Vec<Value>, CommandFailure> {
        let listed = self.client.get("/teams").await?;
        let mut teams = Vec::new();
        for team in listed["teams"].as_array().into_iter().flatten() {
            let path = format!("/teams/{}", encode_segment(team["name"].as_str().unwrap_or_default()));
            match self.client.get(&path).await {
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
                if let Err(failure) = self.client.post(&path, &json!({ "decision": decision })).await {
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
        let mut body =
            json!({ "text": text, "channel": "cli", "idempotency_key": format!("{}-{key}", self.run) });
        if let Some(agent) = &self.agent {
            body["agent"] = json!(agent);
        }
        loop {
            match self.client.post(&self.session_path("/messages"), &body).await {
                Ok(answer) => {
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
    async fn show_answer_of_other_session(&self, receipt: &Value) {
        let there = receipt["session_key"].as_str().unwrap_or_default();
        if there.is_empty() || there == self.session {
            return;
        }
        let turn = encode_segment(receipt["turn_id"].as_str().unwrap_or_default());
        loop {
            match self.client.get(&format!("/turns/{turn}?wait={ANSWER_POLL_SECONDS}")).await {
                Ok(turn) if turn["reply"].is_null() => {}
                Ok(turn) if turn["reply"]["error_code"].is_string() => {
                    let words = turn["error"]["message"].as_str().or(turn["reply"]["error_code"].as_str());
                    return self
                        .send_event(ChatEvent::Failed(format!("{there}: {}", words.unwrap_or_default())));
                }
                Ok(turn) => {
                    let words = turn["reply"]["text"].as_str().unwrap_or_default();
                    return self.send_event(ChatEvent::CommandAnswered {
                        text: format!("{there}: {words}"),
                        changes: false,
                    });
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
        match self.client.post(&self.session_path("/stop"), &json!({})).await {
            Ok(answer) if answer["turn_id"].is_null() => {
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
