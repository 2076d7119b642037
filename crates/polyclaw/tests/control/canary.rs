//! Plants secrets in a config and searches for them in all output of the control plane.

use std::fs;

use serde_json::{Value, json};

use crate::plane::{Plane, free_port, until};
use crate::sockets::Socket;

const CANARY: &str = "canary-c0ffee-4711";

fn planted() -> Value {
    json!({
        "channels": { "webhook": { "ci": { "secret": CANARY, "reply_url": "http://127.0.0.1:9/x", "reply_secret": CANARY } } },
        "providers": { "openai": { "api_key": CANARY, "base_url": "http://127.0.0.1:9/v1" } },
        "mcp": { "servers": { "s": { "url": "http://127.0.0.1:9/mcp", "headers": { "Authorization": CANARY }, "enabled": false } } },
    })
}

#[test]
fn no_secret_appears_in_answers_or_frames_or_logs() {
    let plane = Plane::new();
    let made = plane.post("/instances", json!({ "name": "one", "port": free_port() })).ok();
    let etag = plane.get("/instances/one/config").etag.unwrap();
    let leave = [("if-match", etag.as_str()), ("x-allow-secret-write", "true")];
    let mut reply: Vec<(String, String)> = Vec::new();
    let mut note = |what: &str, body: &Value| reply.push((what.to_owned(), body.to_string()));
    note("patch", &plane.call("PATCH", "/instances/one/config", Some(planted()), &leave).body);
    plane.start("one");
    let etag = plane.get("/instances/one/config").etag.unwrap();
    // One error, and a secret elsewhere: only the invalid part is quoted.
    let wrong = json!({ "gateway": { "prot": 1 }, "providers": { "openai": { "api_key": format!("{CANARY}-new") } } });
    note(
        "wrong patch",
        &plane
            .call("PATCH", "/instances/one/config", Some(wrong.clone()), &[("if-match", &etag), leave[1]])
            .body,
    );
    note(
        "without leave",
        &plane.call("PATCH", "/instances/one/config", Some(planted()), &[("if-match", "\"old\"")]).body,
    );
    for verb in ["validate", "diff"] {
        note(verb, &plane.post(&format!("/instances/one/config/{verb}"), json!({ "patch": wrong })).body);
    }
    let broken = format!("schema = 1\n[providers.openai]\napi_key = \"{CANARY}\n");
    note("broken", &plane.post("/instances/one/config/validate", json!({ "toml": broken })).body);
    // The instance calls an address that does not exist, and logs that.
    plane.post("/instances/one/gateway/sessions/agent%3Amain%3Amain/messages", json!({ "text": "hello" }));
    let log = plane.folder(&made).join("logs/daemon.log");
    until(&|| "the instance has logged".to_owned(), || {
        fs::read_to_string(&log).is_ok_and(|text| text.len() > 100)
    });
    for path in [
        "/instances",
        "/instances/one",
        "/instances/one/details",
        "/instances/one/config",
        "/instances/one/logs",
        "/instances/one/logs/download",
        "/instances/one/tasks",
        "/instances/one/usage",
        "/health",
        "/audit",
        "/metrics",
        "/instances/one/gateway/models",
        "/instances/one/gateway/health",
        "/instances/one/gateway/mcp/servers",
    ] {
        note(path, &plane.get(path).body);
    }
    for path in ["/ws/instances", "/ws/instances/one/logs?backlog=1000", "/ws/messages", "/ws/events"] {
        let mut socket = Socket::open(&plane, path);
        let first = socket.next();
        assert!(first["type"] == "snapshot" || first["type"] == "backlog", "{path}: {first}");
        note(path, &first);
    }
    let mut changes = Socket::open(&plane, "/ws/instances");
    plane.post("/instances/one/restart", json!({})).ok();
    note("a change", &changes.until("status_changed"));
    // A secret in a URL is not recorded.
    plane.get(&format!("/instances?token={CANARY}"));
    plane.get(&format!("/nowhere?code={CANARY}"));
    let copy = plane.dir.path().join("copy");
    note("backup", &plane.run(&["backup", &copy.display().to_string()]).1);
    reply.push(("list of the backup".into(), fs::read_to_string(copy.join("backup.json")).unwrap()));
    reply
        .push(("log of the server".into(), fs::read_to_string(plane.dir.path().join("server.log")).unwrap()));
    reply.push(("log of the instance".into(), fs::read_to_string(&log).unwrap()));
    let lines: Vec<&String> =
        reply.iter().filter(|(_, text)| text.contains(CANARY)).map(|(what, _)| what).collect();
    assert!(lines.is_empty(), "{lines:?}");
    assert!(reply.iter().any(|(what, text)| what == "wrong patch" && text.contains("prot")), "it was read");
}

