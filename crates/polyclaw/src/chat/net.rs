//! The chat's side of the wire: effects go out, events come in. A broken stream is opened again where it broke.

use std::time::Duration;

use polyclaw_domain::command::parse;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::model::{Effect, Event, Link};
use super::place::{GAP, Place};
use crate::ask;
use crate::client::{Client, segment};
use crate::failure::{Exit, Failure};
use crate::stream::Frames;

const PAUSE: Duration = Duration::from_millis(500);
const PAGE: usize = 500;
/// How long one request for an answer waits for it.
const ANSWER_WAIT_S: u32 = 20;

/// Why a stream is read no further.
#[derive(PartialEq, Eq)]
enum Over {
    Broken,
    /// Frames were missed: what is kept is asked for from the start.
    Gap,
}

#[derive(Clone)]
pub struct Net {
    pub client: Client,
    pub session: String,
    pub agent: Option<String>,
    /// This run of the chat: with it a message sent again is not sent twice.
    pub run: String,
    pub events: UnboundedSender<Event>,
}

impl Net {
    fn path(&self, rest: &str) -> String {
        format!("/sessions/{}{rest}", segment(&self.session))
    }

    fn tell(&self, event: Event) {
        // Nobody listens once the chat has ended.
        let _ = self.events.send(event);
    }

