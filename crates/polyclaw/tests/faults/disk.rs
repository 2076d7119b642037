//! A disk that is full under a running daemon, and stays full for a while.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use polyclaw_testkit::model_server::{ModelServer, ReplyGate, ReplyScript};
use rustix::process::Resource;

use crate::daemon::{Daemon, PATIENCE, TOKEN, config};

/// Mounts a small disk over the home with its content, then execs the daemon with its log on that disk.
const ON_SMALL_DISK: &str = r#"
home=$1; shift
text=$(cat "$home/config.toml")
mount -t tmpfs -o size=4m,mode=700 none "$home" &&
  printf '%s\n' "$text" >"$home/config.toml" && exec "$@" 2>"$home/daemon.log""#;

/// Mounts need privileges, or a user namespace.
fn can_mount_tmpfs() -> bool {
    let tried = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    tried.is_ok_and(|output| output.status.success())
}

fn on_small_disk(program: Command, home: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", ON_SMALL_DISK, "sh"]).arg(home);
    command.arg(program.get_program()).args(program.get_args());
    command
}

/// Ways to fill the disk and free it.
enum Space {
    /// A file that fills the small disk to the last byte.
    Disk,
    /// No file may grow: the fallback if nothing can be mounted.
    FileSize,
}

impl Space {
    fn take(&self, daemon: &Daemon) {
        match self {
            Self::Disk => {
                let mut filler = File::create(daemon.inside().join("filler")).unwrap();
                let mut size = 1 << 16;
                while size > 0 {
                    if filler.write_all(&vec![0; size]).is_err() {
                        size /= 2;
                    }
                }
            }
            Self::FileSize => daemon.limit(Resource::Fsize, Some(4096)),
        }
    }

    fn give_back(&self, daemon: &Daemon) {
        match self {
            Self::Disk => std::fs::remove_file(daemon.inside().join("filler")).unwrap(),
            Self::FileSize => daemon.limit(Resource::Fsize, None),
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Disk => "disk_full",
            // For SQLite, a limit of the process is a disk error like any other.
            Self::FileSize => "store_unavailable",
        }
    }

    fn words(&self) -> &'static str {
        match self {
            Self::Disk => "the disk is full",
            Self::FileSize => "the database rejects writes (store_unavailable)",
        }
    }
}

/// The text that `status` shows.
fn status(daemon: &Daemon) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polyclaw"));
    command.args(["status", "--url", &daemon.url, "--token", TOKEN]).env("POLYCLAW_HOME", &daemon.home);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

