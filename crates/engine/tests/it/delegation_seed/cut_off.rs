//! Targets that are cut off, by their time or by a person: what they had said comes back, and nothing else does.

use std::time::Duration;

use polyclaw_domain::job::JobState;
use polyclaw_domain::provider::Prompt;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{KillPointFaults, ScriptStep};
use serde_json::{Value, json};

use super::{answered, give, ground, is_target};

#[tokio::test(start_paused = true)]
async fn d_05_silent_target_timeout_has_no_partial_response() {
    let answer =
        answered(give("expert", "do part", &[("timeout_ms", json!(1_000))]), |_| vec![ScriptStep::Hang])
            .await;
    assert_eq!((&answer["status"], &answer["partial_response"]), (&json!("timeout"), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn d_06_stopped_call_reports_partial_text_of_target() {
    for (script, expected) in [
        (vec![ScriptStep::Say("half of it".into()), ScriptStep::Hang], " Partial output:\nhalf of it"),
        (vec![ScriptStep::Hang], ""),
    ] {
        let author = move |prompt: &Prompt| match is_target(prompt) {
            true => script.clone(),
            false => vec![give("expert", "do part", &[])],
        };
        let world = ground(author).await.start_engine(KillPointFaults::no_kill());
        let accepted = world.send_text("me", "ask").await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.engine.stop_session(&World::session_key("me")).await.unwrap();
        assert_eq!(world.wait_answer(&accepted).await.state, JobState::Cancelled);
        let lines: Vec<String> =
            world.transcript("me").await.into_iter().map(|message| message.text).collect();
        let stopped = format!("Stopped: the turn ended while this call was running.{expected}");
        assert!(lines.contains(&stopped), "{lines:?}");
        world.wait_settled().await;
    }
}
