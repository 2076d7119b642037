use std::sync::Arc;

use polyclaw_domain::authority::Authority;
use polyclaw_domain::session::SessionStatus;
use polyclaw_domain::task::TaskNo;
use polyclaw_domain::team::TeamStatus;
use polyclaw_domain::team::shutdown::ShutdownAnswer;
use polyclaw_domain::team_message::TeamMessageKind;
use polyclaw_engine::team::{
    NewMember, NewTeam, OutgoingTeamMessage, SpawnedTeammate, TaskFilter, TeamActor, TeamShutdownStatus,
};
use polyclaw_store::jobs;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{KillPointFaults, ScriptStep};
use serde_json::json;
use tokio::sync::Semaphore;

use super::fixture::{Hall, TEAM, actor, call, code, lead, letter};

on_both!(
    new_team_has_folder_config_and_ledger,
    invalid_team_name_creates_nothing,
    team_name_must_be_unique,
    team_without_members_ends_immediately,
    shutdown_sends_request_to_every_member,
    approving_member_is_closed_and_lead_is_notified,
    approving_member_runs_no_further_step,
    rejecting_member_cancels_team_shutdown,
    silence_of_working_member_cancels_shutdown,
    silence_of_idle_member_counts_as_approval,
    member_that_becomes_idle_does_not_cancel_shutdown,
    working_subagents_cancel_team_shutdown,
    no_member_joins_team_during_shutdown,
    forced_shutdown_asks_no_member,
    repeated_shutdown_never_ends_new_team_of_same_name,
    shutdown_request_to_replaced_member_spares_replacement,
    new_team_of_same_name_finds_no_old_data,
    interrupted_team_shutdown_continues_after_restart,
    number_of_teams_is_limited,
    concurrent_team_creation_respects_limit,
    non_owner_teams_leave_room_for_owner_teams,
);

async fn new_team_has_folder_config_and_ledger(hall: Hall) {
    let team = hall.create(TEAM).await.unwrap();
    let config = hall.json("web/config.json");
    assert_eq!((config["name"].as_str(), config["status"].as_str()), (Some("web"), Some("active")));
    assert_eq!(config["agentType"], "researcher");
    assert_eq!(config["description"], "to build a page");
    assert_eq!(config["leadSessionKey"], team.lead.as_str());
    assert_eq!(hall.json("teams.json")["teams"][0]["name"], "web");
    let on_a_file = !hall.world.engine.db().is_shared();
    assert_eq!(hall.path("web/ledger.db").exists(), on_a_file);
    hall.task("it is written to", &[]).await;
}

async fn invalid_team_name_creates_nothing(hall: Hall) {
    assert_eq!(code(&hall.create("test@team").await), "invalid_name");
    assert_eq!(code(&hall.create("../up").await), "invalid_name");
    assert!(!hall.path("test@team").exists());
    assert!(hall.world.engine.list_teams(true).await.unwrap().is_empty());
}

async fn team_name_must_be_unique(hall: Hall) {
    hall.create(TEAM).await.unwrap();
    assert_eq!(code(&hall.create(TEAM).await), "team_exists");
    assert_eq!(hall.world.engine.list_teams(true).await.unwrap().len(), 1);
}

async fn shut(hall: &Hall, force: bool) -> TeamShutdownStatus {
    hall.world.engine.shut_down_team(&lead(), TEAM, "done", force).await.unwrap()
}

async fn status(hall: &Hall) -> Option<TeamStatus> {
    let all = hall.world.engine.list_teams(false).await.unwrap();
    all.into_iter().find(|team| team.name == TEAM).map(|team| team.status)
}

async fn team_without_members_ends_immediately(hall: Hall) {
    let hall = hall.with_team().await;
    assert_eq!(shut(&hall, false).await.status, TeamStatus::Shutdown);
    hall.until("its folder is out of the way", async || !hall.path(TEAM).exists()).await;
    let kept: Vec<_> = std::fs::read_dir(hall.path(".trash")).unwrap().collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(hall.json("teams.json")["teams"], json!([]));
    hall.create(TEAM).await.expect("the name is free again");
}

