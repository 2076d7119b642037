//! An instance's client of the control plane's broker. It fetches the instance's messages, puts them into sessions,
//! sends the agents' answers, and lets agents write to other instances.
//!
//! The client stores nothing. A message is acknowledged only after the turn that took it is committed. Until then the
//! control plane keeps it and delivers it again to the next process. A repeated delivery is stored once.

mod answers;
mod envelope;
mod receive;
mod respond;
mod task;
mod tools;
mod waiters;

use std::sync::{Arc, PoisonError, RwLock};

use polyclaw_api::control::messages::{EnvelopeReceipt, NewEnvelopeBody};
use polyclaw_api::control::pending::{FailPendingBody, LeaseBody, PendingEnvelopeList, PollPendingQuery};
use polyclaw_domain::channel::REMOTE_CHANNEL;
use polyclaw_domain::glob::glob_matches;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::tool::ToolSpec;
use polyclaw_engine::Engine;
use polyclaw_store::Db;
use serde::de::IgnoredAny;
use tokio::task::JoinSet;

use crate::client::{ApiClient, encode_segment, with_query};
use crate::control::{CONTROL_FOLDER_ENV, ControlPlaneNotes};
use crate::failure::CommandFailure;
use crate::hot_swap::HotSwap;
use crate::ids;
use waiters::AnswerWaiters;

/// The channel that represents other instances.
pub const INSTANCE_CHANNEL: &str = REMOTE_CHANNEL;

/// Seconds that a long poll waits at the control plane.
const POLL_WAIT_SECONDS: u64 = 30;

pub struct BrokerClient {
    client: HotSwap<ApiClient>,
    token: String,
    /// The file in which a control plane publishes its address.
    notes: Option<ControlPlaneNotes>,
    /// ID of this instance.
    instance_id: String,
    /// Identifies this run of the process.
    process_epoch: String,
    db: Db,
    redactor: Arc<HotSwap<Redactor>>,
    /// Agents that may write to other instances, from the current config.
    granted_agents: RwLock<Vec<String>>,
    tools: Vec<Arc<ToolSpec>>,
    waiters: AnswerWaiters,
}

/// A state change of a leased message.
enum EnvelopeUpdate {
    Acknowledge,
    /// The message could not be processed, for this reason.
    Fail(String),
    Renew,
}

/// Returns a random, unique string.
fn random_nonce() -> String {
    polyclaw_domain::hex::encode_hex(&ids::random_bytes::<16>())
}

impl BrokerClient {
    /// Returns `None` if this process was not started by a control plane.
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

    /// Replaces the set of agents that may write to other instances.
    pub fn set_granted_agents(&self, agents: &[String]) {
        *self.granted_agents.write().unwrap_or_else(PoisonError::into_inner) = agents.to_vec();
    }

    fn is_granted(&self, agent: &AgentId) -> bool {
        let granted = self.granted_agents.read().unwrap_or_else(PoisonError::into_inner);
        granted.iter().any(|entry| glob_matches(entry, agent.as_str()))
    }

    /// Starts fetching messages. Stops when the returned set is dropped.
    pub fn start_receivers(self: &Arc<Self>, engine: &Engine) -> JoinSet<()> {
        let mut running = JoinSet::new();
        running.spawn(receive::run(Arc::clone(self), engine.clone()));
        running.spawn(receive::run_answers(Arc::clone(self), engine.clone()));
        running
    }

    /// Fetches pending messages under a lease name. A repeated request with the same name returns the same messages.
    async fn fetch_pending(
        &self,
        word: &str,
        limit: usize,
        only_answers: bool,
    ) -> Result<Vec<envelope::LeasedEnvelope>, CommandFailure> {
        let path = format!("/instances/{}/messages/pending", encode_segment(&self.instance_id));
        let query = PollPendingQuery {
            wait: Some(POLL_WAIT_SECONDS),
            limit: Some(limit),
            process_epoch: Some(self.process_epoch.clone()),
            lease: Some(word.to_owned()),
            only_answers,
        };
        let list: PendingEnvelopeList = self.client.get().get_as(&with_query(&path, &query)).await?;
        Ok(list.messages.into_iter().map(envelope::LeasedEnvelope::from).collect())
    }

    /// Updates the client if the control plane was restarted at another address.
    fn refresh_control_plane_url(&self) {
        let Some(url) = self.notes.as_ref().and_then(ControlPlaneNotes::url) else { return };
        if url != self.client.get().url()
            && let Ok(client) = ApiClient::for_control_url(&url, self.token.clone())
        {
            tracing::info!(%url, "control plane address changed; using the new one");
            self.client.replace(client);
        }
    }

    /// Sends a message with secrets redacted. The receipt says whether anything was redacted, here or by the control
    /// plane.
    async fn send_message(&self, mut message: NewEnvelopeBody) -> Result<EnvelopeReceipt, CommandFailure> {
        let given = message.payload.clone();
        self.redactor.get().redact_payload(&mut message.payload);
        let mut receipt: EnvelopeReceipt = self.client.get().post_as("/messages", &message).await?;
        if message.payload != given {
            receipt.redacted = Some(true);
        }
        Ok(receipt)
    }

    /// Reports a state change of a leased message to the control plane.
    async fn update_message(
        &self,
        envelope: &envelope::LeasedEnvelope,
        update: &EnvelopeUpdate,
    ) -> Result<(), CommandFailure> {
        let client = self.client.get();
        let path = |verb: &str| format!("/messages/{}/{verb}", encode_segment(&envelope.id));
        let lease = envelope.lease.clone();
        let updated = match update {
            EnvelopeUpdate::Acknowledge => client.post_as(&path("ack"), &LeaseBody { lease }).await,
            EnvelopeUpdate::Fail(error) => {
                client.post_as(&path("fail"), &FailPendingBody { lease, error: error.clone() }).await
            }
            EnvelopeUpdate::Renew => client.post_as(&path("renew"), &LeaseBody { lease }).await,
        };
        updated.map(|_: IgnoredAny| ())
    }
}
