//! The gateway to an instance.

use futures_util::{SinkExt, StreamExt};
use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::plane::{Plane, signal, until, wait};

#[test]
fn gateway_proxies_the_instance_api() {
    let plane = Plane::new();
    plane.create("one");
    assert_eq!(plane.get("/instances/one/gateway/sessions").refusal(), (409, "instance_not_running"));
    plane.start("one");
    assert!(plane.get("/instances/one/gateway/sessions").ok()["sessions"].is_array());
    let key = "agent%3Amain%3Aweb%3Adm%3Aa%252fb";
    let unknown = plane.get(&format!("/instances/one/gateway/sessions/{key}"));
    assert_eq!(unknown.refusal(), (404, "unknown_session"), "errors and keys in paths are passed through");
    let made = plane.post("/instances/one/gateway/sessions", json!({})).ok();
    assert!(made["session_key"].is_string());
    for path in ["/instances/one/gateway/../../../etc/passwd", "/instances/one/gateway/%2e%2e/x"] {
        assert_eq!(plane.get(path).status, 404, "{path}");
    }
    assert_eq!(plane.get("/instances/nobody/gateway/sessions").refusal(), (404, "unknown_instance"));
    assert!(plane.get("/instances/one/gateway/v1/models").ok()["data"].is_array());
}

#[test]
fn too_large_body_is_refused_before_it_is_proxied() {
    let plane = Plane::new();
    plane.started("one");
    let path = "/instances/one/gateway/sessions/agent%3Amain%3Aweb%3Adm%3Ame/messages";
    let other = "/instances/one/gateway/sessions";
    for (path, size) in [(path, 33), (path, 40), (other, 3), (other, 9), (path, 33), (other, 3)] {
        let refused = plane.post(path, json!({ "text": "x".repeat(size << 20) }));
        assert_eq!(refused.refusal(), (413, "body_too_large"), "{path}: {size} MiB");
    }
    assert_eq!(plane.get("/instances/one/gateway/sessions").ok()["sessions"], json!([]));
}

/// Takes twice the response timeout of an instance: a hanging process cannot be detected otherwise.
#[test]
fn hanging_instance_times_out_and_is_reported() {
    let plane = Plane::new();
    let pid = plane.started("one")["pid"].as_i64().unwrap();
    signal("STOP", pid);
    let health = plane.get("/health").ok();
    assert_eq!((&health["status"], &health["instances"][0]["health"]), (&json!("degraded"), &json!(null)));
    let refused = plane.get("/instances/one/gateway/sessions");
    assert_eq!(refused.refusal(), (504, "instance_unresponsive"));
    assert!(refused.body["error"]["hint"].is_string());
    let error = || plane.get("/instances/one").ok()["error"].clone();
    until(&|| format!("the health of the fleet shows it: {}", error()), || error() == "it does not respond");
    signal("CONT", pid);
    until(&|| format!("it responds again: {}", error()), || error().is_null());
    plane.get("/instances/one/gateway/sessions").ok();
}

#[test]
fn gateway_proxies_sockets_and_streams() {
    let model = ModelServer::start();
    model.push(ReplyScript::reply("hello there"));
    let plane = Plane::new();
    let made = plane.create("one");
    let path = plane.folder(&made).join("config.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let provider = format!(
        "[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"demo\"]\n",
        model.url()
    );
    std::fs::write(&path, format!("{text}\n{provider}")).unwrap();
    plane.start("one");
    let url = format!("ws://127.0.0.1:{}/api/instances/one/gateway/ws", plane.port);
    let frames = wait(async {
        let mut request = url.into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {}", plane.token()).parse().unwrap());
        let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
        let key = "agent:main:web:dm:me";
        for (id, method, params) in [
            (1, "subscribe", json!({ "session_key": key })),
            (2, "send", json!({ "session_key": key, "text": "hi" })),
        ] {
            let frame = json!({ "type": "req", "id": id, "method": method, "params": params });
            socket.send(Message::text(frame.to_string())).await.unwrap();
        }
        let mut frames = String::new();
        while !frames.contains("hello there") {
            let next = tokio::time::timeout(crate::plane::PATIENCE, socket.next()).await.expect("a frame");
            frames.push_str(next.unwrap().unwrap().to_text().unwrap_or_default());
        }
        frames
    });
    assert!(frames.contains("\"res\"") && frames.contains("\"event\""));
    let reply: Value = plane
        .post(
            "/instances/one/gateway/sessions/agent%3Amain%3Aweb%3Adm%3Ame/messages?wait=20",
            json!({ "text": "again" }),
        )
        .body;
    assert!(reply["reply"].is_object() || reply["turn_id"].is_string(), "{reply}");
}
