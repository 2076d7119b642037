//! Hearing what happens. The position in the homeserver's stream moves on only over letters that were taken, and is
//! kept with the homeserver, as data of the user: after a crash the last letters come again and are known.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use polyclaw_domain::channel::{InboundSink, IngestOutcome};
use polyclaw_domain::inbound::PeerKind;
use reqwest::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use super::account::Account;
use super::api::{Ask, Trouble};
use super::event::{Event, Room};
use super::timeline::{Joined, News, filter};

/// How often the position is stored while nothing is taken.
const STORE_EVERY: Duration = Duration::from_secs(300);

/// What a homeserver keeps for a device.
#[derive(Serialize, Deserialize)]
struct Position {
    since: String,
}

/// Who is in a room.
#[derive(Deserialize)]
struct Members {
    joined: HashMap<String, Member>,
}

#[derive(Deserialize)]
struct Member {
    display_name: Option<String>,
}

/// Where in the stream an account is, and what it knows of its rooms.
#[derive(Default)]
struct Stream {
    since: Option<String>,
    stored: Option<Instant>,
    rooms: HashMap<String, Room>,
    /// Encrypted rooms that were said to be so.
    sealed: HashSet<String>,
}

impl Account {
    /// Receives until it is dropped.
    pub(super) async fn listen(&self, inbox: &dyn InboundSink) {
        let (mut stream, mut backoff) = (Stream::default(), self.pace.backoff());
        loop {
            match self.advance(&mut stream, inbox).await {
                Ok(()) => {
                    self.link.connected();
                    backoff.reset();
                }
                Err(reason) => {
                    let pause = backoff.next();
                    self.link.apart(&*reason);
                    tracing::warn!(account = self.name, reason, ?pause, "Matrix has no news");
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    /// One answer of the homeserver. Unless all of it was taken, the same is asked for again.
    async fn advance(&self, stream: &mut Stream, inbox: &dyn InboundSink) -> Result<(), String> {
        if stream.since.is_none() {
            stream.since = self.stored().await.map_err(Trouble::reason)?;
        }
        let news = self.news(stream.since.as_deref()).await.map_err(Trouble::reason)?;
        let mut any = false;
        if let Some(since) = stream.since.clone() {
            for (room, joined) in &news.rooms.join {
                any |= self.take_room(stream, room, joined, &since, inbox).await?;
            }
        } else {
            tracing::info!(
                account = self.name,
                "Matrix is read from now on: what was said before is not answered"
            );
        }
        for (room, invited) in &news.rooms.invite {
            self.answer_invite(room, &invited.events()).await.map_err(Trouble::reason)?;
        }
        self.store(stream, &news.next_batch, any).await;
        stream.since = Some(news.next_batch);
        Ok(())
    }

    async fn news(&self, since: Option<&str>) -> Result<News, Trouble> {
        let filter = filter();
        let wait = if since.is_some() { self.pace.patience } else { Duration::ZERO };
        let wait_ms = wait.as_millis().to_string();
        let mut query = vec![("filter", filter.as_str()), ("timeout", wait_ms.as_str())];
        query.extend(since.map(|since| ("since", since)));
        let patience = Some(wait.saturating_add(self.pace.patience));
        self.api.fetch(&Ask { query: &query, patience, ..Ask::get(&["v3", "sync"]) }).await
    }

    /// Whether there was a letter.
    async fn take_room(
        &self,
        stream: &mut Stream,
        id: &str,
        joined: &Joined,
        since: &str,
        inbox: &dyn InboundSink,
    ) -> Result<bool, String> {
        let events = match joined.timeline.whole(self, id, since).await {
            Err(trouble) if trouble.is_final() => {
                tracing::warn!(
                    account = self.name,
                    room = id,
                    reason = trouble.reason(),
                    "a room cannot be read"
                );
                return Ok(false);
            }
            events => events.map_err(Trouble::reason)?,
        };
        if joined.timeline.limited || events.iter().any(|event| event.kind == "m.room.member") {
            stream.rooms.remove(id);
        }
        let mut any = false;
        for event in &events {
            any |= self.take(stream, id, event, inbox).await?;
        }
        Ok(any)
    }

    async fn take(
        &self,
        stream: &mut Stream,
        id: &str,
        event: &Event,
        inbox: &dyn InboundSink,
    ) -> Result<bool, String> {
        if event.kind == "m.room.encrypted" && stream.sealed.insert(id.to_owned()) {
            tracing::warn!(account = self.name, room = id, "an encrypted room writes, and cannot be read");
        }
        if event.kind != "m.room.message" || event.sender == self.settings.user_id {
            return Ok(false);
        }
        let room = self.room(stream, id).await?;
        let Some(mut letter) = room.and_then(|room| event.letter(room)) else { return Ok(false) };
        if !letter.mentioned && letter.context.peer.kind != PeerKind::Dm {
            letter.mentioned = self.is_answered(id, event).await.map_err(Trouble::reason)?;
        }
        match inbox.ingest_message(letter).await {
            IngestOutcome::Done => Ok(true),
            IngestOutcome::Retry { reason } => Err(reason),
        }
    }

    /// Who is in a room is asked when something is said there, and again after somebody came or went. Nothing where
    /// it may not be known: this account is no longer in it.
    async fn room<'a>(&self, stream: &'a mut Stream, id: &str) -> Result<Option<&'a Room>, String> {
        if !stream.rooms.contains_key(id) {
            let path = ["v3", "rooms", id, "joined_members"];
            let Members { joined } = match self.api.fetch(&Ask::get(&path)).await {
                Err(trouble) if trouble.is_final() => return Ok(None),
                members => members.map_err(Trouble::reason)?,
            };
            let room = Room {
                account: self.name.clone(),
                own_id: self.settings.user_id.clone(),
                id: id.to_owned(),
                members: joined.into_iter().map(|(user, member)| (user, member.display_name)).collect(),
            };
            stream.rooms.insert(id.to_owned(), room);
        }
        Ok(stream.rooms.get(id))
    }

    /// Whether it answers a message of this account, or is in a thread that one began.
    async fn is_answered(&self, room: &str, event: &Event) -> Result<bool, Trouble> {
        let Some(answered) = event.answers() else { return Ok(false) };
        let path = ["v3", "rooms", room, "event", answered];
        match self.api.ask(&Ask::get(&path)).await {
            Ok(answered) => Ok(answered["sender"].as_str() == Some(&self.settings.user_id)),
            Err(trouble) if trouble.is_final() => Ok(false),
            Err(trouble) => Err(trouble),
        }
    }

    /// Each device has a position of its own.
    async fn place(&self) -> Result<[String; 5], Trouble> {
        let session = self.api.session().await?;
        let kind = format!("polyclaw.sync.{}", session.device);
        Ok(["v3".into(), "user".into(), session.user, "account_data".into(), kind])
    }

    async fn stored(&self) -> Result<Option<String>, Trouble> {
        let place = self.place().await?;
        match self.api.fetch(&Ask::get(&place.each_ref().map(String::as_str))).await {
            Ok(Position { since }) => Ok(Some(since)),
            Err(Trouble::Refused(refusal)) if refusal.status == Some(StatusCode::NOT_FOUND) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// Whether it could be stored does not matter now: what is taken again after a crash is known by its id.
    async fn store(&self, stream: &mut Stream, position: &str, is_urgent: bool) {
        let is_due = stream.stored.is_none_or(|at| at.elapsed() >= STORE_EVERY);
        if !is_due && !is_urgent {
            return;
        }
        let Ok(place) = self.place().await else { return };
        let body = json!(Position { since: position.to_owned() });
        match self.api.ask(&Ask::put(&place.each_ref().map(String::as_str), &body)).await {
            Ok(_) => stream.stored = Some(Instant::now()),
            Err(trouble) => {
                stream.stored = None;
                tracing::warn!(account = self.name, reason = trouble.reason(), "the position is not stored");
            }
        }
    }
}
