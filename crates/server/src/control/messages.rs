//! Messages between instances: sent, looked at, sent again. Handing them out is in `pending`.

mod view;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use polyclaw_control::Caller;
use polyclaw_control::message::{Letter, Sent};
use polyclaw_domain::envelope;
use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::envelopes::EnvelopeFilter;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

pub use view::{MessageDetail, MessageEvent, MessageView, payload};

use super::state::ControlState;
use crate::error::Result;
use crate::extract::{Body, Id, Query};
use crate::paging::{Paging, Place};

#[derive(Serialize, ToSchema)]
pub struct MessageList {
    messages: Vec<MessageView>,
    next_cursor: Option<String>,
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Which {
    /// Both by id or name.
    from: Option<String>,
    to: Option<String>,
    /// From it or to it.
    instance: Option<String>,
    /// One type, or all below one: `task.*`.
    r#type: Option<String>,
    /// What became of it; `state` is another name for it.
    #[param(inline)]
    status: Option<view::StateWord>,
    #[param(inline)]
    state: Option<view::StateWord>,
    /// Those of one correlation come in the order in which they were written, with the message that has it as its id;
    /// all others the newest first.
    correlation_id: Option<String>,
    /// Written after, and before, this time.
    #[param(value_type = Option<String>, format = DateTime)]
    after: Option<Millis>,
    #[param(value_type = Option<String>, format = DateTime)]
    before: Option<Millis>,
    hop_count: Option<u8>,
    #[param(minimum = 1)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    In,
    Out,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WhichOf {
    /// `in`: what it was sent. `out`: what it sent.
    #[param(inline)]
    direction: Direction,
    #[param(minimum = 1)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Paged {
    #[param(minimum = 1)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    /// For an operator: the instance they write for. An instance writes for itself.
    from: Option<String>,
    /// By id or name.
    to: String,
    /// Words joined by dots, such as `task.handoff`.
    r#type: String,
    /// At most 64 KiB as JSON.
    #[serde(default)]
    #[schema(value_type = Object)]
    payload: Value,
    /// The same in a question and everything that follows from it.
    correlation_id: Option<String>,
    /// Sent twice within a day with the same key, a message is there once.
    idempotency_key: Option<String>,
    /// Through how many instances the sender knows it to have gone. Never less than the broker knows.
    #[serde(default)]
    #[schema(required = false)]
    hop_count: u32,
    /// The trace of the turn that writes it: it goes on in the other instance.
    trace_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct MessageReceipt {
    id: String,
    state: &'static str,
    /// The key was used before: this is the first message with it.
    deduplicated: bool,
    /// Something in the payload was a secret and was taken out; null of an earlier message.
    redacted: Option<bool>,
    hop_count: Option<u32>,
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Millis>,
}

/// Sends a message from one instance to another.
#[utoipa::path(post, path = "/messages", tag = "messages", request_body = NewMessage,
    responses((status = 201, body = MessageReceipt), (status = 200, description = "The key was used before", body = MessageReceipt)))]
pub async fn send(
    State(app): State<ControlState>,
    Extension(by): Extension<Caller>,
    Body(new): Body<NewMessage>,
) -> Result<(StatusCode, Json<MessageReceipt>)> {
    let letter = Letter {
        from: new.from,
        to: new.to,
        kind: new.r#type,
        payload: new.payload,
        correlation: new.correlation_id,
        key: new.idempotency_key,
        hop: new.hop_count,
        trace: new.trace_id,
    };
    Ok(match app.control.send(&by, letter).await? {
        Sent::New(accepted) => {
            let receipt = MessageReceipt {
                id: accepted.id.to_string(),
                state: envelope::EnvelopeState::Queued.as_str(),
                deduplicated: false,
                redacted: Some(accepted.redacted),
                hop_count: Some(accepted.hop),
                expires_at: Some(accepted.expires_at),
            };
            (StatusCode::CREATED, Json(receipt))
        }
        Sent::Repeated(id, state) => {
            let (id, state) = (id.to_string(), state.as_str());
            let receipt = MessageReceipt {
                id,
                state,
                deduplicated: true,
                redacted: None,
                hop_count: None,
                expires_at: None,
            };
            (StatusCode::OK, Json(receipt))
        }
    })
}

async fn page(
    app: &ControlState,
    filter: EnvelopeFilter,
    list: &'static str,
    (limit, cursor): (Option<usize>, Option<String>),
) -> Result<Json<MessageList>> {
    let paging = Paging::of(list, limit, cursor.as_deref())?;
    let place = paging.after.as_ref().map(|place| place.at);
    let mut found =
        app.control.messages(EnvelopeFilter { after_seq: place, ..filter }, paging.wanted()).await?;
    let next_cursor = paging.cut(&mut found, |one| Place { at: one.seq, id: String::new() });
    Ok(Json(MessageList { messages: found.iter().map(MessageView::from).collect(), next_cursor }))
}

/// The instance a word means; what is no instance's any more is taken for the id of one that was deleted.
async fn instance(app: &ControlState, word: Option<String>) -> Option<InstanceId> {
    let word = word?;
    Some(app.control.get(&word).await.map_or_else(|_| InstanceId::new(word), |view| view.id))
}

/// Messages, by what is known of them.
#[utoipa::path(get, path = "/messages", tag = "messages", params(Which), responses((status = 200, body = MessageList)))]
pub async fn list(State(app): State<ControlState>, Query(which): Query<Which>) -> Result<Json<MessageList>> {
    let filter = EnvelopeFilter {
        from: instance(&app, which.from).await,
        to: instance(&app, which.to).await,
        participant: instance(&app, which.instance).await,
        kind: which.r#type,
        state: which.status.or(which.state).map(Into::into),
        correlation: which.correlation_id,
        after: which.after,
        before: which.before,
        hop: which.hop_count.map(u32::from),
        after_seq: None,
    };
    let list = if filter.correlation.is_some() { "together" } else { "messages" };
    page(&app, filter, list, (which.limit, which.cursor)).await
}

/// What was given up, the newest first.
#[utoipa::path(get, path = "/messages/dead_letter", tag = "messages", params(Paged), responses((status = 200, body = MessageList)))]
pub async fn dead(State(app): State<ControlState>, Query(which): Query<Paged>) -> Result<Json<MessageList>> {
    let filter =
        EnvelopeFilter { state: Some(envelope::EnvelopeState::DeadLetter), ..EnvelopeFilter::default() };
    page(&app, filter, "dead", (which.limit, which.cursor)).await
}

/// What one instance was sent, or sent, the newest first.
#[utoipa::path(get, path = "/instances/{id}/messages", tag = "messages", params(("id" = String, Path), WhichOf), responses((status = 200, body = MessageList)))]
pub async fn of_instance(
    State(app): State<ControlState>,
    Id(id): Id,
    Query(which): Query<WhichOf>,
) -> Result<Json<MessageList>> {
    let own = Some(app.control.get(&id).await?.id);
    let (filter, list) = match which.direction {
        Direction::In => (EnvelopeFilter { to: own, ..EnvelopeFilter::default() }, "in"),
        Direction::Out => (EnvelopeFilter { from: own, ..EnvelopeFilter::default() }, "out"),
    };
    page(&app, filter, list, (which.limit, which.cursor)).await
}

/// One message with all that happened to it.
#[utoipa::path(get, path = "/messages/{id}", tag = "messages", params(("id" = String, Path)), responses((status = 200, body = MessageDetail)))]
pub async fn show(State(app): State<ControlState>, Id(id): Id) -> Result<Json<MessageDetail>> {
    let (one, events) = app.control.message(&EnvelopeId::new(id)).await?;
    Ok(Json(MessageDetail::of(&one, &events, &app.control.redactor())))
}

/// Sends a dead letter again, with all its attempts and all its time.
#[utoipa::path(post, path = "/messages/{id}/replay", tag = "messages", params(("id" = String, Path)), responses((status = 200, body = MessageView)))]
pub async fn replay(
    State(app): State<ControlState>,
    Extension(by): Extension<Caller>,
    Id(id): Id,
) -> Result<Json<MessageView>> {
    let one = app.control.replay(&by, &EnvelopeId::new(id)).await?;
    Ok(Json(MessageView::from(&one)))
}
