//! A sub-agent that is stopped is stopped with everything that waits in it; and its result is what it did for its owner.

use std::sync::Arc;

use polyclaw_domain::job::JobState;
use polyclaw_domain::provider::Prompt;
use polyclaw_domain::run::{RunStatus, SubagentRun};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::{Db, jobs};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ModelScript, ScriptStep, ScriptedProvider, last_user_text};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::both::{on_both_databases, until};
use crate::families::{announces, results, said, task, transcript};

on_both_databases!(
    killed_subagent_drops_its_backlog,
    stopping_parent_drops_backlog_of_subagents,
    stopping_subagent_session_ends_its_run,
    killed_queued_subagent_is_cancelled_immediately,
    result_is_announced_despite_message_from_person,
    result_includes_reply_to_owners_follow_up_message,
);

struct Stage {
    world: World,
    model: Arc<ScriptedProvider>,
    gate: Arc<Semaphore>,
}

/// A parent that begins one sub-agent, which waits at a gate before it says "res".
fn script(prompt: &Prompt, gate: &Arc<Semaphore>) -> ModelScript {
    let asked = last_user_text(prompt);
    match (task(prompt), results(prompt)) {
        (first, _) if first.contains("do dig") && !asked.contains("do dig") => {
            vec![ScriptStep::Say(format!("to you: {asked}"))]
        }
        (first, _) if first.contains("do dig") => {
            vec![ScriptStep::Gate(Arc::clone(gate)), ScriptStep::Say("res".into())]
        }
        ("begin", 0) => {
            let task = json!({ "task": "do dig", "label": "worker" });
            vec![ScriptStep::Call("sessions_spawn".into(), task)]
        }
        ("begin", 1) => vec![ScriptStep::Say("begun".into())],
        _ => vec![ScriptStep::Say("noted".into())],
    }
}

async fn staged(db: Db) -> Stage {
    let gate = Arc::new(Semaphore::new(0));
    let own = Arc::clone(&gate);
    let model = ScriptedProvider::new(move |prompt| script(prompt, &own));
    let world =
        DurableWorld::from_db(db, Arc::clone(&model) as _).await.start_engine(KillPointFaults::no_kill());
    assert_eq!(world.send_and_wait("begin").await.text, "begun");
    let stage = Stage { world, model, gate };
    until("the child is at work", || async { stage.child_prompts() == 1 }).await;
    stage
}

impl Stage {
    fn child_prompts(&self) -> usize {
        self.model.prompts().iter().filter(|prompt| task(prompt).contains("do dig")).count()
    }

    async fn command(&self, line: &str) -> String {
        let reply = self.world.engine.run_command(&World::session_key("me"), line).await.unwrap();
        reply.unwrap_or_else(|error| error.to_string())
    }

    async fn run(&self) -> SubagentRun {
        self.world.engine.list_runs(&World::session_key("me"), 10).await.unwrap().pop().unwrap()
    }

    /// Something a person wrote waits in the sub-agent.
    async fn with_queued_message(self) -> Self {
        let text = self.command("/subagents send 1 and then paint").await;
        assert_eq!(text, "The message is delivered at its next step.");
        self
    }

    /// The run has ended as cancelled, nothing of the child is left to do, and it did nothing more.
    async fn assert_run_is_cancelled(&self) {
        until("the run ends", || async { self.run().await.status != RunStatus::Running }).await;
        assert_eq!(self.run().await.status, RunStatus::Cancelled);
        self.gate.add_permits(10);
        self.world.wait_settled().await;
        assert_eq!(self.child_prompts(), 1, "it was asked nothing more");
        let child = self.run().await.child;
        let load = self.world.engine.db().read(move |tx| jobs::session_load(tx, &child)).await.unwrap();
        assert!(load.is_idle(), "{load:?}");
    }
}

async fn killed_subagent_drops_its_backlog(db: Db) {
    let stage = staged(db).await.with_queued_message().await;
    assert_eq!(stage.command("/subagents kill worker").await, "Stopped: worker.");
    stage.assert_run_is_cancelled().await;
    let messages = transcript(stage.world.engine.db(), &World::session_key("me")).await;
    assert_eq!(announces(&messages).len(), 1, "its owner is told once");
    // Whoever writes to it later is answered.
    assert_eq!(stage.command("/subagents send 1 still there?").await, "The message was delivered.");
    stage.world.wait_settled().await;
    let lines = transcript(stage.world.engine.db(), &stage.run().await.child).await;
    assert!(lines.iter().any(|line| line.text == "to you: still there?"), "{lines:#?}");
}

