//! Makes untrusted text safe to display: bounded, and without characters that control a terminal, change the writing
//! direction or are invisible.

use std::borrow::Cow;

/// Returns whether a character is removed from untrusted text. Joiners are kept: emoji and several scripts need them.
pub fn is_hidden(c: char) -> bool {
    let turns_direction =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_unseen = matches!(c, '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}');
    // Whole texts have been hidden in these two ranges.
    let smuggles = matches!(c, '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}');
    turns_direction || is_unseen || smuggles
}

/// Returns whether a character controls a terminal or the writing direction. Filters that only know ASCII control
/// characters keep these.
fn is_control_or_hidden(c: char) -> bool {
    matches!(c, '\u{80}'..='\u{9f}') || is_hidden(c)
}

/// Replaces such characters by codes such as `<U+202E>`.
pub fn escape_hidden(text: &str) -> Cow<'_, str> {
    escape_chars(text, write_code)
}

/// Like [`escape_hidden`], for text without colour codes of our own: also replaces all other control characters except
/// tabs and line ends.
pub fn visible_controls(text: &str) -> Cow<'_, str> {
    let is_shown = |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || is_hidden(c));
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        if is_shown(c) { out.push(c) } else { write_code(c, &mut out) }
    }
    Cow::Owned(out)
}

/// Writes a code such as `<U+202E>`.
fn write_code(c: char, out: &mut String) {
    out.push_str(&format!("<U+{:04X}>", u32::from(c)));
}

/// Like [`escape_hidden`], for JSON: writes JSON escapes, so that the JSON stays the same.
pub fn escape_hidden_json(text: &str) -> Cow<'_, str> {
    escape_chars(text, |c, out| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    })
}

