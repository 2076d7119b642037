//! Sessions: list, create, show, change, stop, reset and delete.

use polyclaw_domain::id::{AgentId, SessionId, TeamId, TurnId};
use polyclaw_domain::job::JobLane;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::session::SessionStatus;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::TeamRole;
use polyclaw_domain::time::Millis;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct SessionView {
    /// The key that identifies the session.
    #[schema(value_type = String)]
    pub session_key: SessionKey,
    /// The id of the current conversation. It changes when the session is reset.
    #[schema(value_type = String)]
    pub session_id: SessionId,
    /// The agent that the session belongs to.
    #[schema(value_type = String)]
    pub agent_id: AgentId,
    /// The agent that answers now. It differs from `agent_id` after a switch.
    #[schema(value_type = String)]
    pub active_agent_id: AgentId,
    /// The model chosen for this session. Null means the agent's own.
    #[schema(value_type = Option<String>)]
    pub model: Option<ModelRef>,
    /// The session that started this one. Null if none did.
    #[schema(value_type = Option<String>)]
    pub owner_session_key: Option<SessionKey>,
    /// How many sub-agent spawns lie between this session and a person.
    pub spawn_depth: u32,
    /// How many delegations lie between this session and a person.
    pub delegation_depth: u32,
    /// The queue of its turns: `main`, `subagent`, `teammate`, `cron` or `internal_announce`.
    #[schema(value_type = String)]
    pub lane: JobLane,
    /// The channel of the conversation it was started from.
    pub channel: Option<String>,
    /// Whether answers of this session may be delivered to channels.
    pub deliver_policy: bool,
    /// Whether the session may send messages to channels on its own.
    pub send_policy: bool,
    /// The team that the session leads or belongs to, even if that has ended. Same as `team_name`.
    pub team: Option<String>,
    /// The id of that team.
    #[schema(value_type = Option<String>)]
    pub team_id: Option<TeamId>,
    /// The name of that team.
    pub team_name: Option<String>,
    /// The color of a team member, as `#RRGGBB`.
    pub teammate_color: Option<String>,
    /// The role in the team: `lead` or `member`.
    #[schema(value_type = Option<String>)]
    pub team_role: Option<TeamRole>,
    /// `active` or `archived`.
    #[schema(value_type = String)]
    pub status: SessionStatus,
    /// The title of the session.
    pub title: Option<String>,
    /// Messages and interrupted tasks that wait to be handled.
    pub queued: usize,
    /// The running turn, if any.
    #[schema(value_type = Option<String>)]
    pub running_turn_id: Option<TurnId>,
    /// Input and output tokens of all calls with reported usage. Null if there are none.
    pub tokens: Option<i64>,
    /// When the session was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
    /// When something last happened in the session.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Millis,
}

#[derive(Clone, Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListSessionsQuery {
    /// Only sessions of this agent.
    #[param(value_type = Option<String>)]
    pub agent: Option<AgentId>,
    /// `active` (default) or `archived`, which are sub-agents that ended some time ago.
    #[param(value_type = Option<String>)]
    pub status: Option<SessionStatus>,
    /// Only sessions started by this session.
    #[param(value_type = Option<String>)]
    pub owner: Option<SessionKey>,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    pub limit: Option<usize>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct SessionList {
    /// The sessions of this page.
    pub sessions: Vec<SessionView>,
    /// The cursor of the next page. Null on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// The agent of the session. Defaults to the one that the bindings select for the web chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub agent: Option<AgentId>,
    /// The title of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct CreatedSession {
    /// The key of the new session.
    #[schema(value_type = String)]
    pub session_key: SessionKey,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionPatch {
    /// The agent that answers from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub active_agent_id: Option<AgentId>,
    /// The model as `provider/model`. Null resets it to the agent's own.
    #[serde(default, deserialize_with = "present_or_null", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub model: Option<Option<ModelRef>>,
    /// Whether answers of this session may be delivered to channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliver_policy: Option<bool>,
    /// Whether the session may send messages to channels on its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_policy: Option<bool>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct StopResult {
    /// The turn that was stopped, if one was running.
    #[schema(value_type = Option<String>)]
    pub turn_id: Option<TurnId>,
    /// The number of interrupted tasks that were dropped.
    pub interrupted_tasks: usize,
    /// What was stopped with it, recursively: the label of each run and the name of each team member.
    pub children: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct QueuedTurnView {
    /// The queued turn.
    #[schema(value_type = String)]
    pub turn_id: TurnId,
}

/// Distinguishes `null` from an absent field.
fn present_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<ModelRef>>, D::Error> {
    Option::deserialize(from).map(Some)
}
