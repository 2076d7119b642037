use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::instance::{Answer, Instance};

#[tokio::test]
async fn agent_is_created_patched_listed_and_deleted() {
    let instance = Instance::start().await;
    let spec = json!({ "agent_id": "ops", "name": "Ops", "policy": { "tools": { "deny": ["danger"] } } });
    let created = instance.post("/api/v1/agents", spec.clone()).await;
    assert_eq!(created.status, StatusCode::CREATED);
    assert_eq!((&created.body["source"], &created.body["default"]), (&json!("api"), &json!(false)));
    instance.post("/api/v1/agents", spec).await.refuses(409, "agent_exists");
    let patch = json!({ "description": "runs things", "defaults": { "temperature": 0.5 } });
    let changed = instance.patch("/api/v1/agents/ops", patch).await;
    assert_eq!(changed.ok()["description"], "runs things");
    assert_eq!(changed.body["policy"]["tools"]["deny"], json!(["danger"]), "the rest is kept");
    let cleared = instance.patch("/api/v1/agents/ops", json!({ "defaults": { "temperature": null } })).await;
    assert_eq!(cleared.ok()["defaults"].get("temperature"), None);
    let listed = instance.get("/api/v1/agents").await;
    let ids: Vec<_> =
        listed.ok()["agents"].as_array().unwrap().iter().map(|a| a["agent_id"].clone()).collect();
    assert_eq!(ids, [json!("main"), json!("ops")]);
    assert_eq!(instance.delete("/api/v1/agents/ops").await.status, StatusCode::NO_CONTENT);
    instance.get("/api/v1/agents/ops").await.refuses(404, "unknown_agent");
}

#[tokio::test]
async fn agent_bodies_accept_only_integral_numbers() {
    let instance = Instance::start().await;
    let spec = json!({ "agent_id": "ops", "name": "Ops", "defaults": { "max_tokens": 6.0 } });
    let made = instance.post("/api/v1/agents", spec).await;
    assert_eq!((made.status, &made.body["defaults"]["max_tokens"]), (StatusCode::CREATED, &json!(6)));
    let changed = instance.patch("/api/v1/agents/ops", json!({ "defaults": { "max_tokens": 7.0 } })).await;
    assert_eq!(changed.ok()["defaults"]["max_tokens"], 7);
    let wrong = json!({ "agent_id": "two", "name": "Two", "defaults": { "max_tokens": "many" } });
    for refused in [
        instance.post("/api/v1/agents", wrong).await,
        instance.patch("/api/v1/agents/ops", json!({ "defaults": { "max_tokens": "many" } })).await,
    ] {
        refused.refuses(400, "invalid_body");
        assert!(refused.text.contains("must be a whole number"), "{}", refused.text);
    }
}

#[tokio::test]
async fn config_agents_cannot_be_changed_by_api() {
    let instance = Instance::start().await;
    let shown = instance.get("/api/v1/agents/main").await;
    assert_eq!((&shown.ok()["source"], &shown.body["default"]), (&json!("config"), &json!(true)));
    instance.delete("/api/v1/agents/main").await.refuses(409, "agent_in_config");
    instance.patch("/api/v1/agents/main", json!({ "name": "x" })).await.refuses(409, "agent_in_config");
}

#[tokio::test]
async fn invalid_agent_requests_are_refused() {
    let instance = Instance::start().await;
    let cases = [
        json!({ "agent_id": "Not An Id", "name": "x" }),
        json!({ "agent_id": "x" }),
        json!({ "agent_id": "x", "name": "x", "colour": "red" }),
        json!([]),
    ];
    for spec in cases {
        instance.post("/api/v1/agents", spec).await.refuses(400, "invalid_body");
    }
    let named = json!({ "agent_id": "twin", "name": "main" });
    instance.post("/api/v1/agents", named).await.refuses(409, "agent_exists");
    instance.get("/api/v1/agents/Not%20An%20Id").await.refuses(400, "invalid_parameter");
    instance.patch("/api/v1/agents/nobody", json!({})).await.refuses(404, "unknown_agent");
    instance.delete("/api/v1/agents/nobody").await.refuses(404, "unknown_agent");
    instance.post("/api/v1/agents", json!({ "agent_id": "ops", "name": "ops" })).await.ok();
    instance.patch("/api/v1/agents/ops", json!({ "agent_id": "other" })).await.refuses(400, "invalid_body");
    instance.patch("/api/v1/agents/ops", json!([1])).await.refuses(400, "invalid_body");
}

