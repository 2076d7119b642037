//! Reads little-endian values from a file of known length. Never reads past the end and never trusts a length in the
//! file.

use std::io::{BufReader, Read, Seek, SeekFrom};

use super::CorruptModelFile;

/// Longer than any string in a real file, and short enough to allocate without harm.
const MAX_TEXT_LEN: u64 = 1 << 20;

pub(super) struct ModelFileReader<R> {
    inner: BufReader<R>,
    at: u64,
    len: u64,
}

impl<R: Read + Seek> ModelFileReader<R> {
    /// Returns the length of the whole file.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn new(mut inner: R) -> Result<Self, CorruptModelFile> {
        let len = inner.seek(SeekFrom::End(0)).map_err(read_error)?;
        inner.seek(SeekFrom::Start(0)).map_err(read_error)?;
        Ok(Self { inner: BufReader::with_capacity(1 << 16, inner), at: 0, len })
    }

    pub fn position(&self) -> u64 {
        self.at
    }

    pub fn remaining_bytes(&self) -> u64 {
        self.len.saturating_sub(self.at)
    }

    pub fn seek(&mut self, to: u64) -> Result<(), CorruptModelFile> {
        if to > self.len {
            return Err(CorruptModelFile::new(format!(
                "it ends at byte {}, but byte {to} is expected",
                self.len
            )));
        }
        self.inner.seek(SeekFrom::Start(to)).map_err(read_error)?;
        self.at = to;
        Ok(())
    }

    /// Allocates only after checking that the file has that many bytes left.
    pub fn read_bytes(&mut self, count: u64) -> Result<Vec<u8>, CorruptModelFile> {
        if count > self.remaining_bytes() {
            return Err(self.too_short_error(count));
        }
        let size = usize::try_from(count).map_err(|_| CorruptModelFile::new("a length overflows"))?;
        let mut bytes = vec![0; size];
        self.inner.read_exact(&mut bytes).map_err(read_error)?;
        self.at += count;
        Ok(bytes)
    }

    pub fn read_array<const N: usize>(&mut self) -> Result<[u8; N], CorruptModelFile> {
        if N as u64 > self.remaining_bytes() {
            return Err(self.too_short_error(N as u64));
        }
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes).map_err(read_error)?;
        self.at += N as u64;
        Ok(bytes)
    }

    pub fn read_u32(&mut self) -> Result<u32, CorruptModelFile> {
        self.read_array().map(u32::from_le_bytes)
    }

    pub fn read_u64(&mut self) -> Result<u64, CorruptModelFile> {
        self.read_array().map(u64::from_le_bytes)
    }

    /// Reads a length-prefixed string.
    pub fn read_text(&mut self) -> Result<String, CorruptModelFile> {
        let len = self.read_u64()?;
        if len > MAX_TEXT_LEN {
            return Err(CorruptModelFile::new(format!(
                "a text of {len} bytes is declared at byte {}",
                self.at
            )));
        }
        String::from_utf8(self.read_bytes(len)?).map_err(|_| CorruptModelFile::new("a text is not UTF-8"))
    }

    fn too_short_error(&self, wanted: u64) -> CorruptModelFile {
        CorruptModelFile::new(format!(
            "{wanted} bytes are declared at byte {}, but only {} are left",
            self.at,
            self.remaining_bytes()
        ))
    }
}

fn read_error(error: std::io::Error) -> CorruptModelFile {
    CorruptModelFile::new(format!("cannot read it: {error}"))
}
