//! The input field: text of one or more lines with a cursor, and the input history.

/// Text that is not sent yet. The cursor is a byte offset on a character boundary.
#[derive(Clone, Debug, Default)]
pub struct InputLine {
    text: String,
    cursor: usize,
    history: Vec<String>,
    /// Position in the history; `None` for the text being typed.
    at: Option<usize>,
    /// The text being typed, saved while a history entry is shown.
    draft: String,
}

impl InputLine {
    pub fn with_history(history: Vec<String>) -> Self {
        Self { history, ..Self::default() }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the text before and after the cursor.
    pub fn around_cursor(&self) -> (&str, &str) {
        self.text.split_at(self.cursor)
    }

    pub fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    pub fn set_text(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.cursor = self.text.len();
    }

    pub fn clear(&mut self) {
        self.set_text("");
        self.at = None;
    }

    /// Takes the text and adds it to the history.
    pub fn take_text(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        if !text.trim().is_empty() && self.history.last() != Some(&text) {
            self.history.push(text.clone());
        }
        self.clear();
        text
    }

    pub fn move_left(&mut self) {
        self.cursor = self.previous_boundary();
    }

    pub fn move_right(&mut self) {
        let next = self.text[self.cursor..].chars().next().map_or(0, char::len_utf8);
        self.cursor += next;
    }

    pub fn move_to_line_start(&mut self) {
        self.cursor = self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1);
    }

    pub fn move_to_line_end(&mut self) {
        self.cursor = self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at);
    }

    pub fn move_word_left(&mut self) {
        self.cursor = self.word_boundary_before();
    }

    pub fn backspace(&mut self) {
        let before = self.previous_boundary();
        self.cut_from(before);
    }

    pub fn delete_next(&mut self) {
        if self.cursor < self.text.len() {
            self.text.remove(self.cursor);
        }
    }

    pub fn delete_word(&mut self) {
        let before = self.word_boundary_before();
        self.cut_from(before);
    }

    pub fn delete_to_start(&mut self) {
        let end = self.cursor;
        self.move_to_line_start();
        self.text.replace_range(self.cursor..end, "");
    }

    pub fn delete_to_end(&mut self) {
        let start = self.cursor;
        self.move_to_line_end();
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
    }

    /// Moves up a line; on the first line, to an older history entry.
    pub fn move_up(&mut self) {
        match self.text[..self.cursor].rfind('\n') {
            Some(end) => self.move_to_line(self.text[..end].rfind('\n').map_or(0, |at| at + 1)),
            None => self.recall_older(),
        }
    }

    /// Moves down a line; on the last line, to a newer history entry.
    pub fn move_down(&mut self) {
        match self.text[self.cursor..].find('\n') {
            Some(end) => self.move_to_line(self.cursor + end + 1),
            None => self.recall_newer(),
        }
    }

    fn move_to_line(&mut self, start: usize) {
        let own = self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1);
        let column = self.text[own..self.cursor].chars().count();
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        let offset: usize = line.chars().take(column).map(char::len_utf8).sum();
        self.cursor = start + offset;
    }

    fn recall_older(&mut self) {
        let next = match self.at {
            Some(at) => at.checked_sub(1),
            None => self.history.len().checked_sub(1),
        };
        let Some(next) = next else { return };
        if self.at.is_none() {
            self.draft = self.text.clone();
        }
        self.at = Some(next);
        let line = self.history[next].clone();
        self.set_text(&line);
    }

    fn recall_newer(&mut self) {
        let Some(at) = self.at else { return };
        let line = self.history.get(at + 1).cloned();
        self.at = line.is_some().then_some(at + 1);
        let line = line.unwrap_or_else(|| std::mem::take(&mut self.draft));
        self.set_text(&line);
    }

    fn previous_boundary(&self) -> usize {
        self.cursor - self.text[..self.cursor].chars().next_back().map_or(0, char::len_utf8)
    }

    fn word_boundary_before(&self) -> usize {
        let head = self.text[..self.cursor].trim_end_matches(char::is_whitespace);
        head.rfind(char::is_whitespace)
            .map_or(0, |at| at + head[at..].chars().next().map_or(1, char::len_utf8))
    }

    fn cut_from(&mut self, from: usize) {
        self.text.replace_range(from..self.cursor, "");
        self.cursor = from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> InputLine {
        let mut input = InputLine::default();
        input.insert(text);
        input
    }

    #[test]
    fn cursor_and_deletion_handle_multibyte_characters() {
        let mut input = typed("aä日🦀");
        input.move_left();
        input.move_left();
        input.backspace();
        assert_eq!(input.around_cursor(), ("a", "日🦀"));
        input.move_right();
        input.insert("!");
        assert_eq!(input.text(), "a日!🦀");
        input.delete_next();
        assert_eq!(input.text(), "a日!");
    }

    #[test]
    fn words_and_parts_of_lines_are_deleted() {
        let mut input = typed("one two  three");
        input.delete_word();
        assert_eq!(input.text(), "one two  ");
        input.delete_word();
        assert_eq!(input.text(), "one ");
        let mut input = typed("first\nsecond");
        input.delete_to_start();
        assert_eq!(input.text(), "first\n");
        input.move_up();
        input.delete_to_end();
        assert_eq!(input.text(), "\n");
    }

    #[test]
    fn up_key_moves_in_text_before_history() {
        let mut input = InputLine::with_history(vec!["old".into(), "older line".into()]);
        input.insert("ab\ncd");
        input.move_up();
        assert_eq!(input.around_cursor(), ("ab", "\ncd"));
        input.move_up();
        assert_eq!(input.text(), "older line");
        input.move_up();
        input.move_up();
        assert_eq!(input.text(), "old");
        input.move_down();
        input.move_down();
        assert_eq!(input.text(), "ab\ncd", "the draft comes back");
    }

    #[test]
    fn repeated_input_is_stored_once_in_history() {
        let mut input = typed("hi");
        assert_eq!(input.take_text(), "hi");
        input.insert("hi");
        input.take_text();
        assert_eq!(input.history, ["hi"]);
        assert!(input.is_empty());
    }
}
