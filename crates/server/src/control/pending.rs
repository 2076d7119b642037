//! Delivers messages to instances and records the results.

use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use polyclaw_control::ControlCaller;
use polyclaw_control::message::{MAX_POLL_WAIT, PollRequest};
use polyclaw_domain::id::EnvelopeId;
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::envelopes::StoredEnvelope;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::messages::{EnvelopeView, payload_json};
use super::state::ControlState;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathId, QueryParams};

const MAX_POLLED_MESSAGES: usize = 100;
const MAX_NONCE_LEN: usize = 100;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PollPendingQuery {
    /// How many seconds to wait for a message if there is none. Default 0, at most 60.
    #[param(maximum = 60)]
    wait: Option<u64>,
    /// The number of messages. Default 1, at most 100.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// Identifies the polling process. Messages leased to earlier processes of the instance are delivered again
    /// immediately.
    process_epoch: Option<String>,
    /// A lease id chosen by the caller. Polling again with it after a lost response returns the same messages.
    lease: Option<String>,
    /// Only messages that answer others: `response`, `task.result` and `task.status`.
    #[serde(default)]
    #[param(required = false)]
    only_answers: bool,
}

#[derive(Serialize, ToSchema)]
pub struct PendingEnvelopeList {
    /// The leased messages.
    messages: Vec<PendingEnvelope>,
}

/// A message leased to the caller.
#[derive(Serialize, ToSchema)]
pub struct PendingEnvelope {
    #[serde(flatten)]
    message: EnvelopeView,
    /// The content of the message.
    #[schema(value_type = Object)]
    payload: Value,
    /// The id of the lease, required to acknowledge, fail or renew.
    lease: String,
    /// When the lease expires.
    #[schema(value_type = String, format = DateTime)]
    leased_until: Millis,
}

impl From<&StoredEnvelope> for PendingEnvelope {
    fn from(one: &StoredEnvelope) -> Self {
        Self {
            message: EnvelopeView::from(one),
            payload: payload_json(one),
            lease: one.lease.clone().unwrap_or_default(),
            leased_until: one.due_at,
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseBody {
    /// The lease id from the poll.
    lease: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailPendingBody {
    /// The lease id from the poll.
    lease: String,
    /// The reason, for people.
    #[serde(default)]
    #[schema(required = false)]
    error: String,
}

#[derive(Serialize, ToSchema)]
pub struct RenewedLease {
    /// When the renewed lease expires.
    #[schema(value_type = String, format = DateTime)]
    leased_until: Millis,
}

/// Leases the due messages of an instance for 90 seconds each.
#[utoipa::path(get, path = "/instances/{id}/messages/pending", tag = "messages", params(("id" = String, Path), PollPendingQuery), responses((status = 200, body = PendingEnvelopeList)))]
pub async fn poll_pending(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    QueryParams(which): QueryParams<PollPendingQuery>,
) -> Result<Json<PendingEnvelopeList>> {
    let wait = Duration::from_secs(which.wait.unwrap_or(0));
    if wait > MAX_POLL_WAIT {
        return Err(Error::invalid_field(
            "wait",
            format!("must be at most {} seconds", MAX_POLL_WAIT.as_secs()),
        ));
    }
    let limit = which.limit.unwrap_or(1);
    if !(1..=MAX_POLLED_MESSAGES).contains(&limit) {
        return Err(Error::invalid_field("limit", format!("must be from 1 to {MAX_POLLED_MESSAGES}")));
    }
    for (name, word) in [("process_epoch", &which.process_epoch), ("lease", &which.lease)] {
        if word.as_ref().is_some_and(|word| word.is_empty() || word.len() > MAX_NONCE_LEN) {
            return Err(Error::invalid_field(name, format!("must be 1 to {MAX_NONCE_LEN} bytes")));
        }
    }
    let request = PollRequest {
        wait,
        limit,
        process_epoch: which.process_epoch,
        lease: which.lease,
        only_answers: which.only_answers,
    };
    let taken = app.control.poll_messages(&by, &id, request).await?;
    Ok(Json(PendingEnvelopeList { messages: taken.iter().map(PendingEnvelope::from).collect() }))
}

/// Acknowledges a message as processed.
/// Only the holder of the lease can do this, and it is final.
#[utoipa::path(post, path = "/messages/{id}/ack", tag = "messages", params(("id" = String, Path)), request_body = LeaseBody, responses((status = 200, body = EnvelopeView)))]
pub async fn acknowledge_pending(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    JsonBody(held): JsonBody<LeaseBody>,
) -> Result<Json<EnvelopeView>> {
    let one = app.control.acknowledge_message(&by, &EnvelopeId::new(id), &held.lease).await?;
    Ok(Json(EnvelopeView::from(&one)))
}

/// Reports a failed delivery.
/// The message is delivered again later, or becomes a dead letter.
#[utoipa::path(post, path = "/messages/{id}/fail", tag = "messages", params(("id" = String, Path)), request_body = FailPendingBody, responses((status = 200, body = EnvelopeView)))]
pub async fn fail_pending(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    JsonBody(failure): JsonBody<FailPendingBody>,
) -> Result<Json<EnvelopeView>> {
    let one = app.control.fail_message(&by, &EnvelopeId::new(id), &failure.lease, &failure.error).await?;
    Ok(Json(EnvelopeView::from(&one)))
}

/// Renews the lease of a message that is still being processed.
#[utoipa::path(post, path = "/messages/{id}/renew", tag = "messages", params(("id" = String, Path)), request_body = LeaseBody, responses((status = 200, body = RenewedLease)))]
pub async fn renew_pending(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    JsonBody(held): JsonBody<LeaseBody>,
) -> Result<Json<RenewedLease>> {
    let leased_until = app.control.renew_message(&by, &EnvelopeId::new(id), &held.lease).await?;
    Ok(Json(RenewedLease { leased_until }))
}
