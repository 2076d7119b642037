use std::sync::Arc;

use polyclaw_domain::provider::{ErrorClass, ProviderError};
use polyclaw_domain::session::SessionStatus;
use polyclaw_domain::task::{TaskNo, TeamTaskState};
use polyclaw_domain::team_message::{TeamMessageKind, TeamMessageState};
use polyclaw_engine::team::{
    NewMember, NewTeam, NewTeamTask, OutgoingTeamMessage, TaskOutcome, TeamActor, TeamTaskUpdate,
};
use polyclaw_store::tasks::TaskChange;
use polyclaw_store::{events, sessions, tasks};
use polyclaw_testkit::ScriptStep;
use polyclaw_testkit::world::World;
use serde_json::json;
use tokio::sync::Semaphore;

use super::fixture::{Hall, OPEN, TEAM, actor, call, code, lead, letter, say};

on_both!(
    lead_prompt_shows_members_and_their_tasks,
    assigned_task_wakes_only_its_member,
    free_task_is_offered_to_first_idle_member,
    completed_and_unblocked_tasks_are_announced_to_lead,
    unblocked_task_can_be_assigned_by_lead,
    only_lead_reassigns_tasks,
    team_ends_after_last_shutdown_approval,
    team_state_is_in_prompt_after_compaction,
    failed_member_is_reported_and_team_continues,
    replacement_inherits_tasks_and_team_messages,
    unread_messages_of_replaced_member_are_shown_to_replacement,
    unread_messages_of_old_lead_are_shown_to_new_lead,
    team_status_reports_progress,
    failed_task_notifies_lead_and_keeps_dependents_blocked,
    member_without_claim_gets_task_taken_or_stale_claim,
    team_with_archived_lead_can_be_taken_over,
    tasks_are_filtered_by_metadata,
    only_claim_holder_and_lead_write_task_note,
    number_of_open_tasks_is_limited,
    member_cannot_become_lead,
);

pub fn finish(state: TeamTaskState, summary: &str) -> TaskOutcome {
    TaskOutcome { state, summary: Some(summary.to_owned()), artifacts: vec![] }
}

async fn lead_prompt_shows_members_and_their_tasks(hall: Hall) {
    let hall = hall.with_team().await;
    let new = NewMember { name: "ann".into(), role: Some("painter".into()), ..NewMember::default() };
    let ann = hall.try_join(new).await.unwrap();
    hall.join("bob").await;
    hall.task("draw", &[]).await;
    hall.task("hang", &[1]).await;
    hall.rest().await;
    hall.world.engine.claim_task(&actor(&ann.session_key), TEAM, Some(TaskNo(1))).await.unwrap();
    hall.world.send_and_wait("how are they").await;
    let shown = hall.shown("lead").pop().unwrap();
    let ann_line = format!("- ann (painter, {}) idle: #1 draw", ann.session_key);
    for expected in [
        "=== TEAM STATE ===",
        "Team: web (active)",
        "You are the lead.",
        ann_line.as_str(),
        "- bob (member, agent:main:teammate:",
        "Tasks: 0 pending, 1 in progress, 1 blocked, 0 done, 0 failed of 2",
        "#1 [claimed] draw by ann",
        "#2 [pending] hang blocked by #1",
    ] {
        assert!(shown.contains(expected), "{expected:?} is not in {shown}");
    }
    let status = hall.world.engine.team_snapshot(&lead(), TEAM).await.unwrap();
    hall.script("lead", vec![call("TeamStatus", json!({ "team_name": TEAM }))]);
    hall.world.send_and_wait("in detail").await;
    let shown = hall.shown("lead").pop().unwrap();
    for expected in ["last_active_at", "\"name\":\"ann\"", "draw"] {
        assert!(shown.contains(expected), "{expected:?} is not in {shown}");
    }
    // The time at which it was last active is that of its last turn, and one at work is said to be.
    let since = status.members[0].member.last_active_at;
    let gate = Arc::new(Semaphore::new(0));
    hall.script("bob", vec![vec![ScriptStep::Gate(Arc::clone(&gate)), ScriptStep::Say("done".to_owned())]]);
    hall.send(&lead(), "bob", "work").await.unwrap();
    hall.until("bob works", async || hall.shown("bob").iter().any(|shown| shown.contains(">work<"))).await;
    hall.world.send_and_wait("and now").await;
    let shown = hall.shown("lead").pop().unwrap();
    let roster: Vec<&str> = shown.lines().filter(|line| line.starts_with("- ")).collect();
    let of = |name: &str| roster.iter().find(|line| line.starts_with(&format!("- {name} ("))).unwrap();
    assert!(of("bob").contains(") working") && of("ann").contains(") idle"), "{roster:?}");
    gate.add_permits(1);
    hall.send(&lead(), "ann", "a turn for you").await.unwrap();
    hall.rest().await;
    let status = hall.world.engine.team_snapshot(&lead(), TEAM).await.unwrap();
    assert!(status.members[0].member.last_active_at > since, "{since} has not changed");
    let stored = hall.world.transcript("me").await;
    assert!(stored.iter().all(|line| !line.text.contains("TEAM STATE")), "it is in no history");
}

