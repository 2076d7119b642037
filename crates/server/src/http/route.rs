//! Who would answer a message, and why.

use axum::Json;
use axum::extract::State;
use polyclaw_domain::arrival::{Arrival, Peer, PeerKind, Thread, ThreadKind};
use polyclaw_domain::channel::{Address, Letter};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::route::{Candidate, Loss, Tier};
use polyclaw_engine::reception::{self, Answerer, Hooked};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::error::{Error, Result};
use crate::extract::Query;
use crate::http::hooks;
use crate::http::tools::Ruled;
use crate::state::AppState;

/// A message as a channel would report it.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Event {
    /// The channel it comes by, such as `telegram`.
    channel: String,
    /// The account it comes to; the channel's default account if left out.
    account: Option<String>,
    /// The platform's id of the conversation; the sender's if left out.
    peer: Option<String>,
    /// `dm`, `group` or `channel`; `dm` if left out.
    #[param(value_type = Option<String>)]
    kind: Option<PeerKind>,
    /// The platform's id of the conversation it is a thread of.
    parent: Option<String>,
    /// The platform's id of whoever wrote; the peer's if left out.
    sender: Option<String>,
    /// The server it is written in.
    guild: Option<String>,
    /// The workspace it is written in.
    team: Option<String>,
    /// What the sender is in that server: several with commas between them.
    role: Option<String>,
    thread: Option<String>,
    topic: Option<String>,
    text: Option<String>,
    /// Whether the account is named in the text, or it replies to the account; `false` if left out.
    mentioned: Option<bool>,
}

#[derive(Serialize, ToSchema)]
pub struct RouteExplanation {
    /// `admitted`, `pair` (a stranger is told a code), or why it is ignored.
    admission: &'static str,
    /// What decided: `broadcast`, `prefix`, `focus`, `active`, `binding`, `classifier`, `hook` or `default`; null
    /// where nobody answers: a command, or an account that is not there.
    layer: Option<&'static str>,
    /// The command it is.
    command: Option<&'static str>,
    /// What bindings alone would say: how closely the best one fits.
    #[schema(value_type = String)]
    tier: Tier,
    /// Its place in the config, from 0; null where none fits.
    binding: Option<usize>,
    /// A model would be asked whether another agent fits better. It was not asked now.
    asks_classifier: bool,
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
    tools: Vec<Ruled>,
}

#[derive(Serialize, ToSchema)]
pub struct CandidateView {
    /// Its place in the config, from 0.
    binding: usize,
    #[schema(value_type = String)]
    agent_id: AgentId,
    #[schema(value_type = String)]
    tier: Tier,
    wins: bool,
    /// Why it does not answer; null for the one that fits best.
    why: Option<&'static str>,
}

impl From<Answerer> for AnswererView {
    fn from(answerer: Answerer) -> Self {
        Self {
            agent_id: answerer.agent,
            session_key: answerer.session,
            model: answerer.model.map(|model| model.to_string()),
            tools: answerer.tools.into_iter().map(Ruled::from).collect(),
        }
    }
}

impl From<Candidate> for CandidateView {
    fn from(candidate: Candidate) -> Self {
        Self {
            binding: candidate.binding,
            agent_id: candidate.agent,
            tier: candidate.tier,
            wins: candidate.loss.is_none(),
            why: candidate.loss.map(Loss::sentence),
        }
    }
}

impl From<reception::Explanation> for RouteExplanation {
    fn from(told: reception::Explanation) -> Self {
        Self {
            admission: told.admission,
            layer: told.layer.map(reception::Layer::as_str),
            command: told.command,
            tier: told.bindings.tier,
            binding: told.bindings.binding,
            asks_classifier: told.asks_classifier,
            answers: told.answers.into_iter().map(AnswererView::from).collect(),
            candidates: told.bindings.candidates.into_iter().map(CandidateView::from).collect(),
        }
    }
}

/// Who would answer a message: what decided, every binding with why it lost, the session, the model and the tools.
/// By the code that decides; nothing is changed and no model asked.
#[utoipa::path(get, path = "/route/explain", tag = "channels", params(Event), responses((status = 200, body = RouteExplanation)))]
pub async fn explain(
    State(app): State<AppState>,
    Query(event): Query<Event>,
) -> Result<Json<RouteExplanation>> {
    let letter = letter(&app, event)?;
    let address = &letter.address;
    let hook = app.hooks.get(&address.account).filter(|_| address.channel == hooks::CHANNEL);
    let Some(hook) = hook else {
        return Ok(Json(app.engine.explain_route(&letter).await?.into()));
    };
    let session = hooks::session(&address.account, hook, &address.peer, address.thread.as_deref())?;
    Ok(Json(app.engine.explain_hook(Hooked { agent: &hook.agent, session }, &letter).await?.into()))
}

fn letter(app: &AppState, event: Event) -> Result<Letter> {
    let settings = app.engine.settings();
    let default = || settings.reception.default_account(&event.channel).to_owned();
    let account = event.account.unwrap_or_else(default);
    let known = event.peer.clone().or_else(|| event.sender.clone());
    let peer = known.ok_or_else(|| Error::invalid("peer", "a peer or a sender is needed"))?;
    let kind = event.kind.unwrap_or(PeerKind::Dm);
    let thread = |kind| move |id: String| Thread { kind, id };
    let side = event.thread.map(thread(ThreadKind::Thread)).or(event.topic.map(thread(ThreadKind::Topic)));
    let roles = event.role.unwrap_or_default();
    let roles = roles.split(',').map(str::trim).filter(|role| !role.is_empty()).map(str::to_owned).collect();
    Ok(Letter {
        address: Address {
            channel: event.channel.clone(),
            account: account.clone(),
            peer: peer.clone(),
            thread: side.as_ref().map(|side| side.id.clone()),
        },
        arrival: Arrival {
            channel: event.channel,
            account,
            sender: event.sender.unwrap_or_else(|| peer.clone()),
            peer: Peer { kind, id: peer },
            parent: event.parent.map(|id| Peer { kind, id }),
            thread: side,
            guild: event.guild,
            team: event.team,
            roles,
        },
        platform_id: String::new(),
        text: event.text.unwrap_or_default(),
        parts: Vec::new(),
        mentioned: event.mentioned.unwrap_or(false),
        sender_name: None,
    })
}
