//! Checks that a task must pass before it counts as done.

use polyclaw_domain::agent::{AgentSpec, SandboxMode, ToolIsolation};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::sandbox::{SandboxFacts, WorkerFault};
use polyclaw_domain::task::{TaskNo, TaskVerification, TeamTaskState};
use polyclaw_domain::tool::{ToolConsent, ToolEffect, ToolOutcome};
use polyclaw_engine::team::{NewMember, NewTeamTask, TaskFilter, TeamActor};
use polyclaw_store::tasks::TaskEventKind;

use super::fixture::{Hall, TEAM, actor, code, lead};
use super::lead::finish;
use super::members::agent;

on_both!(
    failed_check_keeps_task_claimed,
    task_fails_after_five_failed_checks_and_notifies_lead,
    check_that_cannot_run_is_not_counted_as_failed,
    repeated_finish_call_counts_as_one_check,
    check_runs_in_sandbox_mode_of_task_author,
);

async fn failed_check_keeps_task_claimed(hall: Hall) {
    let file = hall.folder.path().join("proof");
    let looked_for = file.clone();
    hall.world.ground.tools.add_tool("shell", ToolEffect::Effect, ToolConsent::NotNeeded, move |call| {
        let outcome = match looked_for.exists() && call.arguments["command"] == "test -f proof" {
            true => ToolOutcome::ok("exit code 0"),
            false => ToolOutcome::error("exit code 1"),
        };
        Box::pin(std::future::ready(outcome))
    });
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    let verify = Some(TaskVerification::Command(" ".into()));
    let empty =
        hall.try_task(NewTeamTask { subject: "prove".into(), verify, ..NewTeamTask::default() }).await;
    assert!(empty.is_err(), "an empty command checks nothing");
    let verify = Some(TaskVerification::Command("test -f proof".into()));
    hall.try_task(NewTeamTask { subject: "prove".into(), verify, ..NewTeamTask::default() }).await.unwrap();
    let by = actor(&ann.session_key);
    let engine = &hall.world.engine;
    engine.claim_task(&by, TEAM, None).await.unwrap();
    let lie = engine.finish_task(&by, TEAM, TaskNo(1), finish(TeamTaskState::Completed, "I did it")).await;
    assert_eq!(code(&lie), "task_not_verified");
    let task = engine.list_tasks(&lead(), TEAM, TaskFilter::default()).await.unwrap().remove(0);
    assert_eq!(
        (task.state, task.note.as_deref()),
        (TeamTaskState::Claimed, Some("check failed: exit code 1"))
    );
    std::fs::write(&file, "yes").unwrap();
    let true_now =
        engine.finish_task(&by, TEAM, TaskNo(1), finish(TeamTaskState::Completed, "I did it")).await;
    assert_eq!(code(&true_now), "ok");
}

async fn task_fails_after_five_failed_checks_and_notifies_lead(hall: Hall) {
    hall.world.ground.tools.add_tool("shell", ToolEffect::Effect, ToolConsent::NotNeeded, |_| {
        Box::pin(std::future::ready(ToolOutcome::error("exit code 1")))
    });
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    let verify = Some(TaskVerification::Command("false".into()));
    hall.try_task(NewTeamTask { subject: "prove".into(), verify, ..NewTeamTask::default() }).await.unwrap();
    let engine = &hall.world.engine;
    let claim = async || engine.claim_task(&actor(&ann.session_key), TEAM, Some(TaskNo(1))).await;
    let done = async |by: &TeamActor| {
        engine.finish_task(by, TEAM, TaskNo(1), finish(TeamTaskState::Completed, "I did it")).await
    };
    for _ in 0..4 {
        claim().await.unwrap();
        assert_eq!(code(&done(&lead()).await), "task_not_verified", "what the lead tries is not counted");
        assert_eq!(code(&done(&actor(&ann.session_key)).await), "task_not_verified");
    }
    claim().await.unwrap();
    let last = done(&actor(&ann.session_key)).await.unwrap_err();
    assert!(last.to_string().ends_with("the task has failed, and the lead is notified."), "{last}");
    hall.rest().await;
    assert_eq!(code(&claim().await), "task_ended");
    assert_eq!(hall.times("lead", "Status: error\nResult: Its check failed 5 times: exit code 1"), 1);
}

