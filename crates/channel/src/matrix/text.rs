//! Removes parts of a message text that clients add.

/// Strips the quote that older clients put in front of a reply.
pub(super) fn without_quote(body: &str) -> &str {
    let mut rest = body;
    while rest.starts_with("> ") {
        rest = rest.split_once('\n').map_or("", |(_, after)| after);
    }
    if rest.len() == body.len() { body } else { rest.trim_start_matches('\n') }
}

/// Strips the account's own name in front of the text, so that a command can follow it.
pub(super) fn without_own_name<'a, 'b>(
    body: &'a str,
    names: impl IntoIterator<Item = Option<&'b str>>,
) -> &'a str {
    let trimmed = body.trim_start();
    let after = |name: &str| {
        let (start, rest) = (trimmed.get(..name.len())?, trimmed.get(name.len()..)?);
        let ends = rest.is_empty() || rest.starts_with([':', ',', ' ']);
        (!name.is_empty() && ends && start.eq_ignore_ascii_case(name)).then_some(rest)
    };
    let found = names.into_iter().flatten().find_map(after);
    found.map_or(body, |rest| rest.trim_start_matches([':', ',']).trim_start())
}

/// Whether the text contains the name as a whole word, ignoring case.
pub(super) fn contains_word(text: &str, name: &str) -> bool {
    let (text, name) = (text.to_lowercase(), name.to_lowercase());
    let is_edge = |next: Option<char>| !next.is_some_and(char::is_alphanumeric);
    !name.is_empty()
        && text.match_indices(&name).any(|(at, found)| {
            is_edge(text[..at].chars().next_back()) && is_edge(text[at + found.len()..].chars().next())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_leading_quote_is_removed() {
        for (body, rest) in [
            ("hi", "hi"),
            ("> <@a:b> x\n> y\n\nhi\n> z", "hi\n> z"),
            ("> only", ""),
            ("\n\nhi", "\n\nhi"),
            ("", ""),
        ] {
            assert_eq!(without_quote(body), rest, "{body:?}");
        }
    }

    #[test]
    fn leading_own_name_is_removed_once() {
        for (body, rest) in [
            ("claw: /code hi", "/code hi"),
            ("@claw:hs hi", "hi"),
            ("@claw:hs: hi", "hi"),
            ("Claw", ""),
            ("clawing", "clawing"),
            ("hi claw", "hi claw"),
            ("ÿclaw", "ÿclaw"),
        ] {
            assert_eq!(
                without_own_name(body, [Some("@claw:hs"), Some("Claw"), None, Some("")]),
                rest,
                "{body:?}"
            );
        }
    }

    #[test]
    fn name_matches_only_as_whole_word() {
        assert!(
            contains_word("hey CLAW!", "Claw")
                && contains_word("(claw)", "claw")
                && contains_word("ünter claw", "Claw")
        );
        assert!(
            !contains_word("clawed", "claw") && !contains_word("xclaw", "claw") && !contains_word("x", "")
        );
    }
}
