//! Explains which agent would answer a message.

use axum::Json;
use axum::extract::State;
use polyclaw_api::route::{AnswererView, CandidateView, ExplainRouteBody, RouteExplanation};
use polyclaw_domain::channel::{ChatAddress, InboundMessage, WEBHOOK_CHANNEL};
use polyclaw_domain::inbound::{ChatPeer, ChatThread, InboundContext, PeerKind, ThreadKind};
use polyclaw_engine::inbound::{self, AnsweringAgent};

use crate::error::{Error, Result};
use crate::extract::JsonBody;
use crate::http::tools::tool_policy_view;
use crate::state::AppState;

fn answerer_view(answerer: AnsweringAgent) -> AnswererView {
    AnswererView {
        agent_id: answerer.agent,
        session_key: answerer.session,
        model: answerer.model.map(|model| model.to_string()),
        tools: answerer.tools.into_iter().map(tool_policy_view).collect(),
    }
}

fn route_explanation(explanation: inbound::InboundExplanation) -> RouteExplanation {
    let first = explanation.answers.first().cloned().map(answerer_view);
    let (agent_id, session_key, model, tools) = match first {
        Some(first) => (Some(first.agent_id), Some(first.session_key), first.model, first.tools),
        None => (None, None, None, Vec::new()),
    };
    RouteExplanation {
        agent_id,
        session_key,
        model,
        tools,
        admission: explanation.admission.to_owned(),
        layer: explanation.layer.map(|layer| layer.as_str().to_owned()),
        command: explanation.command.map(str::to_owned),
        tier: explanation.bindings.tier,
        binding: explanation.bindings.binding,
        asks_classifier: explanation.asks_classifier,
        answers: explanation.answers.into_iter().map(answerer_view).collect(),
        candidates: explanation.bindings.candidates.into_iter().map(CandidateView::from).collect(),
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
        return Ok(Json(route_explanation(app.engine.explain_route(&message).await?)));
    };
    let hooked = hook.resolve_target(&app, address)?;
    Ok(Json(route_explanation(app.engine.explain_hook(&hooked, &message).await?)))
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