async fn survives(space: Space) {
    let model = ModelServer::start();
    let gate = ReplyGate::new();
    model.push(ReplyScript::new().gate(&gate).text("re: early"));
    model.answer_with(|request| ReplyScript::reply(format!("re: {}", request.last_user_text())));
    let config = config(&model, "");
    let mut daemon = match space {
        Space::Disk => Daemon::start_with(&config, on_small_disk).await,
        Space::FileSize => Daemon::start(&config).await,
    };
    assert_eq!(daemon.say("early", "early", 0).await.unwrap().status, 202);
    model.wait_for_requests(1).await;
    space.take(&daemon);
    let mut accepted = Vec::new();
    let refused = loop {
        // A message that fits into existing pages may be accepted; then it must be answered too.
        let text = format!("m{}", accepted.len());
        let answer = daemon.say("late", &text, 0).await.unwrap();
        if answer.status >= 300 {
            break (text, answer);
        }
        accepted.push(text);
        assert!(accepted.len() < 200, "a full disk accepts everything");
    };
    assert_eq!((refused.1.status, refused.1.code()), (503, space.code()), "{:?}", refused.1);
    gate.open();
    // The end of the turn cannot be stored now: it is retried, and everything else is served meanwhile.
    for _ in 0..20 {
        assert_eq!(daemon.say("late", &refused.0, 0).await.unwrap().code(), space.code());
        let health = daemon.get("/health").await;
        assert_eq!(
            (&health["status"], &health["store"]["status"]),
            (&"degraded".into(), &space.code().into())
        );
        assert_eq!(daemon.get("/ready").await["error"]["code"], "not_ready");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    daemon.assert_alive();
    let reply = status(&daemon);
    assert!(reply.starts_with("degraded at ") && reply.contains(space.words()), "{reply}");
    space.give_back(&daemon);
    assert_eq!(daemon.get("/ready").await["ready"], true, "one probe detects the free space");
    assert_eq!(daemon.get("/health").await["status"], "ok");
    let early = daemon.say("early", "early", 30).await.unwrap();
    assert_eq!(early.reply(), "re: early", "{early:?}\n{}", daemon.log());
    let again = daemon.say("late", &refused.0, 30).await.unwrap();
    assert_eq!((&again.body["duplicate"], again.status), (&false.into(), 200), "it was rejected: {again:?}");
    idle(&daemon, "late").await;
    daemon.assert_answered_once("early", "early", "re: early").await;
    let transcript = daemon.transcript("late").await;
    for text in accepted.iter().chain([&refused.0]) {
        let stored = transcript.iter().filter(|(role, output)| role == "user" && output == text).count();
        assert_eq!(stored, 1, "{text}: {transcript:?}");
    }
    daemon.assert_alive();
}

async fn idle(daemon: &Daemon, who: &str) {
    let began = Instant::now();
    loop {
        let session = daemon.get(&format!("/api/v1/sessions/{}", crate::daemon::key(who))).await;
        if session["running_turn_id"].is_null() && session["queued"] == 0 {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{session}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn full_disk_refuses_new_messages_and_keeps_accepted_ones() {
    let space = if can_mount_tmpfs() { Space::Disk } else { Space::FileSize };
    println!(
        "taking space by {}",
        if matches!(space, Space::Disk) { "a small disk" } else { "RLIMIT_FSIZE" }
    );
    survives(space).await;
}

#[tokio::test]
async fn file_size_limit_refuses_new_messages_and_keeps_accepted_ones() {
    survives(Space::FileSize).await;
}

#[tokio::test]
async fn unwritable_log_does_not_stop_the_daemon() {
    let model = ModelServer::start();
    let with_full_log = |program: Command, _: &Path| {
        let mut command = Command::new("sh");
        command
            .args(["-c", "exec \"$@\" 2>/dev/full", "sh"])
            .arg(program.get_program())
            .args(program.get_args());
        command
    };
    let mut daemon =
        Daemon::start_with(&config(&model, "[observability]\nlog_level = \"trace\""), with_full_log).await;
    for n in 0..5 {
        let answer = daemon.say("me", &format!("hello {n}"), 30).await.unwrap();
        assert_eq!(answer.reply(), format!("echo: hello {n}"), "{answer:?}");
    }
    daemon.assert_alive();
}

/// Execs the daemon in its own mount namespace, so that mounts can be changed for it alone.
fn on_own_mounts(program: Command, _: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.arg("-rm").arg(program.get_program()).args(program.get_args());
    command
}

/// Makes the home read-only under the running daemon, or writable again.
fn set_read_only(daemon: &Daemon, read_only: bool) {
    let script = match read_only {
        true => "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\"",
        false => "umount \"$1\"",
    };
    let mut command = Command::new("nsenter");
    command.args(["--user", "--mount", "--preserve-credentials", "--target", &daemon.pid().to_string()]);
    let done = command.args(["sh", "-c", script, "sh"]).arg(&daemon.home).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[tokio::test]
async fn read_only_home_fails_the_tool_and_not_the_turn() {
    assert!(can_mount_tmpfs(), "this test needs `unshare -rm`: allow user namespaces, or run it as root");
    let model = ModelServer::start();
    model.answer_with(|request| match request.messages().last() {
        Some(last) if last["role"] == "tool" => ReplyScript::reply(format!("it said {}", last["content"])),
        _ => {
            ReplyScript::new().call("c", "write_file", serde_json::json!({ "path": "a.txt", "content": "x" }))
        }
    });
    let mut daemon = Daemon::start_with(&config(&model, ""), on_own_mounts).await;
    set_read_only(&daemon, true);
    // The database is already open, so messages are still accepted and answered.
    let during = daemon.say("me", "during", 30).await.unwrap();
    assert!(during.reply().contains("ead-only"), "{during:?}");
    assert!(!daemon.home.join("workspace/a.txt").exists());
    set_read_only(&daemon, false);
    let after = daemon.say("me", "after", 30).await.unwrap();
    assert!(after.reply().starts_with("it said") && !after.reply().contains("ead-only"), "{after:?}");
    assert_eq!(std::fs::read_to_string(daemon.home.join("workspace/a.txt")).unwrap(), "x");
    daemon.assert_alive();
}
