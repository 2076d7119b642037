//! A team that builds something: a lead and four members, tasks that depend on each other, a check by another agent that
//! fails once, a member whose processes are killed, real files, a synthesis, and a clean end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use polyclaw_testkit::model_server::{ModelServer, ReceivedRequest, ReplyScript};
use serde_json::{Value, json};

use super::{Keeps, LEAD, Stage, TEAM, said, stop_request, who};
use crate::daemon::Home;

const PATIENCE: Duration = Duration::from_secs(180);
const SYNTHESIS: &str = "The page is built: head, body and foot, in this order.";
const PAGE: &str = "<head>\n<body>\n<foot>\n";

/// The variant of the scenario.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Scripted,
    OnPostgres,
    /// The embedded model writes the members' messages to the lead.
    Embedded,
}

/// How long the programs sleep during which the daemon and then the worker process die. No other program on this machine
/// sleeps exactly as long, not even one of another scenario.
fn sleeps(way: Way) -> [String; 2] {
    let first = match way {
        Way::Scripted => 98,
        Way::OnPostgres => 94,
        Way::Embedded => 96,
    };
    [first, first + 1].map(|seconds| format!("{seconds}.{}1", std::process::id()))
}

/// Each task, how it is done, and its dependencies.
const PARTS: [(&str, &str, &[i64]); 4] = [
    ("head", "printf '<head>\\n' > head.txt", &[]),
    ("body", "printf '<body>\\n' > body.txt", &[]),
    ("foot", "printf '<foot>\\n' > foot.txt", &[]),
    ("page", "cat head.txt body.txt foot.txt > page.txt", &[1, 2, 3]),
];

/// One agent leads and builds, with its tools in worker processes; one checks; one uses the embedded model.
const AGENTS: &str = "[agents.defaults.sandbox]\nmode = \"off\"\n[tools]\napprovals = { shell = \"never\" }\n\
    [[agents.list]]\nid = \"main\"\ndefault = true\nisolation = \"process\"\ntools = { allow = [\"*\", \"shell\"] }\n\
    delegation = { allow_agents = [\"checker\", \"scribe\"] }\n\
    [[agents.list]]\nid = \"checker\"\nname = \"Checker\"\nworkspace = \"WORKSPACE\"\n\
    [[agents.list]]\nid = \"scribe\"\nname = \"Scribe\"\nmodel = \"embedded/smollm2-135m\"\n\
    system_prompt = \"You write one short friendly sentence.\"\ntools = { deny = [\"*\"] }\n";

/// The newest result of this turn, with the name of the tool: the id of a call begins with it.
fn newest(request: &ReceivedRequest) -> (String, String) {
    let is_end = |message: &Value| message["role"] == "assistant" && message["tool_calls"].is_null();
    let own = request.messages().iter().rev().take_while(|message| !is_end(message));
    let result = own.into_iter().find(|message| message["role"] == "tool");
    let text = |key: &str| result.and_then(|result| result[key].as_str()).unwrap_or_default();
    (text("tool_call_id").split('-').next().unwrap_or_default().to_owned(), text("content").to_owned())
}

fn call(request: &ReceivedRequest, name: &str, given: Value) -> ReplyScript {
    ReplyScript::new().call(&format!("{name}-{}", request.messages().len()), name, given)
}

/// Creates the team; when all is done, reads the page, ends the team and reports what was built.
fn as_lead(request: &ReceivedRequest, text: &str) -> ReplyScript {
    let made = (1..=4).filter(|n| text.contains(&format!("result {{\"task_id\":{n}}}"))).count();
    let members = text.matches("\"inherited\"").count();
    match () {
        () if !text.contains("lead_session_key") => {
            call(request, "TeamCreate", json!({ "team_name": TEAM, "description": "a page of three parts" }))
        }
        () if made < PARTS.len() => call(request, "TaskCreate", task(PARTS[made])),
        () if members < PARTS.len() => {
            let name = format!("m{members}");
            let given = json!({ "team_name": TEAM, "name": name, "task": "Take tasks until none is left." });
            call(request, "TeammateSpawn", given)
        }
        () if !text.contains("4 done, 0 failed of 4") || text.contains(SYNTHESIS) => {
            ReplyScript::reply("NO_REPLY")
        }
        () => match newest(request).0.as_str() {
            "TeamShutdown" => ReplyScript::reply(SYNTHESIS),
            "read_file" => {
                call(request, "TeamShutdown", json!({ "team_name": TEAM, "reason": "the page is there" }))
            }
            _ => call(request, "read_file", json!({ "path": "page.txt" })),
        },
    }
}

/// Another agent checks the body; a command checks the others.
fn task((part, line, needs): (&str, &str, &[i64])) -> Value {
    let verify = match part {
        "body" => json!({ "agent": { "agent_id": "checker", "instructions": "body.txt holds a body" } }),
        _ => json!({ "command": format!("grep -q '<' {part}.txt") }),
    };
    json!({ "team_name": TEAM, "subject": part, "description": line, "dependsOn": needs, "verify": verify })
}

