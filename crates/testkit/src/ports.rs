//! Scripted ports of the engine: clock, IDs, tools, a channel, and kill points chosen by a seed.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polyclaw_domain::agent::SandboxMode;
use polyclaw_domain::briefing::{BootstrapVersion, Briefing, BriefingReader, BriefingSource};
use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::kill_points::{FaultInjector, KillPoint};
use polyclaw_domain::port::{BoxFuture, IdGenerator, WallClock};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::{
    ProgressSink, ToolCall, ToolConsent, ToolEffect, ToolOutcome, ToolRisk, ToolScope, ToolSpec, Toolbox,
};
use tokio::sync::Notify;

pub mod fake_channel;
pub mod script;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runtime's clock from a fixed start. With a paused runtime every run has the same times.
pub struct SimClock {
    started: tokio::time::Instant,
    set_by: AtomicI64,
}

impl SimClock {
    pub fn start() -> Arc<Self> {
        Arc::new(Self { started: tokio::time::Instant::now(), set_by: AtomicI64::new(0) })
    }

    /// Moves the clock forward or back, as a person or a time server does. No time passes.
    pub fn set_time(&self, millis: i64) {
        self.set_by.fetch_add(millis, Ordering::Relaxed);
    }
}

impl WallClock for SimClock {
    fn now(&self) -> Millis {
        let passed = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        Millis(1_800_000_000_000).plus(passed).plus(self.set_by.load(Ordering::Relaxed))
    }
}

/// Sequential IDs across all engine runs of a world.
#[derive(Default)]
pub struct SequentialIds(AtomicU64);

impl IdGenerator for SequentialIds {
    fn next_id(&self) -> String {
        format!("id{:010}", self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn fresh_nonce(&self) -> String {
        format!("nonce{:06}", self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// Records the outside effects of tool calls. Outlives the engine, as a real bank would.
#[derive(Default)]
pub struct RecordingToolbox {
    ran: Mutex<HashMap<PerformedCall, u32>>,
    /// The turns with running tools, by session.
    busy: Mutex<Vec<(SessionKey, TurnId)>>,
    overlap: Mutex<Option<String>>,
    sandbox_modes: Mutex<HashMap<SessionKey, SandboxMode>>,
    extra: Mutex<Vec<(ToolSpec, Arc<ToolBody>)>>,
    links: Mutex<HashMap<String, PathBuf>>,
}

/// Turn, call ID and tool name.
pub type PerformedCall = (TurnId, String, String);

type ToolBody = dyn Fn(&ToolCall) -> BoxFuture<'static, ToolOutcome> + Send + Sync;

impl RecordingToolbox {
    /// Returns how often each call was performed.
    pub fn run_counts(&self) -> HashMap<PerformedCall, u32> {
        lock(&self.ran).clone()
    }

    /// Returns two turns of one session that ran tools at the same time, if any.
    pub fn find_overlap(&self) -> Option<String> {
        lock(&self.overlap).clone()
    }

    /// Returns the sandbox mode of a session's last tool.
    pub fn sandbox_mode(&self, session: &SessionKey) -> Option<SandboxMode> {
        lock(&self.sandbox_modes).get(session).copied()
    }

    /// Marks a tool of a turn as running until the result is dropped.
    fn start_tool(&self, session: &SessionKey, turn: &TurnId) -> RunningTool<'_> {
        let mut busy = lock(&self.busy);
        if let Some((_, other)) = busy.iter().find(|(key, other)| key == session && other != turn) {
            let found = format!("{turn} and {other} of {session} ran tools at the same time");
            lock(&self.overlap).get_or_insert(found);
        }
        busy.push((session.clone(), turn.clone()));
        RunningTool { tools: self, who: (session.clone(), turn.clone()) }
    }

    /// Makes calls with this `path` write another file, like a symlink.
    pub fn link(&self, path: &str, target: &str) {
        lock(&self.links).insert(path.to_owned(), target.into());
    }

    /// Adds a test's own tool.
    pub fn add_tool(
        &self,
        name: &str,
        effect: ToolEffect,
        consent: ToolConsent,
        body: impl Fn(&ToolCall) -> BoxFuture<'static, ToolOutcome> + Send + Sync + 'static,
    ) {
        let spec = ToolSpec { consent, ..tool_spec(name, effect) };
        lock(&self.extra).push((spec, Arc::new(body)));
    }
}

struct RunningTool<'a> {
    tools: &'a RecordingToolbox,
    who: (SessionKey, TurnId),
}

impl Drop for RunningTool<'_> {
    fn drop(&mut self) {
        let mut busy = lock(&self.tools.busy);
        if let Some(at) = busy.iter().position(|who| *who == self.who) {
            busy.swap_remove(at);
        }
    }
}

fn tool_spec(name: &str, effect: ToolEffect) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("the {} tool {name}", effect.as_str()),
        parameters: serde_json::json!({ "type": "object" }),
        effect,
        risk: ToolRisk::Low,
        consent: ToolConsent::NotNeeded,
        confined: false,
    }
}

