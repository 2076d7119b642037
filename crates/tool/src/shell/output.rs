//! Collects output: keeps its head and tail, and passes it on as progress.

use std::time::{Duration, Instant};

use polyclaw_domain::tool::ProgressSink;

use crate::text::TextDecoder;

/// Size of the head and of the tail; 256 KiB together.
const RETAINED_BYTES: usize = 128 * 1024;
/// After this much, progress only notes that there is more.
const MAX_PROGRESS_BYTES: usize = 256 * 1024;
const PROGRESS_NOTE_INTERVAL: Duration = Duration::from_secs(1);

pub struct ShellOutput<'a> {
    progress: ProgressSink<'a>,
    decoder: TextDecoder,
    head: String,
    /// Grows to twice the limit before it is trimmed, so that trimming is rare.
    tail: String,
    /// Bytes dropped between head and tail.
    left_out: usize,
    progress_bytes: usize,
    noted: Option<Instant>,
}

impl<'a> ShellOutput<'a> {
    pub fn new(progress: ProgressSink<'a>) -> Self {
        Self {
            progress,
            decoder: TextDecoder::default(),
            head: String::new(),
            tail: String::new(),
            left_out: 0,
            progress_bytes: 0,
            noted: None,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let text = self.decoder.push(bytes);
        self.report_progress(&text);
        self.retain_text(&text);
    }

    pub fn finish(mut self) -> String {
        let rest = self.decoder.finish();
        self.report_progress(&rest);
        self.retain_text(&rest);
        self.trim_tail();
        if self.left_out == 0 {
            return self.head + &self.tail;
        }
        format!("{}\n[… {} bytes omitted …]\n{}", self.head, self.left_out, self.tail)
    }

    fn retain_text(&mut self, text: &str) {
        // Once the tail has text, the head takes no more, even if it has some room left.
        let room = if self.tail.is_empty() { RETAINED_BYTES - self.head.len() } else { 0 };
        let (start, rest) = text.split_at(text.floor_char_boundary(room));
        self.head.push_str(start);
        self.tail.push_str(rest);
        if self.tail.len() > 2 * RETAINED_BYTES {
            self.trim_tail();
        }
    }

    fn trim_tail(&mut self) {
        let gone = self.tail.ceil_char_boundary(self.tail.len().saturating_sub(RETAINED_BYTES));
        self.tail.drain(..gone);
        self.left_out += gone;
    }

    fn report_progress(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.progress_bytes + text.len() <= MAX_PROGRESS_BYTES {
            self.progress_bytes += text.len();
            return (self.progress)(text);
        }
        // Still a sign of life for a silence timeout.
        if self.noted.is_none_or(|at| at.elapsed() >= PROGRESS_NOTE_INTERVAL) {
            self.noted = Some(Instant::now());
            (self.progress)("[… more output …]\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;

    fn kept(pieces: &[&[u8]]) -> (String, String) {
        let shown = Mutex::new(String::new());
        let progress = |text: &str| shown.lock().unwrap().push_str(text);
        let mut output = ShellOutput::new(&progress);
        for piece in pieces {
            output.push(piece);
        }
        let text = output.finish();
        (text, shown.into_inner().unwrap())
    }

    #[test]
    fn short_output_is_returned_completely() {
        let (text, shown) = kept(&[b"h\xc3", b"\xa9llo", b"\xff"]);
        assert_eq!(text, "héllo\u{fffd}");
        assert_eq!(shown, text);
    }

    #[test]
    fn long_output_keeps_start_and_end_with_omitted_count() {
        let lines: Vec<String> = (0..200_000).map(|n| format!("{n}\n")).collect();
        let pieces: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        let (text, shown) = kept(&pieces);
        assert!(text.starts_with("0\n1\n2\n") && text.ends_with("199999\n"));
        let total: usize = lines.iter().map(String::len).sum();
        assert!(text.contains(&format!("[… {} bytes omitted …]", total - 2 * RETAINED_BYTES)));
        assert!(shown.len() <= MAX_PROGRESS_BYTES + 100 && shown.contains("more output"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

        #[test]
        fn output_below_limit_is_unchanged(pieces in prop::collection::vec("\\PC{0,200}", 0..20)) {
            let bytes: Vec<&[u8]> = pieces.iter().map(String::as_bytes).collect();
            let (text, shown) = kept(&bytes);
            prop_assert_eq!(&text, &pieces.concat());
            prop_assert_eq!(text, shown);
        }

        #[test]
        fn output_of_any_bytes_is_limited(byte in any::<[u8; 5]>(), times in 1usize..200_000) {
            let (text, _) = kept(&[&byte.repeat(times)]);
            prop_assert!(text.len() <= 2 * RETAINED_BYTES + 100);
        }
    }
}
