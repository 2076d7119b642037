//! A home of an earlier version, opened by the binary of this one and read through its API.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use polyclaw_testkit::free_port;
use polyclaw_testkit::model_server::{ModelServer, ReceivedRequest, ReplyScript};
use polyclaw_testkit::platform::WebhookPlatform;
use serde_json::{Value, json};

use crate::daemon::{Server, command, until};
use crate::expected::expected_lists;
use crate::fixture::{EarlierHome, Engine};
use crate::rows::{StoredConversations, stored_conversations};

/// A message as role and text.
type Line = (String, String);

/// A restored home and what its daemon talks to.
struct Surroundings {
    home: EarlierHome,
    model: ModelServer,
    platform: WebhookPlatform,
}

impl Surroundings {
    fn restore(engine: Engine) -> Self {
        let (model, platform) = (ModelServer::start(), WebhookPlatform::start());
        let home = EarlierHome::restore(engine);
        model.answer_with(|request| ReplyScript::reply(reply_to(&request.last_user_text())));
        home.set("{{MODEL}}", &model.url());
        home.set("{{REPLIES}}", &platform.reply_url());
        Self { home, model, platform }
    }

    fn daemon(&self) -> Server {
        let port = free_port();
        let mut command = command(&self.home.path(), &["daemon", "--port", &port.to_string()]);
        if let Some(url) = self.home.database() {
            command.env("TEST_DATABASE", url);
        }
        Server::start(command, port, &self.home.path().join("token"), "/ready")
    }

    /// Returns the first model request of which this is part of the last message of a person or another session.
    #[track_caller]
    fn request_about(&self, text: &str) -> Arc<ReceivedRequest> {
        let is_about = |request: &Arc<ReceivedRequest>| request.last_user_text().contains(text);
        until(text, || self.model.requests().into_iter().find(is_about))
    }
}

fn reply_to(text: &str) -> String {
    format!("resumed: {}", text.split_whitespace().take(4).collect::<Vec<_>>().join(" "))
}

fn session_path(session: &str) -> String {
    format!("/api/v1/sessions/{}", session.replace(':', "%3A").replace('/', "%2F"))
}

/// The current conversation of a session.
#[track_caller]
fn transcript(daemon: &Server, session: &str) -> Vec<Line> {
    let page = daemon.get(&format!("{}/transcript?limit=200", session_path(session)));
    let text = |message: &Value, field: &str| message[field].as_str().unwrap().to_owned();
    let messages = page["messages"].as_array().unwrap();
    messages.iter().map(|message| (text(message, "role"), text(message, "text"))).collect()
}

/// Waits until the conversation ends with this answer.
#[track_caller]
fn wait_for_answer(daemon: &Server, session: &str, answer: &str) -> Vec<Line> {
    until(&format!("{session} is answered"), || {
        let lines = transcript(daemon, session);
        lines.last().is_some_and(|(role, text)| role == "assistant" && text == answer).then_some(lines)
    })
}

/// Checks that each stored message is in its conversation, and that nothing came between those of a conversation in
/// which nothing waited.
#[track_caller]
fn check_conversations(daemon: &Server, stored: &StoredConversations) {
    assert!(stored.lines.len() > 25, "conversations of the fixture");
    for (session, messages) in &stored.lines {
        let found = transcript(daemon, session);
        let count = |lines: &[Line], line: &Line| lines.iter().filter(|other| *other == line).count();
        for line in messages {
            assert!(count(&found, line) >= count(messages, line), "{session}: {line:?} in {found:#?}");
        }
        if !stored.waiting.contains(session) {
            assert_eq!(&found[..messages.len().min(found.len())], messages, "{session}");
        }
    }
}

