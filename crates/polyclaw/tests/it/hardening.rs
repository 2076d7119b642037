//! Unsafe settings are reported, deep nesting ends no process, no text controls a terminal, and no temporary file stays.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use serde_json::{Value, json};

use crate::fixture::{Home, until};

/// The status line and the body of a response.
fn request(home: &Home, head: &str, body: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", home.port)).unwrap();
    let token = fs::read_to_string(home.path().join("token")).unwrap_or_default();
    write!(
        stream,
        "{head} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        home.port,
        token.trim(),
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

fn codes(status: &Value) -> Vec<&str> {
    status["warnings"].as_array().unwrap().iter().filter_map(|one| one["code"].as_str()).collect()
}

#[test]
fn unsafe_settings_are_reported_by_doctor_and_log_and_api() {
    let model = ModelServer::start();
    let rest = "[tools]\napproval = \"never\"\n[agents.defaults.sandbox]\nmode = \"off\"\n";
    let home = Home::with_model_and(&model, rest);
    let doctor = home.run(&["doctor"]).stdout;
    assert!(doctor.contains("run without a sandbox") && doctor.contains("without approval"), "{doctor}");
    let log = fs::File::create(home.path().join("log")).unwrap();
    let mut command = home.command(&["daemon", "--port", &home.port.to_string()]);
    let mut daemon = command.stderr(log.try_clone().unwrap()).stdout(log).spawn().unwrap();
    until("the daemon responds", || home.run(&["status", "--json"]).code == 0);
    let (head, body) = request(&home, "GET /api/v1/status", "");
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    assert!(head.contains("200"), "{head}");
    let status: Value = serde_json::from_str(&body).unwrap();
    let found = codes(&status);
    assert!(found.contains(&"shell_unasked") && found.contains(&"sandbox_off"), "{status}");
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(found.contains(&"running_as_root"), is_root, "{status}");
    let log = fs::read_to_string(home.path().join("log")).unwrap();
    assert!(log.contains("unsafe setting") && log.contains("without approval"), "{log}");
    assert_eq!(log.contains("runs as root"), is_root, "{log}");
}

#[test]
fn deeply_nested_input_is_refused_without_a_crash() {
    let model = ModelServer::start();
    let script = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp/probe_server.py");
    let rest = format!(
        "[[agents.list]]\nid = \"main\"\ndefault = true\nmcp = [\"lab\"]\n[mcp.servers.lab]\n\
         command = \"/usr/bin/python3\"\nargs = [{:?}]\napproval = \"never\"\ntimeout_seconds = 3\n",
        script.canonicalize().unwrap()
    );
    let home = Home::with_model_and(&model, &rest);
    let deep = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
    // An import, a config of both kinds.
    let other = home.path().join("other");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("openclaw.json"), format!("{{ a: {} }}", deep(1_500_000))).unwrap();
    let import = home.run(&["migrate", "from-openclaw", other.to_str().unwrap(), "--dry-run"]);
    assert!(import.code > 0 && import.code < 100, "{} {}", import.code, import.stderr);
    assert!(import.stderr.contains("nested too deeply"), "{}", import.stderr);
    let config = fs::read_to_string(home.path().join("config.toml")).unwrap();
    for text in [
        format!("{{ a: {} }}", deep(100_000)),
        format!("a = {}", deep(100_000)),
        format!("{}b = 1", "a.".repeat(500_000)),
    ] {
        fs::write(home.path().join("config.toml"), text).unwrap();
        let check = home.run(&["config", "check"]);
        assert!(check.code > 0 && check.code < 100, "{}", check.code);
        assert!(check.stderr.contains("nested too deeply"), "{}", check.stderr);
    }
    fs::write(home.path().join("config.toml"), config).unwrap();
    // A body, tool arguments, a server's response, a model's answer.
    let _daemon = home.daemon();
    let (head, _) = request(&home, "POST /api/v1/agents", &deep(100_000));
    assert!(head.contains(" 4"), "{head}");
    let mut nested = json!(1);
    for _ in 0..100 {
        nested = json!([nested]);
    }
    model.push(ReplyScript::new().call("c1", "mcp_lab_probe", json!({ "read": nested })));
    model.push(ReplyScript::new().call("c2", "mcp_lab_deep", json!({})));
    model.push(ReplyScript::reply("still here"));
    let ran = home.run(&["agent", "-m", "go"]);
    assert_eq!(ran.stdout, "still here\n", "{}", ran.stderr);
    model.push(ReplyScript::reply("and here"));
    assert_eq!(home.run(&["agent", "-m", "again"]).stdout, "and here\n");
}

#[test]
fn recursive_include_in_import_is_refused() {
    let home = Home::new();
    let other = home.path().join("other");
    fs::create_dir_all(&other).unwrap();
    let names: Vec<String> = (0..10).map(|n| format!("{n}.json")).collect();
    let all = json!({ "$include": names }).to_string();
    fs::write(other.join("openclaw.json"), &all).unwrap();
    for name in &names {
        fs::write(other.join(name), &all).unwrap();
    }
    let import = home.run(&["migrate", "from-openclaw", other.to_str().unwrap(), "--dry-run"]);
    assert!(import.code > 0, "{}", import.stdout);
    assert!(
        import.stderr.contains("files are included") || import.stderr.contains("too deeply"),
        "{}",
        import.stderr
    );
}

/// Runs the binary in a pseudo-terminal.
fn on_terminal(home: &Home, args: &[&str]) -> String {
    let words: Vec<String> = args.iter().map(|word| format!("'{word}'")).collect();
    let line = format!("'{}' {}", env!("CARGO_BIN_EXE_polyclaw"), words.join(" "));
    let ran = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env_clear()
        .env("POLYCLAW_HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .env("POLYCLAW_NO_PULL", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

#[test]
fn control_characters_are_escaped_on_a_terminal() {
    let model = ModelServer::start();
    let home =
        Home::with_model_and(&model, "[[agents.list]]\nid = \"main\"\ndescription = \"a\\u202Eb\\u009Bc\"\n");
    let _daemon = home.daemon();
    model.push(ReplyScript::reply("evil\u{9b}31m \u{202e}text\u{2066}"));
    let reply = on_terminal(&home, &["agent", "-m", "hi"]);
    let shown = [
        reply,
        on_terminal(&home, &["sessions", "export", "agent:main:main"]),
        on_terminal(&home, &["sessions", "show", "agent:main:main"]),
        on_terminal(&home, &["agents", "show", "main"]),
        on_terminal(&home, &["agents", "show", "main", "--json"]),
    ];
    for text in &shown {
        assert!(!text.contains(['\u{9b}', '\u{202e}', '\u{2066}']), "{text:?}");
    }
    assert!(shown[0].contains("<U+202E>"), "{:?}", shown[0]);
    assert!(shown[1].contains("\\u009b") && shown[1].contains("\\u202e"), "{:?}", shown[1]);
    // A pipe gets the text unchanged.
    let piped = home.run(&["sessions", "export", "agent:main:main"]).stdout;
    assert!(piped.contains('\u{202e}'), "{piped}");
}

#[test]
fn temporary_files_of_a_killed_daemon_are_removed() {
    let model = ModelServer::start();
    let home = Home::with_model(&model);
    let below = home.path().join("workspace/deep");
    fs::create_dir_all(&below).unwrap();
    let left = below.join(".polyclaw-99999999-0.tmp");
    fs::write(&left, "half").unwrap();
    let _daemon = home.daemon();
    until("it is removed", || !left.exists());
}
