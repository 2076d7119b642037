use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::instance::{Instance, ONE};
use crate::stream::Events;

#[tokio::test]
async fn shutdown_finishes_open_calls_and_closes_streams() {
    let mut instance = Instance::start().await;
    let path = format!("/api/v1/sessions/{ONE}/stream");
    let mut events = Events::open(instance.request(Method::GET, &path)).await;
    events.until("stream.opened").await;
    let text = format!("/api/v1/sessions/{ONE}/messages?wait=10");
    let request = instance.request(Method::POST, &text).json(&json!({ "text": "hold" })).send();
    let waiting = tokio::spawn(request);
    events.until("turn.delta").await;
    instance.stop.take().unwrap().send(()).unwrap();
    let closed = async { while events.next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(60), closed).await.expect("the stream ends");
    instance.gate.add_permits(1);
    let answer = waiting.await.unwrap().unwrap();
    assert_eq!(answer.status(), 200);
    let body: serde_json::Value = answer.json().await.unwrap();
    assert_eq!(body["reply"]["text"], "first second");
    tokio::time::timeout(Duration::from_secs(60), &mut instance.server).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn connection_with_unfinished_headers_times_out() {
    let instance = Instance::start().await;
    let address = instance.url.strip_prefix("http://").unwrap();
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    socket.write_all(b"GET /health HTTP/1.1\r\nHost: local").await.unwrap();
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(60), socket.read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "it is still open");
}