async fn assigned_task_wakes_only_its_member(hall: Hall) {
    let hall = hall.with_team().await;
    hall.script("bob", vec![call("TaskClaim", json!({ "team_name": TEAM })), say("on it")]);
    hall.join("ann").await;
    hall.join("bob").await;
    let new =
        NewTeamTask { subject: "for bob".into(), assignee: Some("bob".into()), ..NewTeamTask::default() };
    hall.try_task(new).await.unwrap();
    hall.rest().await;
    let task = hall
        .world
        .engine
        .list_tasks(&lead(), TEAM, polyclaw_engine::team::TaskFilter::default())
        .await
        .unwrap()
        .remove(0);
    assert_eq!((task.state, task.lease.unwrap().owner.as_str()), (TeamTaskState::Claimed, "bob"));
    assert!(hall.shown("ann").is_empty(), "nobody else is woken for it");
    let unknown = NewTeamTask { subject: "x".into(), assignee: Some("eve".into()), ..NewTeamTask::default() };
    assert_eq!(code(&hall.try_task(unknown).await), "not_a_member");
}

async fn free_task_is_offered_to_first_idle_member(hall: Hall) {
    let hall = hall.with_team().await;
    for name in ["cat", "ann", "bob"] {
        hall.join(name).await;
    }
    // Who takes it keeps it: what nobody takes is offered to the next.
    hall.script("cat", vec![call("TaskClaim", json!({ "team_name": TEAM })), say("on it")]);
    hall.task("one", &[]).await;
    hall.rest().await;
    assert_eq!(
        (hall.times("cat", "Task #1 is available"), hall.shown("ann").len(), hall.shown("bob").len()),
        (2, 0, 0),
        "the first to join, in both calls of its turn"
    );
    assert!(hall.inbox("cat")[0]["content"].as_str().unwrap().starts_with("Task #1 is available: one"));
    assert!(!hall.path(&format!("{TEAM}/inbox/messages.jsonl")).exists(), "every letter is somebody's");
}

async fn completed_and_unblocked_tasks_are_announced_to_lead(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    let by = actor(&ann.session_key);
    hall.task("draw", &[]).await;
    hall.task("hang", &[1]).await;
    hall.rest().await;
    let engine = &hall.world.engine;
    engine.claim_task(&by, TEAM, Some(TaskNo(1))).await.unwrap();
    let free = engine
        .finish_task(&by, TEAM, TaskNo(1), finish(TeamTaskState::Completed, "done well"))
        .await
        .unwrap();
    assert_eq!(free, [TaskNo(2)]);
    hall.rest().await;
    let shown = hall
        .shown("lead")
        .into_iter()
        .find(|prompt| prompt.contains("[Context: subagent_announce]"))
        .unwrap();
    assert!(
        shown.contains("#1 draw") && shown.contains("done well") && shown.contains("Unblocked: #2 hang"),
        "{shown}"
    );
    hall.until("ann is asked", async || hall.times("ann", "Task #2 is available: hang") > 0).await;
}

