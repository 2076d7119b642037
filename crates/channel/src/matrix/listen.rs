//! Receive loop. The sync position advances only past messages that were accepted. It is stored as account data on the
//! homeserver; after a crash the last messages come again and are deduplicated by id.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use polyclaw_domain::channel::{InboundSink, IngestOutcome};
use polyclaw_domain::inbound::PeerKind;
use reqwest::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use super::account::MatrixAccount;
use super::api::{MatrixRequest, MatrixRequestError};
use super::event::{MatrixEvent, MatrixRoom};
use super::timeline::{JoinedRoom, SyncResponse, sync_filter};

/// How often the position is stored while no message arrives.
const POSITION_STORE_INTERVAL: Duration = Duration::from_secs(300);

/// The position as stored on the homeserver for a device.
#[derive(Serialize, Deserialize)]
struct SyncPosition {
    since: String,
}

/// Response of `joined_members`.
#[derive(Deserialize)]
struct JoinedMembers {
    joined: HashMap<String, MatrixMember>,
}

#[derive(Deserialize)]
struct MatrixMember {
    display_name: Option<String>,
}

/// The sync position of an account and its cached rooms.
#[derive(Default)]
struct SyncStream {
    since: Option<String>,
    stored: Option<Instant>,
    rooms: HashMap<String, MatrixRoom>,
    /// Encrypted rooms that were already logged.
    sealed: HashSet<String>,
}

