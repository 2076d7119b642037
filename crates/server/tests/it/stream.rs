use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::Method;
use serde_json::{Value, json};

use crate::instance::{Answer, Instance, ONE, ONE_KEY};

/// Server-sent events of a response, one by one.
pub struct Events {
    bytes: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    pending: String,
}

pub struct Event {
    pub id: Option<String>,
    pub kind: Option<String>,
    pub data: String,
}

impl Event {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|_| panic!("{}", self.data))
    }
}

impl Events {
    pub async fn open(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { bytes: response.bytes_stream().boxed(), pending: String::new() }
    }

    /// `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((block, rest)) = self.pending.split_once("\n\n") {
                let field = |name: &str| {
                    let lines = block.lines();
                    lines.filter_map(|line| line.strip_prefix(name)).map(str::to_owned).next()
                };
                let event = Event {
                    id: field("id: "),
                    kind: field("event: "),
                    data: field("data: ").unwrap_or_default(),
                };
                self.pending = rest.to_owned();
                if !event.data.is_empty() {
                    return Some(event);
                }
                continue;
            }
            let piece = tokio::time::timeout(Duration::from_secs(60), self.bytes.next()).await;
            self.pending.push_str(std::str::from_utf8(&piece.expect("an event in time")?.unwrap()).unwrap());
        }
    }

    /// The next event of a kind, skipping others.
    pub async fn until(&mut self, event: &str) -> Event {
        loop {
            let next = self.next().await.expect("the stream goes on");
            if next.json()["event"] == event {
                return next;
            }
        }
    }
}

fn path(rest: &str) -> String {
    format!("/api/v1/sessions/{ONE}/stream{rest}")
}

#[tokio::test]
async fn session_stream_delivers_text_before_turn_ends() {
    let instance = Instance::start().await;
    let mut events = Events::open(instance.request(Method::GET, &path(""))).await;
    let opened = events.next().await.unwrap().json();
    assert_eq!((&opened["event"], &opened["seq"]), (&json!("stream.opened"), &json!(0)));
    let text = format!("/api/v1/sessions/{ONE}/messages");
    instance.post(&text, json!({ "text": "hold" })).await.ok();
    let accepted = events.next().await.unwrap().json();
    assert_eq!((&accepted["event"], &accepted["session_key"]), (&json!("message.accepted"), &json!(ONE_KEY)));
    assert_eq!((&accepted["type"], &accepted["seq"]), (&json!("event"), &json!(1)));
    assert_eq!(events.until("turn.delta").await.json()["text"], "first ");
    instance.gate.add_permits(1);
    assert_eq!(events.until("turn.delta").await.json()["text"], "second");
    let ended = events.until("turn.ended").await.json();
    assert_eq!((&ended["state"], &ended["text"]), (&json!("done"), &json!("first second")));
}

#[tokio::test]
async fn stream_resumes_after_last_event_id() {
    let instance = Instance::start().await;
    instance.say("one two").await;
    let mut events = Events::open(instance.request(Method::GET, &path("?after=0"))).await;
    events.until("message.accepted").await;
    let second = events.next().await.unwrap();
    let id = second.id.clone().unwrap();
    let request = instance.request(Method::GET, &path("")).header("last-event-id", &id);
    let mut again = Events::open(request).await;
    let opened = again.next().await.unwrap().json();
    assert_eq!(id, format!("{}-2", opened["epoch"].as_str().unwrap()));
    assert_eq!(again.next().await.unwrap().json()["seq"], 3);
}

#[tokio::test]
async fn missing_frames_are_reported_as_replay_gap() {
    let instance = Instance::start().await;
    instance.say("hello").await;
    for from in ["?after=1000000", "?after=another-life-1"] {
        let mut events = Events::open(instance.request(Method::GET, &path(from))).await;
        events.until("stream.opened").await;
        let gap = events.next().await.unwrap().json();
        assert_eq!((&gap["event"], &gap["session_key"]), (&json!("replay.gap"), &json!(ONE_KEY)));
    }
    instance.get(&path("?after=soon")).await.refuses(400, "invalid_parameter");
}

#[tokio::test]
async fn slow_stream_reader_is_notified_and_disconnected() {
    let instance = Instance::start().await;
    let mut events = Events::open(instance.request(Method::GET, &path(""))).await;
    events.until("stream.opened").await;
    // Far more than the reader's place, its socket and its kernel buffers hold, while it reads nothing.
    instance.say("flood 8000").await;
    let mut seen = 0;
    loop {
        let Some(event) = events.next().await else { panic!("it was not told") };
        if event.json()["event"] == "reader.behind" {
            break;
        }
        seen += 1;
    }
    assert!(seen < 8000);
    assert!(events.next().await.is_none(), "the subscription ends");
}

#[tokio::test]
async fn stream_accepts_login_code_in_query() {
    let instance = Instance::start().await;
    let login = instance.login().await;
    let mut events = Events::open(instance.bare(Method::GET, &path(&login[1..]))).await;
    events.until("stream.opened").await;
    Answer::of(instance.bare(Method::GET, &path("?code=wrong"))).await.refuses(401, "unauthorized");
    Answer::of(instance.bare(Method::GET, &path(""))).await.refuses(401, "unauthorized");
}
