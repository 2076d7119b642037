//! A team works while its lead is busy: its announces wait, and never keep the lead's person from being heard.

use std::sync::Arc;

use polyclaw_domain::job::JobState;
use polyclaw_domain::task::TeamTaskState;
use polyclaw_engine::team::TaskOutcome;
use polyclaw_store::{jobs, messages};
use polyclaw_testkit::ScriptStep;
use polyclaw_testkit::world::World;
use tokio::sync::Semaphore;

use super::fixture::{Hall, TEAM, actor};

on_both!(
    sixty_announces_do_not_block_person,
    two_hundred_announces_do_not_block_person,
    person_is_answered_after_stop_with_queued_announces,
    person_is_answered_after_new_conversation_with_queued_announces,
    person_is_answered_when_turn_budget_is_exhausted,
    announces_do_not_count_toward_backlog_limit,
);

mod thousand {
    #[test]
    fn on_sqlite() {
        crate::teams::fixture::long_on_sqlite(super::thousand_announces_do_not_block_person);
    }

    #[test]
    fn on_postgres() {
        crate::teams::fixture::long_on_postgres(super::thousand_announces_do_not_block_person);
    }
}

/// The lead is in one model call while a member completes so many tasks.
async fn busy(hall: &Hall, tasks: usize) -> Arc<Semaphore> {
    let ann = actor(&hall.join("ann").await.session_key);
    hall.rest().await;
    let gate = Arc::new(Semaphore::new(0));
    hall.script("lead", vec![vec![ScriptStep::Gate(Arc::clone(&gate)), ScriptStep::Say("done".to_owned())]]);
    hall.world.send_text("me", "work").await.unwrap();
    for n in 0..tasks {
        let no = hall.task(&format!("part {n}"), &[]).await;
        hall.world.engine.claim_task(&ann, TEAM, Some(no)).await.unwrap();
        let how = TaskOutcome {
            state: TeamTaskState::Completed,
            summary: Some(format!("result {n}")),
            artifacts: vec![],
        };
        hall.world.engine.finish_task(&ann, TEAM, no, how).await.unwrap();
    }
    gate
}

async fn waiting(hall: &Hall) -> usize {
    let key = World::session_key("me");
    hall.world.engine.db().read(move |tx| messages::list_waiting(tx, &key)).await.unwrap().len()
}

async fn is_heard(hall: Hall, tasks: usize) {
    let gate = busy(&hall, tasks).await;
    hall.until("the announces wait", async || waiting(&hall).await == tasks).await;
    let asked = hall.world.send_text("me", "are you there?").await.expect("a person is never refused");
    gate.add_permits(1);
    assert_eq!(hall.world.wait_answer(&asked).await.state, JobState::Done);
    let shown = hall.shown("lead").into_iter().rfind(|prompt| prompt.contains("are you there?")).unwrap();
    assert!(shown.contains(&format!("result {}", tasks - 1)), "the newest result is there whole");
    assert!(shown.contains(&format!("{} results that arrived while you were busy", tasks - 50)), "{shown}");
    hall.rest().await;
    assert!(hall.world.send_and_wait("and now?").await.error_code.is_none());
}

async fn sixty_announces_do_not_block_person(hall: Hall) {
    is_heard(hall.with_team().await, 60).await;
}

async fn two_hundred_announces_do_not_block_person(hall: Hall) {
    is_heard(hall.with_team().await, 200).await;
}

async fn thousand_announces_do_not_block_person(hall: Hall) {
    let hall = hall.reconfigured(|settings| settings.teams.automatic_turns = 5_000).await;
    is_heard(hall.with_team().await, 1_000).await;
}

async fn person_is_answered_after_stop_with_queued_announces(hall: Hall) {
    let hall = hall.with_team().await;
    let _gate = busy(&hall, 60).await;
    hall.world.engine.stop_session(&World::session_key("me")).await.unwrap();
    let asked = hall.world.send_text("me", "go on").await.expect("a person is never refused");
    assert_eq!(hall.world.wait_answer(&asked).await.state, JobState::Done);
    hall.until("nothing waits", async || waiting(&hall).await == 0).await;
}

async fn person_is_answered_after_new_conversation_with_queued_announces(hall: Hall) {
    let hall = hall.with_team().await;
    let _gate = busy(&hall, 60).await;
    hall.world.engine.renew_session(&World::session_key("me")).await.unwrap();
    let asked = hall.world.send_text("me", "go on").await.expect("a person is never refused");
    assert_eq!(hall.world.wait_answer(&asked).await.state, JobState::Done);
    hall.until("nothing waits", async || waiting(&hall).await == 0).await;
}

async fn person_is_answered_when_turn_budget_is_exhausted(hall: Hall) {
    let hall = hall.reconfigured(|settings| settings.teams.automatic_turns = 0).await.with_team().await;
    let gate = busy(&hall, 60).await;
    gate.add_permits(1);
    hall.rest().await;
    assert!(waiting(&hall).await > 50, "the announces wait for a person");
    let asked = hall.world.send_text("me", "go on").await.expect("a person is never refused");
    assert_eq!(hall.world.wait_answer(&asked).await.state, JobState::Done);
    // The person's message also lets the member run. Its idle notice may arrive after the lead's turn, and then waits.
    hall.until("the results are read", async || waiting(&hall).await <= 1).await;
}

async fn announces_do_not_count_toward_backlog_limit(hall: Hall) {
    let hall = hall.with_team().await;
    let gate = busy(&hall, 60).await;
    let key = World::session_key("me");
    let counts = hall.world.engine.db().read(move |tx| jobs::count_waiting(tx, &key)).await.unwrap();
    assert_eq!((counts.people, counts.internal), (0, 0));
    for n in 0..50 {
        hall.world.send_text("me", &format!("word {n}")).await.expect("people have a bound of their own");
    }
    let full = hall.world.send_text("me", "one too many").await.unwrap_err();
    assert_eq!(full.code(), "backlog_full");
    gate.add_permits(1);
    hall.rest().await;
}
