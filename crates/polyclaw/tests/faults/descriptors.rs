//! No descriptor left: the listener waits instead of spinning or ending, and resumes when some are free.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use polyclaw_testkit::model_server::ModelServer;
use rustix::process::Resource;
use serde_json::json;

use crate::daemon::{Daemon, PATIENCE, config};

/// The number of the daemon's open descriptors.
fn open_files(daemon: &Daemon) -> u64 {
    std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap().count() as u64
}

/// Its CPU time in ticks of a hundredth of a second.
fn ticks(daemon: &Daemon) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", daemon.pid())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[tokio::test]
async fn listener_recovers_after_file_descriptors_run_out() {
    let model = ModelServer::start();
    let mut daemon = Daemon::start(&config(&model, "")).await;
    assert_eq!(daemon.say("me", "before", 30).await.unwrap().reply(), "echo: before");
    let address = daemon.url.strip_prefix("http://").unwrap().to_owned();
    daemon.limit(Resource::Nofile, Some(open_files(&daemon) + 8));
    // The kernel completes these; the daemon can accept only the first few.
    let crowd: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let began = Instant::now();
    while !daemon.log().contains("cannot accept connections") {
        assert!(began.elapsed() < PATIENCE, "the limit was not reached: {}", daemon.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (used, lines) = (ticks(&daemon), daemon.log().lines().count());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (used, lines) = (ticks(&daemon) - used, daemon.log().lines().count() - lines);
    assert!(used < 40, "{used} ticks in two seconds: it spins");
    assert!(lines < 10, "{lines} lines in two seconds: it floods its log");
    daemon.assert_alive();
    // An existing connection is still served, and its message stored.
    let asked = daemon.say("me", "during", 0).await.map(|answer| answer.status);
    drop(crowd);
    daemon.limit(Resource::Nofile, None);
    daemon.wait_ready().await;
    assert_eq!(daemon.say("me", "during", 30).await.unwrap().reply(), "echo: during", "{asked:?}");
    daemon.assert_answered_once("me", "during", "echo: during").await;
}

/// A ledger is a database of its own, with some ten descriptors.
#[tokio::test]
async fn restart_does_not_open_all_team_ledgers_together() {
    const TEAMS: u64 = 40;
    let model = ModelServer::start();
    let mut daemon = Daemon::start(&config(&model, "[teams]\nmax_teams = 40")).await;
    for n in 0..TEAMS {
        let made = daemon.post("/api/v1/teams", &json!({ "name": format!("team-{n}") })).await.unwrap();
        assert_eq!(made.status, 201, "{:?}", made.body);
    }
    daemon.kill();
    daemon.start_again().await;
    let (mut most, began) = (0, Instant::now());
    while began.elapsed() < Duration::from_secs(5) {
        most = most.max(open_files(&daemon));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(most < 100, "{most} descriptors were open");
    let teams = daemon.get("/api/v1/teams").await;
    assert_eq!(teams["teams"].as_array().unwrap().len() as u64, TEAMS);
}
