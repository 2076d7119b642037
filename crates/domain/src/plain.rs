//! Text of strangers, made harmless to look at: bounded, and without the characters that steer a terminal, turn
//! the direction of writing or can not be seen.

/// What is left out of a stranger's text. Joiners stay: emoji and several scripts need them.
pub fn is_hidden(c: char) -> bool {
    let turns_direction =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_unseen = matches!(c, '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}');
    // Whole texts have been hidden in these two ranges.
    let smuggles = matches!(c, '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}');
    turns_direction || is_unseen || smuggles
}

/// One line of at most `most` characters; runs of white space are one space. A cut is visible.
pub fn line(text: &str, most: usize) -> String {
    let seen = text.chars().filter(|c| !is_hidden(*c)).map(|c| if c.is_control() { ' ' } else { c });
    let joined = seen.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ");
    match joined.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &joined[..at]),
        None => joined,
    }
}

/// Several lines of at most `most` characters in all. A cut is visible.
pub fn block(text: &str, most: usize) -> String {
    let mut shown =
        text.chars().filter(|c| !is_hidden(*c) && (matches!(c, '\n' | '\t') || !c.is_control())).peekable();
    let mut out: String = shown.by_ref().take(most).collect();
    if shown.peek().is_some() {
        out.push('…');
    }
    out
}

/// A text as it is written, in quotes and on one line: what would break the line, hide or turn something is spelled
/// out. Beyond `most` characters only their number is told.
pub fn literal(text: &str, most: usize) -> String {
    let mut out = String::from('"');
    for c in text.chars().take(most) {
        match c {
            '"' | '\\' | '\n' | '\r' | '\t' => out.extend(c.escape_default()),
            c if c.is_control() || is_hidden(c) || is_unclear(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out.push('"');
    match text.chars().count().saturating_sub(most) {
        0 => out,
        more => format!("{out} ({more} more characters)"),
    }
}

/// What ends a line, or looks like nothing at all, beside control characters and what [`is_hidden`] names.
pub fn is_unclear(c: char) -> bool {
    let ends_line = matches!(c, '\u{2028}' | '\u{2029}');
    let is_blank = matches!(c, '\u{ad}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2065}'
        | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{ffa0}');
    ends_line || is_blank
}

/// What a library says of an error, without the number the system has for it.
pub fn error(text: &str) -> String {
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
    fn a_line_is_one_bounded_line_that_hides_nothing() {
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
            assert_eq!(line(text, 8), expected, "{text:?}");
        }
        assert_eq!(line(&"ß".repeat(10_000), 64).chars().count(), 65);
    }

    #[test]
    fn an_error_is_told_without_the_number_of_the_system() {
        for (text, expected) in [
            ("a: No such file or directory (os error 2)", "a: No such file or directory"),
            ("a (os error 2); b (os error 13)!", "a; b!"),
            ("a (os error x)", "a (os error x)"),
            ("a (os error 2", "a (os error 2"),
            ("", ""),
        ] {
            assert_eq!(error(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_block_keeps_its_lines() {
        assert_eq!(block("a\n\tb\u{7}\u{2066}", 10), "a\n\tb");
        assert_eq!(block("a\nb", 2), "a\n…");
    }
}
