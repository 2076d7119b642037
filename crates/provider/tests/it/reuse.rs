use std::time::{Duration, Instant};

use polyclaw_provider::{ProviderSettings, ProviderVendor};
use polyclaw_testkit::model_server::{ReplyGate, ReplyScript};

use crate::fixture::{Bench, SHAPES, user};

#[tokio::test]
async fn consecutive_calls_share_one_connection() {
    let bench = Bench::new();
    for n in 0..20 {
        let pause = Duration::from_millis(1);
        bench.server.push(ReplyScript::new().chunks("a b c", 3, pause));
        bench.ask(SHAPES[n % 2], &user("hi")).await.unwrap();
        // The end of the answer's last chunk travels apart from its last event.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(bench.server.connection_count(), 1);
}

/// The last event is read before the HTTP answer has ended: the reply does not wait for that end, and the
/// connection is not lost to it.
#[tokio::test]
async fn late_response_end_keeps_the_connection() {
    let bench = Bench::new();
    let gate = ReplyGate::new();
    let done = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let script = ReplyScript::new().raw(done).gate(&gate).unfinished();
    assert_eq!(bench.says("openai/m", script).await.unwrap().text, "a");
    gate.open();
    tokio::time::sleep(Duration::from_millis(20)).await;
    bench.ask("openai/m", &user("hi")).await.unwrap();
    assert_eq!(bench.server.connection_count(), 1);
}

/// Not a benchmark, but a call that builds a client or a TLS configuration would take far longer.
#[tokio::test]
async fn call_overhead_is_small() {
    let bench = Bench::new();
    bench.ask("openai/m", &user("warm up")).await.unwrap();
    let started = Instant::now();
    for _ in 0..200 {
        bench.ask("openai/m", &user("hi")).await.unwrap();
    }
    let each = started.elapsed() / 200;
    println!("{each:?} per call");
    assert!(each < Duration::from_millis(20), "{each:?} per call");
}

/// A server that answers, says that it keeps the connection, and closes it as soon as the next request arrives.
fn forgetful() -> std::net::SocketAddr {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
            std::thread::spawn(move || {
                let mut request = vec![0; 64 * 1024];
                if connection.read(&mut request).is_err() {
                    return;
                }
                let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\n\
                            data: [DONE]\n\n";
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n\r\n",
                    body.len()
                );
                let _ = connection.write_all(format!("{head}{body}").as_bytes());
                // The next request on this connection is read, and never answered.
                let _ = connection.read(&mut request);
            });
        }
    });
    address
}

#[tokio::test]
async fn closed_pooled_connection_does_not_fail_calls() {
    let address = forgetful();
    let bench = Bench::with(|_| {
        let url = format!("http://{address}/v1");
        vec![ProviderSettings::new("closing", ProviderVendor::OpenAiCompatible).base_url(url)]
    });
    for n in 0..5 {
        let answered = bench.ask("closing/m", &user("hi")).await;
        assert_eq!(answered.unwrap().text, "ok", "{n}");
    }
}
