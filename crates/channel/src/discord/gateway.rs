//! One connection of the gateway: it says who it is, keeps the heart beating and hands on events in order.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use super::event::Frame;
use crate::socket::Socket;

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

/// Servers, their messages, messages of single persons, and what is in them.
const INTENTS: u64 = 1 | 1 << 9 | 1 << 12 | 1 << 15;
/// Events that wait to be taken. Beyond that the connection is given up: Discord keeps the rest until it is resumed.
const MAX_WAITING: u64 = 1000;
const HELLO_PATIENCE: Duration = Duration::from_secs(20);

/// Why a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The session can be gone on with.
    Broken(String),
    /// The session is gone; there has to be another.
    Forgotten(String),
    /// Only a person can mend it.
    Refused(&'static str),
}

/// What a connection begins with.
pub(super) enum Opening<'a> {
    Identify,
    Resume { session: &'a str },
}

/// How far this end is, told by those who take events.
#[derive(Default)]
pub(super) struct Progress {
    /// The last event that was taken; 0 if none was. It is what a session is resumed from.
    pub taken: AtomicU64,
    /// How many wait to be taken.
    pub waiting: AtomicU64,
}

pub(super) struct Connection<'a> {
    socket: Socket,
    progress: &'a Progress,
    heart: Interval,
    /// The last beat was answered.
    is_alive: bool,
}

impl<'a> Connection<'a> {
    /// Waits for the greeting and answers it.
    pub async fn open(
        mut socket: Socket,
        token: &str,
        opening: Opening<'_>,
        progress: &'a Progress,
    ) -> Result<Self, Ended> {
        let greeting = tokio::time::timeout(HELLO_PATIENCE, next(&mut socket)).await;
        let greeting = greeting.map_err(|_| broken("Discord's gateway does not greet"))??;
        let every = greeting.d.get("heartbeat_interval").and_then(Value::as_u64);
        let every =
            every.filter(|_| greeting.op == op::HELLO).ok_or_else(|| broken("that is no greeting"))?;
        let every = Duration::from_millis(every.clamp(10, 300_000));
        let mut heart = interval_at(Instant::now() + every.mul_f64(fastrand::f64()), every);
        heart.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut connection = Self { socket, progress, heart, is_alive: true };
        connection
            .say(&match opening {
                Opening::Identify => {
                    let properties =
                        json!({ "os": std::env::consts::OS, "browser": "polyclaw", "device": "polyclaw" });
                    let identity = json!({ "token": token, "intents": INTENTS, "properties": properties });
                    json!({ "op": op::IDENTIFY, "d": identity })
                }
                Opening::Resume { session } => {
                    let seq = progress.taken.load(Ordering::Relaxed);
                    json!({ "op": op::RESUME, "d": { "token": token, "session_id": session, "seq": seq } })
                }
            })
            .await?;
        Ok(connection)
    }

    /// Hands on events until the connection ends.
    pub async fn run(mut self, events: UnboundedSender<Frame>) -> Ended {
        loop {
            let step = tokio::select! {
                frame = next(&mut self.socket) => match frame {
                    Ok(frame) => self.heard(frame, &events).await,
                    Err(ended) => Err(ended),
                },
                _ = self.heart.tick() => self.beat().await,
            };
            if let Err(ended) = step {
                return ended;
            }
        }
    }

    async fn heard(&mut self, frame: Frame, events: &UnboundedSender<Frame>) -> Result<(), Ended> {
        match frame.op {
            op::DISPATCH => {
                let waiting = self.progress.waiting.fetch_add(1, Ordering::Relaxed);
                if waiting >= MAX_WAITING {
                    self.progress.waiting.fetch_sub(1, Ordering::Relaxed);
                    return Err(broken("more comes than can be taken"));
                }
                events.send(frame).map_err(|_| broken("nobody takes events"))
            }
            op::HEARTBEAT => self.say(&self.heartbeat()).await,
            op::HEARTBEAT_ACK => {
                self.is_alive = true;
                Ok(())
            }
            op::RECONNECT => Err(broken("Discord asks to connect again")),
            op::INVALID_SESSION if frame.d == Value::Bool(true) => {
                Err(broken("the session was not gone on with"))
            }
            op::INVALID_SESSION => Err(Ended::Forgotten("the session is not known any more".to_owned())),
            _ => Ok(()),
        }
    }

    async fn beat(&mut self) -> Result<(), Ended> {
        if !std::mem::replace(&mut self.is_alive, false) {
            return Err(broken("Discord's gateway answers no more"));
        }
        self.say(&self.heartbeat()).await
    }

    /// What was heard but not taken must be kept by Discord, so only what was taken is named.
    fn heartbeat(&self) -> Value {
        let taken = Some(self.progress.taken.load(Ordering::Relaxed)).filter(|taken| *taken > 0);
        json!({ "op": op::HEARTBEAT, "d": taken })
    }

    async fn say(&mut self, frame: &Value) -> Result<(), Ended> {
        self.socket.send(Message::text(frame.to_string())).await.map_err(|error| failed(&error))
    }
}

/// The next frame that means something.
async fn next(socket: &mut Socket) -> Result<Frame, Ended> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => match serde_json::from_str(&text) {
                Ok(frame) => return Ok(frame),
                Err(error) => tracing::warn!(%error, "a frame of Discord's gateway is not understood"),
            },
            Some(Ok(Message::Close(frame))) => {
                return Err(closed(frame.map_or(1005, |frame| frame.code.into())));
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(failed(&error)),
            None => return Err(broken("the connection ended")),
        }
    }
}

fn broken(reason: &str) -> Ended {
    Ended::Broken(reason.to_owned())
}

fn failed(error: &SocketError) -> Ended {
    Ended::Broken(format!("the connection broke: {error}"))
}

fn closed(code: u16) -> Ended {
    match code {
        4004 => Ended::Refused("Discord does not know this bot: correct its bot_token"),
        4010 | 4011 => Ended::Refused("this bot is in more servers than one connection serves"),
        4012 => Ended::Refused("Discord no longer speaks this version of its gateway"),
        4013 | 4014 => {
            Ended::Refused("allow the bot the Message Content Intent, in Discord's developer portal")
        }
        4007 | 4009 => Ended::Forgotten(format!("Discord ended the session ({code})")),
        _ => Ended::Broken(format!("Discord closed the connection ({code})")),
    }
}
