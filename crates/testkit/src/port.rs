//! Ports for programs that tests start.

use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};

use tokio::net::TcpSocket;

static RESERVED: Mutex<Vec<TcpSocket>> = Mutex::new(Vec::new());

/// Reserves a loopback port until this process ends. The port is bound but not listened on: no outgoing connection
/// and no other test gets it, but a program of the test can listen on it as often as it is started. Until it does,
/// connections are refused.
pub fn free_port() -> u16 {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("a socket beside which another may listen");
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free loopback port");
    let port = socket.local_addr().expect("a bound socket").port();
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner).push(socket);
    port
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::free_port;

    #[test]
    fn free_port_refuses_connections_without_a_listener() {
        let port = free_port();
        for _ in 0..2 {
            assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
            let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
            assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
            drop(listener);
        }
    }
}
