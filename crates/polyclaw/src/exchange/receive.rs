//! Fetches messages and brings each into its session.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::envelope::{HANDOFF_KIND, STATUS_KIND};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::ingress::{AcceptedMessage, InternalMessage, MessageProvenance, RelayKind};
use polyclaw_engine::{Engine, Error, ErrorCategory};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::letter::Letter;
use super::{Exchange, answer, fresh_word};
use crate::failure::{Exit, Failure};

/// Messages worked on at once.
const AT_ONCE: usize = 32;
const BATCH: usize = 16;
/// Well before a lease of 90 seconds ends.
const RENEW_EVERY: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Runs until it is dropped, or the engine takes nothing any more.
pub async fn run(exchange: Arc<Exchange>, engine: Engine) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut asking = Asking::new(false);
    while !engine.is_draining() {
        let Ok(first) = Arc::clone(&room).acquire_owned().await else { return };
        let limit = room.available_permits().min(BATCH - 1) + 1;
        drop(first);
        for letter in asking.ask(&exchange, limit).await {
            // No more were asked for than there is room for.
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            let (exchange, engine) = (Arc::clone(&exchange), engine.clone());
            tokio::spawn(async move {
                take(&exchange, &engine, &letter).await;
                drop(permit);
            });
        }
    }
}

/// Answers have a way of their own: turns that fill all the room may be waiting for them.
pub async fn run_answers(exchange: Arc<Exchange>, engine: Engine) {
    let mut asking = Asking::new(true);
    while !engine.is_draining() {
        for letter in asking.ask(&exchange, BATCH).await {
            let (exchange, engine) = (Arc::clone(&exchange), engine.clone());
            tokio::spawn(async move { take(&exchange, &engine, &letter).await });
        }
    }
}

/// Somebody who asks again and again, more slowly where nobody answers.
struct Asking {
    only_answers: bool,
    word: String,
    pause: Duration,
}

impl Asking {
    fn new(only_answers: bool) -> Self {
        Self { only_answers, word: fresh_word(), pause: FIRST_PAUSE }
    }

    async fn ask(&mut self, exchange: &Exchange, limit: usize) -> Vec<Letter> {
        match exchange.poll(&self.word, limit, self.only_answers).await {
            Ok(letters) => {
                (self.pause, self.word) = (FIRST_PAUSE, fresh_word());
                letters
            }
            Err(failure) => {
                tracing::debug!(error = %failure, "the control plane gives no messages");
                tokio::time::sleep(self.pause).await;
                exchange.look_for_control_plane();
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                Vec::new()
            }
        }
    }
}

/// What became of a message here.
pub(super) enum Outcome {
    /// A turn that took it up is committed, or nothing has to be done with it.
    Done,
    /// It can not be taken up.
    Refused(String),
    /// This process ends, or the lease is lost: whoever is handed it next goes on.
    Left,
}

async fn take(exchange: &Exchange, engine: &Engine, letter: &Letter) {
    let outcome = match letter.is_answer() {
        true => answer::take(exchange, engine, letter).await,
        false => bring_in(exchange, engine, letter).await,
    };
    let (verb, more) = match outcome {
        Outcome::Done => ("ack", json!({})),
        Outcome::Refused(error) => {
            tracing::warn!(message.id = letter.id, error, "a message of another instance is not taken up");
            ("fail", json!({ "error": error }))
        }
        Outcome::Left => return,
    };
    if let Err(failure) = told(exchange, engine, letter, verb, more).await {
        // It is handed out again, and found to be there already.
        tracing::info!(message.id = letter.id, error = %failure, "what became of a message is not heard");
    }
}

/// Says what became of a message, for as long as nobody is there to hear it.
async fn told(
    exchange: &Exchange,
    engine: &Engine,
    letter: &Letter,
    verb: &str,
    more: Value,
) -> Result<(), Failure> {
    let mut pause = FIRST_PAUSE;
    loop {
        match exchange.say(letter, verb, more.clone()).await {
            Err(failure) if failure.exit == Exit::Unavailable && !engine.is_draining() => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            said => return said.map(drop),
        }
    }
}

async fn bring_in(exchange: &Exchange, engine: &Engine, letter: &Letter) -> Outcome {
    let agent = letter.to_agent().unwrap_or_else(|| engine.settings().default_agent.clone());
    let from =
        MessageProvenance::Remote(agent.clone(), letter.origin(), letter.relayed(&agent, RelayKind::Begin));
    let how = letter.injection(letter.address(), from);
    match inject(exchange, engine, letter, &letter.session(&agent), how).await {
        Ok(accepted) => {
            tell_begun(exchange, letter, agent.as_str(), &accepted).await;
            ended(exchange, engine, letter, &accepted).await
        }
        Err(outcome) => outcome,
    }
}

/// Whoever handed a task over is told that it is worked on.
async fn tell_begun(exchange: &Exchange, letter: &Letter, agent: &str, accepted: &AcceptedMessage) {
    if letter.kind != HANDOFF_KIND {
        return;
    }
    let message = json!({
        "to": letter.from,
        "type": STATUS_KIND,
        "correlation_id": letter.thread(),
        "idempotency_key": format!("status:{}", letter.id),
        "trace_id": letter.trace(),
        "payload": { "status": "working", "agent": agent, "turn_id": accepted.turn_id },
    });
    if let Err(failure) = exchange.send(&message).await {
        tracing::debug!(message.id = letter.id, error = %failure, "nobody is told that a task is worked on");
    }
}

pub(super) async fn inject(
    exchange: &Exchange,
    engine: &Engine,
    letter: &Letter,
    session: &SessionKey,
    how: InternalMessage,
) -> Result<AcceptedMessage, Outcome> {
    loop {
        match engine.inject_message(session, &letter.text(), how.clone()).await {
            Ok(accepted) => return Ok(accepted),
            Err(Error::Draining) => return Err(Outcome::Left),
            // Taken and answered before; its session was deleted since.
            Err(Error::Deleted) => return Err(Outcome::Done),
            Err(error) if error.category() == ErrorCategory::Retry => {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if !renewed(exchange, letter).await {
                    return Err(Outcome::Left);
                }
            }
            Err(error) => return Err(Outcome::Refused(format!("{} ({})", error, error.code()))),
        }
    }
}

/// Waits for the turn that takes a message up, and keeps the lease meanwhile.
pub(super) async fn ended(
    exchange: &Exchange,
    engine: &Engine,
    letter: &Letter,
    accepted: &AcceptedMessage,
) -> Outcome {
    loop {
        match engine.wait_for_answer(&accepted.session_key, &accepted.turn_id, RENEW_EVERY).await {
            Ok(Some(_)) => return Outcome::Done,
            Ok(None) | Err(_) if engine.is_draining() => return Outcome::Left,
            // The session was deleted while it waited: nobody takes it up any more.
            Err(Error::UnknownTurn(_)) => return Outcome::Done,
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(message.id = letter.id, %error, "it is not known how a turn stands");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        if !renewed(exchange, letter).await {
            return Outcome::Left;
        }
    }
}

/// Whether the message is still ours. Where nobody can say, it is taken to be.
pub(super) async fn renewed(exchange: &Exchange, letter: &Letter) -> bool {
    let renewed: Result<Value, _> = exchange.say(letter, "renew", json!({})).await;
    !matches!(renewed, Err(failure) if ["lease_lost", "unknown_message"].contains(&failure.code.as_str()))
}
