//! Rewrites deserializer errors for people who do not know Rust.

use polyclaw_domain::redact::quote_safely;

/// Rewrites the text of an error. Unknown texts stay as they are.
pub fn plain_message(text: &str) -> String {
    match text.trim().rsplit_once(" at line ") {
        Some((text, place)) => format!("{} (line {place})", describe_mismatch(text)),
        None => describe_mismatch(text.trim()),
    }
}

fn describe_mismatch(text: &str) -> String {
    if let Some(name) = text.strip_prefix("missing field ") {
        return format!("{name} is missing");
    }
    let unknown = text.strip_prefix("unknown variant ").or_else(|| text.strip_prefix("unknown field "));
    if let Some((word, known)) = unknown.and_then(|rest| rest.split_once(", expected ")) {
        let known = known.trim_start_matches("one of ");
        return format!("`{}` is unknown; expected {known}", quote_safely(word.trim_matches('`')));
    }
    if let Some((_, expected)) = text.split_once(", expected ") {
        return format!("must be {}", type_noun(expected));
    }
    match text {
        "invalid float literal" => "must be a number".to_owned(),
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "must be a whole number".to_owned()
        }
        "provided string was not `true` or `false`" => "must be true or false".to_owned(),
        other => other.to_owned(),
    }
}

/// Like `plain_message`, for a text with the field in front: `wait: invalid float literal`.
pub fn split_field(text: &str) -> (Option<&str>, String) {
    let word = |name: &str| {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !name.is_empty() && name.chars().all(is_word)
    };
    match text.split_once(": ") {
        Some((name, rest)) if word(name) => (Some(name), plain_message(rest)),
        _ => (None, plain_message(text)),
    }
}

/// Returns a plain name for a Rust type.
fn type_noun(expected: &str) -> &str {
    match expected {
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "string" => "text",
        "a sequence" => "a list",
        "a map" => "an object",
        _ if expected.starts_with("struct ") => "an object",
        "u16" => "a whole number from 0 to 65535",
        _ if expected.len() <= 5 && expected.starts_with(['u', 'i']) => "a whole number",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Post {
        text: String,
        count: Option<u32>,
        size: Option<f64>,
        is_late: Option<bool>,
        lines: Option<Vec<String>>,
        state: Option<State>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum State {
        Open,
        Done,
    }

    #[test]
    fn serde_errors_become_plain_messages() {
        for (text, words) in [
            ("[]", "must be an object (line 1 column 2)"),
            ("7", "must be an object (line 1 column 1)"),
            (r#"{"text":5}"#, "must be text (line 1 column 9)"),
            (r#"{"text":"","count":-1}"#, "must be a whole number (line 1 column 21)"),
            (r#"{"text":"","size":"x"}"#, "must be a number (line 1 column 21)"),
            (r#"{"text":"","is_late":1}"#, "must be true or false (line 1 column 22)"),
            (r#"{"text":"","lines":1}"#, "must be a list (line 1 column 20)"),
        ] {
            let reply = serde_json::from_str::<Post>(text).unwrap_err().to_string();
            assert_eq!(plain_message(&reply), words, "{reply}");
        }
        let text_of = |text| plain_message(&serde_json::from_str::<Post>(text).unwrap_err().to_string());
        assert!(text_of("{}").starts_with("`text` is missing"));
        let unknown = text_of(r#"{"text":"","state":"x"}"#);
        assert!(unknown.starts_with("`x` is unknown; expected `open` or `done`"), "{unknown}");
        assert!(text_of(r#"{"txt":""}"#).starts_with("`txt` is unknown; expected `text`, "));
        assert_eq!(split_field("wait: invalid float literal"), (Some("wait"), "must be a number".to_owned()));
    }
}
