//! Crashes, adoption, and the server's own end.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::plane::{Plane, is_alive, processes_of, signal, until};
use crate::sockets::Socket;

/// Maximum time until polling clients and listeners see a crash.
const SEEN: Duration = Duration::from_secs(10);

/// Kills an instance and waits until the crash is reported.
#[track_caller]
fn crash(plane: &Plane, socket: &mut Socket, name: &str, pid: i64) {
    let began = Instant::now();
    signal("KILL", pid);
    until(&|| format!("{name} is known to be dead"), || {
        plane.get(&format!("/instances/{name}")).body["pid"].as_i64() != Some(pid)
    });
    assert!(began.elapsed() < SEEN, "{name}: polling showed it after {:?}", began.elapsed());
    loop {
        let body = socket.until("status_changed")["instance"].clone();
        if body["name"] == name && body["pid"].as_i64() != Some(pid) {
            break;
        }
    }
    assert!(began.elapsed() < SEEN, "{name}: the listener got it after {:?}", began.elapsed());
}

#[test]
fn crashed_instance_is_detected_and_restarted() {
    let plane = Plane::new();
    let pid = plane.started("one")["pid"].as_i64().unwrap();
    let mut socket = Socket::open(&plane, "/ws/instances");
    crash(&plane, &mut socket, "one", pid);
    until(&|| "another runs".to_owned(), || {
        let now = plane.get("/instances/one").body;
        now["status"] == "running" && now["pid"].as_i64() != Some(pid)
    });
    let audit = plane.get("/audit").ok();
    let crash = audit["entries"].as_array().unwrap().iter().find(|entry| entry["action"] == "instance.crash");
    assert_eq!(crash.unwrap()["who"], "supervisor");
}

#[test]
fn crash_under_restart_policy_never_is_reported_not_restarted() {
    let plane = Plane::new();
    plane.create("one");
    let changed = plane.call("PATCH", "/instances/one", Some(json!({ "restart": "never" })), &[]).ok();
    assert_eq!(changed["restart"], "never");
    let pid = plane.start("one")["pid"].as_i64().unwrap();
    signal("KILL", pid);
    plane.until_status("one", "crashed");
    until(&|| "the reason is shown".to_owned(), || {
        plane.get("/instances/one").body["error"].as_str().is_some_and(|why| why.contains("signal: 9"))
    });
    assert_eq!(plane.get("/health").ok()["status"], "degraded");
    let stopped = plane.post("/instances/one/stop", json!({})).ok();
    assert_eq!(stopped["status"], "stopped", "a stopped instance stays down");
    // A clean exit is not a crash.
    plane.call("PATCH", "/instances/one", Some(json!({ "restart": "on-failure" })), &[]).ok();
    signal("TERM", plane.start("one")["pid"].as_i64().unwrap());
    plane.until_status("one", "stopped");
}

/// Five crashes with their pauses take longer than other tests.
#[test]
fn crash_loop_opens_breaker_until_manual_start() {
    let plane = Plane::new();
    plane.started("one");
    until(&|| "the breaker opens".to_owned(), || {
        let now = plane.get("/instances/one").body;
        if let Some(pid) = now["pid"].as_i64().filter(|pid| now["status"] == "running" && is_alive(*pid)) {
            signal("KILL", pid);
            until(&|| "it has ended".to_owned(), || !is_alive(pid));
        }
        now["status"] == "error"
    });
    let now = plane.get("/instances/one").body;
    assert!(now["error"].as_str().unwrap().contains("5 times"), "{now}");
    assert_eq!(plane.start("one")["status"], "running", "a manual start closes the breaker");
}

/// The server dies after recording a crash and before restarting the instance.
#[test]
fn crash_noted_by_killed_server_is_restarted_by_next_server() {
    let mut plane = Plane::new();
    let pid = plane.started("one")["pid"].as_i64().unwrap();
    plane.kill();
    signal("KILL", pid);
    until(&|| "it has ended".to_owned(), || !is_alive(pid));
    // Its last step is to remove the pid file.
    let registry = rusqlite::Connection::open(plane.home().join("cp/registry.db")).unwrap();
    registry.execute("UPDATE instances SET pid = NULL, pid_started = NULL", []).unwrap();
    plane.serve();
    let now = || plane.get("/instances/one").body;
    until(&|| format!("it runs again: {}", now()), || now()["status"] == "running");
    assert_ne!(now()["pid"].as_i64(), Some(pid));
}

