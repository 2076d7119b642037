use serde_json::{Value, json};

use crate::instance::Instance;

#[tokio::test]
async fn cron_job_is_created_changed_run_and_deleted() {
    let instance = Instance::start().await;
    let job =
        json!({ "id": "tick", "schedule": "every 12h", "message": "hello", "timezone": "Europe/Berlin" });
    let made = instance.post("/api/v1/cron", job.clone()).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!((&made.body["agent_id"], &made.body["source"]), (&json!("main"), &json!("api")));
    assert_eq!((&made.body["catch_up"], &made.body["created_by"]), (&json!("skip"), &Value::Null));
    assert!(made.body["next_due"].is_string() && made.body["last_due"].is_null(), "{}", made.text);
    instance.post("/api/v1/cron", job).await.refuses(409, "cron_job_exists");
    let listed = instance.get("/api/v1/cron").await;
    assert_eq!(listed.ok()["cron"][0], made.body);
    let patch = json!({ "message": "good night", "timezone": null, "enabled": false });
    let changed = instance.patch("/api/v1/cron/tick", patch).await;
    assert_eq!((&changed.ok()["message"], &changed.body["timezone"]), (&json!("good night"), &Value::Null));
    assert_eq!((&changed.body["schedule"], &changed.body["next_due"]), (&json!("every 12h"), &Value::Null));
    instance.patch("/api/v1/cron/tick", json!({ "id": "tock" })).await.refuses(400, "invalid_body");
    instance.patch("/api/v1/cron/tick", json!({ "wenn": 1 })).await.refuses(400, "invalid_body");
    instance.patch("/api/v1/cron/tick", json!({ "schedule": "soon" })).await.refuses(400, "invalid_cron_job");
    let run = instance.post("/api/v1/cron/tick/run", json!({})).await;
    assert_eq!(run.ok()["session_key"], "cron:tick", "one that rests can be run by hand");
    assert_eq!(instance.delete("/api/v1/cron/tick").await.status, 204);
    instance.get("/api/v1/cron/tick").await.refuses(404, "unknown_cron_job");
    instance.delete("/api/v1/cron/tick").await.refuses(404, "unknown_cron_job");
}

#[tokio::test]
async fn config_cron_job_cannot_be_changed_by_api() {
    let instance = Instance::start().await;
    let mut settings = (*instance.engine.settings()).clone();
    let config: polyclaw_domain::config::CronJobConfig =
        serde_json::from_value(json!({ "id": "ours", "schedule": "every 1d", "message": "hello" })).unwrap();
    let job =
        polyclaw_domain::cron_job::CronJob::from_config(&config, &settings.default_agent, None).unwrap();
    settings.cron_jobs = vec![job];
    instance.engine.reload_settings(settings);
    assert_eq!(instance.get("/api/v1/cron/ours").await.ok()["source"], "config");
    instance.patch("/api/v1/cron/ours", json!({ "message": "x" })).await.refuses(409, "cron_job_in_config");
    let refused = instance.delete("/api/v1/cron/ours").await;
    assert!(refused.body["error"]["hint"].as_str().unwrap().contains("[[cron]]"), "{}", refused.text);
    instance
        .post("/api/v1/cron", json!({ "id": "ours", "schedule": "every 1d", "message": "x" }))
        .await
        .refuses(409, "cron_job_exists");
}
