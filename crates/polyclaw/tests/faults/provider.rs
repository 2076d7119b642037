//! A model's service that refuses, hangs or talks nonsense: the turn ends with a sentence, and the next one works.

use std::time::{Duration, Instant};

use polyclaw_testkit::model_server::{ModelServer, Script};
use serde_json::json;

use crate::daemon::{Daemon, config};

fn refusal(status: u16) -> Script {
    Script::error(status, json!({ "error": { "message": "not now", "type": "x" } }))
}

/// What the service does, and the code the turn fails with.
fn cases() -> Vec<(&'static str, Script, &'static str)> {
    vec![
        ("401", refusal(401), "provider_failed"),
        ("500", refusal(500), "provider_failed"),
        ("529", refusal(529), "provider_failed"),
        ("no-body", Script::empty(), "provider_failed"),
        ("bad-json", Script::reply("half").malformed_json(), "provider_failed"),
        ("html", Script::new().malformed_sse().unfinished(), "provider_failed"),
        ("no-end", Script::reply("half").unfinished(), "provider_failed"),
        ("cut", Script::reply("half").wait(Duration::from_millis(5)).cut(), "provider_failed"),
        ("nothing", Script::new(), "empty_reply"),
        ("hang-before", Script::new().hang(), "stalled"),
        ("hang-within", Script::reply("half").wait(Duration::from_millis(5)).hang(), "stalled"),
    ]
}

#[tokio::test]
async fn whatever_the_service_does_the_turn_ends_with_a_code_and_the_next_is_answered() {
    let model = ModelServer::start();
    let mut daemon = Daemon::start(&config(&model, "[turns]\nstall_seconds = 1")).await;
    for (name, script, code) in cases() {
        model.push(script);
        let began = Instant::now();
        let failed = daemon.say(name, name, 30).await.unwrap();
        let reply = &failed.body["reply"];
        assert_eq!(
            (&reply["state"], &reply["error_code"]),
            (&json!("failed"), &json!(code)),
            "{name} {failed:?}"
        );
        assert!(!failed.reply().is_empty() && !failed.reply().contains("half"), "{name} {failed:?}");
        assert!(began.elapsed() < Duration::from_secs(25), "{name} took {:?}", began.elapsed());
        let again = daemon.say(name, "again", 30).await.unwrap();
        assert_eq!(again.reply(), "echo: again", "{name} {again:?}");
        let transcript = daemon.transcript(name).await;
        assert_eq!(transcript.len(), 4, "asked, told, asked, answered: {name} {transcript:?}");
    }
    daemon.assert_alive();
}

#[tokio::test]
async fn a_service_that_asks_to_slow_down_is_asked_again_and_answers() {
    let model = ModelServer::start();
    let mut daemon = Daemon::start(&config(&model, "[turns]\nstall_seconds = 1")).await;
    for (name, script) in [("429", refusal(429)), ("529", refusal(529))] {
        model.push(script.retry_after(2));
        let began = Instant::now();
        let answered = daemon.say(name, name, 30).await.unwrap();
        assert_eq!(answered.reply(), format!("echo: {name}"), "{answered:?}");
        assert!(began.elapsed() >= Duration::from_secs(2), "{name} took {:?}", began.elapsed());
    }
    daemon.assert_alive();
}
