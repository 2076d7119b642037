//! Finds values that their context marks as secret: `API_KEY=…`, `password: …`, `"token": "…"` in a string, `?token=…`.
//! The value must look like one; "password: please choose one" is a sentence.

use std::ops::Range;

use super::field_names::{SecretNameMatch, is_number_or_path, last_word};
use super::token_scanner::is_example_password;

/// Maximum length of a name and of a value.
const MAX_NAME_LEN: usize = 64;
const MAX_VALUE_LEN: usize = 2_048;
/// Minimum length of an unquoted value, for names that always mean a secret and for names that sometimes do.
const MIN_SURE_SECRET_LEN: usize = 6;
const MIN_LIKELY_SECRET_LEN: usize = 12;
/// Minimum length of a value without spaces that is not prose.
const MIN_UNBROKEN_LEN: usize = 20;
/// Maximum white space around the sign.
const MAX_SPACING: usize = 8;

/// The value after a sign.
struct AssignedValue<'a> {
    span: Range<usize>,
    text: &'a str,
    quoted: bool,
}

pub(super) fn find_assignments(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut spans: Vec<Range<usize>> = Vec::new();
    for (at, sign) in bytes.iter().enumerate().filter(|(_, byte)| matches!(byte, b'=' | b':')) {
        let read_already = spans.last().is_some_and(|last| at < last.end);
        let doubled = matches!(bytes.get(at + 1), Some(b'=' | b'>'))
            || *sign == b':' && bytes.get(at + 1) == Some(sign);
        if read_already || doubled {
            continue;
        }
        let name = name_before(text, at);
        let Some(named) = SecretNameMatch::for_name(&text[name.clone()]) else { continue };
        let value = value_after(text, at + 1, last_word(&text[name.clone()]).starts_with("cookie"));
        if is_secret(text, at, &name, named, &value) {
            spans.push(value.span);
        }
    }
    spans
}

/// Returns the name without quotes and spaces. A name may have two words: `api key`.
fn name_before(text: &str, sign: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let back = |from: usize, most: usize, goes_on: fn(u8) -> bool| {
        from - bytes[..from].iter().rev().take(most).take_while(|byte| goes_on(**byte)).count()
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let end = back(sign, MAX_SPACING, |byte| b" \t:\"'`\\".contains(&byte));
    let mut start = back(end, MAX_NAME_LEN, is_name);
    let is_half = ["key", "string"].iter().any(|half| text[start..end].eq_ignore_ascii_case(half));
    if is_half && start > 0 && bytes[start - 1] == b' ' {
        start = back(start - 1, MAX_NAME_LEN, is_name);
    }
    start..end
}

fn value_after(text: &str, from: usize, is_cookie: bool) -> AssignedValue<'_> {
    let bytes = text.as_bytes();
    let skip = |from: usize, most: usize, goes_on: fn(u8) -> bool| {
        from + bytes[from..].iter().take(most).take_while(|byte| goes_on(**byte)).count()
    };
    let spaced = skip(from, MAX_SPACING, |byte| b" \t".contains(&byte));
    let opened = skip(spaced, MAX_SPACING, |byte| byte == b'\\');
    let found = match bytes.get(opened) {
        Some(quote @ (b'"' | b'\'' | b'`')) => {
            let start = opened + 1;
            return build_value(text, start..quoted_end(bytes, start, *quote, opened > spaced), true);
        }
        // A cookie header extends to the end of its line.
        _ if is_cookie => skip(spaced, MAX_VALUE_LEN, |byte| !b"\n\r\"'`\\".contains(&byte)),
        _ => bare_end(bytes, spaced),
    };
    let found = super::nearest_char_boundary(text, found, true);
    let is_scheme =
        ["bearer", "basic", "token"].iter().any(|word| text[spaced..found].eq_ignore_ascii_case(word));
    match is_scheme && bytes.get(found) == Some(&b' ') {
        true => build_value(text, found + 1..bare_end(bytes, found + 1), false),
        false => build_value(text, spaced..found, false),
    }
}

