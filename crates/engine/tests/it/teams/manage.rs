//! What the lead, people and hooks do with tasks and members.

use std::sync::Arc;

use polyclaw_domain::config::HookEvent;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::task::{TaskNo, TeamTaskState};
use polyclaw_domain::team::TeamStatus;
use polyclaw_domain::team_message::TeamMessageKind;
use polyclaw_engine::ingress::IngressMessage;
use polyclaw_engine::team::{
    HookAnswer, NewMember, NewTeamTask, OutgoingTeamMessage, TaskFilter, TaskOutcome, TeamActor, TeamHooks,
};
use polyclaw_testkit::world::World;
use serde_json::{Value, json};

use super::fixture::{Hall, TEAM, actor, code, lead, letter};

on_both!(
    refused_task_consumes_no_number,
    tasks_are_reopened_and_deleted,
    a_task_is_completed_once,
    tasks_are_filtered_by_owner_name_or_session,
    shutdown_request_keeps_given_request_id,
    closed_member_refuses_messages,
    ended_team_can_be_inspected_and_leaves_no_wal,
    member_model_of_unknown_provider_is_refused,
    hooks_can_refuse_task_completion_and_idle,
    member_session_key_has_own_uuid,
);

fn done(summary: &str) -> TaskOutcome {
    TaskOutcome { state: TeamTaskState::Completed, summary: Some(summary.to_owned()), artifacts: vec![] }
}

async fn refused_task_consumes_no_number(hall: Hall) {
    let hall = hall.with_team().await;
    hall.task("one", &[]).await;
    let needs = vec![TaskNo(99)];
    let unknown = || NewTeamTask { subject: "x".into(), needs: needs.clone(), ..NewTeamTask::default() };
    for _ in 0..2 {
        assert!(hall.try_task(unknown()).await.is_err());
    }
    let odd = NewTeamTask { subject: "x".into(), metadata: Some(json!("text")), ..NewTeamTask::default() };
    assert_eq!(code(&hall.try_task(odd).await), "invalid_task");
    assert_eq!(hall.task("two", &[]).await, TaskNo(2));
}

async fn tasks_are_reopened_and_deleted(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = actor(&hall.join("ann").await.session_key);
    let engine = &hall.world.engine;
    let one = hall.task("one", &[]).await;
    let two = hall.task("two", &[one.0]).await;
    assert_eq!(code(&engine.reopen_task(&lead(), TEAM, one).await), "task_not_ended");
    engine.claim_task(&ann, TEAM, Some(one)).await.unwrap();
    assert_eq!(code(&engine.delete_task(&lead(), TEAM, one).await), "task_taken");
    engine.finish_task(&ann, TEAM, one, done("ok")).await.unwrap();
    assert_eq!(code(&engine.reopen_task(&ann, TEAM, one).await), "not_lead");
    let again = engine.reopen_task(&lead(), TEAM, one).await.unwrap();
    assert_eq!((again.state, again.summary), (TeamTaskState::Pending, None));
    let blocked = engine.claim_task(&ann, TEAM, Some(two)).await;
    assert_eq!(code(&blocked), "task_blocked", "what waits for it waits again");
    engine.delete_task(&lead(), TEAM, one).await.unwrap();
    engine.claim_task(&ann, TEAM, Some(two)).await.unwrap();
    let left = engine
        .list_tasks(&lead(), TEAM, TaskFilter { with_ended: true, ..TaskFilter::default() })
        .await
        .unwrap();
    assert_eq!(left.iter().map(|task| task.no).collect::<Vec<_>>(), [two]);
    assert_eq!(hall.task("three", &[]).await, TaskNo(3), "a number is not given twice");
    hall.rest().await;
}

async fn a_task_is_completed_once(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await.session_key;
    let (no, by) = (hall.task("one", &[]).await, actor(&ann));
    hall.world.engine.claim_task(&by, TEAM, Some(no)).await.unwrap();
    hall.world.engine.finish_task(&by, TEAM, no, done("first")).await.unwrap();
    let again = hall.world.engine.finish_task(&by, TEAM, no, done("first")).await;
    assert_eq!(code(&again), "ok", "the same call, made again after a crash");
    let second = hall.world.engine.finish_task(&actor(&ann), TEAM, no, done("second")).await;
    assert_eq!(code(&second), "task_ended", "another call is told that it has ended");
}

async fn tasks_are_filtered_by_owner_name_or_session(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await.session_key;
    let no = hall.task("one", &[]).await;
    hall.world.engine.claim_task(&actor(&ann), TEAM, Some(no)).await.unwrap();
    let of = |owner: &str| TaskFilter { owner: Some(owner.to_owned()), ..TaskFilter::default() };
    for owner in ["ann", ann.as_str()] {
        assert_eq!(hall.world.engine.list_tasks(&lead(), TEAM, of(owner)).await.unwrap().len(), 1, "{owner}");
    }
    let nobody = hall.world.engine.list_tasks(&lead(), TEAM, of("nobody")).await;
    assert_eq!(code(&nobody), "not_a_member");
}

