//! Incremental parser of server-sent events.

use std::mem;

use crate::error_class::ModelCallError;

/// Limit on buffered bytes. Events of an answer are a few hundred bytes.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

#[derive(Default)]
pub(super) struct SseParser {
    bytes: Vec<u8>,
    /// Bytes that were already returned.
    read: usize,
    /// Bytes that were already searched for a line end.
    seen: usize,
    data: Option<String>,
}

impl SseParser {
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), ModelCallError> {
        self.bytes.drain(..self.read);
        self.seen -= mem::take(&mut self.read);
        self.bytes.extend_from_slice(bytes);
        let held = self.bytes.len() + self.data.as_ref().map_or(0, String::len);
        if held > MAX_EVENT_BYTES {
            return Err(ModelCallError::malformed("an event of the response has no end"));
        }
        Ok(())
    }

    /// Returns the data of the next complete event. Ignores event names, ids and comments.
    pub fn next_event(&mut self) -> Result<Option<String>, ModelCallError> {
        while let Some(line) = self.next_line() {
            let line = str::from_utf8(&self.bytes[line])
                .map_err(|_| ModelCallError::malformed("the response is not text"))?
                .trim_end_matches('\r');
            if line.is_empty() {
                match self.data.take() {
                    Some(data) => return Ok(Some(data)),
                    None => continue,
                }
            }
            let Some(value) = line.strip_prefix("data:") else {
                continue;
            };
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            }
        }
        Ok(None)
    }

    fn next_line(&mut self) -> Option<std::ops::Range<usize>> {
        let Some(found) = self.bytes[self.seen..].iter().position(|byte| *byte == b'\n') else {
            self.seen = self.bytes.len();
            return None;
        };
        let (start, end) = (self.read, self.seen + found);
        (self.read, self.seen) = (end + 1, end + 1);
        Some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STREAM: &str = ": hello\n\ndata: {\"a\":1}\r\n\r\nevent: x\nid: 3\ndata:two\ndata: lines ü\n\ndata: [DONE]\n\ndata: cut";

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut events = SseParser::default();
        let mut found = Vec::new();
        for piece in pieces {
            events.push_bytes(piece).unwrap();
            while let Some(data) = events.next_event().unwrap() {
                found.push(data);
            }
        }
        found
    }

    proptest! {
        #[test]
        fn sse_events_are_independent_of_chunk_boundaries(cuts in prop::collection::vec(0..STREAM.len(), 0..12)) {
            let mut cuts = cuts;
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &STREAM.as_bytes()[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read(&pieces), ["{\"a\":1}", "two\nlines ü", "[DONE]"]);
        }
    }

    #[test]
    fn endless_or_non_utf8_event_is_refused() {
        let mut events = SseParser::default();
        let mut added = 0;
        while events.push_bytes(&[b'x'; 1 << 20]).is_ok() {
            assert_eq!(events.next_event().unwrap(), None);
            added += 1;
            assert!(added < 20, "memory is bounded");
        }
        let mut events = SseParser::default();
        events.push_bytes(b"data: \xff\n\n").unwrap();
        assert!(events.next_event().is_err());
    }
}
