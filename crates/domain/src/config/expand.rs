//! Values from outside the file: `${NAME}` in any text, and references in secret settings.

use super::report::ConfigFault;
use super::secret::SECRET_MASK;

/// An external value that the config refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalReference<'a> {
    /// An environment variable.
    Env(&'a str),
    /// The content of a file.
    File(&'a str),
    /// An entry of the system's keyring.
    Keyring(&'a str),
    /// An entry of the instance's secret store.
    Stored(&'a str),
}

/// Looks up a reference, or returns a short reason why it failed (`is not set`, `permission denied`).
pub type ReferenceLookup<'a> = &'a dyn Fn(ExternalReference<'_>) -> Result<String, String>;

/// A text with every `${NAME}` replaced, and the inserted values with their names.
pub(super) struct ExpandedText {
    pub text: String,
    pub used: Vec<(String, String)>,
}

/// Replaces `${NAME}`; `$${NAME}` becomes a literal `${NAME}`. Anything else after a `$` is ordinary text, which is
/// common in prompts. Inserted values are not expanded again.
pub(super) fn expand_variables(text: &str, lookup: ReferenceLookup<'_>) -> Result<ExpandedText, ConfigFault> {
    let mut out = ExpandedText { text: String::with_capacity(text.len()), used: Vec::new() };
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, reference) = rest.split_at(at);
        let Some(name) = variable_name(reference) else {
            out.text.push_str(&rest[..at + 2]);
            rest = &rest[at + 2..];
            continue;
        };
        let whole = &reference[..name.len() + 3];
        if let Some(kept) = before.strip_suffix('$') {
            out.text.push_str(kept);
            out.text.push_str(whole);
        } else {
            let value = read_env_variable(name, lookup)?;
            out.text.push_str(before);
            out.text.push_str(&value);
            out.used.push((value, whole.to_owned()));
        }
        rest = &reference[whole.len()..];
    }
    out.text.push_str(rest);
    Ok(out)
}

/// Resolves a secret setting. Error messages never contain the value.
pub(super) fn resolve_secret(text: &str, lookup: ReferenceLookup<'_>) -> Result<String, ConfigFault> {
    let expanded = expand_variables(text, lookup)?.text;
    // The reference is recognised in the unexpanded text, so that a variable cannot smuggle one in.
    let named = |kind: &str| expanded[kind.len() + 1..].trim();
    let value = match text.split_once(':') {
        Some((kind @ "env", _)) => read_env_variable(named(kind), lookup)?,
        Some((kind @ "file", _)) => read_secret_file(named(kind), lookup)?,
        Some((kind @ "keyring", _)) => read_keyring(named(kind), lookup)?,
        Some((kind @ "secret", _)) => read_stored_secret(named(kind), lookup)?,
        _ => expanded,
    };
    if value == SECRET_MASK {
        return Err(ConfigFault::new("this is a masked secret, not its value", REFERENCE_HINT));
    }
    if value.is_empty() {
        return Err(ConfigFault::new("the secret is empty", REFERENCE_HINT));
    }
    Ok(value)
}

const REFERENCE_HINT: &str = "use env:NAME, file:/path, keyring:name, secret:name or the value itself";

fn read_keyring(name: &str, lookup: ReferenceLookup<'_>) -> Result<String, ConfigFault> {
    lookup(ExternalReference::Keyring(name)).map_err(|why| {
        let hint = format!("store it there, or run `polyclaw secrets set {name}` and use secret:{name}");
        ConfigFault::new(format!("keyring entry {name}: {why}"), hint)
    })
}

fn read_stored_secret(name: &str, lookup: ReferenceLookup<'_>) -> Result<String, ConfigFault> {
    lookup(ExternalReference::Stored(name)).map_err(|why| {
        let hint = format!(
            "run `polyclaw secrets set {name}` to store it; `polyclaw secrets list` shows the stored secrets"
        );
        ConfigFault::new(format!("secret {name}: {why}"), hint)
    })
}

fn read_env_variable(name: &str, lookup: ReferenceLookup<'_>) -> Result<String, ConfigFault> {
    lookup(ExternalReference::Env(name)).map_err(|why| {
        let hint = format!("set {name} in the environment of the instance, or remove the reference");
        ConfigFault::new(format!("environment variable {name} {why}"), hint)
    })
}

fn read_secret_file(path: &str, lookup: ReferenceLookup<'_>) -> Result<String, ConfigFault> {
    let text = lookup(ExternalReference::File(path)).map_err(|why| {
        ConfigFault::new(
            format!("secret file {path}: {why}"),
            "store the secret in it, readable only by you (0600)",
        )
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Returns the name in a text that starts with `${NAME}`.
fn variable_name(reference: &str) -> Option<&str> {
    let name = &reference[2..reference.find('}')?];
    let word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let start = name.chars().next().is_some_and(|c| !c.is_ascii_digit());
    (word && start).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(source: ExternalReference<'_>) -> Result<String, String> {
        match source {
            ExternalReference::Env("NAME") => Ok("ada".to_owned()),
            ExternalReference::Env("NESTED") => Ok("${NAME} env:NAME".to_owned()),
            ExternalReference::Env(_) => Err("is not set".to_owned()),
            ExternalReference::File("/run/ada") => Ok("from file\n".to_owned()),
            ExternalReference::File(_) => Err("no such file".to_owned()),
            ExternalReference::Keyring("ada") => Ok("from keyring".to_owned()),
            ExternalReference::Stored("ada") => Ok("from store".to_owned()),
            ExternalReference::Keyring(_) | ExternalReference::Stored(_) => Err("is not there".to_owned()),
        }
    }

    #[test]
    fn only_variables_are_expanded_in_text() {
        for (text, expected) in [
            ("hi ${NAME}, ${NAME}!", "hi ada, ada!"),
            ("${NESTED}", "${NAME} env:NAME"),
            ("$${NAME} costs $5 ${", "${NAME} costs $5 ${"),
            ("${x%y} ${} ${1} ${a b} $NAME", "${x%y} ${} ${1} ${a b} $NAME"),
            ("ü${NAME}ü", "üadaü"),
        ] {
            assert_eq!(expand_variables(text, &lookup).map(|out| out.text).ok().as_deref(), Some(expected));
        }
    }

    #[test]
    fn secret_resolves_to_reference_or_literal_value() {
        for (text, expected) in [
            ("env:NAME", "ada"),
            ("file:/run/ada", "from file"),
            ("file:/run/${NAME}", "from file"),
            ("${NESTED}", "${NAME} env:NAME"),
            ("sk:1", "sk:1"),
            ("keyring:ada", "from keyring"),
            ("secret:ada", "from store"),
            ("secret:${NAME}", "from store"),
        ] {
            assert_eq!(resolve_secret(text, &lookup).ok().as_deref(), Some(expected));
        }
    }

    #[test]
    fn unresolved_secret_reference_is_named_in_error() {
        for (text, message) in [
            ("secret:bob", "secret bob: is not there"),
            ("keyring:bob", "keyring entry bob: is not there"),
            ("env:BOB", "environment variable BOB is not set"),
            ("file:/run/bob", "secret file /run/bob: no such file"),
        ] {
            let fault =
                resolve_secret(text, &lookup).err().map(|fault| (fault.message, fault.hint.is_empty()));
            assert_eq!(fault, Some((message.to_owned(), false)));
        }
    }
}
