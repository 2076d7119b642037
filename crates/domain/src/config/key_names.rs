//! Names of settings: paths, the two spellings, and suggestions for typing errors.

use std::borrow::Cow;

/// Returns `path.key`, with quotes around a key that is no plain word, as in TOML.
pub(super) fn join_key(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let key: Cow<'_, str> = if plain { key.into() } else { format!("{key:?}").into() };
    if path.is_empty() { key.into_owned() } else { format!("{path}.{key}") }
}

/// `maxRounds` → `max_rounds`.
pub(super) fn to_snake_case(key: &str) -> String {
    let mut out = String::with_capacity(key.len() + 4);
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// `max_rounds` → `maxRounds`.
pub(super) fn to_camel_case(key: &str) -> String {
    let mut words = key.split('_');
    let mut out = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut chars = word.chars();
        out.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        out.push_str(chars.as_str());
    }
    out
}

/// Maximum number of names that a suggestion compares: a file can have thousands of wrong words and names.
pub(super) const MAX_COMPARED: usize = 200;
/// Maximum length of a compared word: the cost is the product of both lengths.
const MAX_WORD: usize = 100;
/// Maximum number of names in a hint.
const MAX_LISTED: usize = 40;

/// Returns the hint for an unknown word: the most similar known one, else all known ones.
pub fn suggest_word(word: &str, known: &[&str]) -> String {
    if let Some(near) = nearest_word(word, known) {
        return format!("did you mean {near:?}?");
    }
    match known {
        [] => String::new(),
        [only] => format!("there is only {only:?}"),
        _ if known.len() > MAX_LISTED => format!("expected one of: {}, …", known[..MAX_LISTED].join(", ")),
        _ => format!("expected one of: {}", known.join(", ")),
    }
}

/// Returns the known word that is most similar, if it is close enough.
pub fn nearest_word<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    if word.len() > MAX_WORD {
        return None;
    }
    let word = word.to_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    let distance = |candidate: &str| strsim::damerau_levenshtein(&word, &candidate.to_lowercase());
    let compared = known.iter().copied().filter(|candidate| candidate.len() <= MAX_WORD).take(MAX_COMPARED);
    let near = compared.min_by_key(|candidate| distance(candidate))?;
    (distance(near) <= allowed).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_key_path_quotes_special_keys() {
        assert_eq!(join_key("", "gateway"), "gateway");
        assert_eq!(join_key("gateway", "port"), "gateway.port");
        assert_eq!(join_key("models", "openai/gpt-5.1"), r#"models."openai/gpt-5.1""#);
    }

    #[test]
    fn snake_and_camel_case_keys_convert_both_ways() {
        for (snaked, cameled) in [("port", "port"), ("max_rounds", "maxRounds"), ("reply_url", "replyUrl")] {
            assert_eq!(
                (to_snake_case(cameled), to_camel_case(snaked)),
                (snaked.to_owned(), cameled.to_owned())
            );
        }
    }

    #[test]
    fn typo_gets_one_suggestion_and_unknown_word_gets_all() {
        let known = ["bind", "port", "auth"];
        assert_eq!(suggest_word("prot", &known), r#"did you mean "port"?"#);
        assert_eq!(suggest_word("Bind", &known), r#"did you mean "bind"?"#);
        assert_eq!(suggest_word("telegram", &known), "expected one of: bind, port, auth");
        assert_eq!(suggest_word("x", &["main"]), r#"there is only "main""#);
        assert!(suggest_word("telegram", &["bind"; 50]).ends_with("bind, …"), "a list that goes on is cut");
    }
}
