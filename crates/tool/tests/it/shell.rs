//! The shell: what it returns, and what it leaves behind, which is nothing.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::Bench;

/// Starts two levels of children and writes their ids to `pids`.
const FAMILY: &str =
    "sh -c 'sleep 300 & echo $! >> pids; sleep 301 & echo $! >> pids; wait' & echo $! >> pids";

fn written_pids(path: &Path, count: usize) -> Option<Vec<u32>> {
    let text = std::fs::read_to_string(path).ok()?;
    let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    (pids.len() >= count && text.ends_with('\n')).then_some(pids)
}

async fn pids(path: &Path, count: usize) -> Vec<u32> {
    for _ in 0..500 {
        if let Some(pids) = written_pids(path, count) {
            return pids;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the children did not start");
}

/// Gone, or dead and only waiting to be collected by init.
fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat")));
    stat.map_or(true, |stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X'])))
}

async fn assert_gone(pids: &[u32]) {
    for _ in 0..300 {
        if pids.iter().all(|pid| is_gone(*pid)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("still there: {pids:?}");
}

#[tokio::test]
async fn output_and_exit_status_come_back_in_order() {
    let bench = Bench::new();
    let text = bench.ok("shell", json!({ "command": "echo one; echo two >&2; echo three" })).await;
    assert_eq!(text, "one\ntwo\nthree\n[exit status 0]");
    assert_eq!(*bench.progress.lock().unwrap(), "one\ntwo\nthree\n");
    let text = bench.refused("shell", json!({ "command": "printf x; exit 7" })).await;
    assert_eq!(text, "x\n[exit status 7]");
    assert_eq!(bench.ok("shell", json!({ "command": "true" })).await, "[exit status 0]");
    assert_eq!(bench.refused("shell", json!({ "command": "kill -9 $$" })).await, "[killed by signal 9]");
    assert!(
        bench.refused("shell", json!({ "command": "no_such_command_at_all" })).await.contains("status 127")
    );
}

#[tokio::test]
async fn output_is_passed_on_while_the_command_runs() {
    let bench = Bench::new();
    let call = bench.call("shell", json!({ "command": "echo first; sleep 30" }));
    assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err());
    assert_eq!(*bench.progress.lock().unwrap(), "first\n");
}

#[tokio::test]
async fn the_command_runs_in_the_workspace_without_input() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("sub")).unwrap();
    let here = bench.scope.workspace.canonicalize().unwrap();
    assert!(bench.ok("shell", json!({ "command": "pwd" })).await.contains(&*here.to_string_lossy()));
    assert!(bench.ok("shell", json!({ "command": "pwd", "cwd": "sub" })).await.contains("/sub\n"));
    assert_eq!(bench.ok("shell", json!({ "command": "cat" })).await, "[exit status 0]");
    bench.refused("shell", json!({ "command": "pwd", "cwd": "missing" })).await;
    bench.refused("shell", json!({ "command": "a\0b" })).await;
}

#[tokio::test]
async fn the_environment_is_cleared() {
    let bench = Bench::new();
    // Cargo gives every test these; a command must not see them.
    assert!(std::env::var("CARGO_PKG_NAME").is_ok());
    let text = bench.ok("shell", json!({ "command": "env" })).await;
    let allowed = ["PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "PWD", "OLDPWD", "SHLVL", "_"];
    for line in text.lines().filter(|line| !line.starts_with('[')) {
        let name = line.split('=').next().unwrap();
        assert!(allowed.contains(&name), "{line}");
    }
    assert!(text.contains("PATH="));
}

#[tokio::test]
async fn huge_output_keeps_its_start_and_its_end() {
    let bench = Bench::new();
    let text = bench.ok("shell", json!({ "command": "seq 1 1000000" })).await;
    assert!(text.starts_with("1\n2\n3\n") && text.ends_with("999999\n1000000\n[exit status 0]"));
    assert!(text.len() < 257 * 1024 && text.contains("bytes left out"));
    assert!(bench.progress.lock().unwrap().len() < 300 * 1024);
}

#[tokio::test]
async fn an_endless_command_is_killed_with_all_it_started() {
    let bench = Bench::new();
    let begun = Instant::now();
    let command = format!("{FAMILY}; echo started; yes > /dev/null");
    let text = bench.refused("shell", json!({ "command": command, "timeout_seconds": 1 })).await;
    assert_eq!(text, "started\n[killed: it ran longer than 1 s]");
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_gone(&pids(&bench.path("pids"), 3).await).await;
}

#[tokio::test]
async fn endless_output_does_not_hold_up_the_timeout() {
    let bench = Bench::new();
    let begun = Instant::now();
    let text = bench.refused("shell", json!({ "command": "yes", "timeout_seconds": 1 })).await;
    assert!(text.ends_with("[killed: it ran longer than 1 s]") && text.len() < 257 * 1024);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn children_in_the_background_end_with_the_command() {
    let bench = Bench::new();
    let begun = Instant::now();
    let command = format!("{FAMILY}; while [ $(wc -l < pids) -lt 3 ]; do sleep 0.05; done; echo done");
    let text = bench.ok("shell", json!({ "command": command })).await;
    assert_eq!(text, "done\n[exit status 0]");
    assert!(begun.elapsed() < Duration::from_secs(10), "the open pipe held up the call");
    assert_gone(&pids(&bench.path("pids"), 3).await).await;
}

#[tokio::test]
async fn a_process_that_leaves_the_group_does_not_hold_up_the_call() {
    let bench = Bench::new();
    let begun = Instant::now();
    let command = "setsid sleep 8 & sleep 0.3; echo done";
    assert_eq!(bench.ok("shell", json!({ "command": command })).await, "done\n[exit status 0]");
    assert!(begun.elapsed() < Duration::from_secs(6));
}

#[tokio::test]
async fn dropping_the_call_kills_everything() {
    let bench = Bench::new();
    let command = format!("echo $$ >> pids; {FAMILY}; sleep 302");
    let pids = {
        let call = bench.call("shell", json!({ "command": command }));
        let path = bench.path("pids");
        tokio::select! {
            outcome = call => panic!("{}", outcome.content),
            pids = pids(&path, 4) => pids,
        }
    };
    assert_gone(&pids).await;
}
