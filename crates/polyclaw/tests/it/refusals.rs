//! Failed starts print one line with a code and a hint, and set an exit code.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use crate::fixture::{Home, command, ran, until};

#[test]
fn second_daemon_is_refused_with_pid_of_the_first() {
    let home = Home::new();
    let daemon = home.daemon();
    let second = home.run(&["daemon", "--port", "1"]);
    assert_eq!(second.code, 4);
    assert!(second.stderr.contains(&format!("pid {}", daemon.pid())), "{}", second.stderr);
    assert!(
        second.stderr.contains("[already_running]") && second.stderr.contains("hint:"),
        "{}",
        second.stderr
    );
}

#[test]
fn killed_daemon_leaves_no_lock() {
    let home = Home::new();
    home.daemon().kill();
    let _daemon = home.daemon();
}

#[test]
fn taken_gateway_port_is_refused_by_daemon_and_up() {
    let home = Home::new();
    let _held = TcpListener::bind(("127.0.0.1", home.port)).unwrap();
    let port = home.port.to_string();
    for args in [&["daemon", "--port", &port][..], &["up", "--no-pull", "--port", &port]] {
        let refused = home.run(args);
        assert_eq!(refused.code, 4, "{args:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("[port_in_use]"), "{args:?}: {}", refused.stderr);
    }
    let refused = home.run(&["daemon", "--port", &port]);
    assert!(refused.stderr.contains(&format!("port {} is taken", home.port)), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint:") && refused.stderr.contains("--port"), "{}", refused.stderr);
}

#[test]
fn taken_control_plane_port_names_its_own_setting() {
    let home = Home::new();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port().to_string();
    for args in [&["up", "--no-pull"][..], &["control"]] {
        let mut command = home.command(args);
        command.env("POLYCLAW_CP_PORT", &port);
        let refused = ran(command);
        assert_eq!(refused.code, 4, "{args:?}: {}", refused.stderr);
        let text = refused.stderr;
        assert!(
            text.contains(&format!("port {port} is taken")) && text.contains("POLYCLAW_CP_PORT"),
            "{text}"
        );
        assert!(!text.contains("gateway.port"), "{text}");
    }
}

/// The request that another program on the port of an ended daemon gets from a command.
#[test]
fn token_is_not_sent_to_foreign_process_on_port() {
    let home = Home::new();
    home.write_config("");
    home.daemon().kill();
    let stranger = TcpListener::bind(("127.0.0.1", home.port)).unwrap();
    let hears = std::thread::spawn(move || {
        let (mut stream, _) = stranger.accept().unwrap();
        let mut heard = [0; 4096];
        let size = stream.read(&mut heard).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").unwrap();
        String::from_utf8_lossy(&heard[..size]).to_lowercase()
    });
    home.run(&["sessions", "list", "--json"]);
    let heard = hears.join().unwrap();
    assert!(heard.starts_with("get /api/v1/sessions") && !heard.contains("authorization"), "{heard}");
}

#[test]
fn every_config_error_is_reported_with_its_line() {
    let home = Home::new();
    home.write_config("prot = 1\n[agents.defaults]\nmodel = \"gpt\"\n");
    for args in [["daemon", "--json"], ["config", "check"]] {
        let refused = home.run(&args);
        let text = refused.stdout + &refused.stderr;
        assert_eq!(refused.code, 1, "{text}");
        assert!(
            text.contains("config.toml:4") && text.contains("port") && text.contains("provider/model"),
            "{text}"
        );
    }
}

#[test]
fn config_that_is_not_utf_8_is_bad_config() {
    let home = Home::new();
    home.write_config("");
    fs::write(home.path().join("config.toml"), b"name = \"\xff\"\n").unwrap();
    assert_eq!(home.run(&["--json", "config", "check"]).error(), (1, "bad_config".to_owned()));
}

#[test]
fn foreign_server_on_the_port_is_reported_as_not_polyclaw() {
    let home = Home::new();
    home.write_config("");
    let listener = TcpListener::bind(("127.0.0.1", home.port)).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
        let body = r#"{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}"#;
        let head =
            format!("HTTP/1.1 404 Not Found\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        std::io::Write::write_all(&mut stream, (head + body).as_bytes()).unwrap();
    });
    assert_eq!(home.run(&["--json", "status"]).error(), (1, "not_polyclaw".to_owned()));
    server.join().unwrap();
}

#[test]
fn database_with_newer_schema_is_refused_at_start() {
    let home = Home::new();
    home.daemon().kill();
    let database = rusqlite::Connection::open(home.path().join("memory/sessions.db")).unwrap();
    database.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(database);
    let refused = home.run(&["daemon", "--json"]);
    assert_eq!(refused.error(), (1, "newer_schema".into()));
    let doctor = home.run(&["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("schema 99"), "{}", doctor.stdout);
}

#[test]
fn file_that_is_not_a_database_is_refused() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("memory")).unwrap();
    fs::write(home.path().join("memory/sessions.db"), "this is a letter, not a database".repeat(100))
        .unwrap();
    assert_eq!(home.run(&["daemon", "--json"]).error(), (1, "store_corrupt".into()));
}

#[test]
fn non_utf_8_argument_is_a_usage_error() {
    for args in [&["agent", "-m"][..], &["chat", "--session"], &["status"], &["--json", "agent", "-m"]] {
        let mut given = Home::new().command(args);
        given.arg(std::ffi::OsStr::from_bytes(b"\xff"));
        let refused = ran(given);
        assert_eq!(refused.code, 2, "{args:?}: {}", refused.stderr);
        assert!(!refused.stderr.contains("panicked"), "{}", refused.stderr);
    }
}

/// Runs a program with an intact home on a read-only disk.
fn on_read_only(home: &Path, program: &Command) -> Command {
    const SCRIPT: &str = r#"home=$1; shift
        mount --bind "$home" "$home" && mount -o remount,bind,ro "$home" && exec "$@""#;
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", SCRIPT, "sh"]).arg(home);
    command.arg(program.get_program()).args(program.get_args());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

#[test]
fn read_only_home_is_refused_at_start() {
    // Not even root can create a folder there.
    let refused = ran(command(Path::new("/sys/polyclaw"), &["daemon", "--json"]));
    assert_eq!(refused.error(), (1, "home_read_only".into()));
    let home = Home::new();
    home.daemon().kill();
    for args in [&["daemon", "--json"][..], &["up", "--no-pull", "--json"]] {
        let refused = ran(on_read_only(&home.path(), &home.command(args)));
        assert_eq!(refused.error(), (1, "home_read_only".into()), "{args:?}");
    }
    let home = Home::new();
    fs::write(home.path(), "a file").unwrap();
    assert_eq!(home.run(&["daemon", "--json"]).error(), (1, "home_unusable".into()));
}

#[test]
fn commands_without_daemon_are_unavailable_with_a_hint() {
    let home = Home::new();
    for args in [&["status"][..], &["agents", "list"], &["agent", "-m", "hi"], &["events"], &["sessions"]] {
        let refused = home.run(args);
        assert_eq!(refused.code, 5, "{args:?}");
        assert!(refused.stderr.contains("polyclaw up"), "{}", refused.stderr);
    }
    assert_eq!(home.run(&["status", "--json"]).error(), (5, "unavailable".into()));
}

#[test]
fn unknown_commands_and_kill_points_are_usage_errors() {
    let home = Home::new();
    assert_eq!(home.run(&["dance"]).code, 2);
    assert_eq!(home.run(&["agent"]).code, 2);
    for (args, text) in [
        (&["dance", "--json"][..], "dance"),
        (&["agent", "--json"], "<MESSAGE>"),
        (&["--json"], "missing command"),
        (&["outbox", "list", "--limit", "x", "--json"], "--limit"),
    ] {
        let refused = home.run(args);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{args:?}");
        let body: serde_json::Value = serde_json::from_str(&refused.stderr).expect("JSON on stderr");
        let error = &body["error"];
        assert!(error["code"] == "usage" && error["hint"].is_string(), "{body}");
        assert!(error["message"].as_str().unwrap().contains(text), "{body}");
    }
    let mut armed = home.command(&["daemon", "--json"]);
    armed.env("POLYCLAW_KILL_AT", "nowhere:1");
    assert_eq!(ran(armed).error(), (2, "usage".into()));
}

#[test]
fn disabled_auth_is_refused_on_public_address() {
    let home = Home::new();
    home.write_config("auth = \"off\"\n");
    assert_eq!(home.run(&["daemon", "--bind", "0.0.0.0", "--json"]).error(), (2, "usage".into()));
}

#[test]
fn broken_config_is_reported_before_missing_daemon() {
    let home = Home::new();
    home.write_config("prot = 1\n");
    let refused = home.run(&["status"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("gateway.prot: unknown key"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("no daemon"), "{}", refused.stderr);
}

#[test]
fn unconnected_account_is_reported_by_status_and_doctor() {
    let home = Home::new();
    home.write_config(
        "[session]\ndm_scope = \"per-channel-peer\"\n\
         [channels.telegram.main]\nbot_token = \"1:x\"\napi_url = \"http://127.0.0.1:1\"\n",
    );
    let _daemon = home.daemon();
    let text = "telegram/main: not connected: cannot reach Telegram";
    until("status shows the reason", || home.run(&["status"]).stdout.contains(text));
    let doctor = home.run(&["doctor"]);
    assert!(doctor.stdout.contains(text), "{}", doctor.stdout);
    let usage = home.run(&["runs", "list"]);
    assert!(usage.code == 2 && usage.stderr.contains("polyclaw sessions tree"), "{}", usage.stderr);
}
