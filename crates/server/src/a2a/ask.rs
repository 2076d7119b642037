//! `message/send`: adds a message to a session; its turn is the task.

use std::time::Duration;

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::hex::encode_hex;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::message;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::hub::HubSubscription;
use polyclaw_engine::ingress::{AcceptedMessage, IngressMessage};
use polyclaw_store::{Tx, messages};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::rpc::{RpcCall, RpcError};
use super::task::{self, A2A_CHANNEL};
use crate::error::Error;
use crate::extract::bounded_key;
use crate::http::attachments;
use crate::state::AppState;

/// How long a blocking call waits. After this the caller gets the unfinished task.
const MAX_BLOCKING_WAIT: Duration = Duration::from_secs(600);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct A2aSendParams {
    message: A2aMessage,
    configuration: Option<A2aSendConfiguration>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct A2aMessage {
    message_id: String,
    parts: Vec<A2aPart>,
    context_id: Option<String>,
    task_id: Option<String>,
}

#[derive(Deserialize)]
struct A2aPart {
    kind: String,
    text: Option<String>,
    data: Option<Value>,
    file: Option<A2aFile>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct A2aFile {
    name: Option<String>,
    mime_type: Option<String>,
    bytes: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct A2aSendConfiguration {
    blocking: Option<bool>,
    history_length: Option<usize>,
}

/// A message that is stored durably.
pub struct AcceptedA2aMessage {
    pub accepted: AcceptedMessage,
    pub watch: HubSubscription,
}

pub async fn send_message(app: &AppState, agent: &AgentId, call: &RpcCall) -> Result<Value, RpcError> {
    let mut params: A2aSendParams = call.parse_params()?;
    let wanted = params.configuration.take().unwrap_or_default();
    let AcceptedA2aMessage { accepted, watch } = accept_message(app, agent, params).await?;
    if wanted.blocking != Some(false) {
        app.engine
            .wait_for_answer_with(watch, &accepted.session_key, &accepted.turn_id, MAX_BLOCKING_WAIT)
            .await?;
    }
    task::load_task(app, agent, &accepted.turn_id, wanted.history_length).await
}

pub async fn accept_message(
    app: &AppState,
    agent: &AgentId,
    params: A2aSendParams,
) -> Result<AcceptedA2aMessage, RpcError> {
    let message = params.message;
    if message.message_id.is_empty() {
        return Err(RpcError::invalid_params("messageId is empty"));
    }
    let context = context_id(app, agent, &message).await?;
    let session = bounded_key(SessionKey::for_direct(agent, A2A_CHANNEL, &context), "contextId")?;
    let address =
        ChatAddress { channel: "api".into(), account: A2A_CHANNEL.into(), peer: context, thread: None };
    let (files, words): (Vec<_>, Vec<_>) = message.parts.into_iter().partition(|part| part.kind == "file");
    let inbound = IngressMessage {
        parts: image_parts(files)?,
        idempotency_key: Some(message.message_id),
        ..IngressMessage::from_person(session, agent.clone(), address, text_parts(words)?)
    };
    // Subscribes before the message is accepted, so that the end of its turn is never missed.
    let watch = app.engine.hub.subscribe(&inbound.session);
    let accepted = app.engine.accept_message(inbound).await?;
    Ok(AcceptedA2aMessage { accepted, watch })
}

/// Returns the context of a message. Without one, it is derived from the message id, so that a repeated message gets
/// the same context.
async fn context_id(app: &AppState, agent: &AgentId, message: &A2aMessage) -> Result<String, RpcError> {
    let stated = message.context_id.clone().filter(|context| !context.is_empty());
    let Some(task) = &message.task_id else {
        return Ok(stated.unwrap_or_else(|| encode_hex(&Sha256::digest(&message.message_id)[..16])));
    };
    let job = task::find_turn(app, agent, task).await?;
    let own = task::context_of_session(&job.session).unwrap_or_default();
    if stated.is_some_and(|stated| stated != own) {
        return Err(RpcError::invalid_params("the task belongs to another context"));
    }
    // A repeat of a message that was accepted while the task ran is still the same message.
    if task::is_task_over(job.state) && !is_known(app, job.session, message.message_id.clone()).await? {
        return Err(RpcError::task_ended());
    }
    Ok(own)
}

async fn is_known(app: &AppState, session: SessionKey, key: String) -> Result<bool, RpcError> {
    let read = move |tx: &mut Tx<'_>| messages::find_by_key(tx, &session, &key);
    Ok(app.engine.db().read(read).await.map_err(Error::from)?.is_some())
}

/// Extracts images contained in the message. Nothing is fetched on behalf of a caller.
fn image_parts(parts: Vec<A2aPart>) -> Result<Vec<message::MessagePart>, RpcError> {
    let one = |part: A2aPart| {
        let file = part.file.ok_or_else(|| RpcError::invalid_params("a part has no file"))?;
        let data = file.bytes.ok_or_else(|| RpcError::unsupported_content("file with a uri"))?;
        let (name, kind) = (file.name.as_deref(), file.mime_type.as_deref());
        Ok(attachments::image_part(name.unwrap_or("image"), kind.unwrap_or("file"), &data)?)
    };
    let parts = parts.into_iter().map(one).collect::<Result<Vec<_>, RpcError>>()?;
    Ok(attachments::check_image_count(parts)?)
}

fn text_parts(parts: Vec<A2aPart>) -> Result<String, RpcError> {
    let one = |part: A2aPart| match part {
        A2aPart { kind, text: Some(text), .. } if kind == "text" => Ok(text),
        A2aPart { kind, data: Some(data), .. } if kind == "data" => Ok(data.to_string()),
        A2aPart { kind, .. } if kind == "text" || kind == "data" => {
            Err(RpcError::invalid_params(format!("a part has no {kind}")))
        }
        A2aPart { kind, .. } => {
            Err(RpcError::unsupported_content(&kind.chars().take(40).collect::<String>()))
        }
    };
    let all = parts.into_iter().map(one).collect::<Result<Vec<_>, _>>()?;
    Ok(all.join("\n\n"))
}
