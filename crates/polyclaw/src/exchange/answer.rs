//! Answers to what agents of this instance asked of others. A call that waits gets them; else the session that asked
//! does, as a message of its own. Nothing is sent back by itself.

use std::time::Duration;

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::envelope::STATUS_KIND;
use polyclaw_engine::Engine;
use polyclaw_engine::ingress::{MessageProvenance, RelayInfo, RelayKind};
use polyclaw_store::Tx;

use super::letter::Letter;
use super::receive::{Outcome, ended, inject, renewed};
use super::task::{self, Asked};
use super::{Exchange, tools};

/// How often it is looked whether a call that waits has stored what it was given.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const LOOKS_PER_RENEWAL: u32 = 100;

pub(super) async fn take(exchange: &Exchange, engine: &Engine, letter: &Letter) -> Outcome {
    let mut looks = 0_u32;
    loop {
        // Where a task stands is for whoever waits for it; nobody goes on from it.
        if letter.kind == STATUS_KIND {
            exchange.waiters.progress(letter);
            return Outcome::Done;
        }
        let asked = match look(exchange, letter).await {
            Ok(Some(asked)) => asked,
            Ok(None) => return keep(exchange, engine, letter).await,
            Err(error) => return Outcome::Refused(error.to_string()),
        };
        let waits = asked.is_open && tools::waits(&asked.call);
        if !waits {
            // What a call was given is in its result: it needs no message besides.
            return match asked.given.as_ref() == Some(&letter.id) {
                true => Outcome::Done,
                false => bring_in(exchange, engine, letter, asked).await,
            };
        }
        // It may not have come so far yet, after a restart: it is waited for, with the message in hand.
        exchange.waiters.give(letter);
        if engine.is_draining() {
            return Outcome::Left;
        }
        tokio::time::sleep(LOOK_EVERY).await;
        looks += 1;
        if looks.is_multiple_of(LOOKS_PER_RENEWAL) && !renewed(exchange, letter).await {
            return Outcome::Left;
        }
    }
}

async fn look(exchange: &Exchange, letter: &Letter) -> polyclaw_store::Result<Option<Asked>> {
    let letter = letter.clone();
    exchange.db.read(move |tx: &mut Tx<'_>| task::asked(tx, &letter)).await
}

/// An answer that no turn here asked for: an operator wrote in this instance's name. It is read, and nothing leaves.
async fn keep(exchange: &Exchange, engine: &Engine, letter: &Letter) -> Outcome {
    let agent = engine.settings().default_agent.clone();
    let relayed = letter.relayed(&agent, RelayKind::Begin);
    let how = letter.injection(
        ChatAddress::internal(),
        MessageProvenance::Remote(agent.clone(), letter.origin(), relayed),
    );
    match inject(exchange, engine, letter, &letter.session(&agent), how).await {
        Ok(accepted) => ended(exchange, engine, letter, &accepted).await,
        Err(outcome) => outcome,
    }
}

/// The session that asked goes on with it, and answers where it was asked.
async fn bring_in(exchange: &Exchange, engine: &Engine, letter: &Letter, asked: Asked) -> Outcome {
    let job = asked.job;
    let place = match engine.reply_address(&job.turn).await {
        // What came from another instance is not answered by an answer.
        Ok(place) => place.filter(|place| !place.is_remote()),
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    let own = letter.relayed(&job.agent, RelayKind::Send);
    let relayed = RelayInfo { hop: own.hop.max(job.hop + 1), trace: job.trace.clone(), ..own };
    let from = MessageProvenance::Remote(job.agent.clone(), letter.origin(), relayed);
    let how = letter.injection(place.unwrap_or_else(ChatAddress::internal), from);
    match inject(exchange, engine, letter, &job.session, how).await {
        Ok(accepted) => ended(exchange, engine, letter, &accepted).await,
        Err(outcome) => outcome,
    }
}
