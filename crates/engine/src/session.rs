//! Operations of people on a session besides chatting: stop, renew, switch agent or model, compact, delete.

mod change;

use std::sync::PoisonError;

use polyclaw_domain::agent::MemoryScope;
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{AgentId, SessionId, TurnId};
use polyclaw_domain::locale::Locale;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::session::Session;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{agents, jobs, messages, sessions};

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::hub::FrameKind;
use crate::ingress::NewIds;

pub(crate) use change::{
    busy_error, queue_compaction, renewed_event, set_agent, start_new_conversation, stop_session_tree,
    stop_session_work, stop_turn,
};

/// Everything that `/stop` ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopOutcome {
    pub turn: Option<TurnId>,
    pub interrupted_tasks: usize,
    /// Stopped descendants: the label of each run, and the name of each member of its teams.
    pub children: Vec<String>,
}

/// How many messages are searched for a conversation.
const MAX_SCANNED_MESSAGES: usize = 1_000;

impl Engine {
    /// Returns where people outside read a session: the last channel conversation from which somebody wrote, or the one
    /// in which it was started.
    pub async fn session_conversation(&self, key: &SessionKey) -> Result<Option<ChatAddress>> {
        let started = self.load_session(key).await?.address;
        let wanted = key.clone();
        let read = move |tx: &mut polyclaw_store::Tx<'_>| {
            messages::list_last_addresses(tx, &wanted, MAX_SCANNED_MESSAGES)
        };
        let written = self.db().read(read).await?;
        let is_open = |address: &ChatAddress| self.ports.channels.contains_key(&address.channel);
        Ok(written.into_iter().chain(started).find(|address| is_open(address) && !address.is_remote()))
    }

    pub async fn load_session(&self, key: &SessionKey) -> Result<Session> {
        let wanted = key.clone();
        let found = self.db().read(move |tx| sessions::get(tx, &wanted)).await?;
        found.ok_or_else(|| Error::UnknownSession(key.to_string()))
    }

    /// Returns the language in which the engine writes to the people of a session. If the session does not exist or
    /// cannot be read, it is that of the instance.
    pub(crate) async fn session_locale(&self, key: &SessionKey) -> Locale {
        let settings = self.settings();
        match self.load_session(key).await {
            Ok(session) => settings.locale_for(&session),
            Err(_) => settings.language.locale().unwrap_or_default(),
        }
    }

    /// Creates a session without messages.
    pub async fn create_session(
        &self,
        key: &SessionKey,
        agent: &AgentId,
        title: Option<String>,
    ) -> Result<Session> {
        let id = SessionId::new(self.next_id());
        let redactor = self.redactor();
        if redactor.contains_secret(key.as_str()) {
            return Err(Error::SecretInKey);
        }
        let title = title.map(|title| redactor.redact_text(&title).into_owned());
        let session =
            Session { title, ..Session::new_for_person(key.clone(), id, agent.clone(), self.now()) };
        let write = move |tx: &mut polyclaw_store::Tx<'_>| match agents::get(tx, &session.agent)? {
            Some(_) => sessions::ensure(tx, &session).map(Some),
            None => Ok(None),
        };
        self.db().write(write).await?.ok_or_else(|| Error::UnknownAgent(agent.to_string()))
    }

    /// Stops the running turn, cancels interrupted tasks and stops everything the session started. Queued messages are
    /// answered next.
    pub async fn stop_session(&self, key: &SessionKey) -> Result<StopOutcome> {
        self.load_session(key).await?;
        let (engine, wanted) = (self.clone(), key.clone());
        let (stopped, after) = self.db().write(move |tx| stop_session_tree(tx, &engine, &wanted)).await?;
        self.apply_effects(after);
        Ok(stopped)
    }

    /// Stops one turn. A queued turn is cancelled alone; a running one stops its whole session.
    pub async fn stop_turn(&self, turn: &TurnId) -> Result<()> {
        let (engine, wanted) = (self.clone(), turn.clone());
        let after = self.db().write(move |tx| stop_turn(tx, &engine, &wanted)).await?;
        self.apply_effects(after.ok_or_else(|| Error::UnknownTurn(turn.to_string()))?);
        Ok(())
    }

    /// Stops the turn's task if it runs on this node. Other nodes are notified through the database.
    pub(crate) fn stop_local_turn(&self, turn: &TurnId) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).get(turn).cloned();
        if let Some(running) = running {
            running.stop();
        }
    }

    /// `/new`: the same key with a new session id and an empty history. A running turn is stopped and ends in the old
    /// conversation; queued messages are answered in the new one.
    pub async fn renew_session(&self, key: &SessionKey) -> Result<Session> {
        self.load_session(key).await?;
        let (wanted, id, now) = (key.clone(), SessionId::new(self.next_id()), self.now());
        let after = self.db().write(move |tx| start_new_conversation(tx, &wanted, &id, now)).await?;
        self.apply_effects(after);
        self.load_session(key).await
    }

    /// Switches the agent, with its model, tools and prompt, from the next turn on.
    pub async fn set_session_agent(&self, key: &SessionKey, agent: &AgentId) -> Result<()> {
        let session = self.load_session(key).await?;
        let (id, now) = (agent.clone(), self.now());
        match self.db().write(move |tx| set_agent(tx, &session, &id, now)).await? {
            true => Ok(()),
            false => Err(Error::UnknownAgent(agent.to_string())),
        }
    }

    pub async fn set_session_model(&self, key: &SessionKey, model: Option<ModelRef>) -> Result<()> {
        self.load_session(key).await?;
        self.check_model(model.as_ref()).await?;
        let (wanted, now) = (key.clone(), self.now());
        self.db().write(move |tx| sessions::set_model(tx, &wanted, model.as_ref(), now)).await?;
        Ok(())
    }

    /// Sets whether text of a session may be delivered and whether it may send. `None` leaves a policy unchanged.
    pub async fn set_session_policies(
        &self,
        key: &SessionKey,
        delivers: Option<bool>,
        sends: Option<bool>,
    ) -> Result<()> {
        self.load_session(key).await?;
        let (wanted, now) = (key.clone(), self.now());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            sessions::set_policies(tx, &wanted, (delivers, sends), now)
        };
        self.db().write(write).await?;
        Ok(())
    }

    /// Checks a model before it is stored. Its name is written in many places, so it must not contain a secret, and an
    /// unknown provider would fail only in the next turn.
    pub(crate) async fn check_model(&self, model: Option<&ModelRef>) -> Result<()> {
        let Some(model) = model else { return Ok(()) };
        if self.redactor().contains_secret(&model.to_string()) {
            return Err(Error::SecretInKey);
        }
        let providers = &self.settings().providers;
        if !providers.is_empty() && !providers.contains(&model.provider) {
            return Err(Error::UnknownProvider(model.provider.clone()));
        }
        // If the provider lists no models, every name passes; the next turn reports an error.
        let listed = self.provider().list_models().await;
        let mut own = listed.iter().filter(|info| info.model.provider == model.provider).peekable();
        match own.peek().is_none() || own.any(|info| info.model == *model) {
            true => Ok(()),
            false => Err(Error::UnknownModel(model.to_string())),
        }
    }

    /// Compacts the history on request, as a turn of its own.
    pub async fn compact_session(&self, key: &SessionKey) -> Result<TurnId> {
        let session = self.load_session(key).await?;
        let fresh = NewIds::new(self, None);
        let turn = fresh.turn.clone();
        let lane = self.db().write(move |tx| queue_compaction(tx, &session, &fresh)).await?;
        self.lanes.wake(lane.ok_or_else(busy_error)?);
        Ok(turn)
    }

    /// Deletes a session with its queued messages, and notifies those who wait for it.
    pub async fn delete_session(&self, key: &SessionKey) -> Result<()> {
        self.load_session(key).await?;
        let (wanted, now) = (key.clone(), self.now());
        let write = move |tx: &mut polyclaw_store::Tx<'_>| {
            sessions::allocate_positions(tx, &wanted, 0, now)?;
            let busy = jobs::session_load(tx, &wanted)?.running.is_some();
            if !busy {
                sessions::delete(tx, &wanted)?;
                tx.notify_nodes(&format!("session {wanted}"))?;
            }
            Ok(busy)
        };
        if self.db().write(write).await? {
            return Err(Error::InvalidState(
                "a turn is running: stop it before deleting the session".to_owned(),
            ));
        }
        self.clean_up_deleted_session(key).await?;
        self.hub.publish(key, FrameKind::Changed);
        Ok(())
    }

    /// Removes what a deleted session leaves outside its rows: its memories and its images. Images that cannot be
    /// removed now are removed with those of the next deleted session.
    pub(crate) async fn clean_up_deleted_session(&self, key: &SessionKey) -> Result<()> {
        self.memory_store().forget_all(None, Some(key.clone()), Some(MemoryScope::Session)).await?;
        if let Err(error) = self.remove_unused_images().await {
            tracing::warn!(%error, session.key = %key, "cannot remove images of deleted session; retrying later");
        }
        Ok(())
    }
}
