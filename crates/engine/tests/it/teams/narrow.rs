//! Mail for somebody whose model has little room, and whose window nobody knows.

use std::collections::HashMap;
use std::sync::Arc;

use polyclaw_domain::mail::LetterState;
use polyclaw_testkit::Line;
use tokio::sync::Semaphore;

use super::fixture::{Hall, TEAM, lead, said, who};
use crate::windows::size;

on_both!(mail_that_has_no_room_waits_for_the_next_turn, a_letter_longer_than_the_window_is_shown_in_part);

/// Tokens that the window of the model has beside what every prompt of ann holds.
const ROOM: usize = 3_000;

/// Lets ann have a first turn and wait in a second, and makes the model's window small.
async fn with_narrow_ann(hall: Hall) -> (Hall, Arc<Semaphore>, usize) {
    let hall = hall.with_team().await;
    hall.join("ann").await;
    hall.rest().await;
    let gate = Arc::new(Semaphore::new(0));
    hall.script("ann", vec![vec![Line::Gate(Arc::clone(&gate)), Line::Say("done".to_owned())]]);
    hall.send(&lead(), "ann", "begin").await.unwrap();
    hall.until("ann works", async || hall.times("ann", ">begin<") > 0).await;
    let window = hall.model.prompts().iter().map(size).max().unwrap() + ROOM;
    hall.narrows(window);
    (hall, gate, window)
}

/// Prompts of ann that the model took, by the turn they are of: turns of this story end with words.
fn taken(hall: &Hall, window: usize) -> Vec<(usize, String)> {
    let prompts = hall.model.prompts();
    let of_ann = prompts.iter().filter(|prompt| who(prompt) == "ann" && size(prompt) <= window);
    of_ann.map(said).map(|text| (text.matches("assistant ").count(), text)).collect()
}

async fn all_is_read(hall: &Hall) {
    let letters = hall.world.engine.team_letters(TEAM, 100).await.unwrap();
    let unread: Vec<_> =
        letters.iter().filter(|one| one.to == "ann" && one.state != LetterState::Read).collect();
    assert!(unread.is_empty(), "{unread:?}");
    assert_eq!(hall.times("lead", "ann is idle: failed"), 0, "no turn of ann failed");
}

async fn mail_that_has_no_room_waits_for_the_next_turn(hall: Hall) {
    const LETTERS: usize = 40;
    let (hall, gate, window) = with_narrow_ann(hall).await;
    let letter = |n: usize| format!("[no {n}] {}", "word ".repeat(300));
    for n in 0..LETTERS {
        hall.send(&lead(), "ann", &letter(n)).await.unwrap();
    }
    gate.add_permits(1);
    hall.until("the last is shown", async || {
        taken(&hall, window).iter().any(|(_, text)| text.contains(&letter(LETTERS - 1)))
    })
    .await;
    hall.rest().await;
    all_is_read(&hall).await;
    let mut shown: HashMap<usize, Vec<usize>> = HashMap::new();
    for (turn, text) in taken(&hall, window) {
        shown.entry(turn).or_default().extend((0..LETTERS).filter(|n| text.contains(&letter(*n))));
    }
    let mut turns: Vec<_> = shown.into_iter().filter(|(_, letters)| !letters.is_empty()).collect();
    turns.sort_unstable();
    assert!(turns.len() > 3, "they had no room together: {turns:?}");
    let order: Vec<usize> = turns.into_iter().flat_map(|(_, letters)| letters).collect();
    assert_eq!(order, (0..LETTERS).collect::<Vec<_>>(), "each whole, once and in order");
}

async fn a_letter_longer_than_the_window_is_shown_in_part(hall: Hall) {
    let (hall, gate, _) = with_narrow_ann(hall).await;
    let long = format!("the beginning {} the end", "word ".repeat(15_000));
    hall.send(&lead(), "ann", &long).await.unwrap();
    hall.send(&lead(), "ann", "and then").await.unwrap();
    gate.add_permits(1);
    hall.until("the second is shown", async || hall.times("ann", ">and then<") > 0).await;
    hall.rest().await;
    all_is_read(&hall).await;
    let shown = hall.shown("ann");
    let in_part = shown.iter().filter(|text| text.contains("characters left out: too long for this model"));
    let in_part: Vec<_> =
        in_part.filter(|text| text.contains("the beginning") && text.contains("the end")).collect();
    assert!(!in_part.is_empty());
    let stored = hall.world.engine.team_letters(TEAM, 100).await.unwrap();
    assert!(stored.iter().any(|one| one.content == long), "what is stored stays whole");
}
