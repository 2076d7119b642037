//! Files: read, written, edited, listed and searched, below the workspace only.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use polyclaw_domain::tool::{ToolCall, Toolbox};
use polyclaw_tool::worker::IsolatedToolbox;
use polyclaw_tool::{BuiltinSettings, BuiltinToolbox};
use serde_json::json;

use crate::worker::usual;
use crate::{Bench, confining};

#[tokio::test]
async fn file_is_written_read_edited_listed_and_found() {
    let bench = Bench::new();
    let report = bench.ok("write_file", json!({ "path": "a/b/c.txt", "content": "one\ntwo\n" })).await;
    assert_eq!(report, "created a/b/c.txt (8 bytes)");
    assert_eq!(bench.ok("read_file", json!({ "path": "a/b/c.txt" })).await, "one\ntwo\n");
    let report =
        bench.ok("edit_file", json!({ "path": "a/b/c.txt", "old_text": "two", "new_text": "three" })).await;
    assert_eq!(report, "edited a/b/c.txt: 1 replaced");
    assert_eq!(bench.text("a/b/c.txt"), "one\nthree\n");
    let report = bench.ok("write_file", json!({ "path": "a/b/c.txt", "content": "one\nthree\n" })).await;
    assert!(report.starts_with("replaced"));
    assert_eq!(bench.ok("list_dir", json!(null)).await, "a/\n");
    let listing = bench.ok("list_dir", json!({ "path": "a", "depth": 3 })).await;
    assert_eq!(listing, "b/\nb/c.txt (10 bytes)\n");
    let found = bench.ok("search_files", json!({ "pattern": "th.ee", "glob": "*.txt" })).await;
    assert_eq!(found, "a/b/c.txt:2: three\n");
}

#[tokio::test]
async fn absolute_path_inside_workspace_is_accepted() {
    let bench = Bench::new();
    let path = bench.path("x");
    bench.ok("write_file", json!({ "path": path, "content": "x" })).await;
    assert_eq!(bench.ok("read_file", json!({ "path": path })).await, "x");
}

#[tokio::test]
async fn written_files_are_reported_with_symlinks_resolved() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("skills/x")).unwrap();
    fs::write(bench.path("AGENTS.md"), "rules").unwrap();
    symlink("AGENTS.md", bench.path("CLAUDE.md")).unwrap();
    symlink("skills/x", bench.path("docs")).unwrap();
    let isolated = isolated(&bench);
    let patch = "*** Begin Patch\n*** Update File: CLAUDE.md\n-rules\n+obey\n*** Add File: docs/b.md\n+b\n*** End Patch";
    for (name, arguments, expected) in [
        ("write_file", json!({ "path": "CLAUDE.md", "content": "" }), vec!["AGENTS.md"]),
        ("write_file", json!({ "path": "docs/../a.md", "content": "" }), vec!["skills/a.md"]),
        (
            "edit_file",
            json!({ "path": "docs/SKILL.md", "old_text": "a", "new_text": "b" }),
            vec!["skills/x/SKILL.md"],
        ),
        ("apply_patch", json!({ "patch": patch }), vec!["AGENTS.md", "skills/x/b.md"]),
        ("write_file", json!({ "path": "../secret", "content": "" }), vec![]),
        ("read_file", json!({ "path": "CLAUDE.md" }), vec![]),
    ] {
        let call = ToolCall { id: "c".to_owned(), name: name.to_owned(), arguments };
        let tools: [&dyn Toolbox; 2] = [&bench.tools, &isolated];
        for tools in tools {
            let found = tools.written_files(&bench.scope, &call).await;
            assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{call:?}");
        }
    }
}

fn isolated(bench: &Bench) -> IsolatedToolbox {
    let tools = BuiltinSettings { sandbox: confining(bench.home.path()), ..BuiltinSettings::default() };
    IsolatedToolbox::new(BuiltinToolbox::new(tools), usual())
}

