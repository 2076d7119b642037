//! What comes in from outside, cleaned before anything else is done with it. Everything later is made of what was
//! cleaned here: transcripts, frames, events, the outbox.

use polyclaw_domain::channel::Sent;
use polyclaw_domain::message::Part;
use polyclaw_domain::provider::{ProviderError, Reply};
use polyclaw_domain::redact::Redactor;

use crate::import::Past;
use crate::ingress::Inbound;

/// A key somebody pastes into a chat is as lost as one in a log.
pub(crate) fn inbound(redactor: &Redactor, inbound: &mut Inbound) {
    redactor.string(&mut inbound.text);
    parts(redactor, &mut inbound.parts);
    if let Some(meta) = &mut inbound.meta {
        redactor.json(meta);
    }
    for result in &mut inbound.tool_results {
        redactor.string(&mut result.content);
    }
}

/// Keys and addresses are compared, not read: changed they would name something else.
pub(crate) fn has_secret_name(redactor: &Redactor, inbound: &Inbound) -> bool {
    let address = &inbound.address;
    let names = [inbound.session.as_str(), &address.channel, &address.account, &address.peer];
    let optional = [&address.thread, &inbound.platform_id, &inbound.idempotency_key];
    let optional = optional.into_iter().flatten().map(String::as_str);
    names.into_iter().chain(optional).any(|name| redactor.has_value(name))
}

pub(crate) fn past(redactor: &Redactor, past: &mut [Past]) {
    for said in past {
        redactor.string(&mut said.text);
        parts(redactor, &mut said.parts);
    }
}

fn parts(redactor: &Redactor, parts: &mut [Part]) {
    for part in parts {
        match part {
            Part::ToolCall(call) => *call = redactor.call(call),
            Part::ToolResult { .. } => {}
            Part::Attachment(attached) => {
                redactor.string(&mut attached.name);
                attached.url.iter_mut().chain(&mut attached.text).for_each(|text| redactor.string(text));
            }
        }
    }
}

/// Its calls keep what the model made up until they have run; what it can not know is taken out at once.
pub(crate) fn reply(redactor: &Redactor, reply: &mut Reply) {
    redactor.string(&mut reply.text);
    for call in &mut reply.calls {
        redactor.runnable(call);
        redactor.string(&mut call.id);
        redactor.string(&mut call.name);
    }
}

pub(crate) fn provider_error(redactor: &Redactor, mut error: ProviderError) -> ProviderError {
    redactor.string(&mut error.message);
    error
}

/// What a platform says of a message may quote the address it was sent to, and that may hold a token.
pub(crate) fn sent(redactor: &Redactor, mut sent: Sent) -> Sent {
    if let Sent::Rejected { reason } | Sent::Unknown { reason } | Sent::Retry { reason, .. } = &mut sent {
        redactor.string(reason);
    }
    sent
}
