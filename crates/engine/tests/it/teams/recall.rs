//! What somebody in a team was told stays in its conversation.

use polyclaw_domain::job::JobState;
use polyclaw_domain::task::TeamTaskState;
use polyclaw_engine::team::TaskOutcome;
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::{jobs, messages, sessions};
use serde_json::json;

use super::fixture::{Hall, TEAM, actor, call, lead, say};

on_both!(
    team_messages_stay_in_later_turns,
    task_results_stay_in_later_turns_of_lead,
    team_messages_of_failed_turn_are_stored_once,
    long_task_continues_in_next_turn_without_delay,
);

async fn team_messages_stay_in_later_turns(hall: Hall) {
    let hall = hall.with_team().await;
    hall.join("ann").await;
    hall.send(&lead(), "ann", "The header colour is TEAL-4711. Remember it.").await.unwrap();
    hall.rest().await;
    hall.send(&lead(), "ann", "Now draw the header.").await.unwrap();
    hall.rest().await;
    let last = hall.shown("ann").pop().unwrap();
    assert!(last.contains("TEAL-4711") && last.contains("Now draw"), "{last}");
    assert_eq!(last.matches("TEAL-4711").count(), 2, "once as its summary and once as its text: {last}");
    assert!(last.find("TEAL-4711") < last.find("Now draw"));
}

async fn task_results_stay_in_later_turns_of_lead(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = actor(&hall.join("ann").await.session_key);
    for n in 0..8 {
        let no = hall.task(&format!("part {n}"), &[]).await;
        hall.world.engine.claim_task(&ann, TEAM, Some(no)).await.unwrap();
        let summary = Some(format!("RESULT-{n}"));
        let how = TaskOutcome { state: TeamTaskState::Completed, summary, artifacts: vec![] };
        hall.world.engine.finish_task(&ann, TEAM, no, how).await.unwrap();
    }
    hall.rest().await;
    hall.world.send_and_wait("what came of it?").await;
    let last = hall.shown("lead").pop().unwrap();
    for n in 0..8 {
        assert!(last.contains(&format!("RESULT-{n}")), "{n}: {last}");
    }
    let lines = transcript(&hall).await;
    let messages =
        lines.iter().find(|line| line.text.contains("part 3")).expect("a line that names the task");
    assert!(messages.text.contains("ann"), "{}", messages.text);
}

async fn transcript(hall: &Hall) -> Vec<SessionMessage> {
    hall.world.transcript("me").await
}

async fn team_messages_of_failed_turn_are_stored_once(hall: Hall) {
    let hall = hall.with_team().await;
    let ann = hall.join("ann").await;
    let round = || call("TaskClaim", json!({ "team_name": TEAM }));
    // The same call again and again: the turn is stopped as one that goes round in circles.
    hall.script("ann", (0..4).map(|_| round()).collect());
    hall.send(&lead(), "ann", "The colour is TEAL-4711.").await.unwrap();
    hall.rest().await;
    hall.world.send_and_wait("go on").await;
    hall.rest().await;
    let key = ann.session_key.clone();
    let kept = hall.world.engine.db().read(move |tx| {
        let session = sessions::get(tx, &key)?.unwrap();
        messages::list_page(tx, &key, &session.id, 0, 1_000)
    });
    let kept = kept.await.unwrap();
    let mail = kept.iter().filter(|line| line.text.contains("messages from lead")).count();
    assert_eq!(mail, 1, "{:?}", kept.iter().map(|line| &line.text).collect::<Vec<_>>());
}

async fn long_task_continues_in_next_turn_without_delay(hall: Hall) {
    let hall = hall.reconfigured(|settings| settings.limits.rounds = 5).await.with_team().await;
    let ann = hall.join("ann").await;
    let work = (0..12).map(|n| call("todo", json!({ "items": [{ "text": format!("step {n}") }] })));
    hall.script("ann", work.chain([say("all done")]).collect());
    hall.send(&lead(), "ann", "Do twelve steps.").await.unwrap();
    hall.rest().await;
    let key = ann.session_key.clone();
    let turns = hall.world.engine.db().read(move |tx| jobs::list(tx, Some(&key), None, 99)).await.unwrap();
    assert!(turns.len() >= 3, "{}", turns.len());
    assert!(turns.iter().all(|turn| turn.state == JobState::Done), "{turns:?}");
    assert!(hall.times("ann", "round limit") > 0, "it is told why");
    let idle = hall.inbox("lead").iter().filter(|message| message.to_string().contains("failed")).count();
    assert_eq!(idle, 0, "nobody is told that it failed");
}
