//! Explains which agent would answer a message.

use polyclaw_domain::id::AgentId;
use polyclaw_domain::inbound::PeerKind;
use polyclaw_domain::route::{BindingCandidate, BindingTier};
use polyclaw_domain::session_key::SessionKey;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::tools::ToolPolicyView;

/// A message as a channel would report it.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainRouteBody {
    /// The channel the message comes from, such as `telegram`.
    pub channel: String,
    /// The account that receives it. Defaults to the channel's default account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// The conversation it is written in.
    pub peer: PeerBody,
    /// The conversation that contains the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_peer: Option<PeerBody>,
    /// The server (guild) it is written in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guild_id: Option<String>,
    /// The sender's roles in that server.
    #[serde(default)]
    pub roles: Vec<String>,
    /// The workspace (team) it is written in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_id: Option<String>,
    /// The platform's id of the sender. Defaults to the peer's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// The thread it is written in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The forum topic it is written in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The text of the message.
    #[serde(default)]
    pub text: String,
    /// Whether the message mentions the account or replies to it.
    #[serde(default)]
    pub mentioned: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerBody {
    /// `direct`, `group` or `channel`. Defaults to `direct`, and for a parent to the kind of the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub kind: Option<PeerKind>,
    /// The platform's id of the conversation.
    pub id: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct RouteExplanation {
    /// The agent that answers, the first one of a broadcast. Null if nobody answers.
    #[schema(value_type = Option<String>)]
    pub agent_id: Option<AgentId>,
    /// The session it answers in.
    #[schema(value_type = Option<String>)]
    pub session_key: Option<SessionKey>,
    /// The model it would use first. Null if none is known.
    pub model: Option<String>,
    /// Every tool, with the policy decision for this message.
    pub tools: Vec<ToolPolicyView>,
    /// `admitted`, `pair` (the unknown sender gets a pairing code), or why the message is ignored.
    pub admission: String,
    /// The rule that selected the agent: `broadcast`, `prefix`, `focus`, `active`, `binding`, `classifier`, `hook` or
    /// `default`. Null if nobody answers, because the message is a command or its account does not exist.
    pub layer: Option<String>,
    /// The chat command in the message, if it is one.
    pub command: Option<String>,
    /// How specific the best matching binding is: `peer`, `parent_peer`, `peer_wildcard`, `guild_roles`, `guild`,
    /// `team`, `account`, `channel` or `default`.
    #[schema(value_type = String)]
    pub tier: BindingTier,
    /// The index of that binding in the config, from 0. Null if none matches.
    pub binding: Option<usize>,
    /// Whether a model would be asked if another agent fits better. This call does not ask it.
    pub asks_classifier: bool,
    /// All agents that answer. A broadcast has several, of which the first is described above.
    pub answers: Vec<AnswererView>,
    /// Every binding, and why it was rejected.
    pub candidates: Vec<CandidateView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct AnswererView {
    /// The agent that answers.
    #[schema(value_type = String)]
    pub agent_id: AgentId,
    /// The session it answers in.
    #[schema(value_type = String)]
    pub session_key: SessionKey,
    /// The model it would use first. Null if none is known.
    pub model: Option<String>,
    /// Every tool, with the policy decision for this message.
    pub tools: Vec<ToolPolicyView>,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct CandidateView {
    /// The index of the binding in the config, from 0.
    pub binding: usize,
    /// The agent that the binding names.
    #[schema(value_type = String)]
    pub agent_id: AgentId,
    /// How specific the binding is, as in `tier` above.
    #[schema(value_type = String)]
    pub tier: BindingTier,
    /// Whether this binding matches best.
    pub selected: bool,
    /// Why the binding was rejected. Null for the one that matches best.
    pub rejected_because: Option<String>,
}

impl From<BindingCandidate> for CandidateView {
    fn from(candidate: BindingCandidate) -> Self {
        Self {
            binding: candidate.binding,
            agent_id: candidate.agent,
            tier: candidate.tier,
            selected: candidate.mismatch.is_none(),
            rejected_because: candidate.mismatch.map(|mismatch| mismatch.description().to_owned()),
        }
    }
}
