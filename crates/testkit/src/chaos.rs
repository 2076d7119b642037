//! A TCP proxy with injected faults: it cuts or slows connections, drops responses, refuses callers or leaves them
//! waiting. It runs on its own thread and runtime, and closes every connection when dropped.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot, watch};

/// Maximum number of concurrent connections; more wait.
const MAX_CONNECTIONS: usize = 256;
/// How long to wait for a response that is to be dropped.
const SWALLOW_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyMode {
    Fair,
    /// Delays every chunk, in both directions, by this time.
    Slow(Duration),
    /// Cuts open connections and closes new ones immediately.
    Gone,
    /// Accepts nothing: the kernel connects callers, but they receive nothing.
    Silent,
}

/// Drops the response to every n-th chunk that contains these bytes.
struct AnswerLoss {
    bytes: Vec<u8>,
    every: usize,
    left: usize,
}

struct ProxyShared {
    target: SocketAddr,
    weather: watch::Receiver<(ProxyMode, u64)>,
    lose: Mutex<Option<AnswerLoss>>,
    seen: AtomicUsize,
    lost: AtomicUsize,
}

/// Runs until dropped.
pub struct ChaosProxy {
    address: SocketAddr,
    target: SocketAddr,
    weather: watch::Sender<(ProxyMode, u64)>,
    shared: Arc<ProxyShared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ChaosProxy {
    /// Starts a proxy in front of a server on loopback.
    ///
    /// # Panics
    /// If no loopback port is available.
    pub fn in_front_of(target: SocketAddr) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let address = listener.local_addr().expect("a bound address");
        let (weather, seen) = watch::channel((ProxyMode::Fair, 0));
        let shared = Arc::new(ProxyShared {
            target,
            weather: seen,
            lose: Mutex::default(),
            seen: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || run_proxy(listener, shared, stopped)
        });
        Self { address, target, weather, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Starts a proxy in front of the server of a `postgres://user@127.0.0.1:port/name` URL. Returns it with the URL
    /// through the proxy.
    ///
    /// # Panics
    /// If the URL does not contain a numeric loopback address.
    pub fn in_front_of_url(url: &str) -> (Self, String) {
        let (_, place) = url.split_once('@').expect("an address with a user");
        let (host, _) = place.split_once('/').expect("an address with a database");
        let chaos = Self::in_front_of(host.parse().expect("an address with numbers"));
        let through = url.replace(host, &chaos.address.to_string());
        (chaos, through)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn target(&self) -> SocketAddr {
        self.target
    }

    pub fn set_mode(&self, weather: ProxyMode) {
        self.weather.send_modify(|now| now.0 = weather);
    }

    /// Cuts open connections. New ones pass.
    pub fn cut_connections(&self) {
        self.weather.send_modify(|now| now.1 += 1);
    }

    /// Drops the response to every n-th chunk with these bytes after the server has sent it, and cuts the connection.
    /// `times` limits how often.
    pub fn lose_answers(&self, bytes: &[u8], every: usize, times: usize) {
        self.shared.seen.store(0, Ordering::SeqCst);
        *self.shared.lose.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(AnswerLoss { bytes: bytes.to_owned(), every: every.max(1), left: times });
    }

    /// Returns the number of dropped responses.
    pub fn lost_count(&self) -> usize {
        self.shared.lost.load(Ordering::SeqCst)
    }
}

impl Drop for ChaosProxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl ProxyShared {
    /// Returns whether the response to this chunk must be dropped.
    fn should_lose(&self, piece: &[u8]) -> bool {
        let mut lose = self.lose.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(rule) = lose.as_mut() else { return false };
        if rule.left == 0 || !piece.windows(rule.bytes.len()).any(|part| part == rule.bytes) {
            return false;
        }
        let is_due = (self.seen.fetch_add(1, Ordering::SeqCst) + 1).is_multiple_of(rule.every);
        rule.left -= usize::from(is_due);
        is_due
    }
}

fn run_proxy(listener: std::net::TcpListener, shared: Arc<ProxyShared>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let listener = TcpListener::from_std(listener).expect("a listener of this runtime");
        tokio::select! {
            () = accept_connections(listener, shared) => {}
            _ = stopped => {}
        }
    });
}

async fn accept_connections(listener: TcpListener, shared: Arc<ProxyShared>) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut weather = shared.weather.clone();
    loop {
        let heard = weather.wait_for(|now| now.0 != ProxyMode::Silent).await.is_ok();
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        if !heard {
            return;
        }
        let client = tokio::select! {
            biased;
            _ = weather.changed() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((client, _)) = client else { continue };
        if weather.borrow_and_update().0 == ProxyMode::Gone {
            continue;
        }
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            relay_connection(client, &shared).await;
            drop(permit);
        });
    }
}

