//! Nothing of a team is stuck, lost or said twice; what members may do with tasks they do with tools.

use std::sync::Arc;

use polyclaw_domain::event::EventKind;
use polyclaw_domain::task::{TaskNo, TeamTaskState};
use polyclaw_domain::team::TeamStatus;
use polyclaw_domain::team_message::{TeamMessageKind, TeamMessageState};
use polyclaw_engine::team::{
    NewMember, NewTeamTask, OutgoingTeamMessage, TaskChange, TaskOutcome, TeamActor, TeamTaskUpdate,
};
use polyclaw_store::events;
use polyclaw_testkit::ScriptStep;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::fixture::{Hall, TEAM, actor, call, code, lead, letter, say};

on_both!(
    task_tools_list_claim_update_and_complete_tasks,
    task_capability_restricts_claim_to_matching_member,
    failed_claim_reports_tasks_already_held,
    lead_ends_unclaimed_tasks_and_drops_dependencies,
    refused_task_update_changes_nothing,
    forced_shutdown_by_lead_needs_person,
    team_config_file_follows_member_turns,
    inbox_files_contain_each_message_once,
    shutdown_of_ended_team_is_idempotent,
    undeliverable_team_message_is_recorded_for_sender,
);

fn operator() -> TeamActor {
    TeamActor::Operator { call: format!("op{}", super::fixture::lead().call_id()) }
}

/// What the calls of somebody's last turn were answered, as values.
fn answers(hall: &Hall, name: &str) -> Vec<Value> {
    let shown = hall.shown(name).pop().unwrap_or_default();
    shown.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("result ")?).ok()).collect()
}

fn numbers(listed: &Value) -> Vec<i64> {
    listed["tasks"].as_array().unwrap().iter().map(|task| task["task_id"].as_i64().unwrap()).collect()
}

async fn task_tools_list_claim_update_and_complete_tasks(hall: Hall) {
    let hall = hall.with_team().await;
    let of = |given: Value| {
        let mut given = given;
        given["team_name"] = json!(TEAM);
        given
    };
    hall.script(
        "ann",
        vec![
            call("TaskList", of(json!({ "available": true }))),
            call("TaskClaim", of(json!({ "task_id": 1 }))),
            call(
                "TaskUpdate",
                of(json!({ "task_id": 1, "status": "in_progress", "activeForm": "Drawing", "note": "half" })),
            ),
            call("TaskList", of(json!({ "owner": "ann" }))),
            call("TaskComplete", of(json!({ "task_id": 1, "summary": "drawn" }))),
            call("TaskList", of(json!({ "owner": "ann", "includeCompleted": true }))),
            call("TaskList", of(json!({ "available": true }))),
            call("TaskUpdate", of(json!({ "task_id": 2, "dropDependsOn": [1] }))),
            say("done"),
        ],
    );
    hall.join("bob").await;
    hall.task("draw", &[]).await;
    hall.task("hang", &[1]).await;
    hall.try_task(NewTeamTask {
        subject: "paint".into(),
        capability: Some("paint".into()),
        ..NewTeamTask::default()
    })
    .await
    .unwrap();
    hall.try_task(NewTeamTask {
        subject: "for bob".into(),
        assignee: Some("bob".into()),
        ..NewTeamTask::default()
    })
    .await
    .unwrap();
    hall.rest().await;
    hall.try_join(NewMember { name: "ann".into(), task: Some("go".into()), ..NewMember::default() })
        .await
        .unwrap();
    hall.rest().await;
    let entries = answers(&hall, "ann");
    assert_eq!(numbers(&entries[0]), [1], "2 is blocked, 3 wants a painter, 4 is bob's");
    assert_eq!((&entries[1]["success"], &entries[1]["task"]["owner"]), (&json!(true), &json!("ann")));
    assert_eq!((&entries[2]["status"], &entries[2]["title"]), (&json!("in_progress"), &json!("Drawing")));
    assert_eq!((numbers(&entries[3]), &entries[3]["tasks"][0]["note"]), (vec![1], &json!("half")));
    assert_eq!(entries[4]["unblocked"], json!([2]));
    assert_eq!((numbers(&entries[5]), &entries[5]["tasks"][0]["status"]), (vec![1], &json!("completed")));
    assert_eq!(entries[5]["tasks"][0]["owner"], "ann", "who did it is found by what was done");
    assert_eq!(numbers(&entries[6]), [2], "what it freed");
    assert_eq!(entries.len(), 7, "what a task waits for is the lead's to say");
}