async fn shutdown_sends_request_to_every_member(hall: Hall) {
    let hall = hall.with_team().await;
    hall.join("ann").await;
    hall.join("bob").await;
    let ended = shut(&hall, false).await;
    assert_eq!((ended.status, ended.members.len()), (TeamStatus::ShuttingDown, 2));
    assert!(ended.members.iter().all(|member| member.answer.is_none()));
    for name in ["ann", "bob"] {
        let asked = hall.inbox(name);
        assert_eq!((asked.len(), asked[0]["type"].as_str()), (1, Some("shutdown_request")));
    }
    assert_eq!(hall.json("web/config.json")["status"], "shutting_down");
    let again = shut(&hall, false).await;
    assert_eq!(again.members[0].request_id, ended.members[0].request_id, "asked once");
}

fn answer(
    hall: &Hall,
    ended: &TeamShutdownStatus,
    who: &SpawnedTeammate,
    approve: bool,
) -> (TeamActor, OutgoingTeamMessage) {
    let _ = hall;
    let asked = ended.members.iter().find(|member| member.name == who.name).unwrap();
    let outgoing = OutgoingTeamMessage {
        request_id: Some(asked.request_id.clone()),
        approve: Some(approve),
        reason: (!approve).then(|| "still testing".to_owned()),
        ..letter(TeamMessageKind::ShutdownResponse, "")
    };
    (actor(&who.session_key), outgoing)
}

