//! Instance management from the command line, and `up`.

use std::fs;
use std::io::BufRead;
use std::process::{Child, Stdio};

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use serde_json::{Value, json};

use crate::plane::{Plane, free_port, is_alive, signal, until};

#[test]
fn every_instance_verb_works_from_the_command_line() {
    let plane = Plane::new();
    let port = free_port().to_string();
    let run = |args: &[&str]| plane.run(&[&["instances"], args].concat());
    let (code, made) = run(&["create", "one", "--port", &port]);
    assert_eq!((code, &made["ok"]["status"]), (0, &json!("stopped")));
    for (args, status) in [
        (vec!["start", "one"], "running"),
        (vec!["restart", "one"], "running"),
        (vec!["status", "one"], "running"),
        (vec!["stop", "one", "--timeout", "20"], "stopped"),
        (vec!["archive", "one"], "archived"),
        (vec!["unarchive", "one"], "stopped"),
    ] {
        let (code, reply) = run(&args);
        assert_eq!((code, &reply["ok"]["status"]), (0, &json!(status)), "{args:?} {reply}");
    }
    let (_, logs) = run(&["logs", "one", "-n", "200"]);
    assert!(logs["ok"]["lines"].to_string().contains("ready"), "{logs}");
    let (code, _) = run(&["clone", "one", "two", "--port", &free_port().to_string()]);
    assert_eq!(code, 0);
    let (_, listed) = run(&["list"]);
    assert_eq!(listed["ok"]["instances"].as_array().unwrap().len(), 2);
    for (args, code, error) in [
        (vec!["start", "nobody"], 3, "unknown_instance"),
        (vec!["stop", "one"], 4, "instance_not_running"),
        (vec!["delete", "one"], 4, "not_archived"),
        (vec!["create", "one"], 4, "name_taken"),
        (vec!["create", "a b"], 2, "bad_name"),
        (vec!["create", "lab", "--model", "lab/m"], 2, "bad_config"),
        (vec!["config", "set", "one", "agents.defaults.model", "lab/m"], 2, "bad_config"),
    ] {
        let (found, reply) = run(&args);
        assert_eq!((found, reply["error"]["code"].as_str()), (code, Some(error)), "{args:?}");
        assert_ne!(reply["error"]["hint"], "start it first", "{args:?}");
    }
    run(&["archive", "two"]);
    assert_eq!(run(&["delete", "two"]).0, 0);
    let (code, token) = plane.run(&["control", "token", "make", "x", "--scope", "read"]);
    assert_eq!((code, &token["ok"]["scope"]), (0, &json!("read")));
    let nobody = Plane::idle();
    assert_eq!(nobody.run(&["instances", "list"]).0, 5, "fails without a control plane");
}

struct Up(Child);