impl Toolbox for RecordingToolbox {
    /// `look` reads, `put` may be repeated, `pay` must not be.
    fn list_tools(&self, _: &ToolScope) -> Vec<Arc<ToolSpec>> {
        let builtin =
            [("look", ToolEffect::Pure), ("put", ToolEffect::Idempotent), ("pay", ToolEffect::Effect)];
        let extra = lock(&self.extra);
        let extra = extra.iter().map(|(spec, _)| spec.clone());
        builtin.into_iter().map(|(name, effect)| tool_spec(name, effect)).chain(extra).map(Arc::new).collect()
    }

    fn written_files<'a>(&'a self, _: &'a ToolScope, call: &'a ToolCall) -> BoxFuture<'a, Vec<PathBuf>> {
        let path = call.arguments["path"].as_str().unwrap_or_default();
        let target = lock(&self.links).get(path).cloned();
        Box::pin(std::future::ready(target.into_iter().collect()))
    }

    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        _: ProgressSink<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        lock(&self.sandbox_modes).insert(scope.session.clone(), scope.sandbox.mode);
        let own = lock(&self.extra)
            .iter()
            .find(|(spec, _)| spec.name == call.name)
            .map(|(_, body)| Arc::clone(body));
        Box::pin(async move {
            if let Some(body) = own {
                return body(call).await;
            }
            let _at_work = self.start_tool(&scope.session, turn);
            tokio::time::sleep(std::time::Duration::from_millis(7)).await;
            let mut ran = lock(&self.ran);
            let times = ran.entry((turn.clone(), call.id.clone(), call.name.clone())).or_default();
            *times += 1;
            ToolOutcome::ok(format!("{} of {} done", call.name, call.id))
        })
    }
}

/// A briefing that the test sets. Empty at first.
#[derive(Default)]
pub struct FakeBriefings {
    briefing: Mutex<Briefing>,
    applied_bootstraps: Mutex<Vec<BootstrapVersion>>,
    last: Mutex<Option<(AgentId, bool)>>,
}

impl FakeBriefings {
    pub fn set_briefing(&self, briefing: Briefing) {
        *lock(&self.briefing) = briefing;
    }

    /// Returns the bootstraps of turns that ended successfully.
    pub fn applied_bootstraps(&self) -> Vec<BootstrapVersion> {
        lock(&self.applied_bootstraps).clone()
    }

    /// Returns the agent whose briefing was last requested, and whether as a sub-agent.
    pub fn last_reader(&self) -> Option<(AgentId, bool)> {
        lock(&self.last).clone()
    }
}

impl BriefingSource for FakeBriefings {
    fn load_briefing(&self, reader: &BriefingReader<'_>) -> Briefing {
        *lock(&self.last) = Some((reader.agent.clone(), reader.is_sub_agent));
        lock(&self.briefing).clone()
    }

    fn complete_bootstrap(&self, bootstrap: &BootstrapVersion) {
        lock(&self.applied_bootstraps).push(bootstrap.clone());
    }
}

/// Counts kill points. At the planned one the engine blocks forever, until it is dropped.
#[derive(Default)]
pub struct KillPointFaults {
    reached: AtomicU64,
    die_at: Option<(Option<KillPoint>, u64)>,
    fired: Mutex<Option<KillPoint>>,
    dead: Notify,
}

/// The kill point at which an engine died.
pub type FiredKillPoint = KillPoint;

impl KillPointFaults {
    pub fn no_kill() -> Arc<Self> {
        Arc::default()
    }

    /// Dies at the n-th kill point reached, whichever it is.
    pub fn at_step(n: u64) -> Arc<Self> {
        Arc::new(Self { die_at: Some((None, n)), ..Self::default() })
    }

    /// Dies the n-th time this kill point is reached.
    pub fn at_point(point: KillPoint, n: u64) -> Arc<Self> {
        Arc::new(Self { die_at: Some((Some(point), n)), ..Self::default() })
    }

    /// Returns once the planned kill point was reached.
    pub async fn wait_killed(&self) -> FiredKillPoint {
        loop {
            if let Some(point) = *lock(&self.fired) {
                return point;
            }
            self.dead.notified().await;
        }
    }
}

impl FaultInjector for KillPointFaults {
    fn hit_kill_point(&self, point: KillPoint) -> BoxFuture<'_, ()> {
        let dead = lock(&self.fired).is_some();
        let counted = self.die_at.is_some_and(|(wanted, _)| wanted.is_none_or(|wanted| wanted == point));
        let due = counted && {
            let n = self.reached.fetch_add(1, Ordering::Relaxed) + 1;
            self.die_at.is_some_and(|(_, at)| n == at)
        };
        if due {
            *lock(&self.fired) = Some(point);
            self.dead.notify_one();
        }
        if due || dead { Box::pin(std::future::pending()) } else { Box::pin(std::future::ready(())) }
    }
}
