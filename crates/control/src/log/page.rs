//! Pages through the whole history of a log, oldest lines first. A cursor is a file and an offset, and stays valid
//! when the file is rotated.

use std::fs;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::list_log_files;

/// Most bytes of a page.
const MAX_PAGE_BYTES: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    pub lines: Vec<String>,
    /// The cursor of the next page, which may still be empty.
    pub next: String,
    /// More lines are available now.
    pub has_more: bool,
    /// The file of the cursor is gone: the page starts with the oldest line.
    pub gap: bool,
}

/// Identifies a file. Inode numbers are reused, so the creation time counts too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogFileId {
    inode: u64,
    made: u128,
}

impl LogFileId {
    fn for_file(path: &Path) -> io::Result<Self> {
        let meta = fs::metadata(path)?;
        let made = meta.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Ok(Self { inode: meta.ino(), made: made.unwrap_or_default().as_nanos() })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogCursor {
    volume: LogFileId,
    offset: u64,
}

impl LogCursor {
    fn encode(self) -> String {
        format!("{:x}-{:x}-{:x}", self.volume.inode, self.volume.made, self.offset)
    }

    fn decode(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let mut number = || u128::from_str_radix(parts.next()?, 16).ok();
        let (inode, made, offset) = (number()?, number()?, number()?);
        let volume = LogFileId { inode: inode.try_into().ok()?, made };
        parts.next().is_none().then_some(Self { volume, offset: offset.try_into().ok()? })
    }
}

/// Returns the page after a cursor, or the first page without one. Returns `None` if the cursor is invalid.
pub fn read_page(log: &Path, cursor: Option<&str>, lines: usize) -> io::Result<Option<LogPage>> {
    let from = match cursor.filter(|cursor| !cursor.is_empty()) {
        Some(text) => match LogCursor::decode(text) {
            Some(spot) => Some(spot),
            None => return Ok(None),
        },
        None => None,
    };
    let mut volumes = Vec::new();
    for path in list_log_files(log) {
        volumes.push((LogFileId::for_file(&path)?, path));
    }
    let at = from.and_then(|spot| volumes.iter().position(|(volume, _)| *volume == spot.volume));
    let gap = from.is_some() && at.is_none() && !volumes.is_empty();
    let offset = from.filter(|_| at.is_some()).map_or(0, |spot| spot.offset);
    let mut page =
        LogPage { lines: Vec::new(), next: cursor.unwrap_or_default().to_owned(), has_more: false, gap };
    fill_page(&mut page, &volumes[at.unwrap_or(0)..], offset, lines)?;
    Ok(Some(page))
}

fn fill_page(
    page: &mut LogPage,
    volumes: &[(LogFileId, PathBuf)],
    mut offset: u64,
    lines: usize,
) -> io::Result<()> {
    let mut room = MAX_PAGE_BYTES;
    for (index, (volume, path)) in volumes.iter().enumerate() {
        let is_last = index + 1 == volumes.len();
        let mut reader = BufReader::new(fs::File::open(path)?);
        reader.seek(SeekFrom::Start(offset))?;
        loop {
            let mut line = Vec::new();
            let read = reader.read_until(b'\n', &mut line)?;
            // An incomplete line of the current log waits for its end. In a rotated file it never gets one.
            if read == 0 || (is_last && !line.ends_with(b"\n")) {
                break;
            }
            // The first line is always returned, however long, so that the cursor advances.
            if page.lines.len() == lines || (room < read && !page.lines.is_empty()) {
                page.has_more = true;
                page.next = LogCursor { volume: *volume, offset }.encode();
                return Ok(());
            }
            (offset, room) = (offset + read as u64, room.saturating_sub(read));
            line.truncate(MAX_PAGE_BYTES);
            page.lines.push(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned());
        }
        page.next = LogCursor { volume: *volume, offset }.encode();
        offset = 0;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_LOG_BYTES, rotate_if_full, rotated_path};
    use super::*;

    fn all(log: &Path, size: usize) -> (Vec<String>, String) {
        let (mut lines, mut cursor) = (Vec::new(), None);
        loop {
            let got = read_page(log, cursor.as_deref(), size).unwrap().unwrap();
            lines.extend(got.lines);
            cursor = Some(got.next);
            if !got.has_more {
                return (lines, cursor.unwrap());
            }
        }
    }

    #[test]
    fn log_pages_of_any_size_cover_the_whole_history() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("daemon.log");
        fs::write(rotated_path(&log, 1), "1\n2\n3").unwrap();
        fs::write(&log, "4\n5\nhalf").unwrap();
        for size in 1..7 {
            assert_eq!(all(&log, size).0, ["1", "2", "3", "4", "5"], "{size}");
        }
    }

    #[test]
    fn log_cursor_stays_valid_after_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("daemon.log");
        fs::write(&log, "1\n2\n").unwrap();
        let (_, cursor) = all(&log, 1);
        let mut old = fs::OpenOptions::new().append(true).open(&log).unwrap();
        io::Write::write_all(
            &mut old,
            format!("{}\n", "x".repeat(usize::try_from(MAX_LOG_BYTES).unwrap())).as_bytes(),
        )
        .unwrap();
        assert!(rotate_if_full(&log).unwrap());
        fs::write(&log, "new\n").unwrap();
        let next = read_page(&log, Some(&cursor), 10).unwrap().unwrap();
        assert!(!next.gap && next.has_more, "it goes on in the file that was moved");
        assert_eq!(
            (next.lines.len(), next.lines[0].len()),
            (1, MAX_PAGE_BYTES),
            "a line that is too long is cut"
        );
        assert_eq!(read_page(&log, Some(&next.next), 10).unwrap().unwrap().lines, ["new"]);
        fs::remove_file(rotated_path(&log, 1)).unwrap();
        let next = read_page(&log, Some(&cursor), 10).unwrap().unwrap();
        assert_eq!((next.gap, next.lines), (true, vec!["new".to_owned()]));
    }

    #[test]
    fn malformed_log_cursor_is_refused() {
        for wrong in ["x", "1-2", "1-2-3-4", "../../etc/passwd", "-1-1-1"] {
            assert_eq!(read_page(Path::new("/nowhere/daemon.log"), Some(wrong), 1).unwrap(), None, "{wrong}");
        }
    }
}
