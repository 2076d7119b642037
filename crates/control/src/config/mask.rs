//! Secrets of a config. Finds them by the schema or as URLs with credentials, masks them, and puts the stored values
//! back where a mask returns.

use polyclaw_domain::instance::TokenAccess;
use polyclaw_domain::{config, redact};
use serde_json::Value;

use super::edit::{PathStep, set_text, to_json};
use crate::error::{Error, Result};

pub const MASK: &str = "***MASKED***";
/// The last characters of a shorter secret would reveal too much of it.
const MIN_SECRET_LEN_TO_SHOW_END: usize = 16;
const REFERENCE_PREFIXES: [&str; 4] = ["env:", "file:", "keyring:", "secret:"];
/// Keys that identify the items of a list.
const NAME_KEYS: [&str; 2] = ["id", "name"];

/// The reader of a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigAudience {
    /// May write the config: sees everything except its secrets.
    Administrator,
    /// May only read: sees no comments, program arguments or URL paths either, because any of them may contain a key
    /// that the schema does not mark.
    Reader,
}

impl From<TokenAccess> for ConfigAudience {
    fn from(access: TokenAccess) -> Self {
        match access {
            TokenAccess::Admin => Self::Administrator,
            TokenAccess::Read | TokenAccess::Operate => Self::Reader,
        }
    }
}

/// A secret with its path, and a hint that distinguishes secrets without revealing them.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MaskedSecret {
    pub path: String,
    pub fingerprint: String,
}

/// Returns the paths of all values of a config that are secret.
pub fn find_secret_paths(value: &Value) -> Vec<Vec<PathStep>> {
    let schema = config::config_schema();
    let mut found = Vec::new();
    collect_secret_paths(&schema, &schema, value, &mut Vec::new(), &mut found);
    found.sort_by_key(|path| format_path(path));
    found.dedup();
    found
}

/// Returns the paths hidden from this reader: secrets and, for those who may only read, all values that may hold one.
pub fn find_hidden_paths(value: &Value, audience: ConfigAudience) -> Vec<Vec<PathStep>> {
    let mut found = find_secret_paths(value);
    if audience == ConfigAudience::Reader {
        found.extend(find_reader_paths(value));
        found.sort_by_key(|path| format_path(path));
        found.dedup();
    }
    found
}

/// Returns the paths of program arguments, and of URLs with more than a host.
fn find_reader_paths(value: &Value) -> Vec<Vec<PathStep>> {
    let is_hidden = |path: &Vec<PathStep>| {
        let text = value_at(value, path).and_then(Value::as_str).unwrap_or_default();
        let may_hold_key = match path.as_slice() {
            [.., PathStep::Key(list), PathStep::Index(at)] => list == "args" || list == "command" && *at > 0,
            [.., PathStep::Key(key)] => {
                matches!(key.as_str(), "url" | "reply_url") && shown_address(text) != text
            }
            _ => false,
        };
        may_hold_key && !is_reference(text)
    };
    find_text_paths(value).into_iter().filter(is_hidden).collect()
}

/// Returns the replacement of a text that may contain a key. For a URL it keeps the host.
fn reader_text(text: &str) -> String {
    if text.contains("://") { shown_address(text) } else { MASK.to_owned() }
}

/// Returns a URL without its path, because services such as Slack put the key there.
fn shown_address(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    match rest.find(['/', '?', '#']).filter(|at| rest.len() > at + 1) {
        Some(at) => format!("{scheme}://{}/{MASK}", &rest[..at]),
        None => text.to_owned(),
    }
}

