//! Finds text that looks like a key of any owner: known key prefixes of services, tokens in headers, private key
//! blocks, JSON web tokens, passwords in URLs.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

use super::nearest_char_boundary;
use super::token_patterns::{TOKEN_PATTERNS, TokenPattern, TokenTail};

const BLOCK_END: &str = "-----END ";
/// A longer run of token characters after a prefix is always treated as a key.
const LONG_RUN_LEN: usize = 2_048;
/// Maximum length of a private key.
const MAX_PRIVATE_KEY_LEN: usize = 16 * 1024;
/// Maximum length of a block's label, and of the user name and password in a URL.
const MAX_LABEL_LEN: usize = 64;
const MAX_USERINFO_LEN: usize = 512;
/// Minimum length of a bot number, and of the rest of its token.
const MIN_BOT_NUMBER_LEN: usize = 6;
const MIN_BOT_TOKEN_LEN: usize = 30;
/// Length of the id in a Discord token, and the minimum length of its signature.
const DISCORD_ID_LEN: Range<usize> = 22..31;
const MIN_DISCORD_SIGNATURE_LEN: usize = 25;

/// Passwords used in examples. Masking them would only make text hard to read.
const EXAMPLE_PASSWORDS: [&str; 8] =
    ["password", "pass", "pw", "secret", "changeme", "example", "postgres", "xxx"];

/// Result of matching a pattern at its prefix.
enum PatternMatch {
    Secret(Range<usize>),
    /// The text ends before the match is decided. `so_far` is the span if nothing more follows.
    Open {
        so_far: Option<Range<usize>>,
    },
    Nothing,
}

pub(super) struct TokenScanner(Option<AhoCorasick>);

impl TokenScanner {
    pub fn new() -> Self {
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(TOKEN_PATTERNS.iter().map(|head| head.text));
        Self(finder.ok())
    }

    pub fn find_tokens(&self, text: &str) -> Vec<Range<usize>> {
        let span = |(_, reading)| match reading {
            PatternMatch::Secret(span) => Some(span),
            PatternMatch::Open { so_far } => so_far,
            PatternMatch::Nothing => None,
        };
        self.scan_matches(text).filter_map(span).collect()
    }

    /// Returns the start of the first match that the end of the text leaves undecided.
    pub fn find_open_start(&self, text: &str) -> Option<usize> {
        let open =
            |(at, reading): (usize, PatternMatch)| matches!(reading, PatternMatch::Open { .. }).then_some(at);
        self.scan_matches(text).find_map(open)
    }

    fn scan_matches<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, PatternMatch)> + 'a {
        let mut read_to = 0;
        self.0.iter().flat_map(move |finder| finder.find_iter(text)).filter_map(move |found| {
            let (head, at) = (&TOKEN_PATTERNS[found.pattern().as_usize()], found.start());
            // Skips prefixes inside a run that was already matched; matching them again would take quadratic time.
            if at < read_to {
                return None;
            }
            let reading = match_pattern(head, text, at);
            if let PatternMatch::Open { so_far: Some(span) } | PatternMatch::Secret(span) = &reading {
                read_to = read_to.max(span.end);
            }
            Some((at, reading))
        })
    }
}

fn match_pattern(head: &TokenPattern, text: &str, at: usize) -> PatternMatch {
    let bytes = text.as_bytes();
    let begins_a_word = at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let after = at + head.text.len();
    match head.rest {
        TokenTail::Key(_) | TokenTail::Dotted(_) | TokenTail::WebToken if !begins_a_word => {
            PatternMatch::Nothing
        }
        TokenTail::Key(least) => match_run(bytes, at, after, |run| run.len() >= least && has_digit(run)),
        TokenTail::Dotted(least) => match_dotted(bytes, at, after, least),
        TokenTail::Header(least) => match_header(bytes, after, least),
        TokenTail::WebToken => match_web_token(bytes, at),
        TokenTail::Block => match_key_block(text, at, after),
        TokenTail::Address => match_url_password(text, after),
        TokenTail::Bot => match_bot_token(bytes, at, after),
        TokenTail::Discord => match_discord_token(bytes, at),
    }
}

