//! A fault inside a stream is in the log, where its reader is told to look; what people said is not.

use std::io::Write;
use std::sync::{Arc, Mutex};

use polyclaw_domain::id::AgentId;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_engine::hub::FrameKind;
use reqwest::Method;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::instance::Instance;
use crate::socket::Socket;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Takes what is logged on this thread, where the whole instance runs.
    fn listen(&self) -> tracing::subscriber::DefaultGuard {
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(self.clone());
        tracing::subscriber::set_default(subscriber.finish())
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

async fn lose(instance: &Instance, sql: &'static str) {
    instance.engine.db().write(move |tx| tx.execute(sql, &[]).map(drop)).await.unwrap();
}

#[tokio::test]
async fn failed_socket_call_is_logged_without_body() {
    let log = Log::default();
    let _listening = log.listen();
    let instance = Instance::start().await;
    let mut socket = Socket::open(&instance).await;
    lose(&instance, "ALTER TABLE approvals RENAME TO gone").await;
    let verdict = json!({ "approval_id": "a1", "decision": "deny", "reason": "my secret" });
    let answer = socket.call("approve", verdict).await;
    assert_eq!(answer["error"]["message"], "internal error; see the log");
    let text = log.text();
    assert!(text.contains("call failed with an internal error") && text.contains("approvals"), "{text}");
    assert!(!text.contains("my secret"), "{text}");
}

#[tokio::test]
async fn failed_stream_is_logged_without_body() {
    let log = Log::default();
    let _listening = log.listen();
    let instance = Instance::start().await;
    let question = json!({ "model": "polyclaw/main", "user": "u", "stream": true,
        "messages": [{ "role": "user", "content": "hold my secret" }] });
    let asked = instance.request(Method::POST, "/v1/chat/completions").json(&question).send().await.unwrap();
    lose(&instance, "ALTER TABLE jobs RENAME TO gone").await;
    // Another node did something: the database is asked, and cannot answer.
    instance.engine.hub.publish(&SessionKey::for_direct(&AgentId::main(), "openai", "u"), FrameKind::Changed);
    let text = asked.text().await.unwrap();
    assert!(text.contains("see the log"), "{text}");
    let reply = log.text();
    assert!(reply.contains("call failed with an internal error"), "{reply}");
    assert!(!reply.contains("my secret"), "{reply}");
}
