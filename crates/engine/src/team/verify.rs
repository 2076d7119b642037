//! Done must be proven: what was asked for is looked at by the runtime before a task counts as completed.

use std::time::Duration;

use polyclaw_domain::id::{AgentId, RunId, TurnId};
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::plain;
use polyclaw_domain::run::{RunKind, RunStatus, Task as Errand};
use polyclaw_domain::task::{MAX_SUMMARY, Refusal, Task, TaskState, Verify, Worker};
use polyclaw_domain::team::{LEAD, OPERATOR};
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::{ToolCall, ToolScope};
use polyclaw_store::Tx;
use polyclaw_store::tasks::{self, Ending, Kind};
use serde_json::json;

use super::actor::{Actor, Insider};
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::family::{AskedBy, Mode, Wish};

/// How much of what a check said is kept.
const SAID: usize = 1_500;
const CHECKER_MS: i64 = 300_000;
/// A task whose check does not pass this often has failed: nobody tries the same for ever, and the lead decides.
const TRIES: usize = 5;
const SHELL: &str = "shell";

impl Engine {
    /// Whoever asks for a check may cause it: a command needs the shell, an agent must be one that work may be given to.
    pub(super) async fn check_verify(&self, actor: &Actor, insider: &Insider, verify: &Verify) -> Result<()> {
        if matches!(verify, Verify::Command(line) if line.trim().is_empty()) {
            return Err(Error::Family(
                "a check needs a command: an empty one says nothing of the task".to_owned(),
            ));
        }
        let Actor::Session { key, .. } = actor else { return Ok(()) };
        match verify {
            Verify::Agent { agent_id, .. } => {
                let own = self.session(key).await?.active_agent;
                let rules = self.agent(&own).await?.spec.delegation;
                match rules.is_some_and(|rules| rules.allows(agent_id)) {
                    true => Ok(()),
                    false => Err(Error::DelegationDenied(own.to_string(), agent_id.to_string())),
                }
            }
            Verify::Command(_) => {
                let tools = self.tools_of(None, Some(key)).await?;
                match tools.iter().any(|one| one.tool.name == SHELL && one.allowed) {
                    true => Ok(()),
                    false => Err(Error::Family(format!(
                        "a command as a check needs the tool '{SHELL}', which '{}' does not have here",
                        insider.worker.name
                    ))),
                }
            }
        }
    }

    /// Looks whether a task is done. What was said against it goes into the ledger.
    pub(super) async fn verify(&self, actor: &Actor, insider: &Insider, task: &Task) -> Result<()> {
        let Some(verify) = &task.verify else { return Ok(()) };
        let owner = task.lease.as_ref().map_or(&insider.worker.session, |lease| &lease.session).clone();
        let failed = match verify {
            Verify::Command(line) => self.run_check(&owner, actor.call(), line).await?,
            Verify::Agent { agent_id, instructions } => {
                self.ask_checker(actor, task, agent_id, instructions).await?
            }
        };
        let Some(mut why) = failed.map(|why| plain::block(&why, SAID)) else { return Ok(()) };
        self.redactor().string(&mut why);
        let (task, worker, now) = (task.clone(), insider.worker.clone(), self.now());
        let said = why.clone();
        let write = move |tx: &mut Tx<'_>| note_failed(tx, &task, &worker, (&said, now));
        if self.ledger(&insider.team)?.write(write).await? {
            why.push_str(&format!(
                "\nIt did not pass {TRIES} times: the task has failed, and the lead knows."
            ));
        }
        self.tell_ledger(insider).await?;
        Err(Refusal::NotVerified(why).into())
    }

    /// Runs a command where the work was done, under the same walls. `None`: it ended well.
    async fn run_check(&self, owner: &SessionKey, call: &str, line: &str) -> Result<Option<String>> {
        let session = self.session(owner).await?;
        let spec = self.agent(&session.active_agent).await?.spec;
        let scope =
            ToolScope::of(&spec, owner.clone(), &self.settings().workspace, false).below(&spec, &session);
        let call = ToolCall {
            id: format!("{call}-check"),
            name: SHELL.to_owned(),
            arguments: json!({ "command": line }),
        };
        let turn = TurnId::new(call.id.clone());
        let outcome = self.tools().run(&scope, &turn, &call, &|_| ()).await;
        Ok(outcome.is_error.then_some(outcome.content))
    }

    /// Asks an agent, as work that is given to it. `None`: it said PASS.
    async fn ask_checker(
        &self,
        actor: &Actor,
        task: &Task,
        agent: &AgentId,
        instructions: &str,
    ) -> Result<Option<String>> {
        let Actor::Session { key, turn, call } = actor else {
            return Ok(Some("only a session can ask a checker: let the member complete it".to_owned()));
        };
        let prompt = format!(
            "Check whether this task is done. Look for yourself; do not take anybody's word for it.\n\
             Task: {}\n{}\nWhat to check: {instructions}\n\
             Answer with PASS or FAIL as the first word, then why.",
            task.subject, task.description
        );
        let wish = Wish {
            id: RunId::new(format!("{call}-check")),
            kind: RunKind::Delegate,
            owner: key.clone(),
            asked: AskedBy::Turn(turn.clone()),
            agent: agent.clone(),
            task: Errand { label: format!("check task {}", task.no), prompt, ..Errand::default() },
            model: None,
            thinking: None,
            timeout_ms: CHECKER_MS,
            is_deleted_after: false,
            is_awaited: true,
            is_streamed: false,
        };
        let run = self.begin_run(wish).await?;
        let patience = Duration::from_millis(CHECKER_MS.unsigned_abs());
        let found =
            self.wait_for_runs((key, turn), std::slice::from_ref(&run.id), Mode::All, patience).await?;
        let run = found.into_iter().next().unwrap_or(run);
        let said = run.result.map(|result| result.text).unwrap_or_default();
        let passed = run.status == RunStatus::Ok && said.trim_start().to_uppercase().starts_with("PASS");
        Ok((!passed).then(|| if said.is_empty() { "the checker said nothing".to_owned() } else { said }))
    }
}

/// Notes that a check did not pass; says whether it was the last one. The lead, who decides what becomes of a task that
/// failed, may try as often as it likes.
fn note_failed(
    tx: &mut Tx<'_>,
    task: &Task,
    worker: &Worker,
    (why, now): (&str, Millis),
) -> polyclaw_store::Result<bool> {
    tasks::note(tx, &task.team, task.no, &format!("check failed: {why}"))?;
    let data = json!({ "why": why });
    tasks::note_event(tx, &task.team, task.no, Kind::Unverified, &worker.name, &data, now)?;
    let tried_by = tasks::by_whom(tx, &task.team, task.no, Kind::Unverified)?;
    let tries = tried_by.iter().filter(|name| *name != LEAD && *name != OPERATOR).count();
    if worker.is_lead || tries < TRIES {
        return Ok(false);
    }
    let summary = format!("Its check did not pass {TRIES} times: {why}");
    let ending = Ending {
        state: TaskState::Failed,
        summary: Some(plain::block(&summary, MAX_SUMMARY - 1)),
        artifacts: Vec::new(),
        fence: task.lease.as_ref().map_or(0, |lease| lease.fence),
    };
    Ok(tasks::end(tx, &task.team, task.no, worker, (&ending, now))?.is_ok())
}
