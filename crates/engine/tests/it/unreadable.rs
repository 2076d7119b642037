//! Calls that a model writes wrongly: it is told, everything stays paired, and the turn goes on.

use std::sync::Arc;

use polyclaw_domain::job::JobState;
use polyclaw_domain::message::tool_calls;
use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_engine::ingress::IngressMessage;
use polyclaw_testkit::world::World;
use polyclaw_testkit::{ModelScript, ScriptStep, ScriptedProvider};
use serde_json::json;

use crate::glance;

const BROKEN: &str = "{\"step\": ";
const TOLD: &str = "result Not run: the arguments are not valid JSON (EOF while parsing a value at line 1 column 9). Call the \
tool again with one JSON object.";

fn results(prompt: &Prompt) -> usize {
    prompt.messages.iter().filter(|message| matches!(message, PromptMessage::ToolResult { .. })).count()
}

fn call(name: &str, arguments: serde_json::Value) -> ScriptStep {
    ScriptStep::Call(name.to_owned(), arguments)
}

#[tokio::test(start_paused = true)]
async fn unparsable_call_is_reported_to_model_for_retry() {
    fn author(prompt: &Prompt) -> ModelScript {
        match results(prompt) {
            0 => vec![call("look", json!(BROKEN)), call("put", json!({}))],
            2 => vec![call("look", json!({ "step": 1 }))],
            _ => vec![ScriptStep::Say("done".into())],
        }
    }
    let model = ScriptedProvider::new(author);
    let world = World::with_provider(Arc::clone(&model) as _).await;
    let answer = world.send_and_wait("go").await;
    assert_eq!((answer.state, answer.text.as_str()), (JobState::Done, "done"));
    let transcript = world.transcript("me").await;
    let shown = glance(&transcript);
    let expected = ["call look", "call put", TOLD, "result put of c1 done", "call look"];
    assert_eq!(shown[1..6], expected, "{shown:?}");
    let stored = tool_calls(&transcript[1].parts).next().unwrap();
    assert_eq!(stored.arguments, BROKEN, "what it wrote is kept as it is");
    assert_eq!(
        world.ground.tools.run_counts().len(),
        2,
        "the others run, and what could not be read does not"
    );
    let notice = &model.prompts()[1].messages[2];
    assert!(matches!(notice, PromptMessage::ToolResult { is_error: true, .. }), "{notice:?}");
}

#[tokio::test(start_paused = true)]
async fn repeated_unparsable_calls_end_as_loop() {
    let world = World::with_provider(ScriptedProvider::new(|_| vec![call("pay", json!(BROKEN))])).await;
    let answer = world.send_and_wait("go").await;
    assert_eq!(answer.error_code.as_deref(), Some("loop_detected"));
    assert!(world.ground.tools.run_counts().is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_parsable_client_tool_calls_are_returned() {
    let model = ScriptedProvider::new(|prompt| match results(prompt) {
        0 => vec![call("theirs", json!(BROKEN))],
        _ => vec![call("theirs", json!(BROKEN)), call("theirs", json!({}))],
    });
    let world = World::with_provider(model).await;
    let tools = json!([{ "name": "theirs", "parameters": { "type": "object" } }]);
    let inbound =
        IngressMessage { meta: Some(json!({ "client_tools": tools })), ..World::inbound("me", "go") };
    let accepted = world.engine.accept_message(inbound).await.unwrap();
    let answer = world.wait_answer(&accepted).await;
    assert_eq!((answer.state, answer.calls.len()), (JobState::Done, 1));
    assert_eq!(answer.calls[0].arguments, json!({}));
    let open = world.engine.list_open_calls(&World::session_key("me")).await.unwrap();
    assert_eq!(open, answer.calls, "the other has its result already");
    let shown = glance(&world.transcript("me").await);
    assert_eq!(shown.iter().filter(|line| *line == TOLD).count(), 2, "{shown:?}");
}
