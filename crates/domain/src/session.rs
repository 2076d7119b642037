//! A session: durable conversation state.

use serde::{Deserialize, Serialize};

use crate::channel::ChatAddress;
use crate::id::{AgentId, SessionId};
use crate::job::JobLane;
use crate::locale::ConversationLanguage;
use crate::policy::InheritedTools;
use crate::provider::{ModelRef, ReasoningEffort};
use crate::session_key::SessionKey;
use crate::team::TeamRole;
use crate::time::Millis;

#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    pub key: SessionKey,
    pub id: SessionId,
    pub agent: AgentId,
    /// The agent a person switched to, else the same as `agent`.
    pub active_agent: AgentId,
    /// The model a person selected. It is never silently replaced by a fallback.
    pub model_override: Option<ModelRef>,
    /// How much its model reasons, if its creator set that.
    pub thinking: Option<ReasoningEffort>,
    pub delivers: bool,
    pub sends: bool,
    pub owner: Option<SessionKey>,
    pub lane: JobLane,
    pub spawn_depth: u32,
    pub delegation_depth: u32,
    /// Upper bound of its permissions. `None` if no other turn spawned it.
    pub inherited: Option<InheritedTools>,
    /// The conversation it first came from; replies use the address of their own message.
    pub address: Option<ChatAddress>,
    /// The session to which messages written here are redirected.
    pub focus: Option<SessionKey>,
    /// After this time without a message, the next one starts a new conversation.
    pub ttl_ms: Option<i64>,
    /// Language of what the engine itself writes to its people.
    pub language: ConversationLanguage,
    /// Its role in a team. The team tables store which team.
    pub team_role: Option<TeamRole>,
    pub status: SessionStatus,
    pub title: Option<String>,
    pub created_at: Millis,
    pub updated_at: Millis,
}

impl Session {
    /// Returns a new session for a person. The caller changes what differs.
    pub fn new_for_person(key: SessionKey, id: SessionId, agent: AgentId, now: Millis) -> Self {
        Self {
            key,
            id,
            active_agent: agent.clone(),
            agent,
            model_override: None,
            thinking: None,
            delivers: true,
            sends: true,
            owner: None,
            lane: JobLane::Main,
            spawn_depth: 0,
            delegation_depth: 0,
            inherited: None,
            address: None,
            focus: None,
            ttl_ms: None,
            language: ConversationLanguage::default(),
            team_role: None,
            status: SessionStatus::Active,
            title: None,
            created_at: now,
            updated_at: now,
        }
    }
}

/// The activity of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionActivity {
    Running,
    Queued,
    Idle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    Active,
    Archived,
}

impl SessionStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Archived => "archived",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Archived].into_iter().find(|status| status.as_str() == text)
    }
}
