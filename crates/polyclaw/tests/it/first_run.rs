//! The first start makes a home that only its owner can look into.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::fixture::{Home, until};

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_first_start_makes_the_home_for_its_owner_alone() {
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
fn token_and_node_stay_the_same_across_starts() {
    let home = Home::new();
    let read = |name: &str| fs::read_to_string(home.path().join(name)).unwrap();
    let mut daemon = home.daemon();
    let before = (read("token"), read("node"));
    daemon.signal("TERM");
    assert!(daemon.ended().success());
    assert!(!home.path().join("daemon.pid").exists(), "a clean end takes the pid away");
    let _daemon = home.daemon();
    assert_eq!((read("token"), read("node")), before);
}

#[test]
fn a_token_of_the_environment_wins() {
    let home = Home::new();
    let _daemon = {
        let mut command = home.command(&["daemon", "--port", &home.port.to_string()]);
        command.env("POLYCLAW_TOKEN", "mine").stderr(Stdio::null());
        Started(command.spawn().unwrap())
    };
    until("the token opens it", || home.run(&["agents", "list", "--json", "--token", "mine"]).code == 0);
    let refused = home.run(&["agents", "list", "--json", "--token", "another"]);
    assert_eq!(refused.error(), (1, "unauthorized".into()));
}

struct Started(std::process::Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn up_says_where_it_is_and_which_model_answers_and_a_second_one_says_so_too() {
    let home = Home::new();
    home.write_config("");
    let mut command = home.command(&["up", "--json"]);
    command.env("OPENAI_API_KEY", "key").stdout(Stdio::piped()).stderr(Stdio::null());
    let mut up = Started(command.spawn().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(up.0.stdout.take().unwrap()), &mut line)
        .unwrap();
    let said: serde_json::Value = serde_json::from_str(&line).unwrap();
    let token = fs::read_to_string(home.path().join("token")).unwrap();
    let link = format!("http://127.0.0.1:{}/?token={}", home.port, token.trim());
    assert_eq!(said["ok"]["link"], link);
    assert!(said["ok"]["model"].as_str().unwrap().contains("OPENAI_API_KEY"), "{said}");
    let second = home.run(&["up"]);
    assert_eq!(second.code, 0);
    assert!(
        second.stdout.contains(&link) && second.stdout.contains(&up.0.id().to_string()),
        "{}",
        second.stdout
    );
}
