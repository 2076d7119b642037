//! Start, stop and restart, and their errors.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::plane::{Plane, free_port, is_alive, processes_of, signal, until};
use crate::supervisor::is_asked_to_end;

#[test]
fn instance_is_created_started_stopped_and_restarted() {
    let plane = Plane::new();
    let made = plane.create("one");
    assert_eq!((&made["status"], &made["pid"]), (&json!("stopped"), &json!(null)));
    let started = plane.start("one");
    let pid = started["pid"].as_i64().unwrap();
    assert_eq!(started["status"], "running");
    let folder = plane.folder(&made);
    assert_eq!(fs::read_to_string(folder.join("daemon.pid")).unwrap().trim(), pid.to_string());
    let group = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let group: i64 = group.rsplit_once(") ").unwrap().1.split(' ').nth(2).unwrap().parse().unwrap();
    assert_eq!(group, pid, "it has a process group of its own");
    for (file, mode) in [("config.toml", 0o600), ("token", 0o600), ("logs/daemon.log", 0o600), ("", 0o700)] {
        assert_eq!(fs::metadata(folder.join(file)).unwrap().permissions().mode() & 0o777, mode, "{file}");
    }
    assert_eq!(plane.post("/instances/one/start", json!({})).refusal(), (409, "instance_running"));
    let stopped = plane.post("/instances/one/stop", json!({})).ok();
    assert_eq!((&stopped["status"], is_alive(pid)), (&json!("stopped"), false));
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "it was reaped: there is no zombie");
    assert!(!folder.join("daemon.pid").exists());
    let again = plane.post("/instances/one/restart", json!({})).ok();
    assert_eq!(again["status"], "running", "a restart works from stopped");
    let other = plane.post("/instances/one/restart", json!({})).ok();
    assert_ne!((&again["pid"], &other["status"]), (&other["pid"], &json!("stopped")));
    assert_eq!(processes_of(&folder).len(), 1, "no other process is left");
}

#[test]
fn invalid_lifecycle_calls_return_specific_codes() {
    let plane = Plane::new();
    plane.create("one");
    for (path, expected) in [
        ("/instances/one/stop", (409, "instance_not_running")),
        ("/instances/nobody/start", (404, "unknown_instance")),
        ("/instances/nobody/stop", (404, "unknown_instance")),
        ("/instances/nobody/restart", (404, "unknown_instance")),
        ("/instances/%2e%2e%2fetc/start", (404, "unknown_instance")),
        ("/instances/one/unarchive", (409, "not_in_archive")),
        ("/instances/one/stop?timeout=9999", (400, "invalid_parameter")),
    ] {
        assert_eq!(plane.post(path, json!({})).refusal(), expected, "{path}");
    }
    let refused = plane.post("/instances/nobody/start", json!({}));
    assert!(refused.body["error"]["message"].as_str().unwrap().contains("nobody"));
}

#[test]
fn lifecycle_calls_are_refused_while_lock_is_held() {
    let plane = Plane::new();
    let made = plane.create("one");
    let lock = fs::File::create(plane.folder(&made).join("lifecycle.lock")).unwrap();
    lock.lock().unwrap();
    for verb in ["start", "stop", "restart", "archive"] {
        let refused = plane.post(&format!("/instances/one/{verb}"), json!({}));
        assert_eq!(refused.refusal(), (503, "instance_busy"), "{verb}");
    }
    drop(lock);
    plane.start("one");
}

/// Archiving stops the instance first, without a gap for other operations.
#[test]
fn instance_being_archived_cannot_be_started() {
    let plane = Plane::new();
    let started = plane.started("one");
    let pid = started["pid"].as_i64().unwrap();
    signal("STOP", pid);
    let archived = std::thread::scope(|scope| {
        let archiving = scope.spawn(|| plane.post("/instances/one/archive?timeout=5", json!({})).ok());
        until(&|| "it was asked to end".to_owned(), || is_asked_to_end(pid));
        for verb in ["start", "restart"] {
            let refused = plane.post(&format!("/instances/one/{verb}"), json!({}));
            assert_eq!(refused.refusal(), (503, "instance_busy"), "{verb}");
        }
        archiving.join().unwrap()
    });
    assert_eq!((&archived["status"], is_alive(pid)), (&json!("archived"), false));
    assert_eq!(plane.post("/instances/one/start", json!({})).refusal(), (409, "instance_archived"));
    assert!(processes_of(&plane.folder(&started)).is_empty());
}

#[test]
fn failed_start_returns_log_lines_and_leaves_no_process() {
    let plane = Plane::new();
    let made = plane.create("one");
    let folder = plane.folder(&made);
    // The daemon fails when it opens its database.
    fs::create_dir_all(folder.join("memory/sessions.db")).unwrap();
    let refused = plane.post("/instances/one/start", json!({}));
    assert_eq!(refused.refusal(), (502, "start_failed"));
    let lines = refused.body["error"]["details"]["log"].as_array().unwrap();
    assert!(lines.iter().any(|line| line.as_str().unwrap().contains("error:")), "{lines:?}");
    assert!(processes_of(&folder).is_empty() && !folder.join("daemon.pid").exists());
    assert_eq!(plane.status("one"), "stopped", "a failed start is not retried");
    // A config that cannot be read is rejected before anything runs.
    fs::write(folder.join("config.toml"), "gatway = 1\n").unwrap();
    assert_eq!(plane.post("/instances/one/start", json!({})).refusal(), (400, "bad_config"));
}

