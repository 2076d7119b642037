//! Matches an answer to the tool call that asked for it. Both are stored by this instance: an answer is accepted only
//! if a turn here asked the instance that answers.

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

/// A tool call that wrote to another instance, with its turn.
pub struct AskingCall {
    pub job: TurnJob,
    pub call: ToolCall,
    /// The call's result is not stored yet.
    pub is_open: bool,
    /// The message that the call's result was made from.
    pub answer_id: Option<String>,
}

/// Returns the correlation ID of a call and everything that follows from it.
pub fn correlation_id(turn: &TurnId, call: &ToolCall) -> String {
    format!("{turn}.{}", short_call_id(&call.id))
}

fn short_call_id(call_id: &str) -> String {
    content_hash(call_id.as_bytes()).chars().take(16).collect()
}

/// Finds the call that a message answers.
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

/// Returns the ID of the answer that a call's result contains.
fn answer_id_in_result(result: &str) -> Option<String> {
    let result: Value = serde_json::from_str(result).ok()?;
    result[ANSWER_ID_FIELD].as_str().map(str::to_owned)
}

/// Returns whether the answering instance is the one that the call wrote to.
fn is_addressed_to(call: &ToolCall, envelope: &LeasedEnvelope) -> bool {
    let named = call.arguments["instance"].as_str();
    named.is_some_and(|named| named == envelope.from || Some(named) == envelope.from_name.as_deref())
}
