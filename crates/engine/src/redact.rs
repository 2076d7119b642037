//! What comes in from outside, cleaned before anything else is done with it. Everything later is made of what was
//! cleaned here: transcripts, frames, events, the outbox.

use polyclaw_domain::channel::SendOutcome;
use polyclaw_domain::message::MessagePart;
use polyclaw_domain::provider::{ModelReply, ProviderError};
use polyclaw_domain::redact::Redactor;

use crate::history_import::ImportedMessage;
use crate::ingress::IngressMessage;

/// A key somebody pastes into a chat is as lost as one in a log.
pub(crate) fn redact_message(redactor: &Redactor, inbound: &mut IngressMessage) {
    redactor.redact_in_place(&mut inbound.text);
    redact_parts(redactor, &mut inbound.parts);
    if let Some(meta) = &mut inbound.meta {
        redactor.redact_json(meta);
    }
    for result in &mut inbound.tool_results {
        redactor.redact_in_place(&mut result.content);
    }
}

/// Keys and addresses are compared, not read: changed they would name something else.
pub(crate) fn has_secret_name(redactor: &Redactor, inbound: &IngressMessage) -> bool {
    let address = &inbound.address;
    let names = [inbound.session.as_str(), &address.channel, &address.account, &address.peer];
    let optional = [&address.thread, &inbound.platform_id, &inbound.idempotency_key];
    let optional = optional.into_iter().flatten().map(String::as_str);
    names.into_iter().chain(optional).any(|name| redactor.contains_secret(name))
}

pub(crate) fn redact_history(redactor: &Redactor, past: &mut [ImportedMessage]) {
    for message in past {
        redactor.redact_in_place(&mut message.text);
        redact_parts(redactor, &mut message.parts);
    }
}

fn redact_parts(redactor: &Redactor, parts: &mut [MessagePart]) {
    for part in parts {
        match part {
            MessagePart::ToolCall(call) => *call = redactor.redact_call(call),
            MessagePart::ToolResult { .. } => {}
            MessagePart::Attachment(attached) => {
                redactor.redact_in_place(&mut attached.name);
                attached
                    .url
                    .iter_mut()
                    .chain(&mut attached.text)
                    .for_each(|text| redactor.redact_in_place(text));
            }
        }
    }
}

/// Its calls keep what the model made up until they have run; what it can not know is taken out at once.
pub(crate) fn redact_reply(redactor: &Redactor, reply: &mut ModelReply) {
    redactor.redact_in_place(&mut reply.text);
    for call in &mut reply.calls {
        redactor.redact_runnable_call(call);
        redactor.redact_in_place(&mut call.id);
        redactor.redact_in_place(&mut call.name);
    }
}

pub(crate) fn redact_provider_error(redactor: &Redactor, mut error: ProviderError) -> ProviderError {
    redactor.redact_in_place(&mut error.message);
    error
}

/// What a platform says of a message may quote the address it was sent to, and that may hold a token.
pub(crate) fn redact_sent(redactor: &Redactor, mut sent: SendOutcome) -> SendOutcome {
    if let SendOutcome::Rejected { reason }
    | SendOutcome::Unknown { reason }
    | SendOutcome::Retry { reason, .. } = &mut sent
    {
        redactor.redact_in_place(reason);
    }
    sent
}
