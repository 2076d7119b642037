//! What ties an answer to the call that asked for it. Both are rows of this instance: an answer is believed where a
//! turn of ours asked that very instance, and nowhere else.

use polyclaw_domain::audit::content_hash;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::message::{MessagePart, tool_calls};
use polyclaw_domain::tool::ToolCall;
use polyclaw_store::jobs::TurnJob;
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::{Tx, intents, jobs, messages};
use serde_json::Value;

use super::envelope::LeasedEnvelope;
use super::tools::{ANSWER_ID_FIELD, TOOL_NAMES};

/// A call that wrote to another instance, and the turn it is of.
pub struct AskingCall {
    pub job: TurnJob,
    pub call: ToolCall,
    /// Its result is not stored yet.
    pub is_open: bool,
    /// The message that its result was made of.
    pub answer_id: Option<String>,
}

/// The correlation of everything that follows from a call.
pub fn correlation_id(turn: &TurnId, call: &ToolCall) -> String {
    format!("{turn}.{}", short_call_id(&call.id))
}

fn short_call_id(call_id: &str) -> String {
    content_hash(call_id.as_bytes()).chars().take(16).collect()
}

/// The call a message is an answer to.
pub fn find_asking_call(
    tx: &mut Tx<'_>,
    envelope: &LeasedEnvelope,
) -> polyclaw_store::Result<Option<AskingCall>> {
    let Some((turn, hash)) = envelope.thread_id().split_once('.') else { return Ok(None) };
    let turn = TurnId::new(turn);
    let Some(job) = jobs::get(tx, &turn)? else { return Ok(None) };
    let steps = messages::list_by_turn(tx, &turn)?;
    let made = steps.iter().flat_map(|step| tool_calls(&step.parts));
    let call = made
        .into_iter()
        .find(|call| TOOL_NAMES.contains(&call.name.as_str()) && short_call_id(&call.id) == hash);
    let Some(call) = call.filter(|call| is_addressed_to(call, envelope)).cloned() else { return Ok(None) };
    let is_open = intents::is_unfinished(tx, &turn, &call.id)?;
    let given =
        steps.iter().find(|step| is_result(step, &call.id)).and_then(|step| answer_id_in_result(&step.text));
    Ok(Some(AskingCall { job, call, is_open, answer_id: given }))
}

fn is_result(step: &SessionMessage, call: &str) -> bool {
    step.parts.iter().any(|part| matches!(part, MessagePart::ToolResult { call_id, .. } if call_id == call))
}

/// Which answer a call that waited was given, as its result says.
fn answer_id_in_result(result: &str) -> Option<String> {
    let result: Value = serde_json::from_str(result).ok()?;
    result[ANSWER_ID_FIELD].as_str().map(str::to_owned)
}

/// Whether whoever answers is whom the call wrote to.
fn is_addressed_to(call: &ToolCall, envelope: &LeasedEnvelope) -> bool {
    let named = call.arguments["instance"].as_str();
    named.is_some_and(|named| named == envelope.from || Some(named) == envelope.from_name.as_deref())
}
