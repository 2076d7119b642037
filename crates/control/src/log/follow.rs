//! Follows a log as it grows.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::{MAX_TAIL_BYTES, list_log_files, tail_of_files};

/// Most bytes read at a time.
const READ_CHUNK_BYTES: u64 = 256 << 10;

/// Reads lines that are appended to a log.
pub struct LogFollower {
    path: PathBuf,
    file: Option<File>,
    inode: u64,
    offset: u64,
    /// An incomplete last line.
    half: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogChunk {
    /// The log was rotated or truncated: the lines that follow are from another file.
    pub rotated: bool,
    pub lines: Vec<String>,
    /// More can be read immediately.
    pub more: bool,
}

impl LogFollower {
    /// Returns the last lines and a follower that continues after them, without gaps or repeats.
    pub fn with_backlog(path: PathBuf, lines: usize) -> io::Result<(Self, Vec<String>)> {
        let mut follow = Self { path, file: None, inode: 0, offset: 0, half: Vec::new() };
        if follow.open().is_err() {
            return Ok((follow, Vec::new()));
        }
        let size = follow.file.as_ref().map_or(Ok(0), |file| file.metadata().map(|meta| meta.size()))?;
        follow.offset = size.saturating_sub(MAX_TAIL_BYTES);
        let is_whole = follow.offset == 0;
        let mut bytes = Vec::new();
        while follow.offset < size {
            let bite = follow.read_chunk(size - follow.offset)?;
            if bite.is_empty() {
                break;
            }
            bytes.extend(bite);
        }
        let mut found = follow.split_lines(bytes);
        // The first line of a window may be incomplete.
        let cut = usize::from(!is_whole).min(found.len());
        let mut last = found.split_off(found.len().saturating_sub(lines).max(cut));
        if is_whole && last.len() < lines {
            let aside = list_log_files(&follow.path).into_iter().rev().skip(1);
            let mut older = tail_of_files(aside, lines - last.len())?;
            older.append(&mut last);
            last = older;
        }
        Ok((follow, last))
    }

    fn open(&mut self) -> io::Result<()> {
        let file = File::open(&self.path)?;
        (self.inode, self.offset) = (file.metadata()?.ino(), 0);
        self.file = Some(file);
        self.half.clear();
        Ok(())
    }

    /// Reads the lines added since the last call. The rest of a rotated log is read before the next file.
    pub fn read_new(&mut self) -> io::Result<LogChunk> {
        if self.file.is_none() && self.open().is_err() {
            return Ok(LogChunk::default());
        }
        let bytes = self.read_chunk(READ_CHUNK_BYTES)?;
        if !bytes.is_empty() {
            let more = bytes.len() as u64 == READ_CHUNK_BYTES;
            return Ok(LogChunk { lines: self.split_lines(bytes), more, rotated: false });
        }
        let now = std::fs::metadata(&self.path);
        let moved = now.as_ref().is_ok_and(|meta| meta.ino() != self.inode || meta.size() < self.offset);
        if !moved {
            return Ok(LogChunk::default());
        }
        let last = Some(std::mem::take(&mut self.half)).filter(|half| !half.is_empty());
        let lines = last.map(|half| String::from_utf8_lossy(&half).into_owned()).into_iter().collect();
        self.open()?;
        Ok(LogChunk { rotated: true, lines, more: true })
    }

    fn read_chunk(&mut self, most: u64) -> io::Result<Vec<u8>> {
        let Some(file) = &mut self.file else { return Ok(Vec::new()) };
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.take(most.min(READ_CHUNK_BYTES)).read_to_end(&mut bytes)?;
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    fn split_lines(&mut self, bytes: Vec<u8>) -> Vec<String> {
        self.half.extend(bytes);
        let Some(end) = self.half.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let rest = self.half.split_off(end + 1);
        let whole = std::mem::replace(&mut self.half, rest);
        String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    #[test]
    fn follower_returns_whole_lines_and_detects_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        let (mut follow, none) = LogFollower::with_backlog(path.clone(), 9).unwrap();
        assert!(none.is_empty());
        assert_eq!(follow.read_new().unwrap(), LogChunk::default(), "there is no log yet");
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(b"1\n2\nha").unwrap();
        assert_eq!(follow.read_new().unwrap().lines, ["1", "2"]);
        file.write_all(b"lf\nlast").unwrap();
        fs::rename(&path, dir.path().join("daemon.log.1")).unwrap();
        fs::write(&path, "3\n").unwrap();
        assert_eq!(follow.read_new().unwrap().lines, ["half"], "the old file is read to its end");
        let moved = follow.read_new().unwrap();
        assert_eq!((moved.rotated, moved.lines), (true, vec!["last".to_owned()]));
        assert_eq!(follow.read_new().unwrap().lines, ["3"]);
        fs::write(&path, "").unwrap();
        assert!(follow.read_new().unwrap().rotated, "a log that was cut is another");
    }

    #[test]
    fn follower_continues_where_its_backlog_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        fs::write(dir.path().join("daemon.log.1"), "1\n2\n").unwrap();
        fs::write(&path, "3\n4\nha").unwrap();
        for (wanted, expected) in [(1, vec!["4"]), (3, vec!["2", "3", "4"]), (9, vec!["1", "2", "3", "4"])] {
            let (mut follow, backlog) = LogFollower::with_backlog(path.clone(), wanted).unwrap();
            assert_eq!(
                (backlog, follow.read_new().unwrap()),
                (expected.iter().map(ToString::to_string).collect(), LogChunk::default())
            );
        }
        let (mut follow, _) = LogFollower::with_backlog(path.clone(), 1).unwrap();
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"lf\n").unwrap();
        assert_eq!(follow.read_new().unwrap().lines, ["half"]);
    }
}