async fn approving_member_is_closed_and_lead_is_notified(hall: Hall) {
    let hall = hall.with_team().await;
    let (ann, bob) = (hall.join("ann").await, hall.join("bob").await);
    let ended = shut(&hall, false).await;
    let engine = &hall.world.engine;
    let (by, yes) = answer(&hall, &ended, &ann, true);
    engine.send_team_message(&by, TEAM, yes).await.unwrap();
    assert_eq!(engine.load_session(&ann.session_key).await.unwrap().status, SessionStatus::Archived);
    assert_eq!(status(&hall).await, Some(TeamStatus::ShuttingDown), "not all have answered");
    let (by, yes) = answer(&hall, &ended, &bob, true);
    engine.send_team_message(&by, TEAM, yes).await.unwrap();
    assert_eq!(status(&hall).await, None);
    hall.rest().await;
    assert!(hall.times("lead", "type=\"shutdown_response\"") > 0);
    assert!(hall.times("lead", "The team web has shut down") > 0);
    let kept: Vec<_> =
        std::fs::read_dir(hall.path(".trash")).unwrap().map(|one| one.unwrap().path()).collect();
    assert_eq!(kept.len(), 1);
    let config = hall.json(kept[0].join("config.json").to_str().unwrap());
    assert_eq!(config["status"], "shutdown");
    let members: Vec<_> = config["members"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(members, ["closed", "closed"]);
}

async fn approving_member_runs_no_further_step(hall: Hall) {
    let hall = hall.with_team().await;
    let gate = Arc::new(Semaphore::new(0));
    hall.script(
        "ann",
        vec![
            vec![ScriptStep::Gate(Arc::clone(&gate)), ScriptStep::Call("look".to_owned(), json!({}))],
            call("look", json!({})),
        ],
    );
    let ann = hall.join("ann").await;
    hall.send(&lead(), "ann", "work").await.unwrap();
    hall.until("ann works", async || hall.shown("ann").len() == 1).await;
    let ended = shut(&hall, false).await;
    let (by, yes) = answer(&hall, &ended, &ann, true);
    hall.world.engine.send_team_message(&by, TEAM, yes).await.unwrap();
    gate.add_permits(9);
    hall.rest().await;
    assert_eq!(hall.shown("ann").len(), 1, "its turn has ended with its consent");
    let session = ann.session_key.clone();
    let load = hall.world.engine.db().read(move |tx| jobs::session_load(tx, &session)).await.unwrap();
    assert!(load.running.is_none() && load.queued.is_none());
    assert_eq!(status(&hall).await, None);
}

async fn rejecting_member_cancels_team_shutdown(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    let ended = shut(&hall, false).await;
    let (by, no) = answer(&hall, &ended, &ann, false);
    hall.world.engine.send_team_message(&by, TEAM, no).await.unwrap();
    assert_eq!(status(&hall).await, Some(TeamStatus::Active));
    hall.rest().await;
    assert!(hall.times("lead", "still testing") > 0);
    assert!(hall.path(TEAM).exists());
    let stale = answer(&hall, &ended, &ann, true);
    let late = hall.world.engine.send_team_message(&stale.0, TEAM, stale.1).await;
    assert_eq!(code(&late), "unknown_request", "an old question can not end the team");
}

async fn silence_of_working_member_cancels_shutdown(hall: Hall) {
    let hall = hall.with_team().await;
    let gate = std::sync::Arc::new(Semaphore::new(0));
    let wait = vec![ScriptStep::Gate(std::sync::Arc::clone(&gate)), ScriptStep::Say("done".to_owned())];
    hall.script("ann", vec![wait]);
    let (ann, bob) = (hall.join("ann").await, hall.join("bob").await);
    hall.send(&lead(), "ann", "work for long").await.unwrap();
    hall.until("ann works", async || !hall.shown("ann").is_empty()).await;
    let engine = &hall.world.engine;
    let left = hall.task("left", &[]).await;
    engine.claim_task(&actor(&bob.session_key), TEAM, Some(left)).await.unwrap();
    let ended = shut(&hall, false).await;
    let (by, yes) = answer(&hall, &ended, &bob, true);
    engine.send_team_message(&by, TEAM, yes).await.unwrap();
    hall.until("the team is kept", async || status(&hall).await == Some(TeamStatus::Active)).await;
    let stands = async |key| engine.load_session(key).await.unwrap().status;
    assert_eq!(stands(&ann.session_key).await, SessionStatus::Active);
    assert_eq!(stands(&bob.session_key).await, SessionStatus::Archived, "whoever agreed has left");
    hall.until("its task is free", async || {
        let tasks = engine.list_tasks(&lead(), TEAM, TaskFilter::default()).await.unwrap();
        tasks.iter().all(|task| task.lease.is_none())
    })
    .await;
    gate.add_permits(9);
    hall.rest().await;
    assert!(hall.times("lead", "still running") > 0);
    assert!(hall.path(TEAM).exists());
}

async fn silence_of_idle_member_counts_as_approval(hall: Hall) {
    let hall = hall.with_team().await;
    hall.join("ann").await;
    let ended = shut(&hall, false).await;
    assert_eq!(ended.status, TeamStatus::ShuttingDown);
    hall.until("the team ends", async || status(&hall).await.is_none()).await;
    hall.rest().await;
    assert!(hall.times("ann", "type=\"shutdown_request\"") > 0, "it was woken and asked all the same");
    assert!(hall.times("lead", "ann was idle") > 0);
}

/// What it began is not done: it keeps what it holds, and its silence is no consent.
async fn working_subagents_cancel_team_shutdown(hall: Hall) {
    let hall = hall.with_team().await;
    let [child, own] = [(); 2].map(|()| Arc::new(Semaphore::new(0)));
    let behind =
        |gate: &Arc<Semaphore>| vec![ScriptStep::Gate(Arc::clone(gate)), ScriptStep::Say("done".to_owned())];
    hall.script("ann", vec![call("sessions_spawn", json!({ "task": "an errand" })), behind(&own)]);
    // Whoever is no member speaks as the lead does.
    hall.script("lead", vec![behind(&child)]);
    let ann = hall.join("ann").await.session_key;
    hall.send(&lead(), "ann", "begin").await.unwrap();
    hall.until("a child works", async || hall.times("lead", "an errand") > 0).await;
    own.add_permits(1);
    hall.until("ann rests", async || {
        let ann = ann.clone();
        hall.world.engine.db().read(move |tx| jobs::session_load(tx, &ann)).await.unwrap().is_idle()
    })
    .await;
    shut(&hall, false).await;
    hall.until("the team is kept", async || status(&hall).await == Some(TeamStatus::Active)).await;
    child.add_permits(9);
    hall.rest().await;
    assert!(hall.times("lead", "still running") > 0);
}

/// Sessions of members that are open. An earlier life of one has no place in the team.
async fn count_open_member_sessions(hall: &Hall) -> i64 {
    const SQL: &str = "SELECT COUNT(*) FROM sessions WHERE team_role = 'member' AND status = 'active'";
    hall.world.engine.db().read(|tx| tx.query_one(SQL, &[], |row| row.int(0))).await.unwrap().unwrap()
}

/// It is looked at and found active; when it is joined it is to end.
async fn no_member_joins_team_during_shutdown(hall: Hall) {
    let hall = hall.with_team().await;
    hall.join("ann").await;
    // Every second one takes the name of one who is there.
    let new = |n: usize| NewMember {
        name: if n.is_multiple_of(2) { format!("m{n}") } else { "ann".to_owned() },
        task: Some("begin".into()),
        replaces: true,
        ..NewMember::default()
    };
    for n in 0..8 {
        let engine = &hall.world.engine;
        let (joined, ended) = tokio::join!(hall.try_join(new(n)), async {
            tokio::time::sleep(std::time::Duration::from_millis(u64::try_from(n).unwrap())).await;
            engine.shut_down_team(&lead(), TEAM, "", true).await
        });
        assert_eq!(ended.unwrap().status, TeamStatus::Shutdown);
        match joined {
            Ok(spawned) => {
                let session = engine.load_session(&spawned.session_key).await.unwrap();
                assert_eq!(session.status, SessionStatus::Archived, "who was there is gone with the team");
            }
            Err(refused) => assert!(
                ["team_not_active", "unknown_team", "store_unavailable"].contains(&refused.code()),
                "{refused}"
            ),
        }
        assert_eq!(count_open_member_sessions(&hall).await, 0);
        hall.create(TEAM).await.unwrap();
        hall.join("ann").await;
    }
}

/// It is at work when it is asked, and ends its turn without a word about it.
async fn member_that_becomes_idle_does_not_cancel_shutdown(hall: Hall) {
    let hall = hall.with_team().await;
    let gate = Arc::new(Semaphore::new(0));
    hall.script("ann", vec![vec![ScriptStep::Gate(Arc::clone(&gate)), ScriptStep::Say("done".to_owned())]]);
    let ann = hall.join("ann").await;
    hall.send(&lead(), "ann", "work").await.unwrap();
    hall.until("ann works", async || !hall.shown("ann").is_empty()).await;
    assert_eq!(shut(&hall, false).await.status, TeamStatus::ShuttingDown);
    assert_eq!(hall.shown("ann").len(), 1, "it is still at its first step");
    gate.add_permits(1);
    hall.until("the team ends", async || status(&hall).await.is_none()).await;
    hall.rest().await;
    assert!(hall.times("lead", "ann was idle") > 0, "and the lead knows");
    assert_eq!(
        hall.world.engine.load_session(&ann.session_key).await.unwrap().status,
        SessionStatus::Archived
    );
}

async fn forced_shutdown_asks_no_member(hall: Hall) {
    let hall = hall.with_team().await;
    hall.script("ann", vec![vec![ScriptStep::Hang]]);
    let ann = hall.join("ann").await;
    hall.send(&lead(), "ann", "hang").await.unwrap();
    hall.until("ann hangs", async || !hall.shown("ann").is_empty()).await;
    let began = std::time::Instant::now();
    let ended = shut(&hall, true).await;
    assert_eq!(ended.members[0].answer, Some(ShutdownAnswer::Stopped));
    hall.rest().await;
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    assert_eq!(
        hall.world.engine.load_session(&ann.session_key).await.unwrap().status,
        SessionStatus::Archived
    );
    assert_eq!(status(&hall).await, None);
    let again = shut(&hall, true).await;
    assert_eq!(
        (again.status, &again.members[0].answer),
        (TeamStatus::Shutdown, &Some(ShutdownAnswer::Stopped))
    );
}

/// One is asked to stop, says nothing, and is replaced before the time is up.
async fn shutdown_request_to_replaced_member_spares_replacement(hall: Hall) {
    let hall = hall.with_team().await;
    hall.join("ann").await;
    let ask = OutgoingTeamMessage {
        to: Some("ann".into()),
        ..letter(TeamMessageKind::ShutdownRequest, "please stop")
    };
    hall.world.engine.send_team_message(&lead(), TEAM, ask).await.unwrap();
    hall.rest().await;
    let next = NewMember { name: "ann".into(), replaces: true, ..NewMember::default() };
    let next = hall.try_join(next).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(4_500)).await;
    let session = hall.world.engine.load_session(&next.session_key).await.unwrap();
    assert_eq!((session.status, status(&hall).await), (SessionStatus::Active, Some(TeamStatus::Active)));
}