/// Looks like a key; the control plane does not know it.
const KEY: &str = "sk-proj-c0ffee4711c0ffee4711c0ffee4711c0ffee4711";

#[test]
fn refusals_do_not_repeat_a_misplaced_secret() {
    let plane = Plane::new();
    plane.create("one");
    let message =
        |from: &str, to: &str| json!({ "from": from, "to": to, "type": "task.do", "payload": { "x": 1 } });
    let rule = json!({ "from": KEY, "to": "one", "type": "task.*" });
    let made = plane.post("/tokens", json!({ "name": "ci", "scope": "read" })).ok();
    let issued = made["secret"].as_str().unwrap().to_owned();
    let once = [("idempotency-key", "a-key-of-the-call")];
    let first = plane.call("POST", "/messages", Some(message(KEY, "one")), &once);
    let answers = [
        ("sender", plane.call("POST", "/messages", Some(message(KEY, "one")), &once)),
        ("recipient", plane.post("/messages", message("one", KEY))),
        ("rule", plane.post("/routing-rules", rule)),
        ("name", plane.post("/instances", json!({ "name": format!("{KEY} {KEY}") }))),
        ("instance", plane.get(&format!("/instances/{KEY}"))),
        ("start", plane.post(&format!("/instances/{KEY}/start"), json!({}))),
        ("gateway", plane.get(&format!("/instances/{KEY}/gateway/sessions"))),
        ("message", plane.get(&format!("/messages/{KEY}"))),
        ("token", plane.delete(&format!("/tokens/{KEY}"))),
        ("path", plane.get(&format!("/{KEY}"))),
        ("number", plane.get(&format!("/audit?limit={KEY}"))),
        ("own token", plane.get(&format!("/instances/{}", plane.token()))),
        ("token for its id", plane.delete(&format!("/tokens/{issued}"))),
        ("token for a name", plane.get(&format!("/instances/{issued}"))),
        ("far behind", plane.get(&format!("/instances/{}/{KEY}", "x".repeat(60)))),
    ];
    assert_eq!(first.refusal(), (404, "unknown_instance"));
    let secrets = ["c0ffee", "sk-proj", &plane.token(), &issued];
    for (what, answer) in [("first", first)].into_iter().chain(answers) {
        let text = answer.body.to_string();
        assert!((400..500).contains(&answer.status), "{what}: {text}");
        assert!(!secrets.iter().any(|secret| text.contains(secret)), "{what}: {text}");
    }
    for path in [format!("/ws/instances/{KEY}/logs"), format!("/ws/messages?instance={KEY}")] {
        let body = Socket::open(&plane, &path).next();
        assert_eq!(body["code"], "unknown_instance");
        assert!(!body.to_string().contains("c0ffee"), "{body}");
    }
    let log = fs::read(plane.dir.path().join("server.log")).unwrap();
    let files = fs::read_dir(plane.home().join("cp")).unwrap().map(|file| file.unwrap().path());
    let kept = files.filter(|path| path.is_file()).map(|path| fs::read(path).unwrap());
    for bytes in kept.chain([log]) {
        assert!(!String::from_utf8_lossy(&bytes).contains("c0ffee"), "it was recorded");
    }
}
