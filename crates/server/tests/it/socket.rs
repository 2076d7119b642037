use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use polyclaw_domain::agent::{AgentSpec, DelegationPolicy};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::time::Millis;
use polyclaw_store::agents::{self, AgentSource};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::instance::{Instance, ONE_KEY, TOKEN};

pub struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    pub async fn open(instance: &Instance) -> Self {
        let mut request = url(instance).into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {TOKEN}").parse().unwrap());
        Self(connect_async(request).await.unwrap().0)
    }

    async fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(60), self.0.next()).await;
            match next.expect("a frame in time").expect("the socket is open").unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Close(frame) => panic!("closed: {frame:?}"),
                _ => {}
            }
        }
    }

    /// The answer to a request; events on the way are dropped.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        self.send(&json!({ "type": "req", "id": method, "method": method, "params": params }).to_string())
            .await;
        loop {
            let frame = self.next().await;
            if frame["type"] == "res" {
                assert_eq!(frame["id"], method);
                return frame;
            }
        }
    }

    pub async fn event(&mut self, name: &str) -> Value {
        loop {
            let frame = self.next().await;
            if frame["event"] == name {
                return frame;
            }
        }
    }
}

fn url(instance: &Instance) -> String {
    format!("{}/api/v1/ws", instance.url.replace("http", "ws"))
}

#[tokio::test]
async fn socket_sends_messages_receives_events_and_stops_turns() {
    let instance = Instance::start().await;
    let mut socket = Socket::open(&instance).await;
    let subscribed = socket.call("subscribe", json!({ "session_key": ONE_KEY })).await;
    assert_eq!((&subscribed["ok"], &subscribed["result"]["seq"]), (&json!(true), &json!(0)));
    assert!(subscribed["result"]["epoch"].is_string());
    let sent = socket.call("send", json!({ "session_key": ONE_KEY, "text": "hold" })).await;
    assert_eq!(sent["result"]["session_key"], ONE_KEY);
    let delta = socket.event("turn.delta").await;
    assert_eq!((&delta["type"], &delta["text"]), (&json!("event"), &json!("first ")));
    let stopped = socket.call("stop", json!({ "session_key": ONE_KEY })).await;
    assert_eq!(stopped["result"]["turn_id"], sent["result"]["turn_id"]);
    assert_eq!(socket.event("turn.ended").await["state"], "cancelled");
    let reply = socket.call("command", json!({ "session_key": ONE_KEY, "text": "/whoami" })).await;
    assert!(reply["result"]["text"].as_str().unwrap().contains(ONE_KEY));
    let left = socket.call("unsubscribe", json!({ "session_key": ONE_KEY })).await;
    assert_eq!(left["result"]["unsubscribed"], true);
}

#[tokio::test]
async fn approval_is_decided_over_socket() {
    let instance = Instance::start().await;
    let mut socket = Socket::open(&instance).await;
    socket.call("subscribe", json!({ "session_key": ONE_KEY })).await;
    socket.call("send", json!({ "session_key": ONE_KEY, "text": "call danger" })).await;
    let asked = socket.event("approval.requested").await;
    let verdict = json!({ "approval_id": asked["approval_id"], "decision": "approve" });
    assert_eq!(socket.call("approve", verdict.clone()).await["result"]["state"], "approved");
    assert_eq!(socket.event("turn.ended").await["text"], "It said: danger ran");
    assert_eq!(socket.call("approve", verdict).await["error"]["code"], "invalid_state");
}

async fn allow_main_to_delegate_to_expert(instance: &Instance) {
    let delegation =
        DelegationPolicy { allow_agents: vec!["expert".into()], max_concurrent: 1, max_depth: 1 };
    let main = AgentSpec { delegation: Some(delegation), ..AgentSpec::with_id(AgentId::main()) };
    let expert = AgentSpec::with_id(AgentId::parse("expert").unwrap());
    let write = move |tx: &mut polyclaw_store::Tx<'_>| {
        [&main, &expert]
            .into_iter()
            .try_for_each(|spec| agents::upsert(tx, spec, AgentSource::Config, Millis(1)))
    };
    instance.engine.db().write(write).await.unwrap();
}

#[tokio::test]
async fn delegate_output_streams_into_callers_session() {
    let instance = Instance::start().await;
    allow_main_to_delegate_to_expert(&instance).await;
    let mut socket = Socket::open(&instance).await;
    socket.call("subscribe", json!({ "session_key": ONE_KEY })).await;
    let sent = socket.call("send", json!({ "session_key": ONE_KEY, "text": "consult" })).await;
    let started = socket.event("delegate.started").await;
    assert_eq!((&started["agent_id"], &started["name"]), (&json!("expert"), &json!("expert")));
    let delta = socket.event("delegate.delta").await;
    assert_eq!((&delta["text"], &delta["run_id"]), (&json!("It is "), &started["run_id"]), "while it speaks");
    assert_eq!((&delta["turn_id"], &delta["session_key"]), (&sent["result"]["turn_id"], &json!(ONE_KEY)));
    instance.gate.add_permits(1);
    assert_eq!(socket.event("delegate.delta").await["text"], "42");
    let ended = socket.event("delegate.ended").await;
    assert_eq!((&ended["text"], &ended["is_whole"]), (&json!("It is 42"), &json!(true)));
    // The caller's own words come after it.
    assert_eq!(socket.event("turn.delta").await["text"], "It ");
    let answer = socket.event("turn.ended").await;
    assert!(answer["text"].as_str().unwrap().contains("\"streamed\":true"), "{answer}");
}