fn build_value(text: &str, span: Range<usize>, quoted: bool) -> AssignedValue<'_> {
    let span = span.start..super::nearest_char_boundary(text, span.end, true);
    AssignedValue { text: &text[span.clone()], span, quoted }
}

/// Returns the end of a quoted value. Inside a quoted text the closing quote is escaped too.
fn quoted_end(bytes: &[u8], start: usize, quote: u8, escaped: bool) -> usize {
    let mut at = start;
    while let Some(byte) = bytes.get(at).filter(|_| at - start < MAX_VALUE_LEN) {
        match byte {
            b'\\' if escaped => break,
            b'\\' => at += 1,
            byte if *byte == quote => break,
            _ => {}
        }
        at += 1;
    }
    at.min(bytes.len())
}

fn bare_end(bytes: &[u8], from: usize) -> usize {
    let ends = |byte: u8| byte.is_ascii_whitespace() || b"\"'`<>&,;(){}[]|\\".contains(&byte);
    from + bytes[from..].iter().take(MAX_VALUE_LEN).take_while(|byte| !ends(**byte)).count()
}

fn is_secret(
    text: &str,
    sign: usize,
    name: &Range<usize>,
    named: SecretNameMatch,
    value: &AssignedValue<'_>,
) -> bool {
    let bytes = text.as_bytes();
    let is_call = !value.quoted && bytes.get(value.span.end) == Some(&b'(');
    let is_path_or_count = is_number_or_path(value.text)
        && (named == SecretNameMatch::Perhaps || value.text.starts_with(['/', '~', '.']));
    if is_call || is_path_or_count || is_example_password(value.text) {
        return false;
    }
    if value.quoted && !value.text.contains(char::is_whitespace) {
        return true;
    }
    let in_quotes = value.quoted && name.end < sign && b"\"'`\\".contains(&bytes[name.end]);
    // `KEY=value` and `?key=value` are written for machines.
    let for_machines = bytes[sign] == b'=' && name.end == sign && value.span.start == sign + 1 && {
        let before = name.start.checked_sub(1).map(|at| bytes[at]);
        matches!(before, Some(b'?' | b'&' | b';'))
            || !text[name.clone()].contains(|c: char| c.is_ascii_lowercase())
    };
    in_quotes
        || for_machines && value.text.len() >= 4
        || looks_generated(&text[name.clone()], named, value.text)
}

