//! Verification of tasks: the runtime runs the configured check before a task counts as completed.

use std::time::Duration;

use polyclaw_domain::agent::SandboxMode;
use polyclaw_domain::id::{AgentId, RunId, TurnId};
use polyclaw_domain::run::{RunKind, RunStatus, RunTask};
use polyclaw_domain::sandbox::SandboxFacts;
use polyclaw_domain::sanitize;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::task::{
    MAX_SUMMARY_CHARS, TaskMember, TaskRefusal, TaskVerification, TeamTask, TeamTaskState,
};
use polyclaw_domain::team::{LEAD_NAME, OPERATOR_NAME};
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::{ToolCall, ToolOutcome, ToolScope};
use polyclaw_store::tasks::{self, TaskEnding, TaskEventKind};
use polyclaw_store::{Tx, teams};
use serde_json::json;

use super::actor::{TeamActor, TeamCaller};
use crate::agent::ToolExplanation;
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::subagents::{RunRequester, SpawnRequest, WaitMode, requesters_of_turn};

/// Maximum length of a check's stored output.
const MAX_CHECK_OUTPUT_CHARS: usize = 1_500;
const CHECKER_TIMEOUT_MS: i64 = 300_000;
/// Failed checks after which a task fails. This ends endless attempts, and the lead decides what to do.
const MAX_CHECK_ATTEMPTS: usize = 5;
const SHELL_TOOL: &str = "shell";
const NEEDS_APPROVAL_TEXT: &str = "did not run: commands need a person's approval here. Use an agent as the check, \
                                   or enable the sandbox";

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
enum TaskCheckResult {
    Passed,
    Failed(String),
    /// The check did not run, so nothing is known about the work.
    NotMade(String),
}

impl Engine {
    /// Checks that the caller may request this verification: a command needs the shell, an agent must be an allowed
    /// delegate.
    pub(super) async fn check_verify_allowed(
        &self,
        actor: &TeamActor,
        caller: &TeamCaller,
        verify: &TaskVerification,
    ) -> Result<()> {
        if matches!(verify, TaskVerification::Command(line) if line.trim().is_empty()) {
            return Err(Error::Subagent("verify.command must not be empty".to_owned()));
        }
        let TeamActor::Session { key, turn, .. } = actor else { return Ok(()) };
        match verify {
            TaskVerification::Agent { agent_id, .. } => {
                let own = self.load_session(key).await?.active_agent;
                let rules = self.load_agent(&own).await?.spec.delegation;
                match rules.is_some_and(|rules| rules.allows_agent(agent_id)) {
                    true => Ok(()),
                    false => Err(Error::DelegationDenied(own.to_string(), agent_id.to_string())),
                }
            }
            TaskVerification::Command(_) => {
                match self.explain_shell(key, Some((key, turn))).await?.filter(|shell| shell.allowed) {
                    Some(shell) if !shell.requires_approval => Ok(()),
                    Some(_) => Err(Error::Subagent(format!("a command as a check {NEEDS_APPROVAL_TEXT}"))),
                    None => Err(Error::Subagent(format!(
                        "a command as a check needs the tool '{SHELL_TOOL}', which '{}' does not have here",
                        caller.worker.name
                    ))),
                }
            }
        }
    }

