//! Tools that a spawned session inherits: no more than the turn that spawns it has.

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::policy::InheritedTools;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::ToolSpec;
use polyclaw_store::{Tx, jobs};

use super::requesters_of_turn;
use crate::core::Engine;
use crate::error::Result;

impl Engine {
    /// Returns the tools that a turn of a session can pass on. Without a turn, because a person asked, these are the
    /// session's own tools.
    pub(crate) async fn inherited_tools_from(
        &self,
        owner: &SessionKey,
        turn: Option<&TurnId>,
    ) -> Result<InheritedTools> {
        let session = self.load_session(owner).await?;
        let (wanted, key) = (turn.cloned(), owner.clone());
        let read = move |tx: &mut Tx<'_>| {
            let Some(turn) = &wanted else { return Ok(None) };
            let Some(job) = jobs::get(tx, turn)? else { return Ok(None) };
            Ok(Some((job.agent, requesters_of_turn(tx, &key, turn)?)))
        };
        let (agent, senders) = self.db().read(read).await?.unwrap_or_else(|| {
            let sender = session.address.as_ref().map(ChatAddress::sender_key);
            (session.active_agent.clone(), sender.into_iter().collect())
        });
        self.with_policy_layers(&agent, Some(&session), senders, |scope, layers| {
            let listed = self.tools().list_tools(scope);
            InheritedTools::from_layers(
                listed.iter().map(|tool| -> &ToolSpec { tool }),
                layers,
                scope.sandbox.mode,
            )
        })
        .await
    }
}