    /// Follows the conversation for as long as the chat lasts.
    pub async fn follow(self) {
        let mut place = Place::default();
        loop {
            let path = self.path(&format!("/stream{}", place.after()));
            if let Ok(response) = self.client.stream(&path).await {
                self.tell(Event::Link(Link::Live));
                if self.read(Frames::new(response), &mut place).await == Over::Gap {
                    continue;
                }
            }
            self.tell(Event::Link(Link::Lost));
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn read(&self, mut frames: Frames, place: &mut Place) -> Over {
        while let Some(frame) = frames.next().await {
            let is_gap = frame.kind == GAP;
            if place.takes(&frame) {
                self.tell(Event::Frame(frame));
            }
            if is_gap {
                return Over::Gap;
            }
        }
        Over::Broken
    }

    /// The stored conversation. One that nobody has spoken in yet is empty. While the daemon is away it is tried again.
    async fn load(&self) {
        loop {
            match self.stored().await {
                Ok(event) => return self.tell(event),
                Err(failure) if failure.exit == Exit::NotFound => {
                    return self.tell(Event::Loaded {
                        session: json!({}),
                        messages: Vec::new(),
                        approvals: Vec::new(),
                    });
                }
                Err(failure) if failure.exit == Exit::Unavailable => tokio::time::sleep(PAUSE).await,
                Err(failure) => return self.tell(Event::NotLoaded(told(&failure))),
            }
        }
    }

    async fn stored(&self) -> Result<Event, Failure> {
        let session = self.client.get(&self.path("")).await?;
        let mut messages: Vec<Value> = Vec::new();
        let mut after = Some(0);
        while let Some(ticket) = after {
            let page =
                self.client.get(&self.path(&format!("/transcript?after={ticket}&limit={PAGE}"))).await?;
            messages.extend(page["messages"].as_array().cloned().unwrap_or_default());
            after = page["next_after"].as_i64();
        }
        let approvals = self.client.get("/approvals").await?;
        let approvals = approvals["approvals"].as_array().cloned().unwrap_or_default();
        Ok(Event::Loaded { session, messages, approvals })
    }

    /// Every team with its members and tasks. One that ends meanwhile is not shown.
    async fn teams(&self) -> Result<Vec<Value>, Failure> {
        let listed = self.client.get("/teams").await?;
        let mut teams = Vec::new();
        for team in listed["teams"].as_array().into_iter().flatten() {
            let path = format!("/teams/{}", segment(team["name"].as_str().unwrap_or_default()));
            match self.client.get(&path).await {
                Ok(team) => teams.push(team),
                Err(failure) if failure.exit == Exit::NotFound => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(teams)
    }

    /// Does what the chat wants, and tells it what came of it.
    pub async fn perform(self, effect: Effect) {
        match effect {
            Effect::Send { key, text } => self.send(key, text).await,
            Effect::Command(text) => self.command(&text).await,
            Effect::Stop => self.stop().await,
            Effect::Decide { id, decision } => {
                let path = format!("/approvals/{}", segment(&id));
                if let Err(failure) = self.client.post(&path, &json!({ "decision": decision })).await {
                    self.tell(Event::Failed(told(&failure)));
                }
            }
            Effect::Reload => self.load().await,
            Effect::LookAtTeams => match self.teams().await {
                Ok(teams) => self.tell(Event::Teams(teams)),
                Err(failure) => self.tell(Event::Failed(told(&failure))),
            },
            Effect::Remember(_) | Effect::Quit => {}
        }
    }

    /// Sends until it is accepted or refused: while the daemon is away it is tried again.
    async fn send(&self, key: String, text: String) {
        let mut body =
            json!({ "text": text, "channel": "cli", "idempotency_key": format!("{}-{key}", self.run) });
        if let Some(agent) = &self.agent {
            body["agent"] = json!(agent);
        }
        loop {
            match self.client.post(&self.path("/messages"), &body).await {
                Ok(answer) => {
                    self.tell(Event::Posted { key, answer: answer.clone() });
                    return self.answer_elsewhere(&answer).await;
                }
                Err(failure) if failure.exit == Exit::Unavailable && failure.code != "backlog_full" => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(failure) => return self.tell(Event::Refused { key, reason: told(&failure) }),
            }
        }
    }

    /// After `/focus` a message goes to another session, and so does its answer: it is shown here when it is there.
    async fn answer_elsewhere(&self, receipt: &Value) {
        let there = receipt["session_key"].as_str().unwrap_or_default();
        if there.is_empty() || there == self.session {
            return;
        }
        let turn = segment(receipt["turn_id"].as_str().unwrap_or_default());
        loop {
            match self.client.get(&format!("/turns/{turn}?wait={ANSWER_WAIT_S}")).await {
                Ok(turn) if turn["reply"].is_null() => {}
                Ok(turn) if turn["reply"]["error_code"].is_string() => {
                    let words = turn["error"]["message"].as_str().or(turn["reply"]["error_code"].as_str());
                    return self.tell(Event::Failed(format!("{there}: {}", words.unwrap_or_default())));
                }
                Ok(turn) => {
                    let words = turn["reply"]["text"].as_str().unwrap_or_default();
                    return self.tell(Event::Told { text: format!("{there}: {words}"), changes: false });
                }
                Err(failure) if failure.exit == Exit::Unavailable => tokio::time::sleep(PAUSE).await,
                Err(failure) => return self.tell(Event::Failed(told(&failure))),
            }
        }
    }

    async fn command(&self, text: &str) {
        match ask::command(&self.client, &self.session, text).await {
            Ok(said) => {
                // A new conversation, another agent or model: the stored state says what holds now.
                let changes =
                    parse(text).is_some_and(|(command, _)| matches!(command.name, "new" | "agent" | "model"));
                self.tell(Event::Told { text: said.unwrap_or_default(), changes });
            }
            Err(failure) => self.tell(Event::Failed(told(&failure))),
        }
    }

    async fn stop(&self) {
        match self.client.post(&self.path("/stop"), &json!({})).await {
            Ok(answer) if answer["turn_id"].is_null() => {
                self.tell(Event::Told { text: "Nothing is running.".to_owned(), changes: false });
            }
            Ok(_) => {}
            Err(failure) => self.tell(Event::Failed(told(&failure))),
        }
    }
}

fn told(failure: &Failure) -> String {
    match &failure.hint {
        Some(hint) => format!("{} ({hint})", failure.message),
        None => failure.message.clone(),
    }
}
