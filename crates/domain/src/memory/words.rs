//! Splits text into words for the index. Scripts without spaces are split into pairs of adjacent characters, so that a
//! two-character word is found anywhere.

/// Maximum number of words of a query.
const MAX_QUERY_WORDS: usize = 24;

/// Words in every question and answer; a search for them matches everything.
const STOP_WORDS: &str = " a about all am an and any anybody anyone anything are as at be been but by can could did do does for from \
    get give had has have her him his how i if in into is it its just know let like me my no not of on or our \
    out please say she should so some tell than that the their them then there these they this those to up us \
    was we were what when where which who whom whose why will with would you your again s t re ve ll d m don \
    doesn didn isn ever everybody everyone everything somebody someone something ";

fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x3005..=0x3007 | 0x3040..=0x30ff | 0x31f0..=0x31ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af
        | 0xf900..=0xfaff | 0xff66..=0xff9d | 0x20000..=0x323af)
}

/// Returns the text for the index. `None` if it is the text itself.
pub fn index_text(text: &str) -> Option<String> {
    if !text.chars().any(is_unspaced) {
        return None;
    }
    let mut cut = String::with_capacity(text.len() * 2);
    for run in script_runs(text) {
        match run {
            ScriptRun::Spaced(piece) => cut.push_str(piece),
            ScriptRun::Unspaced(piece) => {
                // The last character starts no pair, so it is added alone.
                let last = piece.char_indices().next_back().map_or("", |(at, _)| &piece[at..]);
                let alone = (last.len() < piece.len()).then_some(last);
                for word in char_bigrams(piece).chain(alone) {
                    cut.push(' ');
                    cut.push_str(word);
                }
                cut.push(' ');
            }
        }
    }
    Some(cut)
}

/// Returns the useful words of a question, quoted for FTS5, so that nothing in it is taken for an operator.
pub fn query_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for run in script_runs(text) {
        match run {
            ScriptRun::Spaced(piece) => {
                let found = piece.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
                words.extend(found.filter(|word| !is_stop_word(word)).map(|word| format!("\"{word}\"")));
            }
            // A single character may be the start of a pair.
            ScriptRun::Unspaced(piece) if piece.chars().count() == 1 => words.push(format!("\"{piece}\"*")),
            ScriptRun::Unspaced(piece) => words.extend(char_bigrams(piece).map(|pair| format!("\"{pair}\""))),
        }
    }
    let mut seen = std::collections::HashSet::new();
    words.retain(|word| seen.insert(word.to_lowercase()));
    words.truncate(MAX_QUERY_WORDS);
    words
}

fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(&format!(" {} ", word.to_lowercase()))
}

enum ScriptRun<'a> {
    Spaced(&'a str),
    Unspaced(&'a str),
}

/// Splits a text into runs of scripts with and without spaces.
fn script_runs(text: &str) -> impl Iterator<Item = ScriptRun<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let unspaced = is_unspaced(rest.chars().next()?);
        let end = rest.find(|c| is_unspaced(c) != unspaced).unwrap_or(rest.len());
        let (run, tail) = rest.split_at(end);
        rest = tail;
        Some(if unspaced { ScriptRun::Unspaced(run) } else { ScriptRun::Spaced(run) })
    })
}

/// Returns all pairs of adjacent characters, or the only character.
fn char_bigrams(run: &str) -> impl Iterator<Item = &str> {
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
    let width = 2.min(starts.len() - 1);
    (0..starts.len() - width).map(move |at| &run[starts[at]..starts[at + width]])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn unspaced_scripts_are_indexed_as_bigrams() {
        assert_eq!(index_text("Café au lait"), None);
        assert_eq!(index_text("我住在北京 since 2019").unwrap(), " 我住 住在 在北 北京 京  since 2019");
        assert_eq!(index_text("猫").unwrap(), " 猫 ");
        assert_eq!(index_text("東京タワー").unwrap(), " 東京 京タ タワ ワー ー ");
    }

    #[test]
    fn query_words_drop_stop_words() {
        assert_eq!(query_words("What is my dog's name, dog?"), ["\"dog\"", "\"name\""]);
        assert!(query_words("what is it").is_empty());
        assert_eq!(query_words("Did anyone ever have babies?"), ["\"babies\""]);
        assert_eq!(query_words("北京 猫"), ["\"北京\"", "\"猫\"*"]);
        assert_eq!(query_words("a\" OR NEAR(x) NOT *:-^ col:y"), ["\"NEAR\"", "\"x\"", "\"col\"", "\"y\""]);
    }

    proptest! {
        #[test]
        fn any_text_can_be_indexed_and_queried(text in any::<String>()) {
            index_text(&text);
            let quoted = |word: &String| word.starts_with('"') && word.matches('"').count() == 2;
            prop_assert!(query_words(&text).iter().all(quoted));
        }
    }
}
