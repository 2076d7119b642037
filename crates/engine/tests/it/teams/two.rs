//! Two teams at once, with members of the same name; and two who look at a team's files while they are written.

use polyclaw_testkit::wait_until;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use polyclaw_domain::id::TeamId;
use polyclaw_domain::session::SessionStatus;
use polyclaw_domain::task::TaskNo;
use polyclaw_domain::team::TeamStatus;
use polyclaw_domain::team_message::{TeamMessage, TeamMessageKind};
use polyclaw_engine::team::{NewMember, NewTeamTask, OutgoingTeamMessage, SpawnedTeammate, TaskFilter};
use polyclaw_store::{Db, DbTarget, TeamDatabases, team_messages};
use polyclaw_testkit::postgres::PostgresCluster;
use polyclaw_testkit::world::DurableWorld;
use polyclaw_testkit::{KillPointFaults, ScriptedProvider};
use serde_json::Value;

use super::chaos::team;
use super::fixture::{Hall, TEAM, actor, code, drive, lead, letter, say};

on_both!(
    team_message_reaches_namesake_in_its_own_team,
    task_numbers_are_scoped_to_their_team,
    ending_one_team_keeps_namesake_in_other_team,
    team_config_file_is_replaced_atomically,
);

const OTHER: &str = "app";

/// A team each, with an `ann` each.
async fn namesakes(hall: Hall) -> (Hall, SpawnedTeammate, SpawnedTeammate) {
    let hall = hall.with_team().await;
    hall.create(OTHER).await.unwrap();
    let here = hall.join("ann").await;
    let new = NewMember { name: "ann".into(), ..NewMember::default() };
    let there = hall.world.engine.spawn_teammate(&lead(), OTHER, new).await.unwrap();
    assert_ne!(here.session_key, there.session_key);
    (hall, here, there)
}

async fn id(hall: &Hall, name: &str) -> TeamId {
    let all = hall.world.engine.list_teams(true).await.unwrap();
    all.into_iter().find(|team| team.name == name).unwrap().id
}

async fn mail_of(hall: &Hall, name: &str) -> Vec<TeamMessage> {
    let id = id(hall, name).await;
    hall.world.engine.db().read(move |tx| team_messages::list_newest(tx, &id, 99)).await.unwrap()
}

async fn team_message_reaches_namesake_in_its_own_team(hall: Hall) {
    let (hall, here, there) = namesakes(hall).await;
    hall.send(&lead(), "ann", "only for the web").await.unwrap();
    hall.rest().await;
    let shown = hall.shown("ann");
    assert!(
        !shown.is_empty() && shown.iter().all(|prompt| prompt.contains("Team: web (active)")),
        "{shown:?}"
    );
    let other = OutgoingTeamMessage {
        to: Some("ann".into()),
        ..letter(TeamMessageKind::Message, "only for the app")
    };
    hall.world.engine.send_team_message(&lead(), OTHER, other).await.unwrap();
    hall.rest().await;
    for prompt in hall.shown("ann") {
        let is_web = prompt.contains("Team: web (active)");
        assert_ne!(is_web, prompt.contains("Team: app (active)"));
        assert_eq!((prompt.contains("for the web"), prompt.contains("for the app")), (is_web, !is_web));
    }
    assert!(mail_of(&hall, OTHER).await.iter().all(|one| one.content != "only for the web"));
    // Each rests in a team of its own, and its lead is told so there.
    for name in [TEAM, OTHER] {
        let mail = mail_of(&hall, name).await;
        assert!(
            mail.iter().any(|one| one.kind == TeamMessageKind::Idle && one.from == "ann"),
            "{name}: {mail:?}"
        );
    }
    let by = actor(&there.session_key);
    assert_eq!(code(&hall.send(&by, "lead", "from outside").await), "not_in_team");
    hall.send(&actor(&here.session_key), "lead", "from inside").await.unwrap();
}

async fn task_numbers_are_scoped_to_their_team(hall: Hall) {
    let (hall, here, there) = namesakes(hall).await;
    let engine = &hall.world.engine;
    hall.task("draw", &[]).await;
    let new = NewTeamTask { subject: "write".into(), ..NewTeamTask::default() };
    assert_eq!(engine.create_task(&lead(), OTHER, new).await.unwrap(), TaskNo(1));
    let refused = engine.claim_task(&actor(&there.session_key), TEAM, Some(TaskNo(1))).await;
    assert_eq!(code(&refused), "not_in_team");
    engine.claim_task(&actor(&here.session_key), TEAM, Some(TaskNo(1))).await.unwrap();
    let other = engine.list_tasks(&lead(), OTHER, TaskFilter::default()).await.unwrap();
    assert!(other[0].lease.is_none() && other[0].subject == "write", "{other:?}");
    let taken = engine.claim_task(&actor(&there.session_key), OTHER, None).await.unwrap();
    assert_eq!((taken.subject.as_str(), taken.lease.unwrap().session), ("write", there.session_key.clone()));
}

