//! Sub-agents as people meet them: by command, in focus, archived, and held announces.

use std::time::Duration;

use polyclaw_domain::command::CallerRole;
use polyclaw_domain::event::EventKind;
use polyclaw_domain::provider::Prompt;
use polyclaw_domain::run::{RunStatus, SubagentRun};
use polyclaw_domain::session::{SessionActivity, SessionStatus};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::ingress::IngressMessage;
use polyclaw_engine::subagents::SessionNode;
use polyclaw_store::{jobs, sessions};
use polyclaw_testkit::world::World;
use polyclaw_testkit::{
    KillPointFaults, ModelScript, ScriptStep, ScriptedProvider, inbound_dm, last_user_text,
};
use serde_json::{Value, json};

use crate::families::{announces, results, said, task, transcript};
use crate::reception::{CONFIG, ground, read_after, recorded};

const MINUTE_MS: i64 = 60_000;

fn me() -> SessionKey {
    World::session_key("me")
}

async fn command(world: &World, line: &str) -> String {
    world.engine.run_command(&me(), line).await.unwrap().unwrap_or_else(|error| error.to_string())
}

async fn runs(world: &World) -> Vec<SubagentRun> {
    let mut runs = world.engine.list_runs(&me(), 100).await.unwrap();
    runs.reverse();
    runs
}

async fn status(world: &World, key: &SessionKey) -> Option<SessionStatus> {
    let key = key.clone();
    world.engine.db().read(move |tx| sessions::get(tx, &key)).await.unwrap().map(|found| found.status)
}

fn spawn(arguments: Value) -> ScriptStep {
    ScriptStep::Call("sessions_spawn".into(), arguments)
}

/// Begins a digger that works for long and a painter that is quick; a person who asks them is answered.
fn with_two(prompt: &Prompt) -> ModelScript {
    let asked = last_user_text(prompt);
    match (task(prompt), results(prompt)) {
        (first, _) if first.contains("do dig") && asked.contains("how far") => {
            vec![ScriptStep::Say("knee-deep".into())]
        }
        (first, _) if first.contains("do dig") => {
            vec![ScriptStep::Call("look".into(), json!({})), ScriptStep::Hang]
        }
        (first, _) if first.contains("do paint") => vec![ScriptStep::Say("it is blue".into())],
        (_, 0) if asked.contains("begin") => vec![
            spawn(json!({ "task": "do dig a hole", "label": "digger" })),
            spawn(json!({ "task": "do paint the wall", "label": "painter of walls" })),
        ],
        _ => vec![ScriptStep::Say(format!("parent: {asked}"))],
    }
}

async fn begun() -> World {
    let world = World::with_provider(ScriptedProvider::new(with_two)).await;
    world.send_and_wait("begin").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    world
}

#[tokio::test(start_paused = true)]
async fn subagents_command_finds_runs_by_number_label_or_id() {
    let world = begun().await;
    let listed = command(&world, "/subagents").await;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("1 digger (main) running,"), "{listed}");
    assert!(lines[1].starts_with("2 painter of walls (main) ok,"), "{listed}");
    assert_eq!(command(&world, "/subagents list").await.lines().count(), 2);
    let id = runs(&world).await[1].id.to_string();
    for which in ["2", "#2", "painter of walls", "\"Painter Of Walls\"", &id] {
        let info = command(&world, &format!("/subagents info {which}")).await;
        assert!(info.contains("task do paint the wall") && info.contains("result it is blue"), "{info}");
    }
    let log = command(&world, "/subagents log \"painter of walls\" 5").await;
    assert_eq!(log, "agent:main: do paint the wall\nassistant: it is blue");
    assert_eq!(command(&world, "/subagents log 2 1").await, "assistant: it is blue");
    for nobody in ["/subagents info 9", "/subagents kill nobody", "/subagents send 9 hello"] {
        assert!(command(&world, nobody).await.starts_with("no run '"), "{nobody}");
    }
    for usage in ["/subagents kill", "/subagents dance 1", "/subagents send 1"] {
        assert!(command(&world, usage).await.starts_with("/subagents list |"), "{usage}");
    }
}

#[tokio::test(start_paused = true)]
async fn kill_and_stop_commands_name_stopped_subagents() {
    let world = begun().await;
    assert_eq!(command(&world, "/subagents kill \"painter of walls\"").await, "It has ended: ok.");
    assert_eq!(command(&world, "/subagents kill digger").await, "Stopped: digger.");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(runs(&world).await[0].status, RunStatus::Cancelled);
    assert_eq!(command(&world, "/subagents kill all").await, "No sub-agent is running.");
    let world = begun().await;
    assert_eq!(command(&world, "/stop").await, "Stopped. Stopped sub-agents: digger.");
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.wait_settled().await;
    assert_eq!(command(&world, "/stop").await, "Nothing is running.");
}

