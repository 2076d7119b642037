//! The shell: what it returns, and what it leaves behind, which is nothing.

use std::time::{Duration, Instant};

use polyclaw_domain::agent::SandboxMode;
use serde_json::json;

use crate::Bench;

const MODES: [SandboxMode; 3] = [SandboxMode::Off, SandboxMode::Workspace, SandboxMode::Strict];

/// Starts two levels of children. They are known by how long they sleep: ids inside are not those outside.
fn family(mark: &str) -> String {
    format!("sh -c 'sleep 300.{mark} & sleep 301.{mark} & wait' & sleep 302.{mark} &")
}

/// A number no other test sleeps for.
fn mark() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("{}{}", std::process::id(), now.subsec_nanos())
}

/// Processes outside the sandbox's view, which sees all of them.
fn alive(mark: &str) -> usize {
    let is_one = |entry: std::fs::DirEntry| {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        command.starts_with(b"sleep\0") && String::from_utf8_lossy(&command).contains(&format!(".{mark}"))
    };
    std::fs::read_dir("/proc").unwrap().flatten().map(is_one).filter(|one| *one).count()
}

async fn until_alive(mark: &str, count: usize) {
    for _ in 0..1000 {
        if alive(mark) == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} alive, not {count}", alive(mark));
}

#[tokio::test]
async fn output_and_exit_status_are_returned_in_order() {
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
async fn output_is_streamed_while_command_runs() {
    let bench = Bench::new();
    let call = bench.call("shell", json!({ "command": "echo first; sleep 30" }));
    assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err());
    assert_eq!(*bench.progress.lock().unwrap(), "first\n");
}

#[tokio::test]
async fn command_runs_in_workspace_without_stdin() {
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
async fn shell_environment_is_cleared() {
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
async fn huge_output_keeps_start_and_end() {
    let bench = Bench::new();
    let text = bench.ok("shell", json!({ "command": "seq 1 1000000" })).await;
    assert!(text.starts_with("1\n2\n3\n") && text.ends_with("999999\n1000000\n[exit status 0]"));
    assert!(text.len() < 257 * 1024 && text.contains("bytes omitted"));
    assert!(bench.progress.lock().unwrap().len() < 300 * 1024);
}

#[tokio::test]
async fn timed_out_command_is_killed_with_its_children() {
    for mode in MODES {
        let (mut bench, mark) = (Bench::new(), mark());
        bench.scope.sandbox.mode = mode;
        let started_at = Instant::now();
        let command = format!("{} echo started; yes > /dev/null", family(&mark));
        let call = bench.refused("shell", json!({ "command": command, "timeout_seconds": 2 }));
        let (text, ()) = tokio::join!(call, until_alive(&mark, 3));
        assert_eq!(text, "started\n[killed: timed out after 2 s]");
        assert!(started_at.elapsed() < Duration::from_secs(60));
        assert_eq!(alive(&mark), 0, "{mode:?}");
    }
}

#[tokio::test]
async fn endless_output_does_not_delay_the_timeout() {
    let bench = Bench::new();
    let started_at = Instant::now();
    let text = bench.refused("shell", json!({ "command": "yes", "timeout_seconds": 1 })).await;
    assert!(text.ends_with("[killed: timed out after 1 s]") && text.len() < 257 * 1024);
    assert!(started_at.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn background_children_end_with_the_command() {
    for mode in MODES {
        let (mut bench, mark) = (Bench::new(), mark());
        bench.scope.sandbox.mode = mode;
        let started_at = Instant::now();
        let ways_out = [
            family(&mark),
            format!("setsid sleep 303.{mark} &"),
            format!("nohup setsid sh -c 'setsid sleep 304.{mark} & exit' >/dev/null 2>&1 &"),
            format!(
                "perl -MPOSIX -e 'fork and exit; POSIX::setsid(); fork and exit; exec \"sleep\", \"305.{mark}\"'; "
            ),
        ];
        let command = format!("{} sleep 1; echo done", ways_out.join("\n"));
        let call = bench.ok("shell", json!({ "command": command }));
        let (text, ()) = tokio::join!(call, until_alive(&mark, 6));
        assert_eq!(text, "done\n[exit status 0]");
        assert!(started_at.elapsed() < Duration::from_secs(60), "an open pipe held up the call");
        assert_eq!(alive(&mark), 0, "{mode:?}");
    }
}

#[tokio::test]
async fn dropped_shell_call_kills_all_processes() {
    for mode in MODES {
        let (mut bench, mark) = (Bench::new(), mark());
        bench.scope.sandbox.mode = mode;
        let command = format!("{} setsid sleep 303.{mark} & sleep 304.{mark}", family(&mark));
        tokio::select! {
            outcome = bench.call("shell", json!({ "command": command })) => panic!("{}", outcome.content),
            () = until_alive(&mark, 5) => {}
        }
        until_alive(&mark, 0).await;
    }
}
