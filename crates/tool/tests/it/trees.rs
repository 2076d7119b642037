//! Folders that programs leave: very deep ones, closed ones, and more than the quota allows.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use polyclaw_domain::agent::SandboxMode;
use polyclaw_tool::sandbox::NamespaceMode;
use serde_json::json;

use crate::Bench;
use crate::confinement::{as_ordinary_user, by, ways};

/// Deep enough to overflow the stack of a thread that removes one level for each call of a function.
const DEEP_TREE: &str = "import os\n\
    os.chdir(os.environ['TMPDIR'])\n\
    for n in range(25000):\n    \
        os.mkdir('d' * 20)\n    \
        os.chdir('d' * 20)\n";

/// Runs of programs that are still on the disk, once they have had time to be removed.
async fn leftover_runs(bench: &Bench) -> usize {
    let limit = Instant::now() + Duration::from_secs(300);
    loop {
        let left = std::fs::read_dir(bench.home.path().join("tmp")).unwrap().count();
        if left == 0 || Instant::now() > limit {
            return left;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// KiB that a folder takes of the disk.
fn disk_usage_kb(folder: &Path) -> u64 {
    let output = Command::new("du").arg("-sk").arg(folder).output().unwrap();
    String::from_utf8_lossy(&output.stdout).split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn leftovers_of_ordinary_user_are_removed_and_counted() {
    as_ordinary_user("trees::unreadable_temporary_folders_are_removed");
    as_ordinary_user("trees::short_programs_cannot_exceed_the_quota_together");
    as_ordinary_user("trees::unreadable_folder_counts_for_file_tool_quota");
}

#[tokio::test]
async fn very_deep_temporary_folder_is_removed() {
    // One way only: on a slow disk the folders take their time.
    let bench = by(NamespaceMode::Own, SandboxMode::Strict);
    bench.ok("shell", json!({ "command": format!("python3 -c \"{DEEP_TREE}\"") })).await;
    assert_eq!(leftover_runs(&bench).await, 0);
}

#[tokio::test]
async fn unreadable_temporary_folders_are_removed() {
    let close = "umask 0777; mkdir $TMPDIR/q; umask 0022; mkdir -p $TMPDIR/a/b/c; echo x > $TMPDIR/a/b/c/f; \
                 chmod 0 $TMPDIR/a/b/c; chmod 0400 $TMPDIR/a/b; chmod 0100 $TMPDIR/a; true";
    for way in ways() {
        let bench = by(way.clone(), SandboxMode::Workspace);
        bench.call("shell", json!({ "command": close })).await;
        assert_eq!(leftover_runs(&bench).await, 0, "{way:?}");
    }
}

#[tokio::test]
async fn short_programs_cannot_exceed_the_quota_together() {
    for way in ways() {
        let mut bench = by(way.clone(), SandboxMode::Workspace);
        bench.scope.sandbox.disk_mb = Some(20);
        let mut last = String::new();
        for n in 0..8 {
            let fill = format!("head -c 15000000 /dev/zero > f{n} && mkdir d{n}");
            last = bench.call("shell", json!({ "command": fill })).await.content;
        }
        let used = disk_usage_kb(&bench.scope.workspace);
        assert!(used < 40_000, "{way:?}: {used} KiB in a workspace whose quota is 20 MiB");
        assert!(last.contains("quota of 20 MiB") && last.contains("remove"), "{way:?}: {last}");
        let freed = bench.ok("shell", json!({ "command": "rm -r f* d*; ls | wc -l" })).await;
        assert!(freed.starts_with("0\n"), "what makes room still runs: {way:?}: {freed}");
        bench.ok("shell", json!({ "command": "echo more > more" })).await;
    }
}

#[tokio::test]
async fn unreadable_folder_counts_for_file_tool_quota() {
    let mut bench = by(NamespaceMode::Own, SandboxMode::Workspace);
    bench.scope.sandbox.disk_mb = Some(20);
    let close = "mkdir -p d/below; head -c 15000000 /dev/zero > d/below/big; chmod 0 d/below; chmod 0400 d";
    bench.ok("shell", json!({ "command": close })).await;
    let write = json!({ "path": "more", "content": "x".repeat(8_000_000) });
    let refused = bench.refused("write_file", write).await;
    assert!(refused.contains("quota of 20 MiB"), "{refused}");
}
