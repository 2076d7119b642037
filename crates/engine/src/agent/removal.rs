//! Conversations of an agent that is deleted, or whose id is reused.

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::delivery::{DeliveryPolicy, apply_gate};
use polyclaw_domain::id::{AgentId, SessionId, TurnId};
use polyclaw_domain::session::Session;
use polyclaw_domain::time::Millis;
use polyclaw_store::outbox::OutboxMessage;
use polyclaw_store::{Tx, outbox, sessions};

use crate::reply_text;
use crate::settings::EngineSettings;

/// Switches conversations back to their own agent when the agent they use is deleted, and notifies their people.
pub(super) fn restore_own_agent(
    tx: &mut Tx<'_>,
    id: &AgentId,
    (turn, now): (&TurnId, Millis),
    settings: &EngineSettings,
) -> polyclaw_store::Result<()> {
    let switched = sessions::list_by_agent(tx, id)?.into_iter().filter(|session| session.agent != *id);
    for (n, session) in switched.enumerate() {
        sessions::set_agent(tx, &session.key, &session.agent, now)?;
        if let Some(message) = agent_removal_notice(&session, id, (turn, n, now), settings) {
            outbox::push(tx, &message)?;
        }
    }
    Ok(())
}

fn agent_removal_notice(
    session: &Session,
    gone: &AgentId,
    (turn, n, now): (&TurnId, usize, Millis),
    settings: &EngineSettings,
) -> Option<OutboxMessage> {
    let address =
        session.address.clone().filter(|address| !address.is_pull_channel() && !address.is_remote())?;
    let policy =
        DeliveryPolicy { requested: true, session_delivers: session.delivers, session_sends: session.sends };
    let text = reply_text::notice::agent_removed(settings.locale_for(session), gone, &session.agent);
    let outgoing = apply_gate(Some(address), policy, text).ok()?;
    Some(OutboxMessage::new_notice((&session.key, turn), n, &outgoing, (now, settings.delivery_ttl_ms)))
}

/// Gives sessions of a reused agent id a new session id, so that the new agent starts without the old history.
pub(super) fn renew_sessions_of_agent(
    tx: &mut Tx<'_>,
    spec: &AgentSpec,
    (id, now): (&str, Millis),
) -> polyclaw_store::Result<()> {
    let own = sessions::list_by_agent(tx, &spec.agent_id)?.into_iter();
    for (n, session) in own.filter(|session| session.agent == spec.agent_id).enumerate() {
        sessions::renew_session_id(tx, &session.key, &SessionId::new(format!("{id}-{n}")), now)?;
    }
    Ok(())
}
