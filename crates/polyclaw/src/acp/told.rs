//! What an editor was told of an answer. It can not be taken back, so what comes again is compared with it first.

use std::collections::HashMap;

/// What an editor was told of those who speak for the turn, by run.
#[derive(Debug, Default)]
pub struct Speeches(HashMap<String, Told>);

impl Speeches {
    /// Takes a frame of one of them, and gives what is to be told now.
    pub fn take(&mut self, kind: &str, run: &str, text: &str) -> Option<String> {
        if kind == "delegate.ended" {
            // What streamed of it is there; what was missed is told now.
            let mut speech = self.0.remove(run).filter(Told::has_missed)?;
            return speech.complete(text);
        }
        let speech = self.0.entry(run.to_owned()).or_default();
        if kind == "delegate.started" {
            speech.restart();
            return None;
        }
        speech.hear(speech.step(), text)
    }

    pub fn miss(&mut self) {
        self.0.values_mut().for_each(Told::miss);
    }
}

#[derive(Debug)]
pub struct Told {
    /// What stands in the editor of this step.
    told: String,
    /// The step from its beginning as it is said now; nothing while a part of it was missed.
    text: Option<String>,
    /// Answers of the turn that were told to their end.
    step: u64,
}

impl Default for Told {
    fn default() -> Self {
        Self { told: String::new(), text: Some(String::new()), step: 0 }
    }
}

impl Told {
    pub fn step(&self) -> u64 {
        self.step
    }

    pub fn has_missed(&self) -> bool {
        self.text.is_none()
    }

    /// Takes the next piece of a step, and gives what is to be told now: nothing while it only repeats what was told.
    pub fn hear(&mut self, step: u64, piece: &str) -> Option<String> {
        if step < self.step {
            return None;
        }
        let mut text = self.text.take()?;
        self.step = step;
        text += piece;
        let rest = if self.told.starts_with(&text) { None } else { self.rest(&text) };
        self.text = Some(text);
        rest
    }

    /// Frames are missing: what follows has no beginning.
    pub fn miss(&mut self) {
        self.text = None;
    }

    /// The step is said again from its beginning.
    pub fn restart(&mut self) {
        self.text = Some(String::new());
    }

    /// Another turn goes on, and counts its own answers.
    pub fn take_up(&mut self) {
        self.restart();
        self.step = 0;
    }

    /// The step is over; gives what parts it from the next one.
    pub fn close(&mut self) -> Option<&'static str> {
        if self.text.is_some() {
            self.restart();
        }
        if std::mem::take(&mut self.told).is_empty() {
            return None;
        }
        self.step += 1;
        Some("\n\n")
    }

    /// This step and those before it are over.
    pub fn pass(&mut self, step: u64) {
        self.step = self.step.max(step + 1);
    }

    /// The step as it is stored: gives what the editor has not seen of it.
    pub fn complete(&mut self, whole: &str) -> Option<String> {
        if whole.trim_end() == self.told.trim_end() { None } else { self.rest(whole) }
    }

    fn rest(&mut self, whole: &str) -> Option<String> {
        let rest = match whole.strip_prefix(self.told.as_str()) {
            Some(rest) => rest.to_owned(),
            None => format!("\n\n{whole}"),
        };
        whole.clone_into(&mut self.told);
        Some(rest).filter(|rest| !rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that an editor sees: `say` lets the model speak, and the answer is stored at last.
    fn seen(whole: &str, say: impl FnOnce(&mut Told, &mut String)) -> String {
        let (mut told, mut seen) = (Told::default(), String::new());
        say(&mut told, &mut seen);
        seen.extend(told.complete(whole));
        seen
    }

    fn hear(told: &mut Told, seen: &mut String, pieces: &[&str]) {
        for piece in pieces {
            seen.extend(told.hear(0, piece));
        }
    }

    #[test]
    fn an_answer_that_is_said_again_without_its_first_pieces_is_told_once() {
        for missed in 0..4 {
            let pieces = ["one ", "two ", "three ", "four"];
            let all = seen(&pieces.concat(), |told, seen| {
                hear(told, seen, &pieces[..2]);
                told.miss();
                hear(told, seen, &pieces[missed..]);
            });
            assert_eq!(all, pieces.concat(), "{missed}");
        }
    }

    #[test]
    fn an_answer_that_comes_out_differently_is_told_whole_and_once() {
        let missed = seen("one six", |told, seen| {
            hear(told, seen, &["one ", "two "]);
            told.miss();
            hear(told, seen, &["six"]);
        });
        assert_eq!(missed, "one two \n\none six");
        let restarted = seen("one six seven", |told, seen| {
            hear(told, seen, &["one ", "two "]);
            told.restart();
            hear(told, seen, &["one ", "six ", "seven"]);
        });
        assert_eq!(restarted, "one two \n\none six seven");
    }

    #[test]
    fn an_answer_that_is_said_again_from_its_beginning_goes_on_live() {
        let (mut told, mut live) = (Told::default(), String::new());
        hear(&mut told, &mut live, &["one ", "two "]);
        told.miss();
        told.restart();
        hear(&mut told, &mut live, &["one two", " three ", "four"]);
        assert_eq!(live, "one two three four");
        assert_eq!(told.complete("one two three four"), None);
    }

    #[test]
    fn a_step_that_was_told_to_its_end_is_not_heard_again() {
        let mut told = Told::default();
        assert_eq!(told.hear(0, "look").as_deref(), Some("look"));
        assert_eq!((told.close(), told.close()), (Some("\n\n"), None));
        assert_eq!(told.hear(0, "look"), None);
        assert_eq!(told.hear(1, "found").as_deref(), Some("found"));
        assert_eq!(told.complete("found it").as_deref(), Some(" it"));
    }

    #[test]
    fn what_another_agent_said_is_told_once_however_often_it_is_said() {
        for heard in 0..4 {
            let (mut speeches, mut seen) = (Speeches::default(), String::new());
            let mut take = |speeches: &mut Speeches, kind: &str, text: &str| {
                seen.extend(speeches.take(&format!("delegate.{kind}"), "r", text));
            };
            take(&mut speeches, "started", "");
            ["one ", "two ", "three "][..heard].iter().for_each(|piece| take(&mut speeches, "delta", piece));
            speeches.miss();
            take(&mut speeches, "delta", "lost ");
            take(&mut speeches, "started", "");
            take(&mut speeches, "delta", "one two three ");
            take(&mut speeches, "delta", "four");
            take(&mut speeches, "ended", "one two three four");
            assert_eq!(seen, "one two three four", "{heard}");
        }
    }

    #[test]
    fn of_another_agent_that_ended_unheard_the_rest_is_told() {
        let mut speeches = Speeches::default();
        assert_eq!(speeches.take("delegate.delta", "r", "one ").as_deref(), Some("one "));
        speeches.miss();
        assert_eq!(speeches.take("delegate.ended", "r", "one two").as_deref(), Some("two"));
    }
}
