//! The audience of a run. The conversation that waits for the run sees its text while it streams, under the agent's
//! name. The final text goes through the gate and the outbox like every reply.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::delivery::DeliveryPolicy;
use polyclaw_domain::id::{AgentId, RunId};
use polyclaw_domain::run::{RunAudience, RunKind, SubagentRun};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::{Tx, runs, sessions};

use crate::hub::{DelegateSpeaker, FrameKind, Hub};
use crate::reply_text::notice::CutShortReason;

/// The audience of a session's run, as its turns need it.
#[derive(Clone)]
pub(crate) struct StreamMirror {
    run: RunId,
    audience: RunAudience,
    deadline: Option<Millis>,
    policy: DeliveryPolicy,
}

impl StreamMirror {
    /// Returns the audience of a run, if it has one.
    pub fn for_run(tx: &mut Tx<'_>, run: &SubagentRun) -> polyclaw_store::Result<Option<Self>> {
        let Some(audience) = run.audience.clone() else { return Ok(None) };
        // That conversation's policies decide whether text may be delivered there, not the child's.
        let Some(there) = sessions::get(tx, &audience.session_key)? else { return Ok(None) };
        let policy =
            DeliveryPolicy { requested: true, session_delivers: there.delivers, session_sends: there.sends };
        Ok(Some(Self { run: run.id.clone(), audience, deadline: run.deadline, policy }))
    }

    pub fn policy(&self) -> DeliveryPolicy {
        self.policy
    }

    /// The session that owns the conversation.
    pub fn session(&self) -> &SessionKey {
        &self.audience.session_key
    }

    /// The audience's addresses on chat platforms.
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

    /// Publishes a frame to the audience's session and returns its number.
    pub fn publish(&self, hub: &Hub, kind: FrameKind) -> u64 {
        hub.publish(&self.audience.session_key, kind)
    }

    /// Returns why a text ended early, for the notice below it.
    pub fn cut_short_reason(&self, code: &str, now: Millis) -> CutShortReason {
        match code {
            _ if self.deadline.is_some_and(|deadline| deadline <= now) => CutShortReason::TimeLimit,
            "stopped" => CutShortReason::Stopped,
            _ => CutShortReason::Failed,
        }
    }
}

/// People in the conversation that waits for a delegation.
#[derive(Clone, Debug)]
pub(crate) struct DelegationWaiters {
    pub session: SessionKey,
    pub addresses: Vec<ChatAddress>,
    /// Whether messages may be sent there.
    pub policy: DeliveryPolicy,
}

/// Maximum length of a delegation chain.
const MAX_DELEGATION_CHAIN: usize = 32;

impl DelegationWaiters {
    /// Returns the waiters of an awaited delegation. Announced runs have none, and a sub-agent reports only to its
    /// owner.
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
