//! A toolbox that runs isolated tools in workers and delegates the others.

use std::path::PathBuf;
use std::sync::Arc;

use polyclaw_domain::agent::ToolIsolation;
use polyclaw_domain::id::TurnId;
use polyclaw_domain::port::BoxFuture;
use polyclaw_domain::sandbox::{SandboxFacts, WorkerFault};
use polyclaw_domain::tool::{ProgressSink, ToolCall, ToolOutcome, ToolScope, ToolSpec, Toolbox};

use super::host::{ExceededLimit, WorkerCrash};
use super::pool::{ToolWorkerPool, WorkerPoolSettings};
use super::wire::ToolRunParams;
use crate::builtin::BuiltinToolbox;
use crate::error::{Error, Result};
use crate::sandbox::ProgramEnd;
use crate::{shell, workspace};

/// Maximum attempts of a repeatable call whose workers crash.
const MAX_ATTEMPTS: u32 = 3;

/// The outcome of one attempt, or the crash of its worker.
type AttemptResult = std::result::Result<ToolOutcome, WorkerCrash>;

pub struct IsolatedToolbox {
    inner: BuiltinToolbox,
    pool: ToolWorkerPool,
}

impl IsolatedToolbox {
    pub fn new(inner: BuiltinToolbox, settings: WorkerPoolSettings) -> Self {
        let pool = ToolWorkerPool::new(settings, inner.sandboxes());
        Self { inner, pool }
    }

    async fn run_isolated(
        &self,
        scope: &ToolScope,
        turn: &TurnId,
        call: &ToolCall,
        progress: ProgressSink<'_>,
    ) -> ToolOutcome {
        let listed = self.inner.list_tools(scope);
        let Some(spec) = listed.iter().find(|spec| spec.name == call.name) else {
            return self.inner.run(scope, turn, call, progress).await;
        };
        let workspace = match workspace::ensure_root(&scope.workspace) {
            Ok(workspace) => workspace,
            Err(error) => return with_facts(Error::Workspace(error).into(), scope, None, (0, None)),
        };
        let run = ToolRunParams {
            scope: ToolScope { workspace, ..scope.clone() },
            turn: turn.clone(),
            call: call.clone(),
            tools: listed.iter().map(|spec| spec.name.clone()).collect(),
            allow_private: self.inner.allows_private(),
        };
        let mut crashes = 0;
        loop {
            let (outcome, worker, fault) = match self.run_attempt(&run, progress).await {
                Ok((Ok(outcome), worker)) => (outcome, worker, None),
                // A repeated call would exceed the limit again.
                Ok((Err(WorkerCrash { over: Some(over) }), worker)) => (limit_outcome(over), worker, None),
                Ok((Err(_), worker)) => {
                    crashes += 1;
                    tracing::warn!(turn.id = %turn, tool = call.name, crashes, "tool worker crashed during a call");
                    if spec.effect.may_run_again() && crashes < MAX_ATTEMPTS {
                        continue;
                    }
                    (Error::WorkerCrash.into(), worker, Some(WorkerFault::WorkerCrash))
                }
                Err(error @ Error::PoolExhausted(_)) => {
                    (error.into(), None, Some(WorkerFault::PoolExhausted))
                }
                Err(error) => (error.into(), None, None),
            };
            return with_facts(outcome, scope, worker, (crashes, fault));
        }
    }

    async fn run_attempt(
        &self,
        run: &ToolRunParams,
        progress: ProgressSink<'_>,
    ) -> Result<(AttemptResult, Option<u32>)> {
        let mut lease = self.pool.lease_worker(&run.scope.sandbox, &run.scope.workspace).await?;
        let worker = lease.host.pid();
        let outcome = lease.host.run(run, &self.inner, progress).await;
        if outcome.is_ok() {
            self.pool.return_worker(lease);
        }
        Ok((outcome, worker))
    }
}

fn limit_outcome(over: ExceededLimit) -> ToolOutcome {
    let end = match over {
        ExceededLimit::Memory(limit) => ProgramEnd::OverMemory(limit),
        ExceededLimit::Processes(limit) => ProgramEnd::OverProcesses(limit),
    };
    shell::end_outcome(end)
}

fn with_facts(
    outcome: ToolOutcome,
    scope: &ToolScope,
    worker: Option<u32>,
    (crashes, fault): (u32, Option<WorkerFault>),
) -> ToolOutcome {
    let (mode, isolation) = (scope.sandbox.mode, ToolIsolation::Process);
    let none = SandboxFacts { mode, isolation, worker, crashes, fault, files: None, program: None };
    let facts = SandboxFacts { worker, crashes, fault, isolation, ..outcome.facts.unwrap_or(none) };
    ToolOutcome { facts: Some(facts), ..outcome }
}

impl Toolbox for IsolatedToolbox {
    fn list_tools(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        self.inner.list_tools(scope)
    }

    fn written_files<'a>(&'a self, scope: &'a ToolScope, call: &'a ToolCall) -> BoxFuture<'a, Vec<PathBuf>> {
        self.inner.written_files(scope, call)
    }

    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        progress: ProgressSink<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        match scope.isolation {
            ToolIsolation::Process if super::WORKER_TOOLS.contains(&call.name.as_str()) => {
                Box::pin(self.run_isolated(scope, turn, call, progress))
            }
            _ => self.inner.run(scope, turn, call, progress),
        }
    }
}