impl MatrixAccount {
    /// Receives until the future is dropped.
    pub(super) async fn receive_events(&self, inbox: &dyn InboundSink) {
        let (mut stream, mut backoff) = (SyncStream::default(), self.retry_timing.backoff());
        loop {
            match self.sync_once(&mut stream, inbox).await {
                Ok(()) => {
                    self.connection.set_connected();
                    backoff.reset();
                }
                Err(reason) => {
                    let pause = backoff.next_delay();
                    self.connection.set_disconnected(&*reason);
                    tracing::warn!(account = self.name, reason, ?pause, "Matrix sync failed; retrying");
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    /// Runs one sync. If a message is not accepted, the position stays and the same sync is repeated.
    async fn sync_once(&self, stream: &mut SyncStream, inbox: &dyn InboundSink) -> Result<(), String> {
        if stream.since.is_none() {
            stream.since = self.load_position().await.map_err(MatrixRequestError::into_reason)?;
        }
        let news = self.fetch_sync(stream.since.as_deref()).await.map_err(MatrixRequestError::into_reason)?;
        let mut any = false;
        if let Some(since) = stream.since.clone() {
            for (room, joined) in &news.rooms.join {
                any |= self.process_room(stream, room, joined, &since, inbox).await?;
            }
        } else {
            tracing::info!(
                account = self.name,
                "no stored Matrix position; starting now and skipping earlier messages"
            );
        }
        for (room, invited) in &news.rooms.invite {
            self.answer_invite(room, &invited.events()).await.map_err(MatrixRequestError::into_reason)?;
        }
        self.store_position(stream, &news.next_batch, any).await;
        stream.since = Some(news.next_batch);
        Ok(())
    }

    async fn fetch_sync(&self, since: Option<&str>) -> Result<SyncResponse, MatrixRequestError> {
        let filter = sync_filter();
        let wait = if since.is_some() { self.retry_timing.request_timeout } else { Duration::ZERO };
        let wait_ms = wait.as_millis().to_string();
        let mut query = vec![("filter", filter.as_str()), ("timeout", wait_ms.as_str())];
        query.extend(since.map(|since| ("since", since)));
        let timeout = Some(wait.saturating_add(self.retry_timing.request_timeout));
        self.api
            .request_as(&MatrixRequest { query: &query, timeout, ..MatrixRequest::get(&["v3", "sync"]) })
            .await
    }

    /// Returns whether the room had a message.
    async fn process_room(
        &self,
        stream: &mut SyncStream,
        id: &str,
        joined: &JoinedRoom,
        since: &str,
        inbox: &dyn InboundSink,
    ) -> Result<bool, String> {
        let events = match joined.timeline.complete_events(self, id, since).await {
            Err(trouble) if trouble.is_permanent() => {
                tracing::warn!(
                    account = self.name,
                    room = id,
                    reason = trouble.into_reason(),
                    "could not read the history of a Matrix room; skipping its events"
                );
                return Ok(false);
            }
            events => events.map_err(MatrixRequestError::into_reason)?,
        };
        if joined.timeline.limited || events.iter().any(|event| event.kind == "m.room.member") {
            stream.rooms.remove(id);
        }
        let mut any = false;
        for event in &events {
            any |= self.process_event(stream, id, event, inbox).await?;
        }
        Ok(any)
    }

    async fn process_event(
        &self,
        stream: &mut SyncStream,
        id: &str,
        event: &MatrixEvent,
        inbox: &dyn InboundSink,
    ) -> Result<bool, String> {
        if event.kind == "m.room.encrypted" && stream.sealed.insert(id.to_owned()) {
            tracing::warn!(
                account = self.name,
                room = id,
                "ignoring messages of an encrypted Matrix room, because they cannot be read"
            );
        }
        if event.kind != "m.room.message" || event.sender == self.settings.user_id {
            return Ok(false);
        }
        let room = self.load_room(stream, id).await?;
        let Some(mut message) = room.and_then(|room| event.to_inbound(room)) else { return Ok(false) };
        if !message.mentioned && message.context.peer.kind != PeerKind::Dm {
            message.mentioned = self.is_answered(id, event).await.map_err(MatrixRequestError::into_reason)?;
        }
        match inbox.ingest_message(message).await {
            IngestOutcome::Done => Ok(true),
            IngestOutcome::Retry { reason } => Err(reason),
        }
    }

    /// Returns the room with its members. They are loaded on the first message and again after a membership change.
    /// `None` if this account is no longer in the room.
    async fn load_room<'a>(
        &self,
        stream: &'a mut SyncStream,
        id: &str,
    ) -> Result<Option<&'a MatrixRoom>, String> {
        if !stream.rooms.contains_key(id) {
            let path = ["v3", "rooms", id, "joined_members"];
            let JoinedMembers { joined } = match self.api.request_as(&MatrixRequest::get(&path)).await {
                Err(trouble) if trouble.is_permanent() => return Ok(None),
                members => members.map_err(MatrixRequestError::into_reason)?,
            };
            let room = MatrixRoom {
                account: self.name.clone(),
                own_id: self.settings.user_id.clone(),
                id: id.to_owned(),
                members: joined.into_iter().map(|(user, member)| (user, member.display_name)).collect(),
            };
            stream.rooms.insert(id.to_owned(), room);
        }
        Ok(stream.rooms.get(id))
    }

    /// Whether the event replies to a message of this account or is in a thread that it started.
    async fn is_answered(&self, room: &str, event: &MatrixEvent) -> Result<bool, MatrixRequestError> {
        let Some(answered) = event.replied_event_id() else { return Ok(false) };
        let path = ["v3", "rooms", room, "event", answered];
        match self.api.request_json(&MatrixRequest::get(&path)).await {
            Ok(answered) => Ok(answered["sender"].as_str() == Some(&self.settings.user_id)),
            Err(trouble) if trouble.is_permanent() => Ok(false),
            Err(trouble) => Err(trouble),
        }
    }

    /// Returns the path of the stored position. Each device has its own.
    async fn position_path(&self) -> Result<[String; 5], MatrixRequestError> {
        let session = self.api.session().await?;
        let kind = format!("polyclaw.sync.{}", session.device);
        Ok(["v3".into(), "user".into(), session.user, "account_data".into(), kind])
    }

    async fn load_position(&self) -> Result<Option<String>, MatrixRequestError> {
        let place = self.position_path().await?;
        match self.api.request_as(&MatrixRequest::get(&place.each_ref().map(String::as_str))).await {
            Ok(SyncPosition { since }) => Ok(Some(since)),
            Err(MatrixRequestError::Refused(refusal)) if refusal.status == Some(StatusCode::NOT_FOUND) => {
                Ok(None)
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Stores the position if it is due. Failing is harmless: messages that come again after a crash are deduplicated
    /// by id.
    async fn store_position(&self, stream: &mut SyncStream, position: &str, is_urgent: bool) {
        let is_due = stream.stored.is_none_or(|at| at.elapsed() >= POSITION_STORE_INTERVAL);
        if !is_due && !is_urgent {
            return;
        }
        let Ok(place) = self.position_path().await else { return };
        let body = json!(SyncPosition { since: position.to_owned() });
        match self.api.request_json(&MatrixRequest::put(&place.each_ref().map(String::as_str), &body)).await {
            Ok(_) => stream.stored = Some(Instant::now()),
            Err(trouble) => {
                stream.stored = None;
                tracing::warn!(
                    account = self.name,
                    reason = trouble.into_reason(),
                    "could not store the Matrix sync position; retrying later"
                );
            }
        }
    }
}
