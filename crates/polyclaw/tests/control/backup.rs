//! Backup of a running home, and restore.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::plane::{Plane, free_port, put, until};

const CANARY: &str = "canary-81c9aa";

/// A control plane with a running instance that has a conversation and some files.
fn busy(files: usize) -> (Plane, Value) {
    let plane = Plane::new();
    let home = plane.dir.path().join("there");
    put(&home, "openclaw.json", r#"{ "agents": { "list": [{ "id": "main" }] } }"#);
    put(&home, "agents/main/sessions/sessions.json", r#"{ "agent:main:main": { "sessionId": "s" } }"#);
    put(&home, "agents/main/sessions/s.jsonl", r#"{"role":"user","content":"remember the plum"}"#);
    put(&home, "workspace/Cargo.lock", "a file of an agent");
    (0..files).for_each(|number| put(&home, &format!("workspace/many/{number}.txt"), "x"));
    let made =
        plane.post("/import/openclaw", json!({ "path": home, "name": "one", "port": free_port() })).ok();
    let instance = made["instance"].clone();
    put(&plane.folder(&instance), "workspace/note.txt", CANARY);
    let patch = json!({ "channels": { "webhook": { "ci": { "secret": CANARY } } } });
    let etag = plane.get("/instances/one/config").etag.unwrap();
    let leave = [("if-match", etag.as_str()), ("x-allow-secret-write", "true")];
    plane.call("PATCH", "/instances/one/config", Some(patch), &leave).ok();
    plane.start("one");
    (plane, instance)
}

fn copied(plane: &Plane, to: &Path) -> (i32, Value) {
    plane.run(&["backup", &to.display().to_string()])
}

/// A plane on a home that was restored from a backup.
fn restored(from: &Path) -> (Plane, i32, Value) {
    let plane = Plane::idle();
    let (exit, answer) = plane.run(&["restore", &from.display().to_string()]);
    (plane, exit, answer)
}

#[test]
fn backup_of_running_home_restores_to_a_working_home() {
    let (plane, instance) = busy(3);
    let to = plane.dir.path().join("copy");
    let (exit, made) = copied(&plane, &to);
    assert_eq!(exit, 0, "{made}");
    assert_eq!(made["ok"]["sum"]["instances"], 1, "{made}");
    assert!(!made.to_string().contains(CANARY), "the manifest has no content");
    assert!(!fs::read_to_string(to.join("backup.json")).unwrap().contains(CANARY));
    let token = plane.token();
    assert!(!fs::read_to_string(to.join("backup.json")).unwrap().contains(&token));
    let passing: Vec<PathBuf> = walk(&to)
        .into_iter()
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.ends_with("-wal") || name.ends_with(".pid") || name == "daemon.log"
        })
        .collect();
    assert!(passing.is_empty(), "{passing:?}");
    assert_eq!(copied(&plane, &to).1["error"]["code"], "already_exists", "nothing is overwritten");
    let (mut other, exit, answer) = restored(&to);
    assert_eq!(exit, 0, "{answer}");
    assert_eq!(other.run(&["restore", &to.display().to_string()]).1["error"]["code"], "already_exists");
    drop(plane);
    other.serve();
    let place = other.folder(&instance);
    assert_eq!(fs::read_to_string(place.join("workspace/Cargo.lock")).unwrap(), "a file of an agent");
    other.until_status("one", "running");
    let transcript = "/instances/one/gateway/sessions/agent%3Amain%3Amain/transcript";
    until(&|| format!("the conversation is restored: {}", other.get(transcript).body), || {
        other.get(transcript).body.to_string().contains("remember the plum")
    });
    assert_eq!(other.run(&["audit", "verify"]).1["ok"]["intact"], true);
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

type Damage = fn(&Path);

#[test]
fn damaged_backup_is_not_restored() {
    let (plane, _) = busy(1);
    let damages: [(&str, Damage); 3] = [
        ("was changed", |copy| {
            fs::write(walk(copy).into_iter().find(|path| path.ends_with("note.txt")).unwrap(), "y").unwrap();
        }),
        ("is missing", |copy| fs::remove_file(copy.join("cp/token")).unwrap()),
        ("is not listed", |copy| fs::write(copy.join("more"), "z").unwrap()),
    ];
    for (number, (why, damage)) in damages.into_iter().enumerate() {
        let to = plane.dir.path().join(format!("copy-{number}"));
        assert_eq!(copied(&plane, &to).0, 0);
        damage(&to);
        let (other, exit, answer) = restored(&to);
        assert_eq!((exit, &answer["error"]["code"]), (2, &json!("backup_damaged")), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(why), "{answer}");
        assert!(!other.home().exists(), "nothing was restored");
    }
    assert_eq!(restored(&plane.dir.path().join("nowhere")).2["error"]["code"], "backup_not_found");
}

/// Killed halfway, neither leaves anything that looks complete, and the next attempt succeeds.
#[test]
fn killed_backup_or_restore_leaves_nothing_that_looks_complete() {
    let (plane, instance) = busy(800);
    let to = plane.dir.path().join("copy");
    let target =
        |home: &Path| home.join("cp/instances").join(instance["id"].as_str().unwrap()).join("workspace/many");
    kill_once_files_are_copied(
        &plane,
        &["backup", &to.display().to_string()],
        &target(&plane.dir.path().join("copy.unfinished")),
        &to,
    );
    assert!(!to.exists());
    let (exit, answer) = copied(&plane, &to);
    assert_eq!(exit, 0, "{answer}");
    let other = Plane::idle();
    let from = to.display().to_string();
    kill_once_files_are_copied(
        &other,
        &["restore", &from],
        &target(&other.dir.path().join("home.unfinished")),
        &other.home(),
    );
    assert!(!other.home().exists());
    let (exit, answer) = other.run(&["restore", &from]);
    assert_eq!(exit, 0, "{answer}");
    assert_eq!(fs::read_dir(target(&other.home())).unwrap().count(), 800);
    assert!(!other.dir.path().join("home.unfinished").exists());
}

/// Runs a command and kills it once it has copied something. If it was faster, its result is removed and it is retried.
fn kill_once_files_are_copied(plane: &Plane, args: &[&str], many: &Path, made: &Path) {
    for _ in 0..20 {
        let mut child = plane.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Polled without a pause, because a fast machine finishes quickly.
        while !fs::read_dir(many).is_ok_and(|files| files.count() > 10) && child.try_wait().unwrap().is_none()
        {
            std::thread::yield_now();
        }
        let _ = child.kill();
        child.wait().unwrap();
        if !made.exists() {
            return;
        }
        fs::remove_dir_all(made).unwrap();
    }
    panic!("it always finished before it could be killed");
}
