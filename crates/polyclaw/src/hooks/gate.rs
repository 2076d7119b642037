//! Hooks that decide before something happens in a team. A program that exits with 2 refuses it, and its standard
//! error is the reason. Any other exit allows it.

use std::sync::Arc;

use polyclaw_domain::config::HookEvent;
use polyclaw_domain::glob;
use polyclaw_domain::port::WallClock;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::team::{HookAnswer, TeamHooks};
use serde_json::Value;

use super::{HookListener, HookTarget, command};
use crate::clock::SystemClock;

pub(super) const GATED_EVENTS: [HookEvent; 2] = [HookEvent::TaskCompleting, HookEvent::TeammateIdle];

/// The hooks that may refuse an event.
pub(super) struct HookGate(pub Vec<Arc<HookListener>>);

impl TeamHooks for HookGate {
    fn call_hook(&self, event: HookEvent, session: &SessionKey, mut body: Value) -> HookAnswer {
        body["event"] = event.as_str().into();
        body["session_key"] = session.as_str().into();
        body["at"] = SystemClock.now().to_string().into();
        let is_asked = |hook: &&Arc<HookListener>| {
            hook.settings.on.contains(&event) && glob::glob_matches(&hook.settings.sessions, session.as_str())
        };
        let hooks: Vec<Arc<HookListener>> = self.0.iter().filter(is_asked).cloned().collect();
        Box::pin(async move {
            for hook in hooks {
                ask_hook(&hook, event, body.to_string().into_bytes()).await?;
            }
            Ok(())
        })
    }
}

async fn ask_hook(hook: &HookListener, event: HookEvent, body: Vec<u8>) -> Result<(), String> {
    let asked = match &hook.target {
        HookTarget::Program(program) => command::run_hook_program(program, event, body).await,
        // A URL is only notified; it cannot refuse.
        HookTarget::Address(hook) => hook.post_event(body).await.map_err(command::HookFailure::Failed),
    };
    match asked {
        Ok(()) => Ok(()),
        Err(command::HookFailure::Refused(why)) => Err(why),
        Err(command::HookFailure::Failed(error)) => {
            tracing::warn!(hook.event = event.as_str(), %error, "hook failed; the event is allowed");
            Ok(())
        }
    }
}
