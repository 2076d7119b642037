//! The control plane's sockets.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::plane::{PATIENCE, Plane, signal, wait};

pub struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    pub fn open(plane: &Plane, path: &str) -> Self {
        wait(async {
            let url = format!("ws://127.0.0.1:{}{path}", plane.port);
            let mut request = url.into_client_request().unwrap();
            request
                .headers_mut()
                .insert("authorization", format!("Bearer {}", plane.token()).parse().unwrap());
            Self(tokio_tungstenite::connect_async(request).await.unwrap().0)
        })
    }

    #[track_caller]
    pub fn next(&mut self) -> Value {
        let message = wait(async { tokio::time::timeout(PATIENCE, self.0.next()).await });
        let message = message.expect("a frame in time").expect("the socket is open").unwrap();
        serde_json::from_str(message.to_text().unwrap()).unwrap_or_else(|_| panic!("{message:?}"))
    }

    #[track_caller]
    pub fn until(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.next();
            if frame["type"] == kind {
                return frame;
            }
        }
    }

    pub fn say(&mut self, text: &str) {
        wait(self.0.send(Message::text(text))).unwrap();
    }

    /// With which code it is closed.
    #[track_caller]
    pub fn close_code(&mut self) -> u16 {
        loop {
            let next =
                wait(async { tokio::time::timeout(PATIENCE, self.0.next()).await }).expect("an end in time");
            match next {
                Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
                Some(Ok(_)) => {}
                other => panic!("closed without a code: {other:?}"),
            }
        }
    }
}

#[test]
fn a_reader_sees_what_there_is_and_then_every_change_within_a_second() {
    let plane = Plane::new();
    plane.create("one");
    let mut socket = Socket::open(&plane, "/ws/instances");
    let snapshot = socket.next();
    assert_eq!((&snapshot["type"], &snapshot["instances"][0]["name"]), (&json!("snapshot"), &json!("one")));
    let started = plane.start("one");
    let began = Instant::now();
    let changed = socket.until("status_changed");
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(
        (&changed["instance"]["status"], &changed["instance"]["pid"]),
        (&json!("running"), &started["pid"])
    );
    plane.call("PATCH", "/instances/one", Some(json!({ "restart": "never" })), &[]).ok();
    signal("KILL", started["pid"].as_i64().unwrap());
    let began = Instant::now();
    while socket.until("status_changed")["instance"]["status"] != "crashed" {}
    assert!(began.elapsed() < Duration::from_secs(30), "a crash is told in time");
    plane.create("two");
    assert_eq!(socket.until("instance_created")["instance"]["name"], "two");
    plane.post("/instances/two/archive", json!({})).ok();
    let archived = socket.until("instance_archived");
    socket.say(r#"{"type":"set_include_archived","value":true}"#);
    assert_eq!(socket.until("snapshot")["instances"].as_array().unwrap().len(), 2);
    plane.post("/instances/two/unarchive", json!({})).ok();
    socket.until("instance_unarchived");
    plane.post("/instances/two/archive", json!({})).ok();
    plane.delete("/instances/two");
    assert_eq!(socket.until("instance_deleted")["instance"]["id"], archived["instance"]["id"]);
    socket.say(r#"{"type":"ping"}"#);
    socket.until("pong");
    socket.say("nonsense");
    assert_eq!(socket.close_code(), 1008);
}

#[test]
fn log_lines_are_told_as_they_are_written_and_rotation_too() {
    let plane = Plane::new();
    let made = plane.create("one");
    let log = plane.folder(&made).join("logs/daemon.log");
    fs::write(&log, "1\n2\n3\n").unwrap();
    let mut socket = Socket::open(&plane, "/ws/instances/one/logs?backlog=2");
    assert_eq!(socket.next(), json!({ "type": "backlog", "count": 2, "lines": ["2", "3"] }));
    let began = Instant::now();
    fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(b"4\n").unwrap();
    assert_eq!(socket.next()["lines"], json!(["4"]));
    assert!(began.elapsed() < Duration::from_secs(30));
    fs::rename(&log, log.with_extension("log.1")).unwrap();
    fs::write(&log, "5\n").unwrap();
    assert_eq!(socket.next(), json!({ "type": "rotated" }));
    assert_eq!(socket.next()["lines"], json!(["5"]));
    let mut unknown = Socket::open(&plane, "/ws/instances/nobody/logs");
    assert_eq!(unknown.next()["code"], "unknown_instance");
    assert_eq!(unknown.close_code(), 4404);
}

#[test]
fn many_readers_are_told_while_one_takes_nothing() {
    let plane = Plane::new();
    plane.create("one");
    let mut slow = Socket::open(&plane, "/ws/instances");
    let mut others: Vec<Socket> = (0..100).map(|_| Socket::open(&plane, "/ws/instances")).collect();
    others.iter_mut().for_each(|socket| drop(socket.next()));
    plane.post("/instances/one/archive", json!({})).ok();
    let began = Instant::now();
    for socket in &mut others {
        assert_eq!(socket.until("instance_archived")["instance"]["name"], "one");
    }
    assert!(began.elapsed() < Duration::from_secs(30), "it took {:?}", began.elapsed());
    assert_eq!(
        slow.until("instance_archived")["instance"]["name"],
        "one",
        "what it did not take waited for it"
    );
}

#[test]
fn sockets_need_the_token_and_are_closed_when_the_server_ends() {
    let mut plane = Plane::new();
    let refused =
        wait(tokio_tungstenite::connect_async(format!("ws://127.0.0.1:{}/ws/instances", plane.port)));
    assert!(matches!(refused, Err(Error::Http(response)) if response.status().as_u16() == 401));
    let code = plane.post("/logins", json!({})).ok()["code"].as_str().unwrap().to_owned();
    let with_code = format!("ws://127.0.0.1:{}/ws/instances?code={code}", plane.port);
    let (socket, _) = wait(tokio_tungstenite::connect_async(&with_code)).unwrap();
    assert!(wait(tokio_tungstenite::connect_async(&with_code)).is_err(), "a code works once");
    let mut socket = Socket(socket);
    assert_eq!(socket.next()["type"], "snapshot");
    plane.end();
    assert_eq!(socket.close_code(), 1001);
}