/// The lead hears that something is available and says whose it is: that one is told, takes it, and nobody else can.
async fn unblocked_task_can_be_assigned_by_lead(hall: Hall) {
    let hall = hall.with_team().await;
    let (ann, bob) = (hall.join("ann").await, hall.join("bob").await);
    hall.task("draw", &[]).await;
    hall.task("hang", &[1]).await;
    let engine = &hall.world.engine;
    let blocked = engine.claim_task(&actor(&bob.session_key), TEAM, Some(TaskNo(2))).await;
    assert_eq!(code(&blocked), "task_blocked");
    hall.rest().await;
    let gives = |name: &str| json!({ "team_name": TEAM, "task_id": 2, "assignee": name });
    hall.script("lead", vec![call("TaskUpdate", gives("bob")), say("it is bob's")]);
    let by = actor(&ann.session_key);
    engine.claim_task(&by, TEAM, Some(TaskNo(1))).await.unwrap();
    engine.finish_task(&by, TEAM, TaskNo(1), finish(TeamTaskState::Completed, "x")).await.unwrap();
    hall.until("bob is told", async || hall.times("bob", "Task #2 is available: hang") > 0).await;
    let taken = engine.claim_task(&actor(&ann.session_key), TEAM, Some(TaskNo(2))).await;
    assert_eq!(code(&taken), "task_assigned");
    let taken = engine.claim_task(&actor(&bob.session_key), TEAM, None).await.unwrap();
    assert_eq!((taken.no, taken.lease.unwrap().owner.as_str()), (TaskNo(2), "bob"));
}

async fn only_lead_reassigns_tasks(hall: Hall) {
    let hall = hall.with_team().await;
    let (ann, bob) = (hall.join("ann").await, hall.join("bob").await);
    hall.task("draw", &[]).await;
    let engine = &hall.world.engine;
    let give = |by: TeamActor, name: &str, state: Option<TeamTaskState>| {
        let change = TaskChange { assignee: Some(name.to_owned()), ..TaskChange::default() };
        async move { engine.update_task(&by, TEAM, TaskNo(1), TeamTaskUpdate { state, change }).await }
    };
    assert_eq!(code(&give(actor(&bob.session_key), "bob", None).await), "not_lead");
    assert_eq!(code(&give(lead(), "eve", None).await), "not_a_member");
    engine.claim_task(&actor(&ann.session_key), TEAM, None).await.unwrap();
    assert_eq!(code(&give(lead(), "bob", None).await), "task_taken", "ann has it");
    let given = give(lead(), "bob", Some(TeamTaskState::Pending)).await.unwrap();
    assert_eq!((given.lease, given.assignee.as_deref()), (None, Some("bob")), "taken from one for the other");
    let freed = give(lead(), "", None).await.unwrap();
    assert_eq!(freed.assignee, None, "and it is anybody's again");
}

async fn team_ends_after_last_shutdown_approval(hall: Hall) {
    let hall = hall.with_team().await;
    let mut all = Vec::new();
    for name in ["ann", "bob", "cat"] {
        all.push(hall.join(name).await);
    }
    let engine = &hall.world.engine;
    let ended = engine.shut_down_team(&lead(), TEAM, "", false).await.unwrap();
    for (n, member) in all.iter().enumerate() {
        assert_eq!(engine.list_teams(false).await.unwrap().len(), 1, "after {n} of three");
        assert!(hall.path(TEAM).exists());
        let request = ended.members.iter().find(|one| one.name == member.name).unwrap();
        let yes = OutgoingTeamMessage {
            request_id: Some(request.request_id.clone()),
            approve: Some(true),
            ..letter(TeamMessageKind::ShutdownResponse, "bye")
        };
        engine.send_team_message(&actor(&member.session_key), TEAM, yes).await.unwrap();
    }
    assert!(engine.list_teams(false).await.unwrap().is_empty());
    hall.until("its folder is gone", async || !hall.path(TEAM).exists()).await;
}

async fn team_state_is_in_prompt_after_compaction(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    for subject in ["draw", "hang"] {
        let no = hall.task(subject, &[]).await;
        hall.world.engine.claim_task(&actor(&ann.session_key), TEAM, Some(no)).await.unwrap();
    }
    let done = finish(TeamTaskState::Completed, "x");
    hall.world.engine.finish_task(&actor(&ann.session_key), TEAM, TaskNo(2), done).await.unwrap();
    for round in 0..4 {
        hall.world.send_and_wait(&format!("round {round}")).await;
        hall.world.engine.compact_session(&World::session_key("me")).await.unwrap();
        hall.rest().await;
    }
    hall.world.send_and_wait("who is there").await;
    let shown = hall.shown("lead").pop().unwrap();
    assert!(shown.contains("Summary of the conversation"), "{shown}");
    for known in [
        "Team: web (active)",
        "- ann (member, ",
        "1 in progress, 0 blocked, 1 done",
        "#1 [claimed] draw by ann",
    ] {
        assert!(shown.contains(known), "{known:?} is not in {shown}");
    }
}

