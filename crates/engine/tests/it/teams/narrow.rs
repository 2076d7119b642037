//! Mail for somebody whose model has little room, and whose window nobody knows.

use std::sync::Arc;

use polyclaw_domain::team_message::TeamMessageState;
use polyclaw_testkit::{ModelScript, ScriptStep};
use serde_json::json;
use tokio::sync::Semaphore;

use super::fixture::{Hall, TEAM, call, lead, said, who};
use crate::windows::size;

on_both!(
    team_messages_beyond_context_window_wait_for_next_turn,
    team_message_longer_than_context_window_is_truncated,
    messages_laid_out_before_crash_are_read_once_shown,
    answered_messages_are_not_shown_as_new_after_restart,
    answered_messages_leave_room_for_new_ones,
);

/// Lets ann have a first turn and wait in a second. Says how long her prompts are.
async fn with_busy_ann(hall: Hall) -> (Hall, Arc<Semaphore>, usize) {
    let hall = hall.with_team().await;
    hall.join("ann").await;
    hall.rest().await;
    let gate = Arc::new(Semaphore::new(0));
    hall.script("ann", vec![vec![ScriptStep::Gate(Arc::clone(&gate)), ScriptStep::Say("done".to_owned())]]);
    hall.send(&lead(), "ann", "begin").await.unwrap();
    hall.until("ann works", async || hall.times("ann", ">begin<") > 0).await;
    let longest = longest(&hall);
    (hall, gate, longest)
}

fn longest(hall: &Hall) -> usize {
    hall.model.prompts().iter().map(size).max().unwrap()
}

async fn assert_all_messages_read(hall: &Hall) {
    let messages = hall.world.engine.list_team_messages(TEAM, 100).await.unwrap();
    let unread: Vec<_> =
        messages.iter().filter(|one| one.to == "ann" && one.state != TeamMessageState::Read).collect();
    assert!(unread.is_empty(), "{unread:?}");
    assert_eq!(hall.times("lead", "ann is idle: failed"), 0, "no turn of ann failed");
}

async fn send(hall: &Hall, message_count: usize) {
    for n in 0..message_count {
        let text = format!("[no {n}] {}", "word ".repeat(300));
        hall.send(&lead(), "ann", &text).await.unwrap();
    }
}

/// The letters that each prompt of ann held which the model took, from one prompt on.
fn taken(hall: &Hall, from: usize, window: usize) -> Vec<Vec<usize>> {
    let prompts = hall.model.prompts();
    let of_ann = prompts[from..].iter().filter(|prompt| who(prompt) == "ann" && size(prompt) <= window);
    // What an earlier turn has read is before it, as a line of the conversation.
    let new = |text: &str| text.split("origin=\"teammates\"").nth(1).unwrap_or_default().to_owned();
    let held = |text: String| {
        let text = new(&text);
        (0..100).filter(|n| text.contains(&format!(">[no {n}] "))).collect()
    };
    of_ann.map(|prompt| held(said(prompt))).collect()
}

async fn team_messages_beyond_context_window_wait_for_next_turn(hall: Hall) {
    const LETTERS: usize = 40;
    let (hall, gate, usual) = with_busy_ann(hall).await;
    let window = usual + 3_000;
    hall.narrows(window);
    send(&hall, LETTERS).await;
    gate.add_permits(1);
    let is_last = |positions: &Vec<usize>| positions.contains(&(LETTERS - 1));
    hall.until("the last is shown", async || taken(&hall, 0, window).iter().any(is_last)).await;
    hall.rest().await;
    assert_all_messages_read(&hall).await;
    let shown = taken(&hall, 0, window);
    assert!(shown.iter().filter(|letters| !letters.is_empty()).count() > 3, "no room for all: {shown:?}");
    assert_eq!(shown.concat(), (0..LETTERS).collect::<Vec<_>>(), "each once and in order");
    assert_eq!(hall.times("ann", "omitted"), 0, "and whole");
}

