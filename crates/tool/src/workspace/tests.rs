use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// `ws` is the workspace; `secret` next to it must never be reached.
fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join("ws/dir/deep")).unwrap();
    fs::create_dir(home.path().join("other")).unwrap();
    fs::write(home.path().join("ws/file"), "inside").unwrap();
    fs::write(home.path().join("other/secret"), "secret").unwrap();
    home
}

fn at(home: &TempDir, path: &str) -> Result<WorkspacePath> {
    resolve_path(&home.path().join("ws"), path)
}

#[test]
fn paths_outside_workspace_are_refused() {
    let home = home();
    let ws = home.path().join("ws");
    symlink("../other/secret", ws.join("to_secret")).unwrap();
    symlink(home.path().join("other"), ws.join("to_other")).unwrap();
    symlink("to_other", ws.join("twice")).unwrap();
    let sibling = home.path().join("ws2");
    fs::create_dir(&sibling).unwrap();
    let other = sibling.to_string_lossy().into_owned();
    for path in [
        "..",
        "../other/secret",
        "dir/../../other/secret",
        "./././../other",
        "/",
        "/etc/passwd",
        "/etc/passwd/below",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/no/such/folder",
        "to_secret",
        "to_other",
        "to_other/secret",
        "to_other/new",
        "twice/secret",
        "dir/../twice/secret",
        &other,
    ] {
        assert!(matches!(at(&home, path), Err(Error::Outside(_))), "{path}: {:?}", at(&home, path));
    }
}

#[test]
fn malformed_workspace_paths_are_refused() {
    let home = home();
    for path in ["missing/../file", "missing/../../other/secret", "a\0b", &"x/".repeat(3000)] {
        assert!(matches!(at(&home, path), Err(Error::Path { .. })), "{path:?}");
    }
}

#[test]
fn equivalent_workspace_paths_are_accepted() {
    let home = home();
    let ws = home.path().join("ws");
    symlink("dir/deep", ws.join("short")).unwrap();
    symlink(&ws, home.path().join("alias")).unwrap();
    let absolute = ws.join("file").to_string_lossy().into_owned();
    let aliased = home.path().join("alias/file").to_string_lossy().into_owned();
    for (path, inside) in [
        ("", ""),
        (".", ""),
        ("file", "file"),
        ("dir/../file", "file"),
        ("short/new", "dir/deep/new"),
        ("short/../../file", "file"),
        ("a/b/c", "a/b/c"),
        (&absolute, "file"),
        (&aliased, "file"),
    ] {
        assert_eq!(at(&home, path).unwrap().relative_path(), Path::new(inside), "{path}");
    }
}

#[test]
fn symlink_created_after_check_is_not_followed() {
    let home = home();
    let ws = home.path().join("ws");
    let file = at(&home, "file").unwrap();
    let deep = at(&home, "dir/secret").unwrap();
    fs::remove_file(ws.join("file")).unwrap();
    symlink("../other/secret", ws.join("file")).unwrap();
    fs::rename(ws.join("dir"), ws.join("old")).unwrap();
    symlink(home.path().join("other"), ws.join("dir")).unwrap();
    assert!(file.open_file().is_err());
    assert!(file.replace_file(b"changed").is_err());
    assert!(deep.open_file().is_err());
    assert!(deep.replace_file(b"changed").is_err());
    assert!(deep.open_folder().is_err());
    assert_eq!(fs::read(home.path().join("other/secret")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(home.path().join("other")).unwrap().count(), 1);
}

#[test]
fn dangling_symlink_is_not_written_through() {
    let home = home();
    let ws = home.path().join("ws");
    symlink("../other/new", ws.join("dangling")).unwrap();
    symlink("loop", ws.join("loop")).unwrap();
    for path in ["dangling", "loop", "loop/x", "dangling/x"] {
        assert!(at(&home, path).and_then(|place| place.replace_file(b"x")).is_err(), "{path}");
        assert!(at(&home, path).and_then(|place| place.open_file()).is_err(), "{path}");
    }
    assert!(!home.path().join("other/new").exists());
}

#[test]
fn workspace_is_created_on_first_use() {
    let home = home();
    let folder = home.path().join("agents/ops");
    resolve_path(&folder, "notes").unwrap().replace_file(b"mine").unwrap();
    assert_eq!(fs::read(folder.join("notes")).unwrap(), b"mine");
    for made in [&folder, folder.parent().unwrap()] {
        assert_eq!(fs::metadata(made).unwrap().permissions().mode() & 0o777, 0o700, "{made:?}");
    }
}

#[test]
fn workspace_that_cannot_be_created_is_an_error() {
    let home = home();
    fs::write(home.path().join("file"), b"in the way").unwrap();
    for folder in ["file", "file/ops"] {
        let found =
            resolve_path(&home.path().join(folder), ".").and_then(|place| place.open_folder().map(drop));
        assert!(matches!(found, Err(Error::Workspace(_))), "{folder}");
    }
}

#[test]
fn read_only_file_is_not_replaced() {
    let home = home();
    let path = home.path().join("ws/file");
    let mut rights = fs::metadata(&path).unwrap().permissions();
    rights.set_readonly(true);
    fs::set_permissions(&path, rights).unwrap();
    assert!(at(&home, "file").unwrap().replace_file(b"x").is_err());
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("a".to_owned()),
        Just("b".to_owned()),
        Just("c".to_owned()),
        Just("dir".to_owned()),
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just("other".to_owned()),
        Just("secret".to_owned()),
        Just("HOME".to_owned()),
        Just(String::new()),
        "[ -~]{1,6}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 1..6).prop_map(|names| names.join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random links with any target, and random paths over them: files outside are neither read nor changed.
    #[test]
    fn no_path_escapes_the_workspace(links in prop::collection::vec((path(), path()), 0..6), path in path()) {
        let home = home();
        let ws = home.path().join("ws");
        let absolute = |text: &str| text.replace("HOME", &home.path().to_string_lossy());
        for (from, to) in &links {
            let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_));
            let from: PathBuf = Path::new(from).components().filter(is_name).collect();
            // Only links inside the workspace are created, so that the test leaves nothing elsewhere.
            let parent = ws.join(&from).parent().and_then(|parent| parent.canonicalize().ok());
            if parent.is_some_and(|parent| parent.starts_with(ws.canonicalize().unwrap())) {
                symlink(absolute(to), ws.join(&from)).ok();
            }
        }
        if let Ok(place) = resolve_path(&ws, &absolute(&path)) {
            prop_assert!(place.relative_path().components().all(|c| matches!(c, Component::Normal(_))));
            if let Ok((mut file, _)) = place.open_file() {
                let mut content = String::new();
                io::Read::read_to_string(&mut file, &mut content).unwrap();
                prop_assert_eq!(content, "inside");
            }
            place.replace_file(b"changed").ok();
        }
        prop_assert_eq!(fs::read(home.path().join("other/secret")).unwrap(), b"secret");
        prop_assert_eq!(fs::read_dir(home.path().join("other")).unwrap().count(), 1);
        prop_assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
    }
}