fn collect_secret_paths(
    root: &Value,
    schema: &Value,
    value: &Value,
    path: &mut Vec<PathStep>,
    found: &mut Vec<Vec<PathStep>>,
) {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
        collect_secret_paths(root, &root["$defs"][name], value, path, found);
    }
    for list in ["anyOf", "oneOf", "allOf"] {
        for one in schema[list].as_array().into_iter().flatten() {
            collect_secret_paths(root, one, value, path, found);
        }
    }
    match value {
        // Any type of value counts: the daemon rejects a secret that is no text, but the value may still hold one.
        _ if schema["writeOnly"] == true || is_credential_url(value) => found.push(path.clone()),
        Value::Object(map) => {
            for (key, value) in map {
                let known = &schema["properties"][key];
                let schema = if known.is_null() { &schema["additionalProperties"] } else { known };
                path.push(PathStep::Key(key.clone()));
                collect_secret_paths(root, schema, value, path, found);
                path.pop();
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                path.push(PathStep::Index(at));
                collect_secret_paths(root, &schema["items"], value, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Whether the value is a URL with credentials. Such a URL is secret as a whole, wherever it is.
fn is_credential_url(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !redact::url_credentials(text).is_empty())
}

/// Whether the text is a reference, which names a secret but does not contain it.
fn is_reference(text: &str) -> bool {
    let variable = text.starts_with("${") && text.ends_with('}') && text.matches('}').count() == 1;
    variable || REFERENCE_PREFIXES.iter().any(|kind| text.starts_with(kind))
}

fn secret_fingerprint(secret: &Value) -> String {
    let text = secret.as_str().unwrap_or_default();
    // The last part of a URL may be its whole key.
    let chars: Vec<char> = redact::url_credentials(text).last().unwrap_or(&text).chars().collect();
    match chars.len() {
        MIN_SECRET_LEN_TO_SHOW_END.. => {
            format!("…{}", chars[chars.len() - 4..].iter().collect::<String>())
        }
        _ => "configured".to_owned(),
    }
}

/// Masks every secret of a document. References stay, because they name a secret without revealing it.
pub fn mask_document(document: &mut toml_edit::DocumentMut) -> Vec<MaskedSecret> {
    let value = to_json(document.as_item());
    let mut hidden = Vec::new();
    for path in find_secret_paths(&value) {
        let is_secret =
            |value: &&Value| is_credential_url(value) || !value.as_str().is_some_and(is_reference);
        let Some(secret) = value_at(&value, &path).filter(is_secret) else { continue };
        hidden.push(MaskedSecret { path: format_path(&path), fingerprint: secret_fingerprint(secret) });
        set_text(document, &path, MASK);
    }
    hidden
}

/// Removes the values of a document that readers do not see in addition to its secrets.
pub fn mask_document_for_reader(document: &mut toml_edit::DocumentMut) {
    let value = to_json(document.as_item());
    for path in find_reader_paths(&value) {
        let text = value_at(&value, &path).and_then(Value::as_str).unwrap_or_default();
        set_text(document, &path, &reader_text(text));
    }
}

/// Removes secrets and hidden values from an effective config. Unset values stay unset.
pub fn mask_value(config: &mut Value) {
    for path in find_secret_paths(config) {
        if let Some(secret) = value_at_mut(config, &path).filter(|secret| !secret.is_null()) {
            *secret = MASK.into();
        }
    }
    for path in find_reader_paths(config) {
        if let Some(text) = value_at_mut(config, &path) {
            *text = reader_text(text.as_str().unwrap_or_default()).into();
        }
    }
}

fn value_at_mut<'a>(value: &'a mut Value, path: &[PathStep]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, step| match step {
        PathStep::Key(key) => value.get_mut(key),
        PathStep::Index(at) => value.get_mut(*at),
    })
}

/// Replaces masks by the stored secrets. Other changes of secrets are rejected unless `may_write` is set.
pub fn restore_masks(document: &mut toml_edit::DocumentMut, stored: &Value, may_write: bool) -> Result<()> {
    let value = to_json(document.as_item());
    let secrets = find_known_secret_paths(&value, stored);
    let (mut changed, mut dangling) = (Vec::new(), find_stray_masks(&value, &secrets));
    for path in &secrets {
        let Some(now) = value_at(&value, path) else { continue };
        let before = find_same_value(stored, &value, path);
        match before {
            Some(Value::String(before)) if now == MASK => set_text(document, path, before),
            _ if now == MASK => dangling.push(format_path(path)),
            Some(before) if before == now => {}
            _ => changed.push(format_path(path)),
        }
    }
    changed.extend(find_removed_secrets(&value, stored));
    match () {
        () if !dangling.is_empty() => Err(Error::MaskWithoutSecret(dangling)),
        () if !changed.is_empty() && !may_write => Err(Error::SecretWrite(changed)),
        () => Ok(()),
    }
}

/// Returns the stored secrets that the new value no longer holds. Removing a secret also counts as writing it.
fn find_removed_secrets(value: &Value, stored: &Value) -> Vec<String> {
    let is_secret = |secret: &Value| is_credential_url(secret) || !secret.as_str().is_some_and(is_reference);
    let is_gone = |path: &Vec<PathStep>| {
        let Some(secret) = value_at(stored, path).filter(|secret| secret.is_string() && is_secret(secret))
        else {
            return false;
        };
        let is_same = |other: &Vec<PathStep>| find_same_value(stored, value, other) == Some(secret);
        value_at(value, path).is_none() && !find_text_paths(value).iter().any(is_same)
    };
    find_secret_paths(stored).iter().filter(|path| is_gone(path)).map(|path| format_path(path)).collect()
}

/// Returns the paths of secrets, including those where a URL with credentials was stored before: the new text may not
/// show it.
fn find_known_secret_paths(value: &Value, stored: &Value) -> Vec<Vec<PathStep>> {
    let mut found = find_secret_paths(value);
    for path in find_text_paths(value) {
        if !found.contains(&path) && find_same_value(stored, value, &path).is_some_and(is_credential_url) {
            found.push(path);
        }
    }
    found
}

/// Returns masks at paths that hold no secret.
fn find_stray_masks(value: &Value, secrets: &[Vec<PathStep>]) -> Vec<String> {
    let is_stray = |path: &Vec<PathStep>| {
        let holds_mask = |text: &Value| text.as_str().is_some_and(|text| text.contains(MASK));
        value_at(value, path).is_some_and(holds_mask) && !secrets.contains(path)
    };
    find_text_paths(value).iter().filter(|path| is_stray(path)).map(|path| format_path(path)).collect()
}

/// Returns the paths of all texts.
fn find_text_paths(value: &Value) -> Vec<Vec<PathStep>> {
    fn collect_text_paths(value: &Value, path: &mut Vec<PathStep>, found: &mut Vec<Vec<PathStep>>) {
        match value {
            Value::String(_) => found.push(path.clone()),
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                path.push(PathStep::Key(key.clone()));
                collect_text_paths(value, path, found);
                path.pop();
            }),
            Value::Array(items) => items.iter().enumerate().for_each(|(at, value)| {
                path.push(PathStep::Index(at));
                collect_text_paths(value, path, found);
                path.pop();
            }),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect_text_paths(value, &mut Vec::new(), &mut found);
    found
}

pub fn value_at<'a>(value: &'a Value, path: &[PathStep]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        PathStep::Key(key) => value.get(key),
        PathStep::Index(at) => value.get(at),
    })
}

