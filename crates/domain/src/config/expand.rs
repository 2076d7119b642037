//! Values from outside the file: `${NAME}` in any text, and references where a secret is meant.

use super::report::Fault;
use super::secret::HIDDEN;

/// Something outside the config file that it refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source<'a> {
    /// An environment variable.
    Env(&'a str),
    /// The content of a file.
    File(&'a str),
    /// An entry of the system's keyring.
    Keyring(&'a str),
    /// An entry of the instance's own store of secrets.
    Stored(&'a str),
}

/// Fetches what the config refers to, or says in a few words why not (`is not set`, `permission denied`).
pub type Lookup<'a> = &'a dyn Fn(Source<'_>) -> Result<String, String>;

/// A text with every `${NAME}` replaced, and the values that came in with their names.
pub(super) struct Expanded {
    pub text: String,
    pub used: Vec<(String, String)>,
}

/// Replaces `${NAME}`; `$${NAME}` stays as `${NAME}`. Anything else after a `$` is ordinary text, because
/// prompts are full of it. What comes in is not looked at again.
pub(super) fn expand(text: &str, lookup: Lookup<'_>) -> Result<Expanded, Fault> {
    let mut out = Expanded { text: String::with_capacity(text.len()), used: Vec::new() };
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, reference) = rest.split_at(at);
        let Some(name) = variable(reference) else {
            out.text.push_str(&rest[..at + 2]);
            rest = &rest[at + 2..];
            continue;
        };
        let whole = &reference[..name.len() + 3];
        if let Some(kept) = before.strip_suffix('$') {
            out.text.push_str(kept);
            out.text.push_str(whole);
        } else {
            let value = environment(name, lookup)?;
            out.text.push_str(before);
            out.text.push_str(&value);
            out.used.push((value, whole.to_owned()));
        }
        rest = &reference[whole.len()..];
    }
    out.text.push_str(rest);
    Ok(out)
}

/// The value of a secret setting. Messages never hold it.
pub(super) fn secret(text: &str, lookup: Lookup<'_>) -> Result<String, Fault> {
    let expanded = expand(text, lookup)?.text;
    // The reference is recognised in what the file says, so that a variable cannot smuggle one in.
    let named = |kind: &str| expanded[kind.len() + 1..].trim();
    let value = match text.split_once(':') {
        Some((kind @ "env", _)) => environment(named(kind), lookup)?,
        Some((kind @ "file", _)) => content(named(kind), lookup)?,
        Some((kind @ "keyring", _)) => keyring(named(kind), lookup)?,
        Some((kind @ "secret", _)) => stored(named(kind), lookup)?,
        _ => expanded,
    };
    if value == HIDDEN {
        return Err(Fault::new("this is a hidden secret, not its value", REFERENCES));
    }
    if value.is_empty() {
        return Err(Fault::new("the secret is empty", REFERENCES));
    }
    Ok(value)
}

const REFERENCES: &str = "use env:NAME, file:/path, keyring:name, secret:name or the value itself";

fn keyring(name: &str, lookup: Lookup<'_>) -> Result<String, Fault> {
    lookup(Source::Keyring(name)).map_err(|why| {
        let hint =
            format!("put it there, or keep it with `polyclaw secrets set {name}` and write secret:{name}");
        Fault::new(format!("keyring entry {name}: {why}"), hint)
    })
}

fn stored(name: &str, lookup: Lookup<'_>) -> Result<String, Fault> {
    lookup(Source::Stored(name)).map_err(|why| {
        let hint =
            format!("`polyclaw secrets set {name}` keeps it, `polyclaw secrets list` shows what there is");
        Fault::new(format!("secret {name}: {why}"), hint)
    })
}

fn environment(name: &str, lookup: Lookup<'_>) -> Result<String, Fault> {
    lookup(Source::Env(name)).map_err(|why| {
        let hint = format!("set {name} where the instance starts, or take the reference out");
        Fault::new(format!("environment variable {name} {why}"), hint)
    })
}

fn content(path: &str, lookup: Lookup<'_>) -> Result<String, Fault> {
    let text = lookup(Source::File(path)).map_err(|why| {
        Fault::new(
            format!("secret file {path}: {why}"),
            "write the secret into it, readable by you only (0600)",
        )
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// The name in a text that starts with `${NAME}`.
fn variable(reference: &str) -> Option<&str> {
    let name = &reference[2..reference.find('}')?];
    let word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let start = name.chars().next().is_some_and(|c| !c.is_ascii_digit());
    (word && start).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(source: Source<'_>) -> Result<String, String> {
        match source {
            Source::Env("NAME") => Ok("ada".to_owned()),
            Source::Env("NESTED") => Ok("${NAME} env:NAME".to_owned()),
            Source::Env(_) => Err("is not set".to_owned()),
            Source::File("/run/ada") => Ok("from file\n".to_owned()),
            Source::File(_) => Err("no such file".to_owned()),
            Source::Keyring("ada") => Ok("from keyring".to_owned()),
            Source::Stored("ada") => Ok("from store".to_owned()),
            Source::Keyring(_) | Source::Stored(_) => Err("is not there".to_owned()),
        }
    }

    #[test]
    fn variables_are_replaced_and_everything_else_is_left_alone() {
        for (text, expected) in [
            ("hi ${NAME}, ${NAME}!", "hi ada, ada!"),
            ("${NESTED}", "${NAME} env:NAME"),
            ("$${NAME} costs $5 ${", "${NAME} costs $5 ${"),
            ("${x%y} ${} ${1} ${a b} $NAME", "${x%y} ${} ${1} ${a b} $NAME"),
            ("ü${NAME}ü", "üadaü"),
        ] {
            assert_eq!(expand(text, &lookup).map(|out| out.text).ok().as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_secret_is_a_reference_or_itself() {
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
            assert_eq!(secret(text, &lookup).ok().as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_named_in_the_error() {
        for (text, message) in [
            ("secret:bob", "secret bob: is not there"),
            ("keyring:bob", "keyring entry bob: is not there"),
            ("env:BOB", "environment variable BOB is not set"),
            ("file:/run/bob", "secret file /run/bob: no such file"),
        ] {
            let fault = secret(text, &lookup).err().map(|fault| (fault.message, fault.hint.is_empty()));
            assert_eq!(fault, Some((message.to_owned(), false)));
        }
    }
}
