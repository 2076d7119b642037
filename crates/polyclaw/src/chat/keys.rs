//! Key bindings.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use polyclaw_domain::approval::ApprovalDecision;

use super::state::{ChatEffect, ChatState};

/// Lines that a page key scrolls.
const PAGE_SCROLL_LINES: usize = 10;

impl ChatState {
    pub fn handle_key(&mut self, key: KeyEvent) -> Vec<ChatEffect> {
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
            return self.handle_control_key(key.code);
        }
        if key.modifiers.contains(KeyModifiers::ALT) {
            return self.handle_alt_key(key.code);
        }
        self.handle_plain_key(key)
    }

    pub fn paste_text(&mut self, text: &str) {
        let clean: String = text.replace("\r\n", "\n").replace('\r', "\n");
        self.input.insert(
            &clean.chars().filter(|c| *c == '\n' || *c == '\t' || !c.is_control()).collect::<String>(),
        );
        self.completion.close();
    }

    /// Handles Ctrl+C: the first press clears the input, the second quits.
    fn interrupt(&mut self) -> Vec<ChatEffect> {
        if self.quit_armed {
            return vec![ChatEffect::Quit];
        }
        self.input.clear();
        self.completion.reset();
        self.quit_armed = true;
        Vec::new()
    }

    /// Answers the oldest approval request with `y` or `n`: as a single key while the input is empty, or as a word
    /// with Enter.
    fn answer_question(&mut self, key: KeyEvent) -> Option<Vec<ChatEffect>> {
        let typed = self.input.text().trim().to_lowercase();
        if key.code == KeyCode::Enter
            && self.answered.take().is_some_and(|first| completes_typed_answer(first, &typed))
        {
            self.input.clear();
            return Some(Vec::new());
        }
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        let question = self.open_question().filter(|_| plain)?.id.clone();
        let (word, character) = match key.code {
            KeyCode::Char(character) if self.input.is_empty() => {
                (character.to_lowercase().to_string(), Some(character))
            }
            KeyCode::Enter => (typed, None),
            _ => return None,
        };
        let decision = match word.as_str() {
            "y" | "yes" => ApprovalDecision::Approve,
            "n" | "no" => ApprovalDecision::Deny,
            _ => return None,
        };
        self.answered = character.map(|character| character.to_ascii_lowercase());
        self.input.clear();
        Some(vec![ChatEffect::Decide { id: question, decision }])
    }

    fn handle_control_key(&mut self, code: KeyCode) -> Vec<ChatEffect> {
        match code {
            KeyCode::Char('j') => self.insert_typed("\n"),
            KeyCode::Char('a') => self.input.move_to_line_start(),
            KeyCode::Char('e') => self.input.move_to_line_end(),
            KeyCode::Char('b') => self.input.move_left(),
            KeyCode::Char('f') => self.input.move_right(),
            KeyCode::Char('p') => self.input.move_up(),
            KeyCode::Char('n') => self.input.move_down(),
            KeyCode::Char('h') => self.apply_delete(|model| model.input.backspace()),
            KeyCode::Char('w') => self.apply_delete(|model| model.input.delete_word()),
            KeyCode::Char('u') => self.apply_delete(|model| model.input.delete_to_start()),
            KeyCode::Char('k') => self.apply_delete(|model| model.input.delete_to_end()),
            KeyCode::Left => self.input.move_word_left(),
            KeyCode::Char('t') => return self.toggle_teams(),
            KeyCode::Char('d') if self.input.is_empty() => return vec![ChatEffect::Quit],
            KeyCode::Char('d') => self.apply_delete(|model| model.input.delete_next()),
            _ => {}
        }
        Vec::new()
    }

    fn handle_alt_key(&mut self, code: KeyCode) -> Vec<ChatEffect> {
        match code {
            KeyCode::Enter => self.insert_typed("\n"),
            KeyCode::Backspace => self.apply_delete(|model| model.input.delete_word()),
            KeyCode::Left | KeyCode::Char('b') => self.input.move_word_left(),
            KeyCode::Char(character) => self.insert_typed(character.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        Vec::new()
    }

    fn handle_plain_key(&mut self, key: KeyEvent) -> Vec<ChatEffect> {
        let offering = !self.completion.matching_offers(self.input.text()).is_empty();
        match key.code {
            KeyCode::Enter if key.modifiers.contains(KeyModifiers::SHIFT) => self.insert_typed("\n"),
            KeyCode::Enter => return self.handle_enter(offering),
            KeyCode::Tab if offering => self.accept_completion(),
            KeyCode::Up if offering => self.completion.previous(self.input.text()),
            KeyCode::Down if offering => self.completion.next(self.input.text()),
            KeyCode::Esc => return self.handle_escape(offering),
            KeyCode::Up => self.input.move_up(),
            KeyCode::Down => self.input.move_down(),
            KeyCode::Left => self.input.move_left(),
            KeyCode::Right => self.input.move_right(),
            KeyCode::Home => self.input.move_to_line_start(),
            KeyCode::End => self.input.move_to_line_end(),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_add(PAGE_SCROLL_LINES),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_sub(PAGE_SCROLL_LINES),
            KeyCode::Backspace => self.apply_delete(|model| model.input.backspace()),
            KeyCode::Delete => self.apply_delete(|model| model.input.delete_next()),
            KeyCode::Char(character) => self.insert_typed(character.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        Vec::new()
    }

    fn insert_typed(&mut self, text: &str) {
        self.input.insert(text);
        self.completion.reset();
    }

    fn apply_delete(&mut self, delete: impl FnOnce(&mut Self)) {
        delete(self);
        self.completion.reset();
    }

    fn accept_completion(&mut self) {
        if let Some(offer) = self.completion.selected_offer(self.input.text()) {
            self.input.set_text(&format!("/{} ", offer.name));
        }
    }

    /// Handles Enter. Runs a command that takes no arguments, or only optional ones if its full name was typed. Any
    /// other offered command is completed first.
    fn handle_enter(&mut self, offering: bool) -> Vec<ChatEffect> {
        if let Some(offer) = self.completion.selected_offer(self.input.text()).filter(|_| offering) {
            let is_typed = self.input.text().strip_prefix('/') == Some(offer.name);
            let can_run = offer.arguments.is_empty() || is_typed && offer.arguments.starts_with('[');
            if !can_run {
                self.accept_completion();
                return Vec::new();
            }
            self.input.set_text(&format!("/{}", offer.name));
        }
        self.submit_input()
    }

    fn handle_escape(&mut self, offering: bool) -> Vec<ChatEffect> {
        if offering {
            self.completion.close();
            return Vec::new();
        }
        match &self.running {
            Some(_) => vec![ChatEffect::Stop],
            None => {
                self.scroll = 0;
                Vec::new()
            }
        }
    }
}

/// Returns whether the text completes a typed "yes" or "no" whose first letter already answered. It is no message.
fn completes_typed_answer(first: char, rest: &str) -> bool {
    matches!((first, rest), ('y', "es") | ('n', "o"))
}
