//! What looks like a key, whoever it belongs to: the prefixes services give their keys, tokens in headers, private key
//! blocks, JSON web tokens, passwords in addresses.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

use super::heads::{HEADS, Head, Rest};
use super::whole;

const END: &str = "-----END ";
/// A run of letters this long after the head of a key is no prose, whatever it is.
const LONG: usize = 2_048;
/// Longest private key.
const KEY: usize = 16 * 1024;
/// Longest label of a block, and longest name and password in an address.
const LABEL: usize = 64;
const USER: usize = 512;
/// Shortest number of a bot, and shortest rest of its token.
const NUMBER: usize = 6;
const BOT: usize = 30;
/// How long the id in a token of Discord is, and its signature at least.
const DISCORD_ID: Range<usize> = 22..31;
const DISCORD_SIGNATURE: usize = 25;

/// Passwords of examples. Hiding these would only make text hard to read.
const EXAMPLES: [&str; 8] = ["password", "pass", "pw", "secret", "changeme", "example", "postgres", "xxx"];

/// What a head turned out to begin.
enum Reading {
    Secret(Range<usize>),
    /// The text ends before it is clear. `so_far` is what it comes to if nothing more follows.
    Open {
        so_far: Option<Range<usize>>,
    },
    Nothing,
}

pub(super) struct Patterns(Option<AhoCorasick>);

impl Patterns {
    pub fn new() -> Self {
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(HEADS.iter().map(|head| head.text));
        Self(finder.ok())
    }

    pub fn find(&self, text: &str) -> Vec<Range<usize>> {
        let span = |(_, reading)| match reading {
            Reading::Secret(span) => Some(span),
            Reading::Open { so_far } => so_far,
            Reading::Nothing => None,
        };
        self.readings(text).filter_map(span).collect()
    }

    /// Where something begins that the end of the text cuts off before it is clear what it is.
    pub fn open_from(&self, text: &str) -> Option<usize> {
        let open = |(at, reading): (usize, Reading)| matches!(reading, Reading::Open { .. }).then_some(at);
        self.readings(text).find_map(open)
    }

    fn readings<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, Reading)> + 'a {
        let mut read_to = 0;
        self.0.iter().flat_map(move |finder| finder.find_iter(text)).filter_map(move |found| {
            let (head, at) = (&HEADS[found.pattern().as_usize()], found.start());
            // A head inside a long run that was read already: reading it again, and again, would take for ever.
            if at < read_to {
                return None;
            }
            let reading = read(head, text, at);
            if let Reading::Open { so_far: Some(span) } | Reading::Secret(span) = &reading {
                read_to = read_to.max(span.end);
            }
            Some((at, reading))
        })
    }
}

fn read(head: &Head, text: &str, at: usize) -> Reading {
    let bytes = text.as_bytes();
    let begins_a_word = at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    let after = at + head.text.len();
    match head.rest {
        Rest::Key(_) | Rest::Dotted(_) | Rest::WebToken if !begins_a_word => Reading::Nothing,
        Rest::Key(least) => run(bytes, at, after, |run| run.len() >= least && has_digit(run)),
        Rest::Dotted(least) => dotted(bytes, at, after, least),
        Rest::Header(least) => header(bytes, after, least),
        Rest::WebToken => web_token(bytes, at),
        Rest::Block => block(text, at, after),
        Rest::Address => address(text, after),
        Rest::Bot => bot(bytes, at, after),
        Rest::Discord => discord(bytes, at),
    }
}

/// Like a key, with full stops in it; one at its end belongs to the sentence.
fn dotted(bytes: &[u8], at: usize, after: usize, least: usize) -> Reading {
    let end = run_end(bytes, after, |byte| is_word(byte) || byte == b'.');
    let stops = bytes[after..end].iter().rev().take_while(|byte| **byte == b'.').count();
    let found = &bytes[after..end - stops];
    let is_key = found.len() > LONG || (found.len() >= least && has_digit(found));
    match judge(at..end, bytes.len(), is_key) {
        Reading::Secret(_) => Reading::Secret(at..end - stops),
        Reading::Open { so_far } => Reading::Open { so_far: so_far.map(|_| at..end - stops) },
        Reading::Nothing => Reading::Nothing,
    }
}

/// `<id>.<time>.<signature>`: the id of the bot, in base64, is public, and has passed where the text is a stream.
fn discord(bytes: &[u8], stop: usize) -> Reading {
    let id = bytes[..stop].iter().rev().take(DISCORD_ID.end + 1).take_while(|byte| is_word(**byte)).count();
    // A number in base64 begins with one of these.
    if !DISCORD_ID.contains(&id) || !matches!(bytes[stop - id], b'M' | b'N' | b'O') {
        return Reading::Nothing;
    }
    let time = stop + 1..run_end(bytes, stop + 1, is_word);
    match (time.len(), bytes.get(time.end)) {
        (0..=8, None) => return Reading::Open { so_far: None },
        (5..=8, Some(b'.')) => {}
        _ => return Reading::Nothing,
    }
    let end = run_end(bytes, time.end + 1, is_word);
    judge(time.start..end, bytes.len(), end - time.end > DISCORD_SIGNATURE)
}

