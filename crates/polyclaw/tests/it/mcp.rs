//! Tools of a third-party MCP server on the real binary.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use polyclaw_testkit::model_server::{ModelServer, ReceivedRequest, ReplyScript};
use serde_json::{Value, json};

use crate::fixture::{Home, until};

/// The reference server of the MCP project.
pub fn everything() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/mcp/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let path = path.canonicalize();
    path.expect("the MCP server of the tests is missing: run `scripts/need.sh mcp`")
}

pub fn node() -> String {
    let found = Command::new("sh").args(["-c", "command -v node"]).output().unwrap();
    let path = String::from_utf8(found.stdout).unwrap().trim().to_owned();
    assert!(!path.is_empty(), "node is missing: run `scripts/need.sh mcp`");
    path
}

/// A home with the agents `main`, which has the server, and `ops`, which does not.
fn home(model: &ModelServer, server: &str) -> Home {
    let home = Home::new();
    home.write_config(&format!(
        r#"
[providers.lab]
kind = "openai_compatible"
base_url = "{}"
models = ["demo"]
[[agents.list]]
id = "main"
default = true
mcp = ["lab"]
tools.deny = ["mcp_lab_get-sum"]
[[agents.list]]
id = "ops"
[mcp.servers.lab]
approval = "never"
{server}
"#,
        model.url()
    ));
    home
}

/// The last argument marks this test's processes.
fn home_with_stdio_server(model: &ModelServer, mark: &str, rest: &str) -> Home {
    let server = format!("command = {:?}\nargs = [{:?}, \"stdio\", {mark:?}]\n{rest}", node(), everything());
    home(model, &server)
}

/// Processes with this word among their arguments.
fn running(mark: &str) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has = |pid: &i32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
    };
    pids.filter(has).collect()
}

fn kill(pid: i32) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

/// The result of one tool call in its own turn.
fn call(home: &Home, model: &ModelServer, agent: &str, tool: &str, arguments: Value) -> String {
    after_call(home, model, agent, tool, arguments).tool_results()[0].1.clone()
}

/// The model's input after one tool call in its own turn.
fn after_call(
    home: &Home,
    model: &ModelServer,
    agent: &str,
    tool: &str,
    arguments: Value,
) -> Arc<ReceivedRequest> {
    model.push(ReplyScript::new().call("c1", tool, arguments));
    model.push(ReplyScript::reply("done"));
    let ran = home.run(&["agent", "--agent", agent, "-m", "do it"]);
    assert_eq!(ran.stdout, "done\n", "{}", ran.stderr);
    model.last_request()
}

fn tools_shown(home: &Home, model: &ModelServer, agent: &str) -> Vec<String> {
    home.run(&["agent", "--agent", agent, "-m", "hi"]);
    let request = model.last_request();
    request.tool_names().into_iter().filter(|name| name.starts_with("mcp_")).map(str::to_owned).collect()
}

#[test]
fn mcp_tools_work_over_stdio_and_obey_policy() {
    let model = ModelServer::start();
    let home = home_with_stdio_server(
        &model,
        "mark-policy",
        "env = { LAB_KEY = \"canary-4711\" }\ntools.deny = [\"gzip*\"]",
    );
    let _daemon = home.daemon_with(&[("CANARY_OF_THE_DAEMON", "canary-0815")]);
    let shown = tools_shown(&home, &model, "main");
    assert!(shown.contains(&"mcp_lab_echo".to_owned()), "the first turn has them already: {shown:?}");
    for hidden in ["mcp_lab_get-sum", "mcp_lab_gzip-file-as-resource"] {
        assert!(!shown.contains(&hidden.to_owned()), "{shown:?}");
        let text = call(&home, &model, "main", hidden, json!({ "a": 1, "b": 2 }));
        let refused =
            text.contains("is on the deny list") || text == format!("There is no tool '{hidden}' here.");
        assert!(refused, "{text}");
    }
    assert_eq!(call(&home, &model, "main", "mcp_lab_echo", json!({ "message": "hello" })), "Echo: hello");
    let image = after_call(&home, &model, "main", "mcp_lab_get-tiny-image", json!({})).body().to_string();
    assert!(image.contains("[image, image/png, ") && !image.contains("not shown"), "{image}");
    assert!(image.contains("data:image/png;base64,"), "{image}");
    let wrong = call(&home, &model, "main", "mcp_lab_echo", json!({ "message": 1 }));
    assert!(wrong.contains("message"), "{wrong}");
    let env = call(&home, &model, "main", "mcp_lab_get-env", json!({}));
    assert!(env.contains("LAB_KEY") && env.contains("PATH"), "{env}");
    assert!(!env.contains("canary") && !env.contains("CANARY") && !env.contains("POLYCLAW"), "{env}");
    assert!(tools_shown(&home, &model, "ops").is_empty(), "an agent that does not name the server");
    let text = call(&home, &model, "ops", "mcp_lab_echo", json!({ "message": "hello" }));
    assert_eq!(text, "There is no tool 'mcp_lab_echo' here.");
    let explained = |tool: &str| home.run(&["--json", "tools", "explain", tool, "--agent", "ops"]).error();
    assert_eq!(explained("mcp_lab_echo"), (3, "server_not_named".to_owned()), "its owner gets the reason");
    assert_eq!(explained("mcp_lab_nothing"), (3, "unknown_tool".to_owned()));
}

