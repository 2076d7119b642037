//! Teams under faults: the engine dies at every point that matters, letters by the thousand, and rest that costs nothing.
//! Time is virtual here, and the databases are in memory.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::task::{TaskNo, TeamTaskState};
use polyclaw_domain::team_message::{self, TeamMessageKind, TeamMessageState};
use polyclaw_engine::team::{
    NewMember, NewTeam, NewTeamTask, OutgoingTeamMessage, TaskFilter, TaskOutcome, TeamActor,
};
use polyclaw_store::{Db, events, team_messages, teams};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ModelScript, ScriptStep, ScriptedProvider};
use serde_json::json;

use super::fixture::{TEAM, actor, lead, letter, said, who};

/// A lead that makes a team of one with one task; a member that takes it, tells the lead and completes it; a lead that
/// then ends the team, to which the member agrees.
fn author(prompt: &Prompt) -> ModelScript {
    let (name, text) = (who(prompt), said(prompt));
    let call = |name: &str, given: serde_json::Value| vec![ScriptStep::Call(name.to_owned(), given)];
    let done = |word: &str| text.contains(word);
    if name == "ann" {
        if let Some(rest) = text.split("request_id=\"").nth(1)
            && !done("\"recipients\":[\"lead\"],\"request_id\":\"")
        {
            let id = rest.split('"').next().unwrap_or_default();
            return call(
                "SendMessage",
                json!({ "team_name": TEAM, "type": "shutdown_response", "request_id": id, "approve": true }),
            );
        }
        return match (done("\"success\":true"), done("\"request_id\":null"), done("\"unblocked\"")) {
            (false, ..) => call("TaskClaim", json!({ "team_name": TEAM })),
            (true, false, _) => {
                call("SendMessage", json!({ "team_name": TEAM, "recipient": "lead", "content": "I have it" }))
            }
            (true, true, false) => {
                call("TaskComplete", json!({ "team_name": TEAM, "task_id": 1, "summary": "it is done" }))
            }
            _ => vec![ScriptStep::Say("resting".to_owned())],
        };
    }
    match () {
        () if !done("lead_session_key") => call("TeamCreate", json!({ "team_name": TEAM })),
        () if !done("result {\"task_id\":1}") => {
            call("TaskCreate", json!({ "team_name": TEAM, "subject": "the work", "description": "do it" }))
        }
        () if !done("\"inherited\"") => {
            call("TeammateSpawn", json!({ "team_name": TEAM, "name": "ann", "task": "Take your task." }))
        }
        () if done("#1 [completed]") && !done("\"status\":\"shut") => {
            call("TeamShutdown", json!({ "team_name": TEAM, "reason": "all done" }))
        }
        () => vec![ScriptStep::Say("all is well".to_owned())],
    }
}

async fn restart_after_kill_at(point: KillPoint, n: u64) -> (World, Arc<ScriptedProvider>, bool) {
    let model = ScriptedProvider::new(author);
    let ground = DurableWorld::from_db(Db::in_memory().unwrap(), Arc::clone(&model) as _).await;
    let faults = KillPointFaults::at_point(point, n);
    let world = ground.start_engine(Arc::clone(&faults));
    let asked = polyclaw_engine::ingress::IngressMessage {
        idempotency_key: Some("once".into()),
        ..World::inbound("me", "build it")
    };
    let (engine, first) = (world.engine.clone(), asked.clone());
    let accepting = tokio::spawn(async move { engine.accept_message(first).await });
    let died = tokio::time::timeout(Duration::from_secs(900), faults.wait_killed()).await.is_ok();
    accepting.abort();
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    world.engine.accept_message(asked).await.unwrap();
    tokio::time::sleep(Duration::from_secs(900)).await;
    world.wait_settled().await;
    (world, model, died)
}

