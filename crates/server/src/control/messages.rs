//! Messages between instances: send, list and replay. Delivery to recipients is in `pending`.

mod view;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use polyclaw_api::control::messages::{
    EnvelopeDetail, EnvelopeDirection, EnvelopeList, EnvelopeReceipt, EnvelopeView, ListDeadLettersQuery,
    ListEnvelopesQuery, ListInstanceEnvelopesQuery, NewEnvelopeBody,
};
use polyclaw_control::ControlCaller;
use polyclaw_control::message::{NewEnvelope, SentEnvelope};
use polyclaw_domain::envelope;
use polyclaw_domain::id::{EnvelopeId, InstanceId};
use polyclaw_store::registry::envelopes::EnvelopeFilter;

use super::state::ControlState;
use crate::error::Result;
use crate::extract::{JsonBody, PathId, QueryParams};
use crate::paging::{PagePosition, PageRequest};
pub use view::{envelope_detail, envelope_event_view, envelope_view, payload_json};

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
                state: envelope::EnvelopeState::Queued.as_str().to_owned(),
                deduplicated: false,
                redacted: Some(accepted.redacted),
                hop_count: Some(accepted.hop),
                expires_at: Some(accepted.expires_at),
            };
            (StatusCode::CREATED, Json(receipt))
        }
        SentEnvelope::Repeated(id, state) => {
            let (id, state) = (id.to_string(), state.as_str().to_owned());
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
    Ok(Json(EnvelopeList { messages: found.iter().map(envelope_view).collect(), next_cursor }))
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
    Ok(Json(envelope_detail(&one, &events, &app.control.redactor())))
}

/// Sends a dead letter again, with new attempts and a new time to live.
#[utoipa::path(post, path = "/messages/{id}/replay", tag = "messages", params(("id" = String, Path)), responses((status = 200, body = EnvelopeView)))]
pub async fn replay_dead_letter(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
) -> Result<Json<EnvelopeView>> {
    let one = app.control.replay_message(&by, &EnvelopeId::new(id)).await?;
    Ok(Json(envelope_view(&one)))
}
