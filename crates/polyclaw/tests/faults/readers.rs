//! Readers that never read and senders that never finish: their cost is bounded, and others are not affected.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};

use crate::daemon::{Daemon, PATIENCE, TOKEN, config, key};

const TURNS: usize = 4;

fn connect(daemon: &Daemon) -> TcpStream {
    let stream = TcpStream::connect(daemon.url.strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// An event stream of a session that is opened and never read.
fn open_unread_event_stream(daemon: &Daemon, who: &str) -> TcpStream {
    let mut stream = connect(daemon);
    let path = format!("/api/v1/sessions/{}/stream", key(who));
    let head = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// An open WebSocket that is not read.
pub fn socket(daemon: &Daemon) -> TcpStream {
    let mut stream = connect(daemon);
    write!(
        stream,
        "GET /api/v1/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    .unwrap();
    let mut text = [0; 12];
    stream.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"HTTP/1.1 101", "the socket was refused");
    stream
}

/// Sends one text frame, masked as a client must; a mask of zeros leaves the text as it is.
pub fn text_frame(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<()> {
    let length = u64::try_from(text.len()).unwrap().to_be_bytes();
    let mut frame = vec![0x81, 0x80 | 127];
    frame.extend(length.iter().chain(&[0; 4]).chain(text));
    stream.write_all(&frame)
}

/// A socket that watches a session and is never read.
fn open_unread_socket(daemon: &Daemon, who: &str) -> TcpStream {
    let mut stream = socket(daemon);
    let request = format!(
        r#"{{"type":"req","id":1,"method":"subscribe","params":{{"session_key":"agent:main:web:dm:{who}"}}}}"#
    );
    text_frame(&mut stream, request.as_bytes()).unwrap();
    stream
}

/// Kilobytes of a line of the process's status: `VmRSS` now, `VmHWM` at most so far.
pub fn memory(daemon: &Daemon, line: &str) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let found = status.lines().find(|text| text.starts_with(line)).unwrap();
    found.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A counter of the daemon's metrics.
pub async fn metric(daemon: &Daemon, name: &str) -> usize {
    let asked = daemon.client.get(format!("{}/metrics", daemon.url)).bearer_auth(TOKEN);
    let metrics = asked.send().await.unwrap().text().await.unwrap();
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap().parse().unwrap()
}

/// Waits until this many readers are counted; one that has disconnected may still count.
async fn wait_for_watchers(daemon: &Daemon, readers: usize) {
    let began = Instant::now();
    while metric(daemon, "polyclaw_watchers").await < readers {
        assert!(began.elapsed() < PATIENCE, "fewer than {readers} readers are counted");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Reads the events of a session until this many turns have ended.
async fn follow(daemon: &Daemon, who: &str, turns: usize) {
    let asked = daemon.client.get(format!("{}/api/v1/sessions/{}/stream", daemon.url, key(who)));
    let mut events = asked.bearer_auth(TOKEN).send().await.unwrap();
    let (mut ended, mut rest) = (0, String::new());
    while ended < turns {
        let piece = events.chunk().await.unwrap().expect("the stream continues");
        rest.push_str(&String::from_utf8_lossy(&piece));
        ended += rest.matches("\"turn.ended\"").count();
        // Only the part that may be incomplete is checked again.
        let keep = rest.rfind('\n').map_or(0, |at| at + 1);
        rest.drain(..keep);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_readers_use_bounded_memory_and_delay_nobody() {
    let model = ModelServer::start();
    // Much is streamed and little is stored, so growth is data that waits for readers.
    model.answer_with(|request| match request.last_user_text() {
        text if text.starts_with("think") => {
            let thought = "x".repeat(20_000);
            // With pauses like a model, so that active readers keep up.
            let pause = Duration::from_millis(3);
            let think = |script: ReplyScript, _| script.reasoning(&thought).wait(pause);
            (0..300).fold(ReplyScript::new(), think).text("thought")
        }
        text => ReplyScript::reply(format!("re: {text}")),
    });
    let mut daemon = Daemon::start(&config(&model, "")).await;
    daemon.say("busy", "first", 30).await.unwrap();
    let dead: Vec<TcpStream> = (0..20)
        .flat_map(|_| [open_unread_event_stream(&daemon, "busy"), open_unread_socket(&daemon, "busy")])
        .collect();
    wait_for_watchers(&daemon, dead.len()).await;
    let before = memory(&daemon, "VmRSS");
    let talking = async {
        for n in 0..TURNS {
            let reply = daemon.say("busy", &format!("think {n}"), 30).await.unwrap();
            assert_eq!(reply.reply(), "thought", "{reply:?}");
            let asked = Instant::now();
            let other = daemon.say("other", &format!("quick {n}"), 30).await.unwrap();
            assert_eq!(other.reply(), format!("re: quick {n}"));
            assert!(asked.elapsed() < Duration::from_secs(25), "another session waits for dead readers");
        }
    };
    tokio::join!(talking, follow(&daemon, "busy", TURNS));
    let grown = memory(&daemon, "VmHWM") - before;
    println!("{} dead readers of {} MB each: {grown} kB more", dead.len(), TURNS * 6);
    assert!(grown < 100_000, "{grown} kB for {} readers that never read", dead.len());
    daemon.assert_alive();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_with_unfinished_headers_are_closed() {
    let model = ModelServer::start();
    let mut daemon = Daemon::start(&config(&model, "")).await;
    let mut slow: Vec<TcpStream> = (0..60).map(|_| connect(&daemon)).collect();
    let began = Instant::now();
    let mut sent = 0;
    // Half of them send nothing, half one byte at a time.
    while began.elapsed() < Duration::from_secs(9) {
        for stream in slow.iter_mut().skip(30) {
            let byte = b"GET / HTTP/1.1\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"[sent % 50];
            stream.write_all(&[byte]).unwrap();
        }
        sent += 1;
        let answer = daemon.say("me", &format!("hello {sent}"), 30).await.unwrap();
        assert_eq!(answer.reply(), format!("echo: hello {sent}"));
        tokio::time::sleep(Duration::from_millis(450)).await;
    }
    for stream in &mut slow {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut heard = [0; 512];
        // Closed, with or without a close frame; a read timeout is another kind of error.
        while let Ok(1..) = stream.read(&mut heard).inspect_err(|error| {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "still open: {error}");
        }) {}
    }
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    daemon.assert_alive();
}
