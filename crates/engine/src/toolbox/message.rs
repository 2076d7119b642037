//! `message`: writes to a conversation that the config allows the agent to write to. The message goes through the gate
//! and the outbox like every reply.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::config::DeliverTo;
use polyclaw_domain::delivery::{DeliveryPolicy, apply_gate};
use polyclaw_domain::glob::glob_matches;
use polyclaw_domain::tool::{ToolEffect, ToolRisk, ToolScope, ToolSpec, arguments};
use polyclaw_store::{Tx, outbox, sessions};
use schemars::JsonSchema;
use serde::Deserialize;

use super::engine_tool::{EngineTool, ToolInvocation};
use super::{ToolCallResult, ToolRefusal};
use crate::core::Engine;
use crate::delivery::{OutboxKey, build_outbox_messages};
use crate::error::Error;
use crate::settings::EngineSettings;

/// Error for a conversation that is not allowed.
const NOT_GRANTED_TEXT: &str = "is not a conversation you may write to. tools.message_to in config.toml lists the \
                                allowed conversations";

#[derive(Clone, Copy)]
pub(crate) enum MessageTool {
    Send,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MessageArguments {
    /// Channel, such as `telegram`.
    channel: String,
    /// Sending account. Defaults to the channel's default account.
    account: Option<String>,
    /// Conversation id on the platform.
    peer: String,
    /// Thread or topic id.
    thread: Option<String>,
    text: String,
}

impl EngineTool for MessageTool {
    const ALL: &'static [Self] = &[Self::Send];

    fn spec(self) -> ToolSpec {
        ToolSpec {
            effect: ToolEffect::Effect,
            risk: ToolRisk::High,
            ..arguments::build_tool_spec::<MessageArguments>(
                "message",
                "Sends a message to a conversation on a channel, in addition to your answer. Your answer is \
                 delivered to the person who asked automatically; do not send it with this tool.",
            )
        }
    }

    /// Not offered while no conversation is allowed.
    fn is_offered(self, settings: &EngineSettings, _: &ToolScope) -> bool {
        !settings.message_to.is_empty()
    }

    async fn perform(self, engine: &Engine, asked: ToolInvocation<'_>) -> ToolCallResult {
        let MessageArguments { channel, account, peer, thread, text } =
            arguments::parse_arguments(&asked.call.arguments)?;
        let address =
            resolve_granted_address(&engine.settings(), &DeliverTo { channel, account, peer, thread })?;
        push_to_outbox(engine, asked, address, text).await
    }
}

/// Resolves the conversation if the config allows agents to write to it.
pub(super) fn resolve_granted_address(
    settings: &EngineSettings,
    to: &DeliverTo,
) -> std::result::Result<ChatAddress, ToolRefusal> {
    let missing = || {
        let account = to.account.as_deref().unwrap_or("(default)");
        ToolRefusal(format!("Channel {:?} has no account {account}.", to.channel))
    };
    let address = settings.inbound.resolve_address(to).ok_or_else(missing)?;
    match is_granted(settings, &address) {
        true => Ok(address),
        false => Err(ToolRefusal(format!("{} {NOT_GRANTED_TEXT}.", address.sender_key()))),
    }
}

pub(super) fn is_granted(settings: &EngineSettings, address: &ChatAddress) -> bool {
    settings.message_to.iter().any(|pattern| glob_matches(pattern, &address.sender_key()))
}

async fn push_to_outbox(
    engine: &Engine,
    ToolInvocation { scope, turn, call }: ToolInvocation<'_>,
    address: ChatAddress,
    text: String,
) -> ToolCallResult {
    let (key, session, name) =
        (format!("message-{turn}-{}", call.id), scope.session.clone(), address.sender_key());
    let wanted = session.clone();
    let found = engine.db().read(move |tx| sessions::get(tx, &wanted)).await.map_err(Error::from)?;
    let found = found.ok_or_else(|| Error::UnknownSession(session.to_string()))?;
    let policy =
        DeliveryPolicy { requested: true, session_delivers: found.delivers, session_sends: found.sends };
    let text = engine.redactor().redact_text(&text).into_owned();
    let kept = |kept: polyclaw_domain::delivery::SuppressReason| {
        ToolRefusal(format!("The message was not sent: {}.", kept.as_str()))
    };
    let outgoing = apply_gate(Some(address), policy, text).map_err(kept)?;
    let label = OutboxKey { session: &session, turn, key: &key, first: 0, now: engine.now() };
    let rows = build_outbox_messages(engine, outgoing, &label);
    let write = move |tx: &mut Tx<'_>| rows.iter().try_for_each(|message| outbox::push(tx, message));
    engine.db().write(write).await.map_err(Error::from)?;
    engine.outbox_wake.notify_one();
    Ok(format!("The message to {name} is queued for delivery."))
}
