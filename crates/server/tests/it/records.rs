use serde_json::{Value, json};

use crate::instance::{Answer, Instance, ONE, ONE_KEY, SECRET};

#[tokio::test]
async fn turns_are_listed_and_shown_with_steps() {
    let instance = Instance::start().await;
    let turn = instance.say("call clock").await.body["turn_id"].as_str().unwrap().to_owned();
    instance.say("fail").await;
    let listed = instance.get("/api/v1/turns?state=failed").await;
    assert_eq!(listed.ok()["turns"].as_array().unwrap().len(), 1);
    assert_eq!(listed.body["turns"][0]["error"]["code"], "provider_failed");
    assert!(listed.body["turns"][0].get("steps").is_none());
    let shown = instance.get(&format!("/api/v1/turns/{turn}")).await;
    assert_eq!(shown.ok()["steps"].as_array().unwrap().len(), 4);
    assert_eq!((&shown.body["state"], &shown.body["session_key"]), (&json!("done"), &json!(ONE_KEY)));
    assert_eq!(shown.body["usage"]["input_tokens"], 14, "two model calls");
    let of_session = instance.get(&format!("/api/v1/turns?session={ONE}&limit=1")).await;
    assert_eq!(of_session.ok()["turns"].as_array().unwrap().len(), 1);
    instance.get("/api/v1/turns/none").await.refuses(404, "unknown_turn");
    instance.get("/api/v1/turns?state=sleepy").await.refuses(400, "invalid_parameter");
    instance.get("/api/v1/turns?session=rubbish").await.refuses(400, "invalid_parameter");
}

#[tokio::test]
async fn usage_totals_count_unknown_calls_separately() {
    let instance = Instance::start().await;
    instance.say("hello").await;
    instance.say("unknown-usage").await;
    let spent = instance.get("/api/v1/usage?window=1h&by=model").await;
    let expected = json!({
        "group": "test/scripted", "calls": 2, "unknown_calls": 1, "input_tokens": 7, "output_tokens": 3,
        "cached_tokens": null, "cost_usd": null, "unpriced_calls": 2,
    });
    assert_eq!(spent.ok()["totals"], json!([expected]));
    assert_eq!(instance.get("/api/v1/usage").await.ok()["by"], "agent");
    assert_eq!(instance.get("/api/v1/usage?by=session").await.ok()["totals"][0]["group"], ONE_KEY);
    let days = instance.get("/api/v1/usage?by=day").await;
    assert_eq!(days.ok()["totals"][0]["group"].as_str().map(str::len), Some("2026-11-16".len()));
    assert_eq!(days.ok()["budgets"], json!([]));
    instance.get("/api/v1/usage?window=2h").await.refuses(400, "invalid_parameter");
    instance.get("/api/v1/usage?by=colour").await.refuses(400, "invalid_parameter");
}

#[tokio::test]
async fn events_are_listed_after_sequence_number() {
    let instance = Instance::start().await;
    instance.say("fail").await;
    instance.say("fail").await;
    let all = instance.get("/api/v1/events?kind=turn.failed").await;
    let events = all.ok()["events"].as_array().unwrap();
    assert_eq!(events.len(), 2);
    let seq = events[0]["seq"].as_i64().unwrap();
    let rest = instance.get(&format!("/api/v1/events?after={seq}&session={ONE}&kind=turn.failed")).await;
    assert_eq!(rest.ok()["events"].as_array().unwrap().len(), 1);
    instance.get("/api/v1/events?after=x").await.refuses(400, "invalid_parameter");
}

