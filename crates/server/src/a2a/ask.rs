//! `message/send`: a message becomes one of a session, and its turn the task.

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

use super::rpc::{Call, Fault};
use super::task::{self, CHANNEL};
use crate::error::Error;
use crate::extract::bounded;
use crate::http::attachments;
use crate::state::AppState;

/// A caller that waits gets the task as it stands then.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Params {
    message: Message,
    configuration: Option<Configuration>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    message_id: String,
    parts: Vec<Part>,
    context_id: Option<String>,
    task_id: Option<String>,
}

#[derive(Deserialize)]
struct Part {
    kind: String,
    text: Option<String>,
    data: Option<Value>,
    file: Option<File>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    name: Option<String>,
    mime_type: Option<String>,
    bytes: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    blocking: Option<bool>,
    history_length: Option<usize>,
}

/// A message that is durable now.
pub struct Asked {
    pub accepted: AcceptedMessage,
    pub watch: HubSubscription,
}

pub async fn send(app: &AppState, agent: &AgentId, call: &Call) -> Result<Value, Fault> {
    let mut params: Params = call.params()?;
    let wanted = params.configuration.take().unwrap_or_default();
    let Asked { accepted, watch } = accept(app, agent, params).await?;
    if wanted.blocking != Some(false) {
        app.engine
            .wait_for_answer_with(watch, &accepted.session_key, &accepted.turn_id, LONGEST_WAIT)
            .await?;
    }
    task::stored(app, agent, &accepted.turn_id, wanted.history_length).await
}

pub async fn accept(app: &AppState, agent: &AgentId, params: Params) -> Result<Asked, Fault> {
    let message = params.message;
    if message.message_id.is_empty() {
        return Err(Fault::params("messageId is empty"));
    }
    let context = context(app, agent, &message).await?;
    let session = bounded(SessionKey::for_direct(agent, CHANNEL, &context), "contextId")?;
    let address = ChatAddress { channel: "api".into(), account: CHANNEL.into(), peer: context, thread: None };
    let (files, words): (Vec<_>, Vec<_>) = message.parts.into_iter().partition(|part| part.kind == "file");
    let inbound = IngressMessage {
        parts: images(files)?,
        idempotency_key: Some(message.message_id),
        ..IngressMessage::from_person(session, agent.clone(), address, text(words)?)
    };
    // Begun before the message is accepted: the end of its turn is then never missed.
    let watch = app.engine.hub.subscribe(&inbound.session);
    let accepted = app.engine.accept_message(inbound).await?;
    Ok(Asked { accepted, watch })
}

/// The context a message belongs to. One that begins a new one begins the same one when it is sent again.
async fn context(app: &AppState, agent: &AgentId, message: &Message) -> Result<String, Fault> {
    let stated = message.context_id.clone().filter(|context| !context.is_empty());
    let Some(task) = &message.task_id else {
        return Ok(stated.unwrap_or_else(|| encode_hex(&Sha256::digest(&message.message_id)[..16])));
    };
    let job = task::find(app, agent, task).await?;
    let own = task::context_of(&job.session).unwrap_or_default();
    if stated.is_some_and(|stated| stated != own) {
        return Err(Fault::params("the task is of another context"));
    }
    // One that was taken while the task ran is the same message still.
    if task::is_over(job.state) && !is_known(app, job.session, message.message_id.clone()).await? {
        return Err(Fault::closed());
    }
    Ok(own)
}

async fn is_known(app: &AppState, session: SessionKey, key: String) -> Result<bool, Fault> {
    let read = move |tx: &mut Tx<'_>| messages::find_by_key(tx, &session, &key);
    Ok(app.engine.db().read(read).await.map_err(Error::from)?.is_some())
}

/// Images that the message itself holds; nothing is fetched for a caller.
fn images(parts: Vec<Part>) -> Result<Vec<message::MessagePart>, Fault> {
    let one = |part: Part| {
        let file = part.file.ok_or_else(|| Fault::params("a part lacks file"))?;
        let data = file.bytes.ok_or_else(|| Fault::content("file with a uri"))?;
        let (name, kind) = (file.name.as_deref(), file.mime_type.as_deref());
        Ok(attachments::image(name.unwrap_or("image"), kind.unwrap_or("file"), &data)?)
    };
    let parts = parts.into_iter().map(one).collect::<Result<Vec<_>, Fault>>()?;
    Ok(attachments::bounded(parts)?)
}

fn text(parts: Vec<Part>) -> Result<String, Fault> {
    let one = |part: Part| match part {
        Part { kind, text: Some(text), .. } if kind == "text" => Ok(text),
        Part { kind, data: Some(data), .. } if kind == "data" => Ok(data.to_string()),
        Part { kind, .. } if kind == "text" || kind == "data" => {
            Err(Fault::params(format!("a part lacks {kind}")))
        }
        Part { kind, .. } => Err(Fault::content(&kind.chars().take(40).collect::<String>())),
    };
    let all = parts.into_iter().map(one).collect::<Result<Vec<_>, _>>()?;
    Ok(all.join("\n\n"))
}