async fn failed_member_is_reported_and_team_continues(hall: Hall) {
    let hall = hall.with_team().await;
    let failure = ProviderError {
        class: ErrorClass::BadRequest,
        message: "no".into(),
        model: "scripted/model".into(),
        retry_after_ms: None,
    };
    hall.script("ann", vec![vec![ScriptStep::Fail(failure)]]);
    let ann = hall.join("ann").await;
    hall.join("bob").await;
    hall.send(&lead(), "ann", "go").await.unwrap();
    hall.until("the lead knows", async || hall.times("lead", "ann is idle: failed") > 0).await;
    hall.send(&lead(), "bob", "go on").await.unwrap();
    hall.rest().await;
    assert_eq!(hall.times("bob", ">go on<"), 1);
    hall.send(&lead(), "ann", "again").await.unwrap();
    hall.rest().await;
    let shown = hall.shown("ann").pop().unwrap();
    assert!(shown.contains(">go<") && shown.contains(">again<"), "what a failed turn showed is shown again");
    let failed =
        hall.world.engine.db().read(|tx| events::list(tx, 0, Some("turn.failed"), None, 9)).await.unwrap();
    assert_eq!(
        failed.iter().map(|event| event.session.as_deref()).collect::<Vec<_>>(),
        [Some(ann.session_key.as_str())]
    );
}

async fn replacement_inherits_tasks_and_team_messages(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    hall.task("draw", &[]).await;
    hall.rest().await;
    let engine = &hall.world.engine;
    engine.claim_task(&actor(&ann.session_key), TEAM, Some(TaskNo(1))).await.unwrap();
    engine.delete_session(&ann.session_key).await.unwrap();
    hall.until("the lead knows", async || hall.times("lead", "ann is lost") > 0).await;
    hall.send(&lead(), "ann", "for whoever is ann").await.unwrap();
    let new = hall.join("ann").await;
    assert_eq!(new.inherited, [TaskNo(1)]);
    assert_ne!(new.session_key, ann.session_key);
    hall.rest().await;
    assert_eq!(hall.times("ann", ">for whoever is ann<"), 1, "it is woken for the mail of its name");
    assert_all_messages_read(&hall, "ann").await;
    let done = engine
        .finish_task(&actor(&new.session_key), TEAM, TaskNo(1), finish(TeamTaskState::Completed, "x"))
        .await;
    assert_eq!(code(&done), "ok");
}

/// Everything written to a name was read by a turn that ended well.
async fn assert_all_messages_read(hall: &Hall, name: &str) {
    let messages = hall.world.engine.list_team_messages(TEAM, 99).await.unwrap();
    for message in messages.iter().filter(|message| message.to == name) {
        assert_eq!(message.state, TeamMessageState::Read, "{message:?}");
    }
}

async fn unread_messages_of_replaced_member_are_shown_to_replacement(hall: Hall) {
    let hall = hall.with_team().await;
    let forever = || vec![ScriptStep::Gate(Arc::new(Semaphore::new(0))), ScriptStep::Say("never".to_owned())];
    let mut ann = hall.join("ann").await.session_key;
    // First without a task, so that mail is all that can wake it, then with one.
    for (task, text) in [(None, "first"), (Some("go on".to_owned()), "second")] {
        hall.script("ann", vec![forever()]);
        hall.send(&lead(), "ann", text).await.unwrap();
        let held = format!(">{text}<");
        hall.until("ann reads", async || hall.times("ann", &held) == 1).await;
        let new = NewMember { name: "ann".into(), task, replaces: true, ..NewMember::default() };
        let next = hall.try_join(new).await.unwrap().session_key;
        let before = std::mem::replace(&mut ann, next);
        let status = hall.world.engine.load_session(&before).await.unwrap().status;
        assert_eq!(status, SessionStatus::Archived, "its earlier life is over");
        hall.rest().await;
        assert_eq!(hall.times("ann", &held), 2, "once to the one that was replaced, once to the next");
        assert_all_messages_read(&hall, "ann").await;
    }
}

