//! New lines of a log as they come.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Most bytes taken at one look.
const BITE: u64 = 256 << 10;

/// Reads what is added to a log, from its end on.
pub struct Follow {
    path: PathBuf,
    file: Option<File>,
    inode: u64,
    offset: u64,
    /// A line that has no end yet.
    half: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// The log was moved aside or cut: what follows is of another file.
    pub rotated: bool,
    pub lines: Vec<String>,
    /// There is more to read right now.
    pub more: bool,
}

impl Follow {
    /// From the end on, as it is now.
    pub fn end_of(path: PathBuf) -> Self {
        let mut follow = Self { path, file: None, inode: 0, offset: 0, half: Vec::new() };
        if follow.open().is_ok() {
            follow.offset = follow.file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |meta| meta.size());
        }
        follow
    }

    fn open(&mut self) -> io::Result<()> {
        let file = File::open(&self.path)?;
        (self.inode, self.offset) = (file.metadata()?.ino(), 0);
        self.file = Some(file);
        self.half.clear();
        Ok(())
    }

    /// What is new since the last look. The rest of a log that was moved aside is read before the next is begun.
    pub fn look(&mut self) -> io::Result<News> {
        if self.file.is_none() && self.open().is_err() {
            return Ok(News::default());
        }
        let bytes = self.bite()?;
        if !bytes.is_empty() {
            let more = bytes.len() as u64 == BITE;
            return Ok(News { lines: self.lines(bytes), more, rotated: false });
        }
        let now = std::fs::metadata(&self.path);
        let moved = now.as_ref().is_ok_and(|meta| meta.ino() != self.inode || meta.size() < self.offset);
        if !moved {
            return Ok(News::default());
        }
        let last = Some(std::mem::take(&mut self.half)).filter(|half| !half.is_empty());
        let lines = last.map(|half| String::from_utf8_lossy(&half).into_owned()).into_iter().collect();
        self.open()?;
        Ok(News { rotated: true, lines, more: true })
    }

    fn bite(&mut self) -> io::Result<Vec<u8>> {
        let Some(file) = &mut self.file else { return Ok(Vec::new()) };
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.take(BITE).read_to_end(&mut bytes)?;
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    fn lines(&mut self, bytes: Vec<u8>) -> Vec<String> {
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
    fn lines_come_whole_and_rotation_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        let mut follow = Follow::end_of(path.clone());
        assert_eq!(follow.look().unwrap(), News::default(), "there is no log yet");
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(b"1\n2\nha").unwrap();
        assert_eq!(follow.look().unwrap().lines, ["1", "2"]);
        file.write_all(b"lf\nlast").unwrap();
        fs::rename(&path, dir.path().join("daemon.log.1")).unwrap();
        fs::write(&path, "3\n").unwrap();
        assert_eq!(follow.look().unwrap().lines, ["half"], "the old file is read to its end");
        let moved = follow.look().unwrap();
        assert_eq!((moved.rotated, moved.lines), (true, vec!["last".to_owned()]));
        assert_eq!(follow.look().unwrap().lines, ["3"]);
        fs::write(&path, "").unwrap();
        assert!(follow.look().unwrap().rotated, "a log that was cut is another");
    }
}
