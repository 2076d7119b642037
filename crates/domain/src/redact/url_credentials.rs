//! Credentials in URLs: a password before the host, a key in the query.

use super::field_names::{SecretNameMatch, last_word};

/// Last words of parameter names that mean a credential in a URL, but rarely elsewhere.
const CREDENTIAL_PARAMETER_WORDS: [&str; 3] = ["key", "sig", "signature"];

/// Returns the credentials in a URL, as written. Other text has none. `${NAME}` refers to a credential but is none
/// itself.
pub fn url_credentials(text: &str) -> Vec<&str> {
    strip_scheme(text.trim()).map(credentials_after_scheme).unwrap_or_default()
}

/// Like [`url_credentials`], for a text that is a secret as a whole, whatever precedes the URL.
pub(super) fn url_credentials_within(secret: &str) -> Vec<&str> {
    secret.split_once("://").map(|(_, rest)| credentials_after_scheme(rest)).unwrap_or_default()
}

fn credentials_after_scheme(rest: &str) -> Vec<&str> {
    url_password(rest)
        .into_iter()
        .chain(credential_parameters(rest))
        .filter(|part| !is_reference(part))
        .collect()
}

/// Removes the scheme. A URL may begin with a variable that contains its scheme.
fn strip_scheme(text: &str) -> Option<&str> {
    let is_sign = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let is_scheme =
        |scheme: &str| !scheme.is_empty() && (scheme.chars().all(is_sign) || is_reference(scheme));
    match text.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => Some(rest),
        _ => text.starts_with("${").then_some(text),
    }
}

fn url_password(rest: &str) -> Option<&str> {
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

fn credential_parameters(rest: &str) -> impl Iterator<Item = &str> {
    let query = rest.split_once(['?', '#']).map_or("", |(_, query)| query);
    let named = query.split(['&', ';', '#']).filter_map(|one| one.split_once('='));
    named.filter(|(name, _)| names_credential(name)).map(|(_, value)| value)
}

fn names_credential(name: &str) -> bool {
    let word = last_word(name);
    // The parameter `tokens` is a count, not a credential.
    CREDENTIAL_PARAMETER_WORDS.contains(&word.as_str())
        || (word != "tokens" && SecretNameMatch::for_name(name).is_some())
}

/// Returns whether a text consists only of `${NAME}` references, or is empty.
fn is_reference(text: &str) -> bool {
    let mut rest = text;
    while let Some((name, behind)) = rest.strip_prefix("${").and_then(|after| after.split_once('}')) {
        let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_word || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return false;
        }
        rest = behind;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_credentials_are_found_only_in_urls() {
        for (text, found) in [
            ("http://user:pw@127.0.0.1:1/v1?key=abc", &["pw", "abc"][..]),
            ("https://:pw@h", &["pw"]),
            ("socks5h://u:p@w@h:1", &["p@w"]),
            (" https://h/?API-Key=a ", &["a"]),
            ("https://h?x=1&access_token=a&apikey=b", &["a", "b"]),
            ("https://h/?X-Amz-Signature=a&sig=b&signature=c&secret=d", &["a", "b", "c", "d"]),
            ("https://h/?password=1234&auth=5678&token=9", &["1234", "5678", "9"]),
            ("https://h/cb#access_token=a", &["a"]),
            ("https://u:x${PW}@h", &["x${PW}"]),
            ("https://u:$${PW}@h", &["$${PW}"]),
            ("https://u:${PW}@h?key=abc", &["abc"]),
            ("${BASE}/v1?key=abc", &["abc"]),
            ("${SCHEME}://u:pw@h", &["pw"]),
            ("https://${USER}:${PW}@h/?key=${A}${B}", &[]),
            ("${BASE}", &[]),
            ("https://h:8080/a@b:c", &[]),
            ("https://user@h/?key=&monkey=1&max_tokens=5&q=key", &[]),
            ("see https://u:pw@h", &[]),
            ("key=abc", &[]),
            ("", &[]),
        ] {
            assert_eq!(url_credentials(text), found, "{text}");
        }
    }
}