/// The task that a member claimed last.
fn held(text: &str) -> Value {
    let claims = text.split("\"success\":true,\"task\":").skip(1).last().unwrap_or_default();
    serde_json::Deserializer::from_str(claims).into_iter().next().and_then(Result::ok).unwrap_or_default()
}

/// Claims a task, does it, reports to the lead, completes it. The owner of the body first completes it
/// without doing anything; the owner of the foot is so slow that it is killed, twice.
fn as_member(request: &ReceivedRequest, text: &str, way: Way) -> ReplyScript {
    if let Some(id) = stop_request(text) {
        if text.contains("\"recipients\":[\"lead\"],\"request_id\":\"") {
            return ReplyScript::reply("goodbye");
        }
        let given =
            json!({ "team_name": TEAM, "type": "shutdown_response", "request_id": id, "approve": true });
        return call(request, "SendMessage", given);
    }
    let (tool, result) = newest(request);
    let task = held(text);
    let complete = || {
        let given = json!({ "team_name": TEAM, "task_id": task["task_id"], "summary": "it is done" });
        call(request, "TaskComplete", given)
    };
    let tells = way == Way::Embedded && matches!(task["subject"].as_str(), Some("head" | "page"));
    match tool.as_str() {
        "TaskClaim" if result.contains("\"success\":false") => ReplyScript::reply("nothing is free"),
        "TaskClaim" if task["subject"] == "body" => complete(),
        "TaskClaim" => work(request, &task, text, way),
        "TaskComplete" if result.contains("check did not pass") => work(request, &task, text, way),
        "shell" if result.contains("unknown") => work(request, &task, text, way),
        "shell" if tells => {
            let given =
                json!({ "agent_id": "scribe", "task": "Say that the work is done.", "timeout_ms": 120_000 });
            call(request, "delegate_to_agent", given)
        }
        "delegate_to_agent" => {
            let given = json!({ "team_name": TEAM, "recipient": "lead", "content": free_text(&result) });
            call(request, "SendMessage", given)
        }
        "shell" | "SendMessage" => complete(),
        _ => call(request, "TaskClaim", json!({ "team_name": TEAM })),
    }
}

fn work(request: &ReceivedRequest, task: &Value, text: &str, way: Way) -> ReplyScript {
    let line = task["description"].as_str().unwrap_or_default();
    let killed = text.matches("took effect is unknown").count();
    let command = match sleeps(way).get(killed).filter(|_| task["subject"] == "foot") {
        Some(long) => format!("sleep {long}"),
        None => line.to_owned(),
    };
    call(request, "shell", json!({ "command": command, "timeout_seconds": 120 }))
}

/// The scribe's text in the result of the delegation.
fn free_text(result: &str) -> String {
    let start = result.find('{').unwrap_or_default();
    let answer = serde_json::Deserializer::from_str(&result[start..]).into_iter::<Value>().next();
    let answer = answer.and_then(Result::ok).unwrap_or_default();
    answer["response"].as_str().unwrap_or_default().to_owned()
}

fn as_checker(request: &ReceivedRequest) -> ReplyScript {
    match newest(request) {
        (tool, _) if tool.is_empty() => call(request, "read_file", json!({ "path": "body.txt" })),
        (_, content) if content.contains("<body>") => ReplyScript::reply("PASS: the body is there."),
        _ => ReplyScript::reply("FAIL: there is no body."),
    }
}

/// The program of this test that sleeps this long, if it runs.
fn find_sleep_program(long: &str) -> Option<u32> {
    let line = format!("sleep\0{long}\0");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|found| found == line.as_bytes()))
}

