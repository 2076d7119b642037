//! Which callers may approve tool calls through the gateway.

use polyclaw_control::access_to_approve;
use polyclaw_domain::instance::TokenAccess;
use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use serde_json::{Value, json};

use crate::plane::{Answer, Plane, put, until};
use crate::sockets::Socket;

const SESSION: &str = "agent:main:web:dm:me";
const SESSION_PATH: &str = "/instances/one/gateway/sessions/agent%3Amain%3Aweb%3Adm%3Ame";
const APPROVALS: &str = "/instances/one/gateway/approvals";

/// An instance whose agent calls one tool after the other and thanks after each.
fn calling(model: &ModelServer, calls: &[(&str, Value)]) -> Plane {
    for (tool, arguments) in calls {
        model.push(ReplyScript::new().call("c1", tool, arguments.clone()));
        model.push(ReplyScript::reply("thanks"));
    }
    let plane = Plane::new();
    let made = plane.create("one");
    let provider = format!(
        "[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"demo\"]\n\
         [agents.defaults]\nmodel = \"lab/demo\"\n[agents.defaults.sandbox]\nmode = \"off\"\n\
         [tools.approvals]\nsession_set_model = \"always\"\n",
        model.url()
    );
    let path = plane.folder(&made);
    let text = std::fs::read_to_string(path.join("config.toml")).unwrap();
    put(&path, "config.toml", &format!("{text}\n{provider}"));
    plane.start("one");
    plane
}

fn token(plane: &Plane, scope: &str) -> String {
    let made = plane.post("/tokens", json!({ "name": scope, "scope": scope })).ok();
    made["secret"].as_str().unwrap().to_owned()
}

fn as_(plane: &Plane, token: &str, path: &str, body: Value) -> Answer {
    // The token decides the access, whatever scope the caller states.
    let headers = [("authorization", &*format!("Bearer {token}")), ("polyclaw-scope", "admin")];
    plane.call("POST", path, Some(body), &headers)
}

/// Sends a message and waits for the approval request that it causes.
#[track_caller]
fn asked(plane: &Plane, token: &str, text: &str) -> String {
    as_(plane, token, &format!("{SESSION_PATH}/messages"), json!({ "text": text })).ok();
    let mut id = String::new();
    until(&|| format!("an approval is requested: {}", plane.get(APPROVALS).body), || {
        let open = plane.get(APPROVALS).body;
        open["approvals"][0]["id"].as_str().unwrap_or_default().clone_into(&mut id);
        !id.is_empty()
    });
    id
}

fn agents(plane: &Plane) -> usize {
    plane.get("/instances/one/gateway/agents").ok()["agents"].as_array().unwrap().len()
}

fn idle(plane: &Plane) {
    until(&|| "its turn has ended".to_owned(), || plane.get(SESSION_PATH).body["running_turn_id"].is_null());
}

