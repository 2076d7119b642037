//! Waits at startup while PostgreSQL is unavailable, and answers requests with an error meanwhile.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use polyclaw_domain::backoff::BackoffPolicy;
use polyclaw_domain::config::Config;
use polyclaw_store::{DbTarget, Error};

const BACKOFF: BackoffPolicy = BackoffPolicy::new(Duration::from_millis(250), Duration::from_secs(5));
/// Interval between two log lines.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Interval between two checks for new connections.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(50);
/// Read and write timeout of one connection.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(500);

const UNAVAILABLE_BODY: &str = r#"{"error":{"code":"store_unavailable","message":"PostgreSQL is not reachable; the instance starts when it is","hint":"start PostgreSQL, or check store.url"}}"#;

/// Returns when the database is reachable or the time limit is over; opening it then reports the error.
pub(super) fn wait_for_store(config: &Config, target: &DbTarget) {
    let Err(Error::Unavailable { message, .. }) = target.check_connection() else { return };
    let limit = config.store.wait_seconds.map(|seconds| Duration::from_secs(seconds.into()));
    if limit == Some(Duration::ZERO) {
        return;
    }
    tracing::warn!(error = message, "PostgreSQL is not reachable; waiting for it before starting");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // If the port cannot be bound, the wait continues without answering.
        if let Ok(listener) = super::bind_listener(&config.gateway) {
            let is_over = &is_over;
            scope.spawn(move || refuse_connections(&listener, is_over));
        }
        probe_until_reachable(target, limit);
        is_over.store(true, Ordering::Relaxed);
    });
}

fn probe_until_reachable(target: &DbTarget, limit: Option<Duration>) {
    let (began, mut notified_at) = (Instant::now(), Instant::now());
    let mut backoff = BACKOFF.start(std::process::id());
    while limit.is_none_or(|limit| began.elapsed() < limit) {
        thread::sleep(backoff.next_delay());
        let Err(Error::Unavailable { message, .. }) = target.check_connection() else {
            return tracing::info!(waited_ms = began.elapsed().as_millis(), "PostgreSQL reachable; starting");
        };
        if notified_at.elapsed() >= LOG_INTERVAL {
            notified_at = Instant::now();
            tracing::warn!(error = message, "PostgreSQL is still not reachable; waiting");
        }
    }
}

/// Answers every request with an error.
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
    // The request must be read: closing a connection with unread data resets it and loses the response.
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
