//! Explains which agent would answer a message.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::channel::{ChatAddress, InboundMessage, WEBHOOK_CHANNEL};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::inbound::{ChatPeer, ChatThread, InboundContext, PeerKind, ThreadKind};
use polyclaw_domain::route::{BindingCandidate, BindingMismatch, BindingTier};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::inbound::{self, AnsweringAgent};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::extract::JsonBody;
use crate::http::tools::ToolPolicyView;
use crate::state::AppState;

/// A message as a channel would report it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainRouteBody {
    /// The channel the message comes from, such as `telegram`.
    channel: String,
    /// The account that receives it. Defaults to the channel's default account.
    account_id: Option<String>,
    /// The conversation it is written in.
    peer: PeerBody,
    /// The conversation that contains the thread.
    parent_peer: Option<PeerBody>,
    /// The server (guild) it is written in.
    guild_id: Option<String>,
    /// The sender's roles in that server.
    #[serde(default)]
    roles: Vec<String>,
    /// The workspace (team) it is written in.
    team_id: Option<String>,
    /// The platform's id of the sender. Defaults to the peer's id.
    sender: Option<String>,
    /// The thread it is written in.
    thread: Option<String>,
    /// The forum topic it is written in.
    topic: Option<String>,
    /// The text of the message.
    #[serde(default)]
    text: String,
    /// Whether the message mentions the account or replies to it.
    #[serde(default)]
    mentioned: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerBody {
    /// `direct`, `group` or `channel`. Defaults to `direct`, and for a parent to the kind of the peer.
    #[schema(value_type = Option<String>)]
    kind: Option<PeerKind>,
    /// The platform's id of the conversation.
    id: String,
}

#[derive(Serialize, ToSchema)]
pub struct RouteExplanation {
    /// The agent that answers, the first one of a broadcast. Null if nobody answers.
    #[schema(value_type = Option<String>)]
    agent_id: Option<AgentId>,
    /// The session it answers in.
    #[schema(value_type = Option<String>)]
    session_key: Option<SessionKey>,
    /// The model it would use first. Null if none is known.
    model: Option<String>,
    /// Every tool, with the policy decision for this message.
    tools: Vec<ToolPolicyView>,
    /// `admitted`, `pair` (the unknown sender gets a pairing code), or why the message is ignored.
    admission: &'static str,
    /// The rule that selected the agent: `broadcast`, `prefix`, `focus`, `active`, `binding`, `classifier`, `hook` or
    /// `default`. Null if nobody answers, because the message is a command or its account does not exist.
    layer: Option<&'static str>,
    /// The chat command in the message, if it is one.
    command: Option<&'static str>,
    /// How specific the best matching binding is: `peer`, `parent_peer`, `peer_wildcard`, `guild_roles`, `guild`,
    /// `team`, `account`, `channel` or `default`.
    #[schema(value_type = String)]
    tier: BindingTier,
    /// The index of that binding in the config, from 0. Null if none matches.
    binding: Option<usize>,
    /// Whether a model would be asked if another agent fits better. This call does not ask it.
    asks_classifier: bool,
    /// All agents that answer. A broadcast has several, of which the first is described above.
    answers: Vec<AnswererView>,
    /// Every binding, and why it was rejected.
    candidates: Vec<CandidateView>,
}

#[derive(Serialize, ToSchema)]
pub struct AnswererView {
    /// The agent that answers.
    #[schema(value_type = String)]
    agent_id: AgentId,
    /// The session it answers in.
    #[schema(value_type = String)]
    session_key: SessionKey,
    /// The model it would use first. Null if none is known.
    model: Option<String>,
    /// Every tool, with the policy decision for this message.
    tools: Vec<ToolPolicyView>,
}

#[derive(Serialize, ToSchema)]
pub struct CandidateView {
    /// The index of the binding in the config, from 0.
    binding: usize,
    /// The agent that the binding names.
    #[schema(value_type = String)]
    agent_id: AgentId,
    /// How specific the binding is, as in `tier` above.
    #[schema(value_type = String)]
    tier: BindingTier,
    /// Whether this binding matches best.
    selected: bool,
    /// Why the binding was rejected. Null for the one that matches best.
    rejected_because: Option<&'static str>,
}

