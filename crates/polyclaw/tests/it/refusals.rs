//! What can not start says so in one line, with a code, a hint and an exit code.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use crate::fixture::{Home, command, ran, until};

#[test]
fn a_second_daemon_on_a_home_is_refused_with_the_pid_of_the_first() {
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
fn a_daemon_that_was_killed_leaves_no_lock_behind() {
    let home = Home::new();
    home.daemon().kill();
    let _daemon = home.daemon();
}

#[test]
fn a_taken_port_is_unavailable() {
    let home = Home::new();
    let _held = TcpListener::bind(("127.0.0.1", home.port)).unwrap();
    let refused = home.run(&["daemon", "--port", &home.port.to_string()]);
    assert_eq!(refused.code, 5);
    assert!(refused.stderr.contains(&format!("port {} is taken", home.port)), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint:") && refused.stderr.contains("--port"), "{}", refused.stderr);
}

#[test]
fn every_error_of_a_config_is_said_with_its_line() {
    let home = Home::new();
    home.write_config("prot = 1\n[agents.defaults]\nmodel = \"gpt\"\n");
    for args in [["daemon", "--json"], ["config", "check"]] {
        let refused = home.run(&args);
        let said = refused.stdout + &refused.stderr;
        assert_eq!(refused.code, 1, "{said}");
        assert!(
            said.contains("config.toml:4") && said.contains("port") && said.contains("provider/model"),
            "{said}"
        );
    }
}

#[test]
fn a_newer_database_is_refused() {
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
fn a_file_that_is_no_database_is_refused() {
    let home = Home::new();
    fs::create_dir_all(home.path().join("memory")).unwrap();
    fs::write(home.path().join("memory/sessions.db"), "this is a letter, not a database".repeat(100))
        .unwrap();
    assert_eq!(home.run(&["daemon", "--json"]).error(), (1, "store_corrupt".into()));
}

#[test]
fn a_home_that_can_not_be_written_is_refused() {
    // Not even root may make a folder there.
    let refused = ran(command(Path::new("/sys/polyclaw"), &["daemon", "--json"]));
    assert_eq!(refused.error(), (1, "home_read_only".into()));
    let home = Home::new();
    fs::write(home.path(), "a file").unwrap();
    assert_eq!(home.run(&["daemon", "--json"]).error(), (1, "home_unusable".into()));
}

#[test]
fn without_a_daemon_commands_are_unavailable_and_say_what_to_start() {
    let home = Home::new();
    for args in [&["status"][..], &["agents", "list"], &["agent", "-m", "hi"], &["events"], &["sessions"]] {
        let refused = home.run(args);
        assert_eq!(refused.code, 5, "{args:?}");
        assert!(refused.stderr.contains("polyclaw up"), "{}", refused.stderr);
    }
    assert_eq!(home.run(&["status", "--json"]).error(), (5, "unavailable".into()));
}

#[test]
fn wrong_words_and_wrong_kill_points_are_usage_errors() {
    let home = Home::new();
    assert_eq!(home.run(&["dance"]).code, 2);
    assert_eq!(home.run(&["agent"]).code, 2);
    for (args, said) in [
        (&["dance", "--json"][..], "dance"),
        (&["agent", "--json"], "--message <TEXT>"),
        (&["--json"], "a command is missing"),
        (&["outbox", "list", "--limit", "x", "--json"], "--limit"),
    ] {
        let refused = home.run(args);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{args:?}");
        let told: serde_json::Value = serde_json::from_str(&refused.stderr).expect("JSON on stderr");
        let error = &told["error"];
        assert!(error["code"] == "usage" && error["hint"].is_string(), "{told}");
        assert!(error["message"].as_str().unwrap().contains(said), "{told}");
    }
    let mut armed = home.command(&["daemon", "--json"]);
    armed.env("POLYCLAW_KILL_AT", "nowhere:1");
    assert_eq!(ran(armed).error(), (2, "usage".into()));
}

#[test]
fn no_token_and_an_open_address_do_not_go_together() {
    let home = Home::new();
    home.write_config("auth = \"off\"\n");
    assert_eq!(home.run(&["daemon", "--bind", "0.0.0.0", "--json"]).error(), (2, "usage".into()));
}

#[test]
fn without_a_daemon_a_broken_config_is_what_is_told() {
    let home = Home::new();
    home.write_config("prot = 1\n");
    let refused = home.run(&["status"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("gateway.prot: unknown key"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("no daemon"), "{}", refused.stderr);
}

#[test]
fn an_account_that_does_not_connect_is_told_by_status_and_doctor() {
    let home = Home::new();
    home.write_config(
        "[session]\ndm_scope = \"per-channel-peer\"\n\
         [channels.telegram.main]\nbot_token = \"1:x\"\napi_url = \"http://127.0.0.1:1\"\n",
    );
    let _daemon = home.daemon();
    let told = "telegram/main: not connected: Telegram is not reached";
    until("status says why", || home.run(&["status"]).stdout.contains(told));
    let doctor = home.run(&["doctor"]);
    assert!(doctor.stdout.contains(told), "{}", doctor.stdout);
    let usage = home.run(&["runs", "list"]);
    assert!(usage.code == 2 && usage.stderr.contains("polyclaw sessions tree"), "{}", usage.stderr);
}
