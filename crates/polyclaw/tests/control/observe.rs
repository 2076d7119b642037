//! Details, turns and usage of an instance.

use std::fs;

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use serde_json::{Value, json};

use crate::plane::Plane;

const CANARY: &str = "sk-canary-0123456789abcdefghij";

fn configured(plane: &Plane, rest: &str) -> Value {
    let made = plane.create("one");
    let path = plane.folder(&made).join("config.toml");
    fs::write(&path, format!("{}\n{rest}", fs::read_to_string(&path).unwrap())).unwrap();
    made
}

#[test]
fn instance_details_show_everything_except_secrets() {
    let plane = Plane::new();
    let made = configured(
        &plane,
        &format!(
            "[providers.openai]\napi_key = \"{CANARY}\"\n[channels.webhook.ci]\nsecret = \"{CANARY}\"\n\
             [channels.telegram.ops]\nenabled = false\nbot_token = \"{CANARY}\"\nallow_from = [\"42\"]\n\
             [agents.defaults]\nmodel = \"openai/gpt-x\"\n"
        ),
    );
    let folder = plane.folder(&made);
    fs::write(folder.join("workspace/SOUL.md"), "Be kind.").unwrap();
    fs::create_dir_all(folder.join("workspace/agents/ops")).unwrap();
    fs::write(folder.join("workspace/agents/ops/SOUL.md"), "Be quick.").unwrap();
    plane.start("one");
    let details = plane.get("/instances/one/details").ok();
    assert_eq!(details["build"]["instance"], env!("CARGO_PKG_VERSION"));
    assert_eq!(details["runtime"]["health"], "ok");
    let files: Vec<&str> = details["bootstrap_files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["file"].as_str().unwrap())
        .collect();
    assert_eq!(files, ["SOUL.md", "agents/ops/SOUL.md"]);
    assert_eq!(details["models"]["providers"]["openai"]["api_key"], "***MASKED***");
    assert_eq!(details["models"]["default"], "openai/gpt-x");
    assert!(details["channels"]["webhook"]["ci"].is_object());
    let bot = &details["channels"]["telegram"]["ops"];
    assert_eq!((&bot["enabled"], &bot["allow_from"]), (&json!(false), &json!(["42"])), "{bot}");
    assert!(
        details["config"]["turns"]["max_rounds"].is_u64(),
        "the effective config, with defaults: {details}"
    );
    let etag = plane.get("/instances/one/config").etag.unwrap();
    let bad = json!({ "turns": { "max_rounds": CANARY } });
    let refused = plane.call("PATCH", "/instances/one/config", Some(bad), &[("if-match", &etag)]);
    assert_eq!(refused.status, 400);
    for path in [
        "/instances/one/details",
        "/instances/one/config",
        "/instances/one/logs?lines=1000",
        "/instances/one",
        "/instances",
        "/health",
        "/metrics",
        "/audit",
        "/instances/one/logs/download",
        "/instances/one/tasks",
    ] {
        assert!(!plane.get(path).body.to_string().contains("canary"), "{path}");
    }
    fs::write(folder.join("config.toml"), format!("x = \"{CANARY}\"\n")).unwrap();
    let details = plane.get("/instances/one/details").ok();
    assert!(details["config"].is_null() && details["config_error"].is_string(), "{details}");
    assert!(!details.to_string().contains("canary"), "{details}");
    fs::remove_file(folder.join("config.toml")).unwrap();
    let details = plane.get("/instances/one/details").ok();
    assert!(details["config"].is_null() && details["config_error"].is_string(), "{details}");
    assert_eq!(details["instance"]["status"], "running", "it is listed anyway");
    assert_eq!(plane.get("/instances/nobody/details").refusal(), (404, "unknown_instance"));
}

#[test]
fn tasks_and_usage_come_from_the_instance() {
    let model = ModelServer::start();
    let plane = Plane::new();
    configured(
        &plane,
        &format!(
            "[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"demo\"]\n",
            model.url()
        ),
    );
    let nothing = plane.get("/instances/one/tasks").ok();
    assert_eq!((&nothing["data_available"], &nothing["tasks"]), (&json!(false), &json!([])));
    let unused = plane.get("/instances/one/usage").ok();
    assert_eq!(
        (&unused["total_tokens"], &unused["data_available"]),
        (&json!(null), &json!(false)),
        "null, not zero"
    );
    plane.start("one");
    model.push(ReplyScript::reply("first").usage(100, 20));
    model.push(ReplyScript::reply("second").usage(50, 5));
    model.push(ReplyScript::reply("third").no_usage());
    for text in ["a", "b", "c"] {
        let path = "/instances/one/gateway/sessions/agent%3Amain%3Amain/messages?wait=20";
        plane.post(path, json!({ "text": text })).ok();
    }
    let all = plane.get("/instances/one/tasks?limit=2").ok();
    let text_of = |page: &Value, field: &str| -> Vec<String> {
        page["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task[field].as_str().unwrap_or("-").to_owned())
            .collect()
    };
    assert_eq!(
        (text_of(&all, "summary"), text_of(&all, "outcome")),
        (vec!["c".into(), "b".into()], vec!["third".into(), "second".into()])
    );
    assert_eq!(all, plane.get("/instances/one/tasks?limit=2").ok(), "the same response again");
    let cursor = all["next_cursor"].as_str().unwrap();
    assert_eq!(
        text_of(&plane.get(&format!("/instances/one/tasks?limit=2&cursor={cursor}")).ok(), "summary"),
        ["a"]
    );
    assert!(all["tasks"][0]["duration_ms"].is_i64() && all["tasks"][0]["trace_id"].is_string());
    assert!(text_of(&plane.get("/instances/one/tasks?status=failed").ok(), "id").is_empty());
    assert!(text_of(&plane.get("/instances/one/tasks?after=2999-01-01T00:00:00Z").ok(), "id").is_empty());
    assert_eq!(plane.get("/instances/one/tasks?status=odd").refusal(), (400, "invalid_parameter"));
    let usage = plane.get("/instances/one/usage?window=1h").ok();
    assert_eq!(
        (&usage["input_tokens"], &usage["output_tokens"], &usage["request_count"], &usage["unknown_count"]),
        (&json!(150), &json!(25), &json!(3), &json!(1)),
        "{usage}"
    );
    assert_eq!(usage["total_tokens"], 175);
    assert_eq!(plane.get("/instances/one/usage?window=99d").refusal(), (400, "invalid_parameter"));
    plane.post("/instances/one/stop", json!({})).ok();
    assert_eq!(plane.get("/instances/one/usage?window=1h").ok(), usage, "whether it runs or not");
    let metrics = plane.get("/metrics").body;
    assert!(metrics.as_str().unwrap().contains("polyclaw_instances{status=\"stopped\"} 1"), "{metrics}");
}

#[test]
fn tasks_are_filtered_by_state_channel_and_time() {
    let model = ModelServer::start();
    let plane = Plane::new();
    let provider = "[providers.lab]\nkind = \"openai_compatible\"\nmodels = [\"demo\"]\nbase_url";
    configured(&plane, &format!("{provider} = \"{}\"\n", model.url()));
    plane.start("one");
    ["first", "second"].iter().for_each(|text| model.push(ReplyScript::reply(*text)));
    model.push(ReplyScript::error(400, json!({ "error": { "message": "no" } })));
    for text in ["a", "b", "c"] {
        let path = "/instances/one/gateway/sessions/agent%3Amain%3Amain/messages?wait=20";
        plane.post(path, json!({ "text": text })).ok();
    }
    let found = |query: &str| -> Vec<String> {
        let tasks = plane.get(&format!("/instances/one/tasks?{query}")).ok()["tasks"].clone();
        let summary = |task: &Value| task["summary"].as_str().unwrap().to_owned();
        tasks.as_array().unwrap().iter().map(summary).collect()
    };
    assert_eq!(found("status=failed"), ["c"]);
    assert_eq!(found("status=done"), ["b", "a"]);
    assert_eq!((found("channel=web").len(), found("channel=slack").len()), (3, 0));
    let failed = plane.get("/instances/one/tasks?status=failed").ok()["tasks"][0].clone();
    assert!(failed["outcome"].is_string() && failed["error_code"].is_string(), "{failed}");
    let second = plane.get("/instances/one/tasks?status=done").ok()["tasks"][0]["created_at"].clone();
    let second = second.as_str().unwrap();
    assert_eq!(found(&format!("after={second}")), ["c", "b"]);
    assert_eq!(found(&format!("before={second}")), ["a"]);
    assert_eq!(found("limit=9999").len(), 3);
    assert_eq!(plane.get("/instances/one/tasks?limit=0").refusal(), (400, "invalid_parameter"));
    assert_eq!(plane.get("/instances/nobody/tasks").refusal(), (404, "unknown_instance"));
}
