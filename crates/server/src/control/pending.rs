//! Handing messages out to instances, and hearing what became of them.

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
    /// Seconds to wait for a message where there is none; none if not given, 60 at the most.
    #[param(maximum = 60)]
    wait: Option<u64>,
    /// 1 if not given, 100 at the most.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// Names one life of the process that asks. What earlier lives of it hold is handed out again at once.
    process_epoch: Option<String>,
    /// A word of your own for the lease. Asked again with it, because no answer came, the same messages are handed out.
    lease: Option<String>,
    /// Only what answers something: `response`, `task.result` and `task.status`.
    #[serde(default)]
    #[param(required = false)]
    only_answers: bool,
}

#[derive(Serialize, ToSchema)]
pub struct PendingEnvelopeList {
    messages: Vec<PendingEnvelope>,
}

/// A message that is yours until its lease ends.
#[derive(Serialize, ToSchema)]
pub struct PendingEnvelope {
    #[serde(flatten)]
    message: EnvelopeView,
    #[schema(value_type = Object)]
    payload: Value,
    /// Shown with every word about it.
    lease: String,
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
    /// As it was handed out.
    lease: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailPendingBody {
    /// As it was handed out.
    lease: String,
    /// Why, for people.
    #[serde(default)]
    #[schema(required = false)]
    error: String,
}

#[derive(Serialize, ToSchema)]
pub struct RenewedLease {
    #[schema(value_type = String, format = DateTime)]
    leased_until: Millis,
}

/// The messages of an instance that are due, each under a lease of 90 seconds.
#[utoipa::path(get, path = "/instances/{id}/messages/pending", tag = "messages", params(("id" = String, Path), PollPendingQuery), responses((status = 200, body = PendingEnvelopeList)))]
pub async fn poll_pending(
    State(app): State<ControlState>,
    Extension(by): Extension<ControlCaller>,
    PathId(id): PathId,
    QueryParams(which): QueryParams<PollPendingQuery>,
) -> Result<Json<PendingEnvelopeList>> {
    let wait = Duration::from_secs(which.wait.unwrap_or(0));
    if wait > MAX_POLL_WAIT {
        return Err(Error::invalid_field("wait", format!("at most {} seconds", MAX_POLL_WAIT.as_secs())));
    }
    let limit = which.limit.unwrap_or(1);
    if !(1..=MAX_POLLED_MESSAGES).contains(&limit) {
        return Err(Error::invalid_field("limit", format!("1 to {MAX_POLLED_MESSAGES}")));
    }
    for (name, word) in [("process_epoch", &which.process_epoch), ("lease", &which.lease)] {
        if word.as_ref().is_some_and(|word| word.is_empty() || word.len() > MAX_NONCE_LEN) {
            return Err(Error::invalid_field(name, format!("1 to {MAX_NONCE_LEN} bytes")));
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

/// It was taken up, once and for all. Only whoever holds the lease can say so.
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

/// It could not be taken up: it is handed out again later, or given up.
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

/// It is still being worked on: the lease begins anew.
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
