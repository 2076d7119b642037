//! What keys do.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::model::{Effect, Model};

/// Lines of one page key.
const PAGE: usize = 10;

impl Model {
    pub fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return self.interrupt();
        }
        self.quit_armed = false;
        if let Some(effects) = self.answer_question(key) {
            return effects;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return self.control(key.code);
        }
        if key.modifiers.contains(KeyModifiers::ALT) {
            return self.alt(key.code);
        }
        self.plain(key)
    }

    pub fn paste(&mut self, text: &str) {
        let clean: String = text.replace("\r\n", "\n").replace('\r', "\n");
        self.input.insert(
            &clean.chars().filter(|c| *c == '\n' || *c == '\t' || !c.is_control()).collect::<String>(),
        );
        self.completion.close();
    }

    /// The first time clears what is typed, the second time leaves.
    fn interrupt(&mut self) -> Vec<Effect> {
        if self.quit_armed {
            return vec![Effect::Quit];
        }
        self.input.clear();
        self.completion.reset();
        self.quit_armed = true;
        Vec::new()
    }

    /// `y` and `n` answer the oldest question: as one key while nothing is typed, or as a word with Enter.
    fn answer_question(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let typed = self.input.text().trim().to_lowercase();
        if key.code == KeyCode::Enter && self.answered.take().is_some_and(|first| ends_word(first, &typed)) {
            self.input.clear();
            return Some(Vec::new());
        }
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        let question = self.question().filter(|_| plain)?.id.clone();
        let (word, letter) = match key.code {
            KeyCode::Char(letter) if self.input.is_empty() => {
                (letter.to_lowercase().to_string(), Some(letter))
            }
            KeyCode::Enter => (typed, None),
            _ => return None,
        };
        let decision = match word.as_str() {
            "y" | "yes" => "approve",
            "n" | "no" => "deny",
            _ => return None,
        };
        self.answered = letter.map(|letter| letter.to_ascii_lowercase());
        self.input.clear();
        Some(vec![Effect::Decide { id: question, decision }])
    }

    fn control(&mut self, code: KeyCode) -> Vec<Effect> {
        match code {
            KeyCode::Char('j') => self.typed("\n"),
            KeyCode::Char('a') => self.input.line_start(),
            KeyCode::Char('e') => self.input.line_end(),
            KeyCode::Char('b') => self.input.left(),
            KeyCode::Char('f') => self.input.right(),
            KeyCode::Char('p') => self.input.up(),
            KeyCode::Char('n') => self.input.down(),
            KeyCode::Char('h') => self.deleted(|model| model.input.backspace()),
            KeyCode::Char('w') => self.deleted(|model| model.input.delete_word()),
            KeyCode::Char('u') => self.deleted(|model| model.input.delete_to_start()),
            KeyCode::Char('k') => self.deleted(|model| model.input.delete_to_end()),
            KeyCode::Left => self.input.word_left(),
            KeyCode::Char('t') => return self.toggle_teams(),
            KeyCode::Char('d') if self.input.is_empty() => return vec![Effect::Quit],
            KeyCode::Char('d') => self.deleted(|model| model.input.delete()),
            _ => {}
        }
        Vec::new()
    }

    fn alt(&mut self, code: KeyCode) -> Vec<Effect> {
        match code {
            KeyCode::Enter => self.typed("\n"),
            KeyCode::Backspace => self.deleted(|model| model.input.delete_word()),
            KeyCode::Left | KeyCode::Char('b') => self.input.word_left(),
            KeyCode::Char(letter) => self.typed(letter.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        Vec::new()
    }

    fn plain(&mut self, key: KeyEvent) -> Vec<Effect> {
        let offering = !self.completion.offers(self.input.text()).is_empty();
        match key.code {
            KeyCode::Enter if key.modifiers.contains(KeyModifiers::SHIFT) => self.typed("\n"),
            KeyCode::Enter => return self.enter(offering),
            KeyCode::Tab if offering => self.complete(),
            KeyCode::Up if offering => self.completion.previous(self.input.text()),
            KeyCode::Down if offering => self.completion.next(self.input.text()),
            KeyCode::Esc => return self.escape(offering),
            KeyCode::Up => self.input.up(),
            KeyCode::Down => self.input.down(),
            KeyCode::Left => self.input.left(),
            KeyCode::Right => self.input.right(),
            KeyCode::Home => self.input.line_start(),
            KeyCode::End => self.input.line_end(),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_add(PAGE),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_sub(PAGE),
            KeyCode::Backspace => self.deleted(|model| model.input.backspace()),
            KeyCode::Delete => self.deleted(|model| model.input.delete()),
            KeyCode::Char(letter) => self.typed(letter.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        Vec::new()
    }

    fn typed(&mut self, text: &str) {
        self.input.insert(text);
        self.completion.reset();
    }

    fn deleted(&mut self, delete: impl FnOnce(&mut Self)) {
        delete(self);
        self.completion.reset();
    }

    fn complete(&mut self) {
        if let Some(offer) = self.completion.selected(self.input.text()) {
            self.input.set(&format!("/{} ", offer.name));
        }
    }

    /// A command that takes nothing runs at once, and one that may be given nothing where its whole name was typed; any
    /// other is completed first.
    fn enter(&mut self, offering: bool) -> Vec<Effect> {
        if let Some(offer) = self.completion.selected(self.input.text()).filter(|_| offering) {
            let is_typed = self.input.text().strip_prefix('/') == Some(offer.name);
            let can_run = offer.arguments.is_empty() || is_typed && offer.arguments.starts_with('[');
            if !can_run {
                self.complete();
                return Vec::new();
            }
            self.input.set(&format!("/{}", offer.name));
        }
        self.submit()
    }

    fn escape(&mut self, offering: bool) -> Vec<Effect> {
        if offering {
            self.completion.close();
            return Vec::new();
        }
        match &self.running {
            Some(_) => vec![Effect::Stop],
            None => {
                self.scroll = 0;
                Vec::new()
            }
        }
    }
}

/// Who typed a whole "yes" answered with its first letter; the rest is no message.
fn ends_word(first: char, rest: &str) -> bool {
    matches!((first, rest), ('y', "es") | ('n', "o"))
}
