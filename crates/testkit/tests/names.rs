//! Names: a type is found by one search, and nothing speaks the private dialect that this project once had.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Names that many crates may have, because their path says the rest.
const SHARED_TYPES: [&str; 5] = ["Args", "Error", "Result", "Inner", "Command"];

/// Words that no identifier, key, code, event, table or column may contain. docs/decisions/names.md says what to write instead.
const BANNED_WORDS: &str = "errand errands deed deeds purse purses lent lend wish parcel parcels desk setback setbacks shelf leash \
    turnstile courier gallery insider guest passage pulses eyes whereabouts seat seats seated untold anew beside bury buried obeyed \
    family families letter letters standing patience walls holdings reception said told begun";

/// The field's own words that contain a banned one.
const ALLOWED_NAMES: [&str; 2] = ["dead_letter", "dead_letters"];

/// How texts for people must not sound; docs/decisions/names.md and the style of the guides say more.
const BANNED_PHRASES: [&str; 9] = [
    "can not",
    "whoever",
    "anew",
    "is told",
    "are told",
    "taken up",
    "put away",
    "gone on with",
    "is there already",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file below a folder whose name ends so, with its text.
fn files_below(folder: &Path, ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                let text = std::fs::read_to_string(&path).expect("readable text");
                found.push((path.strip_prefix(root()).unwrap_or(&path).display().to_string(), text));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "{} has no {ending}", folder.display());
    found
}

fn sources() -> Vec<(String, String)> {
    let crates = std::fs::read_dir(root().join("crates")).expect("the crates");
    let folders = crates.map(|entry| entry.expect("an entry").path().join("src"));
    let all = folders.flat_map(|folder| files_below(&folder, ".rs"));
    all.filter(|(name, _)| !name.contains("/tests") && !name.ends_with("tests.rs")).collect()
}

/// Rust source as code without comments, and its string literals.
struct SplitSource {
    code: String,
    strings: Vec<String>,
}

impl SplitSource {
    fn split(text: &str) -> Self {
        let mut split = Self { code: String::new(), strings: Vec::new() };
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let taken = split.take(rest, first);
            rest = &rest[taken..];
        }
        split
    }

    /// How many bytes the next token has.
    fn take(&mut self, rest: &str, first: char) -> usize {
        if rest.starts_with("//") {
            return rest.find('\n').unwrap_or(rest.len());
        }
        if let Some(hashes) = raw_string_hashes(rest).filter(|_| !self.ends_in_name()) {
            let open = hashes + 2;
            let end = format!("\"{}", "#".repeat(hashes));
            let length = rest[open..].find(&end).map_or(rest.len() - open, |at| at);
            self.strings.push(rest[open..open + length].to_owned());
            return (open + length + end.len()).min(rest.len());
        }
        if first == '"' {
            let length = string_length(&rest[1..]);
            self.strings.push(rest[1..=length].to_owned());
            return (length + 2).min(rest.len());
        }
        if first == '\''
            && let Some(length) = char_length(rest)
        {
            return length;
        }
        self.code.push(first);
        first.len_utf8()
    }

    fn ends_in_name(&self) -> bool {
        self.code.chars().next_back().is_some_and(|last| last.is_alphanumeric() || last == '_')
    }
}

fn raw_string_hashes(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// Bytes up to the quote that ends a string.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at,
            _ => {}
        }
    }
    text.len()
}

/// Bytes of a character literal; a lifetime is none.
fn char_length(rest: &str) -> Option<usize> {
    let inside = &rest[1..];
    let end = match inside.strip_prefix('\\') {
        Some(escaped) => 2 + escaped.char_indices().skip(1).find(|(_, c)| *c == '\'')?.0,
        None => 1 + inside.chars().next()?.len_utf8(),
    };
    rest[end..].starts_with('\'').then_some(end + 1)
}

/// The words of a text: what stands between other characters than letters, digits and underscores.
fn names_in(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|name| !name.is_empty())
}

/// `outbox_message` and `OutboxMessage` are both of "outbox" and "message".
fn parts_of(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if c == '_' || (c.is_ascii_uppercase() && was_lower) {
            parts.push(String::new());
        }
        was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        if c != '_' {
            parts.last_mut().expect("a part").push(c.to_ascii_lowercase());
        }
    }
    parts
}

