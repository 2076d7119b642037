//! What sessions began: as a tree, as runs, and in the counters.

use serde_json::json;

use crate::instance::{Instance, ONE, ONE_KEY};

#[tokio::test]
async fn session_tree_and_run_lists_are_served() {
    let instance = Instance::start().await;
    instance.say("hello").await;
    let tree = instance.get(&format!("/api/v1/sessions/{ONE}/tree")).await;
    assert_eq!((&tree.ok()["session_key"], &tree.body["state"]), (&json!(ONE_KEY), &json!("idle")));
    assert_eq!((&tree.body["children"], &tree.body["run_status"]), (&json!([]), &json!(null)));
    assert!(tree.body["trace_id"].is_string() && tree.body["tokens"] == 10, "{}", tree.body);
    instance.get("/api/v1/sessions/agent%3Amain%3Anobody/tree").await.refuses(404, "unknown_session");
    assert_eq!(instance.get(&format!("/api/v1/runs?owner={ONE}")).await.ok(), &json!({ "runs": [] }));
    assert_eq!(instance.get("/api/v1/runs?held=true").await.ok(), &json!({ "runs": [] }));
    instance.get("/api/v1/runs").await.refuses(400, "invalid_parameter");
    instance.get("/api/v1/runs/none").await.refuses(404, "unknown_run");
    assert_eq!(instance.get("/api/v1/delegations").await.ok(), &json!({ "delegations": [] }));
    let metrics = instance.http.get(format!("{}/metrics", instance.url)).bearer_auth(crate::instance::TOKEN);
    let text = metrics.send().await.unwrap().text().await.unwrap();
    assert!(text.contains("# TYPE polyclaw_delegations_active gauge"), "{text}");
}