#[tokio::test]
async fn resubscription_replays_frames_or_reports_gap() {
    let instance = Instance::start().await;
    instance.say("hello").await;
    let mut socket = Socket::open(&instance).await;
    let first = socket.call("subscribe", json!({ "session_key": ONE_KEY, "after": 0 })).await;
    assert_eq!(socket.next().await["event"], "message.accepted");
    assert_eq!(socket.event("turn.ended").await["text"], "You said: hello");
    let epoch = first["result"]["epoch"].clone();
    let same = json!({ "session_key": ONE_KEY, "after": 1, "epoch": epoch });
    socket.call("subscribe", same).await;
    assert_eq!(socket.next().await["seq"], 2);
    for from in [json!({ "after": 1, "epoch": "another" }), json!({ "after": 99_999 })] {
        let mut params = from;
        params["session_key"] = json!(ONE_KEY);
        socket.call("subscribe", params).await;
        assert_eq!(socket.event("replay.gap").await["session_key"], ONE_KEY);
    }
}

#[tokio::test]
async fn slow_socket_loses_subscription_but_turn_completes() {
    let instance = Instance::start().await;
    let mut socket = Socket::open(&instance).await;
    socket.call("subscribe", json!({ "session_key": ONE_KEY })).await;
    assert_eq!(instance.say("flood 8000").await.body["reply"]["text"], "flooded");
    assert_eq!(socket.event("reader.behind").await["session_key"], ONE_KEY);
    let again = socket.call("subscribe", json!({ "session_key": ONE_KEY })).await;
    assert_eq!(again["ok"], true);
}

#[tokio::test]
async fn invalid_socket_requests_get_error_responses() {
    let instance = Instance::start().await;
    let mut socket = Socket::open(&instance).await;
    for (text, code) in [
        ("{", "malformed_json"),
        ("[]", "malformed_json"),
        (r#"{"type":"event","id":1,"method":"send"}"#, "malformed_json"),
        (r#"{"type":"req","id":1,"method":"dance"}"#, "unknown_method"),
        (r#"{"type":"req","id":1,"method":"subscribe"}"#, "invalid_body"),
        (r#"{"type":"req","id":1,"method":"subscribe","params":{"session_key":"x"}}"#, "invalid_body"),
        (
            r#"{"type":"req","id":1,"method":"stop","params":{"session_key":"agent:main:none"}}"#,
            "unknown_session",
        ),
        (
            r#"{"type":"req","id":1,"method":"command","params":{"session_key":"agent:main:x","text":"/no"}}"#,
            "unknown_command",
        ),
        (
            r#"{"type":"req","id":1,"method":"send","params":{"session_key":"agent:main:x","text":" "}}"#,
            "empty_message",
        ),
    ] {
        socket.send(text).await;
        let answer = socket.next().await;
        assert_eq!((&answer["ok"], &answer["error"]["code"]), (&json!(false), &json!(code)), "{text}");
    }
}

#[tokio::test]
async fn socket_subscriptions_are_limited() {
    let instance = Instance::start().await;
    let mut socket = Socket::open(&instance).await;
    for n in 0..256 {
        let answer =
            socket.call("subscribe", json!({ "session_key": format!("agent:main:web:dm:{n}") })).await;
        assert_eq!(answer["ok"], true);
    }
    let one_more = socket.call("subscribe", json!({ "session_key": ONE_KEY })).await;
    assert_eq!(one_more["error"]["code"], "invalid_parameter");
    let again = socket.call("subscribe", json!({ "session_key": "agent:main:web:dm:0" })).await;
    assert_eq!(again["ok"], true, "a session that is watched already takes no further place");
}

#[tokio::test]
async fn oversized_frame_closes_the_socket() {
    let instance = Instance::start().await;
    let mut socket = Socket::open(&instance).await;
    let _ = socket.0.send(Message::text("x".repeat(2 * 1024 * 1024))).await;
    loop {
        match tokio::time::timeout(Duration::from_secs(60), socket.0.next()).await.expect("it closes") {
            None | Some(Err(_) | Ok(Message::Close(_))) => break,
            Some(Ok(_)) => {}
        }
    }
    instance.say("still there").await;
}

#[tokio::test]
async fn socket_requires_token_or_code_and_allowed_origin() {
    let instance = Instance::start().await;
    let status = |outcome: Result<_, tungstenite::Error>| match outcome {
        Err(tungstenite::Error::Http(response)) => response.status().as_u16(),
        Err(other) => panic!("{other}"),
        Ok(_) => 101,
    };
    assert_eq!(status(connect_async(url(&instance)).await), 401);
    let with = |login: &str| format!("{}{}", url(&instance), login.trim_start_matches('/'));
    assert_eq!(status(connect_async(with("?code=wrong")).await), 401);
    let login = instance.login().await;
    assert_eq!(status(connect_async(with(&login)).await), 101);
    assert_eq!(status(connect_async(with(&login)).await), 401, "a code works once");
    let mut foreign = with(&instance.login().await).into_client_request().unwrap();
    foreign.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
    assert_eq!(status(connect_async(foreign).await), 403);
}

#[tokio::test]
async fn watch_reports_all_sessions_without_text_deltas() {
    let instance = Instance::start().await;
    let mut socket = Socket::open(&instance).await;
    let watched = socket.call("watch", json!({})).await;
    assert_eq!((&watched["ok"], &watched["result"]["seq"]), (&json!(true), &json!(0)));
    instance.say("hello").await;
    let mut heard = Vec::new();
    while heard.last() != Some(&json!("turn.ended")) {
        heard.push(socket.next().await["event"].clone());
    }
    assert_eq!(heard, ["message.accepted", "turn.started", "turn.ended"]);
    assert_eq!(socket.call("watch", json!({ "session_key": ONE_KEY })).await["ok"], false);
}
