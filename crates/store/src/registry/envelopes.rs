//! Messages between instances, from acceptance to acknowledgement or dead letter. Each change of state is one
//! conditional statement, in one transaction with its event.

// Defined above the modules that use them.
macro_rules! columns {
    () => {
        "seq, id, sender, recipient,
         (SELECT name FROM instances WHERE instances.id = messages.sender),
         (SELECT name FROM instances WHERE instances.id = messages.recipient),
         type, payload, redacted, correlation_id, idempotency_key, hop_count, state, attempts, max_retries, ttl_ms,
         due_at, expires_at, lease, error, created_at, updated_at, trace_id"
    };
}

macro_rules! select {
    ($($rest:expr),+) => {
        concat!("SELECT ", columns!(), " FROM messages ", $($rest),+)
    };
}

mod accept;
mod events;
mod find;
mod lease;
mod outcome;

use polyclaw_domain::envelope::EnvelopeState;
use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::{Row, Tx};

pub use accept::{
    AcceptedEnvelope, EnvelopeDraft, EnvelopePayload, EnvelopeRefusal, EnvelopeVerdict, accept_envelope,
    delete_expired_keys,
};
pub use events::{EnvelopeEvent, EnvelopeEventFilter, list_events, list_recent_events};
pub use find::{EnvelopeFilter, get, search};
pub use lease::{EnvelopePoll, lease_due, next_due_at, renew_lease, requeue_earlier_epochs};
pub use outcome::{
    AckOutcome, ReplayOutcome, acknowledge, fail_delivery, list_recipients_to_start, replay_dead_letter,
    sweep_expired,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEnvelope {
    pub seq: i64,
    pub id: EnvelopeId,
    pub from: InstanceId,
    pub to: InstanceId,
    /// Current names; `None` for a deleted instance.
    pub from_name: Option<String>,
    pub to_name: Option<String>,
    pub kind: String,
    /// JSON text.
    pub payload: String,
    /// A secret in the payload was redacted.
    pub redacted: bool,
    pub correlation: Option<String>,
    pub key: Option<String>,
    pub hop: u32,
    /// Trace given by the sender, if any.
    pub trace: Option<String>,
    pub state: EnvelopeState,
    pub attempts: u32,
    pub max_retries: u32,
    pub ttl_ms: i64,
    pub due_at: Millis,
    pub expires_at: Millis,
    pub lease: Option<String>,
    pub error: Option<String>,
    pub created_at: Millis,
    pub updated_at: Millis,
}

fn envelope_from_row(row: &Row<'_>) -> Result<StoredEnvelope> {
    Ok(StoredEnvelope {
        seq: row.int(0)?,
        id: EnvelopeId::new(row.text(1)?),
        from: InstanceId::new(row.text(2)?),
        to: InstanceId::new(row.text(3)?),
        from_name: row.opt_text(4)?,
        to_name: row.opt_text(5)?,
        kind: row.text(6)?,
        payload: row.text(7)?,
        redacted: row.flag(8)?,
        correlation: row.opt_text(9)?,
        key: row.opt_text(10)?,
        hop: row.as_u32(11)?,
        trace: row.opt_text(22)?,
        state: row.parse_column(12, EnvelopeState::parse)?,
        attempts: row.as_u32(13)?,
        max_retries: row.as_u32(14)?,
        ttl_ms: row.int(15)?,
        due_at: row.time(16)?,
        expires_at: row.time(17)?,
        lease: row.opt_text(18)?,
        error: row.opt_text(19)?,
        created_at: row.time(20)?,
        updated_at: row.time(21)?,
    })
}

/// Records in each queued message that its recipient could not be started.
pub fn record_start_failure(tx: &mut Tx<'_>, recipient: &InstanceId, why: &str) -> Result<()> {
    const SQL: &str = "UPDATE messages SET error = $2 WHERE recipient = $1 AND state = 'queued'";
    tx.execute(SQL, params![recipient, why]).map(drop)
}
