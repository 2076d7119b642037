//! Messages between instances: send, list and replay. Delivery to recipients is in `pending`.

mod view;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use polyclaw_control::ControlCaller;
use polyclaw_control::message::{NewEnvelope, SentEnvelope};
use polyclaw_domain::envelope;
use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::envelopes::EnvelopeFilter;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

pub use view::{EnvelopeDetail, EnvelopeEventView, EnvelopeView, payload_json};

use super::state::ControlState;
use crate::error::Result;
use crate::extract::{JsonBody, PathId, QueryParams};
use crate::paging::{PagePosition, PageRequest};

#[derive(Serialize, ToSchema)]
pub struct EnvelopeList {
    /// The messages of this page.
    messages: Vec<EnvelopeView>,
    /// The cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListEnvelopesQuery {
    /// Only messages from this instance, by id or name.
    from: Option<String>,
    /// Only messages to this instance, by id or name.
    to: Option<String>,
    /// Only messages from or to this instance, by id or name.
    instance: Option<String>,
    /// Only messages of this type, or of all types below one: `task.*`.
    r#type: Option<String>,
    /// Only messages in this state. `state` is an alias.
    #[param(inline)]
    status: Option<view::EnvelopeStateName>,
    /// Only messages in this state. An alias of `status`.
    #[param(inline)]
    state: Option<view::EnvelopeStateName>,
    /// Only messages with this correlation id, and the message that has it as its own id. They are sorted oldest
    /// first; all other lists are newest first.
    correlation_id: Option<String>,
    /// Only messages sent after this time.
    #[param(value_type = Option<String>, format = DateTime)]
    after: Option<Millis>,
    /// Only messages sent before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    before: Option<Millis>,
    /// Only messages with this hop count.
    hop_count: Option<u8>,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeDirection {
    /// Received messages.
    In,
    /// Sent messages.
    Out,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListInstanceEnvelopesQuery {
    /// `in` for messages the instance received, `out` for messages it sent.
    #[param(inline)]
    direction: EnvelopeDirection,
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListDeadLettersQuery {
    /// Page size. At most 1000, default 100.
    #[param(minimum = 1)]
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEnvelopeBody {
    /// The sending instance, by id or name. Required for operators; an instance can only send for itself.
    from: Option<String>,
    /// The receiving instance, by id or name.
    to: String,
    /// The type: words joined by dots, such as `task.handoff`.
    r#type: String,
    /// The content, at most 64 KiB as JSON.
    #[serde(default)]
    #[schema(value_type = Object)]
    payload: Value,
    /// An id shared by a message and everything that follows from it.
    correlation_id: Option<String>,
    /// Messages with the same key within a day are stored only once.
    idempotency_key: Option<String>,
    /// How many instances the message has passed through, as far as the sender knows. The broker raises a value that
    /// is too low.
    #[serde(default)]
    #[schema(required = false)]
    hop_count: u32,
    /// The trace of the turn that sends the message. It continues in the receiving instance.
    trace_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct EnvelopeReceipt {
    /// The id of the message.
    id: String,
    /// The state of the message.
    state: &'static str,
    /// Whether the key was used before. The response then describes the first message.
    deduplicated: bool,
    /// Whether secrets were removed from the payload. Null for a repeated message.
    redacted: Option<bool>,
    /// The hop count after acceptance. Null for a repeated message.
    hop_count: Option<u32>,
    /// When the message expires. Null for a repeated message.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Millis>,
}

/// Sends a message from one instance to another.
#[utoipa::path(post, path = "/messages", tag = "messages", request_body = NewEnvelopeBody,
    responses((status = 201, body = EnvelopeReceipt), (status = 200, description = "The key was used before", body = EnvelopeReceipt)))]
pub async fn send_envelope(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    JsonBody(new): JsonBody<NewEnvelopeBody>,
) -> Result<(StatusCode, Json<EnvelopeReceipt>)> {
    let envelope = NewEnvelope {
        from: new.from,
        to: new.to,
        kind: new.r#type,
        payload: new.payload,
        correlation: new.correlation_id,
        key: new.idempotency_key,
        hop: new.hop_count,
        trace: new.trace_id,
    };
    Ok(match app.control.send_message(&by, envelope).await? {
        SentEnvelope::New(accepted) => {
            let receipt = EnvelopeReceipt {
                id: accepted.id.to_string(),
                state: envelope::EnvelopeState::Queued.as_str(),
                deduplicated: false,
                redacted: Some(accepted.redacted),
                hop_count: Some(accepted.hop),
                expires_at: Some(accepted.expires_at),
            };
            (StatusCode::CREATED, Json(receipt))
        }
        SentEnvelope::Repeated(id, state) => {
            let (id, state) = (id.to_string(), state.as_str());
            let receipt = EnvelopeReceipt {
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

async fn envelope_page(
    app: &ControlState,
    filter: EnvelopeFilter,
    list: &'static str,
    (limit, cursor): (Option<usize>, Option<String>),
) -> Result<Json<EnvelopeList>> {
    let paging = PageRequest::from_query(list, limit, cursor.as_deref())?;
    let place = paging.after.as_ref().map(|place| place.at);
    let mut found =
        app.control.list_messages(EnvelopeFilter { after_seq: place, ..filter }, paging.row_limit()).await?;
    let next_cursor = paging.cut_page(&mut found, |one| PagePosition { at: one.seq, id: String::new() });
    Ok(Json(EnvelopeList { messages: found.iter().map(EnvelopeView::from).collect(), next_cursor }))
}

/// Resolves an instance by id or name. An unknown word is taken as the id of a deleted instance.
async fn resolve_instance(app: &ControlState, word: Option<String>) -> Option<InstanceId> {
    let word = word?;
    Some(app.control.get(&word).await.map_or_else(|_| InstanceId::new(word), |view| view.id))
}

/// Lists messages.
#[utoipa::path(get, path = "/messages", tag = "messages", params(ListEnvelopesQuery), responses((status = 200, body = EnvelopeList)))]
pub async fn list_envelopes(
    State(app): State<ControlState>,
    QueryParams(which): QueryParams<ListEnvelopesQuery>,
) -> Result<Json<EnvelopeList>> {
    let filter = EnvelopeFilter {
        from: resolve_instance(&app, which.from).await,
        to: resolve_instance(&app, which.to).await,
        participant: resolve_instance(&app, which.instance).await,
        kind: which.r#type,
        state: which.status.or(which.state).map(Into::into),
        correlation: which.correlation_id,
        after: which.after,
        before: which.before,
        hop: which.hop_count.map(u32::from),
        after_seq: None,
    };
    let list = if filter.correlation.is_some() { "together" } else { "messages" };
    envelope_page(&app, filter, list, (which.limit, which.cursor)).await
}

/// Lists dead letters, newest first.
/// A dead letter is a message whose delivery was given up.
#[utoipa::path(get, path = "/messages/dead_letter", tag = "messages", params(ListDeadLettersQuery), responses((status = 200, body = EnvelopeList)))]
pub async fn list_dead_letters(
    State(app): State<ControlState>,
    QueryParams(which): QueryParams<ListDeadLettersQuery>,
) -> Result<Json<EnvelopeList>> {
    let filter =
        EnvelopeFilter { state: Some(envelope::EnvelopeState::DeadLetter), ..EnvelopeFilter::default() };
    envelope_page(&app, filter, "dead", (which.limit, which.cursor)).await
}

/// Lists the messages that an instance received or sent, newest first.
#[utoipa::path(get, path = "/instances/{id}/messages", tag = "messages", params(("id" = String, Path), ListInstanceEnvelopesQuery), responses((status = 200, body = EnvelopeList)))]
pub async fn list_instance_envelopes(
    State(app): State<ControlState>,
    PathId(id): PathId,
    QueryParams(which): QueryParams<ListInstanceEnvelopesQuery>,
) -> Result<Json<EnvelopeList>> {
    let own = Some(app.control.get(&id).await?.id);
    let (filter, list) = match which.direction {
        EnvelopeDirection::In => (EnvelopeFilter { to: own, ..EnvelopeFilter::default() }, "in"),
        EnvelopeDirection::Out => (EnvelopeFilter { from: own, ..EnvelopeFilter::default() }, "out"),
    };
    envelope_page(&app, filter, list, (which.limit, which.cursor)).await
}

/// Returns a message with its payload and events.
#[utoipa::path(get, path = "/messages/{id}", tag = "messages", params(("id" = String, Path)), responses((status = 200, body = EnvelopeDetail)))]
pub async fn show_envelope(
    State(app): State<ControlState>,
    PathId(id): PathId,
) -> Result<Json<EnvelopeDetail>> {
    let (one, events) = app.control.get_message(&EnvelopeId::new(id)).await?;
    Ok(Json(EnvelopeDetail::from_envelope(&one, &events, &app.control.redactor())))
}

/// Sends a dead letter again, with new attempts and a new time to live.
#[utoipa::path(post, path = "/messages/{id}/replay", tag = "messages", params(("id" = String, Path)), responses((status = 200, body = EnvelopeView)))]
pub async fn replay_dead_letter(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
) -> Result<Json<EnvelopeView>> {
    let one = app.control.replay_message(&by, &EnvelopeId::new(id)).await?;
    Ok(Json(EnvelopeView::from(&one)))
}
