//! Units of the system's service manager. `systemctl` is a fake that records its arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;

use crate::plane::Plane;

fn run(plane: &Plane, args: &[&str]) -> (i32, Value) {
    let bin = plane.dir.path().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let log = plane.dir.path().join("calls");
    let program = bin.join("systemctl");
    if !program.exists() {
        fs::write(&program, format!("#!/bin/sh\necho \"$@\" >> '{}'\n", log.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = plane.command(&[&["service"], args, &["--json"]].concat());
    command.env("HOME", plane.dir.path()).env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let output = command.output().unwrap();
    let value = serde_json::from_slice(&output.stdout);
    (output.status.code().unwrap(), value.unwrap_or_else(|_| panic!("{output:?}")))
}

fn calls(plane: &Plane) -> String {
    fs::read_to_string(plane.dir.path().join("calls")).unwrap_or_default()
}

#[test]
#[cfg(target_os = "linux")]
fn systemd_unit_is_installed_queried_and_uninstalled() {
    let plane = Plane::idle();
    let (exit, shown) = run(&plane, &["install", "--dry-run"]);
    let path = PathBuf::from(shown["ok"]["path"].as_str().unwrap());
    let text = shown["ok"]["text"].as_str().unwrap();
    assert_eq!((exit, path.exists(), calls(&plane).as_str()), (0, false, ""), "a dry run changes nothing");
    assert!(path.starts_with(plane.dir.path().join(".config/systemd/user")), "{path:?}");
    assert!(text.contains(&format!("Environment=\"POLYCLAW_HOME={}\"", plane.home().display())), "{text}");
    assert!(text.contains("\" control\n") && text.contains("KillMode=process"), "{text}");
    let (exit, made) = run(&plane, &["install", "--allow-root"]);
    assert_eq!((exit, fs::read_to_string(&path).unwrap().as_str()), (0, text), "{made}");
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(calls(&plane), format!("--user daemon-reload\n--user enable --now {name}\n"));
    assert_eq!(run(&plane, &["status"]).1["ok"]["state"], "running");
    let (exit, gone) = run(&plane, &["uninstall", "--allow-root"]);
    assert_eq!((exit, path.exists()), (0, false), "{gone}");
    assert!(calls(&plane).ends_with(&format!("--user disable --now {name}\n")));
    assert_eq!(run(&plane, &["status"]).1["ok"]["state"], "absent");
}

#[test]
#[cfg(target_os = "linux")]
fn foreign_systemd_unit_is_not_overwritten_and_root_must_confirm() {
    let plane = Plane::idle();
    let path = PathBuf::from(run(&plane, &["install", "--dry-run"]).1["ok"]["path"].as_str().unwrap());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "[Unit]\n").unwrap();
    for verb in ["install", "uninstall"] {
        let (exit, refused) = run(&plane, &[verb, "--allow-root"]);
        assert_eq!((exit, refused["error"]["code"].as_str()), (4, Some("already_exists")), "{verb}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "[Unit]\n");
    fs::remove_file(&path).unwrap();
    // Installing for root needs an explicit flag; for other users it does not.
    let is_root =
        fs::metadata("/proc/self").map(|found| std::os::unix::fs::MetadataExt::uid(&found)).unwrap() == 0;
    let dry =
        plane.command(&["service", "install", "--dry-run"]).env("HOME", plane.dir.path()).output().unwrap();
    assert_eq!(
        String::from_utf8(dry.stdout).unwrap().contains("--allow-root"),
        is_root,
        "a dry run shows the note too"
    );
    let (exit, _) = run(&plane, &["install", "--no-start"]);
    assert_eq!((exit != 0, path.exists()), (is_root, !is_root));
    assert_eq!(calls(&plane), "");
}
