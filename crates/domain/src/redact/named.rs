//! Fields whose name says that their value is a secret, whatever it looks like.

use std::borrow::Cow;

use serde_json::Value;

use super::{MARK, Redactor, assigned, covered, each_text};

/// How names of secrets end, without case and joints.
const ENDINGS: [&str; 14] = [
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

/// The last word of names that are a secret's where they hold text; what they count is none.
const WORDS: [&str; 7] = ["pass", "pwd", "auth", "cookie", "cookies", "tokens", "creds"];

/// How surely a name is that of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// All it holds is hidden.
    Surely,
    /// Text in it is hidden, unless it is a number or a path.
    Perhaps,
}

impl Named {
    pub fn of(name: &str) -> Option<Self> {
        let plain: String =
            name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        if ENDINGS.iter().any(|ending| plain.ends_with(ending)) {
            return Some(Self::Surely);
        }
        // Not how a name ends: a `bypass` is no `pass`.
        WORDS.contains(&last_word(name).as_str()).then_some(Self::Perhaps)
    }
}

/// In lower case; `DB_PASS`, `db-pass` and `dbPass` end in the same.
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

/// A number or a path: no secret, whatever it is called.
pub(super) fn is_plain(value: &str) -> bool {
    let is_path = value.starts_with(['/', '~']) || value.starts_with("./") || value.starts_with("../");
    is_path || value.chars().all(|c| c.is_ascii_digit() || ".,:-+% ".contains(c))
}

impl Redactor {
    /// Every text in it with what it says of secrets, and every field that is called like a secret with all it holds.
    pub fn payload(&self, value: &mut Value) {
        hide(value);
        each_text(value, &|text| self.told(text));
    }

    /// A text that one instance tells another: besides what `text` hides, values that the text itself calls a secret.
    pub fn told<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut spans = self.known(text);
        spans.extend(self.patterns.find(text));
        spans.extend(assigned::find(text));
        covered(text, spans)
    }
}

fn hide(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                match Named::of(name) {
                    Some(Named::Surely) if !matches!(field, Value::Null | Value::Bool(_)) => {
                        *field = MARK.into();
                    }
                    Some(Named::Perhaps) => hide_texts(field),
                    _ => hide(field),
                }
            }
        }
        _ => {}
    }
}

fn hide_texts(value: &mut Value) {
    match value {
        Value::String(text) if !is_plain(text) => *text = MARK.to_owned(),
        Value::Array(items) => items.iter_mut().for_each(hide_texts),
        Value::Object(fields) => fields.values_mut().for_each(hide_texts),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_called_a_secret_is_hidden_with_all_it_holds_and_nothing_else() {
        let mut payload = json!({
            "api_key": "k", "Password": 12345, "db": { "userPassword": ["a", { "b": 1 }], "user": "me" },
            "list": [{ "access-token": "x" }], "max_tokens": 500, "tokens": 3, "secret": true, "token": null,
            "note": "the key is sk-proj-abcdefghij0123456789"
        });
        Redactor::default().payload(&mut payload);
        let hidden = json!({
            "api_key": MARK, "Password": MARK, "db": { "userPassword": MARK, "user": "me" },
            "list": [{ "access-token": MARK }], "max_tokens": 500, "tokens": 3, "secret": true, "token": null,
            "note": format!("the key is {MARK}")
        });
        assert_eq!(payload, hidden);
    }

    #[test]
    fn names_that_are_a_secrets_only_at_times_hide_text_but_no_numbers_and_paths() {
        let mut payload = json!({
            "pwd": "hunter", "dbPass": "x y", "auth": { "user": "me", "port": 5 }, "Cookie": "sid=1a", "tokens": ["t1", 7],
            "connection_string": "Server=db;Pwd=x", "PWD": "/home/me", "tests": { "pass": 12, "bypass": "yes" },
            "compass": "north", "author": "me", "output_tokens": "1,234", "oauth": "on", "pass": true
        });
        Redactor::default().payload(&mut payload);
        let hidden = json!({
            "pwd": MARK, "dbPass": MARK, "auth": { "user": MARK, "port": 5 }, "Cookie": MARK, "tokens": [MARK, 7],
            "connection_string": MARK, "PWD": "/home/me", "tests": { "pass": 12, "bypass": "yes" },
            "compass": "north", "author": "me", "output_tokens": "1,234", "oauth": "on", "pass": true
        });
        assert_eq!(payload, hidden);
    }
}