#[tokio::test]
async fn no_tool_reaches_outside_the_workspace() {
    let bench = Bench::new();
    symlink("../secret", bench.path("file_link")).unwrap();
    symlink("..", bench.path("dir_link")).unwrap();
    symlink("../made", bench.path("dangling")).unwrap();
    fs::create_dir(bench.path("sub")).unwrap();
    let absolute = bench.home.path().join("secret").to_string_lossy().into_owned();
    let paths = [
        "../secret",
        "sub/../../secret",
        "file_link",
        "dir_link/secret",
        "dir_link/ws/../secret",
        "dir_link/made",
        "dangling",
        "/proc/self/environ",
        "/etc/passwd",
        "../made",
        &absolute,
    ];
    for path in paths {
        bench.refused("read_file", json!({ "path": path })).await;
        bench.refused("write_file", json!({ "path": path, "content": "changed" })).await;
        bench
            .refused("edit_file", json!({ "path": path, "old_text": "secret", "new_text": "changed" }))
            .await;
        bench.refused("list_dir", json!({ "path": path })).await;
        bench.refused("search_files", json!({ "path": path, "pattern": "secret" })).await;
        bench.refused("shell", json!({ "command": "true", "cwd": path })).await;
    }
    for path in ["..", "dir_link", "/", "/proc/self"] {
        bench.refused("list_dir", json!({ "path": path })).await;
        bench.refused("search_files", json!({ "path": path, "pattern": "secret" })).await;
        bench.refused("shell", json!({ "command": "true", "cwd": path })).await;
    }
    assert_eq!(bench.ok("search_files", json!({ "pattern": "secret" })).await, "[no matches]\n");
    assert_eq!(fs::read_to_string(bench.home.path().join("secret")).unwrap(), "secret");
    assert!(!bench.home.path().join("made").exists());
}

