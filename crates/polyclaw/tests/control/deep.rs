//! Files of agents must not block an operation on an instance: very deep folders, and folders without permissions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use serde_json::json;

use crate::plane::{Plane, put};

/// Nested folders, deeper than the longest path.
fn make_chain(top: &Path, (depth, name): (usize, &str)) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = rustix::fs::openat(CWD, top, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        rustix::fs::mkdirat(&at, name, Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, name, flags, Mode::empty()).unwrap();
    }
}

#[test]
fn instance_with_very_deep_folder_is_deleted() {
    let plane = Plane::new();
    let one = plane.create("one");
    // Deep enough to overflow the stack of a recursive removal.
    make_chain(&plane.folder(&one).join("workspace"), (25_000, "dddddddddddddddddddd"));
    plane.post("/instances/one/archive", json!({})).ok();
    plane.delete("/instances/one").ok();
    assert_eq!(fs::read_dir(plane.home().join("cp/instances")).unwrap().count(), 0);
    assert_eq!(plane.get("/instances").ok()["instances"], json!([]));
}

#[test]
fn backup_lists_too_deep_folders_as_left_out() {
    let plane = Plane::new();
    let workspace = plane.folder(&plane.create("one")).join("workspace");
    make_chain(&workspace, (400, "dddddddddddddddddddd"));
    put(&workspace, "note.txt", "kept");
    let to = plane.dir.path().join("copy");
    let (exit, made) = plane.run(&["backup", &to.display().to_string()]);
    assert_eq!(exit, 0, "{made}");
    let left_out = made["ok"]["left_out"].as_array().unwrap();
    assert!(
        left_out.len() == 1 && left_out[0]["path"].as_str().unwrap().contains("workspace/ddd"),
        "{left_out:?}"
    );
    let restored = Plane::idle();
    let (exit, answer) = restored.run(&["restore", &to.display().to_string()]);
    assert_eq!(exit, 0, "{answer}");
}

#[test]
fn unprivileged_backup_copies_files_without_permissions() {
    let mut plane = Plane::idle();
    plane.serve_as_nobody();
    let workspace = plane.folder(&plane.create("one")).join("workspace");
    put(&workspace, "closed/file", "kept");
    put(&workspace, "shut", "kept too");
    let closed = fs::Permissions::from_mode(0o000);
    fs::set_permissions(workspace.join("shut"), closed.clone()).unwrap();
    fs::set_permissions(workspace.join("closed"), closed).unwrap();
    plane.give_to_user(&workspace);
    let to = plane.dir.path().join("copy");
    let (exit, made) = plane.run(&["backup", &to.display().to_string()]);
    assert_eq!(exit, 0, "{made}");
    let files = made["ok"]["files"].to_string();
    assert!(files.contains("workspace/closed/file") && files.contains("workspace/shut"), "{files}");
}
