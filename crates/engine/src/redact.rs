//! Redacts everything that comes in from outside before it is processed. Transcripts, frames, events and the outbox are
//! built only from redacted text.

use polyclaw_domain::channel::SendOutcome;
use polyclaw_domain::message::MessagePart;
use polyclaw_domain::provider::{ModelReply, ProviderError};
use polyclaw_domain::redact::Redactor;

use crate::history_import::ImportedMessage;
use crate::ingress::IngressMessage;

/// Redacts an inbound message. A key pasted into a chat is as exposed as one in a log.
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

/// Whether a key or an address contains a secret. They are compared verbatim, so redacting them would name something
/// else.
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

/// Redacts a model's reply. Arguments of its calls keep what the model wrote until the calls have run; secrets that the
/// model cannot know are removed immediately.
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

/// Redacts a send result. A platform's error may quote the URL of the request, which can contain a token.
pub(crate) fn redact_sent(redactor: &Redactor, mut sent: SendOutcome) -> SendOutcome {
    if let SendOutcome::Rejected { reason }
    | SendOutcome::Unknown { reason }
    | SendOutcome::Retry { reason, .. } = &mut sent
    {
        redactor.redact_in_place(reason);
    }
    sent
}