/// Matches a key that may contain full stops. A full stop at its end belongs to the sentence.
fn match_dotted(bytes: &[u8], at: usize, after: usize, least: usize) -> PatternMatch {
    let end = run_end(bytes, after, |byte| is_token_byte(byte) || byte == b'.');
    let stops = bytes[after..end].iter().rev().take_while(|byte| **byte == b'.').count();
    let found = &bytes[after..end - stops];
    let is_key = found.len() > LONG_RUN_LEN || (found.len() >= least && has_digit(found));
    match classify_span(at..end, bytes.len(), is_key) {
        PatternMatch::Secret(_) => PatternMatch::Secret(at..end - stops),
        PatternMatch::Open { so_far } => PatternMatch::Open { so_far: so_far.map(|_| at..end - stops) },
        PatternMatch::Nothing => PatternMatch::Nothing,
    }
}

/// Matches `<id>.<time>.<signature>`. The base64 id of the bot is public, and in a stream it was already sent.
fn match_discord_token(bytes: &[u8], stop: usize) -> PatternMatch {
    let id = bytes[..stop]
        .iter()
        .rev()
        .take(DISCORD_ID_LEN.end + 1)
        .take_while(|byte| is_token_byte(**byte))
        .count();
    // A number in base64 starts with one of these.
    if !DISCORD_ID_LEN.contains(&id) || !matches!(bytes[stop - id], b'M' | b'N' | b'O') {
        return PatternMatch::Nothing;
    }
    let time = stop + 1..run_end(bytes, stop + 1, is_token_byte);
    match (time.len(), bytes.get(time.end)) {
        (0..=8, None) => return PatternMatch::Open { so_far: None },
        (5..=8, Some(b'.')) => {}
        _ => return PatternMatch::Nothing,
    }
    let end = run_end(bytes, time.end + 1, is_token_byte);
    classify_span(time.start..end, bytes.len(), end - time.end > MIN_DISCORD_SIGNATURE_LEN)
}

/// Matches a Telegram bot token. The number is public, and in a stream it was already sent.
fn match_bot_token(bytes: &[u8], colon: usize, after: usize) -> PatternMatch {
    let number =
        bytes[..colon].iter().rev().take(MIN_BOT_NUMBER_LEN).take_while(|byte| byte.is_ascii_digit()).count();
    match number < MIN_BOT_NUMBER_LEN {
        true => PatternMatch::Nothing,
        false => match_run(bytes, colon + 1, after, |run| run.len() >= MIN_BOT_TOKEN_LEN),
    }
}

fn match_run(bytes: &[u8], at: usize, after: usize, is_key: impl Fn(&[u8]) -> bool) -> PatternMatch {
    let end = run_end(bytes, after, is_token_byte);
    if end - after > LONG_RUN_LEN {
        return classify_span(at..end, bytes.len(), true);
    }
    classify_span(at..end, bytes.len(), is_key(&bytes[after..end]))
}

fn match_header(bytes: &[u8], after: usize, least: usize) -> PatternMatch {
    let end = run_end(bytes, after, |byte| is_token_byte(byte) || b".~+/=".contains(&byte));
    // A full stop at the end belongs to the sentence.
    let stops = bytes[after..end].iter().rev().take_while(|byte| **byte == b'.').count();
    let found = &bytes[after..end - stops];
    match classify_span(after..end, bytes.len(), found.len() >= least && has_digit(found)) {
        PatternMatch::Secret(_) => PatternMatch::Secret(after..end - stops),
        PatternMatch::Open { so_far } => PatternMatch::Open { so_far: so_far.map(|_| after..end - stops) },
        PatternMatch::Nothing => PatternMatch::Nothing,
    }
}

