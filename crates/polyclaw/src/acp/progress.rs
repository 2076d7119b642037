//! Tracks what an editor has been sent of an answer. Sent text cannot be taken back, so repeated text is compared
//! with it first.

use std::collections::HashMap;

use polyclaw_domain::id::RunId;

/// The text of each delegate that the editor has received, keyed by run.
#[derive(Debug, Default)]
pub struct DelegateStreams(HashMap<RunId, StreamProgress>);

impl DelegateStreams {
    /// The delegate starts, possibly over.
    pub fn start(&mut self, run: &RunId) {
        self.0.entry(run.clone()).or_default().restart_step();
    }

    /// Appends a piece of the delegate's text and returns the text to send now.
    pub fn push_piece(&mut self, run: &RunId, piece: &str) -> Option<String> {
        let speech = self.0.entry(run.clone()).or_default();
        speech.push_piece(speech.step(), piece)
    }

    /// Ends the delegate's text. Streamed text is already there. If part of it was missed, returns the rest.
    pub fn end(&mut self, run: &RunId, whole: &str) -> Option<String> {
        let mut speech = self.0.remove(run).filter(StreamProgress::has_missed)?;
        speech.complete_text(whole)
    }

    pub fn mark_missed(&mut self) {
        self.0.values_mut().for_each(StreamProgress::mark_missed);
    }
}

#[derive(Debug)]
pub struct StreamProgress {
    /// Text of this step in the editor.
    sent: String,
    /// Text of the step from its start as it streams now. `None` while part of it was missed.
    text: Option<String>,
    /// Number of the turn's answers that were sent to their end.
    step: u64,
}

impl Default for StreamProgress {
    fn default() -> Self {
        Self { sent: String::new(), text: Some(String::new()), step: 0 }
    }
}

impl StreamProgress {
    pub fn step(&self) -> u64 {
        self.step
    }

    pub fn has_missed(&self) -> bool {
        self.text.is_none()
    }

    /// Appends a piece of a step and returns the text to send now. Returns `None` while it only repeats text that was
    /// sent.
    pub fn push_piece(&mut self, step: u64, piece: &str) -> Option<String> {
        if step < self.step {
            return None;
        }
        let mut text = self.text.take()?;
        self.step = step;
        text += piece;
        let rest = if self.sent.starts_with(&text) { None } else { self.emit_rest(&text) };
        self.text = Some(text);
        rest
    }

    /// Marks that frames were missed, so the following pieces have no start.
    pub fn mark_missed(&mut self) {
        self.text = None;
    }

    /// Restarts the step: its text streams again from the start.
    pub fn restart_step(&mut self) {
        self.text = Some(String::new());
    }

    /// Continues with another turn, which counts its own answers.
    pub fn resume_in_new_turn(&mut self) {
        self.restart_step();
        self.step = 0;
    }

    /// Ends the step. Returns the separator before the next one.
    pub fn end_step(&mut self) -> Option<&'static str> {
        if self.text.is_some() {
            self.restart_step();
        }
        if std::mem::take(&mut self.sent).is_empty() {
            return None;
        }
        self.step += 1;
        Some("\n\n")
    }

    /// Marks this step and those before it as complete.
    pub fn skip_step(&mut self, step: u64) {
        self.step = self.step.max(step + 1);
    }

    /// Returns the part of the stored step that the editor has not received.
    pub fn complete_text(&mut self, whole: &str) -> Option<String> {
        if whole.trim_end() == self.sent.trim_end() { None } else { self.emit_rest(whole) }
    }

    fn emit_rest(&mut self, whole: &str) -> Option<String> {
        let rest = match whole.strip_prefix(self.sent.as_str()) {
            Some(rest) => rest.to_owned(),
            None => format!("\n\n{whole}"),
        };
        whole.clone_into(&mut self.sent);
        Some(rest).filter(|rest| !rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all text that an editor sees: `say` streams the model's text, then the answer is stored.
    fn seen(whole: &str, say: impl FnOnce(&mut StreamProgress, &mut String)) -> String {
        let (mut progress, mut seen) = (StreamProgress::default(), String::new());
        say(&mut progress, &mut seen);
        seen.extend(progress.complete_text(whole));
        seen
    }

    fn hear(progress: &mut StreamProgress, seen: &mut String, pieces: &[&str]) {
        for piece in pieces {
            seen.extend(progress.push_piece(0, piece));
        }
    }

    #[test]
    fn pieces_replayed_after_a_gap_are_emitted_once() {
        for missed in 0..4 {
            let pieces = ["one ", "two ", "three ", "four"];
            let all = seen(&pieces.concat(), |progress, seen| {
                hear(progress, seen, &pieces[..2]);
                progress.mark_missed();
                hear(progress, seen, &pieces[missed..]);
            });
            assert_eq!(all, pieces.concat(), "{missed}");
        }
    }

    #[test]
    fn changed_answer_is_emitted_whole_and_once() {
        let missed = seen("one six", |progress, seen| {
            hear(progress, seen, &["one ", "two "]);
            progress.mark_missed();
            hear(progress, seen, &["six"]);
        });
        assert_eq!(missed, "one two \n\none six");
        let restarted = seen("one six seven", |progress, seen| {
            hear(progress, seen, &["one ", "two "]);
            progress.restart_step();
            hear(progress, seen, &["one ", "six ", "seven"]);
        });
        assert_eq!(restarted, "one two \n\none six seven");
    }

    #[test]
    fn restarted_step_after_a_gap_continues_streaming() {
        let (mut progress, mut live) = (StreamProgress::default(), String::new());
        hear(&mut progress, &mut live, &["one ", "two "]);
        progress.mark_missed();
        progress.restart_step();
        hear(&mut progress, &mut live, &["one two", " three ", "four"]);
        assert_eq!(live, "one two three four");
        assert_eq!(progress.complete_text("one two three four"), None);
    }

    #[test]
    fn pieces_of_an_ended_step_are_ignored() {
        let mut progress = StreamProgress::default();
        assert_eq!(progress.push_piece(0, "look").as_deref(), Some("look"));
        assert_eq!((progress.end_step(), progress.end_step()), (Some("\n\n"), None));
        assert_eq!(progress.push_piece(0, "look"), None);
        assert_eq!(progress.push_piece(1, "found").as_deref(), Some("found"));
        assert_eq!(progress.complete_text("found it").as_deref(), Some(" it"));
    }

    #[test]
    fn repeated_delegate_frames_emit_text_once() {
        for heard in 0..4 {
            let (mut speeches, mut seen) = (DelegateStreams::default(), String::new());
            let run = RunId::new("r");
            speeches.start(&run);
            for piece in &["one ", "two ", "three "][..heard] {
                seen.extend(speeches.push_piece(&run, piece));
            }
            speeches.mark_missed();
            seen.extend(speeches.push_piece(&run, "lost "));
            speeches.start(&run);
            seen.extend(speeches.push_piece(&run, "one two three "));
            seen.extend(speeches.push_piece(&run, "four"));
            seen.extend(speeches.end(&run, "one two three four"));
            assert_eq!(seen, "one two three four", "{heard}");
        }
    }

    #[test]
    fn delegate_end_after_a_gap_emits_missing_text() {
        let (mut speeches, run) = (DelegateStreams::default(), RunId::new("r"));
        assert_eq!(speeches.push_piece(&run, "one ").as_deref(), Some("one "));
        speeches.mark_missed();
        assert_eq!(speeches.end(&run, "one two").as_deref(), Some("two"));
    }
}
