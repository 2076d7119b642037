//! The audience of a run: the conversation of whoever waits for it sees its words as they come, under the name of its
//! agent. What it is shown in the end goes the way of every reply: through the gate and the outbox.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::delivery::DeliveryPolicy;
use polyclaw_domain::id::{AgentId, RunId};
use polyclaw_domain::run::{RunAudience, RunKind, SubagentRun};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::{Tx, runs, sessions};

use crate::hub::{DelegateSpeaker, FrameKind, Hub};

/// The audience of a session's run, as a turn of that session needs to know it.
#[derive(Clone)]
pub(crate) struct StreamMirror {
    run: RunId,
    audience: RunAudience,
    deadline: Option<Millis>,
    policy: DeliveryPolicy,
}

impl StreamMirror {
    /// Those of a run, if it has any.
    pub fn for_run(tx: &mut Tx<'_>, run: &SubagentRun) -> polyclaw_store::Result<Option<Self>> {
        let Some(audience) = run.audience.clone() else { return Ok(None) };
        // Whether anything may be said there is for that conversation to say, not for the child.
        let Some(there) = sessions::get(tx, &audience.session_key)? else { return Ok(None) };
        let policy =
            DeliveryPolicy { requested: true, session_delivers: there.delivers, session_sends: there.sends };
        Ok(Some(Self { run: run.id.clone(), audience, deadline: run.deadline, policy }))
    }

    pub fn policy(&self) -> DeliveryPolicy {
        self.policy
    }

    /// The session whose conversation it is.
    pub fn session(&self) -> &SessionKey {
        &self.audience.session_key
    }

    /// Where they are on chat platforms.
    pub fn addresses(&self) -> &[ChatAddress] {
        &self.audience.addresses
    }

    pub fn speaker(&self, agent: &AgentId, name: &str) -> DelegateSpeaker {
        DelegateSpeaker {
            turn_id: self.audience.turn_id.clone(),
            run_id: self.run.clone(),
            agent_id: agent.to_string(),
            name: name.to_owned(),
        }
    }

    /// Returns the number of the frame.
    pub fn publish(&self, hub: &Hub, kind: FrameKind) -> u64 {
        hub.publish(&self.audience.session_key, kind)
    }

    /// What stands below words that are not all there would have been.
    pub fn cut_short_notice(&self, code: &str, now: Millis) -> &'static str {
        match code {
            _ if self.deadline.is_some_and(|deadline| deadline <= now) => "(Cut short: its time was over.)",
            "stopped" => "(Cut short: it was stopped.)",
            _ => "(Cut short: it failed.)",
        }
    }
}

/// The people of the conversation that waits for a delegation.
#[derive(Clone, Debug)]
pub(crate) struct DelegationWaiters {
    pub session: SessionKey,
    pub addresses: Vec<ChatAddress>,
    /// Whether anything may be said there.
    pub policy: DeliveryPolicy,
}

/// Longer chains of delegations there are none.
const MAX_DELEGATION_CHAIN: usize = 32;

impl DelegationWaiters {
    /// Nobody waits for a run that is only told of later; and what a sub-agent does is its owner's matter.
    pub fn for_run(tx: &mut Tx<'_>, run: &SubagentRun) -> polyclaw_store::Result<Option<Self>> {
        let mut at = run.clone();
        for _ in 0..MAX_DELEGATION_CHAIN {
            if at.kind != RunKind::Delegate || at.awaited_by.is_none() {
                return Ok(None);
            }
            if !at.reply_to.is_empty() {
                let Some(there) = sessions::get(tx, &at.owner)? else { return Ok(None) };
                let policy = DeliveryPolicy {
                    requested: true,
                    session_delivers: there.delivers,
                    session_sends: there.sends,
                };
                return Ok(Some(Self { session: at.owner, addresses: at.reply_to, policy }));
            }
            match runs::find_running_by_child(tx, &at.owner)? {
                Some(above) => at = above,
                None => return Ok(None),
            }
        }
        Ok(None)
    }
}
