//! Whether an approval request can still be answered. Listing, showing and answering all use this rule.

use std::collections::HashSet;
use std::sync::PoisonError;

use polyclaw_domain::approval::ApprovalState;
use polyclaw_domain::id::{ApprovalId, TurnId};
use polyclaw_domain::time::Millis;
use polyclaw_store::approvals::{self, DecisionTime, StoredApproval};

use crate::core::Engine;
use crate::error::Result;

/// This process's view of the time that approval requests have left.
pub(super) struct ApprovalClock {
    /// Turns that run here. A waiting turn measures the time itself and expires its request, whatever the clock shows.
    driven: HashSet<TurnId>,
    pub now: Millis,
}

impl ApprovalClock {
    pub fn from_engine(engine: &Engine) -> Self {
        let driven = engine.running.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
        Self { driven, now: engine.now() }
    }

    /// The time that counts for an answer given now.
    pub fn decision_moment(&self, asked: &StoredApproval) -> DecisionTime {
        let counted = match self.driven.contains(&asked.turn) {
            true => self.now.min(asked.expires_at.minus(1)),
            false => self.now,
        };
        DecisionTime { now: self.now, counted }
    }

    /// Returns the request marked as expired if its time is over, even if that is not stored yet.
    fn with_expiry(&self, asked: StoredApproval) -> StoredApproval {
        let is_over =
            asked.state == ApprovalState::Pending && self.decision_moment(&asked).counted >= asked.expires_at;
        let state = if is_over { ApprovalState::Expired } else { asked.state };
        StoredApproval { state, ..asked }
    }
}

impl Engine {
    /// Open approval requests, first to expire first.
    pub async fn list_open_approvals(&self) -> Result<Vec<StoredApproval>> {
        let watch = ApprovalClock::from_engine(self);
        let pending =
            self.db().read(approvals::list_pending).await?.into_iter().map(|asked| watch.with_expiry(asked));
        Ok(pending.filter(|asked| asked.state == ApprovalState::Pending).collect())
    }

    /// One approval request in any state.
    pub async fn find_approval(&self, id: &ApprovalId) -> Result<Option<StoredApproval>> {
        let (watch, wanted) = (ApprovalClock::from_engine(self), id.clone());
        let found = self.db().read(move |tx| approvals::get(tx, &wanted)).await?;
        Ok(found.map(|asked| watch.with_expiry(asked)))
    }
}
