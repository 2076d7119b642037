//! Delivers messages to instances and records the results.

use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use polyclaw_api::control::messages::EnvelopeView;
use polyclaw_api::control::pending::{
    FailPendingBody, LeaseBody, PendingEnvelope, PendingEnvelopeList, PollPendingQuery, RenewedLease,
};
use polyclaw_control::ControlCaller;
use polyclaw_control::message::{MAX_POLL_WAIT, PollRequest};
use polyclaw_domain::id::EnvelopeId;
use polyclaw_store::registry::envelopes::StoredEnvelope;

use super::messages::{envelope_view, payload_json};
use super::state::ControlState;
use crate::error::{Error, Result};
use crate::extract::{JsonBody, PathId, QueryParams};

const MAX_POLLED_MESSAGES: usize = 100;
const MAX_NONCE_LEN: usize = 100;

fn pending_envelope(one: &StoredEnvelope) -> PendingEnvelope {
    PendingEnvelope {
        message: envelope_view(one),
        payload: payload_json(one),
        lease: one.lease.clone().unwrap_or_default(),
        leased_until: one.due_at,
    }
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
    Ok(Json(PendingEnvelopeList { messages: taken.iter().map(pending_envelope).collect() }))
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
    Ok(Json(envelope_view(&one)))
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
    Ok(Json(envelope_view(&one)))
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