#[tokio::test]
async fn lists_page_by_cursor_and_refuse_foreign_cursors() {
    let instance = Instance::start().await;
    for id in ["1", "2", "3"] {
        instance.say("fail").await;
        let body = json!({ "text": "hi", "id": id, "peer": id }).to_string();
        Answer::of(crate::hooks::signed(&instance, "build?wait=5", &body, SECRET)).await.ok();
    }
    let mut cursors = Vec::new();
    for (list, id) in [("turns", "id"), ("events", "seq"), ("outbox", "id")] {
        let ids = |page: &Value| -> Vec<Value> {
            page[list].as_array().unwrap().iter().map(|one| one[id].clone()).collect()
        };
        let whole = ids(instance.get(&format!("/api/v1/{list}")).await.ok());
        assert!(whole.len() >= 3, "{list}");
        let (mut read, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = instance.get(&format!("/api/v1/{list}?limit=2{cursor}")).await;
            read.extend(ids(page.ok()));
            let Some(next) = page.body["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        // Deliveries go on meanwhile, and what they add comes last.
        assert!(read.starts_with(&whole), "{list}: {read:?} of {whole:?}");
        cursors.push((list, cursor));
    }
    for (list, cursor) in &cursors {
        for other in ["turns", "events", "outbox", "sessions"].iter().filter(|other| other != &list) {
            instance.get(&format!("/api/v1/{other}?limit=2{cursor}")).await.refuses(400, "invalid_parameter");
        }
    }
}

#[tokio::test]
async fn held_outbox_messages_are_dismissed_or_resent() {
    let instance = Instance::start().await;
    for id in ["1", "2"] {
        let body = json!({ "text": "hi", "id": id, "peer": id }).to_string();
        Answer::of(crate::hooks::signed(&instance, "build?wait=5", &body, SECRET)).await.ok();
    }
    let held = loop {
        let listed = instance.get("/api/v1/outbox?state=unknown").await;
        let held = listed.ok()["outbox"].as_array().unwrap().clone();
        if held.len() == 2 {
            break held;
        }
    };
    assert_eq!(held[0]["address"]["channel"], "webhook");
    let (first, second) = (held[0]["id"].as_str().unwrap(), held[1]["id"].as_str().unwrap());
    let dismissed = instance.post(&format!("/api/v1/outbox/{first}/dismiss"), json!({})).await;
    assert_eq!(dismissed.ok()["state"], "failed");
    let resent = instance.post(&format!("/api/v1/outbox/{second}/resend"), json!({})).await;
    assert_eq!(resent.ok()["state"], "pending");
    instance.post("/api/v1/outbox/none/resend", json!({})).await.refuses(404, "unknown_outbox");
    instance.get("/api/v1/outbox?state=lost").await.refuses(400, "invalid_parameter");
}

#[tokio::test]
async fn approval_can_be_decided_only_once() {
    let instance = Instance::start().await;
    let path = format!("/api/v1/sessions/{ONE}/messages");
    instance.post(&path, json!({ "text": "call danger" })).await.ok();
    let question = loop {
        let pending = instance.get("/api/v1/approvals").await;
        if let Some(question) = pending.ok()["approvals"].get(0) {
            break question.clone();
        }
    };
    assert_eq!((&question["tool"], &question["state"]), (&json!("danger"), &json!("pending")));
    let path = format!("/api/v1/approvals/{}", question["id"].as_str().unwrap());
    instance.post(&path, json!({ "decision": "perhaps" })).await.refuses(400, "invalid_body");
    let other = json!({ "decision": "approve", "fingerprint": "of something else" });
    instance.post(&path, other).await.refuses(409, "arguments_mismatch");
    let verdict =
        json!({ "decision": "deny", "reason": "too risky", "fingerprint": question["fingerprint"] });
    let decided = instance.post(&path, verdict).await;
    assert_eq!(decided.ok()["state"], "denied");
    instance.post(&path, json!({ "decision": "approve" })).await.refuses(409, "invalid_state");
    instance
        .post("/api/v1/approvals/none", json!({ "decision": "deny" }))
        .await
        .refuses(404, "unknown_approval");
    assert_eq!(instance.get("/api/v1/approvals").await.ok()["approvals"], json!([]));
}

#[tokio::test]
async fn health_shows_only_public_status_fields() {
    let instance = Instance::start().await;
    for path in ["/health", "/api/v1/health"] {
        let health = Answer::of(instance.bare(reqwest::Method::GET, path)).await;
        let names: Vec<&String> = health.ok().as_object().unwrap().keys().collect();
        assert_eq!(names, ["status", "version", "uptime_ms", "store", "channels", "tasks"]);
        assert_eq!((&health.body["status"], &health.body["version"]), (&json!("ok"), &json!("1.2.3")));
        assert_eq!(health.body["store"], json!({ "engine": "sqlite", "status": "ok" }));
        assert_eq!(health.body["channels"], json!(["webhook"]));
    }
    for path in ["/ready", "/api/v1/ready"] {
        let ready = Answer::of(instance.bare(reqwest::Method::GET, path)).await;
        assert_eq!(ready.ok(), &json!({ "ready": true }));
    }
}

#[tokio::test]
async fn metrics_count_messages_turns_and_requests() {
    let instance = Instance::start().await;
    instance.say("hello").await;
    instance.say("fail").await;
    instance.get("/nowhere").await.refuses(404, "unknown_route");
    for path in ["/metrics", "/api/v1/metrics"] {
        let metrics = instance.get(path).await;
        assert_eq!(metrics.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
        for line in [
            "polyclaw_messages_accepted_total 2",
            "polyclaw_turns_ended_total{state=\"done\"} 1",
            "polyclaw_turns_ended_total{state=\"failed\"} 1",
            "polyclaw_turns{state=\"queued\"} 0",
            "polyclaw_tokens_total{kind=\"input\"} 7",
            "polyclaw_store_errors_total 0",
            "polyclaw_http_requests_total{route=\"/api/v1/sessions/{key}/messages\",method=\"POST\",status=\"200\"} 2",
            "polyclaw_http_requests_total{route=\"other\",method=\"OTHER\",status=\"404\"} 1",
            "process_resident_memory_bytes",
        ] {
            assert!(metrics.text.contains(line), "{line}\n{}", metrics.text);
        }
    }
    assert_eq!(instance.get("/metrics").await.body, Value::Null);
}

#[tokio::test]
async fn memory_route_lists_and_searches() {
    let instance = Instance::start().await;
    for content in ["Ana lives in Porto", "The printer is on the second floor"] {
        instance.post("/api/v1/memory", json!({ "content": content })).await.ok();
    }
    let all = instance.get("/api/v1/memory").await;
    assert_eq!(all.ok()["memories"].as_array().unwrap().len(), 2);
    assert_eq!(all.body["memories"][0]["score"], Value::Null);
    let found = instance.get("/api/v1/memory?q=printer&limit=1").await;
    let best = &found.ok()["memories"][0];
    assert!(best["content"].as_str().unwrap().contains("second floor") && best["score"].is_f64(), "{best}");
    assert_eq!(
        instance.get("/api/v1/memory?q=printer&agent=main").await.ok()["memories"][0]["id"],
        best["id"]
    );
    for wrong in ["q=x&kind=fact", "q=x&cursor=1", &format!("q=x&session={ONE}")] {
        instance.get(&format!("/api/v1/memory?{wrong}")).await.refuses(400, "invalid_parameter");
    }
}