/// Finds the value of the same item in another version. List items match by name, or by index if they have none.
fn find_same_value<'a>(stored: &'a Value, value: &Value, path: &[PathStep]) -> Option<&'a Value> {
    let (mut here, mut there) = (value, stored);
    for step in path {
        (here, there) = match step {
            PathStep::Key(key) => (here.get(key)?, there.get(key)?),
            PathStep::Index(at) => {
                let item = here.get(at)?;
                (item, same_item(there, item, *at)?)
            }
        };
    }
    Some(there)
}

fn same_item<'a>(list: &'a Value, item: &Value, at: usize) -> Option<&'a Value> {
    let name = |item: &Value| NAME_KEYS.iter().find_map(|name| item.get(name).cloned());
    match name(item) {
        Some(called) => list.as_array()?.iter().find(|other| name(other).as_ref() == Some(&called)),
        None => list.get(at).filter(|other| name(other).is_none()),
    }
}

/// Formats a path like `hooks[0].secret`.
pub fn format_path(path: &[PathStep]) -> String {
    path.iter().fold(String::new(), |text, step| match step {
        PathStep::Key(key) if text.is_empty() => key.clone(),
        PathStep::Key(key) => format!("{text}.{key}"),
        PathStep::Index(at) => format!("{text}[{at}]"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::edit::parse;
    use super::*;

    const STORED: &str = "[providers.openai]\napi_key = \"sk-0123456789abcdefXYZW\" # mine\n[providers.groq]\napi_key = \"env:GROQ\"\n[channels.webhook.ci]\nsecret = \"kürz\"\n";

    fn stored() -> Value {
        to_json(parse(STORED).unwrap().as_item())
    }

    #[test]
    fn secrets_are_masked_and_references_are_shown() {
        let mut document = parse(STORED).unwrap();
        let hidden = mask_document(&mut document);
        let text = document.to_string();
        assert!(!text.contains("sk-0") && !text.contains("kürz"), "{text}");
        assert!(text.contains("env:GROQ") && text.contains("# mine"), "{text}");
        let shown: Vec<_> = hidden.iter().map(|one| (one.path.as_str(), one.fingerprint.as_str())).collect();
        assert_eq!(
            shown,
            [("channels.webhook.ci.secret", "configured"), ("providers.openai.api_key", "…XYZW")]
        );
    }

    #[test]
    fn secret_fields_of_any_type_are_masked() {
        for wrong in [
            "api_key = [\"hush\", \"hush\"]",
            "api_key = { a = \"hush\" }",
            "api_key.b = \"hush\"",
            "api_key = 734873",
        ] {
            let mut document = parse(&format!("[providers.openai]\n{wrong}\n")).unwrap();
            assert_eq!(mask_document(&mut document).len(), 1, "{wrong}");
            let text = document.to_string();
            assert!(text.contains(MASK) && !text.contains("hush") && !text.contains("734"), "{text}");
        }
        let mut document = parse("[providers.openai.api_key]\na = \"hush\"\n").unwrap();
        mask_document(&mut document);
        assert!(!document.to_string().contains("hush"), "{document}");
    }

    #[test]
    fn restored_mask_becomes_the_stored_secret() {
        let mut document = parse(STORED).unwrap();
        mask_document(&mut document);
        restore_masks(&mut document, &stored(), false).unwrap();
        assert_eq!(document.to_string(), STORED);
    }

    #[test]
    fn unmatched_masks_and_unauthorized_secrets_are_refused() {
        let refused = |text: &str, may_write| {
            let outcome = restore_masks(&mut parse(text).unwrap(), &stored(), may_write);
            outcome.map_err(|error| error.code())
        };
        let mask = "[providers.xai]\napi_key = \"***MASKED***\"\n";
        assert_eq!(refused(mask, true), Err("mask_without_secret"));
        let stray = "[agents.defaults]\nsystem_prompt = \"***MASKED***\"\n";
        assert_eq!(refused(stray, true), Err("mask_without_secret"));
        let other = "[providers.openai]\napi_key = \"another\"\n";
        assert_eq!((refused(other, false), refused(other, true)), (Err("secret_write"), Ok(())));
        let reference = "[providers.openai]\napi_key = \"file:/etc/shadow\"\n";
        assert_eq!(refused(reference, false), Err("secret_write"));
        let without = "schema = 1\n";
        assert_eq!((refused(without, false), refused(without, true)), (Err("secret_write"), Ok(())));
    }

    #[test]
    fn url_with_credentials_is_masked_as_a_whole() {
        const LAB: &str = "[providers.lab]\nbase_url = \"http://me:pw@h/v1?key=0123456789abcdefXYZW\" # mine\n[providers.short]\nbase_url = \"https://h/?key=abcd\"\n[providers.referred]\nbase_url = \"https://me:${PW}@h/?key=${KEY}\"\n[unknown]\nlist = [\"x\", \"env://me:pw@h\"]\n";
        let stored = to_json(parse(LAB).unwrap().as_item());
        let mut document = parse(LAB).unwrap();
        let hidden = mask_document(&mut document);
        let shown: Vec<_> = hidden.iter().map(|one| (one.path.as_str(), one.fingerprint.as_str())).collect();
        let expected = [
            ("providers.lab.base_url", "…XYZW"),
            ("providers.short.base_url", "configured"),
            ("unknown.list[1]", "configured"),
        ];
        assert_eq!(shown, expected);
        let text = document.to_string();
        assert!(
            !text.contains("pw@") && !text.contains("abcd") && text.contains("${PW}@h/?key=${KEY}"),
            "{text}"
        );
        restore_masks(&mut document, &stored, false).unwrap();
        assert_eq!(document.to_string(), LAB);
        for (address, may) in [
            ("http://me:pw@h/v1?key=another", Err("secret_write")),
            ("http://elsewhere/v1", Err("secret_write")),
            ("http://me:pw@h/v1?key=0123456789abcdefXYZW", Ok(())),
        ] {
            let write = |may_write| {
                // The other secrets stay, because removing one would need the same permission.
                let text = LAB.replace("http://me:pw@h/v1?key=0123456789abcdefXYZW", address);
                let mut document = parse(&text).unwrap();
                restore_masks(&mut document, &stored, may_write).map_err(|error| error.code())
            };
            assert_eq!((write(false), write(true)), (may, Ok(())), "{address}");
        }
        let stray = "[providers.referred]\nbase_url = \"***MASKED***\"\n";
        let refused = restore_masks(&mut parse(stray).unwrap(), &stored, true).map_err(|error| error.code());
        assert_eq!(refused, Err("mask_without_secret"));
    }

    #[test]
    fn list_items_are_matched_by_name_not_index() {
        let stored = serde_json::json!([{ "name": "a", "secret": "1" }, { "name": "b", "secret": "2" }]);
        let moved = serde_json::json!([{ "name": "b", "secret": MASK }, { "name": "c", "secret": MASK }]);
        let at = |n| find_same_value(&stored, &moved, &[PathStep::Index(n), PathStep::Key("secret".into())]);
        assert_eq!((at(0), at(1)), (Some(&Value::from("2")), None));
    }
}
