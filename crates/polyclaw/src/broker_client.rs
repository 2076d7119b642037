//! An instance's end of the messages between instances: fetches its own from the control plane, brings them into
//! sessions, sends what agents answer, and lets agents write.
//!
//! Nothing is remembered here. A message is acknowledged after the turn that took it up is committed; until then the
//! control plane has it, and hands it out again to the next life of this process. Brought in twice, it is there once.

mod answers;
mod envelope;
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

use crate::client::{ApiClient, encode_segment};
use crate::control::{CONTROL_FOLDER_ENV, ControlPlaneNotes};
use crate::failure::CommandFailure;
use crate::hot_swap::HotSwap;
use crate::ids;
use waiters::AnswerWaiters;

/// The channel that other instances are.
pub const INSTANCE_CHANNEL: &str = REMOTE_CHANNEL;

/// Seconds for which a poll waits at the control plane.
const POLL_WAIT_SECONDS: u64 = 30;

pub struct BrokerClient {
    client: HotSwap<ApiClient>,
    token: String,
    /// Where a control plane says how it is reached.
    notes: Option<ControlPlaneNotes>,
    /// Which instance this is.
    instance_id: String,
    /// Names this life of the process.
    process_epoch: String,
    db: Db,
    redactor: Arc<HotSwap<Redactor>>,
    /// Agents that may write to other instances, as the config says now.
    granted_agents: RwLock<Vec<String>>,
    tools: Vec<Arc<ToolSpec>>,
    waiters: AnswerWaiters,
}

/// A word nobody else uses.
fn random_nonce() -> String {
    polyclaw_domain::hex::encode_hex(&ids::random_bytes::<16>())
}

impl BrokerClient {
    /// Nothing where no control plane started this process.
    pub fn from_environment(
        db: &Db,
        redactor: &Arc<HotSwap<Redactor>>,
    ) -> Result<Option<Self>, CommandFailure> {
        let stated = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let all = (stated("POLYCLAW_CP_URL"), stated("POLYCLAW_CP_TOKEN"), stated("POLYCLAW_INSTANCE_ID"));
        let (Some(url), Some(token), Some(own)) = all else { return Ok(None) };
        Ok(Some(Self {
            client: HotSwap::new(ApiClient::for_control_url(&url, token.clone())?),
            token,
            notes: stated(CONTROL_FOLDER_ENV).map(|folder| ControlPlaneNotes::in_folder(folder.into())),
            instance_id: own,
            process_epoch: random_nonce(),
            db: db.clone(),
            redactor: Arc::clone(redactor),
            granted_agents: RwLock::default(),
            tools: tools::tool_specs(),
            waiters: AnswerWaiters::default(),
        }))
    }

    /// These agents may write to other instances from now on, and no others.
    pub fn set_granted_agents(&self, agents: &[String]) {
        *self.granted_agents.write().unwrap_or_else(PoisonError::into_inner) = agents.to_vec();
    }

    fn is_granted(&self, agent: &AgentId) -> bool {
        let granted = self.granted_agents.read().unwrap_or_else(PoisonError::into_inner);
        granted.iter().any(|entry| glob_matches(entry, agent.as_str()))
    }

    /// Fetches messages for as long as what is returned lives.
    pub fn start_receivers(self: &Arc<Self>, engine: &Engine) -> JoinSet<()> {
        let mut running = JoinSet::new();
        running.spawn(receive::run(Arc::clone(self), engine.clone()));
        running.spawn(receive::run_answers(Arc::clone(self), engine.clone()));
        running
    }

    /// Asked again with the same word, because no answer came, it gets the same messages.
    async fn fetch_pending(
        &self,
        word: &str,
        limit: usize,
        only_answers: bool,
    ) -> Result<Vec<envelope::LeasedEnvelope>, CommandFailure> {
        let path = format!(
            "/instances/{}/messages/pending?wait={POLL_WAIT_SECONDS}&limit={limit}&lease={word}&process_epoch={}&only_answers={only_answers}",
            encode_segment(&self.instance_id),
            self.process_epoch
        );
        let answer = self.client.get().get(&path).await?;
        let wrong = |error: serde_json::Error| CommandFailure::failed("not_polyclaw", error.to_string());
        serde_json::from_value(answer["messages"].clone()).map_err(wrong)
    }

    /// One that was started again may listen elsewhere.
    fn refresh_control_plane_url(&self) {
        let Some(url) = self.notes.as_ref().and_then(ControlPlaneNotes::url) else { return };
        if url != self.client.get().url()
            && let Ok(client) = ApiClient::for_control_url(&url, self.token.clone())
        {
            tracing::info!(%url, "the control plane is elsewhere now");
            self.client.replace(client);
        }
    }

    /// The receipt says whether secrets were taken out, here or there.
    async fn send_message(&self, message: &Value) -> Result<Value, CommandFailure> {
        let mut clean = message.clone();
        self.redactor.get().redact_payload(&mut clean["payload"]);
        let mut receipt = self.client.get().post("/messages", &clean).await?;
        if clean != *message {
            receipt["redacted"] = true.into();
        }
        Ok(receipt)
    }

    /// A word about a message that was handed to us.
    async fn update_message(
        &self,
        envelope: &envelope::LeasedEnvelope,
        verb: &str,
        more: Value,
    ) -> Result<Value, CommandFailure> {
        let mut body = json!({ "lease": envelope.lease });
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        self.client.get().post(&format!("/messages/{}/{verb}", encode_segment(&envelope.id)), &body).await
    }
}
