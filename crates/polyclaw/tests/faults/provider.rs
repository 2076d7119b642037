//! A model provider that fails, hangs or returns nonsense: the turn ends with an error text, and the next one works.

use std::time::{Duration, Instant};

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use serde_json::json;

use crate::daemon::{Daemon, config};

fn refusal(status: u16) -> ReplyScript {
    ReplyScript::error(status, json!({ "error": { "message": "not now", "type": "x" } }))
}

/// The provider's behavior, and the expected error code of the turn.
fn cases() -> Vec<(&'static str, ReplyScript, &'static str)> {
    vec![
        ("401", refusal(401), "provider_failed"),
        ("500", refusal(500), "provider_failed"),
        ("529", refusal(529), "provider_failed"),
        ("no-body", ReplyScript::empty(), "provider_failed"),
        ("bad-json", ReplyScript::reply("half").malformed_json(), "provider_failed"),
        ("html", ReplyScript::new().malformed_sse().unfinished(), "provider_failed"),
        ("no-end", ReplyScript::reply("half").unfinished(), "provider_failed"),
        ("cut", ReplyScript::reply("half").wait(Duration::from_millis(5)).cut(), "provider_failed"),
        ("nothing", ReplyScript::new(), "empty_reply"),
        ("hang-before", ReplyScript::new().hang(), "stalled"),
        ("hang-within", ReplyScript::reply("half").wait(Duration::from_millis(5)).hang(), "stalled"),
    ]
}

#[tokio::test]
async fn provider_failure_ends_turn_with_code_and_next_turn_works() {
    let model = ModelServer::start();
    let mut daemon = Daemon::start(&config(&model, "[turns]\nstall_seconds = 1")).await;
    for (name, script, code) in cases() {
        model.answer_with(move |request| match request.last_user_text().as_str() {
            "again" => ReplyScript::reply("echo: again"),
            _ => script.clone(),
        });
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
        assert_eq!(transcript.len(), 4, "message, error, message, answer: {name} {transcript:?}");
    }
    daemon.assert_alive();
}

#[tokio::test]
async fn rate_limited_provider_is_retried_after_its_delay() {
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

/// Random faults.
fn transient_failures() -> Vec<(&'static str, ReplyScript)> {
    vec![
        ("500", refusal(500)),
        ("503", refusal(503)),
        ("no-body", ReplyScript::empty()),
        ("bad-json", ReplyScript::reply("half").malformed_json()),
        ("html", ReplyScript::new().malformed_sse().unfinished()),
        ("no-end", ReplyScript::reply("half").unfinished()),
        ("cut", ReplyScript::reply("half").wait(Duration::from_millis(5)).cut()),
        ("reset", ReplyScript::new().cut()),
        ("nothing", ReplyScript::new()),
    ]
}

#[tokio::test]
async fn transient_provider_failures_are_retried_invisibly() {
    let model = ModelServer::start();
    let mut daemon = Daemon::start(&config(&model, "")).await;
    for (name, script) in transient_failures() {
        model.push(script.clone());
        model.push(script);
        let answered = daemon.say(name, name, 30).await.unwrap();
        assert_eq!(answered.reply(), format!("echo: {name}"), "{answered:?}");
        let transcript = daemon.transcript(name).await;
        assert_eq!(transcript.len(), 2, "nothing of the failed turn is left: {name} {transcript:?}");
    }
    daemon.assert_alive();
}

/// The same numbers in every run.
struct Dice(std::sync::Mutex<u64>);

impl Dice {
    fn roll(&self, sides: u64) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state % sides
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quarter_of_failing_calls_leaves_under_one_percent_errors() {
    const PEOPLE: usize = 12;
    const MESSAGES: usize = 20;
    let model = ModelServer::start();
    let dice = Dice(std::sync::Mutex::new(0x5eed_0001));
    model.answer_with(move |request| {
        let asked = request.last_user_text();
        match dice.roll(4) {
            0 => {
                let mut faults = transient_failures();
                let at = usize::try_from(dice.roll(faults.len() as u64)).unwrap();
                faults.swap_remove(at).1
            }
            _ => ReplyScript::reply(format!("echo: {asked}")),
        }
    });
    let mut daemon = Daemon::start(&config(&model, "")).await;
    let talk = |person: usize| {
        let daemon = &daemon;
        async move {
            let mut errors = 0;
            for n in 0..MESSAGES {
                let text = format!("p{person}-{n}");
                let answer = daemon.say(&format!("p{person}"), &text, 60).await.unwrap();
                match answer.body["reply"]["state"].as_str() {
                    Some("done") => assert_eq!(answer.reply(), format!("echo: {text}")),
                    _ => errors += 1,
                }
            }
            errors
        }
    };
    let errors: usize = futures_util::future::join_all((0..PEOPLE).map(talk)).await.into_iter().sum();
    let calls = model.request_count();
    println!("{errors} of {} messages got an error, {calls} calls", PEOPLE * MESSAGES);
    assert!(calls > PEOPLE * MESSAGES * 5 / 4, "too few calls failed: {calls}");
    assert!(errors * 100 < PEOPLE * MESSAGES, "{errors} of {} messages got an error", PEOPLE * MESSAGES);
    daemon.assert_alive();
}