#[tokio::test]
async fn special_files_are_refused_without_blocking() {
    let bench = Bench::new();
    let made = std::process::Command::new("mkfifo").arg(bench.path("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(bench.path("socket")).unwrap();
    let started_at = Instant::now();
    for (path, kind) in [("pipe", "a named pipe"), ("socket", "a socket"), (".", "a folder")] {
        let edit = json!({ "path": path, "old_text": "a", "new_text": "b" });
        assert!(bench.refused("read_file", json!({ "path": path })).await.contains(kind));
        assert!(bench.refused("write_file", json!({ "path": path, "content": "x" })).await.contains(kind));
        assert!(bench.refused("edit_file", edit).await.contains(kind));
    }
    assert_eq!(bench.ok("search_files", json!({ "pattern": "x" })).await, "[no matches]\n");
    bench.refused("search_files", json!({ "pattern": "x", "path": "pipe" })).await;
    assert!(started_at.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn file_size_limits_are_enforced_with_message() {
    let bench = Bench::new();
    let huge = "x".repeat(10 * 1024 * 1024 + 1);
    let error = bench.refused("write_file", json!({ "path": "huge", "content": huge })).await;
    assert!(error.contains("limit") && !bench.path("huge").exists());
    fs::write(bench.path("huge"), &huge).unwrap();
    let text = bench.ok("read_file", json!({ "path": "huge" })).await;
    assert!(text.len() < 257 * 1024 && text.contains("not shown"));
    let error = bench.refused("edit_file", json!({ "path": "huge", "old_text": "x", "new_text": "y" })).await;
    assert!(error.contains("limit"));
}

#[tokio::test]
async fn non_utf8_file_is_shown_with_note_and_not_edited() {
    let bench = Bench::new();
    fs::write(bench.path("latin"), b"caf\xe9\n").unwrap();
    assert!(bench.ok("read_file", json!({ "path": "latin" })).await.contains("not valid UTF-8"));
    let edit = json!({ "path": "latin", "old_text": "caf", "new_text": "tea" });
    assert!(bench.refused("edit_file", edit).await.contains("not UTF-8"));
    assert_eq!(fs::read(bench.path("latin")).unwrap(), b"caf\xe9\n");
}

#[tokio::test]
async fn concurrent_edits_are_all_kept() {
    let bench = Bench::new();
    let names: Vec<String> = (10..40).map(|n| format!("<{n}>")).collect();
    fs::write(bench.path("f"), names.concat()).unwrap();
    let edits = names.iter().map(|name| {
        let edit = json!({ "path": "f", "old_text": name, "new_text": "." });
        bench.ok("edit_file", edit)
    });
    let mut waiting: Vec<_> = edits.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        waiting.retain_mut(|edit| edit.as_mut().poll(context).is_pending());
        if waiting.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    assert_eq!(bench.text("f"), ".".repeat(30));
}

#[tokio::test]
async fn malformed_paths_are_errors_not_panics() {
    let bench = Bench::new();
    for path in [
        "",
        ".",
        "/",
        "\0",
        "a\0b",
        "a/",
        "//",
        "\u{202e}",
        "~",
        "-",
        "%2e%2e/x",
        &"a".repeat(300),
        &"a/".repeat(5000),
    ] {
        bench.refused("read_file", json!({ "path": path })).await;
    }
    let long = "n".repeat(255);
    bench.ok("write_file", json!({ "path": long, "content": "the longest name there is" })).await;
    assert_eq!(bench.text(&long), "the longest name there is");
}

#[tokio::test]
async fn patch_is_applied_completely_or_not_at_all() {
    let bench = Bench::new();
    fs::write(bench.path("old.txt"), "one\ntwo\n").unwrap();
    fs::write(bench.path("gone.txt"), "x").unwrap();
    let body = "*** Update File: old.txt\n one\n-two\n+2\n*** Add File: new/a.txt\n+first\n*** Delete File: gone.txt";
    let patch = |body: &str| json!({ "patch": format!("*** Begin Patch\n{body}\n*** End Patch") });
    assert_eq!(
        bench.ok("apply_patch", patch(body)).await,
        "changed old.txt\nadded new/a.txt\ndeleted gone.txt"
    );
    assert_eq!(
        (bench.text("old.txt"), bench.text("new/a.txt")),
        ("one\n2\n".to_owned(), "first\n".to_owned())
    );
    assert!(!bench.path("gone.txt").exists());
    for (bad, text) in [
        ("*** Update File: old.txt\n-two\n+3", "does not match"),
        ("*** Add File: old.txt\n+x", "already exists"),
        ("*** Delete File: nothing.txt", "nothing.txt"),
        ("*** Update File: old.txt\n-2\n+3\n*** Delete File: ./old.txt", "twice"),
        ("*** Delete File: new", "a folder"),
    ] {
        let all = format!("*** Add File: first.txt\n+x\n{bad}");
        let error = bench.refused("apply_patch", patch(&all)).await;
        assert!(error.contains(text), "{error}");
        assert!(!bench.path("first.txt").exists(), "all of it or nothing: {bad}");
    }
    assert_eq!(bench.text("old.txt"), "one\n2\n");
}

#[tokio::test]
async fn patch_stays_inside_the_workspace() {
    let bench = Bench::new();
    let outside = bench.home.path().join("secret");
    symlink(&outside, bench.path("link")).unwrap();
    symlink(bench.home.path(), bench.path("out")).unwrap();
    for path in ["../secret", "link", "out/secret", outside.to_str().unwrap()] {
        for verb in
            ["Update File: {}\n-secret\n+x", "Delete File: {}", "Add File: {}\n+x", "Add File: {}2\n+x"]
        {
            let body = verb.replace("{}", path);
            let patch = json!({ "patch": format!("*** Begin Patch\n*** {body}\n*** End Patch") });
            if verb.contains("}2") && path == "link" {
                continue;
            }
            bench.refused("apply_patch", patch).await;
        }
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
    assert_eq!(fs::read_dir(bench.home.path()).unwrap().count(), 2, "nothing new outside");
}

#[tokio::test]
async fn full_workspace_refuses_new_files() {
    let mut bench = Bench::new();
    bench.scope.sandbox.disk_mb = Some(1);
    let half = "x".repeat(600_000);
    bench.ok("write_file", json!({ "path": "a", "content": half })).await;
    for (tool, arguments) in [
        ("write_file", json!({ "path": "b", "content": half })),
        ("edit_file", json!({ "path": "a", "old_text": "x", "new_text": "xx", "replace_all": true })),
        (
            "apply_patch",
            json!({ "patch": format!("*** Begin Patch\n*** Add File: b\n+{half}\n*** End Patch\n") }),
        ),
    ] {
        let text = bench.refused(tool, arguments).await;
        assert!(text.contains("quota of 1 MiB"), "{tool}: {text}");
    }
    assert!(!bench.path("b").exists());
    bench.ok("write_file", json!({ "path": "a", "content": "less" })).await;
    bench.ok("write_file", json!({ "path": "b", "content": half })).await;
}