/// Each turn that was cut off is answered once, and what waited behind it as well.
#[track_caller]
fn check_resumed_turns(daemon: &Server) {
    let cut = wait_for_answer(daemon, "agent:main:cut", "resumed: Do two steps. DO");
    assert_eq!(cut.len(), 4, "the finished step is not repeated: {cut:#?}");
    assert_eq!(cut[2], ("tool".to_owned(), "1. [x] step one\n1 of 1 done".to_owned()));
    let held = wait_for_answer(daemon, "agent:main:held", "resumed: Third of three.");
    let answers: Vec<_> = held.iter().filter(|(role, _)| role == "assistant").map(|line| &*line.1).collect();
    assert_eq!(answers, ["resumed: First of three. DO", "resumed: Third of three."]);
    let steered = until("the interrupted task is resumed", || {
        let lines = transcript(daemon, "agent:main:steered");
        let answers =
            lines.iter().filter(|(role, text)| role == "assistant" && text.starts_with("resumed: "));
        (answers.count() == 2).then_some(lines)
    });
    assert!(
        steered.iter().any(|(role, text)| role == "user" && text.starts_with("[Backlog]")),
        "{steered:#?}"
    );
    let tool = wait_for_answer(daemon, "agent:main:tool", "resumed: Sleep in a shell.");
    let unknown = "This call was interrupted while it ran. Whether it took effect is unknown";
    assert!(tool.iter().any(|(role, text)| role == "tool" && text.starts_with(unknown)), "{tool:#?}");
    let waits = wait_for_answer(daemon, "agent:main:waits", "resumed: Delegate and wait. DO");
    assert!(waits.iter().any(|(role, text)| role == "tool" && text.contains("\"completed\"")), "{waits:#?}");
}

/// The broadcast goes on with its second agent, which sees what the first one said.
#[track_caller]
fn check_broadcast(surroundings: &Surroundings, daemon: &Server) {
    for session in ["agent:main:club", "agent:ops:club"] {
        let lines = wait_for_answer(daemon, session, "resumed: What do all of");
        assert_eq!(lines.len(), 2, "{session}: {lines:#?}");
    }
    let about =
        |request: &&Arc<ReceivedRequest>| request.last_user_text().starts_with("What do all of you think?");
    let requests = surroundings.model.requests();
    let asked: Vec<_> = requests.iter().filter(about).collect();
    assert_eq!(asked.len(), 2, "one call for each agent");
    assert!(asked[1].body().to_string().contains("resumed: What do all of"), "{}", asked[1].body());
}

/// The pending message is sent once. Those that may have arrived, or were refused, are not sent again.
#[track_caller]
fn check_outbox(surroundings: &Surroundings) {
    let text = "Noted: a question whose reply waits";
    until("the pending message is sent", || {
        surroundings.platform.visible_texts().iter().any(|shown| shown == text).then_some(())
    });
    let sent = surroundings.platform.arrivals();
    assert_eq!(sent.iter().map(|reply| &*reply.text).collect::<Vec<_>>(), [text]);
    assert_eq!(sent[0].peer, "down");
}

/// `asked_by` of a stored run: the rules of the sender apply to its turns.
#[track_caller]
fn check_sender_rules(surroundings: &Surroundings) {
    let of_person = surroundings.request_about("Work for a paired person.");
    assert!(!of_person.tool_names().contains(&"read_file"), "{:?}", of_person.tool_names());
    let of_owner = surroundings.request_about("What do all of you think?");
    assert!(of_owner.tool_names().contains(&"read_file"), "{:?}", of_owner.tool_names());
}

/// A result that a failed turn was shown is shown to the next turn as well.
#[track_caller]
fn check_result_of_failed_turn(surroundings: &Surroundings, daemon: &Server) {
    let path = format!("{}/messages?wait=60", session_path("agent:main:fish"));
    let answer = daemon.post(&path, &json!({ "text": "How was the fishing?" }));
    assert_eq!(answer["reply"]["text"], "resumed: How was the fishing?", "{answer}");
    let request = surroundings.request_about("How was the fishing?");
    let shows_result = |message: &Value| {
        let text = message["content"].as_str().unwrap_or_default();
        text.contains("Status: ok") && text.contains("The catch is twelve fish.")
    };
    assert!(request.messages().iter().any(shows_result), "{}", request.body());
}

/// A free task of a stored ledger can be claimed, and a claimed one cannot be claimed again.
#[track_caller]
fn check_tasks(daemon: &Server) {
    let claimed = daemon.post("/api/v1/teams/site/tasks/4/claim", &json!({ "member": "ann" }));
    assert_eq!((&claimed["status"], &claimed["owner"]), (&json!("claimed"), &json!("ann")), "{claimed}");
    let path = "/api/v1/teams/site/tasks/2/complete";
    fs::write(daemon.home().join("workspace/header.svg"), "<svg/>").unwrap();
    let ended = daemon.post(path, &json!({ "member": "ann", "summary": "It is there." }));
    assert_eq!(ended["unblocked"], json!([3]), "{ended}");
}

