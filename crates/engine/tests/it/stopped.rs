//! A stop while children work: it begins nothing, and nothing they told is lost.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::provider::Prompt;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{ModelScript, ScriptStep, ScriptedProvider};
use serde_json::{Value, json};

use crate::families::{results, said, task};

fn spawn(part: &str) -> ScriptStep {
    ScriptStep::Call("sessions_spawn".into(), json!({ "task": format!("do part {part}") }))
}

fn child(prompt: &Prompt) -> Option<ModelScript> {
    match task(prompt) {
        text if text.contains("do part quick") => {
            Some(vec![ScriptStep::Say("the quick part is done".into())])
        }
        text if text.contains("do part slow") => Some(vec![ScriptStep::Hang]),
        _ => None,
    }
}

/// Stops the conversation after a while, and gives the prompt of whatever is asked next, once somebody writes.
async fn next_prompt_after_stop(author: fn(&Prompt) -> ModelScript) -> String {
    let model = ScriptedProvider::new(author);
    let world = World::with_provider(Arc::clone(&model) as _).await;
    world.send_text("me", "do it").await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.engine.stop_session(&World::session_key("me")).await.unwrap();
    let asked = model.prompts().len();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(model.prompts().len(), asked, "a stop begins nothing");
    world.send_text("me", "and now?").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    said(&model.prompts()[asked])
}

#[tokio::test(start_paused = true)]
async fn child_result_of_stopped_wait_is_shown_on_next_message() {
    fn waiting(prompt: &Prompt) -> ModelScript {
        let run = |line: &str| serde_json::from_str::<Value>(line.strip_prefix("result ")?).ok();
        child(prompt).unwrap_or_else(|| match results(prompt) {
            0 => vec![spawn("quick"), spawn("slow")],
            2 => {
                let text = said(prompt);
                let ids: Vec<Value> = text.lines().filter_map(run).map(|run| run["run_id"].clone()).collect();
                vec![ScriptStep::Call("agents_wait".into(), json!({ "run_ids": ids, "timeout": 60 }))]
            }
            _ => vec![ScriptStep::Say("heard".into())],
        })
    }
    let text = next_prompt_after_stop(waiting).await;
    assert_eq!(text.matches("the quick part is done").count(), 1, "{text}");
    assert_eq!(text.matches("Status: cancelled").count(), 1, "{text}");
}

#[tokio::test(start_paused = true)]
async fn child_result_during_stopped_reply_is_shown_on_next_message() {
    fn speaking(prompt: &Prompt) -> ModelScript {
        child(prompt).unwrap_or_else(|| match results(prompt) {
            0 => vec![spawn("quick")],
            _ if said(prompt).contains("and now?") => vec![ScriptStep::Say("heard".into())],
            _ => vec![ScriptStep::Say("I am still".into()), ScriptStep::Hang],
        })
    }
    let text = next_prompt_after_stop(speaking).await;
    assert_eq!(text.matches("the quick part is done").count(), 1, "{text}");
}
