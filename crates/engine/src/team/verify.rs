//! Done must be proven: what was asked for is looked at by the runtime before a task counts as completed.

use std::time::Duration;

use polyclaw_domain::agent::SandboxMode;
use polyclaw_domain::id::{AgentId, RunId, TurnId};
use polyclaw_domain::run::{RunKind, RunStatus, RunTask as Errand};
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

use super::actor::{Actor, Insider};
use crate::agent::Explained;
use crate::core::Engine;
use crate::error::{Error, Result};
use crate::family::{AskedBy, Mode, Wish, asked_by};

/// How much of what a check said is kept.
const SAID: usize = 1_500;
const CHECKER_MS: i64 = 300_000;
/// A task whose check does not pass this often has failed: nobody tries the same for ever, and the lead decides.
const TRIES: usize = 5;
const SHELL: &str = "shell";
const ASKS: &str = "is not run: here a person is asked before a command runs. Have an agent check it, or switch the sandbox on";

/// What came of a check.
#[derive(Debug, PartialEq, Eq)]
enum Check {
    Passed,
    Failed(String),
    /// Nobody looked, so nothing is known: that is no fault of the work.
    NotMade(String),
}

impl Engine {
    /// Whoever asks for a check may cause it: a command needs the shell, an agent must be one that work may be given to.
    pub(super) async fn check_verify(
        &self,
        actor: &Actor,
        insider: &Insider,
        verify: &TaskVerification,
    ) -> Result<()> {
        if matches!(verify, TaskVerification::Command(line) if line.trim().is_empty()) {
            return Err(Error::Family(
                "a check needs a command: an empty one says nothing of the task".to_owned(),
            ));
        }
        let Actor::Session { key, turn, .. } = actor else { return Ok(()) };
        match verify {
            TaskVerification::Agent { agent_id, .. } => {
                let own = self.session(key).await?.active_agent;
                let rules = self.agent(&own).await?.spec.delegation;
                match rules.is_some_and(|rules| rules.allows_agent(agent_id)) {
                    true => Ok(()),
                    false => Err(Error::DelegationDenied(own.to_string(), agent_id.to_string())),
                }
            }
            TaskVerification::Command(_) => {
                match self.shell_of(key, Some((key, turn))).await?.filter(|shell| shell.allowed) {
                    Some(shell) if !shell.asks => Ok(()),
                    Some(_) => Err(Error::Family(format!("a command as a check {ASKS}"))),
                    None => Err(Error::Family(format!(
                        "a command as a check needs the tool '{SHELL}', which '{}' does not have here",
                        insider.worker.name
                    ))),
                }
            }
        }
    }