#[test]
fn operate_token_cannot_approve_agent_creation() {
    let model = ModelServer::start();
    let draft = json!({ "agent_id": "ops", "description": "looks after servers", "profile": "coding" });
    let plane = calling(&model, &[("agent_create", draft.clone()), ("agent_create", draft)]);
    let (operate, admin) = (token(&plane, "operate"), token(&plane, "admin"));
    let before = agents(&plane);
    let id = asked(&plane, &operate, "make me an agent");
    let answer = format!("{APPROVALS}/{id}");
    let refused = as_(&plane, &operate, &answer, json!({ "decision": "approve" }));
    assert_eq!(refused.refusal(), (403, "wrong_scope"), "{}", refused.body);
    let reply = &refused.body["error"];
    assert!(reply["message"].as_str().unwrap().contains("'agent_create'"), "{reply}");
    assert!(reply["hint"].as_str().unwrap().starts_with("deny it"), "{reply}");
    let command = json!({ "text": format!(" /Approve  {id} please") });
    let refused = as_(&plane, &operate, &format!("{SESSION_PATH}/commands"), command);
    assert_eq!(refused.refusal(), (403, "wrong_scope"), "{}", refused.body);
    let mut socket = Socket::open_as(&plane, "/api/instances/one/gateway/ws", &operate);
    for (method, params) in [
        ("approve", json!({ "approval_id": id, "decision": "approve" })),
        ("command", json!({ "session_key": SESSION, "text": format!("/approve {id}") })),
    ] {
        socket.say(&json!({ "type": "req", "id": 1, "method": method, "params": params }).to_string());
        let refused = socket.until("res");
        assert_eq!(refused["error"]["code"], "wrong_scope", "{method}: {refused}");
    }
    let denied = as_(&plane, &operate, &answer, json!({ "decision": "deny" })).ok();
    assert_eq!((&denied["state"], agents(&plane)), (&json!("denied"), before));
    idle(&plane);
    let id = asked(&plane, &operate, "make me an agent");
    as_(&plane, &admin, &format!("{APPROVALS}/{id}"), json!({ "decision": "approve" })).ok();
    until(&|| "the agent is created".to_owned(), || agents(&plane) == before + 1);
    idle(&plane);
}

#[test]
fn tools_approvable_with_operate_scope_exist() {
    let plane = calling(&ModelServer::start(), &[]);
    let listed = plane.get("/instances/one/gateway/tools").ok();
    let names = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    let mut open: Vec<&str> = names.filter(|tool| access_to_approve(tool) == TokenAccess::Operate).collect();
    open.sort_unstable();
    let known = ["cron_run", "session_set_agent", "session_set_model", "sessions_send"];
    assert_eq!(open, known);
}

#[test]
fn operate_token_approves_model_switch_but_no_shell_command() {
    let model = ModelServer::start();
    let (run, switch) = (json!({ "command": "echo ran" }), json!({ "model": "lab/demo" }));
    let plane = calling(&model, &[("shell", run), ("session_set_model", switch)]);
    let operate = token(&plane, "operate");
    let id = asked(&plane, &operate, "run it");
    let answer = |id: &str, decision: &str| {
        as_(&plane, &operate, &format!("{APPROVALS}/{id}"), json!({ "decision": decision }))
    };
    assert_eq!(answer(&id, "approve").refusal(), (403, "wrong_scope"));
    assert_eq!(answer(&id, "deny").ok()["state"], "denied");
    idle(&plane);
    let id = asked(&plane, &operate, "take the other model");
    assert_eq!(answer(&id, "approve").ok()["state"], "approved");
    idle(&plane);
}

#[test]
fn operate_token_cannot_create_team_task_with_verify_command() {
    let plane = calling(&ModelServer::start(), &[]);
    let (operate, admin) = (token(&plane, "operate"), token(&plane, "admin"));
    let teams = "/instances/one/gateway/teams";
    let team = json!({ "name": "t", "agent_id": "main" });
    assert_eq!(as_(&plane, &operate, teams, team.clone()).refusal(), (403, "wrong_scope"));
    as_(&plane, &admin, teams, team).ok();
    let task = |verify: Value| json!({ "subject": "s", "description": "d", "verify": verify });
    let tasks = format!("{teams}/t/tasks");
    let command = task(json!({ "command": "touch ran" }));
    assert_eq!(as_(&plane, &operate, &tasks, command.clone()).refusal(), (403, "wrong_scope"));
    // A member would do it with the authority of the person who asked the lead.
    assert_eq!(as_(&plane, &operate, &tasks, task(Value::Null)).refusal(), (403, "wrong_scope"));
    // Its sandbox is off, so every command needs approval.
    let made = as_(&plane, &admin, &tasks, command).ok();
    let complete = format!("{tasks}/{}/complete", made["task_id"]);
    let refused = as_(&plane, &admin, &complete, json!({ "member": "lead", "summary": "done" }));
    assert!(refused.body.to_string().contains("commands need a person's approval here"), "{}", refused.body);
}
