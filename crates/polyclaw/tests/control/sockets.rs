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

/// Readers get a change within this time.
pub const A_SECOND: Duration = Duration::from_secs(1);

pub struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    pub fn open(plane: &Plane, path: &str) -> Self {
        Self::open_as(plane, path, &plane.token())
    }

    pub fn open_as(plane: &Plane, path: &str, token: &str) -> Self {
        wait(async {
            let url = format!("ws://127.0.0.1:{}{path}", plane.port);
            let mut request = url.into_client_request().unwrap();
            request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
            Self(tokio_tungstenite::connect_async(request).await.unwrap().0)
        })
    }

    #[track_caller]
    pub fn next(&mut self) -> Value {
        loop {
            let message = wait(async { tokio::time::timeout(PATIENCE, self.0.next()).await });
            let message = message.expect("a frame in time").expect("the socket is open").unwrap();
            if !message.is_ping() {
                let text = message.to_text().unwrap();
                return serde_json::from_str(text).unwrap_or_else(|_| panic!("{message:?}"));
            }
        }
    }

    /// `None` if the other side closed.
    #[track_caller]
    fn try_next(&mut self) -> Option<Value> {
        let message = wait(async { tokio::time::timeout(PATIENCE, self.0.next()).await });
        let message = message.expect("a frame or an end in time")?.ok()?;
        serde_json::from_str(message.to_text().ok()?).ok()
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

    /// A reader that requests more than its connection can buffer and reads nothing.
    fn stuck(plane: &Plane) -> Self {
        let mut socket = Self::open(plane, "/ws/instances");
        (0..1600).for_each(|_| socket.say(r#"{"type":"set_include_archived","value":true}"#));
        socket
    }

    /// A reader that keeps sending requests and reads no response until its connection is full in both directions.
    pub fn clogged(plane: &Plane, path: &str) -> Self {
        /// After this long without progress, there will be none.
        const STILL: Duration = Duration::from_secs(2);
        let mut socket = Self::open(plane, path);
        wait(async {
            loop {
                let asked = socket.0.feed(Message::text(r#"{"type":"ping"}"#));
                match tokio::time::timeout(STILL, asked).await {
                    Ok(asked) => asked.unwrap(),
                    Err(_) => return,
                }
            }
        });
        socket
    }

    pub fn say(&mut self, text: &str) {
        wait(self.0.send(Message::text(text))).unwrap();
    }

    /// Returns the close code.
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
fn instance_socket_sends_snapshot_then_changes_within_a_second() {
    let plane = Plane::new();
    plane.create("one");
    let mut socket = Socket::open(&plane, "/ws/instances");
    let snapshot = socket.next();
    assert_eq!((&snapshot["type"], &snapshot["instances"][0]["name"]), (&json!("snapshot"), &json!("one")));
    let started = plane.start("one");
    let began = Instant::now();
    let changed = socket.until("status_changed");
    assert!(began.elapsed() < A_SECOND, "{:?}", began.elapsed());
    assert_eq!(
        (&changed["instance"]["status"], &changed["instance"]["pid"]),
        (&json!("running"), &started["pid"])
    );
    plane.call("PATCH", "/instances/one", Some(json!({ "restart": "never" })), &[]).ok();
    while socket.until("status_changed")["instance"]["restart"] != "never" {}
    let began = Instant::now();
    signal("KILL", started["pid"].as_i64().unwrap());
    while socket.until("status_changed")["instance"]["status"] != "crashed" {}
    assert!(began.elapsed() < Duration::from_secs(10), "a crash is reported after {:?}", began.elapsed());
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
fn log_socket_streams_new_lines_and_rotation() {
    let plane = Plane::new();
    let made = plane.create("one");
    let log = plane.folder(&made).join("logs/daemon.log");
    fs::write(&log, "1\n2\n3\n").unwrap();
    let mut socket = Socket::open(&plane, "/ws/instances/one/logs?backlog=2");
    assert_eq!(socket.next(), json!({ "type": "backlog", "count": 2, "lines": ["2", "3"] }));
    let began = Instant::now();
    fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(b"4\n").unwrap();
    assert_eq!(socket.next()["lines"], json!(["4"]));
    assert!(began.elapsed() < A_SECOND, "{:?}", began.elapsed());
    fs::rename(&log, log.with_extension("log.1")).unwrap();
    fs::write(&log, "5\n").unwrap();
    assert_eq!(socket.next(), json!({ "type": "rotated" }));
    assert_eq!(socket.next()["lines"], json!(["5"]));
}

/// Two hundred readers, of which some are stuck and one disappeared without closing: active readers get events
/// immediately; a stuck one costs a bounded buffer, and gets a new snapshot when it reads again.
#[test]
fn stuck_and_dead_readers_do_not_delay_two_hundred_others() {
    let plane = Plane::new();
    (0..30).for_each(|number| drop(plane.create(&format!("one-{number}"))));
    let stuck: Vec<Socket> = (0..4).map(|_| Socket::stuck(&plane)).collect();
    let dead = connect_without_reading(&plane);
    let mut others: Vec<Socket> = (0..196).map(|_| Socket::open(&plane, "/ws/instances")).collect();
    others.iter_mut().for_each(|socket| drop(socket.next()));
    let before = memory_of(plane.pid());
    // More changes than a reader's buffer holds.
    let rounds = 140;
    let mut delays = Vec::new();
    for _ in 0..rounds {
        delays.extend(notification_delays(&plane, &mut others));
        plane.post("/instances/one-0/unarchive", json!({})).ok();
    }
    delays.sort_unstable();
    let (median, most) = (delays[delays.len() / 2], delays[delays.len() * 99 / 100]);
    assert!(median < A_SECOND && most < A_SECOND, "median {median:?}, p99 {most:?}");
    plane.post("/instances/one-1/archive", json!({})).ok();
    let grown = memory_of(plane.pid()).saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KB more for readers that read nothing");
    for mut socket in stuck {
        let (mut news, mut knows) = (0, false);
        while !knows {
            let Some(frame) = socket.try_next() else {
                // It was stuck for too long and closed: it reconnects and starts with a snapshot.
                socket = Socket::open(&plane, "/ws/instances");
                news = 0;
                continue;
            };
            news += usize::from(frame["type"] != "snapshot");
            knows = shows_archived(&frame, "one-1");
        }
        assert!(news < 2 * rounds, "it got all {news} of them one by one: it never fell behind");
    }
    drop(dead);
}

/// How long after a change each reader gets it.
fn notification_delays(plane: &Plane, readers: &mut [Socket]) -> Vec<Duration> {
    let began = Instant::now();
    let notice = futures_util::future::join_all(readers.iter_mut().map(async |reader| {
        loop {
            let frame = reader.0.next().await.expect("the socket is open").unwrap();
            if frame.to_text().unwrap().contains(r#""type":"instance_archived""#) {
                return began.elapsed();
            }
        }
    }));
    let (answer, delays) = wait(async {
        tokio::join!(plane.calling("POST", "/instances/one-0/archive", Some(json!({})), &[]), notice)
    });
    answer.ok();
    delays
}

/// Whether a frame says that an instance was archived. A snapshot without archived ones does not list it.
fn shows_archived(frame: &Value, name: &str) -> bool {
    if frame["type"] == "instance_archived" {
        return frame["instance"]["name"] == name;
    }
    let mut listed = frame["instances"].as_array().into_iter().flatten();
    let found = listed.find(|one| one["name"] == name);
    frame["type"] == "snapshot" && found.is_none_or(|one| one["status"] == "archived")
}

/// A reader whose machine disappeared: it never reads and never closes.
fn connect_without_reading(plane: &Plane) -> std::net::TcpStream {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", plane.port)).unwrap();
    let request = format!(
        "GET /ws/instances HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer {}\r\n\r\n",
        plane.port,
        plane.token()
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Resident memory of a process in kilobytes.
fn memory_of(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn sockets_need_a_token_and_close_at_server_shutdown() {
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