    /// What the policy says of the shell in a session. `working`: the turn in which it would run, so that those for whom the
    /// turn works count, and not those who usually write to the session.
    async fn shell_of(
        &self,
        session: &SessionKey,
        working: Option<(&SessionKey, &TurnId)>,
    ) -> Result<Option<Explained>> {
        let Some((key, turn)) = working else {
            return Ok(self
                .tools_of(None, Some(session))
                .await?
                .into_iter()
                .find(|one| one.tool.name == SHELL));
        };
        let (key, turn) = (key.clone(), turn.clone());
        let senders = self.db().read(move |tx: &mut Tx<'_>| asked_by(tx, &key, &turn)).await?;
        let place = self.session(session).await?;
        let listed = self.explain_for(&place.active_agent, &place, senders).await?;
        Ok(listed.into_iter().find(|one| one.tool.name == SHELL))
    }

    /// Looks whether a task is done. What was said against it goes into the ledger.
    pub(super) async fn verify(&self, actor: &Actor, insider: &Insider, task: &TeamTask) -> Result<()> {
        let Some(verify) = &task.verify else { return Ok(()) };
        let owner = task.lease.as_ref().map_or(&insider.worker.session, |lease| &lease.session).clone();
        let check = match verify {
            TaskVerification::Command(line) => {
                let walls = self.walls_of_author(insider, task).await?;
                self.run_check((&owner, walls), actor, line).await?
            }
            TaskVerification::Agent { agent_id, instructions } => {
                self.ask_checker(actor, task, agent_id, instructions).await?
            }
        };
        let kept = |why: &str| {
            let mut why = sanitize::limit_block(why, SAID);
            self.redactor().redact_in_place(&mut why);
            why
        };
        let mut why = match check {
            Check::Passed => return Ok(()),
            Check::NotMade(why) => return Err(TaskRefusal::NotChecked(kept(&why)).into()),
            Check::Failed(why) => kept(&why),
        };
        let (task, worker, now) = (task.clone(), insider.worker.clone(), self.now());
        let (said, call) = (why.clone(), actor.call().to_owned());
        let write = move |tx: &mut Tx<'_>| note_failed(tx, &task, &worker, (&said, &call, now));
        if self.ledger(&insider.team)?.write(write).await? {
            why.push_str(&format!(
                "\nIt did not pass {TRIES} times: the task has failed, and the lead knows."
            ));
        }
        self.tell_ledger(insider).await?;
        Err(TaskRefusal::NotVerified(why).into())
    }

    /// What a command of whoever wrote a task reaches: by another's hand it reaches no further. A person's is the owner's.
    async fn walls_of_author(&self, insider: &Insider, task: &TeamTask) -> Result<SandboxMode> {
        let author = match task.created_by.as_str() {
            OPERATOR_NAME => return Ok(SandboxMode::Off),
            LEAD_NAME => Some(insider.team.lead.clone()),
            name => {
                let (team, name) = (insider.team.id.clone(), name.to_owned());
                let member = self.db().read(move |tx| teams::get_member(tx, &team, &name)).await?;
                member.map(|member| member.session)
            }
        };
        let Some(author) = author else { return Ok(SandboxMode::Strict) };
        match self.scope_of(&author).await {
            Ok(scope) => Ok(scope.sandbox.mode),
            // Nobody knows any more what it might have done.
            Err(Error::UnknownSession(_) | Error::UnknownAgent(_)) => Ok(SandboxMode::Strict),
            Err(error) => Err(error),
        }
    }

    async fn scope_of(&self, key: &SessionKey) -> Result<ToolScope> {
        let session = self.session(key).await?;
        let spec = self.agent(&session.active_agent).await?.spec;
        let scope = ToolScope::for_session(&spec, key.clone(), &self.folder_of(&spec), false);
        Ok(scope.for_child_session(&spec, &session))
    }

    /// Runs a command where the work was done, behind the walls of whoever did it and of whoever wrote it. They were asked
    /// for nothing, so where a person is asked before a command runs, it does not.
    async fn run_check(
        &self,
        (owner, walls): (&SessionKey, SandboxMode),
        actor: &Actor,
        line: &str,
    ) -> Result<Check> {
        let working = match actor {
            Actor::Session { key, turn, .. } => Some((key, turn)),
            Actor::Operator { .. } | Actor::InNameOf { .. } => None,
        };
        if self.shell_of(owner, working).await?.is_none_or(|shell| shell.asks) {
            return Ok(Check::NotMade(format!("its check {ASKS}")));
        }
        let mut scope = self.scope_of(owner).await?;
        scope.sandbox.mode = scope.sandbox.mode.max(walls);
        let call = ToolCall {
            id: format!("{}-check", actor.call()),
            name: SHELL.to_owned(),
            arguments: json!({ "command": line }),
        };
        let turn = TurnId::new(call.id.clone());
        let outcome = self.tools().run(&scope, &turn, &call, &|_| ()).await;
        Ok(match outcome.is_error {
            false => Check::Passed,
            true if has_answered(&outcome) => Check::Failed(outcome.content),
            true => Check::NotMade(outcome.content),
        })
    }

    /// Asks an agent, as work that is given to it.
    async fn ask_checker(
        &self,
        actor: &Actor,
        task: &TeamTask,
        agent: &AgentId,
        instructions: &str,
    ) -> Result<Check> {
        let Actor::Session { key, turn, call } = actor else {
            let why = "only a session can ask a checker: let the member complete it";
            return Ok(Check::NotMade(why.to_owned()));
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
        Ok(judged(run.status, run.result.map(|result| result.text).unwrap_or_default()))
    }
}

/// What a checker's work comes to. Only one that ended well has looked.
fn judged(status: RunStatus, said: String) -> Check {
    match status {
        RunStatus::Ok if is_pass(&said) => Check::Passed,
        RunStatus::Ok if !said.trim().is_empty() => Check::Failed(said),
        RunStatus::Ok => Check::NotMade("the checker said nothing".to_owned()),
        RunStatus::Running => Check::NotMade("the checker is still at work".to_owned()),
        status => Check::NotMade(format!("the checker's work ended with '{}': {said}", status.as_str())),
    }
}

/// It begins with that one word: whatever else a checker begins with, it did not say so.
fn is_pass(said: &str) -> bool {
    let plain = said.trim_start_matches(|c: char| c.is_whitespace() || "*_`#>\"'".contains(c));
    let (word, rest) = plain.split_at(plain.find(|c: char| !c.is_alphabetic()).unwrap_or(plain.len()));
    ["pass", "passed"].iter().any(|one| word.eq_ignore_ascii_case(one))
        && !rest.starts_with(['/', '?', '|', '-'])
}

/// Whether a command said no itself. One that could not be started, or was ended from outside, says nothing of the task.
fn has_answered(outcome: &ToolOutcome) -> bool {
    let ran = |facts: &SandboxFacts| facts.fault.is_none() && facts.program.is_some();
    // The shell's last line says how the command ended.
    let is_killed = outcome.content.lines().last().is_some_and(|line| line.starts_with("[killed"));
    !is_killed && outcome.facts.as_ref().is_none_or(ran)
}

/// Notes that a check did not pass; says whether it was the last one. The lead, who decides what becomes of a task that
/// failed, may try as often as it likes. The same call made again after a crash is the same try.
fn note_failed(
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
    let data = json!({ "why": why, "call": call });
    tasks::record_event(tx, &task.team, task.no, TaskEventKind::Unverified, &worker.name, &data, now)?;
    let tries =
        1 + before.iter().filter(|failed| failed.actor != LEAD_NAME && failed.actor != OPERATOR_NAME).count();
    if worker.is_lead || tries < TRIES {
        return Ok(false);
    }
    let summary = format!("Its check did not pass {TRIES} times: {why}");
    let ending = TaskEnding {
        state: TeamTaskState::Failed,
        summary: Some(sanitize::limit_block(&summary, MAX_SUMMARY_CHARS - 1)),
        artifacts: Vec::new(),
        fencing_token: task.lease.as_ref().map_or(0, |lease| lease.fence),
        call: call.to_owned(),
    };
    Ok(tasks::end_task(tx, &task.team, task.no, worker, (&ending, now))?.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_checker_that_ended_well_has_looked() {
        assert_eq!(judged(RunStatus::Ok, " pass: all there".to_owned()), Check::Passed);
        for passed in
            ["PASS", "**PASS**", "Pass. Nothing to add", "Passed: all three", "`PASS`\nlooked at all three"]
        {
            assert_eq!(judged(RunStatus::Ok, passed.to_owned()), Check::Passed, "{passed}");
        }
        for failed in
            ["FAIL", "PASS/FAIL: FAIL", "Passing is impossible", "Passed? No", "pass-through is broken"]
        {
            assert_eq!(judged(RunStatus::Ok, failed.to_owned()), Check::Failed(failed.to_owned()));
        }
        let looked_not = RunStatus::ALL.into_iter().map(|status| (status, "FAIL", status != RunStatus::Ok));
        for (status, said, is_not_made) in looked_not.chain([(RunStatus::Ok, " ", true)]) {
            let check = judged(status, said.to_owned());
            assert_eq!(matches!(check, Check::NotMade(_)), is_not_made, "{status:?} {check:?}");
        }
    }

    #[test]
    fn a_command_that_was_killed_says_nothing_of_the_task() {
        for (said, is_answer) in [
            ("two tests failed\n[exit status 101]", true),
            ("[killed by the test]\n[exit status 1]", true),
            ("slow\n[killed: it ran longer than 60 s]", false),
            ("[killed by signal 9]", false),
        ] {
            assert_eq!(has_answered(&ToolOutcome::error(said)), is_answer, "{said}");
        }
    }
}