#[test]
fn next_server_adopts_instances_of_a_killed_server() {
    const NAMES: [&str; 5] = ["one", "two", "three", "four", "five"];
    let mut plane = Plane::new();
    let pids = NAMES.map(|name| plane.started(name)["pid"].as_i64().unwrap());
    plane.kill();
    assert!(pids.iter().all(|pid| is_alive(*pid)), "instances keep running without the server");
    // As if it had died before recording the started processes.
    let registry = rusqlite::Connection::open(plane.home().join("cp/registry.db")).unwrap();
    registry.execute("UPDATE instances SET pid = NULL, pid_started = NULL", []).unwrap();
    plane.serve();
    let ready = Instant::now();
    let adopted = || -> i64 {
        let sql = "SELECT COUNT(*) FROM instances WHERE pid IS NOT NULL";
        registry.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    until(&|| format!("{} of {} are adopted", adopted(), NAMES.len()), || adopted() == 5);
    assert!(ready.elapsed() < SEEN, "it took {:?}", ready.elapsed());
    for (name, pid) in NAMES.iter().zip(&pids) {
        let now = plane.get(&format!("/instances/{name}")).ok();
        assert_eq!((now["status"].as_str(), now["pid"].as_i64()), (Some("running"), Some(*pid)), "{name}");
        plane.get(&format!("/instances/{name}/gateway/sessions")).ok();
    }
    // A crash of an adopted instance is detected too.
    let mut socket = Socket::open(&plane, "/ws/instances");
    crash(&plane, &mut socket, "one", pids[0]);
    until(&|| "another runs".to_owned(), || {
        let now = plane.get("/instances/one").body;
        now["status"] == "running" && now["pid"].as_i64() != Some(pids[0])
    });
    let stopped = plane.post("/instances/two/stop", json!({})).ok();
    assert_eq!(
        (&stopped["status"], is_alive(pids[1])),
        (&json!("stopped"), false),
        "an adopted one can be stopped"
    );
}

/// A daemon was started by hand on the folder of an instance whose desired state is stopped.
#[test]
fn manually_started_daemon_is_adopted_and_stopped_by_archive() {
    let plane = Plane::new();
    let folder = plane.folder(&plane.create("one"));
    let mut command = plane.command(&["daemon"]);
    command.env("POLYCLAW_HOME", &folder).stdout(Stdio::null()).stderr(Stdio::null());
    let mut daemon = command.spawn().unwrap();
    let registry = rusqlite::Connection::open(plane.home().join("cp/registry.db")).unwrap();
    let noted =
        || -> Option<u32> { registry.query_row("SELECT pid FROM instances", [], |row| row.get(0)).unwrap() };
    until(&|| format!("it is adopted: {:?}", noted()), || noted() == Some(daemon.id()));
    let now = plane.get("/instances/one").ok();
    assert_eq!((&now["status"], now["pid"].as_u64()), (&json!("running"), Some(daemon.id().into())));
    assert_eq!(plane.post("/instances/one/start", json!({})).refusal(), (409, "instance_running"));
    assert_eq!(plane.post("/instances/one/archive", json!({})).ok()["status"], "archived");
    assert!(!is_alive(daemon.id().into()), "the running process counts, not the desired state");
    daemon.wait().unwrap();
}

#[test]
fn supervisor_waits_while_lifecycle_lock_is_held() {
    let plane = Plane::new();
    let started = plane.started("one");
    let folder = plane.folder(&started);
    let lock = std::fs::File::create(folder.join("lifecycle.lock")).unwrap();
    lock.lock().unwrap();
    signal("KILL", started["pid"].as_i64().unwrap());
    plane.until_status("one", "crashed");
    // The supervisor checks every five seconds.
    std::thread::sleep(Duration::from_secs(7));
    assert_eq!((plane.status("one").as_str(), processes_of(&folder).len()), ("crashed", 0));
    assert!(folder.join("daemon.pid").exists(), "it is unchanged");
    drop(lock);
    plane.until_status("one", "running");
}

#[test]
fn instances_are_listed_with_their_actual_status() {
    let plane = Plane::new();
    let health = plane.get("/health").ok();
    assert_eq!((&health["status"], &health["instances"]), (&json!("ok"), &json!([])));
    let working = plane.started("working");
    plane.create("resting");
    assert_eq!(plane.get("/health").ok()["status"], "ok", "a stopped instance is not missing");
    plane.create("lost");
    plane.call("PATCH", "/instances/lost", Some(json!({ "restart": "never" })), &[]).ok();
    signal("KILL", plane.start("lost")["pid"].as_i64().unwrap());
    plane.until_status("lost", "crashed");
    let expected = [("working", "running"), ("resting", "stopped"), ("lost", "crashed")];
    let shown = |list: &Value| -> Vec<(String, String)> {
        let word = |one: &Value, name: &str| one[name].as_str().unwrap().to_owned();
        list.as_array().unwrap().iter().map(|one| (word(one, "name"), word(one, "status"))).collect()
    };
    let expected: Vec<_> = expected.map(|(name, status)| (name.to_owned(), status.to_owned())).into();
    let health = plane.get("/health").ok();
    assert_eq!(shown(&plane.get("/instances").ok()["instances"]), expected);
    assert_eq!(shown(&health["instances"]), expected);
    assert_eq!(shown(&plane.run(&["instances", "list"]).1["ok"]["instances"]), expected);
    assert_eq!((&health["status"], &health["instances"][0]["pid"]), (&json!("degraded"), &working["pid"]));
}

#[test]
fn instance_that_died_without_server_is_restarted() {
    let mut plane = Plane::new();
    let pid = plane.started("one")["pid"].as_i64().unwrap();
    plane.create("resting");
    plane.kill();
    signal("KILL", pid);
    plane.serve();
    plane.until_status("one", "running");
    assert_eq!(plane.status("resting"), "stopped", "that one should not run");
}

/// Maximum time until the server ends; twice that during an operation.
const ENDED: Duration = Duration::from_secs(5);

#[test]
fn server_shutdown_leaves_instances_running() {
    let mut plane = Plane::new();
    let pid = plane.started("one")["pid"].as_i64().unwrap();
    let (success, took) = plane.end();
    assert!(success && took < ENDED, "{success} {took:?}");
    assert!(is_alive(pid));
    assert!(!plane.home().join("cp/control.url").exists());
}

/// A call whose response was not read yet.
fn ask(plane: &Plane, path: &str) -> std::net::TcpStream {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", plane.port)).unwrap();
    let (port, token) = (plane.port, plane.token());
    let head = format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n");
    let body = "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    stream.write_all((head + body).as_bytes()).unwrap();
    stream
}

/// Whether a stopped process has a pending SIGTERM.
pub fn is_asked_to_end(pid: i64) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let waiting = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
    u64::from_str_radix(waiting.trim(), 16).unwrap() & (1 << 14) != 0
}

/// A caller waits for an instance that does not end, and a reader listens: neither delays the server's end, and the next
/// server completes the operation.
#[test]
fn server_shutdown_does_not_wait_for_pending_calls() {
    let mut plane = Plane::new();
    let pid = plane.started("one")["pid"].as_i64().unwrap();
    let mut socket = Socket::open(&plane, "/ws/instances");
    socket.next();
    signal("STOP", pid);
    let _waiting = ask(&plane, "/api/instances/one/stop?timeout=100");
    until(&|| "it was asked to end".to_owned(), || is_asked_to_end(pid));
    let (success, took) = plane.end();
    assert!(success && took < 2 * ENDED, "{success} {took:?}");
    assert_eq!(socket.close_code(), 1001);
    // The kernel wakes a stopped process when its session becomes orphaned; otherwise the test does.
    let _ = Command::new("kill").args(["-CONT", &pid.to_string()]).stderr(Stdio::null()).status();
    plane.serve();
    plane.until_status("one", "stopped");
    until(&|| "it has ended".to_owned(), || !is_alive(pid));
}
