//! Fields whose name says that their value is a secret, whatever the value looks like.

use std::borrow::Cow;

use serde_json::Value;

use super::{REDACTION_MARK, Redactor, assignments, map_texts, mask_spans};

/// Endings of secret names, in lower case without separators.
const SECRET_NAME_ENDINGS: [&str; 14] = [
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authkey",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "authorization",
    "credential",
    "credentials",
    "connectionstring",
];

/// Last words of names that mean a secret if the value is text; counts are not secret.
const SECRET_LAST_WORDS: [&str; 7] = ["pass", "pwd", "auth", "cookie", "cookies", "tokens", "creds"];

/// How certain it is that a name means a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecretNameMatch {
    /// The whole value is masked.
    Surely,
    /// Text is masked, unless it is a number or a path.
    Perhaps,
}

impl SecretNameMatch {
    pub fn for_name(name: &str) -> Option<Self> {
        let plain: String =
            name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        if SECRET_NAME_ENDINGS.iter().any(|ending| plain.ends_with(ending)) {
            return Some(Self::Surely);
        }
        // Compares the whole last word: `bypass` is not `pass`.
        SECRET_LAST_WORDS.contains(&last_word(name).as_str()).then_some(Self::Perhaps)
    }
}

/// Returns the last word of a name in lower case: the same for `DB_PASS`, `db-pass` and `dbPass`.
pub(super) fn last_word(name: &str) -> String {
    let mut word: Vec<char> = Vec::new();
    for c in name.chars().rev().skip_while(|c| !c.is_alphanumeric()).take_while(|c| c.is_alphanumeric()) {
        let begins = c.is_uppercase() && word.last().is_some_and(|next| next.is_lowercase());
        word.push(c);
        if begins {
            break;
        }
    }
    word.into_iter().rev().flat_map(char::to_lowercase).collect()
}

/// Returns whether a value is a number or a path, which is never a secret, whatever its name.
pub(super) fn is_number_or_path(value: &str) -> bool {
    let is_path = value.starts_with(['/', '~']) || value.starts_with("./") || value.starts_with("../");
    is_path || value.chars().all(|c| c.is_ascii_digit() || ".,:-+% ".contains(c))
}

impl Redactor {
    /// Masks secrets in every text of a JSON value, and the whole value of fields with secret names.
    pub fn redact_payload(&self, value: &mut Value) {
        redact_named_fields(value);
        map_texts(value, &|text| self.redact_outbound_text(text));
    }

    /// Masks a text for another instance: like [`Redactor::redact_text`], plus values that the text itself marks as
    /// secret.
    pub fn redact_outbound_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut spans = self.find_known(text);
        spans.extend(self.patterns.find_tokens(text));
        spans.extend(assignments::find_assignments(text));
        mask_spans(text, spans)
    }
}

fn redact_named_fields(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(redact_named_fields),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                match SecretNameMatch::for_name(name) {
                    Some(SecretNameMatch::Surely) if !matches!(field, Value::Null | Value::Bool(_)) => {
                        *field = REDACTION_MARK.into();
                    }
                    Some(SecretNameMatch::Perhaps) => redact_texts(field),
                    _ => redact_named_fields(field),
                }
            }
        }
        _ => {}
    }
}

fn redact_texts(value: &mut Value) {
    match value {
        Value::String(text) if !is_number_or_path(text) => *text = REDACTION_MARK.to_owned(),
        Value::Array(items) => items.iter_mut().for_each(redact_texts),
        Value::Object(fields) => fields.values_mut().for_each(redact_texts),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secret_fields_are_redacted_with_their_contents() {
        let mut payload = json!({
            "api_key": "k", "Password": 12345, "db": { "userPassword": ["a", { "b": 1 }], "user": "me" },
            "list": [{ "access-token": "x" }], "max_tokens": 500, "tokens": 3, "secret": true, "token": null,
            "note": "the key is sk-proj-abcdefghij0123456789"
        });
        Redactor::default().redact_payload(&mut payload);
        let hidden = json!({
            "api_key": REDACTION_MARK, "Password": REDACTION_MARK, "db": { "userPassword": REDACTION_MARK, "user": "me" },
            "list": [{ "access-token": REDACTION_MARK }], "max_tokens": 500, "tokens": 3, "secret": true, "token": null,
            "note": format!("the key is {REDACTION_MARK}")
        });
        assert_eq!(payload, hidden);
    }

    #[test]
    fn ambiguous_secret_fields_hide_text_but_not_numbers_or_paths() {
        let mut payload = json!({
            "pwd": "hunter", "dbPass": "x y", "auth": { "user": "me", "port": 5 }, "Cookie": "sid=1a", "tokens": ["t1", 7],
            "connection_string": "Server=db;Pwd=x", "PWD": "/home/me", "tests": { "pass": 12, "bypass": "yes" },
            "compass": "north", "author": "me", "output_tokens": "1,234", "oauth": "on", "pass": true
        });
        Redactor::default().redact_payload(&mut payload);
        let hidden = json!({
            "pwd": REDACTION_MARK, "dbPass": REDACTION_MARK, "auth": { "user": REDACTION_MARK, "port": 5 }, "Cookie": REDACTION_MARK, "tokens": [REDACTION_MARK, 7],
            "connection_string": REDACTION_MARK, "PWD": "/home/me", "tests": { "pass": 12, "bypass": "yes" },
            "compass": "north", "author": "me", "output_tokens": "1,234", "oauth": "on", "pass": true
        });
        assert_eq!(payload, hidden);
    }
}