async fn team_message_longer_than_context_window_is_truncated(hall: Hall) {
    let (hall, gate, usual) = with_busy_ann(hall).await;
    hall.narrows(usual + 3_000);
    let long = format!("the beginning {} the end", "word ".repeat(15_000));
    hall.send(&lead(), "ann", &long).await.unwrap();
    hall.send(&lead(), "ann", "and then").await.unwrap();
    gate.add_permits(1);
    hall.until("the second is shown", async || hall.times("ann", ">and then<") > 0).await;
    hall.rest().await;
    assert_all_messages_read(&hall).await;
    let shown = hall.shown("ann");
    let in_part = |text: &&String| {
        ["the beginning", "characters omitted: too long for this model", "the end"]
            .iter()
            .all(|words| text.contains(words))
    };
    assert!(shown.iter().any(|text| in_part(&text)));
    let stored = hall.world.engine.list_team_messages(TEAM, 100).await.unwrap();
    assert!(stored.iter().any(|one| one.content == long), "what is stored stays whole");
}

/// A turn of ann shows ten letters at once and does as its script says, which ends with nothing. The engine dies, and the
/// model of the next has less room, as the engine knows or not. Says what its prompts held that were answered.
async fn restart_with_smaller_window(
    hall: Hall,
    script: Vec<ModelScript>,
    is_notified: bool,
) -> (Hall, Vec<Vec<usize>>) {
    let (hall, gate, _) = with_busy_ann(hall).await;
    send(&hall, 10).await;
    let prompts = script.len();
    hall.script("ann", script);
    gate.add_permits(1);
    hall.until("ann reads", async || hall.times("ann", ">[no 9] ") == prompts).await;
    let (from, window) = (hall.model.prompts().len(), longest(&hall) - 1_000);
    hall.narrows(window);
    let hall = hall.lives_on(if is_notified { window } else { 128_000 }).await;
    hall.rest().await;
    assert_all_messages_read(&hall).await;
    let shown = taken(&hall, from, window);
    (hall, shown)
}

async fn messages_laid_out_before_crash_are_read_once_shown(hall: Hall) {
    let (_hall, shown) = restart_with_smaller_window(hall, vec![vec![ScriptStep::Hang]], true).await;
    assert_eq!(shown.concat(), (0..10).collect::<Vec<_>>(), "{shown:?}");
}

async fn answered_messages_are_not_shown_as_new_after_restart(hall: Hall) {
    let look = call("TaskList", json!({ "team_name": TEAM }));
    let (_hall, shown) = restart_with_smaller_window(hall, vec![look, vec![ScriptStep::Hang]], false).await;
    assert_eq!(shown, [(0..10).collect::<Vec<_>>()], "they stay before the turn that goes on");
}

async fn answered_messages_leave_room_for_new_ones(hall: Hall) {
    let (hall, gate, usual) = with_busy_ann(hall).await;
    let mut settings = hall.world.ground.settings.clone();
    settings.default_context_window = usual + 4_000;
    hall.world.engine.reload_settings(settings);
    let second = Arc::new(Semaphore::new(0));
    let look = ScriptStep::Call("TaskList".to_owned(), json!({ "team_name": TEAM }));
    hall.script("ann", vec![vec![ScriptStep::Gate(Arc::clone(&second)), look]]);
    // The first letter is shown, though it needs more than mail has of the room.
    hall.send(&lead(), "ann", &format!("first {}", "word ".repeat(1_200))).await.unwrap();
    gate.add_permits(1);
    hall.until("ann reads", async || hall.times("ann", ">first ") == 1).await;
    hall.send(&lead(), "ann", "one more").await.unwrap();
    second.add_permits(1);
    hall.until("it is there at the next step", async || hall.times("ann", ">one more<") == 1).await;
    let shown = hall.shown("ann").into_iter().find(|text| text.contains(">one more<")).unwrap();
    assert!(shown.contains(">first word word"), "beside what was answered: {shown}");
}