/// Returns whether a value looks generated, so that it does not occur in a sentence.
fn looks_generated(name: &str, named: SecretNameMatch, value: &str) -> bool {
    let value = value.trim_end_matches(['.', ':', '!', '?', '=']);
    let word = last_word(name);
    if word.starts_with("cookie") {
        return value.split_once('=').is_some_and(|(_, value)| !value.is_empty());
    }
    if value.contains(char::is_whitespace) {
        return false;
    }
    let is_password = named == SecretNameMatch::Surely || ["pass", "pwd"].contains(&word.as_str());
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let has_sign = value.contains(['!', '@', '#', '$', '%', '^', '*', '+', '~', '?', '=']);
    let is_base64 = word == "authorization"
        && value.bytes().skip(1).any(|byte| byte.is_ascii_uppercase())
        && value.bytes().any(|byte| byte.is_ascii_lowercase());
    match is_password {
        true => {
            value.len() >= MIN_SURE_SECRET_LEN && (has_digit || has_sign || is_base64)
                || value.len() >= MIN_UNBROKEN_LEN
        }
        false => value.len() >= MIN_LIKELY_SECRET_LEN && has_digit,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{REDACTION_MARK, Redactor};

    #[test]
    fn unterminated_value_is_cut_at_character_boundary() {
        for begin in ["token: ", "cookie: ", "token: 'x"] {
            for message_count in 600..800 {
                let text = format!("{begin}{}", "字".repeat(message_count));
                let reply = Redactor::default().redact_outbound_text(&text).into_owned();
                assert!(
                    reply.contains(REDACTION_MARK) || begin.starts_with("cookie"),
                    "{begin}{message_count}"
                );
            }
        }
    }

    #[test]
    fn assigned_secret_value_is_redacted_and_name_kept() {
        for (text, clean) in [
            ("export API_KEY=abcdefgh", "export API_KEY=#"),
            ("the password: hunter2, ok", "the password: #, ok"),
            ("Password = 'correct'", "Password = '#'"),
            (r#"{"user":"me","api_key":"abc","n":1}"#, r##"{"user":"me","api_key":"#","n":1}"##),
            (r#"{"db": {"password": "two words"}}"#, r##"{"db": {"password": "#"}}"##),
            (r#"{\"token\":\"abc\",\"x\":1}"#, r##"{\"token\":\"#\",\"x\":1}"##),
            (r#"password: "a\"b", x"#, r##"password: "#", x"##),
            ("GET /x?token=abcdef&y=1", "GET /x?token=#&y=1"),
            ("my api key: abcd1234.", "my api key: #"),
            ("secret := s3cr3tly", "secret := #"),
            ("Authorization: Basic dXNlcjpw", "Authorization: Basic #"),
            ("Authorization: token abc123def", "Authorization: token #"),
            ("-H 'Cookie: sid=abc; theme=dark'", "-H 'Cookie: #'"),
            ("Server=db;Pwd=letmein;Port=1", "Server=db;Pwd=#;Port=1"),
            ("DB_PASS=letmein", "DB_PASS=#"),
            ("pass: tr0ub4dor", "pass: #"),
            ("the passphrase: correcthorsebatterystaple", "the passphrase: #"),
            ("password: pässw0rt! yes", "password: # yes"),
            ("PASSWORD=p1ssword\nTOKEN=second", "PASSWORD=#\nTOKEN=#"),
        ] {
            let clean = clean.replace('#', REDACTION_MARK);
            let reply = Redactor::default().redact_outbound_text(text).into_owned();
            assert_eq!(reply, clean, "{text}");
            assert_eq!(
                Redactor::default().redact_outbound_text(&reply),
                clean,
                "hidden once, it stays as it is"
            );
        }
    }

    /// Every sign is examined once, up to a bound, so that the test terminates.
    #[test]
    fn hostile_assignment_text_terminates() {
        for piece in ["password:\"", "password:\" ", "token=", "\"\"\"\"\"\"\"\":", "key key key:", "cookie:"]
        {
            let _ = Redactor::default().redact_outbound_text(&piece.repeat(16 * 1024 / piece.len()));
        }
    }

    #[test]
    fn prose_and_code_about_secrets_are_left_unchanged() {
        for text in [
            "password: please choose one",
            "Password: required. Token: optional; secret: none",
            "max_tokens: 4096, tokens=128000, output_tokens: 1,234",
            "let token = parser.next_token2();",
            "token: Option<String>, api_key: &str, secret: Vec<u8>",
            "if token == expected1 && password != other1 { Token::from1(x) }",
            "match auth { Auth::Token => 1 } and auth: OAuth2.0",
            "PWD=/home/me/work1 and credentials: /etc/app/creds1.json",
            "password: $PASSWORD1, token=${TOKEN1}, api_key: {{ key1 }}, secret=<your-1>",
            "set password=changeme or password: \"example\"",
            "the password: \"is never shown again\"",
            "bypass: on1234567, author: me1234567, keyboard=us1234567",
            "cookie: a small biscuit; auth: basic or digest",
            "the meeting is at 12:30, the ratio is 3:4, and x = y1234567",
            "token:",
            "=:=:\"",
        ] {
            assert_eq!(Redactor::default().redact_outbound_text(text), text);
        }
    }
}
