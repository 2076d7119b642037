//! Removal of unused sessions.

use polyclaw_domain::id::AgentId;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CleanupRequest {
    /// Only report what would be removed.
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct CleanupResult {
    /// Whether this was a dry run.
    pub dry_run: bool,
    /// The sessions that count as unused.
    pub unused: Vec<UnusedSessionView>,
    /// How many of them were removed. The others were used again meanwhile.
    pub removed: usize,
    /// Archive files removed because the archive exceeded its size limit.
    pub dropped_files: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct UnusedSessionView {
    /// The key of the session.
    #[schema(value_type = String)]
    pub session_key: SessionKey,
    /// The agent of the session.
    #[schema(value_type = String)]
    pub agent_id: AgentId,
    /// When the session was last used.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Millis,
    /// The rank among the sessions of its agent; the most recently used one is 1.
    pub place: usize,
}
