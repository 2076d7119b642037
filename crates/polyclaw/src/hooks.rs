//! Notifies hooks of events after they have happened. Nothing waits for hooks: a slow one is killed, and an event is
//! dropped with a warning while too many hooks run.

mod command;
mod gate;

use std::sync::Arc;
use std::time::Duration;

use polyclaw_channel::event_hook::EventHook;
use polyclaw_domain::config::{self, HookEvent};
use polyclaw_domain::frame::TeamTaskChanged;
use polyclaw_domain::glob;
use polyclaw_domain::job::JobState;
use polyclaw_domain::port::WallClock;
use polyclaw_engine::Engine;
use polyclaw_engine::hub::{FrameKind, HubFrame};
use polyclaw_engine::team::TeamHooks;
use polyclaw_tool::AgentFolders;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::clock::SystemClock;
use crate::failure::CommandFailure;

/// Maximum number of concurrent hooks.
const MAX_CONCURRENT_HOOKS: usize = 16;

pub struct HookListeners {
    hooks: Vec<Arc<HookListener>>,
    room: Arc<Semaphore>,
}

/// Stops notifying when dropped. Hooks that run continue.
pub struct HooksHandle(JoinHandle<()>);

impl Drop for HooksHandle {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct HookListener {
    settings: config::HookConfig,
    target: HookTarget,
}

enum HookTarget {
    Program(command::HookProgram),
    Address(EventHook),
}

impl HookListeners {
    pub fn from_config(
        hooks: &[config::HookConfig],
        agent_folders: &AgentFolders,
    ) -> Result<Self, CommandFailure> {
        let listener = |settings: &config::HookConfig| {
            let target = HookTarget::from_config(settings, agent_folders)?;
            Ok(Arc::new(HookListener { settings: settings.clone(), target }))
        };
        let hooks = hooks.iter().map(listener).collect::<Result<_, CommandFailure>>()?;
        Ok(Self { hooks, room: Arc::new(Semaphore::new(MAX_CONCURRENT_HOOKS)) })
    }

    /// Starts listening. Returns `None` if no hooks are configured.
    pub fn start(self, engine: &Engine) -> Option<HooksHandle> {
        let deciding = self
            .hooks
            .iter()
            .filter(|hook| hook.settings.on.iter().any(|on| gate::GATED_EVENTS.contains(on)));
        let deciding: Vec<Arc<HookListener>> = deciding.cloned().collect();
        let gate = (!deciding.is_empty()).then(|| Arc::new(gate::HookGate(deciding)) as Arc<dyn TeamHooks>);
        engine.set_team_hooks(gate);
        let engine = engine.clone();
        (!self.hooks.is_empty()).then(|| HooksHandle(tokio::spawn(async move { self.run(&engine).await })))
    }

    async fn run(&self, engine: &Engine) {
        loop {
            let mut watch = engine.hub.subscribe_all();
            while let Some(frame) = watch.recv().await {
                if let Some((event, body)) = event_of_frame(&frame) {
                    self.notify_hooks(event, &frame, &body);
                }
            }
            tracing::warn!("hooks fell behind; some events were not delivered");
        }
    }