impl From<AnsweringAgent> for AnswererView {
    fn from(answerer: AnsweringAgent) -> Self {
        Self {
            agent_id: answerer.agent,
            session_key: answerer.session,
            model: answerer.model.map(|model| model.to_string()),
            tools: answerer.tools.into_iter().map(ToolPolicyView::from).collect(),
        }
    }
}

impl From<BindingCandidate> for CandidateView {
    fn from(candidate: BindingCandidate) -> Self {
        Self {
            binding: candidate.binding,
            agent_id: candidate.agent,
            tier: candidate.tier,
            selected: candidate.mismatch.is_none(),
            rejected_because: candidate.mismatch.map(BindingMismatch::description),
        }
    }
}

impl From<inbound::InboundExplanation> for RouteExplanation {
    fn from(explanation: inbound::InboundExplanation) -> Self {
        let first = explanation.answers.first().cloned().map(AnswererView::from);
        let (agent_id, session_key, model, tools) = match first {
            Some(first) => (Some(first.agent_id), Some(first.session_key), first.model, first.tools),
            None => (None, None, None, Vec::new()),
        };
        Self {
            agent_id,
            session_key,
            model,
            tools,
            admission: explanation.admission,
            layer: explanation.layer.map(inbound::RouteLayer::as_str),
            command: explanation.command,
            tier: explanation.bindings.tier,
            binding: explanation.bindings.binding,
            asks_classifier: explanation.asks_classifier,
            answers: explanation.answers.into_iter().map(AnswererView::from).collect(),
            candidates: explanation.bindings.candidates.into_iter().map(CandidateView::from).collect(),
        }
    }
}

/// Explains which agent would answer a message, and why.
/// Returns the deciding rule, every binding with the reason of its rejection, the session, the model and the tools.
/// Uses the same code as real messages, but changes nothing and calls no model.
#[utoipa::path(post, path = "/route/explain", tag = "channels", request_body = ExplainRouteBody, responses((status = 200, body = RouteExplanation)))]
pub async fn explain_route(
    State(app): State<AppState>,
    JsonBody(request): JsonBody<ExplainRouteBody>,
) -> Result<Json<RouteExplanation>> {
    if request.peer.id.is_empty() {
        return Err(Error::InvalidBody("peer.id: must not be empty".to_owned()));
    }
    let message = to_inbound_message(&app, request);
    let address = &message.address;
    let hook = app.hooks.get(&address.account).filter(|_| address.channel == WEBHOOK_CHANNEL);
    let Some(hook) = hook else {
        return Ok(Json(app.engine.explain_route(&message).await?.into()));
    };
    let hooked = hook.resolve_target(&app, address)?;
    Ok(Json(app.engine.explain_hook(&hooked, &message).await?.into()))
}

fn to_inbound_message(app: &AppState, notice: ExplainRouteBody) -> InboundMessage {
    let settings = app.engine.settings();
    let default = || settings.inbound.default_account(&notice.channel).to_owned();
    let account = notice.account_id.unwrap_or_else(default);
    let kind = notice.peer.kind.unwrap_or(PeerKind::Dm);
    let thread = |kind| move |id: String| ChatThread { kind, id };
    let side = notice.thread.map(thread(ThreadKind::Thread)).or(notice.topic.map(thread(ThreadKind::Topic)));
    InboundMessage {
        address: ChatAddress {
            channel: notice.channel.clone(),
            account: account.clone(),
            peer: notice.peer.id.clone(),
            thread: side.as_ref().map(|side| side.id.clone()),
        },
        context: InboundContext {
            channel: notice.channel,
            account,
            sender: notice.sender.unwrap_or_else(|| notice.peer.id.clone()),
            parent: notice
                .parent_peer
                .map(|parent| ChatPeer { kind: parent.kind.unwrap_or(kind), id: parent.id }),
            peer: ChatPeer { kind, id: notice.peer.id },
            thread: side,
            guild: notice.guild_id,
            team: notice.team_id,
            roles: notice.roles,
        },
        platform_id: String::new(),
        text: notice.text,
        attachments: Vec::new(),
        mentioned: notice.mentioned,
        sender_name: None,
    }
}
