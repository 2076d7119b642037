//! The first start creates a home that only its owner can read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::fixture::{Home, until};

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn first_start_creates_home_with_owner_only_permissions() {
    let home = Home::new();
    let _daemon = home.daemon();
    let at = |name: &str| home.path().join(name);
    for folder in ["", "workspace", "memory"] {
        assert_eq!(mode(&at(folder)), 0o700, "{folder}");
    }
    for file in ["token", "config.toml", "node", "daemon.pid"] {
        assert_eq!(mode(&at(file)), 0o600, "{file}");
    }
    let token = fs::read_to_string(at("token")).unwrap();
    assert!(token.trim().len() == 64 && token.trim().bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(fs::read_to_string(at("config.toml")).unwrap().contains("schema = 1"));
}

#[test]
fn token_and_node_id_are_kept_across_restarts() {
    let home = Home::new();
    let read = |name: &str| fs::read_to_string(home.path().join(name)).unwrap();
    let mut daemon = home.daemon();
    let before = (read("token"), read("node"));
    daemon.signal("TERM");
    assert!(daemon.ended().success());
    assert!(!home.path().join("daemon.pid").exists(), "a clean exit removes the pid file");
    let _daemon = home.daemon();
    assert_eq!((read("token"), read("node")), before);
}

#[test]
fn environment_token_takes_precedence() {
    let home = Home::new();
    let _daemon = {
        let mut command = home.command(&["daemon", "--port", &home.port.to_string()]);
        command.env("POLYCLAW_TOKEN", "mine").stderr(Stdio::null());
        Started(command.spawn().unwrap())
    };
    until("the token is accepted", || home.run(&["agents", "list", "--json", "--token", "mine"]).code == 0);
    let refused = home.run(&["agents", "list", "--json", "--token", "another"]);
    assert_eq!(refused.error(), (1, "unauthorized".into()));
}

struct Started(std::process::Child);

/// Ended cleanly: `up` stops its instance too.
impl Drop for Started {
    fn drop(&mut self) {
        let _ = std::process::Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

#[test]
fn up_prints_link_and_model_also_when_already_running() {
    let home = Home::new();
    home.write_config("");
    let mut command = home.command(&["up", "--json"]);
    command.env("OPENAI_API_KEY", "key").stdout(Stdio::piped()).stderr(Stdio::null());
    let mut up = Started(command.spawn().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(up.0.stdout.take().unwrap()), &mut line)
        .unwrap();
    let reply: serde_json::Value = serde_json::from_str(&line).unwrap();
    let place = format!("http://127.0.0.1:{}/?code=", home.port);
    assert!(reply["ok"]["link"].as_str().unwrap().starts_with(&place), "{reply}");
    assert!(reply["ok"]["model"].as_str().unwrap().contains("OPENAI_API_KEY"), "{reply}");
    let second = home.run(&["--json", "up"]).ok();
    let (fleet, first) = (second["control"].as_str().unwrap(), reply["ok"]["control"].as_str().unwrap());
    let place_of = |link: &str| link.split_once("/?code=").map(|(place, _)| place.to_owned()).unwrap();
    assert!(place_of(fleet) == place_of(first) && fleet != first, "{second}");
    let second = home.run(&["up"]);
    assert_eq!(second.code, 0);
    assert!(second.stdout.contains("fleet"), "{}", second.stdout);
    assert!(
        second.stdout.contains(&place) && second.stdout.contains(&up.0.id().to_string()),
        "{}",
        second.stdout
    );
}

#[test]
fn browser_is_opened_with_one_time_link_without_token() {
    let home = Home::new();
    home.write_config("");
    let tools = tempfile::tempdir().unwrap();
    let (opener, seen) = (tools.path().join("xdg-open"), tools.path().join("seen"));
    fs::write(&opener, format!("#!/bin/sh\necho \"$@\" > {0}.part; mv {0}.part {0}\n", seen.display()))
        .unwrap();
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = home.command(&["up", "--open"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", tools.path().display())).stdout(Stdio::null());
    let _up = Started(command.spawn().unwrap());
    until("the browser is started", || seen.exists());
    let (link, token) =
        (fs::read_to_string(&seen).unwrap(), fs::read_to_string(home.path().join("token")).unwrap());
    assert!(link.contains("/?code=") && !link.contains(token.trim()), "{link}");
    let opened = |link: &str| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        let (place, code) = link.trim().split_once("/?code=").unwrap();
        let asked = http.build().unwrap().post(format!("{place}/login"));
        let answer = runtime.block_on(asked.json(&serde_json::json!({ "code": code })).send()).unwrap();
        (answer.status().as_u16(), answer.headers().contains_key("set-cookie"))
    };
    assert_eq!((opened(&link), opened(&link)), ((201, true), (401, false)));
}