async fn task_capability_restricts_claim_to_matching_member(hall: Hall) {
    let hall = hall.with_team().await;
    let new =
        NewTeamTask { subject: "paint".into(), capability: Some("paint".into()), ..NewTeamTask::default() };
    hall.try_task(new).await.unwrap();
    let claim = call("TaskClaim", json!({ "team_name": TEAM, "task_id": 1 }));
    hall.script("ann", vec![claim.clone(), say("no")]);
    hall.script("cat", vec![claim, say("mine")]);
    for (name, can) in [("ann", "draw"), ("cat", "paint")] {
        let spawn = json!({ "team_name": TEAM, "name": name, "capabilities": [can], "task": "go" });
        hall.script("lead", vec![call("TeammateSpawn", spawn), say("begun")]);
        hall.world.send_and_wait("one more").await;
        hall.rest().await;
    }
    let ann = answers(&hall, "ann");
    assert_eq!((&ann[0]["success"], &ann[0]["code"]), (&json!(false), &json!("task_capability")));
    assert_eq!(answers(&hall, "cat")[0]["success"], true);
}

async fn lead_ends_unclaimed_tasks_and_drops_dependencies(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = actor(&hall.join("ann").await.session_key);
    for (subject, needs) in [("dig", &[][..]), ("plant", &[1]), ("water", &[2])] {
        hall.task(subject, needs).await;
    }
    hall.rest().await;
    let engine = &hall.world.engine;
    let end = |state| TaskOutcome { state, summary: Some("the lead's word".into()), artifacts: vec![] };
    let refused = engine.finish_task(&ann, TEAM, TaskNo(1), end(TeamTaskState::Failed)).await;
    assert_eq!(code(&refused), "task_not_yours", "a member ends what it holds");
    engine.finish_task(&lead(), TEAM, TaskNo(1), end(TeamTaskState::Failed)).await.unwrap();
    let task = |no| {
        let wanted = polyclaw_engine::team::TaskFilter { with_ended: true, ..Default::default() };
        async move {
            let all = engine.list_tasks(&lead(), TEAM, wanted).await.unwrap();
            all.into_iter().find(|task| task.no == TaskNo(no)).unwrap()
        }
    };
    let ended = task(1).await;
    assert_eq!((ended.state, ended.ended_by.as_deref()), (TeamTaskState::Failed, Some("lead")));
    assert_eq!(task(2).await.blocked_by, [TaskNo(1)], "what failed blocks");
    let drops = |no| TeamTaskUpdate {
        state: None,
        change: TaskChange { drops: vec![TaskNo(no)], ..TaskChange::default() },
    };
    assert_eq!(code(&engine.update_task(&ann, TEAM, TaskNo(2), drops(1)).await), "not_lead");
    let changed = engine.update_task(&lead(), TEAM, TaskNo(2), drops(1)).await.unwrap();
    assert!(changed.needs.is_empty() && changed.blocked_by.is_empty());
    hall.until("ann is told", async || hall.times("ann", "Task #2 is available") > 0).await;
    // Nobody needs to hold what is done already.
    let free = engine.finish_task(&lead(), TEAM, TaskNo(2), end(TeamTaskState::Completed)).await.unwrap();
    assert_eq!(free, [TaskNo(3)]);
    let again = engine.finish_task(&lead(), TEAM, TaskNo(2), end(TeamTaskState::Failed)).await;
    assert_eq!(code(&again), "task_ended");
}

