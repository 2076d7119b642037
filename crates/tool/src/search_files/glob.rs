//! Glob patterns: `*` and `?` within a name, `**` across folders, `{a,b}` for alternatives.

use regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};

pub struct PathGlob {
    regex: Regex,
    /// A pattern without a slash matches the file name in any folder.
    only_name: bool,
}

impl PathGlob {
    pub fn matches(&self, path: &str) -> bool {
        let subject = if self.only_name { path.rsplit('/').next().unwrap_or(path) } else { path };
        self.regex.is_match(subject)
    }
}

pub fn compile_glob(pattern: &str) -> Result<PathGlob> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let refused = |why: &str| Error::Arguments(format!("invalid glob: {why}"));
    if pattern.is_empty() || pattern.len() > 1000 {
        return Err(refused("it is empty or too long"));
    }
    let source = glob_to_regex(pattern).ok_or_else(|| refused("unbalanced '{' and '}'"))?;
    let regex = RegexBuilder::new(&source).size_limit(1 << 20).build();
    let regex = regex.map_err(|_| refused("it is too complex"))?;
    Ok(PathGlob { regex, only_name: !pattern.contains('/') })
}

/// Converts a glob to a regular expression. Returns `None` if the braces do not match.
fn glob_to_regex(pattern: &str) -> Option<String> {
    let mut out = String::from(r"(?s)\A");
    let mut depth = 0_usize;
    let mut rest = pattern.trim_start_matches('/').chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '*' if rest.next_if_eq(&'*').is_some() => {
                // `**/` also matches no folder at all.
                out.push_str(if rest.next_if_eq(&'/').is_some() { "(?:.*/)?" } else { ".*" });
            }
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '{' => {
                depth += 1;
                out.push_str("(?:");
            }
            '}' => {
                depth = depth.checked_sub(1)?;
                out.push(')');
            }
            ',' if depth > 0 => out.push('|'),
            _ => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out.push_str(r"\z");
    (depth == 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_what_shells_match() {
        for (pattern, path, expected) in [
            ("*.rs", "main.rs", true),
            ("*.rs", "src/deep/main.rs", true),
            ("*.rs", "main.rs.bak", false),
            ("src/*.rs", "src/main.rs", true),
            ("./src/*.rs", "src/main.rs", true),
            ("src/*.rs", "src/deep/main.rs", false),
            ("src/**/*.rs", "src/main.rs", true),
            ("src/**/*.rs", "src/a/b/main.rs", true),
            ("**/test?.{ts,tsx}", "a/test1.tsx", true),
            ("**/test?.{ts,tsx}", "a/test12.ts", false),
            ("a+b(c).txt", "a+b(c).txt", true),
            ("a.c", "abc", false),
            ("src/**", "src/a/b", true),
        ] {
            assert_eq!(compile_glob(pattern).unwrap().matches(path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn unusable_patterns_are_refused() {
        for pattern in ["", "{a", "a}", "{a,{b}", &"x".repeat(2000)] {
            assert!(compile_glob(pattern).is_err(), "{pattern}");
        }
    }
}
