//! An instance's end of the messages between instances: fetches its own from the control plane, brings them into
//! sessions, sends what agents answer, and lets agents write.
//!
//! Nothing is remembered here. A message is acknowledged after the turn that took it up is committed; until then the
//! control plane has it, and hands it out again to the next life of this process. Brought in twice, it is there once.

mod answer;
mod letter;
mod receive;
mod respond;
mod task;
mod tools;
mod waiters;

use std::sync::{Arc, PoisonError, RwLock};

use polyclaw_domain::channel::REMOTE_CHANNEL;
use polyclaw_domain::glob::glob_matches;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::tool::ToolSpec;
use polyclaw_engine::Engine;
use polyclaw_store::Db;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Client, segment};
use crate::control::{FOLDER, Notes};
use crate::current::Current;
use crate::failure::Failure;
use crate::ids;
use waiters::Waiters;

/// The channel that other instances are.
pub const CHANNEL: &str = REMOTE_CHANNEL;

/// Seconds for which a poll waits at the control plane.
const WAIT_SECONDS: u64 = 30;

pub struct Exchange {
    client: Current<Client>,
    token: String,
    /// Where a control plane says how it is reached.
    notes: Option<Notes>,
    /// Which instance this is.
    own: String,
    /// Names this life of the process.
    life: String,
    db: Db,
    redactor: Arc<Current<Redactor>>,
    /// Agents that may write to other instances, as the config says now.
    granted: RwLock<Vec<String>>,
    tools: Vec<Arc<ToolSpec>>,
    waiters: Waiters,
}

/// A word nobody else uses.
fn fresh_word() -> String {
    polyclaw_domain::hex::encode_hex(&ids::random::<16>())
}

impl Exchange {
    /// Nothing where no control plane started this process.
    pub fn from_environment(db: &Db, redactor: &Arc<Current<Redactor>>) -> Result<Option<Self>, Failure> {
        let stated = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let all = (stated("POLYCLAW_CP_URL"), stated("POLYCLAW_CP_TOKEN"), stated("POLYCLAW_INSTANCE_ID"));
        let (Some(url), Some(token), Some(own)) = all else { return Ok(None) };
        Ok(Some(Self {
            client: Current::new(Client::at_control(&url, token.clone())?),
            token,
            notes: stated(FOLDER).map(|folder| Notes::below(folder.into())),
            own,
            life: fresh_word(),
            db: db.clone(),
            redactor: Arc::clone(redactor),
            granted: RwLock::default(),
            tools: tools::specs(),
            waiters: Waiters::default(),
        }))
    }

    /// These agents may write to other instances from now on, and no others.
    pub fn grant(&self, agents: &[String]) {
        *self.granted.write().unwrap_or_else(PoisonError::into_inner) = agents.to_vec();
    }

    fn is_granted(&self, agent: &AgentId) -> bool {
        let granted = self.granted.read().unwrap_or_else(PoisonError::into_inner);
        granted.iter().any(|entry| glob_matches(entry, agent.as_str()))
    }

    /// Fetches messages for as long as what is returned lives.
    pub fn start(self: &Arc<Self>, engine: &Engine) -> JoinSet<()> {
        let mut running = JoinSet::new();
        running.spawn(receive::run(Arc::clone(self), engine.clone()));
        running.spawn(receive::run_answers(Arc::clone(self), engine.clone()));
        running
    }

    /// Asked again with the same word, because no answer came, it gets the same messages.
    async fn poll(
        &self,
        word: &str,
        limit: usize,
        only_answers: bool,
    ) -> Result<Vec<letter::Letter>, Failure> {
        let path = format!(
            "/instances/{}/messages/pending?wait={WAIT_SECONDS}&limit={limit}&lease={word}&life={}&only_answers={only_answers}",
            segment(&self.own),
            self.life
        );
        let answer = self.client.get().get(&path).await?;
        let wrong = |error: serde_json::Error| Failure::failed("not_polyclaw", error.to_string());
        serde_json::from_value(answer["messages"].clone()).map_err(wrong)
    }

    /// One that was started again may listen elsewhere.
    fn look_for_control_plane(&self) {
        let Some(url) = self.notes.as_ref().and_then(Notes::url) else { return };
        if url != self.client.get().url()
            && let Ok(client) = Client::at_control(&url, self.token.clone())
        {
            tracing::info!(%url, "the control plane is elsewhere now");
            self.client.replace(client);
        }
    }

    /// The receipt says whether secrets were taken out, here or there.
    async fn send(&self, message: &Value) -> Result<Value, Failure> {
        let mut clean = message.clone();
        self.redactor.get().redact_payload(&mut clean["payload"]);
        let mut receipt = self.client.get().post("/messages", &clean).await?;
        if clean != *message {
            receipt["redacted"] = true.into();
        }
        Ok(receipt)
    }

    /// A word about a message that was handed to us.
    async fn say(&self, letter: &letter::Letter, verb: &str, more: Value) -> Result<Value, Failure> {
        let mut body = json!({ "lease": letter.lease });
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        self.client.get().post(&format!("/messages/{}/{verb}", segment(&letter.id)), &body).await
    }
}
