//! One gateway connection: identifies or resumes, sends heartbeats and passes on events in order.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use super::event::GatewayFrame;
use crate::socket::PlatformSocket;

mod op {
    pub const DISPATCH: u64 = 0;
    pub const HEARTBEAT: u64 = 1;
    pub const IDENTIFY: u64 = 2;
    pub const RESUME: u64 = 6;
    pub const RECONNECT: u64 = 7;
    pub const INVALID_SESSION: u64 = 9;
    pub const HELLO: u64 = 10;
    pub const HEARTBEAT_ACK: u64 = 11;
}

/// Servers, server messages, direct messages and message content.
const INTENTS: u64 = 1 | 1 << 9 | 1 << 12 | 1 << 15;
/// Maximum unprocessed events. Beyond that the connection is closed, and Discord keeps the rest until the session is
/// resumed.
const MAX_UNPROCESSED_EVENTS: u64 = 1000;
const HELLO_TIMEOUT: Duration = Duration::from_secs(20);

/// The reason why a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DisconnectReason {
    /// The session can be resumed.
    Broken(String),
    /// The session is gone. A new one is needed.
    Forgotten(String),
    /// Retrying does not help until somebody fixes the configuration.
    Refused(&'static str),
}

/// The first frame sent on a connection.
pub(super) enum SessionStart<'a> {
    Identify,
    Resume { session: &'a str },
}

/// Progress of event processing, shared between the connection and the event handler.
#[derive(Default)]
pub(super) struct EventProgress {
    /// Sequence number of the last processed event; 0 if there is none. The session resumes after it.
    pub last_seq: AtomicU64,
    /// Number of events waiting to be processed.
    pub waiting: AtomicU64,
}

pub(super) struct GatewayConnection<'a> {
    socket: PlatformSocket,
    progress: &'a EventProgress,
    heart: Interval,
    /// The last heartbeat was acknowledged.
    is_alive: bool,
}

impl<'a> GatewayConnection<'a> {
    /// Waits for the hello frame and identifies or resumes.
    pub async fn open(
        mut socket: PlatformSocket,
        token: &str,
        opening: SessionStart<'_>,
        progress: &'a EventProgress,
    ) -> Result<Self, DisconnectReason> {
        let greeting = tokio::time::timeout(HELLO_TIMEOUT, next_frame(&mut socket)).await;
        let greeting =
            greeting.map_err(|_| connection_broken("Discord's gateway sent no hello in time"))??;
        let every = greeting.d.get("heartbeat_interval").and_then(Value::as_u64);
        let every = every
            .filter(|_| greeting.op == op::HELLO)
            .ok_or_else(|| connection_broken("the first frame is not a hello"))?;
        let every = Duration::from_millis(every.clamp(10, 300_000));
        let mut heart = interval_at(Instant::now() + every.mul_f64(fastrand::f64()), every);
        heart.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut connection = Self { socket, progress, heart, is_alive: true };
        connection
            .send_frame(&match opening {
                SessionStart::Identify => {
                    let properties =
                        json!({ "os": std::env::consts::OS, "browser": "polyclaw", "device": "polyclaw" });
                    let identity = json!({ "token": token, "intents": INTENTS, "properties": properties });
                    json!({ "op": op::IDENTIFY, "d": identity })
                }
                SessionStart::Resume { session } => {
                    let seq = progress.last_seq.load(Ordering::Relaxed);
                    json!({ "op": op::RESUME, "d": { "token": token, "session_id": session, "seq": seq } })
                }
            })
            .await?;
        Ok(connection)
    }

    /// Passes on events until the connection ends.
    pub async fn run(mut self, events: UnboundedSender<GatewayFrame>) -> DisconnectReason {
        loop {
            let step = tokio::select! {
                frame = next_frame(&mut self.socket) => match frame {
                    Ok(frame) => self.handle_frame(frame, &events).await,
                    Err(ended) => Err(ended),
                },
                _ = self.heart.tick() => self.send_heartbeat().await,
            };
            if let Err(ended) = step {
                return ended;
            }
        }
    }

    async fn handle_frame(
        &mut self,
        frame: GatewayFrame,
        events: &UnboundedSender<GatewayFrame>,
    ) -> Result<(), DisconnectReason> {
        match frame.op {
            op::DISPATCH => {
                let waiting = self.progress.waiting.fetch_add(1, Ordering::Relaxed);
                if waiting >= MAX_UNPROCESSED_EVENTS {
                    self.progress.waiting.fetch_sub(1, Ordering::Relaxed);
                    return Err(connection_broken("too many unprocessed events"));
                }
                events.send(frame).map_err(|_| connection_broken("the event receiver is closed"))
            }
            op::HEARTBEAT => self.send_frame(&self.heartbeat_frame()).await,
            op::HEARTBEAT_ACK => {
                self.is_alive = true;
                Ok(())
            }
            op::RECONNECT => Err(connection_broken("Discord requested a reconnect")),
            op::INVALID_SESSION if frame.d == Value::Bool(true) => {
                Err(connection_broken("Discord did not resume the session"))
            }
            op::INVALID_SESSION => {
                Err(DisconnectReason::Forgotten("Discord no longer knows the session".to_owned()))
            }
            _ => Ok(()),
        }
    }

    async fn send_heartbeat(&mut self) -> Result<(), DisconnectReason> {
        if !std::mem::replace(&mut self.is_alive, false) {
            return Err(connection_broken("Discord's gateway does not answer heartbeats"));
        }
        self.send_frame(&self.heartbeat_frame()).await
    }

    /// Reports the last processed event only, because Discord must keep events that were received but not processed.
    fn heartbeat_frame(&self) -> Value {
        let taken = Some(self.progress.last_seq.load(Ordering::Relaxed)).filter(|taken| *taken > 0);
        json!({ "op": op::HEARTBEAT, "d": taken })
    }

    async fn send_frame(&mut self, frame: &Value) -> Result<(), DisconnectReason> {
        self.socket.send(Message::text(frame.to_string())).await.map_err(|error| from_socket_error(&error))
    }
}

/// Returns the next frame that can be parsed.
async fn next_frame(socket: &mut PlatformSocket) -> Result<GatewayFrame, DisconnectReason> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => match serde_json::from_str(&text) {
                Ok(frame) => return Ok(frame),
                Err(error) => tracing::warn!(%error, "could not parse a Discord gateway frame; skipped"),
            },
            Some(Ok(Message::Close(frame))) => {
                return Err(from_close_code(frame.map_or(1005, |frame| frame.code.into())));
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(from_socket_error(&error)),
            None => return Err(connection_broken("the connection was closed")),
        }
    }
}

fn connection_broken(reason: &str) -> DisconnectReason {
    DisconnectReason::Broken(reason.to_owned())
}

fn from_socket_error(error: &SocketError) -> DisconnectReason {
    DisconnectReason::Broken(format!("the connection was lost: {error}"))
}

fn from_close_code(code: u16) -> DisconnectReason {
    match code {
        4004 => DisconnectReason::Refused("Discord rejected the token: correct the bot_token"),
        4010 | 4011 => DisconnectReason::Refused("this bot is in more servers than one connection supports"),
        4012 => DisconnectReason::Refused("Discord no longer supports this gateway version"),
        4013 | 4014 => DisconnectReason::Refused(
            "enable the Message Content Intent for this bot in Discord's developer portal",
        ),
        4007 | 4009 => DisconnectReason::Forgotten(format!("Discord ended the session ({code})")),
        _ => DisconnectReason::Broken(format!("Discord closed the connection ({code})")),
    }
}
