//! Wraps styled lines to a width in columns, at spaces if possible.

use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthChar;

pub fn wrap_line(line: &Line<'static>, width: usize) -> Vec<Line<'static>> {
    let width = width.max(2);
    let chars: Vec<(char, usize)> = line
        .spans
        .iter()
        .enumerate()
        .flat_map(|(index, span)| span.content.chars().map(move |c| (c, index)))
        .collect();
    let mut rows = Vec::new();
    let mut start = 0;
    while start < chars.len() {
        let end = row_end(&chars, start, width);
        rows.push(build_row(line, &chars[start..end]));
        start = end;
        // Skips the space at which the row was wrapped.
        while rows.len() < chars.len()
            && start < chars.len()
            && start > 0
            && chars[start].0 == ' '
            && chars[start - 1].0 != ' '
        {
            start += 1;
        }
    }
    if rows.is_empty() {
        rows.push(Line::default().style(line.style));
    }
    rows
}

fn row_end(chars: &[(char, usize)], start: usize, width: usize) -> usize {
    let mut used = 0;
    let mut space = None;
    for (at, (character, _)) in chars.iter().enumerate().skip(start) {
        let columns = character.width().unwrap_or(0);
        if used + columns > width {
            let hard = at.max(start + 1);
            return if *character == ' ' {
                hard
            } else {
                space.filter(|space| *space > start).unwrap_or(hard)
            };
        }
        if *character == ' ' {
            space = Some(at + 1);
        }
        used += columns;
    }
    chars.len()
}

fn build_row(line: &Line<'static>, chars: &[(char, usize)]) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut last = None;
    for (character, index) in chars {
        match spans.last_mut().filter(|_| last == Some(*index)) {
            Some(span) => span.content.to_mut().push(*character),
            None => spans.push(Span::styled(character.to_string(), line.spans[*index].style)),
        }
        last = Some(*index);
    }
    Line::from(spans).style(line.style)
}

#[cfg(test)]
mod tests {
    use ratatui::style::Stylize;

    use super::*;

    fn rows(text: &'static str, width: usize) -> Vec<String> {
        wrap_line(&Line::from(text), width)
            .iter()
            .map(|line| line.to_string().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn lines_wrap_at_spaces_and_long_words_are_cut() {
        assert_eq!(rows("one two three", 8), ["one two", "three"]);
        assert_eq!(rows("one two", 7), ["one two"]);
        assert_eq!(rows("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(rows("", 5), [""]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(rows("日本語", 4), ["日本", "語"]);
        assert_eq!(rows("a日b", 2), ["a", "日", "b"]);
    }

    #[test]
    fn wrapped_text_keeps_its_styles() {
        let line = Line::from(vec!["plain ".into(), "bold".bold()]);
        let rows = wrap_line(&line, 6);
        assert_eq!(rows[1].spans[0], Span::from("bold").bold());
    }
}
