//! How sockets end: an error frame with the reason, then a matching close code.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::plane::{Plane, wait};
use crate::sockets::Socket;

#[test]
fn invalid_socket_parameters_close_4400_and_unknown_instances_4404() {
    let plane = Plane::new();
    plane.create("one");
    for (path, code, end) in [
        ("/ws/instances?odd=1", "invalid_parameter", 4400),
        ("/ws/instances/one/logs?backlog=many", "invalid_parameter", 4400),
        ("/ws/messages?odd=1", "invalid_parameter", 4400),
        ("/ws/events?kind=.", "invalid_parameter", 4400),
        ("/ws/events?session=nonsense", "invalid_parameter", 4400),
        ("/ws/instances/nobody/logs", "unknown_instance", 4404),
        ("/ws/messages?instance=nobody", "unknown_instance", 4404),
        ("/ws/events?instance=nobody", "unknown_instance", 4404),
    ] {
        let mut socket = Socket::open(&plane, path);
        let frame = socket.next();
        assert_eq!((&frame["type"], &frame["code"]), (&json!("error"), &json!(code)), "{path}: {frame}");
        assert_eq!(socket.close_code(), end, "{path}");
    }
}

#[test]
fn internal_socket_error_closes_4500_without_details() {
    let plane = Plane::new();
    let log = plane.folder(&plane.create("one")).join("logs/daemon.log");
    // A log that is a folder cannot be followed.
    std::fs::create_dir_all(&log).unwrap();
    let mut socket = Socket::open(&plane, "/ws/instances/one/logs");
    let frame = socket.next();
    assert_eq!(frame["type"], "error");
    assert!(!frame.to_string().contains(&plane.dir.path().display().to_string()), "{frame}");
    assert_eq!(socket.close_code(), 4500);
}

#[test]
fn sockets_refuse_foreign_origins() {
    let plane = Plane::new();
    plane.started("one");
    for path in [
        "/ws/instances",
        "/ws/messages",
        "/ws/events",
        "/ws/instances/one/logs",
        "/api/instances/one/gateway/ws",
    ] {
        let asked = |origin: &str| {
            let url = format!("ws://127.0.0.1:{}{path}", plane.port);
            let mut request = url.into_client_request().unwrap();
            request
                .headers_mut()
                .insert("authorization", format!("Bearer {}", plane.token()).parse().unwrap());
            request.headers_mut().insert("origin", origin.parse().unwrap());
            wait(tokio_tungstenite::connect_async(request))
        };
        for origin in ["https://evil.example.com", "null", "http://127.0.0.1:1"] {
            let refused = asked(origin);
            assert!(
                matches!(&refused, Err(Error::Http(response)) if response.status().as_u16() == 403),
                "{path} {origin}: {refused:?}"
            );
        }
        assert!(asked(&plane.url()).is_ok(), "{path}: its own page is allowed");
    }
}

/// The real server with a shorter time than the usual 90 seconds.
#[test]
fn idle_socket_is_closed_and_pinging_one_stays_open() {
    let mut plane = Plane::idle();
    plane.environment = vec![("POLYCLAW_CP_IDLE_SECS", "3".to_owned())];
    plane.serve();
    let (mut silent, mut alive) =
        (Socket::open(&plane, "/ws/instances"), Socket::open(&plane, "/ws/instances"));
    let began = Instant::now();
    silent.next();
    alive.next();
    for _ in 0..4 {
        std::thread::sleep(Duration::from_secs(1));
        alive.say(r#"{"type":"ping"}"#);
        alive.until("pong");
    }
    assert_eq!(silent.close_code(), 1001);
    let heard = began.elapsed();
    assert!(heard >= Duration::from_secs(3), "it was closed after {heard:?}");
    alive.say(r#"{"type":"ping"}"#);
    alive.until("pong");
}
