//! Who would answer a message, and why.

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
    /// The channel it comes by, such as `telegram`.
    channel: String,
    /// The account it comes to; the channel's default account if left out.
    account_id: Option<String>,
    /// The conversation it is written in.
    peer: PeerBody,
    /// The conversation it is a thread of.
    parent_peer: Option<PeerBody>,
    /// The server it is written in.
    guild_id: Option<String>,
    /// What the sender is in that server.
    #[serde(default)]
    roles: Vec<String>,
    /// The workspace it is written in.
    team_id: Option<String>,
    /// The platform's id of whoever wrote; the peer's if left out.
    sender: Option<String>,
    thread: Option<String>,
    topic: Option<String>,
    #[serde(default)]
    text: String,
    /// Whether the account is named in the text, or it replies to the account.
    #[serde(default)]
    mentioned: bool,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerBody {
    /// `direct`, `group` or `channel`; `direct` if left out, and that of the peer for its parent.
    #[schema(value_type = Option<String>)]
    kind: Option<PeerKind>,
    /// The platform's id.
    id: String,
}

#[derive(Serialize, ToSchema)]
pub struct RouteExplanation {
    /// Who answers, the first where several do; null where nobody does.
    #[schema(value_type = Option<String>)]
    agent_id: Option<AgentId>,
    #[schema(value_type = Option<String>)]
    session_key: Option<SessionKey>,
    /// The model it would ask first; null where none is known.
    model: Option<String>,
    /// Every tool there is, and whether it has it.
    tools: Vec<ToolPolicyView>,
    /// `admitted`, `pair` (a stranger is told a code), or why it is ignored.
    admission: &'static str,
    /// What decided: `broadcast`, `prefix`, `focus`, `active`, `binding`, `classifier`, `hook` or `default`; null
    /// where nobody answers: a command, or an account that is not there.
    layer: Option<&'static str>,
    /// The command it is.
    command: Option<&'static str>,
    /// What bindings alone would say: how closely the best one fits.
    #[schema(value_type = String)]
    tier: BindingTier,
    /// Its place in the config, from 0; null where none fits.
    binding: Option<usize>,
    /// A model would be asked whether another agent fits better. It was not asked now.
    asks_classifier: bool,
    /// Everyone that answers: several of a broadcast, each as the first stands above.
    answers: Vec<AnswererView>,
    candidates: Vec<CandidateView>,
}

#[derive(Serialize, ToSchema)]
pub struct AnswererView {
    #[schema(value_type = String)]
    agent_id: AgentId,
    #[schema(value_type = String)]
    session_key: SessionKey,
    /// The model it would ask first; null where none is known.
    model: Option<String>,
    tools: Vec<ToolPolicyView>,
}

#[derive(Serialize, ToSchema)]
pub struct CandidateView {
    /// Its place in the config, from 0.
    binding: usize,
    #[schema(value_type = String)]
    agent_id: AgentId,
    #[schema(value_type = String)]
    tier: BindingTier,
    selected: bool,
    /// Why it does not answer; null for the one that fits best.
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

/// Who would answer a message: what decided, every binding with why it lost, the session, the model and the tools.
/// By the code that decides; nothing is changed and no model asked.
#[utoipa::path(post, path = "/route/explain", tag = "channels", request_body = ExplainRouteBody, responses((status = 200, body = RouteExplanation)))]
pub async fn explain_route(
    State(app): State<AppState>,
    JsonBody(request): JsonBody<ExplainRouteBody>,
) -> Result<Json<RouteExplanation>> {
    if request.peer.id.is_empty() {
        return Err(Error::InvalidBody("peer.id: a conversation has a name".to_owned()));
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
