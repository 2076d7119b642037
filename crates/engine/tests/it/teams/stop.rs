//! A person stops the lead: nobody of its team goes on, and nobody is woken for it.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::job::JobState;
use polyclaw_store::{Db, jobs};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider};
use serde_json::json;

use super::chaos::{join, team};
use super::fixture::{TEAM, lead, letter, said, who};
use polyclaw_domain::team_message::TeamMessageKind;

#[tokio::test(start_paused = true)]
async fn stopping_lead_stops_members_and_subagents_without_new_turns() {
    // Everybody works for an hour, and `ann` has a child that does, too.
    let model = ScriptedProvider::new(|prompt| {
        let hour = vec![ScriptStep::Pause(Duration::from_secs(3_600)), ScriptStep::Say("done".to_owned())];
        match who(prompt).as_str() {
            "ann" if !said(prompt).contains("accepted") => {
                vec![ScriptStep::Call("sessions_spawn".into(), json!({ "task": "a part of it" }))]
            }
            "lead" if said(prompt).contains("hello") && !said(prompt).contains("work on") => {
                vec![ScriptStep::Say("hello".to_owned())]
            }
            _ => hour,
        }
    });
    let mut ground = DurableWorld::from_db(Db::in_memory().unwrap(), Arc::clone(&model) as _).await;
    ground.settings.turn_ms = 7_200_000;
    ground.settings.stall_ms = 7_200_000;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("hello").await;
    team(&world).await;
    for name in ["ann", "bob"] {
        join(&world, name, false).await;
    }
    world
        .engine
        .send_team_message(&lead(), TEAM, letter(TeamMessageKind::Broadcast, "work on"))
        .await
        .unwrap();
    world.send_text("me", "work on").await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let running = || world.engine.db().read(|tx| jobs::list(tx, None, Some(JobState::Running), 99));
    assert_eq!(running().await.unwrap().len(), 4, "the lead, two members and a child are at work");
    let before = model.prompts().len();
    let mut stopped = world.engine.stop_session(&World::session_key("me")).await.unwrap().children;
    stopped.sort();
    assert_eq!(stopped, ["a part of it", "ann", "bob"]);
    tokio::time::sleep(Duration::from_secs(600)).await;
    world.wait_settled().await;
    assert_eq!(model.prompts().len(), before, "no turn is begun because others were stopped");
    assert_eq!(running().await.unwrap().len(), 0, "everybody rests");
    world.engine.send_team_message(&lead(), TEAM, letter(TeamMessageKind::Broadcast, "go on")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(model.prompts().len() > before, "and can be woken again");
    let again = model.prompts().iter().skip(before).any(|prompt| said(prompt).contains("work on<"));
    assert!(again, "what the stopped turns were shown was not read, and is shown again");
    world.engine.stop_session(&World::session_key("me")).await.unwrap();
    world.wait_settled().await;
}
