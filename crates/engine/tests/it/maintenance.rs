//! Unused sessions are archived to a file; sessions in use are never touched.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::config::MaintenanceMode;
use polyclaw_domain::event::EventKind;
use polyclaw_engine::maintenance::CleanupMode;
use polyclaw_store::sessions;
use polyclaw_testkit::KillPointFaults;
use polyclaw_testkit::world::{DurableWorld, World};
use tokio::sync::Semaphore;

use crate::reception::recorded;
use crate::worker;

const MONTH_MS: i64 = 31 * 24 * 60 * 60 * 1000;

async fn ground(folder: &tempfile::TempDir) -> DurableWorld {
    let mut ground = World::new().await.kill().await;
    ground.settings.retention.folder = folder.path().join("archive");
    ground
}

fn archived(folder: &tempfile::TempDir) -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(folder.path().join("archive")) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap())
        .map(|file| (file.file_name().into_string().unwrap(), std::fs::read_to_string(file.path()).unwrap()))
        .collect();
    files.sort();
    files
}

async fn count(world: &World) -> i64 {
    world.engine.db().read(sessions::count).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_old_session_is_archived_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let world = ground(&folder).await.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("before the new conversation").await;
    world.engine.renew_session(&World::session_key("me")).await.unwrap();
    world.send_and_wait("remember me").await;
    world.wait_settled().await;
    world.ground.clock.set_time(MONTH_MS);
    let accepted = world.send_text("you", "I am new").await.unwrap();
    world.wait_answer(&accepted).await;
    world.wait_settled().await;
    let dry = world.engine.clean_up_sessions(CleanupMode::Dry).await.unwrap();
    assert_eq!((dry.unused.len(), dry.removed, count(&world).await), (1, 0, 2));
    assert!(archived(&folder).is_empty(), "nothing is written by a look");
    let done = world.engine.clean_up_sessions(CleanupMode::Real).await.unwrap();
    assert_eq!(
        (done.unused[0].key.clone(), done.removed, count(&world).await),
        (World::session_key("me"), 1, 1)
    );
    let files = archived(&folder);
    assert_eq!(files[0].0, "main.000001.jsonl");
    let lines: Vec<&str> = files[0].1.lines().collect();
    assert_eq!(lines.len(), 4, "every conversation of the session: {lines:?}");
    assert!(lines[0].contains("before the new conversation") && lines[3].contains("echo: remember me"));
}

#[tokio::test(start_paused = true)]
async fn running_session_is_not_cleaned_up_regardless_of_age() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let mut ground = World::with_provider(worker(1, &gate)).await.kill().await;
    ground.settings.retention.folder = folder.path().join("archive");
    (ground.settings.stall_ms, ground.settings.turn_ms) = (u64::MAX / 2, u64::MAX / 2);
    let world = ground.start_engine(KillPointFaults::no_kill());
    let accepted = world.send_text("me", "work").await.unwrap();
    world.ground.clock.set_time(MONTH_MS);
    assert!(world.engine.clean_up_sessions(CleanupMode::Real).await.unwrap().unused.is_empty());
    gate.add_permits(1);
    assert_eq!(world.wait_answer(&accepted).await.text, "the work is done");
}

#[tokio::test(start_paused = true)]
async fn cleanup_keeps_max_entries_and_rotates_archive_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut ground = ground(&folder).await;
    ground.settings.retention.rules.max_entries = 2;
    ground.settings.retention.rules.rotate_mb = 1;
    ground.settings.retention.rules.archive_budget_mb = Some(3);
    // The whole long message is shown and echoed.
    ground.settings.default_context_window = 1_000_000;
    let world = ground.start_engine(KillPointFaults::no_kill());
    let long = "x".repeat(700_000);
    for n in 0..5 {
        let accepted = world.send_text(&format!("s{n}"), &long).await.unwrap();
        world.wait_answer(&accepted).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    world.wait_settled().await;
    let done = world.engine.clean_up_sessions(CleanupMode::Real).await.unwrap();
    assert_eq!((done.removed, count(&world).await), (3, 2), "the two used last stay");
    assert!(done.dropped_files.is_empty(), "what was archived just now is there: {:?}", done.dropped_files);
    assert_eq!(archived(&folder).len(), 3);
    let done = world.engine.clean_up_sessions(CleanupMode::Real).await.unwrap();
    assert_eq!(done.dropped_files, ["main.000001.jsonl"], "the oldest, beyond three megabytes");
    let names: Vec<String> = archived(&folder).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["main.000002.jsonl", "main.000003.jsonl"]);
}

#[tokio::test(start_paused = true)]
async fn hourly_cleanup_removes_sessions_only_in_enforce_mode() {
    let folder = tempfile::tempdir().unwrap();
    let ground = ground(&folder).await;
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("hello").await;
    world.ground.clock.set_time(MONTH_MS);
    tokio::time::sleep(Duration::from_secs(2 * 3_600)).await;
    let entries = recorded(&world, EventKind::SessionCleaned).await;
    assert!(!entries.is_empty() && entries.iter().all(|data| data["removed"] == 0), "{entries:?}");
    assert_eq!(count(&world).await, 1);
    let mut settings = world.ground.settings.clone();
    settings.retention.rules.mode = MaintenanceMode::Enforce;
    world.engine.reload_settings(settings);
    tokio::time::sleep(Duration::from_secs(3_700)).await;
    assert_eq!(count(&world).await, 0);
    assert_eq!(archived(&folder).len(), 1);
}

/// If the archive folder cannot be written, nothing is removed.
#[tokio::test(start_paused = true)]
async fn session_that_cannot_be_archived_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let ground = ground(&folder).await;
    std::fs::write(folder.path().join("archive"), "a file in its place").unwrap();
    let world = ground.start_engine(KillPointFaults::no_kill());
    world.send_and_wait("hello").await;
    world.wait_settled().await;
    world.ground.clock.set_time(MONTH_MS);
    assert_eq!(world.engine.clean_up_sessions(CleanupMode::Real).await.unwrap_err().code(), "archive_failed");
    assert_eq!(count(&world).await, 1);
}
