//! Redirects from a site that counts as public to one that does not. All of 127.0.0.0/8 is this machine, so one
//! loopback address plays the public site.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const PUBLIC: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

fn rule(address: IpAddr) -> bool {
    address == IpAddr::V4(PUBLIC)
}

/// Redirects every request to `location`, or answers it if that is `None`. Returns the port and a request counter.
fn site(at: Ipv4Addr, location: Option<String>) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((at, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counter.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 4096]).unwrap_or(0);
            let head = location.as_ref().map_or("HTTP/1.1 200 OK".to_owned(), |location| {
                format!("HTTP/1.1 307 Away\r\nlocation: {location}")
            });
            write!(stream, "{head}\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok").ok();
        }
    });
    (port, count)
}

async fn get(url: String) -> Result<ToolOutcome> {
    let arguments = HttpFetchArguments { url, method: None, headers: None, max_bytes: None };
    run(&WebClient::new(rule), arguments).await
}

#[tokio::test]
async fn redirect_to_private_address_is_refused_without_request() {
    let (inner, asked) = site(Ipv4Addr::LOCALHOST, None);
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"] {
        let (port, _) = site(PUBLIC, Some(format!("http://{host}:{inner}/")));
        let refused = get(format!("http://{PUBLIC}:{port}/")).await;
        assert!(matches!(refused, Err(Error::Address(_))), "{host}: {refused:?}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn redirect_to_public_address_is_followed() {
    let (port, _) = site(PUBLIC, None);
    let (first, _) = site(PUBLIC, Some(format!("//{PUBLIC}:{port}/")));
    assert!(get(format!("http://{PUBLIC}:{first}/")).await.unwrap().content.ends_with("ok"));
}
