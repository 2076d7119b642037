//! Messages between instances: sent, looked at, sent again. Handing them out is in `pending`.

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
    messages: Vec<EnvelopeView>,
    next_cursor: Option<String>,
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListEnvelopesQuery {
    /// Both by id or name.
    from: Option<String>,
    to: Option<String>,
    /// From it or to it.
    instance: Option<String>,
    /// One type, or all below one: `task.*`.
    r#type: Option<String>,
    /// What became of it; `state` is another name for it.
    #[param(inline)]
    status: Option<view::EnvelopeStateName>,
    #[param(inline)]
    state: Option<view::EnvelopeStateName>,
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
pub enum EnvelopeDirection {
    In,
    Out,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListInstanceEnvelopesQuery {
    /// `in`: what it was sent. `out`: what it sent.
    #[param(inline)]
    direction: EnvelopeDirection,
    #[param(minimum = 1)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListDeadLettersQuery {
    #[param(minimum = 1)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewEnvelopeBody {
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
pub struct EnvelopeReceipt {
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

/// The instance a word means; what is no instance's any more is taken for the id of one that was deleted.
async fn resolve_instance(app: &ControlState, word: Option<String>) -> Option<InstanceId> {
    let word = word?;
    Some(app.control.get(&word).await.map_or_else(|_| InstanceId::new(word), |view| view.id))
}

/// Messages, by what is known of them.
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

/// What was given up, the newest first.
#[utoipa::path(get, path = "/messages/dead_letter", tag = "messages", params(ListDeadLettersQuery), responses((status = 200, body = EnvelopeList)))]
pub async fn list_dead_letters(
    State(app): State<ControlState>,
    QueryParams(which): QueryParams<ListDeadLettersQuery>,
) -> Result<Json<EnvelopeList>> {
    let filter =
        EnvelopeFilter { state: Some(envelope::EnvelopeState::DeadLetter), ..EnvelopeFilter::default() };
    envelope_page(&app, filter, "dead", (which.limit, which.cursor)).await
}

/// What one instance was sent, or sent, the newest first.
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

/// One message with all that happened to it.
#[utoipa::path(get, path = "/messages/{id}", tag = "messages", params(("id" = String, Path)), responses((status = 200, body = EnvelopeDetail)))]
pub async fn show_envelope(
    State(app): State<ControlState>,
    PathId(id): PathId,
) -> Result<Json<EnvelopeDetail>> {
    let (one, events) = app.control.get_message(&EnvelopeId::new(id)).await?;
    Ok(Json(EnvelopeDetail::from_envelope(&one, &events, &app.control.redactor())))
}

/// Sends a dead letter again, with all its attempts and all its time.
#[utoipa::path(post, path = "/messages/{id}/replay", tag = "messages", params(("id" = String, Path)), responses((status = 200, body = EnvelopeView)))]
pub async fn replay_dead_letter(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
) -> Result<Json<EnvelopeView>> {
    let one = app.control.replay_message(&by, &EnvelopeId::new(id)).await?;
    Ok(Json(EnvelopeView::from(&one)))
}
