//! A small web site on the loopback address.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub struct Site {
    pub port: u16,
    /// Every request: its head in lower case, then its body.
    pub requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// Answers each path with the bytes the closure gives.
    pub async fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                tokio::spawn(async move { serve(stream, &seen, &*answer).await });
            }
        });
        Self { port, requests }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

async fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<String>>,
    answer: &(dyn Fn(&str) -> Vec<u8> + Send + Sync),
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read_exact(&mut byte).await.is_err() {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split('\r').next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    if stream.read_exact(&mut body).await.is_err() {
        return;
    }
    seen.lock().unwrap().push(head + &String::from_utf8_lossy(&body));
    stream.write_all(&answer(&path)).await.ok();
    stream.shutdown().await.ok();
}

pub fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub fn text(body: &str) -> Vec<u8> {
    answer("200 OK", "content-type: text/plain\r\n", body.as_bytes())
}

pub fn redirect(to: &str) -> Vec<u8> {
    answer("302 Found", &format!("location: {to}\r\ncontent-length: 0\r\n"), b"")
}