#[tokio::test]
async fn agent_tools_are_listed_with_deciding_rule() {
    let instance = Instance::start().await;
    let spec = json!({ "agent_id": "ops", "name": "ops", "policy": { "tools": { "deny": ["danger"] } } });
    instance.post("/api/v1/agents", spec).await.ok();
    let tools = instance.get("/api/v1/agents/ops/tools").await;
    let rules: Vec<(Value, Value)> = tools.ok()["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| (tool["name"].clone(), tool["rule"].clone()))
        .collect();
    assert_eq!(rules[..2], [(json!("clock"), json!("tools.open")), (json!("danger"), json!("agent.deny"))]);
    instance.get("/api/v1/agents/nobody/tools").await.refuses(404, "unknown_agent");
    let all = instance.get("/api/v1/tools").await;
    assert_eq!(all.ok()["tools"][1]["consent"], "ask_person");
    let ops = instance.get("/api/v1/tools?agent=ops").await;
    assert_eq!(ops.ok()["tools"][1]["allowed"], false);
}

#[tokio::test]
async fn tool_explain_lists_every_policy_layer() {
    let instance = Instance::start().await;
    let spec =
        json!({ "agent_id": "ops", "name": "ops", "policy": { "tools": { "deny": ["danger", "clock"] } } });
    instance.post("/api/v1/agents", spec).await.ok();
    let answer = instance.get("/api/v1/tools/danger/explain?agent=ops").await;
    let layers: Vec<_> = answer.ok()["layers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|layer| (layer["layer"].as_str().unwrap(), layer["allows"].as_bool().unwrap()))
        .collect();
    assert_eq!(
        layers,
        [
            ("instance", true),
            ("agent", false),
            ("risk", true),
            ("inherited", true),
            ("plan", true),
            ("subagents", true),
            ("approval", true)
        ]
    );
    assert_eq!((&answer.body["allowed"], &answer.body["rule"]), (&json!(false), &json!("agent.deny")));
    assert_eq!(answer.body["set_in"], "policy.tools.deny of the agent \"ops\"");
    let change = answer.body["change"].as_str().unwrap();
    assert_eq!(change, r#"polyclaw agents set ops '{"policy":{"tools":{"deny":["clock"]}}}'"#);
    let main = instance.get("/api/v1/tools/danger/explain").await;
    assert_eq!((&main.ok()["allowed"], &main.body["asks"]), (&json!(true), &json!(true)));
    instance.get("/api/v1/tools/nothing/explain").await.refuses(404, "unknown_tool");
    instance.get("/api/v1/tools/danger/explain?agent=nobody").await.refuses(404, "unknown_agent");
    instance
        .get("/api/v1/tools/danger/explain?session=agent:main:none")
        .await
        .refuses(404, "unknown_session");
}

#[tokio::test]
async fn unknown_names_in_agent_spec_are_refused_with_suggestion() {
    let instance = Instance::start().await;
    let spec = |tools: Value| json!({ "agent_id": "ops", "name": "ops", "policy": { "tools": tools } });
    for (tools, text) in [
        (json!({ "allow": ["dangr"] }), "did you mean \\\"danger\\\"?"),
        (json!({ "deny": ["group:fss"] }), "did you mean \\\"group:fs\\\"?"),
        (json!({ "profile": "minimal", "allow": ["danger"] }), "is not in the profile"),
    ] {
        let refused = instance.post("/api/v1/agents", spec(tools)).await;
        refused.refuses(400, "invalid_agent");
        assert!(refused.body["error"]["message"].to_string().contains(text), "{}", refused.body);
    }
    instance.post("/api/v1/agents", spec(json!({ "profile": "strong" }))).await.refuses(400, "invalid_body");
    let mcp = json!({ "agent_id": "ops", "name": "ops", "mcp": ["files"] });
    instance.post("/api/v1/agents", mcp).await.refuses(400, "invalid_agent");
    instance.get("/api/v1/agents/ops").await.refuses(404, "unknown_agent");
    let nested = json!({ "agent_id": "ops", "name": "ops", "workspace": "x" });
    let refused = instance.post("/api/v1/agents", nested).await;
    refused.refuses(400, "invalid_agent");
    assert!(refused.body.to_string().contains("is inside that of agent"), "{}", refused.body);
    let forms = json!({ "agent_id": "ops", "name": "ops", "workspace": ".",
        "defaults": { "model": { "provider": "p", "model": "m", "temperature": 0.5, "fallbacks": ["p/n"] } } });
    let made = instance.post("/api/v1/agents", forms).await;
    assert_eq!(made.ok()["workspace"], json!({ "dir": ".", "overlay": true }));
    assert_eq!(made.body["defaults"], json!({ "model": "p/m", "fallbacks": ["p/n"], "temperature": 0.5 }));
    let colder = json!({ "defaults": { "model": { "provider": "p", "model": "m", "temperature": 0.1 } } });
    let changed = instance.patch("/api/v1/agents/ops", colder).await;
    assert_eq!(changed.ok()["defaults"]["temperature"], 0.1, "the newer form replaces the older");
}

#[tokio::test]
async fn models_are_listed() {
    let instance = Instance::start().await;
    let models = instance.get("/api/v1/models").await;
    let expected = json!({
        "models": [{ "model": "test/scripted", "context_window": null, "status": "ready", "demo": false }],
        "default_model": "test/scripted",
        "in_use": "No model is configured.",
    });
    assert_eq!(models.ok(), &expected);
}

#[tokio::test]
async fn agent_shows_appearance_and_allowed_skills() {
    let instance = Instance::start().await;
    let policy = json!({ "skills": { "deny": ["tid*"] } });
    let spec = json!({ "agent_id": "ops", "name": "Ops", "policy": policy, "identity": { "name": "Olga" } });
    let created = instance.post("/api/v1/agents", spec).await;
    assert_eq!(created.body["appearance"], json!({ "name": "Olga", "emoji": "🦀", "avatar": null }));
    let listed = instance.get("/api/v1/skills?agent=ops").await;
    assert_eq!(
        listed.ok()["skills"],
        json!([
            { "name": "tides", "description": "about tides", "place": "shared", "allowed": false, "rule": "denied" },
            { "name": "weather", "description": "about weather", "place": "shared", "allowed": true, "rule": "open" },
        ])
    );
    assert_eq!(
        instance.get("/api/v1/skills").await.ok()["skills"][0]["allowed"],
        true,
        "of the default agent"
    );
    instance.get("/api/v1/skills?agent=nobody").await.refuses(404, "unknown_agent");
}

#[tokio::test]
async fn mcp_servers_are_listed_with_their_agents() {
    let instance = Instance::start().await;
    instance.post("/api/v1/agents", json!({ "agent_id": "ops", "name": "Ops", "mcp": ["up"] })).await.ok();
    let listed = instance.get("/api/v1/mcp").await;
    let servers = &listed.ok()["servers"];
    assert_eq!((&servers[0]["name"], &servers[0]["agents"]), (&json!("up"), &json!(["ops"])));
    assert_eq!((&servers[1]["state"], &servers[1]["error"]), (&json!("down"), &json!("it ended")));
}

#[tokio::test]
async fn config_reload_is_applied_or_refused() {
    let instance = Instance::start().await;
    let reload = async || instance.post("/api/v1/config/reload", json!({})).await;
    assert_eq!(reload().await.ok()["restart_required"], json!(["gateway"]));
    reload().await.refuses(409, "config_refused");
}

#[tokio::test]
async fn agent_file_write_requires_current_etag() {
    let instance = Instance::start().await;
    instance.post("/api/v1/agents", json!({ "agent_id": "ops", "name": "ops" })).await.ok();
    let path = "/api/v1/agents/ops/files/SOUL.md";
    let write = async |etag: Option<&str>, body: Value| {
        let request = instance.request(Method::PUT, path).json(&body);
        Answer::of(etag.into_iter().fold(request, |request, etag| request.header("if-match", etag))).await
    };
    let workspace = instance.engine.settings().workspace.clone();
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("SOUL.md"), "of all").unwrap();
    let first = instance.get(path).await;
    assert_eq!((&first.ok()["own"], &first.body["shared"]), (&Value::Null, &json!("of all")));
    let etag = first.headers["etag"].to_str().unwrap();
    write(None, json!({ "text": "mine" })).await.refuses(428, "etag_missing");
    write(Some(etag), json!({})).await.refuses(400, "invalid_body");
    let written = write(Some(etag), json!({ "text": "mine" })).await;
    assert_eq!((&written.ok()["own"], &written.body["shared"]), (&json!("mine"), &json!("of all")));
    assert_eq!(std::fs::read_to_string(workspace.join("agents/ops/SOUL.md")).unwrap(), "mine");
    write(Some(etag), json!({ "text": "theirs" })).await.refuses(412, "etag_stale");
    let etag = written.body["etag"].as_str().unwrap();
    write(Some(etag), json!({ "text": "x".repeat(300_000) })).await.refuses(400, "invalid_parameter");
    assert_eq!(write(Some(etag), json!({ "text": null })).await.ok()["own"], Value::Null);
    assert!(!workspace.join("agents/ops/SOUL.md").exists());
    for name in ["agent.toml", "NOTES.md", "..%2FSOUL.md", "soul.md"] {
        let other = format!("/api/v1/agents/ops/files/{name}");
        instance.get(&other).await.refuses(400, "invalid_parameter");
    }
    instance.get("/api/v1/agents/%FF/files/SOUL.md").await.refuses(400, "invalid_parameter");
    instance.get("/api/v1/agents/nobody/files/SOUL.md").await.refuses(404, "unknown_agent");
}

#[cfg(unix)]
#[tokio::test]
async fn agent_files_behind_symlinks_are_refused() {
    let instance = Instance::start().await;
    instance.post("/api/v1/agents", json!({ "agent_id": "ops", "name": "ops" })).await.ok();
    let workspace = instance.engine.settings().workspace.clone();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("SOUL.md"), "a secret of the machine").unwrap();
    let own = workspace.join("agents/ops");
    std::fs::create_dir_all(&own).unwrap();
    std::os::unix::fs::symlink(outside.path().join("SOUL.md"), own.join("SOUL.md")).unwrap();
    let path = "/api/v1/agents/ops/files/SOUL.md";
    let read = instance.get(path).await;
    read.refuses(500, "agent_files_failed");
    assert!(!read.text.contains("a secret"), "{}", read.text);
    std::fs::remove_dir_all(&own).unwrap();
    std::os::unix::fs::symlink(outside.path(), &own).unwrap();
    instance.get(path).await.refuses(500, "agent_files_failed");
    let write = instance.request(Method::PUT, path).header("if-match", "*").json(&json!({ "text": "mine" }));
    Answer::of(write).await.refuses(500, "agent_files_failed");
    assert_eq!(std::fs::read_to_string(outside.path().join("SOUL.md")).unwrap(), "a secret of the machine");
}
