//! Glob patterns: `*` and `?` within a name, `**` across folders, `{a,b}` for alternatives, `[a-z]` for one of several
//! characters.

use globset::{GlobBuilder, GlobMatcher};

use crate::error::{Error, Result};

pub struct PathGlob {
    glob: GlobMatcher,
    /// A pattern without a slash matches the file name in any folder.
    only_name: bool,
}

impl PathGlob {
    pub fn matches(&self, path: &str) -> bool {
        let subject = if self.only_name { path.rsplit('/').next().unwrap_or(path) } else { path };
        self.glob.is_match(subject)
    }
}

pub fn compile_glob(pattern: &str) -> Result<PathGlob> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let refused = |why: &str| Error::Arguments(format!("invalid glob: {why}"));
    if pattern.is_empty() || pattern.len() > 1000 {
        return Err(refused("it is empty or too long"));
    }
    let glob = GlobBuilder::new(pattern.trim_start_matches('/')).literal_separator(true).build();
    let glob = glob.map_err(|error| refused(&error.kind().to_string()))?.compile_matcher();
    Ok(PathGlob { glob, only_name: !pattern.contains('/') })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glob_patterns_match_like_in_shells() {
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
            ("[a-c]?.rs", "bx.rs", true),
            ("[!a-c]?.rs", "bx.rs", false),
        ] {
            assert_eq!(compile_glob(pattern).unwrap().matches(path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn invalid_glob_patterns_are_refused() {
        for pattern in ["", "{a", "a}", "{a,{b}", &"x".repeat(2000)] {
            assert!(compile_glob(pattern).is_err(), "{pattern}");
        }
    }
}