/// The number is public, and has passed where the text is a stream.
fn bot(bytes: &[u8], colon: usize, after: usize) -> Reading {
    let number = bytes[..colon].iter().rev().take(NUMBER).take_while(|byte| byte.is_ascii_digit()).count();
    match number < NUMBER {
        true => Reading::Nothing,
        false => run(bytes, colon + 1, after, |run| run.len() >= BOT),
    }
}

fn run(bytes: &[u8], at: usize, after: usize, is_key: impl Fn(&[u8]) -> bool) -> Reading {
    let end = run_end(bytes, after, is_word);
    if end - after > LONG {
        return judge(at..end, bytes.len(), true);
    }
    judge(at..end, bytes.len(), is_key(&bytes[after..end]))
}

fn header(bytes: &[u8], after: usize, least: usize) -> Reading {
    let end = run_end(bytes, after, |byte| is_word(byte) || b".~+/=".contains(&byte));
    // A full stop at its end belongs to the sentence.
    let stops = bytes[after..end].iter().rev().take_while(|byte| **byte == b'.').count();
    let found = &bytes[after..end - stops];
    match judge(after..end, bytes.len(), found.len() >= least && has_digit(found)) {
        Reading::Secret(_) => Reading::Secret(after..end - stops),
        Reading::Open { so_far } => Reading::Open { so_far: so_far.map(|_| after..end - stops) },
        Reading::Nothing => Reading::Nothing,
    }
}

fn web_token(bytes: &[u8], at: usize) -> Reading {
    let end = run_end(bytes, at, |byte| is_word(byte) || byte == b'.');
    if end - at > LONG {
        return judge(at..end, bytes.len(), true);
    }
    let mut parts = bytes[at..end].split(|byte| *byte == b'.');
    let long = |part: Option<&[u8]>| part.is_some_and(|part| part.len() >= 10);
    judge(at..end, bytes.len(), long(parts.next()) && long(parts.next()))
}

/// A run that reaches the end of the text may go on.
fn judge(span: Range<usize>, text_end: usize, is_key: bool) -> Reading {
    match (is_key, span.end == text_end) {
        (true, false) => Reading::Secret(span),
        (_, true) => Reading::Open { so_far: is_key.then_some(span) },
        (false, false) => Reading::Nothing,
    }
}

fn block(text: &str, at: usize, after: usize) -> Reading {
    let rest = &text[after..];
    let label_end = match rest.find("-----") {
        Some(end) if end <= LABEL => end,
        None if rest.len() <= LABEL && !rest.contains('\n') => return Reading::Open { so_far: None },
        _ => return Reading::Nothing,
    };
    if !rest[..label_end].contains("PRIVATE KEY") {
        return Reading::Nothing;
    }
    let body = after + label_end + 5;
    let near = &text[body..whole(text, text.len().min(body + KEY), false)];
    let end = near.find(END).and_then(|end| {
        let label = end + END.len();
        Some(body + label + near[label..].find("-----")? + 5)
    });
    match end {
        Some(end) => Reading::Secret(at..end),
        None => {
            let end = lines_end(text.as_bytes(), body);
            Reading::Open { so_far: (end > body).then_some(at..end) }
        }
    }
}

/// The end of the lines of base64 that follow, written with real line ends or with `\n`.
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
        let line_end = run_end(bytes, line, |byte| is_word(byte) || b"+/=".contains(&byte));
        if line_end - line < 16 {
            return end;
        }
        end = line_end;
    }
}

fn address(text: &str, after: usize) -> Reading {
    let rest = &text[after..];
    let ends = |c: char| c.is_whitespace() || "/?#@\"'<>`)]}\\".contains(c);
    let end = rest.find(ends).unwrap_or(rest.len());
    let Some(colon) = rest[..end].find(':').filter(|_| end <= USER) else { return Reading::Nothing };
    let password = &rest[colon + 1..end];
    match rest[end..].chars().next() {
        None => Reading::Open { so_far: None },
        Some('@') if !is_example(password) => Reading::Secret(after + colon + 1..after + end),
        _ => Reading::Nothing,
    }
}

/// No password, but where one would stand.
pub(super) fn is_example(password: &str) -> bool {
    let is_known = EXAMPLES.iter().any(|example| password.eq_ignore_ascii_case(example));
    let is_placeholder = password.starts_with(['$', '{', '%', '*', '[', '.']) && !password.contains("%2");
    password.is_empty() || is_known || is_placeholder
}

fn run_end(bytes: &[u8], from: usize, goes_on: impl Fn(u8) -> bool) -> usize {
    from + bytes[from..].iter().take_while(|byte| goes_on(**byte)).count()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn has_digit(bytes: &[u8]) -> bool {
    bytes.iter().any(u8::is_ascii_digit)
}