/// Its result was lost, and the name has been given to another team since.
async fn repeated_shutdown_never_ends_new_team_of_same_name(hall: Hall) {
    // Of one that nobody has joined nothing is left but that it was ended.
    for joins in [&["ann"][..], &[]] {
        hall.create(TEAM).await.unwrap();
        for name in joins {
            hall.join(name).await;
        }
        let by = lead();
        let stop = async || hall.world.engine.shut_down_team(&by, TEAM, "done", true).await.unwrap();
        assert_eq!(stop().await.status, TeamStatus::Shutdown);
        hall.create(TEAM).await.unwrap();
        hall.join("bob").await;
        let again = stop().await;
        let stopped: Vec<&str> = again.members.iter().map(|member| member.name.as_str()).collect();
        assert_eq!((again.status, stopped.as_slice()), (TeamStatus::Shutdown, joins));
        assert_eq!(status(&hall).await, Some(TeamStatus::Active));
        assert_eq!(shut(&hall, true).await.members[0].name, "bob");
    }
}

/// As if whoever ended it had died when the name was free and the folder still there.
async fn new_team_of_same_name_finds_no_old_data(hall: Hall) {
    let hall = hall.with_team().await;
    hall.task("of the last", &[]).await;
    assert_eq!(shut(&hall, true).await.status, TeamStatus::Shutdown);
    let aside = std::fs::read_dir(hall.path(".trash")).unwrap().next().unwrap().unwrap().path();
    std::fs::rename(aside, hall.path(TEAM)).unwrap();
    hall.create(TEAM).await.unwrap();
    assert_eq!(hall.task("of the next", &[]).await, TaskNo(1));
    hall.rest().await;
    let Hall { world, folder, .. } = hall;
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    let found = world.engine.list_tasks(&lead(), TEAM, TaskFilter::default()).await.unwrap();
    assert_eq!(found.iter().map(|task| task.subject.as_str()).collect::<Vec<_>>(), ["of the next"]);
    drop(folder);
}