/// A hall where `ann` holds a task whose check always ends like this.
async fn with_check(hall: Hall, outcome: ToolOutcome) -> (Hall, TeamActor) {
    hall.world.ground.tools.add_tool("shell", ToolEffect::Effect, ToolConsent::NotNeeded, move |_| {
        Box::pin(std::future::ready(outcome.clone()))
    });
    let hall = hall.with_team().await;
    let by = actor(&hall.join("ann").await.session_key);
    let verify = Some(TaskVerification::Command("true".into()));
    hall.try_task(NewTeamTask { subject: "prove".into(), verify, ..NewTeamTask::default() }).await.unwrap();
    hall.world.engine.claim_task(&by, TEAM, None).await.unwrap();
    (hall, by)
}

async fn failed_checks(hall: &Hall) -> usize {
    let log = hall.world.engine.list_task_events(TEAM, 0, 99).await.unwrap();
    log.iter().filter(|event| event.kind == TaskEventKind::Unverified).count()
}

async fn check_that_cannot_run_is_not_counted_as_failed(hall: Hall) {
    let facts = SandboxFacts {
        mode: SandboxMode::Off,
        isolation: ToolIsolation::Process,
        worker: None,
        crashes: 1,
        fault: Some(WorkerFault::WorkerCrash),
        files: None,
        program: None,
    };
    let crashed = ToolOutcome { facts: Some(facts), ..ToolOutcome::error("the worker process crashed") };
    let (hall, by) = with_check(hall, crashed).await;
    let engine = &hall.world.engine;
    for _ in 0..6 {
        let done = engine.finish_task(&by, TEAM, TaskNo(1), finish(TeamTaskState::Completed, "done")).await;
        let why = done.unwrap_err().to_string();
        assert!(why.starts_with("the check could not run"), "{why}");
    }
    let task = engine.list_tasks(&lead(), TEAM, TaskFilter::default()).await.unwrap().remove(0);
    assert_eq!((task.state, task.note, failed_checks(&hall).await), (TeamTaskState::Claimed, None, 0));
}

async fn repeated_finish_call_counts_as_one_check(hall: Hall) {
    let (hall, by) = with_check(hall, ToolOutcome::error("[exit status 1]")).await;
    for _ in 0..6 {
        let done = finish(TeamTaskState::Completed, "done");
        let done = hall.world.engine.finish_task(&by, TEAM, TaskNo(1), done).await;
        assert_eq!(code(&done), "task_not_verified");
    }
    assert_eq!(failed_checks(&hall).await, 1);
}

/// One behind walls writes a command that one without them has run for it.
async fn check_runs_in_sandbox_mode_of_task_author(hall: Hall) {
    hall.world.ground.tools.add_tool("shell", ToolEffect::Effect, ToolConsent::NotNeeded, |_| {
        Box::pin(std::future::ready(ToolOutcome::ok("[exit status 0]")))
    });
    let mut main = AgentSpec::with_id(AgentId::main());
    main.sandbox.mode = SandboxMode::Workspace;
    main.subagents.allow_agents = vec!["*".into()];
    agent(&hall, main).await;
    let mut walled = AgentSpec::with_id(AgentId::parse("walled").unwrap());
    walled.sandbox.mode = SandboxMode::Strict;
    agent(&hall, walled).await;
    let hall = hall.with_team().await;
    let ann = NewMember { agent: AgentId::parse("walled").ok(), name: "ann".into(), ..NewMember::default() };
    let ann = actor(&hall.try_join(ann).await.unwrap().session_key);
    let bob = hall.join("bob").await.session_key;
    let engine = &hall.world.engine;
    let task = || {
        let verify = Some(TaskVerification::Command("curl example.org".into()));
        NewTeamTask { subject: "prove".into(), verify, ..NewTeamTask::default() }
    };
    for (no, author, mode) in [(1, ann, SandboxMode::Strict), (2, lead(), SandboxMode::Workspace)] {
        engine.create_task(&author, TEAM, task()).await.unwrap();
        engine.claim_task(&actor(&bob), TEAM, Some(TaskNo(no))).await.unwrap();
        let done = finish(TeamTaskState::Completed, "done");
        engine.finish_task(&actor(&bob), TEAM, TaskNo(no), done).await.unwrap();
        assert_eq!(hall.world.ground.tools.sandbox_mode(&bob), Some(mode), "#{no}");
    }
}
