//! Hooks that are called before something happens in a team and may reject it.

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

/// A hook's answer; the error is the reason for a rejection.
pub type HookAnswer = Pin<Box<dyn Future<Output = std::result::Result<(), String>> + Send>>;

/// Operator's programs that decide about teams. They run outside the engine.
pub trait TeamHooks: Send + Sync {
    fn call_hook(&self, event: HookEvent, session: &SessionKey, body: Value) -> HookAnswer;
}

impl Engine {
    /// Sets the hooks to call. A config reload replaces them.
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

    /// Asks the hook whether a task may be completed.
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

    /// Returns the reason why an idle member should continue, if a hook gives one.
    pub(super) async fn check_idle_hook(&self, team: &Team, (name, reason): (&str, &str)) -> Option<String> {
        let body = json!({ "team": team.name, "by": name, "text": reason });
        self.call_hooks(HookEvent::TeammateIdle, &team.lead, body).await.err()
    }
}