#[test]
fn killed_mcp_server_is_reported_and_restarted() {
    let model = ModelServer::start();
    let home = home_with_stdio_server(&model, "mark-death", "");
    let _daemon = home.daemon();
    assert_eq!(call(&home, &model, "main", "mcp_lab_echo", json!({ "message": "one" })), "Echo: one");
    let tool = "mcp_lab_trigger-long-running-operation";
    model.push(ReplyScript::new().call("c1", tool, json!({ "duration": 60, "steps": 60 })));
    model.push(ReplyScript::reply("I saw that."));
    let mut command = home.command(&["agent", "-m", "work"]);
    let mut asked = command.stdout(Stdio::piped()).spawn().unwrap();
    until("the long call runs", || {
        let transcript = home.run(&["sessions", "export", "agent:main:main"]).stdout;
        transcript.contains(tool)
    });
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    let pids = running("mark-death");
    assert_eq!(pids.len(), 1, "{pids:?}");
    kill(pids[0]);
    assert!(asked.wait().unwrap().success());
    let text = model.last_request().tool_results()[0].1.clone();
    assert!(text.contains("the connection to the MCP server 'lab' was lost during this call"), "{text}");
    until("it is started again", || {
        home.run(&["mcp", "list", "--json"]).ok()["servers"][0]["state"] == "ready"
    });
    assert_eq!(call(&home, &model, "main", "mcp_lab_echo", json!({ "message": "two" })), "Echo: two");
    assert_eq!(home.run(&["mcp", "list", "--json"]).ok()["servers"][0]["restarts"], 1);
}

#[test]
fn mcp_server_does_not_outlive_the_daemon() {
    let model = ModelServer::start();
    let home = home_with_stdio_server(&model, "mark-orphan", "");
    let mut daemon = home.daemon();
    until("the server runs", || running("mark-orphan").len() == 1);
    daemon.kill();
    until("the kill ended the server too", || running("mark-orphan").is_empty());
    let mut daemon = home.daemon();
    until("the server runs", || home.run(&["mcp", "list", "--json"]).ok()["servers"][0]["state"] == "ready");
    daemon.signal("TERM");
    assert!(daemon.ended().success());
    assert!(running("mark-orphan").is_empty(), "drained");
}

#[test]
fn mcp_progress_extends_a_call_and_silence_times_it_out() {
    let model = ModelServer::start();
    let home = home_with_stdio_server(&model, "mark-stop", "timeout_seconds = 2");
    let _daemon = home.daemon();
    let tool = "mcp_lab_trigger-long-running-operation";
    let slow = call(&home, &model, "main", tool, json!({ "duration": 4, "steps": 8 }));
    assert!(slow.contains("completed"), "longer than the idle timeout, but never idle: {slow}");
    let silent = call(&home, &model, "main", tool, json!({ "duration": 30, "steps": 1 }));
    assert!(silent.contains("it sent nothing for 2 s"), "{silent}");
    assert_eq!(call(&home, &model, "main", "mcp_lab_echo", json!({ "message": "still" })), "Echo: still");
}

/// A separate server that ends with its test.
struct Http(Child);

