//! A stream that fails if the peer does not read for too long.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

pub struct IdleTimeout<S> {
    stream: S,
    limit: Duration,
    /// Runs while a write is pending.
    timer: Pin<Box<Sleep>>,
    waits: bool,
}

impl<S> IdleTimeout<S> {
    pub fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, timer: Box::pin(tokio::time::sleep(limit)), waits: false }
    }

    /// Returns the result of the stream, or an error if it has been pending for too long.
    fn enforce_timeout<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waits = false;
            return polled;
        }
        if !std::mem::replace(&mut self.waits, true) {
            self.timer.as_mut().reset(Instant::now() + self.limit);
        }
        ready!(self.timer.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the reader does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for IdleTimeout<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for IdleTimeout<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.enforce_timeout(cx, polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        this.enforce_timeout(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_flush(cx);
        this.enforce_timeout(cx, polled)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn write_times_out_only_without_reader_progress() {
        let (ours, mut theirs) = duplex(4);
        let mut patient = IdleTimeout::new(ours, Duration::from_secs(30));
        let slow = async {
            for _ in 0..5 {
                tokio::time::sleep(Duration::from_secs(20)).await;
                theirs.read_exact(&mut [0; 4]).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(patient.write_all(&[7; 20]), slow);
        written.unwrap();
        let began = Instant::now();
        let stuck = patient.write_all(&[7; 20]).await.unwrap_err();
        assert_eq!((stuck.kind(), began.elapsed().as_secs()), (io::ErrorKind::TimedOut, 30));
    }
}