/// The engine dies in the middle of a shutdown; the next goes on with it.
async fn interrupted_team_shutdown_continues_after_restart(hall: Hall) {
    let hall = hall.with_team().await;
    hall.join("ann").await;
    hall.task("a", &[]).await;
    hall.rest().await;
    shut(&hall, false).await;
    let Hall { world, model, folder, .. } = hall;
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    let operator = TeamActor::Operator { call: "look".to_owned() };
    let view = world.engine.team_snapshot(&operator, TEAM).await.unwrap();
    assert_eq!((view.team.status, view.members.len(), view.open.len()), (TeamStatus::ShuttingDown, 1, 1));
    for _ in 0..200 {
        let is_gone = !folder.path().join("teams").join(TEAM).exists();
        if is_gone && world.engine.list_teams(false).await.unwrap().is_empty() {
            drop(model);
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the shutdown did not go on");
}

async fn number_of_teams_is_limited(hall: Hall) {
    for n in 0..10 {
        hall.create(&format!("team{n}")).await.unwrap();
    }
    assert_eq!(code(&hall.create("one-more").await), "too_many_teams");
    hall.script("lead", vec![call("team_status", json!({ "team_name": "team3" }))]);
    hall.world.send_and_wait("how is it").await;
    assert!(hall.times("lead", "0 of 0 ended") > 0, "the plain name of a tool means the same");
}

async fn concurrent_team_creation_respects_limit(hall: Hall) {
    let names: Vec<String> =
        (0..20).map(|n| format!("team{}", n / 2)).chain(["one-more".to_owned()]).collect();
    let made = futures_util::future::join_all(names.iter().map(|name| hall.create(name))).await;
    let mut codes: Vec<&str> = made.iter().map(code).collect();
    codes.sort_unstable();
    codes.dedup();
    assert!(codes.iter().all(|code| ["ok", "team_exists", "too_many_teams"].contains(code)), "{codes:?}");
    assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 10);
    assert_eq!(hall.world.engine.list_teams(false).await.unwrap().len(), 10);
}

async fn non_owner_teams_leave_room_for_owner_teams(hall: Hall) {
    let mut made = Vec::new();
    for n in 0..10 {
        let peer = format!("guest{n}");
        let mut inbound = World::inbound(&peer, "hello");
        Authority::NonOwner.write_to_meta(&mut inbound.meta);
        let accepted = hall.world.engine.accept_message(inbound).await.unwrap();
        hall.world.wait_answer(&accepted).await;
        let new = NewTeam {
            name: format!("theirs{n}"),
            description: "to use up all teams".to_owned(),
            agent_type: "researcher".to_owned(),
            lead: World::session_key(&peer),
            turn: Some(accepted.turn_id),
        };
        made.push(code(&hall.world.engine.create_team(&lead(), new).await).to_owned());
    }
    assert_eq!(made.iter().filter(|code| *code == "ok").count(), 5, "{made:?}");
    assert_eq!(made.last().unwrap(), "too_many_teams");
    for n in 0..5 {
        hall.create(&format!("own{n}")).await.unwrap();
    }
    assert_eq!(code(&hall.create("one-more").await), "too_many_teams");
}