/// A line of a person in the chat of the session `me`.
fn typed(text: &str, id: &str) -> IngressMessage {
    IngressMessage { platform_id: Some(id.into()), ..World::inbound("me", text) }
}

#[tokio::test(start_paused = true)]
async fn steered_subagent_answers_in_persons_chat() {
    let world = begun().await;
    let before = world.ground.fake_channel.visible_messages().len();
    let line = typed("/subagents steer 1 how far are you?", "m1");
    let reply = world.engine.run_inbound_command(&line, CallerRole::Alone).await.unwrap().unwrap();
    assert_eq!(reply, "The message is delivered at its next step.");
    tokio::time::sleep(Duration::from_secs(200)).await;
    let visible: Vec<String> = world
        .ground
        .fake_channel
        .visible_messages()
        .split_off(before)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert!(visible.contains(&"knee-deep".to_owned()), "{visible:?}");
    let child = runs(&world).await[0].child.clone();
    let lines = transcript(world.engine.db(), &child).await;
    assert!(lines.iter().any(|line| line.text == "how far are you?" && line.origin.is_person()));
    let again = world.engine.run_inbound_command(&line, CallerRole::Alone).await.unwrap().unwrap();
    assert_eq!(again, "This message was already processed.");
}

#[tokio::test(start_paused = true)]
async fn result_of_command_spawned_subagent_reaches_chat() {
    let world = World::with_provider(ScriptedProvider::new(with_two)).await;
    world.send_and_wait("hello").await;
    let line = typed("/subagents spawn do paint the door", "m1");
    let reply = world.engine.run_inbound_command(&line, CallerRole::Alone).await.unwrap().unwrap();
    assert!(reply.starts_with("Started in agent:main:subagent:"), "{reply}");
    tokio::time::sleep(Duration::from_secs(30)).await;
    world.wait_settled().await;
    let lines = transcript(world.engine.db(), &me()).await;
    assert_eq!(announces(&lines).len(), 1);
    let text = world.ground.fake_channel.texts_at("me", None).pop().unwrap();
    assert!(text.contains("it is blue"), "the parent was shown the result: {text}");
    let run = runs(&world).await.pop().unwrap();
    assert_eq!((run.owner_turn, run.caller.as_str(), run.hop), (None, "main", 1));
}

#[tokio::test(start_paused = true)]
async fn focus_on_child_lasts_until_unfocus_or_ttl() {
    let mut ground = ground(CONFIG).await;
    ground.provider = ScriptedProvider::new(|prompt: &Prompt| match (task(prompt), results(prompt)) {
        (first, _) if first.contains("do dig") => {
            vec![ScriptStep::Say(format!("child: {}", last_user_text(prompt)))]
        }
        ("begin", 0) => vec![spawn(json!({ "task": "do dig", "label": "digger" }))],
        _ => vec![ScriptStep::Say(format!("parent: {}", last_user_text(prompt)))],
    });
    let world = ground.start_engine(KillPointFaults::no_kill());
    read_after(&world, inbound_dm("boss", "begin")).await;
    let post = |text: &str, n: u32| {
        let mut message = inbound_dm("boss", text);
        message.platform_id = format!("p{n}");
        message
    };
    for (n, which) in ["digger", "1"].into_iter().enumerate() {
        let n = u32::try_from(n).unwrap() * 10;
        let texts = read_after(&world, post(&format!("/focus {which}"), n)).await;
        assert!(texts[0].starts_with("Messages written here now go to agent:main:subagent:"), "{texts:?}");
        assert_eq!(read_after(&world, post("deeper?", n + 1)).await, ["child: deeper?"]);
        assert_eq!(
            read_after(&world, post("/unfocus", n + 2)).await,
            ["Messages written here go to this conversation again."]
        );
        assert_eq!(read_after(&world, post("hello", n + 3)).await, ["parent: hello"]);
    }
    read_after(&world, post("/focus digger", 30)).await;
    read_after(&world, post("/session ttl 1h", 31)).await;
    assert_eq!(read_after(&world, post("still there?", 32)).await, ["child: still there?"]);
    world.ground.clock.set_time(61 * MINUTE_MS);
    assert_eq!(read_after(&world, post("and now?", 33)).await, ["parent: and now?"]);
    let senders = read_after(&world, inbound_dm("guest", "/focus digger")).await;
    assert_eq!(senders, ["Only owners of this assistant can use /focus."]);
}