async fn refused_task_update_changes_nothing(hall: Hall) {
    let hall = hall.with_team().await;
    for (subject, needs) in [("dig", &[][..]), ("plant", &[]), ("water", &[2])] {
        hall.task(subject, needs).await;
    }
    let engine = &hall.world.engine;
    engine.claim_task(&lead(), TEAM, Some(TaskNo(1))).await.unwrap();
    let no_such = TaskChange { needs: vec![TaskNo(99)], note: Some("begun".into()), ..TaskChange::default() };
    let update = TeamTaskUpdate { state: Some(TeamTaskState::InProgress), change: no_such };
    let refused = engine.update_task(&lead(), TEAM, TaskNo(1), update).await;
    assert_eq!(code(&refused), "unknown_dependency");
    let swap = TaskChange { needs: vec![TaskNo(99)], drops: vec![TaskNo(2)], ..TaskChange::default() };
    let update = TeamTaskUpdate { state: None, change: swap };
    assert!(engine.update_task(&lead(), TEAM, TaskNo(3), update).await.is_err());
    let all = engine.list_tasks(&lead(), TEAM, polyclaw_engine::team::TaskFilter::default()).await.unwrap();
    let task = |no| all.iter().find(|task| task.no == TaskNo(no)).unwrap();
    assert_eq!((task(1).state, task(3).needs.as_slice()), (TeamTaskState::Claimed, &[TaskNo(2)][..]));
    let give_back = TeamTaskUpdate { state: Some(TeamTaskState::Pending), ..TeamTaskUpdate::default() };
    engine.update_task(&lead(), TEAM, TaskNo(1), give_back).await.unwrap();
}