#[test]
fn start_on_a_port_in_use_is_refused() {
    let plane = Plane::new();
    let made = plane.create("one");
    let _listener =
        std::net::TcpListener::bind(("127.0.0.1", u16::try_from(made["port"].as_u64().unwrap()).unwrap()))
            .unwrap();
    assert_eq!(plane.post("/instances/one/start", json!({})).refusal(), (409, "port_in_use"));
    assert_eq!(processes_of(&plane.folder(&made)), Vec::<i64>::new());
}

#[test]
fn foreign_process_in_pid_file_is_never_signalled() {
    let plane = Plane::new();
    let made = plane.create("one");
    let folder = plane.folder(&made);
    // It even uses the same home, but is not a daemon.
    let mut other =
        Command::new("sleep").arg("600").env("POLYCLAW_HOME", &folder).stdin(Stdio::null()).spawn().unwrap();
    fs::write(folder.join("daemon.pid"), format!("{}\n", other.id())).unwrap();
    assert_eq!(plane.status("one"), "stale-pid");
    assert_eq!(plane.post("/instances/one/stop", json!({})).refusal(), (409, "pid_mismatch"));
    assert!(is_alive(other.id().into()));
    let started = plane.post("/instances/one/start", json!({})).ok();
    assert_eq!(started["status"], "running");
    assert_ne!(started["pid"].as_u64(), Some(other.id().into()));
    // Its pid belongs to another process while it should run: it counts as ended and is restarted.
    plane.post("/instances/one/stop", json!({})).ok();
    fs::write(folder.join("daemon.pid"), format!("{}\n", other.id())).unwrap();
    plane.post("/instances/one/archive", json!({})).ok();
    assert!(is_alive(other.id().into()), "archiving does not signal it either");
    other.kill().unwrap();
    other.wait().unwrap();
}

/// The pid of an ended process, as after a power cut.
#[test]
fn stale_pid_file_does_not_block_start_or_stop() {
    let plane = Plane::new();
    let made = plane.create("one");
    let file = plane.folder(&made).join("daemon.pid");
    let mut dead = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    dead.wait().unwrap();
    let left_behind = || fs::write(&file, format!("{}\n", dead.id())).unwrap();
    left_behind();
    assert_eq!(plane.status("one"), "crashed");
    assert_eq!(plane.post("/instances/one/stop", json!({})).ok()["status"], "stopped");
    assert!(!file.exists(), "the pid is forgotten");
    left_behind();
    let started = plane.start("one");
    assert_eq!(started["status"], "running");
    assert_eq!(fs::read_to_string(&file).unwrap().trim(), started["pid"].to_string());
    plane.post("/instances/one/stop", json!({})).ok();
    left_behind();
    assert_eq!(plane.post("/instances/one/restart", json!({})).ok()["status"], "running");
    assert_eq!(processes_of(&plane.folder(&made)).len(), 1);
}

#[test]
fn unresponsive_instance_is_killed_at_stop_timeout() {
    let plane = Plane::new();
    let started = plane.started("one");
    let pid = started["pid"].as_i64().unwrap();
    signal("STOP", pid);
    let stopped = plane.post("/instances/one/stop?timeout=1", json!({})).ok();
    assert_eq!((&stopped["status"], is_alive(pid)), (&json!("stopped"), false));
}

#[test]
fn second_control_plane_of_one_home_is_refused() {
    let plane = Plane::new();
    let (code, reply) = plane.run(&["control", "serve", "--port", &free_port().to_string()]);
    assert_eq!((code, reply["error"]["code"].as_str()), (4, Some("control_running")));
    assert!(reply["error"]["message"].as_str().unwrap().contains(&plane.pid().to_string()));
}

/// Root may inspect everything, so if the test runs as root, the server runs as nobody. Process 1 belongs to root.
#[test]
fn unsignalable_process_in_pid_file_counts_as_alive() {
    let mut plane = Plane::idle();
    plane.serve_as_nobody();
    let made = plane.create("one");
    fs::write(plane.folder(&made).join("daemon.pid"), "1\n").unwrap();
    assert_eq!(plane.status("one"), "unknown");
    assert_eq!(plane.post("/instances/one/start", json!({})).refusal(), (409, "instance_running"));
    for verb in ["stop", "restart", "archive"] {
        let refused = plane.post(&format!("/instances/one/{verb}"), json!({}));
        assert_eq!(refused.refusal(), (409, "pid_mismatch"), "{verb}");
    }
    fs::remove_file(plane.folder(&made).join("daemon.pid")).unwrap();
    assert_eq!(plane.start("one")["status"], "running");
}

#[test]
fn daemon_that_cannot_write_its_pid_file_exits() {
    let plane = Plane::new();
    let made = plane.create("one");
    let folder = plane.folder(&made);
    fs::create_dir_all(folder.join("daemon.pid/in the way")).unwrap();
    assert_eq!(plane.post("/instances/one/start", json!({})).refusal(), (502, "start_failed"));
    assert!(processes_of(&folder).is_empty(), "no unregistered process runs");
    assert_eq!(plane.status("one"), "stopped");
    fs::remove_dir_all(folder.join("daemon.pid")).unwrap();
    assert_eq!(plane.start("one")["status"], "running");
}
