//! Messages between real instances whose agents write, answer and wait while both sides are killed.

use std::fs;
use std::time::Duration;

use polyclaw_testkit::model_server::{ModelServer, ReplyGate, ReplyScript};
use serde_json::{Value, json};

use crate::messages::allow;
use crate::plane::{Plane, free_port, signal, until};

const HANDOFFS: usize = 24;

/// Two running instances and their model; `a` gives tasks and writes to `b`.
fn two() -> (Plane, ModelServer) {
    two_instances_with_rules(&[
        ("a", "b", "task.*"),
        ("b", "a", "task.*"),
        ("a", "b", "message"),
        ("b", "a", "response"),
    ])
}

/// Two running instances whose agents may write to each other as the rules allow.
fn two_instances_with_rules(rules: &[(&str, &str, &str)]) -> (Plane, ModelServer) {
    let (plane, model) = (Plane::new(), ModelServer::start());
    for name in ["a", "b"] {
        let made = plane.create(name);
        let path = plane.folder(&made).join("config.toml");
        let config = format!(
            "{}\n[providers.test]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
             [agents.defaults]\nmodel = \"test/m\"\n[tools]\ninstances = [\"main\"]\n",
            fs::read_to_string(&path).unwrap(),
            model.url()
        );
        fs::write(&path, config).unwrap();
        plane.start(name);
    }
    for (from, to, kind) in rules {
        allow(&plane, from, to, kind);
    }
    (plane, model)
}

fn messages(plane: &Plane, query: &str) -> Vec<Value> {
    let found = plane.get(&format!("/messages?limit=1000&{query}")).body;
    found["messages"].as_array().cloned().unwrap_or_default()
}

/// Asks the main agent of `a` and returns its answer.
fn chat(plane: &Plane, text: &str) -> Value {
    let path = "/instances/a/gateway/sessions/agent%3Amain%3Aweb%3Adm%3Ame/messages?wait=60";
    plane.post(path, json!({ "text": text })).ok()
}

/// All texts of that conversation.
fn transcript(plane: &Plane) -> String {
    plane.get("/instances/a/gateway/sessions/agent%3Amain%3Aweb%3Adm%3Ame/transcript").body.to_string()
}

