//! Handing messages out to instances, and hearing what became of them.

use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use polyclaw_control::Caller;
use polyclaw_control::message::{LONGEST_WAIT, Wish};
use polyclaw_domain::id::EnvelopeId;
use polyclaw_domain::time::Millis;
use polyclaw_store::registry::envelopes::StoredEnvelope;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::messages::{MessageView, payload};
use super::state::ControlState;
use crate::error::{Error, Result};
use crate::extract::{Body, Id, Query};

const MOST: usize = 100;
const LONGEST_WORD: usize = 100;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Which {
    /// Seconds to wait for a message where there is none; none if not given, 60 at the most.
    #[param(maximum = 60)]
    wait: Option<u64>,
    /// 1 if not given, 100 at the most.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// Names one life of the process that asks. What earlier lives of it hold is handed out again at once.
    life: Option<String>,
    /// A word of your own for the lease. Asked again with it, because no answer came, the same messages are handed out.
    lease: Option<String>,
    /// Only what answers something: `response`, `task.result` and `task.status`.
    #[serde(default)]
    #[param(required = false)]
    only_answers: bool,
}

#[derive(Serialize, ToSchema)]
pub struct PendingList {
    messages: Vec<PendingMessage>,
}

/// A message that is yours until its lease ends.
#[derive(Serialize, ToSchema)]
pub struct PendingMessage {
    #[serde(flatten)]
    message: MessageView,
    #[schema(value_type = Object)]
    payload: Value,
    /// Shown with every word about it.
    lease: String,
    #[schema(value_type = String, format = DateTime)]
    leased_until: Millis,
}

impl From<&StoredEnvelope> for PendingMessage {
    fn from(one: &StoredEnvelope) -> Self {
        Self {
            message: MessageView::from(one),
            payload: payload(one),
            lease: one.lease.clone().unwrap_or_default(),
            leased_until: one.due_at,
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// As it was handed out.
    lease: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// As it was handed out.
    lease: String,
    /// Why, for people.
    #[serde(default)]
    #[schema(required = false)]
    error: String,
}

#[derive(Serialize, ToSchema)]
pub struct Renewed {
    #[schema(value_type = String, format = DateTime)]
    leased_until: Millis,
}

/// The messages of an instance that are due, each under a lease of 90 seconds.
#[utoipa::path(get, path = "/instances/{id}/messages/pending", tag = "messages", params(("id" = String, Path), Which), responses((status = 200, body = PendingList)))]
pub async fn poll(
    State(app): State<ControlState>,
    Extension(by): Extension<Caller>,
    Id(id): Id,
    Query(which): Query<Which>,
) -> Result<Json<PendingList>> {
    let wait = Duration::from_secs(which.wait.unwrap_or(0));
    if wait > LONGEST_WAIT {
        return Err(Error::invalid("wait", format!("at most {} seconds", LONGEST_WAIT.as_secs())));
    }
    let limit = which.limit.unwrap_or(1);
    if !(1..=MOST).contains(&limit) {
        return Err(Error::invalid("limit", format!("1 to {MOST}")));
    }
    for (name, word) in [("life", &which.life), ("lease", &which.lease)] {
        if word.as_ref().is_some_and(|word| word.is_empty() || word.len() > LONGEST_WORD) {
            return Err(Error::invalid(name, format!("1 to {LONGEST_WORD} bytes")));
        }
    }
    let wish = Wish { wait, limit, life: which.life, lease: which.lease, only_answers: which.only_answers };
    let taken = app.control.poll(&by, &id, wish).await?;
    Ok(Json(PendingList { messages: taken.iter().map(PendingMessage::from).collect() }))
}

/// It was taken up, once and for all. Only whoever holds the lease can say so.
#[utoipa::path(post, path = "/messages/{id}/ack", tag = "messages", params(("id" = String, Path)), request_body = Held, responses((status = 200, body = MessageView)))]
pub async fn acknowledge(
    State(app): State<ControlState>,
    Extension(by): Extension<Caller>,
    Id(id): Id,
    Body(held): Body<Held>,
) -> Result<Json<MessageView>> {
    let one = app.control.acknowledge(&by, &EnvelopeId::new(id), &held.lease).await?;
    Ok(Json(MessageView::from(&one)))
}

/// It could not be taken up: it is handed out again later, or given up.
#[utoipa::path(post, path = "/messages/{id}/fail", tag = "messages", params(("id" = String, Path)), request_body = Failure, responses((status = 200, body = MessageView)))]
pub async fn fail(
    State(app): State<ControlState>,
    Extension(by): Extension<Caller>,
    Id(id): Id,
    Body(failure): Body<Failure>,
) -> Result<Json<MessageView>> {
    let one = app.control.fail(&by, &EnvelopeId::new(id), &failure.lease, &failure.error).await?;
    Ok(Json(MessageView::from(&one)))
}

/// It is still being worked on: the lease begins anew.
#[utoipa::path(post, path = "/messages/{id}/renew", tag = "messages", params(("id" = String, Path)), request_body = Held, responses((status = 200, body = Renewed)))]
pub async fn renew(
    State(app): State<ControlState>,
    Extension(by): Extension<Caller>,
    Id(id): Id,
    Body(held): Body<Held>,
) -> Result<Json<Renewed>> {
    let leased_until = app.control.renew(&by, &EnvelopeId::new(id), &held.lease).await?;
    Ok(Json(Renewed { leased_until }))
}
