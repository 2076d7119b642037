//! Logs over HTTP.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use serde_json::json;

use crate::plane::{Plane, until};

#[test]
fn log_is_read_by_tail_by_page_and_as_download() {
    let plane = Plane::new();
    let made = plane.create("one");
    let logs = plane.folder(&made).join("logs");
    let lines = |path: &str| plane.get(&format!("/instances/one/logs{path}")).ok()["lines"].clone();
    assert_eq!(lines(""), json!([]), "no log exists yet");
    assert_eq!(plane.get("/instances/one/logs/download").ok(), "");
    fs::write(logs.join("daemon.log.2"), "1\n2\n").unwrap();
    fs::write(logs.join("daemon.log.1"), "3\n4\n").unwrap();
    fs::write(logs.join("daemon.log"), "5\n").unwrap();
    assert_eq!(lines("?lines=3"), json!(["3", "4", "5"]));
    assert_eq!(lines("?lines=99999"), json!(["1", "2", "3", "4", "5"]));
    let page = plane.get("/instances/one/logs?mode=page&lines=3").ok();
    assert_eq!((&page["lines"], &page["has_more"]), (&json!(["1", "2", "3"]), &json!(true)));
    assert_eq!(page["retention"], json!({ "file_bytes": 10 << 20, "files_kept": 5 }));
    // The log is rotated between two pages: the second continues where the first ended.
    for n in (0..3).rev() {
        let name = |n: u32| if n == 0 { "daemon.log".to_owned() } else { format!("daemon.log.{n}") };
        fs::rename(logs.join(name(n)), logs.join(name(n + 1))).unwrap();
    }
    fs::write(logs.join("daemon.log"), "6\n").unwrap();
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(lines(&format!("?mode=page&lines=9&cursor={cursor}")), json!(["4", "5", "6"]));
    let whole = plane.get("/instances/one/logs/download").ok();
    assert_eq!(whole, "1\n2\n3\n4\n5\n6\n");
    for (path, expected) in [
        ("/instances/one/logs?mode=backwards", (400, "invalid_parameter")),
        ("/instances/one/logs?lines=0", (400, "invalid_parameter")),
        ("/instances/one/logs?mode=page&cursor=..%2f..", (400, "invalid_parameter")),
        ("/instances/nobody/logs", (404, "unknown_instance")),
        ("/instances/nobody/logs/download", (404, "unknown_instance")),
    ] {
        assert_eq!(plane.get(path).refusal(), expected, "{path}");
    }
}

#[test]
fn daemon_rotates_its_own_full_log() {
    let plane = Plane::new();
    let made = plane.create("one");
    let log = plane.folder(&made).join("logs/daemon.log");
    // Almost full: the daemon's first lines exceed the limit.
    let file = fs::File::create(&log).unwrap();
    file.set_len((10 << 20) - 10).unwrap();
    drop(file);
    plane.start("one");
    let aside = log.with_extension("log.1");
    until(&|| "the log is rotated".to_owned(), || aside.exists() && log.exists());
    assert!(fs::metadata(&aside).unwrap().size() >= 10 << 20);
    // Later lines are in the new file.
    plane.post("/instances/one/stop", json!({})).ok();
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains("drain"), "{text}");
}

#[test]
fn start_appends_to_log_and_rotates_a_full_one() {
    let plane = Plane::new();
    let made = plane.create("one");
    let log = plane.folder(&made).join("logs/daemon.log");
    let aside = |n: u32| log.with_extension(format!("log.{n}"));
    fs::write(aside(1), "earlier\n").unwrap();
    fs::write(&log, "before\n").unwrap();
    plane.start("one");
    plane.post("/instances/one/restart", json!({})).ok();
    plane.post("/instances/one/stop", json!({})).ok();
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.starts_with("before\n") && text.matches("ready url=").count() == 2, "{text}");
    assert_eq!(fs::read_to_string(aside(1)).unwrap(), "earlier\n", "no start overwrites a rotated log");
    fs::File::create(&log).unwrap().set_len(10 << 20).unwrap();
    plane.start("one");
    assert_eq!(fs::metadata(aside(1)).unwrap().size(), 10 << 20);
    assert_eq!(fs::read_to_string(aside(2)).unwrap(), "earlier\n");
    assert!(fs::metadata(&log).unwrap().size() < 10 << 20);
}

#[test]
fn command_line_follows_log_over_rotation_and_saves_it() {
    let plane = Plane::new();
    let log = plane.folder(&plane.create("one")).join("logs/daemon.log");
    fs::write(&log, "1\n2\n3\n").unwrap();
    let mut command = plane.command(&["instances", "logs", "one", "-n", "2", "-f"]);
    let mut follower = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.by_ref().take(2).collect::<Vec<_>>(), ["2", "3"]);
    fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(b"4\n").unwrap();
    assert_eq!(lines.next().as_deref(), Some("4"));
    fs::rename(&log, log.with_extension("log.1")).unwrap();
    fs::write(&log, "5\n").unwrap();
    assert_eq!(lines.next().as_deref(), Some("5"));
    follower.kill().unwrap();
    follower.wait().unwrap();
    let copy = plane.dir.path().join("copy.log");
    let (code, saved) = plane.run(&["instances", "logs", "one", "--save", copy.to_str().unwrap()]);
    assert_eq!((code, &saved["ok"]["bytes"]), (0, &json!(10)));
    assert_eq!(fs::read_to_string(copy).unwrap(), "1\n2\n3\n4\n5\n");
}