/// The answer to its first claim may have been lost with a turn that was given up.
async fn failed_claim_reports_tasks_already_held(hall: Hall) {
    let hall = hall.with_team().await;
    hall.task("the only one", &[]).await;
    let claim = || call("TaskClaim", json!({ "team_name": TEAM }));
    hall.script("ann", vec![claim(), claim(), say("I have it")]);
    hall.script("bob", vec![claim(), say("nothing for me")]);
    for name in ["ann", "bob"] {
        hall.join(name).await;
        hall.send(&lead(), name, "take one").await.unwrap();
        hall.rest().await;
    }
    assert!(hall.times("ann", r#""claimedByYou":[1]"#) > 0 && hall.times("bob", r#""claimedByYou":[]"#) > 0);
}

async fn forced_shutdown_by_lead_needs_person(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = actor(&hall.join("ann").await.session_key);
    let stop = call("TeamShutdown", json!({ "team_name": TEAM, "force": true }));
    hall.script("lead", vec![stop.clone(), say("so be it")]);
    hall.send(&ann, "lead", "stop everybody by force").await.unwrap();
    hall.until("the lead tried", async || hall.times("lead", "Only a person can force a shutdown") > 0).await;
    hall.rest().await;
    assert_eq!(hall.world.engine.list_teams(false).await.unwrap()[0].status, TeamStatus::Active);
    hall.script("lead", vec![stop, say("stopped")]);
    hall.world.send_and_wait("stop them by force").await;
    assert!(hall.world.engine.list_teams(false).await.unwrap().is_empty(), "where a person asks for it");
}

async fn team_config_file_follows_member_turns(hall: Hall) {
    let hall = hall.with_team().await;
    hall.join("ann").await;
    hall.rest().await;
    let ann = || hall.json("web/config.json")["members"][0].clone();
    let before = ann()["lastActiveAt"].clone();
    assert_eq!(ann()["status"], "idle");
    let gate = Arc::new(Semaphore::new(0));
    hall.script("ann", vec![vec![ScriptStep::Gate(Arc::clone(&gate)), ScriptStep::Say("done".to_owned())]]);
    hall.send(&lead(), "ann", "work").await.unwrap();
    hall.until("the file says that it works", async || ann()["status"] == "working").await;
    let shown = hall.world.engine.team_snapshot(&lead(), TEAM).await.unwrap();
    assert!(shown.prompt_block(polyclaw_domain::team::state::TeamStateReader::Lead).contains(") working"));
    gate.add_permits(1);
    hall.until("the file says that it rests", async || ann()["status"] == "idle").await;
    assert_ne!(ann()["lastActiveAt"], before);
}

async fn inbox_files_contain_each_message_once(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    let by = lead();
    for _ in 0..3 {
        hall.send(&by, "ann", "the same call, made again").await.unwrap();
    }
    hall.until("the lead is told", async || hall.inbox("lead").iter().any(|one| one["type"] == "idle")).await;
    let same = hall.inbox("ann").iter().filter(|one| one["content"] == "the same call, made again").count();
    assert_eq!(same, 1, "{:?}", hall.inbox("ann"));
    // One that objects keeps the team.
    hall.rest().await;
    let asked = hall.world.engine.shut_down_team(&lead(), TEAM, "", false).await.unwrap();
    let no = OutgoingTeamMessage {
        request_id: Some(asked.members[0].request_id.clone()),
        approve: Some(false),
        reason: Some("not yet".into()),
        ..letter(TeamMessageKind::ShutdownResponse, "")
    };
    hall.world.engine.send_team_message(&actor(&ann.session_key), TEAM, no).await.unwrap();
    let goes_on =
        |one: &Value| one["content"].as_str().unwrap().starts_with("The shutdown is cancelled: ann");
    hall.until("that is told", async || hall.inbox("lead").iter().any(goes_on)).await;
    // Another life finds what it has written and writes none of it again.
    let lines = hall.inbox("lead").len();
    let Hall { world, folder, .. } = hall;
    let db = world.engine.db().clone();
    let killed = world.kill().await;
    // As if it had died before it could note the copies. It must be dead: it trusts what it has noted itself.
    db.write(|tx| tx.execute("UPDATE team_messages SET is_copied = 0", &[]).map(drop)).await.unwrap();
    let world = killed.start_engine(polyclaw_testkit::KillPointFaults::no_kill());
    world.engine.shut_down_team(&lead(), TEAM, "", true).await.unwrap();
    let trash = std::fs::read_dir(folder.path().join("teams/.trash")).unwrap().next().unwrap().unwrap();
    let text = std::fs::read_to_string(trash.path().join("inbox/lead/messages.jsonl")).unwrap();
    let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let says_so = |one: &&Value| one["content"].as_str().unwrap().starts_with("The team web has shut down.");
    assert_eq!(all.iter().filter(says_so).count(), 1, "{text}");
    let mut ids: Vec<&str> = all.iter().map(|one| one["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert!(ids.len() == all.len() && all.len() > lines, "{text}");
}

async fn shutdown_of_ended_team_is_idempotent(hall: Hall) {
    assert_eq!(code(&hall.world.engine.shut_down_team(&operator(), TEAM, "", false).await), "unknown_team");
    let hall = hall.with_team().await;
    for by in [operator(), operator(), TeamActor::on_behalf_of(None, "again".into()), lead()] {
        let ended = hall.world.engine.shut_down_team(&by, TEAM, "", true).await.unwrap();
        assert_eq!((ended.status, ended.members.len()), (TeamStatus::Shutdown, 0));
    }
    let member = TeamActor::on_behalf_of(Some("ann".into()), "not mine".into());
    assert_eq!(code(&hall.world.engine.shut_down_team(&member, TEAM, "", true).await), "unknown_team");
    hall.rest().await;
    assert_eq!(hall.world.engine.list_teams(true).await.unwrap().len(), 1, "it ended once");
}

async fn undeliverable_team_message_is_recorded_for_sender(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    let bob = hall.join("bob").await;
    hall.script("bob", vec![vec![ScriptStep::Hang]]);
    hall.send(&lead(), "bob", "begin").await.unwrap();
    hall.until("bob works", async || hall.shown("bob").len() == 1).await;
    hall.send(&actor(&ann.session_key), "bob", "too late").await.unwrap();
    hall.world.engine.shut_down_team(&operator(), TEAM, "", true).await.unwrap();
    let kind = EventKind::MailUndeliverable.as_str();
    let events =
        hall.world.engine.db().read(move |tx| events::list(tx, 0, Some(kind), None, 9)).await.unwrap();
    let mine: Vec<_> = events.iter().filter(|event| event.data["from"] == "ann").collect();
    assert_eq!(mine.len(), 1, "{events:?}");
    let whose = mine[0].session.as_deref();
    assert_eq!((&mine[0].data["to"], whose), (&json!("bob"), Some(ann.session_key.as_str())));
    let id = mine[0].data["message_id"].as_str().unwrap().to_owned();
    let id = polyclaw_domain::id::TeamMessageId::new(id);
    let stored =
        hall.world.engine.db().read(move |tx| polyclaw_store::team_messages::get(tx, &id)).await.unwrap();
    assert_eq!(stored.unwrap().state, TeamMessageState::Undeliverable);
    assert!(hall.world.engine.load_session(&bob.session_key).await.is_ok());
}
