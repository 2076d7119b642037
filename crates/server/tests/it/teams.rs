use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::instance::{Answer, Instance, ONE_KEY};
use crate::socket::Socket;

async fn with_team(instance: &Instance) -> Value {
    instance.say("hello").await;
    let made = instance.post("/api/v1/teams", json!({ "name": "site", "lead_session_key": ONE_KEY })).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    made.body
}

#[tokio::test]
async fn team_is_created_staffed_listed_and_shut_down() {
    let instance = Instance::start().await;
    let team = with_team(&instance).await;
    assert_eq!((&team["status"], &team["lead_session_key"]), (&json!("active"), &json!(ONE_KEY)));
    let joined =
        instance.post("/api/v1/teams/site/members", json!({ "name": "ann", "role": "painter" })).await;
    assert_eq!(joined.status, StatusCode::CREATED, "{}", joined.text);
    let sessions = instance.get("/api/v1/sessions").await;
    let mut roles: Vec<_> = sessions.ok()["sessions"].as_array().unwrap().iter().collect();
    roles.sort_by_key(|one| one["team_role"].to_string());
    let roles: Vec<_> = roles.iter().map(|one| (&one["team"], &one["team_role"])).collect();
    assert_eq!(roles, [(&json!("site"), &json!("lead")), (&json!("site"), &json!("member"))]);
    let added =
        instance.post("/api/v1/teams/site/tasks", json!({ "subject": "draw", "assignee": "ann" })).await;
    assert_eq!(added.body["task_id"], 1, "{}", added.text);
    instance.post("/api/v1/teams/site/tasks", json!({ "subject": "hang", "depends_on": [1] })).await.ok();
    let shown = instance.get("/api/v1/teams/site").await;
    let shown = shown.ok();
    assert_eq!(
        (&shown["members"][0]["name"], &shown["members"][0]["role"]),
        (&json!("ann"), &json!("painter"))
    );
    assert_eq!((&shown["counts"]["pending"], &shown["counts"]["blocked"]), (&json!(1), &json!(1)));
    assert_eq!(shown["open"][1]["blocked_by"], json!([1]));
    let sent = instance
        .post(
            "/api/v1/teams/site/messages",
            json!({ "recipient": "ann", "content": "the code is 4711", "summary": "a code" }),
        )
        .await;
    assert_eq!((sent.status, &sent.body["recipients"]), (StatusCode::ACCEPTED, &json!(["ann"])));
    let messages = instance.get("/api/v1/teams/site/messages").await;
    assert!(messages.text.contains("a code") && messages.text.contains("4711"), "{}", messages.text);
    let log = instance.get("/api/v1/teams/site/log").await;
    assert_eq!(log.ok()["log"][0]["change"], "created");
    let tasks = instance.get("/api/v1/teams/site/tasks?status=pending").await;
    assert_eq!(tasks.ok()["tasks"][0]["subject"], "hang", "the newest first");
    let page = instance.get("/api/v1/teams/site/tasks?all=true&limit=1").await;
    let cursor = page.ok()["next_cursor"].as_str().unwrap();
    let page = instance.get(&format!("/api/v1/teams/site/tasks?all=true&limit=1&cursor={cursor}")).await;
    assert_eq!(
        (&page.ok()["tasks"][0]["subject"], &page.body["next_cursor"]),
        (&json!("draw"), &json!(null))
    );
    for cursor in ["history 1 x", "team_tasks 1 x", "tasks 1 open"] {
        let cursor = polyclaw_domain::hex::encode_hex(cursor.as_bytes());
        let other = instance.get(&format!("/api/v1/teams/site/tasks?cursor={cursor}")).await;
        other.refuses(400, "invalid_parameter");
    }
    let ended = instance.post("/api/v1/teams/site/shutdown", json!({ "force": true })).await;
    assert_eq!(
        (&ended.ok()["status"], &ended.body["members"][0]["answer"]["answer"]),
        (&json!("shutdown"), &json!("stopped"))
    );
    assert_eq!(instance.get("/api/v1/teams").await.ok()["teams"], json!([]));
    assert_eq!(instance.get("/api/v1/teams?all=true").await.ok()["teams"][0]["status"], "shutdown");
}