    fn notify_hooks(&self, event: HookEvent, frame: &HubFrame, body: &Value) {
        for hook in &self.hooks {
            let wanted = hook.settings.on.contains(&event)
                && glob::glob_matches(&hook.settings.sessions, frame.session_key.as_str());
            if !wanted {
                continue;
            }
            let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else {
                tracing::warn!(hook.event = event.as_str(), "too many running hooks; event dropped");
                continue;
            };
            let (hook, body) = (Arc::clone(hook), body.to_string().into_bytes());
            tokio::spawn(async move {
                if let Err(error) = hook.run_hook(event, body).await {
                    tracing::warn!(hook.event = event.as_str(), %error, "hook failed");
                }
                drop(place);
            });
        }
    }
}

impl HookTarget {
    fn from_config(
        settings: &config::HookConfig,
        agent_folders: &AgentFolders,
    ) -> Result<Self, CommandFailure> {
        let timeout = hook_timeout(settings);
        if let Some(url) = &settings.url {
            let hook = EventHook::new(url, settings.secret.clone(), timeout).map_err(|error| {
                CommandFailure::failed(error.code(), error.to_string()).hint(error.hint())
            })?;
            return Ok(Self::Address(hook));
        }
        let (command, agent_folders) = (settings.command.clone(), agent_folders.clone());
        let program = command::HookProgram { command, timeout, agent_folders };
        match program.check_command() {
            Ok(()) => Ok(Self::Program(program)),
            Err(why) => Err(CommandFailure::failed("hook_unsafe", format!("hook rejected: {why}")).hint(
                "move the file to a folder that agents cannot write; pass paths of data in a script in that \
                     folder",
            )),
        }
    }
}

impl HookListener {
    async fn run_hook(&self, event: HookEvent, body: Vec<u8>) -> Result<(), String> {
        match &self.target {
            HookTarget::Address(hook) => hook.post_event(body).await,
            HookTarget::Program(program) => command::run(program, event, body).await,
        }
    }
}

fn hook_timeout(settings: &config::HookConfig) -> Duration {
    Duration::from_secs(settings.timeout_seconds.into())
}

/// Converts a frame to a hook event. Frames are already redacted.
fn event_of_frame(frame: &HubFrame) -> Option<(HookEvent, Value)> {
    let (event, mut body) = match &frame.kind {
        FrameKind::Accepted { message_id, turn_id, text, .. } => {
            let body = json!({ "message_id": message_id, "turn_id": turn_id, "text": text });
            (HookEvent::MessageAccepted, body)
        }
        FrameKind::Ended { turn_id, state, message_id, text, model, error_code, .. } => {
            let event = match state {
                JobState::Done => HookEvent::TurnDone,
                JobState::Failed | JobState::Cancelled => HookEvent::TurnFailed,
                _ => return None,
            };
            let body = json!({
                "message_id": message_id, "turn_id": turn_id, "text": text, "model": model,
                "error_code": error_code,
            });
            (event, body)
        }
        FrameKind::Team { change } => {
            let TeamTaskChanged { team, task_id, change, by, subject, .. } =
                TeamTaskChanged::deserialize(change).ok()?;
            if change != "completed" {
                return None;
            }
            let body = json!({ "team": team, "task_id": task_id, "text": subject, "by": by });
            (HookEvent::TaskCompleted, body)
        }
        _ => return None,
    };
    body["event"] = event.as_str().into();
    body["session_key"] = frame.session_key.as_str().into();
    body["at"] = SystemClock.now().to_string().into();
    Some((event, body))
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::id::AgentId;
    use polyclaw_domain::session_key::SessionKey;

    use super::*;

    fn hook_event_of_team_change(change: Value) -> Option<(HookEvent, Value)> {
        let session_key = SessionKey::from_parts(&AgentId::main(), &["team", "crew"]);
        event_of_frame(&HubFrame { seq: 1, session_key, kind: FrameKind::Team { change } })
    }

    #[test]
    fn only_task_completion_is_a_hook_event() {
        let change = |change: &str| json!({ "team": "crew", "task_id": 7, "change": change, "by": "ann", "state": "completed", "subject": "paint" });
        let (event, body) = hook_event_of_team_change(change("completed")).unwrap();
        assert_eq!(event, HookEvent::TaskCompleted);
        assert_eq!(
            (&body["event"], &body["task_id"], &body["text"], &body["by"], &body["session_key"]),
            (
                &json!("task.completed"),
                &json!(7),
                &json!("paint"),
                &json!("ann"),
                &json!("agent:main:team:crew")
            )
        );
        assert!(hook_event_of_team_change(change("claimed")).is_none());
        assert!(hook_event_of_team_change(json!({ "change": "completed", "text": "a letter" })).is_none());
    }
}
