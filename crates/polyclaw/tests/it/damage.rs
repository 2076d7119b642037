//! Damaged homes: the damage is reported, and the rest works.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::fixture::{Home, command, ran};

#[test]
fn damaged_memory_store_is_reported_in_status() {
    let home = Home::new();
    let memory = home.path().join("memory");
    fs::create_dir_all(&memory).unwrap();
    fs::write(memory.join("brain.db"), vec![7; 8192]).unwrap();
    let _daemon = home.daemon();
    let status = home.run(&["status"]);
    assert_eq!(status.code, 0, "{}", status.stderr);
    assert!(status.stdout.contains("session(s)"), "{}", status.stdout);
    assert!(status.stdout.contains("cannot read memories"), "{}", status.stdout);
    let listed = home.run(&["memory", "list"]);
    assert!(listed.stderr.contains("hint:") && listed.stderr.contains("doctor"), "{}", listed.stderr);
}

#[test]
fn world_readable_secrets_key_is_reported_and_fixed() {
    let home = Home::new();
    let value = home.path().join("value");
    fs::create_dir_all(home.path()).unwrap();
    fs::write(&value, "correct horse battery staple\n").unwrap();
    let set = || {
        let mut set = home.command(&["--json", "secrets", "set", "lab"]);
        set.env_remove("DBUS_SESSION_BUS_ADDRESS").stdin(fs::File::open(&value).unwrap());
        ran(set)
    };
    set().ok();
    let key = home.path().join("secrets.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(home.run(&["--json", "secrets", "check"]).ok()["key_open_to_others"], true);
    assert!(home.run(&["doctor"]).stdout.contains("other users can read the key"), "doctor says so too");
    home.run(&["doctor", "--fix"]);
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    fs::remove_file(&key).unwrap();
    let lost = set();
    assert_eq!(lost.error(), (1, "secrets_locked".to_owned()));
    assert!(lost.stdout.contains("delete secrets.json"), "{}", lost.stdout);
    fs::remove_file(home.path().join("secrets.json")).unwrap();
    set().ok();
}

#[test]
fn symlinked_home_is_resolved() {
    let (home, folder) = (Home::new(), tempfile::tempdir().unwrap());
    fs::create_dir_all(home.path()).unwrap();
    let link = folder.path().join("link");
    symlink(home.path(), &link).unwrap();
    let listed = ran(command(&link, &["--json", "model", "list"])).ok();
    let path = listed[0]["path"].as_str().unwrap();
    assert!(path.starts_with(home.path().canonicalize().unwrap().to_str().unwrap()), "{path}");
}

#[test]
fn memory_import_for_unknown_agent_is_refused() {
    let home = Home::new();
    let _daemon = home.daemon();
    let file = home.path().join("notes.md");
    fs::write(&file, "- likes tea\n").unwrap();
    let import =
        |agent: &str| home.run(&["--json", "memory", "import", file.to_str().unwrap(), "--agent", agent]);
    assert_eq!(import("nosuch").error(), (3, "unknown_agent".to_owned()));
    assert_eq!(import("main").ok()["stored"], 1);
}