fn match_web_token(bytes: &[u8], at: usize) -> PatternMatch {
    let end = run_end(bytes, at, |byte| is_token_byte(byte) || byte == b'.');
    if end - at > LONG_RUN_LEN {
        return classify_span(at..end, bytes.len(), true);
    }
    let mut parts = bytes[at..end].split(|byte| *byte == b'.');
    let long = |part: Option<&[u8]>| part.is_some_and(|part| part.len() >= 10);
    classify_span(at..end, bytes.len(), long(parts.next()) && long(parts.next()))
}

/// Classifies a run. A run that reaches the end of the text may continue.
fn classify_span(span: Range<usize>, text_end: usize, is_key: bool) -> PatternMatch {
    match (is_key, span.end == text_end) {
        (true, false) => PatternMatch::Secret(span),
        (_, true) => PatternMatch::Open { so_far: is_key.then_some(span) },
        (false, false) => PatternMatch::Nothing,
    }
}

fn match_key_block(text: &str, at: usize, after: usize) -> PatternMatch {
    let rest = &text[after..];
    let label_end = match rest.find("-----") {
        Some(end) if end <= MAX_LABEL_LEN => end,
        None if rest.len() <= MAX_LABEL_LEN && !rest.contains('\n') => {
            return PatternMatch::Open { so_far: None };
        }
        _ => return PatternMatch::Nothing,
    };
    if !rest[..label_end].contains("PRIVATE KEY") {
        return PatternMatch::Nothing;
    }
    let body = after + label_end + 5;
    let near = &text[body..nearest_char_boundary(text, text.len().min(body + MAX_PRIVATE_KEY_LEN), false)];
    let end = near.find(BLOCK_END).and_then(|end| {
        let label = end + BLOCK_END.len();
        Some(body + label + near[label..].find("-----")? + 5)
    });
    match end {
        Some(end) => PatternMatch::Secret(at..end),
        None => {
            let end = lines_end(text.as_bytes(), body);
            PatternMatch::Open { so_far: (end > body).then_some(at..end) }
        }
    }
}

/// Returns the end of the base64 lines that follow, separated by line breaks or by `\n`.
fn lines_end(bytes: &[u8], from: usize) -> usize {
    let mut end = from;
    loop {
        let mut line = end;
        while let Some(b'\n' | b'\r' | b' ' | b'\t') = bytes.get(line) {
            line += 1;
        }
        while bytes.get(line) == Some(&b'\\') && matches!(bytes.get(line + 1), Some(b'n' | b'r')) {
            line += 2;
        }
        let line_end = run_end(bytes, line, |byte| is_token_byte(byte) || b"+/=".contains(&byte));
        if line_end - line < 16 {
            return end;
        }
        end = line_end;
    }
}

fn match_url_password(text: &str, after: usize) -> PatternMatch {
    let rest = &text[after..];
    let ends = |c: char| c.is_whitespace() || "/?#@\"'<>`)]}\\".contains(c);
    let end = rest.find(ends).unwrap_or(rest.len());
    let Some(colon) = rest[..end].find(':').filter(|_| end <= MAX_USERINFO_LEN) else {
        return PatternMatch::Nothing;
    };
    let password = &rest[colon + 1..end];
    match rest[end..].chars().next() {
        None => PatternMatch::Open { so_far: None },
        Some('@') if !is_example_password(password) => PatternMatch::Secret(after + colon + 1..after + end),
        _ => PatternMatch::Nothing,
    }
}

/// Returns whether the text is a placeholder and not a real password.
pub(super) fn is_example_password(password: &str) -> bool {
    let is_known = EXAMPLE_PASSWORDS.iter().any(|example| password.eq_ignore_ascii_case(example));
    let is_placeholder = password.starts_with(['$', '{', '%', '*', '[', '.']) && !password.contains("%2");
    password.is_empty() || is_known || is_placeholder
}

fn run_end(bytes: &[u8], from: usize, goes_on: impl Fn(u8) -> bool) -> usize {
    from + bytes[from..].iter().take_while(|byte| goes_on(**byte)).count()
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn has_digit(bytes: &[u8]) -> bool {
    bytes.iter().any(u8::is_ascii_digit)
}
