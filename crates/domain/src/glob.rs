//! Patterns in which `*` matches any text.

pub fn glob_matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(head) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let tail = pieces.pop().unwrap_or_default();
    for piece in pieces {
        // The earliest match leaves the most text for the following pieces.
        let Some(at) = left.find(piece) else { return false };
        left = &left[at + piece.len()..];
    }
    left.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_matches_any_text_and_rest_is_literal() {
        for (pattern, name, expected) in [
            ("a*c", "abc", true),
            ("a*c", "ab", false),
            ("*b*", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*aa", "aa", false),
            ("**", "x", true),
            ("*", "", true),
            ("", "x", false),
            ("a.c", "abc", false),
        ] {
            assert_eq!(glob_matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
