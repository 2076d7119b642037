//! Keeps the end of a stream while it is read: a supervisor's last line follows the output of its program.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

const RETAINED_BYTES: usize = 1_024;

#[derive(Clone, Default)]
pub struct OutputTail(Arc<Mutex<Vec<u8>>>);

impl OutputTail {
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&bytes[bytes.len().saturating_sub(RETAINED_BYTES)..]);
        let excess = kept.len().saturating_sub(RETAINED_BYTES);
        kept.drain(..excess);
    }
}

pub struct TailReader<R> {
    inner: R,
    tail: OutputTail,
}

impl<R> TailReader<R> {
    pub fn new(inner: R, tail: OutputTail) -> Self {
        Self { inner, tail }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for TailReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.inner).poll_read(context, buffer));
        self.tail.push(&buffer.filled()[before..]);
        Poll::Ready(read)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn tail_reader_passes_all_bytes_and_retains_the_end() {
        let text = [b"x".repeat(5_000), b"the end".to_vec()].concat();
        let tail = OutputTail::default();
        let mut read = Vec::new();
        TailReader::new(&text[..], tail.clone()).read_to_end(&mut read).await.unwrap();
        assert_eq!(read, text);
        assert_eq!(tail.bytes(), text[text.len() - RETAINED_BYTES..]);
    }
}