/// Wherever it dies: one task with one owner that ended once, each letter read, the team ended, the person answered.
async fn is_sound(world: &World, at: &str) {
    let db = world.engine.db();
    let ended = db.read(|tx| teams::list_ended(tx, 9)).await.unwrap();
    assert_eq!(ended.len(), 1, "{at}: one team, and it has ended");
    let (id, name) = (ended[0].id.clone(), ended[0].name.clone());
    let ledger = world.ground.ledgers.open(&id, &name).unwrap();
    let wanted = id.clone();
    let task =
        ledger.read(move |tx| polyclaw_store::tasks::get(tx, &wanted, TaskNo(1))).await.unwrap().unwrap();
    assert_eq!((task.state, task.ended_by.as_deref()), (TeamTaskState::Completed, Some("ann")), "{at}");
    let wanted = id.clone();
    let log = ledger.read(move |tx| polyclaw_store::tasks::list_events(tx, &wanted, 0, 99)).await.unwrap();
    let count =
        |kind: polyclaw_store::tasks::TaskEventKind| log.iter().filter(|event| event.kind == kind).count();
    use polyclaw_store::tasks::TaskEventKind;
    assert_eq!((count(TaskEventKind::Created), count(TaskEventKind::Completed)), (1, 1), "{at}: {log:?}");
    assert_eq!(count(TaskEventKind::Claimed), 1 + count(TaskEventKind::Expired), "{at}: {log:?}");
    let all = db.read(move |tx| team_messages::list_newest(tx, &id, 99)).await.unwrap();
    let word = all.iter().filter(|one| one.content == "I have it").collect::<Vec<_>>();
    assert_eq!(word.len(), 1, "{at}: a letter is sent once");
    assert!(
        all.iter()
            .filter(|one| one.to == "lead" && one.kind != TeamMessageKind::Idle)
            .all(|one| one.state == TeamMessageState::Read),
        "{at}: {all:#?}"
    );
    let of = |kind: TeamMessageKind| all.iter().find(|one| one.kind == kind);
    if of(TeamMessageKind::ShutdownResponse).is_some() {
        let asked = of(TeamMessageKind::ShutdownRequest).unwrap();
        assert_eq!(asked.state, TeamMessageState::Read, "{at}: what was answered was read");
    }
    let lines = world.transcript("me").await;
    let notified_count = lines.iter().filter(|line| line.text.contains("] completed #")).count();
    assert_eq!(notified_count, 1, "{at}: announced once");
}

#[tokio::test(start_paused = true)]
async fn team_work_completes_once_at_every_kill_point() {
    let points = [
        (KillPoint::LedgerWritten, 4),
        (KillPoint::LedgerNotified, 4),
        (KillPoint::ShutdownRequested, 1),
        (KillPoint::PromptBuilt, 9),
        (KillPoint::StepStored, 7),
        (KillPoint::IntentStored, 7),
        (KillPoint::ToolRan, 7),
        (KillPoint::ResultStored, 7),
        (KillPoint::FinishBefore, 4),
        (KillPoint::FinishCommitted, 4),
        (KillPoint::TurnClaimed, 4),
    ];
    let mut deaths = 0;
    for (point, most) in points {
        for n in 1..=most {
            let (world, _, died) = restart_after_kill_at(point, n).await;
            deaths += usize::from(died);
            is_sound(&world, &format!("{} {n}", point.as_str())).await;
        }
    }
    assert!(deaths > 40, "only {deaths} times did it die");
}