impl Http {
    fn start(port: u16) -> Self {
        let mut command = Command::new(node());
        command.args([everything().as_os_str(), "streamableHttp".as_ref()]).env("PORT", port.to_string());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("the server listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self(child)
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn mcp_tools_work_over_http_and_recover_after_restart() {
    let port = polyclaw_testkit::free_port();
    let server = Http::start(port);
    let model = ModelServer::start();
    let rest = format!("url = \"http://127.0.0.1:{port}/mcp\"\nheaders = {{ X-Key = \"canary-4711\" }}");
    let home = home(&model, &rest);
    let _daemon = home.daemon();
    assert_eq!(call(&home, &model, "main", "mcp_lab_echo", json!({ "message": "one" })), "Echo: one");
    drop(server);
    let text = call(&home, &model, "main", "mcp_lab_echo", json!({ "message": "two" }));
    assert!(text.contains("the MCP server 'lab'"), "{text}");
    let _server = Http::start(port);
    until("it is found again", || {
        call(&home, &model, "main", "mcp_lab_echo", json!({ "message": "three" })) == "Echo: three"
    });
}

#[test]
fn mcp_servers_are_listed_and_checked_and_seen_by_doctor() {
    let model = ModelServer::start();
    let home = home_with_stdio_server(
        &model,
        "mark-check",
        "[mcp.servers.broken]\ncommand = \"/nowhere/at-all\"\nstart_seconds = 5\n",
    );
    let one = home.run(&["mcp", "check", "lab", "--json"]).ok();
    assert!(one["servers"][0]["tools"].as_array().unwrap().len() > 5, "{one}");
    assert!(running("mark-check").is_empty(), "a check leaves nothing behind");
    let all = home.run(&["mcp", "check", "--json"]);
    assert_eq!(all.error(), (1, "mcp_server".into()));
    assert!(all.stdout.contains("/nowhere/at-all"), "{}", all.stdout);
    assert_eq!(home.run(&["mcp", "check", "none", "--json"]).error(), (3, "unknown_mcp_server".into()));
    let doctor = home.run(&["doctor"]).stdout;
    assert!(doctor.contains("broken: "), "{doctor}");
    let _daemon = home.daemon();
    until("the server is ready", || {
        home.run(&["mcp", "list", "--json"]).ok()["servers"][1]["state"] == "ready"
    });
    let table = home.run(&["mcp"]).stdout;
    assert!(table.contains("idle") && table.contains("main"), "no agent lists the broken server: {table}");
}

#[test]
fn unknown_mcp_server_of_an_agent_is_a_config_error() {
    let home = Home::new();
    home.write_config("[[agents.list]]\nid = \"main\"\nmcp = [\"githib\"]\n[mcp.servers.github]\nurl = \"https://x.example\"\n[mcp.servers.a_b]\ncommand = \"x\"\nurl = \"https://x.example\"\n");
    let text = home.run(&["config", "check"]).stderr;
    assert!(text.contains("there is no MCP server \"githib\"") && text.contains("github"), "{text}");
    assert!(
        text.contains("is not a valid name for an MCP server") && text.contains("both command and url"),
        "{text}"
    );
}

#[test]
fn changed_mcp_tools_are_sanitized_and_stop_is_forwarded() {
    let model = ModelServer::start();
    let script =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp/growing.mjs").canonicalize().unwrap();
    everything();
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("note");
    let server = format!(
        "command = {:?}\nargs = [{script:?}, {note:?}]\nenv = {{ LAB_KEY = \"canary-4711\" }}\nwritable = [{:?}]",
        node(),
        folder.path()
    );
    let home = home(&model, &server);
    let log = std::fs::File::create(home.path().join("log")).unwrap();
    let mut command = home.command(&["daemon", "--port", &home.port.to_string()]);
    let mut daemon = command.stderr(log.try_clone().unwrap()).stdout(log).spawn().unwrap();
    until("the daemon responds", || home.run(&["status", "--json"]).code == 0);
    let shown = tools_shown(&home, &model, "main");
    assert_eq!(shown.len(), 3, "{shown:?}");
    let body = model.last_request().body().to_string();
    assert!(body.contains("evil[2J xxx") && body.len() < 20_000, "{} bytes", body.len());
    assert!(!body.contains('\u{202e}') && !body.contains("\\u001b"));
    assert!(shown.iter().all(|name| name.len() <= 64), "{shown:?}");
    let odd = shown.iter().find(|name| name.contains("odd_name__nnn")).unwrap();
    assert_eq!(call(&home, &model, "main", odd, json!({})), "odd");
    assert_eq!(call(&home, &model, "main", "mcp_lab_grow", json!({})), "grown");
    until("the new tool is seen", || {
        tools_shown(&home, &model, "main").contains(&"mcp_lab_fresh".to_owned())
    });
    assert_eq!(call(&home, &model, "main", "mcp_lab_fresh", json!({})), "fresh text");
    model.push(ReplyScript::new().call("c1", "mcp_lab_wait", json!({})));
    let mut asked = home.command(&["agent", "-m", "wait"]).stderr(Stdio::null()).spawn().unwrap();
    let noted = |word: &str| std::fs::read_to_string(&note).is_ok_and(|text| text == word);
    until("the call runs", || noted("waiting"));
    home.run(&["sessions", "stop", "agent:main:main", "--json"]).ok();
    until("the server was notified", || noted("stopped"));
    asked.wait().unwrap();
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    let log = std::fs::read_to_string(home.path().join("log")).unwrap();
    assert!(log.contains("my key is ***") && !log.contains("canary"), "{log}");
}