async fn ending_one_team_keeps_namesake_in_other_team(hall: Hall) {
    let (hall, here, there) = namesakes(hall).await;
    let engine = &hall.world.engine;
    let asked = engine.shut_down_team(&lead(), TEAM, "done", false).await.unwrap();
    let yes = OutgoingTeamMessage {
        request_id: Some(asked.members[0].request_id.clone()),
        approve: Some(true),
        ..letter(TeamMessageKind::ShutdownResponse, "")
    };
    let by = actor(&there.session_key);
    assert_eq!(code(&engine.send_team_message(&by, TEAM, yes.clone()).await), "not_in_team");
    assert_eq!(
        code(&engine.send_team_message(&by, OTHER, yes.clone()).await),
        "unknown_request",
        "nor at home"
    );
    engine.send_team_message(&actor(&here.session_key), TEAM, yes).await.unwrap();
    hall.rest().await;
    let left = engine.list_teams(false).await.unwrap();
    assert_eq!(
        left.iter().map(|team| (team.name.as_str(), team.status)).collect::<Vec<_>>(),
        [(OTHER, TeamStatus::Active)]
    );
    assert_eq!(engine.load_session(&here.session_key).await.unwrap().status, SessionStatus::Archived);
    assert_eq!(engine.load_session(&there.session_key).await.unwrap().status, SessionStatus::Active);
    assert!(!hall.path(TEAM).exists() && hall.path(OTHER).join("config.json").exists());
    let word =
        OutgoingTeamMessage { to: Some("lead".into()), ..letter(TeamMessageKind::Message, "still here") };
    engine.send_team_message(&actor(&there.session_key), OTHER, word).await.unwrap();
}

/// Somebody reads the config again and again while turns of a member change it.
async fn team_config_file_is_replaced_atomically(hall: Hall) {
    let hall = hall.with_team().await;
    hall.join("ann").await;
    let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (is_over, pictures, file) = (Arc::clone(&stop), Arc::clone(&seen), hall.path("web/config.json"));
    let reader = std::thread::spawn(move || {
        let mut all = HashSet::new();
        while !is_over.load(Ordering::SeqCst) {
            let text = std::fs::read_to_string(&file).expect("it is always there");
            let config: Value = serde_json::from_str(&text).expect("it is whole");
            assert_eq!(config["members"][0]["name"], "ann");
            all.insert(text);
            pictures.store(all.len(), Ordering::SeqCst);
        }
    });
    while seen.load(Ordering::SeqCst) < 12 && !reader.is_finished() {
        hall.send(&lead(), "ann", "a turn").await.unwrap();
        hall.world.wait_settled().await;
    }
    stop.store(true, Ordering::SeqCst);
    reader.join().unwrap();
    hall.rest().await;
    let left = std::fs::read_dir(hall.path(TEAM)).unwrap().map(|one| one.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().ends_with(".tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A node at rest hears that a team begins on another, and looks after it when that one dies.
#[test]
fn node_reconciles_team_started_on_other_node() {
    let url = PostgresCluster::for_process().fresh_database().unwrap();
    let [here, there] =
        [(); 2].map(|()| Db::open(&DbTarget::Postgres { url: url.clone(), connections: 4 }).unwrap());
    let node = async |db: Db, node_name: &str| {
        let mut ground =
            DurableWorld::from_db(db.clone(), ScriptedProvider::new(|_| say("noted")) as _).await;
        ground.ledgers = Arc::new(TeamDatabases::for_db(&db, PathBuf::new()));
        ground.settings.teams.lease_seconds = 1;
        ground.node_name = node_name.to_owned();
        ground.start_engine(KillPointFaults::no_kill())
    };
    drive(async {
        let here = node(here, "here").await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let there = node(there, "there").await;
        there.send_and_wait("hello").await;
        team(&there).await;
        let new = NewMember { name: "ann".into(), ..NewMember::default() };
        let ann = there.engine.spawn_teammate(&lead(), TEAM, new).await.unwrap();
        let task = NewTeamTask { subject: "draw".into(), ..NewTeamTask::default() };
        there.engine.create_task(&lead(), TEAM, task).await.unwrap();
        there.engine.claim_task(&actor(&ann.session_key), TEAM, None).await.unwrap();
        drop(there.kill().await);
        let is_free = async || {
            let tasks = here.engine.list_tasks(&lead(), TEAM, TaskFilter::default()).await.unwrap();
            tasks[0].lease.is_none()
        };
        wait_until("its task is free", is_free).await;
    });
}