/// Everything at once: members that work, rest, are compacted, die and are replaced, and letters all the while.
#[tokio::test(start_paused = true)]
async fn ten_thousand_team_messages_arrive_once_in_order() {
    let model = ScriptedProvider::new(|prompt| {
        let busy = said(prompt).len() % 3;
        let work = vec![
            ScriptStep::Pause(Duration::from_millis(300)),
            ScriptStep::Call("look".to_owned(), json!({ "n": said(prompt).len() })),
        ];
        let results =
            prompt.messages.iter().filter(|one| matches!(one, PromptMessage::ToolResult { .. })).count();
        if busy == 0 && results % 5 != 4 { work } else { vec![ScriptStep::Say("noted".to_owned())] }
    });
    let mut ground = DurableWorld::from_db(Db::in_memory().unwrap(), Arc::clone(&model) as _).await;
    ground.settings.teams.automatic_turns = u32::MAX;
    ground.settings.limits.repeats = u32::MAX;
    let mut world = ground.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("hello").await;
    team(&world).await;
    let names = ["ann", "bob", "cat", "dan"];
    for name in names {
        join(&world, name, false).await;
    }
    let mut sent: HashMap<(String, String), usize> = HashMap::new();
    for round in 0..LETTERS / 40 {
        for from in names.iter().chain(["lead"].iter()) {
            let others: Vec<&str> = names.iter().copied().filter(|name| name != from).collect();
            for step in 0..8 {
                let to = others[(step + round) % others.len()];
                let count = sent.entry(((*from).to_owned(), to.to_owned())).or_default();
                *count += 1;
                let text = format!("[{from} to {to} no {count}]");
                let outgoing = OutgoingTeamMessage {
                    to: Some(to.to_owned()),
                    ..letter(TeamMessageKind::Message, &text)
                };
                world.engine.send_team_message(&by(&world, from).await, TEAM, outgoing).await.unwrap();
            }
        }
        match round % 50 {
            10 => compacted(&world, "ann").await,
            20 => join(&world, "bob", true).await,
            30 => world = world.kill().await.start_engine(KillPointFaults::no_kill()),
            _ => {}
        }
        if round % 5 == 0 {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    world.wait_settled().await;
    assert_eq!(sent.values().sum::<usize>(), LETTERS);
    let mut prompts: HashMap<String, String> = HashMap::new();
    for prompt in model.prompts() {
        prompts.entry(who(&prompt)).or_default().push_str(&said(&prompt));
    }
    let all = list_every_team_message(&world).await;
    let mine: Vec<_> = all.iter().filter(|one| one.content.starts_with('[')).collect();
    assert_eq!(mine.len(), LETTERS, "none is lost, none is there twice");
    assert!(mine.iter().all(|one| one.state == TeamMessageState::Read), "all are read");
    assert_messages_shown_in_order(&prompts, &sent);
    let folded = world.engine.db().read(|tx| events::list(tx, 0, Some("session.compacted"), None, 99)).await;
    let folded = folded.unwrap();
    assert!(folded.len() >= 5, "ann was compacted {} times only", folded.len());
    assert!(prompts["ann"].contains("Summary of the conversation"), "and went on from the summary");
    let shown: HashSet<(&str, &str)> =
        prompts.iter().flat_map(|(name, text)| elements(text).map(move |one| (name.as_str(), one))).collect();
    let unseen = |one: &&polyclaw_domain::team_message::TeamMessage| {
        one.state == TeamMessageState::Read
            && !shown.contains(&(one.to.as_str(), team_message::render_element(one).as_str()))
    };
    assert_eq!(all.iter().find(unseen), None, "what is read was in a prompt of its reader, word for word");
}

/// Every letter that a text shows.
fn elements(text: &str) -> impl Iterator<Item = &str> {
    const END: &str = "</teammate-message>";
    text.match_indices("<teammate-message ").filter_map(|(at, _)| {
        let end = text[at..].find(END)? + END.len();
        Some(&text[at..at + end])
    })
}

/// How many members and lead write to each other, in rounds of 40.
const LETTERS: usize = 10_000;

/// Of each pair, the next is behind the one before it in what its reader was shown.
fn assert_messages_shown_in_order(
    prompts: &HashMap<String, String>,
    sent: &HashMap<(String, String), usize>,
) {
    for ((from, to), count) in sent {
        let everything = &prompts[to];
        let mut at = 0;
        for n in 1..=*count {
            let text = format!("[{from} to {to} no {n}]<");
            let Some(found) = everything[at..].find(&text) else {
                panic!("{text} is not behind the one before it in any prompt");
            };
            at += found;
        }
    }
}

async fn list_every_team_message(world: &World) -> Vec<polyclaw_domain::team_message::TeamMessage> {
    let team = world.engine.list_teams(false).await.unwrap().remove(0);
    world.engine.db().read(move |tx| team_messages::list_newest(tx, &team.id, 1_000_000)).await.unwrap()
}

pub async fn team(world: &World) {
    let new = NewTeam {
        name: TEAM.to_owned(),
        description: String::new(),
        agent_type: String::new(),
        lead: World::session_key("me"),
        turn: None,
    };
    world.engine.create_team(&lead(), new).await.unwrap();
}

pub async fn join(world: &World, name: &str, replaces: bool) {
    let new = NewMember { name: name.to_owned(), replaces, ..NewMember::default() };
    world.engine.spawn_teammate(&lead(), TEAM, new).await.unwrap();
}

async fn session(world: &World, name: &str) -> SessionKey {
    let view = world.engine.team_snapshot(&lead(), TEAM).await.unwrap();
    view.members.into_iter().find(|one| one.member.name == name).unwrap().member.session
}

/// Its history is folded, as soon as it does nothing for a moment.
async fn compacted(world: &World, name: &str) {
    let key = session(world, name).await;
    for _ in 0..200 {
        if let Ok(turn) = world.engine.compact_session(&key).await {
            let done = world.engine.wait_for_answer(&key, &turn, Duration::from_secs(60)).await.unwrap();
            return drop(done.expect("it is folded"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{name} never rested");
}

async fn by(world: &World, name: &str) -> TeamActor {
    if name == "lead" { lead() } else { actor(&session(world, name).await) }
}

#[tokio::test(start_paused = true)]
async fn idle_team_makes_no_model_calls() {
    let model = ScriptedProvider::echo();
    let world = World::with_provider(Arc::clone(&model) as _).await;
    world.send_and_wait("hello").await;
    team(&world).await;
    for name in ["ann", "bob", "cat", "dan", "eve", "fay", "gus", "hal"] {
        join(&world, name, false).await;
    }
    world
        .engine
        .send_team_message(&lead(), TEAM, letter(TeamMessageKind::Broadcast, "rest now"))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let before = model.prompts().len();
    assert!(before > 8, "{before}");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(model.prompts().len(), before, "status alone makes no turn");
}

/// Two members that answer each other for ever are held after so many turns, and go on when a person writes.
#[tokio::test(start_paused = true)]
async fn members_in_message_loop_are_held_until_person_writes() {
    let model = ScriptedProvider::new(|prompt| {
        let to = match who(prompt).as_str() {
            "ann" => "bob",
            "bob" => "ann",
            _ => return vec![ScriptStep::Say("noted".to_owned())],
        };
        // Letters stay behind everything else for the whole turn: whether it has answered is in what comes before them.
        let newest = prompt.messages.iter().rev().find(|one| !matches!(one, PromptMessage::User { .. }));
        let asked = !newest.is_some_and(|one| matches!(one, PromptMessage::ToolResult { .. }));
        let given = json!({ "team_name": TEAM, "recipient": to, "content": "and you?" });
        if asked {
            vec![ScriptStep::Call("SendMessage".to_owned(), given)]
        } else {
            vec![ScriptStep::Say("sent".to_owned())]
        }
    });
    let mut ground = DurableWorld::from_db(Db::in_memory().unwrap(), Arc::clone(&model) as _).await;
    ground.settings.teams.automatic_turns = 12;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("hello").await;
    team(&world).await;
    join(&world, "ann", false).await;
    join(&world, "bob", false).await;
    let outgoing =
        OutgoingTeamMessage { to: Some("ann".into()), ..letter(TeamMessageKind::Message, "begin") };
    world.engine.send_team_message(&lead(), TEAM, outgoing).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let turns =
        |model: &ScriptedProvider| model.prompts().iter().filter(|prompt| who(prompt) != "lead").count();
    let before = turns(&model);
    assert!((12..40).contains(&before), "{before} calls");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(turns(&model), before, "they are held");
    world.send_and_wait("go on").await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(turns(&model) > before, "a person let them go on");
    world.engine.shut_down_team(&lead(), TEAM, "", false).await.unwrap();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(world.engine.list_teams(false).await.unwrap().is_empty(), "who waits for a person keeps no team");
}

#[tokio::test(start_paused = true)]
async fn expired_lease_frees_task_of_inactive_member_only() {
    let model = ScriptedProvider::new(|prompt| {
        let has_started = prompt.messages.iter().any(|one| matches!(one, PromptMessage::ToolResult { .. }));
        match who(prompt).as_str() {
            "cat" if !has_started => {
                vec![ScriptStep::Call("sessions_spawn".to_owned(), json!({ "task": "an errand" }))]
            }
            // A child speaks as the lead does.
            "lead" if !said(prompt).contains("an errand") => vec![ScriptStep::Say("noted".to_owned())],
            "bob" | "cat" => vec![ScriptStep::Say("noted".to_owned())],
            _ => vec![
                ScriptStep::Pause(Duration::from_secs(100)),
                ScriptStep::Call("look".to_owned(), json!({ "at": said(prompt).len() })),
            ],
        }
    });
    let ground = DurableWorld::from_db(Db::in_memory().unwrap(), model as _).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("hello").await;
    team(&world).await;
    for (name, no) in [("ann", 1), ("bob", 2), ("cat", 3)] {
        join(&world, name, false).await;
        let new = NewTeamTask {
            subject: format!("t{no}"),
            assignee: Some(name.to_owned()),
            ..NewTeamTask::default()
        };
        world.engine.create_task(&lead(), TEAM, new).await.unwrap();
        world.engine.claim_task(&by(&world, name).await, TEAM, Some(TaskNo(no))).await.unwrap();
    }
    for name in ["ann", "cat"] {
        let outgoing = OutgoingTeamMessage {
            to: Some(name.into()),
            ..letter(TeamMessageKind::Message, "work for long")
        };
        world.engine.send_team_message(&lead(), TEAM, outgoing).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(700)).await;
    let open = world.engine.list_tasks(&lead(), TEAM, TaskFilter::default()).await.unwrap();
    let states: Vec<_> = open.iter().map(|task| (task.no.0, task.state)).collect();
    let expected = [(3, TeamTaskState::Claimed), (2, TeamTaskState::Pending), (1, TeamTaskState::Claimed)];
    assert_eq!(states, expected, "one works itself, and a child works for one");
    let late =
        TaskOutcome { state: TeamTaskState::Completed, summary: Some("late".into()), artifacts: vec![] };
    let refused =
        world.engine.finish_task(&by(&world, "bob").await, TEAM, TaskNo(2), late).await.unwrap_err();
    assert_eq!(refused.code(), "task_not_yours");
}
