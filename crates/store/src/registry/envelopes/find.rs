//! Searching messages.

use polyclaw_domain::envelope::EnvelopeState;
use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_domain::time::Millis;

use super::{StoredEnvelope, envelope_from_row};
use crate::error::Result;
use crate::params;
use crate::tx::Tx;

/// A filter for messages. `None` matches everything.
#[derive(Clone, Debug, Default)]
pub struct EnvelopeFilter {
    pub from: Option<InstanceId>,
    pub to: Option<InstanceId>,
    /// As sender or recipient.
    pub participant: Option<InstanceId>,
    pub kind: Option<String>,
    pub state: Option<EnvelopeState>,
    /// Also matches the message with this id, because the first message of a correlation need not name itself.
    pub correlation: Option<String>,
    pub after: Option<Millis>,
    pub before: Option<Millis>,
    pub hop: Option<u32>,
    /// Paging cursor.
    pub after_seq: Option<i64>,
}

pub fn get(tx: &mut Tx<'_>, id: &EnvelopeId) -> Result<Option<StoredEnvelope>> {
    tx.query_one(select!("WHERE id = $1"), params![id], envelope_from_row)
}

macro_rules! filtered {
    ($lead:literal, $order:literal) => {
        select!(
            "WHERE ",
            $lead,
            " AND ($1 IS NULL OR sender = $1) AND ($2 IS NULL OR recipient = $2) AND ($3 IS NULL OR type = $3)
             AND ($12 IS NULL OR substr(type, 1, length($12)) = $12)
             AND ($4 IS NULL OR state = $4) AND ($6 IS NULL OR created_at > $6) AND ($7 IS NULL OR created_at < $7)
             AND ($8 IS NULL OR hop_count = $8) AND ($11 IS NULL OR sender = $11 OR recipient = $11) ORDER BY seq ",
            $order,
            " LIMIT $10"
        )
    };
}

impl EnvelopeFilter {
    /// Returns the query that starts with the narrowest index for this filter.
    fn select_sql(&self) -> &'static str {
        match self {
            Self { correlation: Some(_), .. } => {
                filtered!("(correlation_id = $5 OR id = $5) AND ($9 IS NULL OR seq > $9)", "ASC")
            }
            Self { state: Some(EnvelopeState::DeadLetter), .. } => {
                filtered!("state = 'dead_letter' AND ($9 IS NULL OR seq < $9)", "DESC")
            }
            Self { to: Some(_), .. } => filtered!("recipient = $2 AND ($9 IS NULL OR seq < $9)", "DESC"),
            Self { from: Some(_), .. } => filtered!("sender = $1 AND ($9 IS NULL OR seq < $9)", "DESC"),
            _ => filtered!("($9 IS NULL OR seq < $9)", "DESC"),
        }
    }
}

/// Returns matching messages, newest first; those of one correlation in the order they were written.
pub fn search(tx: &mut Tx<'_>, filter: &EnvelopeFilter, limit: usize) -> Result<Vec<StoredEnvelope>> {
    // `task.*` matches everything below `task.`, as in a rule.
    let prefix = filter.kind.as_deref().and_then(|kind| kind.strip_suffix('*'));
    let params = params![
        filter.from.as_ref(),
        filter.to.as_ref(),
        filter.kind.as_ref().filter(|_| prefix.is_none()),
        filter.state.map(EnvelopeState::as_str),
        filter.correlation.as_ref(),
        filter.after,
        filter.before,
        filter.hop,
        filter.after_seq,
        limit,
        filter.participant.as_ref(),
        prefix
    ];
    tx.query(filter.select_sql(), params, envelope_from_row)
}