fn banned_part(name: &str) -> Option<String> {
    let is_banned = |part: &String| BANNED_WORDS.split_whitespace().any(|word| word == part.as_str());
    let lower = name.to_ascii_lowercase();
    if ALLOWED_NAMES.iter().any(|allowed| lower.contains(allowed) || name.contains("DeadLetter")) {
        return None;
    }
    parts_of(name).into_iter().find(is_banned)
}

/// Identifiers with a word of the dialect, and strings that are a key, a code or a column with one.
fn dialect_in(text: &str) -> Vec<String> {
    let split = SplitSource::split(text);
    let keys = split.strings.iter().filter(|text| is_key(text));
    let statements = split.strings.iter().filter(|text| is_sql(text)).flat_map(|text| names_in(text));
    let all = names_in(&split.code).chain(keys.flat_map(|key| names_in(key))).chain(statements);
    all.filter(|name| banned_part(name).is_some()).map(str::to_owned).collect()
}

fn is_key(text: &str) -> bool {
    text.contains(['_', '.']) && text.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '_' | '.'))
}

fn is_sql(text: &str) -> bool {
    ["SELECT ", "INSERT ", "UPDATE ", "DELETE "].iter().any(|verb| text.starts_with(verb))
}

fn types_in(text: &str) -> Vec<String> {
    let code = SplitSource::split(text).code;
    let words: Vec<&str> = names_in(&code).collect();
    let is_type = |pair: &&[&str]| {
        matches!(pair[0], "struct" | "enum" | "trait")
            && pair[1].starts_with(|c: char| c.is_ascii_uppercase())
    };
    words.windows(2).filter(is_type).map(|pair| pair[1].to_owned()).collect()
}

#[test]
fn every_type_name_is_unique() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in sources() {
        for name in types_in(&text) {
            found.entry(name).or_default().push(file.clone());
        }
    }
    assert!(found.len() > 1000, "{} types are read", found.len());
    let shared =
        found.iter().filter(|(name, files)| files.len() > 1 && !SHARED_TYPES.contains(&name.as_str()));
    let shared: Vec<_> = shared.collect();
    assert!(shared.is_empty(), "give each a name that one search finds: {shared:#?}");
}

#[test]
fn names_and_keys_and_columns_contain_no_banned_word() {
    let found: Vec<String> = sources()
        .iter()
        .flat_map(|(file, text)| dialect_in(text).into_iter().map(move |name| format!("{file}: {name}")))
        .collect();
    assert!(found.is_empty(), "docs/decisions/names.md says what to write instead: {found:#?}");
}

#[test]
fn user_texts_contain_no_banned_phrase() {
    let mut pages = files_below(&root().join("docs/guide"), ".md");
    pages.extend(
        ["README.md", "docs/errors.md", "web/src/i18n/en.json"]
            .map(|name| (name.to_owned(), std::fs::read_to_string(root().join(name)).expect("a page"))),
    );
    let mut found = Vec::new();
    for (file, text) in &pages {
        for (number, line) in text.lines().enumerate() {
            let lower = line.to_lowercase();
            let phrases = BANNED_PHRASES.iter().filter(|phrase| has_phrase(&lower, phrase));
            found.extend(phrases.map(|phrase| format!("{file}:{}: {phrase}", number + 1)));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

fn has_phrase(line: &str, phrase: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    line.match_indices(phrase).any(|(at, _)| {
        is_edge(line[..at].chars().next_back()) && is_edge(line[at + phrase.len()..].chars().next())
    })
}

#[test]
fn name_checks_detect_violations() {
    let source = "/// A letter.\npub struct Letter { told: bool }\nconst SQL: &str = \"SELECT purse FROM x\"; // lent\n\
        fn f() { json!({ \"asked_by\": 1, \"lent_json\": 'a' }); \"the letter a\"; dead_letter() }";
    assert_eq!(dialect_in(source), ["Letter", "told", "lent_json", "purse"]);
    assert_eq!(
        types_in("struct Outer; enum Inner { A } // struct Comment\n\"struct Text\""),
        ["Outer", "Inner"]
    );
    assert!(has_phrase("it can not be read", "can not") && !has_phrase("scan nothing", "can not"));
    assert_eq!(parts_of("HTTPLetterBox"), ["httpletter", "box"]);
}