async fn asleep(long: &str) -> u32 {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(pid) = find_sleep_program(long) {
            return pid;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nobody works on the foot");
}

/// Waits until the head and the body are done and checked: an interrupted check is repeated and would be counted twice.
async fn wait_until_other_tasks_are_done(stage: &Stage) {
    let ledger = stage.ledger();
    let began = Instant::now();
    while ledger.count("SELECT COUNT(*) FROM tasks WHERE state = 'completed'") < 2 {
        assert!(began.elapsed() < PATIENCE, "the head and the body are not done");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The worker process above a program.
fn worker_of(program: u32) -> i32 {
    let mut pid = program;
    while !fs::read(format!("/proc/{pid}/cmdline")).unwrap().ends_with(b"\0worker\0") {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        pid = stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(pid > 1, "no worker process is above it");
    }
    i32::try_from(pid).unwrap()
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

struct Told {
    stage: Stage,
    model: ModelServer,
}

/// Runs the whole scenario; `weights` is the folder of the embedded model.
async fn tell(way: Way, weights: Option<&Path>) -> Told {
    let model = ModelServer::start();
    model.answer_with(move |request| {
        let text = said(request);
        match who(&text).as_str() {
            _ if request.system_prompt().contains("You are Checker") => as_checker(request),
            "lead" => as_lead(request, &text),
            _ => as_member(request, &text, way),
        }
    });
    let keeps = if way == Way::OnPostgres { Keeps::Server } else { Keeps::Files };
    let stage = Stage::new(keeps, &model, AGENTS, 1).await;
    let home = stage.home();
    if let Some(weights) = weights {
        pull(home, weights);
    }
    let mut daemon = home.start(None).await;
    daemon.say(LEAD, "build me a page", 0).await.unwrap();
    let [first, second] = sleeps(way);
    asleep(&first).await;
    wait_until_other_tasks_are_done(&stage).await;
    daemon.kill();
    let daemon = home.start(None).await;
    kill(worker_of(asleep(&second).await));
    let began = Instant::now();
    while !stage.is_over() {
        assert!(began.elapsed() < PATIENCE, "the team does not end: {}", standing(&model));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(daemon);
    Told { stage, model }
}

/// The model's last input, for failure messages.
fn standing(model: &ModelServer) -> String {
    let last: Vec<String> = model.requests().iter().rev().take(3).map(|request| said(request)).collect();
    last.join("\n----\n")
}

fn pull(home: &Home, weights: &Path) {
    let mut pull = Command::new(env!("CARGO_BIN_EXE_polyclaw"));
    pull.args(["model", "pull", "smollm2-135m", "--from"]).arg(weights).env("POLYCLAW_HOME", &home.0);
    let ran = pull.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Asserts that the page is right, that its parts were done and checked once, that the lead was notified, and that all is cleaned up.
fn assert_page_is_built(notice: &Told, way: Way) {
    let stage = &notice.stage;
    assert_eq!(fs::read_to_string(stage.home().0.join("workspace/page.txt")).unwrap(), PAGE);
    let (database, ledger) = (stage.sessions(), stage.last_ledger());
    let done = "SELECT COUNT(*) FROM tasks WHERE state = 'completed'";
    let ended = "SELECT COUNT(*) FROM task_events WHERE kind = 'completed'";
    assert_eq!((ledger.count(done), ledger.count(ended)), (4, 4), "each task once");
    let unverified = "SELECT COUNT(*) FROM task_events WHERE kind = 'unverified' AND task_no = 2";
    assert_eq!(ledger.count(unverified), 1, "one check failed, by the checker");
    let checks = "SELECT COUNT(*) FROM runs WHERE agent_id = 'checker' AND status = 'ok'";
    assert_eq!(database.count(checks), 2, "it was called again");
    let announces = format!(
        "SELECT COUNT(*) FROM messages WHERE idempotency_key LIKE 'announce:%' AND session_key = '{LEAD}'"
    );
    let announced = database.count(&announces);
    assert_eq!(announced, 4, "the lead is notified of each once");
    let text = "SELECT COUNT(*) FROM messages WHERE role = 'assistant' AND text LIKE 'The page is built%'";
    assert_eq!(database.count(text), 1, "the lead reports the result once");
    let open = "SELECT COUNT(*) FROM members WHERE state <> 'closed'";
    assert_eq!(database.count(open), 0, "all have left");
    let left = sleeps(way).into_iter().find(|long| find_sleep_program(long).is_some());
    assert_eq!(left, None, "no program is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn team_builds_page_despite_failed_check_and_killed_worker() {
    assert_page_is_built(&tell(Way::Scripted, None).await, Way::Scripted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn team_on_postgres_builds_page_despite_kills() {
    assert_page_is_built(&tell(Way::OnPostgres, None).await, Way::OnPostgres);
}

/// The same, with unscripted messages between the members.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn team_with_embedded_model_builds_page() {
    let weights = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.tools/model");
    assert!(weights.join("smollm2.gguf").exists(), "`scripts/need.sh rust` fetches the weights");
    let notice = tell(Way::Embedded, Some(&weights)).await;
    assert_page_is_built(&notice, Way::Embedded);
    let database = notice.stage.sessions();
    let messages = database.rows(
        "SELECT state || '|' || content FROM team_messages WHERE kind = 'message' AND recipient = 'lead'",
    );
    assert_eq!(messages.len(), 2, "{messages:?}");
    let prompts: Vec<String> = notice.model.requests().iter().map(|request| said(request)).collect();
    for (state, content) in messages.iter().map(|line| line.split_once('|').unwrap()) {
        assert!(!content.trim().is_empty() && state == "read", "'{content}' is {state}");
        let shown = polyclaw_domain::team_message::escape_xml(content.lines().next().unwrap_or_default());
        assert!(prompts.iter().any(|text| who(text) == "lead" && text.contains(&shown)), "{shown}");
    }
    let wrote = "SELECT run_id || ' of ' || owner_key || ' ' || status FROM runs WHERE agent_id = 'scribe'";
    let wrote = database.rows(wrote);
    assert!(
        wrote.len() == 2 && wrote.iter().all(|run| run.ends_with("ok")),
        "by the embedded model: {wrote:#?} {}",
        standing(&notice.model)
    );
}
