//! What people do with a session besides talking: stop, start anew, switch agent or model, compact, delete.

use std::sync::PoisonError;

use polyclaw_domain::agent::MemoryScope;
use polyclaw_domain::event::{Event, EventKind};
use polyclaw_domain::id::{AgentId, SessionId, TraceId, TurnId};
use polyclaw_domain::job::{JobState, Priority};
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::provider::{ModelRef, Usage};
use polyclaw_domain::session::Session;
use polyclaw_store::jobs::{Kind, NewJob};
use polyclaw_store::{agents, backlog, events, jobs, messages, runs, sessions, todos};
use serde_json::{Value, json};

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::hub::FrameKind;

/// What `/stop` ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stopped {
    pub turn: Option<TurnId>,
    pub interrupted_tasks: usize,
    /// What it had begun, and what that had: the label of each run.
    pub children: Vec<String>,
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
        let redactor = self.redactor();
        if redactor.has_value(key.as_str()) {
            return Err(Error::SecretInKey);
        }
        let title = title.map(|title| redactor.text(&title).into_owned());
        let session = Session { title, ..Session::begun(key.clone(), id, agent.clone(), self.now()) };
        let write = move |tx: &mut polyclaw_store::Tx<'_>| match agents::get(tx, &session.agent)? {
            Some(_) => sessions::ensure(tx, &session).map(Some),
            None => Ok(None),
        };
        self.db().write(write).await?.ok_or_else(|| Error::UnknownAgent(agent.to_string()))
    }

    /// Ends the running turn and gives up interrupted tasks, and stops what the session began. Messages that wait are
    /// answered next.
    pub async fn stop(&self, key: &SessionKey) -> Result<Stopped> {
        let stopped = self.stop_session(key).await?;
        let children = self.stop_children(key).await?.into_iter().map(|run| run.task.label).collect();
        Ok(Stopped { children, ..stopped })
    }

    pub(crate) async fn stop_session(&self, key: &SessionKey) -> Result<Stopped> {
        self.session(key).await?;
        let (wanted, now) = (key.clone(), self.now());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            sessions::take_tickets(tx, &wanted, 0, now)?;
            let interrupted_tasks = backlog::cancel(tx, &wanted)?;
            let running = jobs::stop(tx, &wanted)?;
            let queued = match running {
                Some(_) => None,
                None => jobs::cancel_queued(tx, &wanted, now)?,
            };
            if let Some(turn) = &queued {
                // It may have waited behind a turn: its messages move out from between that one's lines.
                messages::retake(tx, &wanted, turn, now)?;
                runs::let_go_held(tx, &wanted)?;
            }
            tx.notify(&format!("session {wanted}"))?;
            Ok((running, queued, interrupted_tasks))
        };
        let (running, queued, interrupted_tasks) = self.db().write(write).await?;
        if let Some(turn) = &running {
            self.stop_here(turn);
        }
        if let Some(turn) = &queued {
            self.hub.publish(key, never_ran(turn));
        }
        if interrupted_tasks > 0 {
            self.hub.publish(key, FrameKind::Changed);
        }
        Ok(Stopped { turn: running.or(queued), interrupted_tasks, children: Vec::new() })
    }

    /// Tells the turn's task if it is on this node. On another, that node hears of it.
    pub(crate) fn stop_here(&self, turn: &TurnId) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).get(turn).cloned();
        if let Some(running) = running {
            running.stop();
        }
    }

    /// `/new`: the same key, a new session id, an empty history. What runs is stopped and ends in the old
    /// conversation; what waits is answered in the new one.
    pub async fn renew(&self, key: &SessionKey) -> Result<Session> {
        self.session(key).await?;
        let (wanted, id, now) = (key.clone(), SessionId::new(self.next_id()), self.now());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            sessions::renew(tx, &wanted, &id, now)?;
            todos::clear(tx, &wanted)?;
            backlog::cancel(tx, &wanted)?;
            jobs::cancel_empty(tx, &wanted, now)?;
            jobs::postpone(tx, &wanted)?;
            let running = jobs::stop(tx, &wanted)?;
            tx.notify(&format!("session {wanted}"))?;
            events::record(tx, &renewed_event(&wanted, json!({ "session_id": id.as_str() })), now)?;
            Ok(running)
        };
        if let Some(turn) = self.db().write(write).await? {
            self.stop_here(&turn);
        }
        self.hub.publish(key, FrameKind::Changed);
        self.session(key).await
    }

    /// Takes effect at the next turn, for model, tools and prompt at once.
    pub async fn set_agent(&self, key: &SessionKey, agent: &AgentId) -> Result<()> {
        let before = self.session(key).await?.active_agent;
        let (wanted, id, now) = (key.clone(), agent.clone(), self.now());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| match agents::get(tx, &id)? {
            Some(_) => {
                let switched = sessions::set_agent(tx, &wanted, &id, now)?;
                // What waits there has not begun: it is the next turn.
                jobs::reassign(tx, &wanted, &before, &id)?;
                Ok(switched)
            }
            None => Ok(false),
        };
        match self.db().write(write).await? {
            true => Ok(()),
            false => Err(Error::UnknownAgent(agent.to_string())),
        }
    }

    pub async fn set_model(&self, key: &SessionKey, model: Option<ModelRef>) -> Result<()> {
        self.session(key).await?;
        if model.as_ref().is_some_and(|model| self.redactor().has_value(&model.to_string())) {
            return Err(Error::SecretInKey);
        }
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
        self.lanes.wake(session.lane);
        Ok(turn)
    }

    /// What waits there is gone with it; whoever waits for it is told.
    pub async fn delete_session(&self, key: &SessionKey) -> Result<()> {
        self.session(key).await?;
        let (wanted, now) = (key.clone(), self.now());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            sessions::take_tickets(tx, &wanted, 0, now)?;
            let busy = jobs::load(tx, &wanted)?.running.is_some();
            if !busy {
                sessions::delete(tx, &wanted)?;
                tx.notify(&format!("session {wanted}"))?;
            }
            Ok(busy)
        };
        if self.db().write(write).await? {
            return Err(Error::NotNow("a turn is running: stop it before deleting the session".to_owned()));
        }
        self.brain().forget_all(None, Some(key.clone()), Some(MemoryScope::Session)).await?;
        self.hub.publish(key, FrameKind::Changed);
        Ok(())
    }
}

pub(crate) fn renewed_event(key: &SessionKey, data: Value) -> Event {
    let session = Some(key.clone());
    Event { kind: EventKind::SessionRenewed, session, turn: None, agent: None, trace: None, data }
}

/// The end of a turn that was stopped before it started.
fn never_ran(turn: &TurnId) -> FrameKind {
    FrameKind::Ended {
        turn_id: turn.clone(),
        state: JobState::Cancelled,
        message_id: None,
        text: None,
        model: None,
        usage: Usage::default(),
        error_code: Some("stopped".to_owned()),
        truncated: false,
    }
}