/// Mail that was unread, and mail in the prompt of a turn that was cut off, is read in the end.
#[track_caller]
fn check_team_messages(daemon: &Server) {
    until("all mail of members is read", || {
        let page = daemon.get("/api/v1/teams/site/messages?limit=100");
        let messages = page["messages"].as_array().unwrap();
        let mut to_members = messages.iter().filter(|message| message["from"] == "operator");
        to_members.all(|message| message["state"] == "read").then_some(())
    });
}

/// A pending approval binds the same call, and the turn that asked goes on after it.
#[track_caller]
fn check_approval(daemon: &Server) {
    let approvals = daemon.get("/api/v1/approvals");
    let id = approvals["approvals"][0]["id"].as_str().unwrap();
    daemon.post(&format!("/api/v1/approvals/{id}"), &json!({ "decision": "approve" }));
    wait_for_answer(daemon, "agent:ops:waiting", "resumed: Write b. DO [{\"call\":");
    assert_eq!(fs::read_to_string(daemon.home().join("workspace/b.txt")).unwrap(), "hello");
}

#[track_caller]
fn opens_with_nothing_lost(engine: Engine) {
    let surroundings = Surroundings::restore(engine);
    let stored = stored_conversations(&surroundings.home);
    let daemon = surroundings.daemon();
    for list in expected_lists("instance") {
        list.check(&daemon.get(&list.path));
    }
    check_outbox(&surroundings);
    check_resumed_turns(&daemon);
    check_conversations(&daemon, &stored);
    check_broadcast(&surroundings, &daemon);
    check_sender_rules(&surroundings);
    check_tasks(&daemon);
    check_team_messages(&daemon);
    check_approval(&daemon);
    check_result_of_failed_turn(&surroundings, &daemon);
    let cut = transcript(&daemon, "agent:main:cut");
    assert_eq!(cut.len(), 4, "it was answered once: {cut:#?}");
    let status = daemon.get("/api/v1/memory/status");
    assert_eq!(
        (&status["memories"], &status["pending"]),
        (&json!(5), &json!(1)),
        "vectors are kept: {status}"
    );
}

#[test]
fn home_of_an_earlier_version_opens_with_nothing_lost() {
    opens_with_nothing_lost(Engine::Sqlite);
}

#[test]
fn postgresql_database_of_an_earlier_version_opens_with_nothing_lost() {
    opens_with_nothing_lost(Engine::Postgres);
}

#[test]
fn control_plane_of_an_earlier_version_opens_with_nothing_lost() {
    let home = EarlierHome::restore(Engine::Sqlite);
    let port = free_port();
    let command = command(&home.path(), &["control", "serve", "--port", &port.to_string()]);
    let control = Server::start(command, port, &home.path().join("cp/token"), "/health");
    for list in expected_lists("control") {
        list.check(&control.get(&list.path));
    }
    let verified = control.get("/api/audit/verify");
    assert_eq!((&verified["intact"], &verified["entries"]), (&json!(true), &json!(20)), "{verified}");
    let version = control.get_with_token("/api/version", "test-token-of-the-dashboard");
    assert_eq!(version["scope"], "read", "a token that was given out still opens");
    let instances = control.get("/api/instances");
    let beta = instances["instances"].as_array().unwrap().iter().find(|one| one["name"] == "beta").unwrap();
    let path = format!("/api/instances/{}/messages/pending?limit=10", beta["id"].as_str().unwrap());
    let handed_out = until("the queued message is handed out", || {
        let pending = control.get(&path);
        pending["messages"].as_array().filter(|messages| !messages.is_empty()).cloned()
    });
    let tasks: BTreeSet<_> =
        handed_out.iter().map(|message| message["payload"]["task"].as_str().unwrap()).collect();
    assert!(tasks.contains("fourth, waiting"), "{tasks:?}");
    let by_state: BTreeMap<_, _> = handed_out.iter().map(|one| (one["state"].to_string(), one)).collect();
    assert_eq!(by_state.len(), 1, "all of them are delivered now: {by_state:?}");
}