#[tokio::test]
async fn tasks_are_worked_on_as_member_or_lead() {
    let instance = Instance::start().await;
    with_team(&instance).await;
    for name in ["ann", "bob"] {
        instance.post("/api/v1/teams/site/members", json!({ "name": name })).await;
    }
    for (subject, after) in [("draw", json!([])), ("hang", json!([1])), ("sweep", json!([]))] {
        let task = json!({ "subject": subject, "depends_on": after, "assignee": "ann" });
        instance.post("/api/v1/teams/site/tasks", task).await.ok();
    }
    let act = |task: &'static str, verb: &'static str, body: Value| {
        let path = format!("/api/v1/teams/site/tasks/{task}/{verb}");
        let instance = &instance;
        async move { instance.post(&path, body).await }
    };
    let ann = || json!({ "member": "ann" });
    act("2", "claim", ann()).await.refuses(409, "task_blocked");
    act("1", "claim", json!({ "member": "bob" })).await.refuses(409, "task_assigned");
    act("1", "claim", json!({ "member": "eve" })).await.refuses(409, "not_a_member");
    act("9", "claim", ann()).await.refuses(404, "unknown_task");
    act("one", "claim", ann()).await.refuses(400, "invalid_parameter");
    act("1", "start", ann()).await.refuses(409, "task_not_yours");
    let claimed = act("1", "claim", ann()).await;
    assert_eq!((&claimed.ok()["status"], &claimed.body["owner"]), (&json!("claimed"), &json!("ann")));
    assert!(claimed.body["lease_until"].is_string(), "{}", claimed.text);
    act("1", "claim", json!({})).await.refuses(409, "task_taken");
    assert_eq!(act("1", "start", ann()).await.ok()["status"], "in_progress");
    act("1", "complete", json!({ "member": "bob" })).await.refuses(409, "task_taken");
    let done =
        json!({ "member": "ann", "summary": "drawn", "artifacts": [{ "kind": "file", "path": "a.svg" }] });
    assert_eq!(act("1", "complete", done).await.ok(), &json!({ "task_id": 1, "unblocked": [2] }));
    act("1", "release", ann()).await.refuses(409, "task_ended");
    act("3", "claim", ann()).await.ok();
    let freed = act("3", "release", json!({ "note": "not today" })).await;
    assert_eq!((&freed.ok()["status"], &freed.body["note"]), (&json!("pending"), &json!("not today")));
    act("2", "claim", ann()).await.ok();
    let failed = json!({ "status": "failed", "summary": "no nail" });
    assert_eq!(
        act("2", "complete", failed).await.ok()["unblocked"],
        json!([]),
        "the lead ends what others hold"
    );
    let log = instance.get("/api/v1/teams/site/log").await;
    let log = log.ok()["log"].as_array().unwrap();
    let ended: Vec<_> =
        log.iter().filter(|line| line["change"] == "completed" || line["change"] == "failed").collect();
    assert_eq!((&ended[0]["by"], &ended[1]["by"]), (&json!("ann"), &json!("lead")));
    instance.post("/api/v1/teams/site/shutdown", json!({ "force": true })).await.ok();
    act("3", "claim", ann()).await.refuses(404, "unknown_team");
}

#[tokio::test]
async fn invalid_team_requests_are_refused() {
    let instance = Instance::start().await;
    with_team(&instance).await;
    let post = |path: &'static str, body: Value| instance.post(path, body);
    post("/api/v1/teams", json!({ "name": "site", "lead_session_key": ONE_KEY }))
        .await
        .refuses(409, "team_exists");
    post("/api/v1/teams", json!({ "name": "No" })).await.refuses(400, "invalid_name");
    post("/api/v1/teams/none/tasks", json!({ "subject": "x" })).await.refuses(404, "unknown_team");
    post("/api/v1/teams/site/tasks", json!({ "subject": "" })).await.refuses(400, "invalid_task");
    post("/api/v1/teams/site/tasks", json!({ "subject": "x", "depends_on": [9] }))
        .await
        .refuses(400, "unknown_dependency");
    post("/api/v1/teams/site/messages", json!({ "recipient": "eve", "content": "x" }))
        .await
        .refuses(409, "not_a_member");
    post("/api/v1/teams/site/members", json!({ "name": "ann", "model": "nonsense" }))
        .await
        .refuses(400, "invalid_parameter");
    let lead = instance
        .request(Method::PUT, "/api/v1/teams/site/lead")
        .json(&json!({ "session_key": "agent:main:none" }));
    Answer::of(lead).await.refuses(404, "unknown_session");
}

#[tokio::test]
async fn lead_session_receives_team_events() {
    let instance = Instance::start().await;
    with_team(&instance).await;
    let mut socket = Socket::open(&instance).await;
    socket.call("subscribe", json!({ "session_key": ONE_KEY })).await;
    instance.post("/api/v1/teams/site/tasks", json!({ "subject": "draw" })).await.ok();
    let frame = socket.event("team.changed").await;
    let change = if frame["change"].is_null() { &frame["data"]["change"] } else { &frame["change"] };
    assert_eq!((&change["team"], &change["change"]), (&json!("site"), &json!("created")), "{frame}");
    let answer = instance
        .post(
            &format!("/api/v1/sessions/{}/commands", ONE_KEY.replace(':', "%3A")),
            json!({ "text": "/team" }),
        )
        .await;
    assert!(answer.text.contains("site (active)"), "{}", answer.text);
    let path = format!("/api/v1/sessions/{}/commands", ONE_KEY.replace(':', "%3A"));
    let answer = instance.post(&path, json!({ "text": "/team site" })).await;
    assert!(answer.text.contains("Team: site (active)"), "{}", answer.text);
    assert!(
        answer.text.contains("Led by the agent main") && !answer.text.contains(ONE_KEY),
        "{}",
        answer.text
    );
    assert!(
        !answer.text.contains("You are") && !answer.text.contains("==="),
        "no words to a model: {}",
        answer.text
    );
}