/// Begins one child that is kept and one that goes with its end; asks for both when it is told to.
fn tidy(prompt: &Prompt) -> ModelScript {
    if task(prompt).contains("do part") {
        return vec![ScriptStep::Say("done".into())];
    }
    let heard = said(prompt);
    let ids = heard.split("run_id\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    match (last_user_text(prompt), results(prompt)) {
        ("go", 0) => vec![
            spawn(json!({ "task": "do part kept" })),
            spawn(json!({ "task": "do part gone", "cleanup": "delete" })),
        ],
        ("ask", 2) => {
            vec![ScriptStep::Call(
                "agents_wait".into(),
                json!({ "run_ids": ids.take(2).collect::<Vec<_>>() }),
            )]
        }
        ("ask", _) => vec![ScriptStep::Say(heard)],
        _ => vec![ScriptStep::Say("so be it".into())],
    }
}

#[tokio::test(start_paused = true)]
async fn ended_children_are_archived_or_deleted_and_results_stay_available() {
    let world = World::with_provider(ScriptedProvider::new(tidy)).await;
    world.send_and_wait("go").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    world.wait_settled().await;
    let (kept, gone) = (runs(&world).await[0].clone(), runs(&world).await[1].clone());
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(status(&world, &gone.child).await, None, "deleted with its end, after it was told");
    assert_eq!(status(&world, &kept.child).await, Some(SessionStatus::Active));
    assert_eq!(command(&world, "/subagents").await.lines().count(), 1);
    assert_eq!(command(&world, "/subagents log 2").await, "Its transcript was deleted when it ended.");
    // The engine dies before the hour is over; the next one knows.
    let ground = world.kill().await;
    ground.clock.set_time(61 * MINUTE_MS);
    let world = ground.start_engine(KillPointFaults::no_kill());
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(status(&world, &kept.child).await, Some(SessionStatus::Archived));
    assert_eq!(command(&world, "/subagents").await, "This session has no sub-agents.");
    assert!(command(&world, "/subagents log 1").await.contains("assistant: done"), "still to be read");
    assert!(command(&world, "/subagents send 1 more").await.contains("archived"));
    assert!(world.engine.session_tree(&me()).await.unwrap().children.is_empty());
    assert_eq!(recorded(&world, EventKind::SessionArchived).await.len(), 2);
    world.ground.clock.set_time(22 * 60 * MINUTE_MS);
    let answer = world.send_and_wait("ask").await.text;
    assert_eq!(answer.matches("\"result\":\"done\"").count(), 2, "{answer}");
    assert_eq!(announces(&transcript(world.engine.db(), &me()).await).len(), 2);
}

/// Agents that go on among themselves, with hardly any budget: announces are held.
async fn held() -> (World, SubagentRun) {
    let mut ground = World::with_provider(ScriptedProvider::new(|prompt: &Prompt| {
        if task(prompt).contains("do part") {
            return vec![ScriptStep::Say("done".into())];
        }
        match (last_user_text(prompt), results(prompt)) {
            ("go", 0) => vec![spawn(json!({ "task": "do part", "label": "one" }))],
            ("go", _) => vec![ScriptStep::Call("sessions_yield".into(), json!({}))],
            _ => vec![ScriptStep::Say(format!("heard {}", said(prompt).matches("[Context:").count()))],
        }
    }))
    .await
    .kill()
    .await;
    ground.settings.automatic_budget = 0;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_text("me", "go").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let held = world.engine.list_held_announces(10).await.unwrap();
    assert_eq!(held.len(), 1);
    (world, held[0].clone())
}

#[tokio::test(start_paused = true)]
async fn held_announce_is_delivered_when_person_writes() {
    let (world, run) = held().await;
    assert_eq!((run.held.as_deref(), run.status), (Some("autonomous_turns_exhausted"), RunStatus::Ok));
    let notice = world.ground.fake_channel.visible_messages();
    let notice = notice.iter().filter(|(_, text)| text.contains("is held: agents have replied"));
    assert_eq!(notice.count(), 1, "people are told that it waits for them");
    let world = world.kill().await.start_engine(KillPointFaults::no_kill());
    assert_eq!(world.engine.list_held_announces(10).await.unwrap().len(), 1, "it outlives the engine");
    assert_eq!(world.send_and_wait("what is new?").await.text, "heard 1");
    assert!(world.engine.list_held_announces(10).await.unwrap().is_empty());
    world.wait_settled().await;
}

