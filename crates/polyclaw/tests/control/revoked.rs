//! Connections opened with a token end when it is revoked.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::plane::Plane;
use crate::sockets::Socket;

fn token(plane: &Plane, name: &str) -> (String, String) {
    let made = plane.post("/tokens", json!({ "name": name, "scope": "operate" })).ok();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&made["id"]), text(&made["secret"]))
}

#[test]
fn only_sockets_of_the_revoked_token_are_closed() {
    let plane = Plane::new();
    plane.started("one");
    let ((id, revoked), (_, other)) = (token(&plane, "a"), token(&plane, "b"));
    let paths = [
        "/ws/instances",
        "/ws/messages",
        "/ws/events",
        "/ws/instances/one/logs",
        "/api/instances/one/gateway/ws",
    ];
    let mut closed: Vec<Socket> = paths.iter().map(|path| Socket::open_as(&plane, path, &revoked)).collect();
    let mut kept: Vec<Socket> = paths.iter().map(|path| Socket::open_as(&plane, path, &other)).collect();
    let mut stream = stream(&plane, &revoked);
    assert_eq!(plane.delete(&format!("/tokens/{id}")).status, 204);
    for (socket, path) in closed.iter_mut().zip(paths) {
        assert_eq!(socket.until("error")["code"], "unauthorized", "{path}");
        assert_eq!(socket.close_code(), 4401, "{path}");
    }
    // Returns only when it ends.
    stream.read_to_end(&mut Vec::new()).unwrap();
    let refused = plane.call("GET", "/instances", None, &[("authorization", &format!("Bearer {revoked}"))]);
    assert_eq!(refused.status, 401);
    let (through, direct) = kept.split_last_mut().unwrap();
    for socket in direct {
        socket.say(r#"{"type":"ping"}"#);
        socket.until("pong");
    }
    through.say(r#"{"type":"req","id":1,"method":"health","params":{}}"#);
    assert_eq!(through.until("res")["id"], 1);
}

/// The event stream of a session through the gateway.
fn stream(plane: &Plane, token: &str) -> TcpStream {
    let key = "agent%3Amain%3Aweb%3Adm%3Ame";
    let made = format!("/instances/one/gateway/sessions/{key}/messages");
    plane.post(&made, json!({ "text": "hi" })).ok();
    let mut stream = TcpStream::connect(("127.0.0.1", plane.port)).unwrap();
    let request = format!(
        "GET /api/instances/one/gateway/sessions/{key}/stream HTTP/1.1\r\nHost: localhost\r\n\
         Connection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream.set_read_timeout(Some(crate::plane::PATIENCE)).unwrap();
    let mut started = [0; 12];
    stream.read_exact(&mut started).unwrap();
    assert_eq!(&started, b"HTTP/1.1 200");
    stream
}

#[test]
fn proxied_stream_ends_cleanly_at_server_shutdown() {
    let mut plane = Plane::new();
    plane.started("one");
    let mut stream = stream(&plane, &plane.token());
    plane.end();
    let mut notice = Vec::new();
    stream.read_to_end(&mut notice).unwrap();
    assert!(notice.ends_with(b"\r\n0\r\n\r\n"), "it was closed: {}", String::from_utf8_lossy(&notice));
}

#[test]
fn proxied_socket_is_closed_at_server_shutdown() {
    let mut plane = Plane::new();
    plane.started("one");
    let mut socket = Socket::open(&plane, "/api/instances/one/gateway/ws");
    plane.end();
    assert_eq!(socket.close_code(), 1001);
}
