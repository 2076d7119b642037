//! The database's files are removed or replaced under the running daemon, or damaged before it starts.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};

use crate::daemon::{Daemon, PATIENCE, config};

async fn start(model: &ModelServer) -> Daemon {
    model.answer_with(|request| ReplyScript::reply(format!("re: {}", request.last_user_text())));
    Daemon::start(&config(model, "")).await
}

/// Waits until readiness names this cause.
async fn wait_until_not_ready(daemon: &Daemon, code: &str) {
    let began = Instant::now();
    loop {
        let answer = daemon.get("/ready").await;
        if answer["error"]["code"] == code {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{answer}\n{}", daemon.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn database(daemon: &Daemon) -> PathBuf {
    daemon.home.join("memory")
}

#[tokio::test]
async fn removed_wal_stops_acceptance_and_loses_no_accepted_message() {
    let model = ModelServer::start();
    let mut daemon = start(&model).await;
    for n in 0..20 {
        let text = format!("m{n}");
        assert_eq!(daemon.say("me", &text, 10).await.unwrap().reply(), format!("re: {text}"));
    }
    fs::remove_file(database(&daemon).join("sessions.db-wal")).unwrap();
    wait_until_not_ready(&daemon, "store_files_replaced").await;
    let refused = daemon.say("me", "too late", 1).await.unwrap();
    assert_eq!((refused.status, refused.code()), (503, "store_files_replaced"));
    daemon.kill();
    daemon.start_again().await;
    for n in 0..20 {
        daemon.assert_answered_once("me", &format!("m{n}"), &format!("re: m{n}")).await;
    }
    assert_eq!(daemon.say("me", "again", 10).await.unwrap().reply(), "re: again");
}

#[tokio::test]
async fn moved_database_file_stops_readiness_until_restored() {
    let model = ModelServer::start();
    let daemon = start(&model).await;
    assert_eq!(daemon.say("me", "one", 10).await.unwrap().reply(), "re: one");
    for name in ["sessions.db", "sessions.db-shm"] {
        let (file, aside) = (database(&daemon).join(name), daemon.home.join("aside"));
        fs::rename(&file, &aside).unwrap();
        wait_until_not_ready(&daemon, "store_files_replaced").await;
        fs::write(&file, b"another").unwrap();
        wait_until_not_ready(&daemon, "store_files_replaced").await;
        fs::rename(&aside, &file).unwrap();
        let began = Instant::now();
        while daemon.ready().await != 200 {
            assert!(began.elapsed() < PATIENCE, "{}", daemon.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(daemon.say("me", name, 10).await.unwrap().reply(), format!("re: {name}"));
    }
}
