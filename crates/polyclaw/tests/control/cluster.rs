//! An instance that stores its turns in PostgreSQL is queried through its API.

use std::fs;

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use polyclaw_testkit::postgres::PostgresCluster;
use serde_json::json;

use crate::plane::Plane;
use crate::sockets::Socket;

#[test]
fn postgres_instance_reports_tasks_usage_and_events_itself() {
    let (model, plane) = (ModelServer::start(), Plane::new());
    let path = plane.folder(&plane.create("one")).join("config.toml");
    let config = format!(
        "{}\n[store]\nurl = \"{}\"\n[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"demo\"]\n",
        fs::read_to_string(&path).unwrap(),
        PostgresCluster::for_process().fresh_database().unwrap(),
        model.url()
    );
    fs::write(&path, config).unwrap();
    let unknown = plane.get("/instances/one/tasks").ok();
    assert_eq!((&unknown["data_available"], &unknown["tasks"]), (&json!(false), &json!([])));
    assert!(unknown["message"].as_str().unwrap().contains("only while it runs"), "{unknown}");
    assert_eq!(plane.get("/instances/one/usage").ok()["data_available"], false);
    plane.start("one");
    let mut socket = Socket::open(&plane, "/ws/events?instance=one&kind=message.*");
    assert_eq!(socket.next()["type"], "snapshot");
    model.push(ReplyScript::reply("first").usage(100, 20));
    model.push(ReplyScript::reply("second").usage(50, 5));
    for text in ["a", "b"] {
        let path = "/instances/one/gateway/sessions/agent%3Amain%3Amain/messages?wait=30";
        plane.post(path, json!({ "text": text })).ok();
    }
    let nobody = "/instances/one/gateway/sessions/agent%3Anobody%3Aweb%3Adm%3Ax/messages";
    assert_eq!(plane.post(nobody, json!({ "text": "hello" })).status, 404);
    let event = socket.until("event");
    assert_eq!((&event["kind"], &event["instance"]["name"]), (&json!("message.refused"), &json!("one")));
    let page = plane.get("/instances/one/tasks?limit=1").ok();
    assert_eq!((&page["data_available"], &page["tasks"][0]["summary"]), (&json!(true), &json!("b")));
    let next = format!("/instances/one/tasks?limit=1&cursor={}", page["next_cursor"].as_str().unwrap());
    let next = plane.get(&next).ok();
    assert_eq!((&next["tasks"][0]["summary"], &next["tasks"][0]["outcome"]), (&json!("a"), &json!("first")));
    let odd = plane.get("/instances/one/tasks?status=odd");
    assert_eq!(odd.refusal(), (400, "invalid_parameter"));
    let usage = plane.get("/instances/one/usage?window=1h").ok();
    assert_eq!(
        (&usage["input_tokens"], &usage["output_tokens"], &usage["request_count"]),
        (&json!(150), &json!(25), &json!(2)),
        "{usage}"
    );
    let later = Socket::open(&plane, "/ws/events?instance=one&kind=message.*").next();
    assert!(!later["events"].as_array().unwrap().is_empty(), "a later reader gets the most recent events");
    plane.post("/instances/one/stop", json!({})).ok();
    assert_eq!(plane.get("/instances/one/tasks").ok()["data_available"], false);
}
