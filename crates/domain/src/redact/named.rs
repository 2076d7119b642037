//! Fields whose name says that their value is a secret, whatever it looks like.

use serde_json::Value;

use super::{MARK, Redactor};

/// How names of secrets end, without case and joints.
const ENDINGS: [&str; 13] = [
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
];

impl Redactor {
    /// Every text in it, and every field that is called like a secret with all it holds.
    pub fn payload(&self, value: &mut Value) {
        hide(value);
        self.json(value);
    }
}

fn hide(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                match is_secret(name) && !matches!(field, Value::Null | Value::Bool(_)) {
                    true => *field = MARK.into(),
                    false => hide(field),
                }
            }
        }
        _ => {}
    }
}

fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    ENDINGS.iter().any(|ending| plain.ends_with(ending))
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
}