impl Up {
    /// Ends it like Ctrl-C, with its instances.
    fn end(&mut self) {
        signal("INT", self.0.id().into());
        until(&|| "up ends".to_owned(), || self.0.try_wait().unwrap().is_some());
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn up(plane: &Plane, args: &[&str]) -> (Up, Value) {
    let mut child = plane
        .command(&[&["up", "--json"], args].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (Up(child), serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}")))
}

#[test]
fn up_adopts_home_as_first_instance_and_stops_it() {
    let model = ModelServer::start();
    ["one", "two"].iter().for_each(|text| model.push(ReplyScript::reply(*text).usage(10, 5)));
    let plane = Plane::idle();
    fs::create_dir_all(plane.home()).unwrap();
    let port = free_port();
    let config = format!(
        "schema = 1\n[gateway]\nport = {port}\n[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"demo\"]\n",
        model.url()
    );
    fs::write(plane.home().join("config.toml"), &config).unwrap();
    let (mut first, reply) = up(&plane, &[]);
    let place = format!("http://127.0.0.1:{port}/?code=");
    assert!(reply["ok"]["link"].as_str().is_some_and(|link| link.starts_with(&place)), "{reply}");
    assert!(reply["ok"]["control"].as_str().unwrap().starts_with(&plane.url()), "{reply}");
    let answered = plane.command(&["agent", "-m", "hi"]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&answered.stdout),
        "one\n",
        "commands of the home use its first instance"
    );
    let main = plane.get("/instances/main").ok();
    assert_eq!((&main["status"], main["port"].as_u64()), (&json!("running"), Some(port.into())));
    plane.run(&["instances", "create", "second", "--port", &free_port().to_string()]);
    let second = plane.get("/instances/second").ok();
    let folder = plane.folder(&second);
    let text = fs::read_to_string(folder.join("config.toml")).unwrap();
    let provider = config.split_once("[providers").unwrap().1;
    fs::write(folder.join("config.toml"), format!("{text}\n[providers{provider}")).unwrap();
    assert_eq!(plane.run(&["instances", "start", "second"]).0, 0);
    let reply = plane
        .post(
            "/instances/second/gateway/sessions/agent%3Amain%3Amain/messages?wait=20",
            json!({ "text": "hi" }),
        )
        .ok();
    assert_eq!(reply["reply"]["text"], "two", "{reply}");
    for name in ["main", "second"] {
        let usage = plane.get(&format!("/instances/{name}/usage")).ok();
        assert_eq!((&usage["request_count"], &usage["total_tokens"]), (&json!(1), &json!(15)), "{name}");
    }
    plane.create("idle");
    let (_, listed) = plane.run(&["instances", "list"]);
    let used = |name: &str| {
        let listed = listed["ok"]["instances"].as_array().unwrap();
        listed.iter().find(|one| one["name"] == name).unwrap()["usage"]["total_tokens"].clone()
    };
    assert_eq!(["main", "second", "idle"].map(used), [json!(15), json!(15), json!(null)], "{listed}");
    let output = plane.command(&["instances", "list"]).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    assert!(output.contains("TOKENS 24H  COST 24H") && output.contains(" 15 "), "{output}");
    let refused = [
        plane.post("/instances/main/archive", json!({})).status,
        plane.delete("/instances/main").refusal().0,
    ];
    assert_eq!(refused, [200, 409], "the home itself is not removed");
    plane.post("/instances/main/unarchive", json!({})).ok();
    plane.start("main");
    let pids: Vec<i64> = ["main", "second"]
        .iter()
        .map(|name| plane.get(&format!("/instances/{name}")).ok()["pid"].as_i64().unwrap())
        .collect();
    first.end();
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "Ctrl-C ends what it started");
    assert_eq!(
        fs::read_to_string(plane.home().join("config.toml")).unwrap(),
        config,
        "the home is as it was"
    );
    // The next one starts the instances that were running; with --detach they keep running.
    let (mut next, _) = up(&plane, &["--detach"]);
    plane.until_status("second", "running");
    let pid = plane.get("/instances/second").ok()["pid"].as_i64().unwrap();
    next.end();
    assert!(is_alive(pid));
}

#[test]
fn closing_terminal_of_up_stops_its_and_adopted_instances() {
    let plane = Plane::idle();
    fs::create_dir_all(plane.home()).unwrap();
    fs::write(plane.home().join("config.toml"), format!("[gateway]\nport = {}\n", free_port())).unwrap();
    let (first, _) = up(&plane, &[]);
    let pid = plane.get("/instances/main").ok()["pid"].as_i64().unwrap();
    drop(first);
    assert!(is_alive(pid), "a kill leaves it running");
    let (mut second, _) = up(&plane, &[]);
    assert_eq!(plane.get("/instances/main").ok()["pid"], pid, "the next one adopts it");
    for _ in 0..2 {
        signal("HUP", second.0.id().into());
    }
    until(&|| "up ends".to_owned(), || second.0.try_wait().unwrap().is_some());
    assert!(!is_alive(pid));
}

#[test]
fn new_instance_without_model_returns_a_hint() {
    let plane = Plane::new();
    for (name, has_main) in [("first", false), ("main", false), ("one", true)] {
        let made = plane.run(&["instances", "create", name, "--port", &free_port().to_string()]).1;
        let hint = made["ok"]["hint"].as_str().unwrap();
        assert!(hint.contains("sets no model"), "{made}");
        assert_eq!(hint.contains("instances clone main <new name>"), has_main, "{made}");
    }
    let port = free_port().to_string();
    let made = plane.run(&["instances", "create", "two", "--port", &port, "--model", "openai/gpt-x"]).1;
    assert_eq!((&made["ok"]["name"], &made["ok"]["hint"]), (&json!("two"), &json!(null)), "{made}");
}

#[test]
fn refused_config_edit_keeps_the_edited_text() {
    let plane = Plane::new();
    plane.create("one");
    let edit = |script: &str| {
        let editor = plane.dir.path().join("editor");
        fs::write(&editor, script).unwrap();
        let mut command = plane.command(&["--json", "instances", "config", "edit", "one"]);
        let ran = command.env("EDITOR", format!("sh {}", editor.display())).output().unwrap();
        let reply: serde_json::Value = serde_json::from_slice(&[ran.stdout, ran.stderr].concat()).unwrap();
        let hint = reply["error"]["hint"].as_str().unwrap().to_owned();
        let kept = hint.rsplit_once(" is saved in ").unwrap().1.to_owned();
        let text = fs::read_to_string(&kept).unwrap();
        fs::remove_file(kept).unwrap();
        (ran.status.code().unwrap(), reply["error"]["code"].clone(), text)
    };
    let (code, error, text) = edit("echo '[turns' > \"$1\"");
    assert_eq!((code, error, text.as_str()), (2, json!("config_not_toml"), "[turns\n"));
    // Another writer is faster.
    let folder = plane.folder(&plane.get("/instances/one").ok());
    let config = folder.join("config.toml");
    let (code, error, text) = edit(&format!("echo '# x' >> {}; echo '# mine' > \"$1\"", config.display()));
    assert_eq!((code, error, text.as_str()), (4, json!("etag_stale"), "# mine\n"));
}

#[test]
fn up_adopts_running_daemon_and_leaves_it_running() {
    let plane = Plane::idle();
    fs::create_dir_all(plane.home()).unwrap();
    let port = free_port();
    fs::write(plane.home().join("config.toml"), format!("[gateway]\nport = {port}\n")).unwrap();
    let mut daemon =
        Up(plane.command(&["daemon"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    until(&|| "the daemon responds".to_owned(), || plane.run(&["status"]).0 == 0);
    let (mut first, reply) = up(&plane, &[]);
    assert!(reply["ok"]["link"].as_str().unwrap().contains(&port.to_string()), "{reply}");
    assert_eq!(plane.get("/instances/main").ok()["pid"].as_u64(), Some(daemon.0.id().into()));
    first.end();
    assert!(is_alive(daemon.0.id().into()), "it was not started by up");
    daemon.end();
}
