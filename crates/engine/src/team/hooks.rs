//! Hooks that are asked before something happens in a team, and may refuse it.

use std::pin::Pin;
use std::sync::{Arc, PoisonError};

use polyclaw_domain::config::HookEvent;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::task::{TaskRefusal, TeamTask};
use polyclaw_domain::team::Team;
use serde_json::{Value, json};

use super::actor::TeamCaller;
use crate::core::Engine;
use crate::error::Result;

/// What a hook says: why it refuses, or that it does not.
pub type HookAnswer = Pin<Box<dyn Future<Output = std::result::Result<(), String>> + Send>>;

/// Programs of the operator that decide about teams. They run outside of the engine.
pub trait TeamHooks: Send + Sync {
    fn call_hook(&self, event: HookEvent, session: &SessionKey, body: Value) -> HookAnswer;
}

impl Engine {
    /// From now on these are asked; a config that was read anew replaces them.
    pub fn set_team_hooks(&self, hooks: Option<Arc<dyn TeamHooks>>) {
        *self.team_hooks.lock().unwrap_or_else(PoisonError::into_inner) = hooks;
    }

    async fn call_hooks(
        &self,
        event: HookEvent,
        session: &SessionKey,
        body: Value,
    ) -> std::result::Result<(), String> {
        let hooks = self.team_hooks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(hooks) = hooks else { return Ok(()) };
        hooks
            .call_hook(event, session, body)
            .await
            .map_err(|why| self.redactor().redact_text(&why).into_owned())
    }

    /// Whether a task may count as completed.
    pub(super) async fn check_completing_hook(
        &self,
        caller: &TeamCaller,
        (task, summary): (&TeamTask, Option<&str>),
    ) -> Result<()> {
        let body = json!({
            "team": caller.team.name, "task_id": task.no, "text": task.subject, "by": caller.worker.name,
            "summary": summary, "member_session_key": caller.worker.session,
        });
        let asked = self.call_hooks(HookEvent::TaskCompleting, &caller.team.lead, body).await;
        asked.map_err(|why| TaskRefusal::NotVerified(why).into())
    }

    /// Why a member that has nothing to do is to go on, if a hook says so.
    pub(super) async fn check_idle_hook(&self, team: &Team, (name, reason): (&str, &str)) -> Option<String> {
        let body = json!({ "team": team.name, "by": name, "text": reason });
        self.call_hooks(HookEvent::TeammateIdle, &team.lead, body).await.err()
    }
}