async fn unread_messages_of_old_lead_are_shown_to_new_lead(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    hall.world.send_text("other", "hi").await.unwrap();
    hall.rest().await;
    let forever = vec![ScriptStep::Gate(Arc::new(Semaphore::new(0))), ScriptStep::Say("never".to_owned())];
    hall.script("lead", vec![forever]);
    hall.send(&actor(&ann.session_key), "lead", "look here").await.unwrap();
    hall.until("the lead reads", async || hall.times("lead", ">look here<") == 1).await;
    hall.world.engine.set_team_lead(TEAM, &World::session_key("other")).await.unwrap();
    hall.until("the next lead reads", async || hall.times("lead", ">look here<") == 2).await;
    hall.world.engine.stop_session(&World::session_key("me")).await.unwrap();
    hall.rest().await;
    assert_all_messages_read(&hall, "lead").await;
}

async fn team_status_reports_progress(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    for n in 0..3 {
        hall.task(&format!("t{n}"), &[]).await;
    }
    let by = actor(&ann.session_key);
    let engine = &hall.world.engine;
    engine.claim_task(&by, TEAM, None).await.unwrap();
    engine.finish_task(&by, TEAM, TaskNo(1), finish(TeamTaskState::Completed, "x")).await.unwrap();
    hall.rest().await;
    hall.script("lead", vec![call("TeamStatus", json!({ "team_name": TEAM }))]);
    hall.world.send_and_wait("report").await;
    assert!(hall.times("lead", "\"progress\":\"1 of 3 ended\"") > 0);
    assert_eq!(engine.team_snapshot(&lead(), TEAM).await.unwrap().counts.pending, 2);
}

async fn failed_task_notifies_lead_and_keeps_dependents_blocked(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    hall.task("draw", &[]).await;
    hall.task("hang", &[1]).await;
    let by = actor(&ann.session_key);
    let engine = &hall.world.engine;
    engine.claim_task(&by, TEAM, Some(TaskNo(1))).await.unwrap();
    engine.finish_task(&by, TEAM, TaskNo(1), finish(TeamTaskState::Failed, "no paint")).await.unwrap();
    hall.rest().await;
    let text = "Status: error\nResult: no paint";
    assert!(hall.times("lead", text) > 0);
    assert!(hall.shown("lead").iter().all(|prompt| prompt.matches(text).count() <= 1), "never twice in one");
    assert!(hall.times("lead", "stay blocked") > 0);
    assert_eq!(code(&engine.claim_task(&by, TEAM, Some(TaskNo(2))).await), "task_blocked");
    let log = engine.list_task_events(TEAM, 0, 99).await.unwrap();
    assert!(log.iter().any(|event| event.kind == tasks::TaskEventKind::Failed));
}

async fn member_without_claim_gets_task_taken_or_stale_claim(hall: Hall) {
    let hall = hall.with_team().await;
    let (ann, bob) = (hall.join("ann").await, hall.join("bob").await);
    hall.task("draw", &[]).await;
    let engine = &hall.world.engine;
    let done = async |key| {
        engine.finish_task(&actor(key), TEAM, TaskNo(1), finish(TeamTaskState::Completed, "drawn")).await
    };
    engine.claim_task(&actor(&ann.session_key), TEAM, None).await.unwrap();
    assert_eq!(code(&done(&bob.session_key).await), "task_taken");
    let start = TeamTaskUpdate { state: Some(TeamTaskState::InProgress), ..TeamTaskUpdate::default() };
    assert_eq!(
        code(&engine.update_task(&actor(&bob.session_key), TEAM, TaskNo(1), start).await),
        "task_taken"
    );
    let release = TeamTaskUpdate { state: Some(TeamTaskState::Pending), ..TeamTaskUpdate::default() };
    engine.update_task(&actor(&ann.session_key), TEAM, TaskNo(1), release).await.unwrap();
    engine.claim_task(&actor(&bob.session_key), TEAM, Some(TaskNo(1))).await.unwrap();
    assert_eq!(code(&done(&ann.session_key).await), "stale_claim", "she had it once");
    assert_eq!(code(&done(&bob.session_key).await), "ok");
}