    /// Returns the policy decision about the shell in a session. With `working`, the requesters of that turn count
    /// instead of the usual senders of the session.
    async fn explain_shell(
        &self,
        session: &SessionKey,
        working: Option<(&SessionKey, &TurnId)>,
    ) -> Result<Option<ToolExplanation>> {
        let Some((key, turn)) = working else {
            return Ok(self
                .explain_tools(None, Some(session))
                .await?
                .into_iter()
                .find(|one| one.tool.name == SHELL_TOOL));
        };
        let (key, turn) = (key.clone(), turn.clone());
        let senders = self.db().read(move |tx: &mut Tx<'_>| requesters_of_turn(tx, &key, &turn)).await?;
        let place = self.load_session(session).await?;
        let listed = self.explain_for(&place.active_agent, &place, senders).await?;
        Ok(listed.into_iter().find(|one| one.tool.name == SHELL_TOOL))
    }

    /// Runs a task's check. The output of a failed check is stored in the ledger.
    pub(super) async fn verify_task(
        &self,
        actor: &TeamActor,
        caller: &TeamCaller,
        task: &TeamTask,
    ) -> Result<()> {
        let Some(verify) = &task.verify else { return Ok(()) };
        let owner = task.lease.as_ref().map_or(&caller.worker.session, |lease| &lease.session).clone();
        let check = match verify {
            TaskVerification::Command(line) => {
                let mode = self.author_sandbox_mode(caller, task).await?;
                self.run_check_command((&owner, mode), actor, line).await?
            }
            TaskVerification::Agent { agent_id, instructions } => {
                self.ask_checker_agent(actor, task, agent_id, instructions).await?
            }
        };
        let kept = |why: &str| {
            let mut why = sanitize::limit_block(why, MAX_CHECK_OUTPUT_CHARS);
            self.redactor().redact_in_place(&mut why);
            why
        };
        let mut why = match check {
            TaskCheckResult::Passed => return Ok(()),
            TaskCheckResult::NotMade(why) => return Err(TaskRefusal::NotChecked(kept(&why)).into()),
            TaskCheckResult::Failed(why) => kept(&why),
        };
        let (task, worker, now) = (task.clone(), caller.worker.clone(), self.now());
        let (text, call) = (why.clone(), actor.call_id().to_owned());
        let write = move |tx: &mut Tx<'_>| record_failed_check(tx, &task, &worker, (&text, &call, now));
        if self.open_ledger(&caller.team)?.write(write).await? {
            why.push_str(&format!(
                "\nThe check failed {MAX_CHECK_ATTEMPTS} times: the task has failed, and the lead is notified."
            ));
        }
        self.try_relay_task_events(caller).await?;
        Err(TaskRefusal::NotVerified(why).into())
    }

    /// Returns the sandbox mode of a task's author, so that the check reaches no further than the author. An operator's
    /// check is unrestricted.
    async fn author_sandbox_mode(&self, caller: &TeamCaller, task: &TeamTask) -> Result<SandboxMode> {
        let author = match task.created_by.as_str() {
            OPERATOR_NAME => return Ok(SandboxMode::Off),
            LEAD_NAME => Some(caller.team.lead.clone()),
            name => {
                let (team, name) = (caller.team.id.clone(), name.to_owned());
                let member = self.db().read(move |tx| teams::get_member(tx, &team, &name)).await?;
                member.map(|member| member.session)
            }
        };
        let Some(author) = author else { return Ok(SandboxMode::Strict) };
        match self.session_tool_scope(&author).await {
            Ok(scope) => Ok(scope.sandbox.mode),
            // Its permissions are no longer known, so the strictest mode applies.
            Err(Error::UnknownSession(_) | Error::UnknownAgent(_) | Error::UnsafeWorkspace(_)) => {
                Ok(SandboxMode::Strict)
            }
            Err(error) => Err(error),
        }
    }

    async fn session_tool_scope(&self, key: &SessionKey) -> Result<ToolScope> {
        let session = self.load_session(key).await?;
        let spec = self.load_agent(&session.active_agent).await?.spec;
        let workspace = self.resolve_workspace(&spec).await?;
        let scope = ToolScope::for_session(&spec, key.clone(), &workspace, false);
        Ok(scope.for_child_session(&spec, &session))
    }

    /// Runs a command in the workspace of the task's holder, with the stricter sandbox mode of holder and author. If
    /// commands need approval there, it does not run, because nobody was asked.
    async fn run_check_command(
        &self,
        (owner, mode): (&SessionKey, SandboxMode),
        actor: &TeamActor,
        line: &str,
    ) -> Result<TaskCheckResult> {
        let working = match actor {
            TeamActor::Session { key, turn, .. } => Some((key, turn)),
            TeamActor::Operator { .. } | TeamActor::OnBehalfOf { .. } => None,
        };
        if self.explain_shell(owner, working).await?.is_none_or(|shell| shell.requires_approval) {
            return Ok(TaskCheckResult::NotMade(format!("its check {NEEDS_APPROVAL_TEXT}")));
        }
        let mut scope = self.session_tool_scope(owner).await?;
        scope.sandbox.mode = scope.sandbox.mode.max(mode);
        let call = ToolCall {
            id: format!("{}-check", actor.call_id()),
            name: SHELL_TOOL.to_owned(),
            arguments: json!({ "command": line }),
        };
        let turn = TurnId::new(call.id.clone());
        let outcome = self.tools().run(&scope, &turn, &call, &|_| ()).await;
        Ok(match outcome.is_error {
            false => TaskCheckResult::Passed,
            true if has_own_exit_status(&outcome) => TaskCheckResult::Failed(outcome.content),
            true => TaskCheckResult::NotMade(outcome.content),
        })
    }

    /// Delegates the check to an agent.
    async fn ask_checker_agent(
        &self,
        actor: &TeamActor,
        task: &TeamTask,
        agent: &AgentId,
        instructions: &str,
    ) -> Result<TaskCheckResult> {
        let TeamActor::Session { key, turn, call } = actor else {
            let why = "only a session can start a checker: let the member complete the task";
            return Ok(TaskCheckResult::NotMade(why.to_owned()));
        };
        let prompt = format!(
            "Check whether this task is done. Verify it yourself; do not rely on anybody's claim.\n\
             Task: {}\n{}\nWhat to check: {instructions}\n\
             Answer with PASS or FAIL as the first word, then the reason.",
            task.subject, task.description
        );
        let request = SpawnRequest {
            id: RunId::new(format!("{call}-check")),
            kind: RunKind::Delegate,
            owner: key.clone(),
            requester: RunRequester::Turn(turn.clone()),
            agent: agent.clone(),
            task: RunTask { label: format!("check task {}", task.no), prompt, ..RunTask::default() },
            model: None,
            thinking: None,
            timeout_ms: CHECKER_TIMEOUT_MS,
            is_deleted_after: false,
            is_awaited: true,
            is_streamed: false,
        };
        let run = self.spawn_subagent(request).await?;
        let timeout = Duration::from_millis(CHECKER_TIMEOUT_MS.unsigned_abs());
        let found =
            self.wait_for_runs((key, turn), std::slice::from_ref(&run.id), WaitMode::All, timeout).await?;
        let run = found.into_iter().next().unwrap_or(run);
        Ok(checker_result(run.status, run.result.map(|result| result.text).unwrap_or_default()))
    }
}

/// Maps a checker's run to a result. Only a run that succeeded has checked anything.
fn checker_result(status: RunStatus, text: String) -> TaskCheckResult {
    match status {
        RunStatus::Ok if is_pass(&text) => TaskCheckResult::Passed,
        RunStatus::Ok if !text.trim().is_empty() => TaskCheckResult::Failed(text),
        RunStatus::Ok => TaskCheckResult::NotMade("the checker gave no answer".to_owned()),
        RunStatus::Running => TaskCheckResult::NotMade("the checker is still running".to_owned()),
        status => TaskCheckResult::NotMade(format!(
            "the checker's run ended with status '{}': {text}",
            status.as_str()
        )),
    }
}

/// Whether a checker's answer starts with the word "pass" or "passed".
fn is_pass(text: &str) -> bool {
    let plain = text.trim_start_matches(|c: char| c.is_whitespace() || "*_`#>\"'".contains(c));
    let (word, rest) = plain.split_at(plain.find(|c: char| !c.is_alphabetic()).unwrap_or(plain.len()));
    ["pass", "passed"].iter().any(|one| word.eq_ignore_ascii_case(one))
        && !rest.starts_with(['/', '?', '|', '-'])
}

/// Whether the command itself reported failure. If it did not start or was killed, nothing is known about the task.
fn has_own_exit_status(outcome: &ToolOutcome) -> bool {
    let ran = |facts: &SandboxFacts| facts.fault.is_none() && facts.program.is_some();
    // The last line of the shell's output states how the command ended.
    let is_killed = outcome.content.lines().last().is_some_and(|line| line.starts_with("[killed"));
    !is_killed && outcome.facts.as_ref().is_none_or(ran)
}

/// Records a failed check, and returns whether it was the last allowed one, which fails the task. The lead may try
/// without limit. A call repeated after a crash counts once.
fn record_failed_check(
    tx: &mut Tx<'_>,
    task: &TeamTask,
    worker: &TaskMember,
    (why, call, now): (&str, &str, Millis),
) -> polyclaw_store::Result<bool> {
    tasks::lock_ledger(tx, &task.team)?;
    let before = tasks::list_events_of_kind(tx, &task.team, task.no, TaskEventKind::Unverified)?;
    if before.iter().any(|failed| failed.data["call"] == call) {
        return Ok(false);
    }
    tasks::set_note(tx, &task.team, task.no, &format!("check failed: {why}"))?;
    let data = json!({ "reason": why, "call": call });
    tasks::record_event(tx, &task.team, task.no, TaskEventKind::Unverified, &worker.name, &data, now)?;
    let tries =
        1 + before.iter().filter(|failed| failed.actor != LEAD_NAME && failed.actor != OPERATOR_NAME).count();
    if worker.is_lead || tries < MAX_CHECK_ATTEMPTS {
        return Ok(false);
    }
    let summary = format!("Its check failed {MAX_CHECK_ATTEMPTS} times: {why}");
    let ending = TaskEnding {
        state: TeamTaskState::Failed,
        summary: Some(sanitize::limit_block(&summary, MAX_SUMMARY_CHARS - 1)),
        artifacts: Vec::new(),
        fencing_token: task.lease.as_ref().map_or(0, |lease| lease.fencing_token),
        call: call.to_owned(),
    };
    Ok(tasks::end_task(tx, &task.team, task.no, worker, (&ending, now))?.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checker_verdict_counts_only_if_run_succeeded() {
        assert_eq!(checker_result(RunStatus::Ok, " pass: all there".to_owned()), TaskCheckResult::Passed);
        for passed in
            ["PASS", "**PASS**", "Pass. Nothing to add", "Passed: all three", "`PASS`\nlooked at all three"]
        {
            assert_eq!(checker_result(RunStatus::Ok, passed.to_owned()), TaskCheckResult::Passed, "{passed}");
        }
        for failed in
            ["FAIL", "PASS/FAIL: FAIL", "Passing is impossible", "Passed? No", "pass-through is broken"]
        {
            assert_eq!(
                checker_result(RunStatus::Ok, failed.to_owned()),
                TaskCheckResult::Failed(failed.to_owned())
            );
        }
        let looked_not = RunStatus::ALL.into_iter().map(|status| (status, "FAIL", status != RunStatus::Ok));
        for (status, text, is_not_made) in looked_not.chain([(RunStatus::Ok, " ", true)]) {
            let check = checker_result(status, text.to_owned());
            assert_eq!(matches!(check, TaskCheckResult::NotMade(_)), is_not_made, "{status:?} {check:?}");
        }
    }

    #[test]
    fn killed_check_command_gives_no_verdict() {
        for (text, is_answer) in [
            ("two tests failed\n[exit status 101]", true),
            ("[killed by the test]\n[exit status 1]", true),
            ("slow\n[killed: timed out after 60 s]", false),
            ("[killed by signal 9]", false),
        ] {
            assert_eq!(has_own_exit_status(&ToolOutcome::error(text)), is_answer, "{text}");
        }
    }
}
