//! Reads little-endian values from something whose length is known, never past its end and never trusting a
//! length it finds inside.

use std::io::{BufReader, Read, Seek, SeekFrom};

use super::Damaged;

/// Longer than any word a real file holds, short enough that a lie costs nothing.
const LONGEST_TEXT: u64 = 1 << 20;

pub(super) struct Bytes<R> {
    inner: BufReader<R>,
    at: u64,
    len: u64,
}

impl<R: Read + Seek> Bytes<R> {
    /// Of the whole file.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn new(mut inner: R) -> Result<Self, Damaged> {
        let len = inner.seek(SeekFrom::End(0)).map_err(unreadable)?;
        inner.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        Ok(Self { inner: BufReader::with_capacity(1 << 16, inner), at: 0, len })
    }

    pub fn at(&self) -> u64 {
        self.at
    }

    pub fn left(&self) -> u64 {
        self.len.saturating_sub(self.at)
    }

    pub fn seek(&mut self, to: u64) -> Result<(), Damaged> {
        if to > self.len {
            return Err(Damaged::new(format!("it ends at byte {} where byte {to} is announced", self.len)));
        }
        self.inner.seek(SeekFrom::Start(to)).map_err(unreadable)?;
        self.at = to;
        Ok(())
    }

    /// Memory is asked for only after the file is known to hold that much.
    pub fn take(&mut self, count: u64) -> Result<Vec<u8>, Damaged> {
        if count > self.left() {
            return Err(self.short(count));
        }
        let size = usize::try_from(count).map_err(|_| Damaged::new("a length overflows"))?;
        let mut bytes = vec![0; size];
        self.inner.read_exact(&mut bytes).map_err(unreadable)?;
        self.at += count;
        Ok(bytes)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        if N as u64 > self.left() {
            return Err(self.short(N as u64));
        }
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes).map_err(unreadable)?;
        self.at += N as u64;
        Ok(bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Damaged> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Damaged> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length, then so many bytes of text.
    pub fn text(&mut self) -> Result<String, Damaged> {
        let len = self.u64()?;
        if len > LONGEST_TEXT {
            return Err(Damaged::new(format!("a text of {len} bytes is announced at byte {}", self.at)));
        }
        String::from_utf8(self.take(len)?).map_err(|_| Damaged::new("a text is not UTF-8"))
    }

    fn short(&self, wanted: u64) -> Damaged {
        Damaged::new(format!("{wanted} bytes are announced at byte {} and {} are left", self.at, self.left()))
    }
}

fn unreadable(error: std::io::Error) -> Damaged {
    Damaged::new(format!("it can not be read: {error}"))
}