async fn team_with_archived_lead_can_be_taken_over(hall: Hall) {
    let hall = hall.with_team().await;
    hall.join("ann").await;
    hall.task("left", &[]).await;
    hall.rest().await;
    hall.world.send_text("other", "hi").await.unwrap();
    hall.rest().await;
    let other = World::session_key("other");
    let take = |lead: &polyclaw_domain::session_key::SessionKey| NewTeam {
        name: TEAM.into(),
        description: String::new(),
        agent_type: String::new(),
        lead: lead.clone(),
        turn: None,
    };
    let engine = &hall.world.engine;
    assert_eq!(
        code(&engine.create_team(&actor(&other), take(&other)).await),
        "team_exists",
        "its lead is there"
    );
    let me = World::session_key("me");
    engine.db().write(move |tx| sessions::set_status(tx, &me, SessionStatus::Archived)).await.unwrap();
    let taken = engine.create_team(&actor(&other), take(&other)).await.unwrap();
    assert_eq!((&taken.lead, taken.name.as_str()), (&other, TEAM));
    let view = engine.team_snapshot(&actor(&other), TEAM).await.unwrap();
    assert_eq!((view.members.len(), view.open.len()), (1, 1));
    assert_eq!(code(&engine.team_snapshot(&lead(), TEAM).await), "not_in_team");
    let operator = TeamActor::Operator { call: "o".into() };
    engine
        .set_team_lead(TEAM, &World::session_key("me"))
        .await
        .expect("an operator gives it to whom they like");
    assert_eq!(code(&engine.team_snapshot(&operator, TEAM).await), "ok");
}

async fn tasks_are_filtered_by_metadata(hall: Hall) {
    let hall = hall.with_team().await;
    for (subject, part) in [("a", "front"), ("b", "back"), ("c", "front")] {
        let metadata = Some(json!({ "part": part, "n": 1 }));
        hall.try_task(NewTeamTask { subject: subject.into(), metadata, ..NewTeamTask::default() })
            .await
            .unwrap();
    }
    let wanted = polyclaw_engine::team::TaskFilter {
        metadata: Some(json!({ "part": "front" })),
        ..Default::default()
    };
    let found = hall.world.engine.list_tasks(&lead(), TEAM, wanted).await.unwrap();
    assert_eq!(found.iter().map(|task| task.subject.as_str()).collect::<Vec<_>>(), ["c", "a"]);
    assert_eq!(code(&hall.try_task(NewTeamTask::default()).await), "invalid_task");
    let long = NewTeamTask { subject: "x".repeat(201), ..NewTeamTask::default() };
    assert_eq!(code(&hall.try_task(long).await), "invalid_task");
}

async fn number_of_open_tasks_is_limited(hall: Hall) {
    let hall = hall.with_team().await;
    for n in 0..OPEN {
        hall.task(&format!("task {n}"), &[]).await;
    }
    let more = || NewTeamTask { subject: "one more".into(), ..NewTeamTask::default() };
    assert_eq!(code(&hall.try_task(more()).await), "too_many_tasks");
    hall.world
        .engine
        .finish_task(&lead(), TEAM, TaskNo(1), finish(TeamTaskState::Failed, "given up"))
        .await
        .unwrap();
    assert_eq!(code(&hall.try_task(more()).await), "ok", "those that have ended do not count");
}

async fn only_claim_holder_and_lead_write_task_note(hall: Hall) {
    let hall = hall.with_team().await;
    let (ann, bob) = (hall.join("ann").await, hall.join("bob").await);
    hall.task("draw", &[]).await;
    let engine = &hall.world.engine;
    engine.claim_task(&actor(&ann.session_key), TEAM, Some(TaskNo(1))).await.unwrap();
    let note = |text: &str| TeamTaskUpdate {
        state: None,
        change: TaskChange { note: Some(text.to_owned()), ..TaskChange::default() },
    };
    let add = async |by, text| engine.update_task(&by, TEAM, TaskNo(1), note(text)).await;
    assert_eq!(code(&add(actor(&bob.session_key), "never mind").await), "task_taken");
    assert_eq!(code(&add(actor(&ann.session_key), "half done").await), "ok");
    assert_eq!(add(lead(), "hurry").await.unwrap().note.as_deref(), Some("hurry"));
}

async fn member_cannot_become_lead(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    assert_eq!(code(&hall.world.engine.set_team_lead(TEAM, &ann.session_key).await), "not_lead");
}
