use std::io;
use std::sync::{Arc, Mutex};

use polyclaw_testkit::model_server::ReplyScript;
use serde_json::json;
use tracing::instrument::WithSubscriber;

use crate::fixture::{Bench, KEY, SHAPES, user};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn logs_contain_no_keys_prompts_or_bodies() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let bench = Bench::new();
    let calls = async {
        for model in SHAPES {
            bench.server.push(ReplyScript::error(400, json!({ "error": { "message": "secret body" } })));
            bench.ask(model, &user("secret prompt")).await.unwrap_err();
            bench.server.push(ReplyScript::reply("secret answer").malformed_json());
            bench.ask(model, &user("secret prompt")).await.unwrap_err();
            bench.server.push(ReplyScript::reply("secret answer"));
            bench.ask(model, &user("secret prompt")).await.unwrap();
        }
    };
    calls.with_subscriber(subscriber).await;
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("model call failed"), "our own words are there:\n{log}");
    assert!(!log.contains("secret") && !log.contains(KEY), "{log}");
}
