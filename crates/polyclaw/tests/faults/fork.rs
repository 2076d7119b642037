//! No process or thread can be started: a tool reports that, and the turn continues.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use rustix::process::{Resource, getrlimit};
use serde_json::json;

use crate::daemon::{Answer, Daemon, config, key};

/// User and group `nobody`.
const NOBODY: u32 = 65534;

/// The process limit does not apply to root, so the daemon runs as another user.
fn as_ordinary_user(program: Command, home: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return program;
    }
    let folder = home.parent().unwrap();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    // The build may be in a folder that only root can enter.
    let copy = folder.join("polyclaw");
    std::fs::copy(program.get_program(), &copy).unwrap();
    for path in [home.to_owned(), home.join("config.toml")] {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let id = NOBODY.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]).arg(copy).args(program.get_args());
    command
}

/// Run as the daemon's user: root without all capabilities may not limit others.
fn limit_processes(daemon: &Daemon, soft: Option<u64>) {
    let most = soft.or(getrlimit(Resource::Nproc).maximum);
    let most = most.map_or("unlimited".to_owned(), |most| most.to_string());
    let user = std::fs::metadata(format!("/proc/{}", daemon.pid())).unwrap().uid().to_string();
    let mut command = Command::new("prlimit");
    if rustix::process::geteuid().is_root() {
        command = Command::new("setpriv");
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--", "prlimit"]);
    }
    let pid = daemon.pid().to_string();
    let done = command.args(["--pid", &pid, &format!("--nproc={most}:")]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// As a person at a terminal, who can approve.
async fn type_in(daemon: &Daemon, text: &str) -> Result<Answer, reqwest::Error> {
    let path = format!("/api/v1/sessions/{}/messages?wait=30", key("me"));
    daemon.post(&path, &json!({ "text": text, "idempotency_key": text, "channel": "cli" })).await
}

#[tokio::test]
async fn failed_process_start_is_a_tool_result_and_turn_continues() {
    let model = ModelServer::start();
    model.answer_with(|request| match request.messages().last() {
        Some(last) if last["role"] == "tool" => ReplyScript::reply(format!("it said {}", last["content"])),
        _ => ReplyScript::new().call("c", "shell", json!({ "command": "echo alive" })),
    });
    let mut daemon = Daemon::start_with(&config(&model, ""), as_ordinary_user).await;
    limit_processes(&daemon, Some(1));
    let during = type_in(&daemon, "during").await.unwrap();
    assert!(during.reply().contains("temporarily unavailable"), "{during:?}\n{}", daemon.log());
    limit_processes(&daemon, None);
    let after = type_in(&daemon, "after").await.unwrap();
    assert!(after.reply().contains("alive") && !after.reply().contains("unavailable"), "{after:?}");
    daemon.assert_alive();
}