fn escape_chars(text: &str, write: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.chars().any(is_control_or_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control_or_hidden(c) { write(c, &mut out) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Returns one line of at most `most` characters, with white space collapsed. Truncation is visible.
pub fn to_single_line(text: &str, most: usize) -> String {
    let seen = text.chars().filter(|c| !is_hidden(*c)).map(|c| if c.is_control() { ' ' } else { c });
    let joined = seen.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ");
    match joined.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &joined[..at]),
        None => joined,
    }
}

/// Returns several lines of at most `most` characters in all. Truncation is visible.
pub fn limit_block(text: &str, most: usize) -> String {
    let mut shown =
        text.chars().filter(|c| !is_hidden(*c) && (matches!(c, '\n' | '\t') || !c.is_control())).peekable();
    let mut out: String = shown.by_ref().take(most).collect();
    if shown.peek().is_some() {
        out.push('…');
    }
    out
}

/// Returns a text in quotes on one line. Characters that break the line, are invisible or change direction are escaped.
/// Beyond `most` characters, only the number of the remaining ones is shown.
pub fn quote_literal(text: &str, most: usize) -> String {
    let (text, mut out, mut before) = (count_blanks(text), String::from('"'), ' ');
    for c in text.chars().take(most) {
        match c {
            '"' | '\\' | '\n' | '\r' | '\t' => out.extend(c.escape_default()),
            c if is_unreadable(before, c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
        before = c;
    }
    out.push('"');
    match text.chars().count().saturating_sub(most) {
        0 => out,
        more => format!("{out} ({more} more characters)"),
    }
}

/// Returns the text for a person who makes a decision based on it. Characters that hide text or change its direction are
/// spelled out; line breaks are kept.
pub fn spell_out_unreadable(text: &str) -> String {
    let (text, mut before) = (count_blanks(text), ' ');
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && is_unreadable(before, c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        before = c;
    }
    out
}

/// Longer runs of blanks or line breaks are shown as a number, because they would push the following text out of sight.
const MAX_SHOWN_BLANKS: usize = 8;
const MAX_SHOWN_LINE_BREAKS: usize = 3;

/// Replaces long runs of blanks and line breaks by their number: `[3000 blanks]`.
fn count_blanks(text: &str) -> String {
    let is_blank = |c: char| matches!(c, ' ' | '\n');
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find(is_blank) {
        let (shown, blanks) = rest.split_at(start);
        let (blanks, after) = blanks.split_at(blanks.find(|c| !is_blank(c)).unwrap_or(blanks.len()));
        let line_breaks = blanks.matches('\n').count();
        out.push_str(shown);
        if line_breaks > MAX_SHOWN_LINE_BREAKS || blanks.len() - line_breaks > MAX_SHOWN_BLANKS {
            out.push_str(&format!("[{} blanks]", blanks.len()));
        } else {
            out.push_str(blanks);
        }
        rest = after;
    }
    out + rest
}

/// Returns whether a person would not recognize a character that follows another one.
fn is_unreadable(before: char, c: char) -> bool {
    // A combining mark on a letter is part of the letter; on any other character it changes the character's appearance.
    let is_stray_mark = is_combining(c) && !before.is_alphabetic() && !is_combining(before);
    c.is_control() || is_hidden(c) || is_invisible(c) || is_overlay(c) || is_stray_mark
}

/// Returns whether a character ends a line or is invisible, in addition to control characters and [`is_hidden`]: unusual
/// blanks, ignorable and private-use characters, and noncharacters.
fn is_invisible(c: char) -> bool {
    let is_blank = c.is_whitespace() && c != ' ' || c == '\u{2800}';
    let is_ignorable = matches!(c, '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffc}' | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    let is_private = matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}');
    let is_no_character = matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe;
    is_blank || is_ignorable || is_private || is_no_character
}

/// Combining marks, which are drawn on the preceding character.
fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// Combining marks that strike out, cover or enclose the preceding character.
fn is_overlay(c: char) -> bool {
    matches!(c, '\u{334}'..='\u{338}' | '\u{488}' | '\u{489}' | '\u{20d2}' | '\u{20d3}' | '\u{20d8}'..='\u{20da}'
        | '\u{20dd}'..='\u{20e0}' | '\u{20e2}'..='\u{20eb}')
}

/// Removes the system's error number from an error text of a library.
pub fn strip_os_error(text: &str) -> String {
    let mut pieces = text.split(" (os error ");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once(')') {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => out.push_str(rest),
            _ => out.extend([" (os error ", piece]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_line_is_bounded_without_hidden_characters() {
        for (text, expected) in [
            ("a\nb\r\n\tc", "a b c"),
            ("  a  ", "a"),
            ("\u{202e}evil\u{202c}\u{200b}", "evil"),
            ("\u{1b}[31mred", "[31mred"),
            ("x\u{e0041}\u{e0042}y\u{e0101}", "xy"),
            ("👩\u{200d}🚀", "👩\u{200d}🚀"),
            ("abcdefghi", "abcdefgh…"),
            ("abcdefgh  ", "abcdefgh"),
            ("", ""),
        ] {
            assert_eq!(to_single_line(text, 8), expected, "{text:?}");
        }
        assert_eq!(to_single_line(&"ß".repeat(10_000), 64).chars().count(), 65);
    }

    #[test]
    fn os_error_number_is_stripped() {
        for (text, expected) in [
            ("a: No such file or directory (os error 2)", "a: No such file or directory"),
            ("a (os error 2); b (os error 13)!", "a; b!"),
            ("a (os error x)", "a (os error x)"),
            ("a (os error 2", "a (os error 2"),
            ("", ""),
        ] {
            assert_eq!(strip_os_error(text), expected, "{text:?}");
        }
    }

    #[test]
    fn terminal_control_characters_are_escaped() {
        assert_eq!(
            escape_hidden("a\u{9b}31m\u{202e}b é 👩\u{200d}🚀"),
            "a<U+009B>31m<U+202E>b é 👩\u{200d}🚀"
        );
        let json = serde_json::json!({ "a": "\u{9b}\u{202e}\u{e0041}" });
        let shown = escape_hidden_json(&json.to_string()).into_owned();
        assert!(shown.is_ascii(), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), json);
    }

    #[test]
    fn visible_controls_escapes_every_control_character() {
        assert_eq!(visible_controls("a\u{1b}[31m\u{7}\u{202e}b"), "a<U+001B>[31m<U+0007><U+202E>b");
        assert_eq!(visible_controls("a\r\nb\tc\rd"), "a\nb\tc<U+000D>d");
        assert!(matches!(visible_controls("é 👩\u{200d}🚀\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn limited_block_keeps_its_lines() {
        assert_eq!(limit_block("a\n\tb\u{7}\u{2066}", 10), "a\n\tb");
        assert_eq!(limit_block("a\nb", 2), "a\n…");
    }
}