#[tokio::test(start_paused = true)]
async fn dismissed_held_announce_starts_no_turn() {
    let (world, run) = held().await;
    world.engine.dismiss_announce(&run.id).await.unwrap();
    assert!(world.engine.list_held_announces(10).await.unwrap().is_empty());
    world.wait_settled().await;
    assert_eq!(recorded(&world, EventKind::AnnounceDismissed).await[0]["run_id"], run.id.as_str());
    let again = world.engine.dismiss_announce(&run.id).await.unwrap_err();
    assert_eq!(again.code(), "invalid_state");
    assert_eq!(world.send_and_wait("what is new?").await.text, "heard 0");
    let lines = transcript(world.engine.db(), &me()).await;
    assert_eq!(announces(&lines).len(), 1, "the line stays");
}

#[tokio::test(start_paused = true)]
async fn announce_to_deleted_owner_is_held() {
    let author = |prompt: &Prompt| match (task(prompt), results(prompt)) {
        (first, _) if first.contains("do part") => {
            vec![ScriptStep::Pause(Duration::from_secs(20)), ScriptStep::Say("done".into())]
        }
        (_, 0) => vec![spawn(json!({ "task": "do part" }))],
        _ => vec![ScriptStep::Say("begun".into())],
    };
    let world = World::with_provider(ScriptedProvider::new(author)).await;
    world.send_and_wait("go").await;
    world.engine.delete_session(&me()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let held = world.engine.list_held_announces(10).await.unwrap();
    assert_eq!(held[0].held.as_deref(), Some("owner_gone"));
    assert_eq!(held[0].result.as_ref().unwrap().text, "done", "what it came to can be read");
    world.engine.dismiss_announce(&held[0].id).await.unwrap();
    assert!(world.engine.list_held_announces(10).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn session_tree_shows_all_descendants_with_one_trace() {
    let author = |prompt: &Prompt| match (task(prompt), results(prompt)) {
        (first, _) if first.contains("do leaf") => vec![ScriptStep::Hang],
        (first, 0) if first.contains("do branch") => {
            vec![spawn(json!({ "task": "do leaf", "label": "leaf" }))]
        }
        (_, 0) => (0..2).map(|n| spawn(json!({ "task": "do branch", "label": format!("b{n}") }))).collect(),
        _ => vec![ScriptStep::Call("sessions_yield".into(), json!({}))],
    };
    let world = World::with_provider(ScriptedProvider::new(author)).await;
    world.send_text("me", "go").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let tree = world.engine.session_tree(&me()).await.unwrap();
    assert_eq!((tree.activity, tree.children.len(), tree.run.is_none()), (SessionActivity::Idle, 2, true));
    assert_eq!(tree.tokens, Some(2 * 15));
    let labels: Vec<&str> =
        tree.children.iter().map(|child| child.run.as_ref().unwrap().task.label.as_str()).collect();
    assert_eq!(labels, ["b0", "b1"]);
    let leaf = &tree.children[0].children[0];
    assert_eq!((leaf.activity, leaf.session.spawn_depth), (SessionActivity::Running, 2));
    assert_eq!(leaf.run.as_ref().unwrap().status, RunStatus::Running);
    let turns = world.engine.db().read(|tx| jobs::list(tx, None, None, 100)).await.unwrap();
    assert_eq!(turns.len(), 5);
    let trace = tree.trace.clone().unwrap();
    assert!(turns.iter().all(|turn| turn.trace == trace), "{turns:#?}");
    fn every(branch: &SessionNode) -> Vec<&SessionNode> {
        std::iter::once(branch).chain(branch.children.iter().flat_map(every)).collect()
    }
    assert!(every(&tree).iter().all(|branch| branch.trace.as_ref() == Some(&trace)));
    command(&world, "/stop").await;
    world.wait_settled().await;
    let turns = world.engine.db().read(|tx| jobs::list(tx, None, None, 100)).await.unwrap();
    assert!(turns.iter().all(|turn| turn.trace == trace), "announces belong to it, too");
}

#[tokio::test(start_paused = true)]
async fn stopping_parent_ends_forty_sessions_within_five_seconds() {
    let author = |prompt: &Prompt| match (task(prompt), results(prompt)) {
        (first, _) if first.contains("do leaf") => vec![ScriptStep::Hang],
        (first, 0) if first.contains("do branch") => {
            (0..9).map(|n| spawn(json!({ "task": "do leaf", "label": format!("leaf {n}") }))).collect()
        }
        (first, _) if first.contains("do branch") => vec![ScriptStep::Hang],
        (_, 0) => (0..4).map(|_| spawn(json!({ "task": "do branch", "label": "branch" }))).collect(),
        _ => vec![ScriptStep::Call("sessions_yield".into(), json!({}))],
    };
    let mut ground = World::with_provider(ScriptedProvider::new(author)).await.kill().await;
    ground
        .configure("[agents.defaults]\nsubagents = { max_children_per_agent = 10, max_concurrent = 64 }\n")
        .await;
    ground.settings.slots.values_mut().for_each(|slots| *slots = 64);
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_text("me", "go").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let running = world.engine.db().read(jobs::count_by_state).await.unwrap();
    assert_eq!(running, [("running".to_owned(), 40)]);
    let text = command(&world, "/stop").await;
    assert!(text.ends_with(", 30 more."), "{text}");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let tree = world.engine.session_tree(&me()).await.unwrap();
    let below = tree.children.iter().chain(tree.children.iter().flat_map(|branch| &branch.children));
    let ended = below.filter(|branch| branch.run.as_ref().unwrap().status == RunStatus::Cancelled).count();
    assert_eq!(ended, 40);
    let left = world.engine.db().read(jobs::count_by_state).await.unwrap();
    assert!(left.iter().all(|(state, _)| state != "running"), "{left:?}");
    // What waits for a person waits where that person is; nobody will write to what was stopped.
    let held = world.engine.list_held_announces(100).await.unwrap();
    assert!(held.len() == 4 && held.iter().all(|run| run.owner == me()), "{held:#?}");
    world.send_text("me", "go on").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.engine.list_held_announces(100).await.unwrap(), []);
}

/// A child that looks at something and then says nothing; its owner begins it and answers.
fn with_silent_child(prompt: &Prompt) -> ModelScript {
    match (task(prompt), results(prompt)) {
        (first, 0) if first.contains("do look") => vec![ScriptStep::Call("look".into(), json!({}))],
        (first, _) if first.contains("do look") => vec![],
        (_, 0) if last_user_text(prompt).contains("begin") => {
            vec![spawn(json!({ "task": "do look around", "label": "looker" }))]
        }
        _ => vec![ScriptStep::Say("parent".into())],
    }
}

#[tokio::test(start_paused = true)]
async fn child_without_final_text_returns_last_tool_result() {
    let world = World::with_provider(ScriptedProvider::new(with_silent_child)).await;
    world.send_and_wait("begin").await;
    world.wait_settled().await;
    let run = runs(&world).await.remove(0);
    let result = run.result.unwrap();
    assert_eq!((run.status, result.error_code), (RunStatus::Ok, None));
    assert!(result.text.contains("look"), "{}", result.text);
}

/// A child whose own child's announce is held: the person who writes in the chat releases it.
#[tokio::test(start_paused = true)]
async fn held_announce_in_subagent_is_released_when_person_writes() {
    let author = |prompt: &Prompt| match (task(prompt), results(prompt)) {
        (first, _) if first.contains("do leaf") => vec![ScriptStep::Say("leaf is done".into())],
        (first, 0) if first.contains("do branch") => {
            vec![spawn(json!({ "task": "do leaf", "label": "leaf" }))]
        }
        (first, 1) if first.contains("do branch") && !said(prompt).contains("[Context:") => {
            vec![ScriptStep::Call("sessions_yield".into(), json!({}))]
        }
        (first, _) if first.contains("do branch") => vec![ScriptStep::Say("branch is done".into())],
        ("go", 0) => vec![spawn(json!({ "task": "do branch", "label": "branch" }))],
        ("go", 1) if !said(prompt).contains("[Context:") => {
            vec![ScriptStep::Call("sessions_yield".into(), json!({}))]
        }
        _ => vec![ScriptStep::Say(format!("heard {}", said(prompt).contains("branch is done")))],
    };
    let mut ground = World::with_provider(ScriptedProvider::new(author)).await.kill().await;
    ground.configure("[agents.defaults]\nsubagents = { max_concurrent = 2, max_spawn_depth = 2 }\n").await;
    ground.settings.automatic_budget = 0;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_text("me", "go").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let lines = world.ground.fake_channel.texts_at("me", None);
    assert!(
        lines.iter().any(|text| text.contains("is held") && text.contains("Send any message")),
        "{lines:?}"
    );
    assert!(command(&world, "/queue").await.contains("Held until you write: 1 result of sub-agents."));
    // Its time stands still, and it takes no place.
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(runs(&world).await[0].status, RunStatus::Running);
    world.send_text("me", "and?").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(runs(&world).await[0].status, RunStatus::Ok);
    assert_eq!(runs(&world).await[0].result.as_ref().unwrap().text, "branch is done");
}