async fn stopping_parent_drops_backlog_of_subagents(db: Db) {
    let stage = staged(db).await.with_queued_message().await;
    assert_eq!(stage.command("/stop").await, "Stopped. Stopped sub-agents: worker.");
    stage.assert_run_is_cancelled().await;
    assert_eq!(stage.command("/stop").await, "Nothing is running.");
}

async fn stopping_subagent_session_ends_its_run(db: Db) {
    let stage = staged(db).await.with_queued_message().await;
    let child = stage.run().await.child;
    stage.world.engine.stop_session(&child).await.unwrap();
    stage.assert_run_is_cancelled().await;
}

async fn killed_queued_subagent_is_cancelled_immediately(db: Db) {
    let mut ground = DurableWorld::from_db(
        db,
        ScriptedProvider::new(|prompt| script(prompt, &Arc::new(Semaphore::new(0)))),
    )
    .await;
    ground.settings.slots.insert(polyclaw_domain::job::JobLane::Subagent, 1);
    let world = ground.start_engine(KillPointFaults::no_kill());
    let owner = World::session_key("me");
    world.send_and_wait("hello").await;
    for text in ["do dig one", "do dig two"] {
        let reply = world.engine.run_command(&owner, &format!("/subagents spawn {text}")).await.unwrap();
        assert!(reply.unwrap().starts_with("Started in "));
    }
    let second = |world: &World| {
        let engine = world.engine.clone();
        async move { engine.list_runs(&World::session_key("me"), 10).await.unwrap().remove(0) }
    };
    let child: SessionKey = second(&world).await.child;
    let waiting = world.engine.db().read(move |tx| jobs::list(tx, Some(&child), None, 5)).await.unwrap();
    assert_eq!(waiting.iter().map(|job| job.state).collect::<Vec<_>>(), [JobState::Queued]);
    let reply = world.engine.run_command(&owner, "/subagents kill 2").await.unwrap().unwrap();
    assert_eq!(reply, "Stopped: do dig two.");
    assert_eq!(second(&world).await.status, RunStatus::Cancelled, "with the command, not with its deadline");
    world.engine.stop_session(&owner).await.unwrap();
    world.wait_settled().await;
}

async fn result_is_announced_despite_message_from_person(db: Db) {
    let stage = staged(db).await.with_queued_message().await;
    stage.gate.add_permits(10);
    until("the run ends", || async { stage.run().await.status == RunStatus::Ok }).await;
    stage.world.wait_settled().await;
    assert_eq!(stage.run().await.result.unwrap().text, "res");
    let lines = transcript(stage.world.engine.db(), &World::session_key("me")).await;
    let messages = announces(&lines);
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].meta.as_ref().unwrap()["result"]["summary"], "res");
    // The answer is read where it was asked for, and no model takes it for its own words.
    let shown: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(
        shown.iter().filter(|text| **text == "worker: to you: and then paint").count(),
        1,
        "{shown:?}"
    );
    stage.world.send_and_wait("and now?").await;
    let prompts = stage.model.prompts();
    assert!(!said(prompts.last().unwrap()).contains("to you: and then paint"));
}

async fn result_includes_reply_to_owners_follow_up_message(db: Db) {
    let gate = Arc::new(Semaphore::new(0));
    let own = Arc::clone(&gate);
    let has_started = Arc::new(Semaphore::new(0));
    let model = ScriptedProvider::new(move |prompt: &Prompt| match (task(prompt), results(prompt)) {
        // The child is at work before it is sent more.
        (first, 0) if first.contains("do dig") && last_user_text(prompt).contains("do dig") => {
            has_started.add_permits(1);
            script(prompt, &own)
        }
        ("begin", 1) => {
            let key = said(prompt).split("child_session_key\":\"").nth(1).unwrap_or_default().to_owned();
            let key = key.split('"').next().unwrap_or_default().to_owned();
            let send = json!({ "session_key": key, "message": "also the roof" });
            vec![ScriptStep::Gate(Arc::clone(&has_started)), ScriptStep::Call("sessions_send".into(), send)]
        }
        ("begin", 2) => vec![ScriptStep::Say("begun".into())],
        _ => script(prompt, &own),
    });
    let world =
        DurableWorld::from_db(db, Arc::clone(&model) as _).await.start_engine(KillPointFaults::no_kill());
    assert_eq!(world.send_and_wait("begin").await.text, "begun");
    gate.add_permits(10);
    let engine = world.engine.clone();
    let run = || async { engine.list_runs(&World::session_key("me"), 10).await.unwrap().pop().unwrap() };
    until("the run ends", || async { run().await.status == RunStatus::Ok }).await;
    let text = run().await.result.unwrap().text;
    assert!(text.contains("also the roof") && text.ends_with("Earlier answer: res"), "{text}");
    world.wait_settled().await;
}