#[test]
fn agent_delegates_to_another_instance_and_uses_the_result() {
    let (plane, model) = two();
    model.answer_with(|request| {
        let text = request.last_user_text();
        match request.tool_results().last() {
            Some((_, result)) => ReplyScript::reply(format!("I was told: {result}")),
            None if text.contains("delegate") => {
                let task = json!({ "instance": "b", "task": "count the stars" });
                ReplyScript::new().call("c1", "delegate_to_instance", task)
            }
            // Slow enough that the start of the work is reported in between.
            None => {
                ReplyScript::reply(format!("seven, says b ({})", text.contains("origin=\"agent:a/main\"")))
                    .wait(Duration::from_millis(500))
            }
        }
    });
    let answer = chat(&plane, "please delegate this");
    let reply = answer.to_string();
    assert!(reply.contains("seven, says b (true)") && reply.contains("completed"), "{reply}");
    until(&|| format!("all are acknowledged: {:?}", messages(&plane, "")), || {
        let all = messages(&plane, "");
        all.len() == 3 && all.iter().all(|one| one["state"] == "acknowledged")
    });
    let correlation = messages(&plane, "")[0]["correlation_id"].as_str().unwrap().to_owned();
    let chain = messages(&plane, &format!("correlation_id={correlation}"));
    let kinds: Vec<&str> = chain.iter().map(|one| one["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["task.handoff", "task.status", "task.result"]);
    let hops: Vec<i64> = chain.iter().map(|one| one["hop_count"].as_i64().unwrap()).collect();
    assert_eq!(hops, [1, 2, 2], "each is one hop further than its predecessor");
    let trace = |name: &str| {
        let done = plane.get(&format!("/instances/{name}/tasks")).ok()["tasks"].clone();
        assert_eq!(done.as_array().unwrap().len(), 1, "{name} took one turn: {done}");
        done[0]["trace_id"].clone()
    };
    assert_eq!(trace("a"), trace("b"), "one trace leads through both");
    assert!(chain.iter().all(|one| one["trace_id"] == trace("a")), "there and back: {chain:?}");
}

#[test]
fn failed_delegated_turn_returns_an_error_result() {
    let (plane, model) = two();
    model.answer_with(|request| match request.tool_results().last() {
        Some((_, result)) => ReplyScript::reply(format!("I was told: {result}")),
        None if request.last_user_text().contains("delegate") => {
            let task = json!({ "instance": "b", "task": "count the stars" });
            ReplyScript::new().call("c1", "delegate_to_instance", task)
        }
        None => ReplyScript::error(400, json!({ "error": { "message": "no" } })),
    });
    let text = chat(&plane, "please delegate this").to_string();
    let result = messages(&plane, "").into_iter().find(|one| one["type"] == "task.result").unwrap();
    let result = plane.get(&format!("/messages/{}", result["id"].as_str().unwrap())).ok();
    assert!(result["payload"]["error"].is_string() && result["payload"]["text"].is_string(), "{result}");
    assert!(text.contains("failed"), "the requesting agent is notified: {text}");
}

#[test]
fn late_response_reaches_asking_session_and_gets_no_response() {
    let (plane, model) = two();
    model.answer_with(|request| {
        let text = request.last_user_text();
        match request.tool_results().last() {
            _ if text.contains("origin=\"agent:b/") => ReplyScript::reply("b has answered me"),
            Some(_) => ReplyScript::reply("I wrote to b"),
            None if text.contains("write to b") => ReplyScript::new().call(
                "c1",
                "instance_send",
                json!({ "instance": "b", "message": "how are you?" }),
            ),
            None => ReplyScript::reply("I am well"),
        }
    });
    assert!(chat(&plane, "write to b").to_string().contains("I wrote to b"));
    until(&|| format!("the answer arrives: {}", transcript(&plane)), || {
        transcript(&plane).contains("b has answered me")
    });
    until(&|| format!("both are acknowledged: {:?}", messages(&plane, "")), || {
        let all = messages(&plane, "");
        all.len() == 2 && all.iter().all(|one| one["state"] == "acknowledged")
    });
    // An answer would have been sent in the turn of that acknowledgement.
    assert_eq!(messages(&plane, "").len(), 2, "an answer is not answered");
}

#[test]
fn agent_messages_are_size_limited_and_redacted() {
    let (plane, model) = two();
    model.answer_with(|request| {
        let text = request.last_user_text();
        let last = request.messages().last().unwrap();
        match last["role"].as_str() {
            Some("tool") => ReplyScript::reply(last["content"].to_string()),
            _ if text.contains("origin=\"agent:") => ReplyScript::reply("thanks"),
            _ => {
                let secret = "it is sk-proj-abcdefghij0123456789".to_owned();
                let reply = if text.contains("large") { "x".repeat(70_000) } else { secret };
                ReplyScript::new().call("c1", "instance_send", json!({ "instance": "b", "message": reply }))
            }
        }
    });
    assert!(chat(&plane, "write something large").to_string().contains("payload_too_large"));
    assert!(messages(&plane, "").is_empty(), "it is not stored");
    chat(&plane, "write the secret");
    let shown = "it is [redacted secret]";
    let id = messages(&plane, "from=a")[0]["id"].clone();
    let kept = plane.get(&format!("/messages/{}", id.as_str().unwrap())).ok();
    assert_eq!(kept["payload"]["text"], shown);
    let heard = || plane.get("/instances/b/tasks").ok()["tasks"][0]["summary"].clone();
    until(&|| format!("b has received it: {}", heard()), || heard() == shown);
}

/// Each instance answers every message as if it were the first.
#[test]
fn agents_forwarding_messages_stop_before_the_eighth_hop() {
    let (plane, model) = two_instances_with_rules(&[("a", "b", "message"), ("b", "a", "message")]);
    model.answer_with(|request| {
        let other = if request.last_user_text().contains("origin=\"agent:a/") { "a" } else { "b" };
        let note = json!({ "instance": other, "message": "pass it on" });
        match request.tool_results().last() {
            Some((_, result)) => ReplyScript::reply(result.clone()),
            None => ReplyScript::new().call("c1", "instance_send", note),
        }
    });
    chat(&plane, "begin");
    let last = || plane.get("/instances/b/tasks?limit=1").ok()["tasks"][0]["outcome"].to_string();
    until(&|| format!("the last one is notified: {}", last()), || last().contains("too_many_hops"));
    let mut hops: Vec<i64> =
        messages(&plane, "").iter().map(|one| one["hop_count"].as_i64().unwrap()).collect();
    hops.sort_unstable();
    assert_eq!(hops, [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn instance_tools_need_config_entry_and_routing_rule() {
    let (plane, model) = two();
    let etag = plane.get("/instances/a/config").etag.unwrap();
    let patch = json!({ "tools": { "instances": [] } });
    plane.call("PATCH", "/instances/a/config", Some(patch), &[("if-match", &etag)]).ok();
    model.answer_with(|request| ReplyScript::reply(request.tool_names().join(" ")));
    assert!(!chat(&plane, "what have you got?").to_string().contains("instance_send"));
    let etag = plane.get("/instances/a/config").etag.unwrap();
    let patch = json!({ "tools": { "instances": ["*"] } });
    plane.call("PATCH", "/instances/a/config", Some(patch), &[("if-match", &etag)]).ok();
    assert!(chat(&plane, "and now?").to_string().contains("instance_send"));
    model.answer_with(|request| match request.tool_results().last() {
        Some((_, result)) => ReplyScript::reply(result.clone()),
        None => {
            let note = json!({ "instance": "b", "message": "x", "type": "secret.plan" });
            ReplyScript::new().call("c1", "instance_send", note)
        }
    });
    assert!(chat(&plane, "write").to_string().contains("route_denied"));
}

/// Its rule allows two attempts, and the daemon dies in both. The replayed message is recognized as stored.
#[test]
fn message_that_kills_its_daemon_is_dead_lettered_and_replayable() {
    let (plane, model) = two();
    let opened = ReplyGate::new();
    let gate = opened.clone();
    model.answer_with(move |_| ReplyScript::new().gate(&gate).text("done"));
    let rule = json!({ "from": "a", "to": "b", "type": "task.handoff", "max_retries": 2 });
    plane.post("/routing-rules", rule).ok();
    let task = json!({ "from": "a", "to": "b", "type": "task.handoff", "payload": { "task": "look" } });
    let path = format!("/messages/{}", plane.post("/messages", task).ok()["id"].as_str().unwrap());
    for attempt in 1..=2 {
        let pid = plane.get("/instances/b").ok()["pid"].as_i64().unwrap();
        until(&|| format!("it has it: {}", plane.get(&path).body), || {
            let now = plane.get(&path).ok();
            now["state"] == "delivered" && now["attempts"] == attempt && model.request_count() >= attempt
        });
        signal("KILL", pid);
        until(&|| "another runs".to_owned(), || {
            plane.get("/instances/b").body["pid"].as_i64().is_some_and(|now| now != pid)
        });
    }
    let state = || plane.get(&path).ok()["state"].clone();
    until(&|| format!("it is a dead letter: {}", state()), || state() == "dead_letter");
    opened.open();
    plane.post(&format!("{path}/replay"), json!({})).ok();
    until(&|| format!("it is acknowledged: {}", state()), || state() == "acknowledged");
    let done = plane.get("/instances/b/tasks").ok()["tasks"].clone();
    assert_eq!((done.as_array().unwrap().len(), &done[0]["status"]), (1, &json!("done")), "one turn: {done}");
}

#[test]
fn handoffs_survive_kills_of_instance_and_control_plane() {
    let (mut plane, model) = two();
    model.answer_with(|request| {
        let text = request.last_user_text();
        let number = text.split("number ").nth(1).and_then(|rest| rest.split_whitespace().next());
        ReplyScript::reply(format!("done {}", number.unwrap_or("?"))).wait(Duration::from_millis(30))
    });
    for n in 0..HANDOFFS {
        let body = json!({
            "from": "a", "to": "b", "type": "task.handoff", "correlation_id": format!("t{n}"),
            "idempotency_key": format!("t{n}"), "payload": { "task": format!("number {n} please") },
        });
        plane.post("/messages", body).ok();
    }
    let settled = |plane: &Plane| {
        let all = messages(plane, "from=a");
        all.iter().filter(|one| one["state"] == "acknowledged").count()
    };
    for share in [HANDOFFS / 4, HANDOFFS / 2] {
        until(&|| format!("{share} are done: {:?}", messages(&plane, "from=a")), || settled(&plane) >= share);
        let pid = plane.get("/instances/b").body["pid"].as_i64();
        pid.iter().for_each(|pid| signal("KILL", *pid));
        plane.kill();
        // Running instances find the server at its new address.
        plane.port = free_port();
        plane.serve();
    }
    let results = |plane: &Plane| {
        let back = messages(plane, "from=b&type=task.result");
        back.iter().filter(|one| one["state"] == "acknowledged").count()
    };
    until(&|| format!("every task has its result: {:?}", messages(&plane, "")), || {
        (settled(&plane), results(&plane)) == (HANDOFFS, HANDOFFS)
    });
    let b = plane.get("/instances/b").ok();
    let database = plane.folder(&b).join("memory/sessions.db");
    let sessions = rusqlite::Connection::open(database).unwrap();
    let count = |sql: &str| {
        let counted: i64 = sessions.query_row(sql, [], |row| row.get(0)).unwrap();
        usize::try_from(counted).unwrap()
    };
    assert_eq!(count("SELECT COUNT(*) FROM messages WHERE channel = 'cp' AND role = 'user'"), HANDOFFS);
    let turns = "SELECT COUNT(*) FROM jobs WHERE state = 'done' AND session_key LIKE 'agent:main:cp:dm:%'";
    assert_eq!(count(turns), HANDOFFS, "no turn twice");
    let twice = plane.get("/messages?limit=1000").ok();
    for one in twice["messages"].as_array().unwrap() {
        let whole = plane.get(&format!("/messages/{}", one["id"].as_str().unwrap())).ok();
        let words =
            whole["events"].as_array().unwrap().iter().filter(|event| event["kind"] == "acknowledged");
        assert!(words.count() <= 1, "{whole}");
    }
}
