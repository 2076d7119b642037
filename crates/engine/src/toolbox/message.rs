//! `message`: an agent writes to a conversation on a channel that the config names for it. It passes the gate and the
//! outbox as every answer does.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::config::DeliverTo;
use polyclaw_domain::delivery::{DeliveryPolicy, apply_gate};
use polyclaw_domain::glob::glob_matches;
use polyclaw_domain::tool::{ToolEffect, ToolRisk, ToolScope, ToolSpec, arguments};
use polyclaw_store::{Tx, outbox, sessions};
use schemars::JsonSchema;
use serde::Deserialize;

use super::own::{Asked, OwnTool};
use super::{Done, Refused};
use crate::core::Engine;
use crate::delivery::{Label, parcels};
use crate::error::Error;
use crate::settings::Settings;

/// What a model is told where nobody granted the conversation.
const NOT_GRANTED: &str = "is not one you may write to: tools.message_to in config.toml names those";

#[derive(Clone, Copy)]
pub(crate) enum MessageTool {
    Send,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Send {
    /// The channel, such as `telegram`.
    channel: String,
    /// The account that sends it. The channel's default account if left out.
    account: Option<String>,
    /// The conversation, by the platform's id.
    peer: String,
    /// A thread or topic in it.
    thread: Option<String>,
    text: String,
}

impl OwnTool for MessageTool {
    const ALL: &'static [Self] = &[Self::Send];

    fn spec(self) -> ToolSpec {
        ToolSpec {
            effect: ToolEffect::Effect,
            risk: ToolRisk::High,
            ..arguments::build_tool_spec::<Send>(
                "message",
                "Sends a message to a conversation on a channel, beside your answer. Your answer goes to whoever asked by \
                 itself.",
            )
        }
    }

    /// Where no conversation is granted it could never do anything.
    fn is_offered(self, settings: &Settings, _: &ToolScope) -> bool {
        !settings.message_to.is_empty()
    }

    async fn perform(self, engine: &Engine, asked: Asked<'_>) -> Done {
        let Send { channel, account, peer, thread, text } =
            arguments::parse_arguments(&asked.call.arguments)?;
        let address = granted(&engine.settings(), &DeliverTo { channel, account, peer, thread })?;
        push(engine, asked, address, text).await
    }
}

/// The conversation that is meant, if the config names it for agents.
pub(super) fn granted(settings: &Settings, to: &DeliverTo) -> std::result::Result<ChatAddress, Refused> {
    let missing = || {
        let account = to.account.as_deref().unwrap_or("its default one");
        Refused(format!("There is no account {account} of channel {:?}.", to.channel))
    };
    let address = settings.reception.address(to).ok_or_else(missing)?;
    match is_granted(settings, &address) {
        true => Ok(address),
        false => Err(Refused(format!("{} {NOT_GRANTED}.", address.sender_key()))),
    }
}

pub(super) fn is_granted(settings: &Settings, address: &ChatAddress) -> bool {
    settings.message_to.iter().any(|pattern| glob_matches(pattern, &address.sender_key()))
}

async fn push(
    engine: &Engine,
    Asked { scope, turn, call }: Asked<'_>,
    address: ChatAddress,
    text: String,
) -> Done {
    let (key, session, name) =
        (format!("message-{turn}-{}", call.id), scope.session.clone(), address.sender_key());
    let wanted = session.clone();
    let found = engine.db().read(move |tx| sessions::get(tx, &wanted)).await.map_err(Error::from)?;
    let found = found.ok_or_else(|| Error::UnknownSession(session.to_string()))?;
    let policy =
        DeliveryPolicy { requested: true, session_delivers: found.delivers, session_sends: found.sends };
    let text = engine.redactor().redact_text(&text).into_owned();
    let kept = |kept: polyclaw_domain::delivery::SuppressReason| {
        Refused(format!("It was not sent: {}.", kept.as_str()))
    };
    let outgoing = apply_gate(Some(address), policy, text).map_err(kept)?;
    let label = Label { session: &session, turn, key: &key, first: 0, now: engine.now() };
    let rows = parcels(engine, outgoing, &label);
    let write = move |tx: &mut Tx<'_>| rows.iter().try_for_each(|parcel| outbox::push(tx, parcel));
    engine.db().write(write).await.map_err(Error::from)?;
    engine.outbox_wake.notify_one();
    Ok(format!("On its way to {name}."))
}