async fn shutdown_request_keeps_given_request_id(hall: Hall) {
    let hall = hall.with_team().await;
    hall.join("ann").await;
    let asked = OutgoingTeamMessage {
        to: Some("ann".into()),
        request_id: Some("abc-123".into()),
        ..letter(TeamMessageKind::ShutdownRequest, "we are done")
    };
    let sent = hall.world.engine.send_team_message(&lead(), TEAM, asked).await.unwrap();
    assert_eq!(sent.request_id.as_deref(), Some("abc-123"));
    let odd = OutgoingTeamMessage { to: Some("ann".into()), ..letter(TeamMessageKind::Broadcast, "all") };
    assert_eq!(code(&hall.world.engine.send_team_message(&lead(), TEAM, odd).await), "invalid_message");
}

async fn closed_member_refuses_messages(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await.session_key;
    hall.world.engine.shut_down_team(&lead(), TEAM, "", true).await.unwrap();
    hall.rest().await;
    let inbound = World::inbound("me", "are you there?");
    let asked = hall.world.engine.accept_message(IngressMessage { session: ann, ..inbound }).await;
    assert_eq!(code(&asked), "invalid_state");
}

async fn ended_team_can_be_inspected_and_leaves_no_wal(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = actor(&hall.join("ann").await.session_key);
    let no = hall.task("Header", &[]).await;
    hall.world.engine.claim_task(&ann, TEAM, Some(no)).await.unwrap();
    hall.world.engine.finish_task(&ann, TEAM, no, done("drawn")).await.unwrap();
    hall.world.engine.shut_down_team(&lead(), TEAM, "", true).await.unwrap();
    hall.rest().await;
    let operator = TeamActor::Operator { call: "look".into() };
    let view = hall.world.engine.team_snapshot(&operator, TEAM).await.unwrap();
    assert_eq!((view.team.status, view.counts.completed, view.members.len()), (TeamStatus::Shutdown, 1, 1));
    assert!(!hall.world.engine.list_task_events(TEAM, 0, 99).await.unwrap().is_empty());
    let all = TaskFilter { with_ended: true, ..TaskFilter::default() };
    assert_eq!(hall.world.engine.list_tasks(&operator, TEAM, all).await.unwrap().len(), 1);
    for folder in std::fs::read_dir(hall.path(".trash")).unwrap() {
        let log = folder.unwrap().path().join("ledger.db-wal");
        let left = std::fs::metadata(&log).map_or(0, |file| file.len());
        assert_eq!(left, 0, "the log of an ended team is in its ledger");
    }
}

async fn member_model_of_unknown_provider_is_refused(hall: Hall) {
    let hall = hall.reconfigured(|settings| settings.providers = vec!["known".to_owned()]).await;
    let hall = hall.with_team().await;
    let model = polyclaw_domain::provider::ModelRef::parse("nope/gpt").ok();
    let new = NewMember { name: "ann".into(), model, ..NewMember::default() };
    assert_eq!(code(&hall.try_join(new).await), "unknown_provider");
}

async fn member_session_key_has_own_uuid(hall: Hall) {
    let hall = hall.with_team().await;
    let key = hall.join("ann").await.session_key;
    let uuid = key.as_str().strip_prefix("agent:main:teammate:").expect("the key of a teammate");
    assert_eq!((uuid.len(), uuid.matches('-').count()), (36, 4), "{uuid}");
}

/// Refuses the first end of a task and the first rest of a member.
struct Strict(std::sync::atomic::AtomicUsize);

impl TeamHooks for Strict {
    fn call_hook(&self, event: HookEvent, _: &SessionKey, body: Value) -> HookAnswer {
        let is_first = |bit: usize| self.0.fetch_or(bit, std::sync::atomic::Ordering::SeqCst) & bit == 0;
        let answer = match event {
            HookEvent::TaskCompleting if is_first(1) => Err(format!("no tests for {}", body["text"])),
            HookEvent::TeammateIdle if is_first(2) => Err("look at the tests again".to_owned()),
            _ => Ok(()),
        };
        Box::pin(async move { answer })
    }
}

async fn hooks_can_refuse_task_completion_and_idle(hall: Hall) {
    let hall = hall.with_team().await;
    let engine = &hall.world.engine;
    engine.set_team_hooks(Some(Arc::new(Strict(0.into()))));
    let ann = actor(&hall.join("ann").await.session_key);
    let no = hall.task("Header", &[]).await;
    engine.claim_task(&ann, TEAM, Some(no)).await.unwrap();
    let refused = engine.finish_task(&ann, TEAM, no, done("ok")).await.unwrap_err();
    assert!(refused.to_string().contains("no tests for"), "{refused}");
    engine.finish_task(&ann, TEAM, no, done("ok")).await.unwrap();
    hall.send(&lead(), "ann", "thanks").await.unwrap();
    hall.until("it is sent back", async || hall.times("ann", "look at the tests again") > 0).await;
    hall.rest().await;
}
