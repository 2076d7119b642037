//! What people do with a session besides talking: stop, start anew, switch agent or model, compact, delete.

use std::sync::PoisonError;
use std::time::Duration;

use polyclaw_domain::event::{Event, EventKind};
use polyclaw_domain::id::{AgentId, SessionId, TraceId, TurnId};
use polyclaw_domain::job::{JobState, Priority};
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::provider::{ModelRef, Usage};
use polyclaw_domain::session::Session;
use polyclaw_store::jobs::{Kind, NewJob};
use polyclaw_store::{agents, backlog, events, jobs, sessions};
use serde_json::json;

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::hub::FrameKind;

/// What `/stop` ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stopped {
    pub turn: Option<TurnId>,
    pub interrupted_tasks: usize,
}

impl Engine {
    pub async fn session(&self, key: &SessionKey) -> Result<Session> {
        let wanted = key.clone();
        let found = self.db().read(move |tx| sessions::get(tx, &wanted)).await?;
        found.ok_or_else(|| Error::UnknownSession(key.to_string()))
    }

    /// A session nobody has spoken in yet.
    pub async fn create_session(
        &self,
        key: &SessionKey,
        agent: &AgentId,
        title: Option<String>,
    ) -> Result<Session> {
        let id = SessionId::new(self.next_id());
        let session = Session { title, ..Session::begun(key.clone(), id, agent.clone(), self.now()) };
        let write = move |tx: &mut polyclaw_store::Tx<'_>| match agents::get(tx, &session.agent)? {
            Some(_) => sessions::ensure(tx, &session).map(Some),
            None => Ok(None),
        };
        self.db().write(write).await?.ok_or_else(|| Error::UnknownAgent(agent.to_string()))
    }

    /// Ends the running turn and gives up interrupted tasks. Messages that wait are answered next.
    pub async fn stop(&self, key: &SessionKey) -> Result<Stopped> {
        self.session(key).await?;
        let (wanted, now) = (key.clone(), self.now());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            sessions::take_tickets(tx, &wanted, 0, now)?;
            let interrupted_tasks = backlog::cancel(tx, &wanted)?;
            let turn = jobs::cancel(tx, &wanted, now)?;
            tx.notify(&format!("session {wanted}"))?;
            Ok(Stopped { turn, interrupted_tasks })
        };
        let stopped = self.db().write(write).await?;
        if let Some(turn) = &stopped.turn {
            self.end_locally(key, turn);
        }
        if stopped.interrupted_tasks > 0 {
            self.hub.publish(key, FrameKind::Changed);
        }
        Ok(stopped)
    }

    /// Tells the turn's task on this node; a queued one has no task and ends here.
    fn end_locally(&self, key: &SessionKey, turn: &TurnId) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).get(turn).cloned();
        match running {
            Some(running) => running.stop(),
            None => self.hub.publish(
                key,
                FrameKind::Ended {
                    turn_id: turn.clone(),
                    state: JobState::Cancelled,
                    message_id: None,
                    text: None,
                    model: None,
                    usage: Usage::default(),
                    error_code: Some("stopped".to_owned()),
                },
            ),
        }
    }

    /// `/new`: the same key, a new session id, an empty history. What ran is stopped.
    pub async fn renew(&self, key: &SessionKey) -> Result<Session> {
        // What the stopped turn still says belongs to the old conversation.
        if let Some(turn) = self.stop(key).await?.turn {
            self.wait(key, &turn, Duration::from_secs(5)).await?;
        }
        let (wanted, id, now) = (key.clone(), SessionId::new(self.next_id()), self.now());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            sessions::renew(tx, &wanted, &id, now)?;
            let event = Event {
                kind: EventKind::SessionRenewed,
                session: Some(wanted.clone()),
                turn: None,
                agent: None,
                trace: None,
                data: json!({ "session_id": id.as_str() }),
            };
            events::record(tx, &event, now)
        };
        self.db().write(write).await?;
        self.session(key).await
    }

    /// Takes effect at the next turn, for model, tools and prompt at once.
    pub async fn set_agent(&self, key: &SessionKey, agent: &AgentId) -> Result<()> {
        self.session(key).await?;
        let (wanted, id, now) = (key.clone(), agent.clone(), self.now());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| match agents::get(tx, &id)? {
            Some(_) => sessions::set_agent(tx, &wanted, &id, now),
            None => Ok(false),
        };
        match self.db().write(write).await? {
            true => Ok(()),
            false => Err(Error::UnknownAgent(agent.to_string())),
        }
    }

    pub async fn set_model(&self, key: &SessionKey, model: Option<ModelRef>) -> Result<()> {
        self.session(key).await?;
        let (wanted, now) = (key.clone(), self.now());
        self.db().write(move |tx| sessions::set_model(tx, &wanted, model.as_ref(), now)).await?;
        Ok(())
    }

    /// Folds the history by hand, as a turn of its own.
    pub async fn compact(&self, key: &SessionKey) -> Result<TurnId> {
        let session = self.session(key).await?;
        let (turn, now) = (TurnId::new(self.next_id()), self.now());
        let job = NewJob {
            turn: turn.clone(),
            session: key.clone(),
            agent: session.active_agent,
            kind: Kind::Compact,
            lane: session.lane,
            priority: Priority::Background,
            held: false,
            inputs: 0,
            steers: false,
            hop: 0,
            trace: TraceId::new(self.next_id()),
            queued_at: now,
        };
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            sessions::take_tickets(tx, &job.session, 0, now)?;
            let load = jobs::load(tx, &job.session)?;
            let idle = load.running.is_none() && load.queued.is_none();
            if idle {
                jobs::insert(tx, &job)?;
            }
            Ok(idle)
        };
        if !self.db().write(write).await? {
            return Err(Error::NotNow("a turn is running: compact when it has ended".to_owned()));
        }
        self.wake(session.lane);
        Ok(turn)
    }

    pub async fn delete_session(&self, key: &SessionKey) -> Result<()> {
        self.session(key).await?;
        let wanted = key.clone();
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            let busy = jobs::load(tx, &wanted)?.running.is_some();
            if !busy {
                sessions::delete(tx, &wanted)?;
            }
            Ok(busy)
        };
        match self.db().write(write).await? {
            true => Err(Error::NotNow("a turn is running: stop it before deleting the session".to_owned())),
            false => Ok(()),
        }
    }
}
