//! A start while PostgreSQL is away: it waits, and says so to whoever asks whether the instance is ready.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use polyclaw_domain::config::Config;
use polyclaw_store::{DbTarget, Error};

/// The pause after the first failure; each is twice the one before, up to the longest.
const INITIAL_BACKOFF: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(5);
/// Between two lines in the log.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Between two looks for somebody who asks.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(50);
/// How long one who asks may take to do so.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(500);

const UNAVAILABLE_BODY: &str = r#"{"error":{"code":"store_unavailable","message":"PostgreSQL can not be reached; the instance starts when it can","hint":"start PostgreSQL, or look at store.url"}}"#;

/// Returns when the database can be reached, or when the wait is over: then opening it says what is wrong.
pub(super) fn wait_for_store(config: &Config, target: &DbTarget) {
    let Err(Error::Unavailable { message, .. }) = target.check_connection() else { return };
    let limit = config.store.wait_seconds.map(|seconds| Duration::from_secs(seconds.into()));
    if limit == Some(Duration::ZERO) {
        return;
    }
    tracing::warn!(error = message, "PostgreSQL can not be reached: the start waits for it");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Where nothing can be listened on, the wait goes on without.
        if let Ok(listener) = super::bind_listener(&config.gateway) {
            let is_over = &is_over;
            scope.spawn(move || refuse_connections(&listener, is_over));
        }
        probe_until_reachable(target, limit);
        is_over.store(true, Ordering::Relaxed);
    });
}

fn probe_until_reachable(target: &DbTarget, limit: Option<Duration>) {
    let (began, mut notified_at, mut pause) = (Instant::now(), Instant::now(), INITIAL_BACKOFF);
    while limit.is_none_or(|limit| began.elapsed() < limit) {
        thread::sleep(pause);
        pause = (pause * 2).min(MAX_BACKOFF);
        let Err(Error::Unavailable { message, .. }) = target.check_connection() else {
            return tracing::info!(waited_ms = began.elapsed().as_millis(), "PostgreSQL answers");
        };
        if notified_at.elapsed() >= LOG_INTERVAL {
            notified_at = Instant::now();
            tracing::warn!(error = message, "PostgreSQL can still not be reached");
        }
    }
}

/// Answers every request with the same refusal.
fn refuse_connections(listener: &TcpListener, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((connection, _)) => drop(refuse_connection(connection)),
            Err(_) => thread::sleep(ACCEPT_INTERVAL),
        }
    }
}

fn refuse_connection(mut connection: TcpStream) -> std::io::Result<()> {
    connection.set_nonblocking(false)?;
    connection.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    connection.set_write_timeout(Some(REQUEST_TIMEOUT))?;
    // One that is closed with words unread in it is reset, and its answer lost.
    if connection.read(&mut [0; 8192])? == 0 {
        return Ok(());
    }
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 5\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{UNAVAILABLE_BODY}",
        UNAVAILABLE_BODY.len()
    );
    connection.write_all(answer.as_bytes())
}