async fn relay_connection(mut client: TcpStream, shared: &ProxyShared) {
    let mut weather = shared.weather.clone();
    let cuts = weather.borrow_and_update().1;
    let Ok(mut server) = TcpStream::connect(shared.target).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut up, mut down) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(count @ 1..) = read else { return };
                delay_piece(&weather).await;
                let loses = shared.should_lose(&up[..count]);
                if server.write_all(&up[..count]).await.is_err() {
                    return;
                }
                if loses {
                    // Waits for the response, so that the request has taken effect, then drops it.
                    let _ = tokio::time::timeout(SWALLOW_TIMEOUT, server.read(&mut down)).await;
                    shared.lost.fetch_add(1, Ordering::SeqCst);
                    return;
                }
            }
            read = server.read(&mut down) => {
                let Ok(count @ 1..) = read else { return };
                delay_piece(&weather).await;
                if client.write_all(&down[..count]).await.is_err() {
                    return;
                }
            }
            changed = weather.changed() => {
                let (now, generation) = *weather.borrow_and_update();
                if changed.is_err() || now == ProxyMode::Gone || generation != cuts {
                    return;
                }
            }
        }
    }
}

async fn delay_piece(weather: &watch::Receiver<(ProxyMode, u64)>) {
    let now = weather.borrow().0;
    if let ProxyMode::Slow(pause) = now {
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Echoes everything it receives.
    async fn echo(listener: TcpListener) {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = stream.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
            });
        }
    }

    async fn ask(stream: &mut TcpStream, text: &[u8]) -> Option<usize> {
        let mut heard = [0; 16];
        stream.write_all(text).await.ok()?;
        let read = tokio::time::timeout(Duration::from_millis(300), stream.read(&mut heard)).await;
        read.ok()?.ok().filter(|count| *count > 0)
    }

    #[tokio::test]
    async fn each_proxy_mode_behaves_as_documented() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let chaos = ChaosProxy::in_front_of(listener.local_addr().unwrap());
        let server = tokio::spawn(echo(listener));
        let mut stream = TcpStream::connect(chaos.address()).await.unwrap();
        assert_eq!(ask(&mut stream, b"fair").await, Some(4));
        chaos.cut_connections();
        assert_eq!(ask(&mut stream, b"cut").await, None);
        let mut stream = TcpStream::connect(chaos.address()).await.unwrap();
        chaos.lose_answers(b"lose", 2, 1);
        assert_eq!(ask(&mut stream, b"lose one").await, Some(8), "only each second");
        assert_eq!((ask(&mut stream, b"lose two").await, chaos.lost_count()), (None, 1));
        chaos.set_mode(ProxyMode::Silent);
        let mut stream = TcpStream::connect(chaos.address()).await.unwrap();
        assert_eq!(ask(&mut stream, b"hello?").await, None);
        chaos.set_mode(ProxyMode::Gone);
        let refused = TcpStream::connect(chaos.address()).await;
        assert!(refused.is_err() || ask(&mut refused.unwrap(), b"gone").await.is_none());
        chaos.set_mode(ProxyMode::Fair);
        let mut stream = TcpStream::connect(chaos.address()).await.unwrap();
        assert_eq!(ask(&mut stream, b"back").await, Some(4));
        server.abort();
    }
}
