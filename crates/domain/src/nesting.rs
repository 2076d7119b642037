//! Checks the nesting depth of a text before it is parsed: a recursive parser could exhaust the stack, which kills the
//! process. `serde_json` has its own limit (128 levels); readers of JSON5 and TOML call this first.

/// Maximum nesting depth of our documents.
pub const MAX_NESTING_DEPTH: usize = 64;

/// A text that nests deeper than [`MAX_NESTING_DEPTH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nested too deeply")]
pub struct NestingTooDeep {
    /// The line of the first level beyond the limit, counted from 1.
    pub line: usize,
}

/// Checks JSON or JSON5: brackets and braces outside strings and comments.
pub fn check_json(text: &str) -> Result<(), NestingTooDeep> {
    let mut depth = 0_usize;
    let mut scan = NestingScanner::for_text(text);
    while let Some(byte) = scan.next() {
        match byte {
            b'"' | b'\'' => scan.skip_string(byte),
            b'/' if scan.peek() == Some(b'/') => scan.skip_until(b"\n"),
            b'/' if scan.peek() == Some(b'*') => scan.skip_until(b"*/"),
            b'[' | b'{' => {
                depth += 1;
                scan.check_depth(depth)?;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// Checks TOML: brackets and braces outside strings and comments, and the parts of dotted keys, which are tables too.
pub fn check_toml(text: &str) -> Result<(), NestingTooDeep> {
    // `open` has the depth that each open bracket added, `dots` counts the dots of the current key.
    let (mut open, mut dots) = (Vec::<usize>::new(), 0_usize);
    let mut outer = 0_usize;
    let mut scan = NestingScanner::for_text(text);
    while let Some(byte) = scan.next() {
        match byte {
            b'"' | b'\'' => scan.skip_toml_string(byte),
            b'#' => scan.skip_until(b"\n"),
            b'.' => dots += 1,
            b'[' | b'{' => {
                outer += dots + 1;
                open.push(dots + 1);
                dots = 0;
            }
            b']' | b'}' => {
                outer -= open.pop().unwrap_or(0);
                dots = 0;
            }
            b',' | b'\n' => dots = 0,
            _ => continue,
        }
        scan.check_depth(outer + dots)?;
    }
    Ok(())
}

struct NestingScanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> NestingScanner<'a> {
    fn for_text(text: &'a str) -> Self {
        Self { text: text.as_bytes(), at: 0 }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn check_depth(&self, depth: usize) -> Result<(), NestingTooDeep> {
        if depth <= MAX_NESTING_DEPTH {
            return Ok(());
        }
        let line = 1 + self.text[..self.at].iter().filter(|byte| **byte == b'\n').count();
        Err(NestingTooDeep { line })
    }

    /// Skips past the next `end`, or to the end of the text.
    fn skip_until(&mut self, end: &[u8]) {
        let rest = &self.text[self.at..];
        let found = rest.windows(end.len()).position(|window| window == end);
        self.at = found.map_or(self.text.len(), |found| self.at + found + end.len());
    }

    /// Skips a string with backslash escapes.
    fn skip_string(&mut self, quote: u8) {
        while let Some(byte) = self.next() {
            match byte {
                b'\\' => self.at += 1,
                _ if byte == quote => return,
                _ => {}
            }
        }
    }

    /// Skips a TOML string. A simple one ends at its quote or line end, three quotes start a multi-line string; single
    /// quotes have no escapes.
    fn skip_toml_string(&mut self, quote: u8) {
        let is_long = self.text[self.at..].starts_with(&[quote, quote]);
        if is_long {
            self.at += 2;
        }
        while let Some(byte) = self.next() {
            match byte {
                b'\\' if quote == b'"' => self.at += 1,
                b'\n' if !is_long => return,
                _ if byte != quote => {}
                _ if !is_long => return,
                _ if self.text[self.at..].starts_with(&[quote, quote]) => {
                    self.at += 2;
                    return;
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_is_counted_outside_strings_and_comments() {
        let nested = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
        assert_eq!(check_json(&nested(MAX_NESTING_DEPTH)), Ok(()));
        assert_eq!(
            check_json(&format!("\n{}", nested(MAX_NESTING_DEPTH + 1))),
            Err(NestingTooDeep { line: 2 })
        );
        assert_eq!(check_json(&"[],".repeat(10_000)), Ok(()), "side by side is not deep");
        for harmless in [
            format!("\"{}\"", "[".repeat(1_000)),
            format!("'\\'{}'", "{".repeat(1_000)),
            format!("// {}\n1", "[".repeat(1_000)),
            format!("/* {}\n*/ 1", "[".repeat(1_000)),
        ] {
            assert_eq!(check_json(&harmless), Ok(()), "{harmless}");
        }
        for hostile in ["[".repeat(3_000_000), "{a:".repeat(1_000_000), format!("\"\"{}", "[".repeat(100))] {
            assert!(check_json(&hostile).is_err());
        }
    }

    #[test]
    fn toml_nesting_includes_dotted_keys() {
        for harmless in [
            "a = [[1, 2], [3]]\n[[agents.list]]\nid = \"x\"\n".repeat(1_000),
            format!("a = \"{}\"", ".".repeat(1_000)),
            format!("a = '{}' # {}\nb = 1.5", "[".repeat(1_000), "[".repeat(1_000)),
            format!("a = '''\n{}\n''\n'''\nb.c = 1", "[".repeat(1_000)),
            format!("a = \"\"\"\n\\\"\"\"{}\"\"\"\n", "[".repeat(1_000)),
        ] {
            assert_eq!(check_toml(&harmless), Ok(()), "{harmless}");
        }
        let (deep, half) = (MAX_NESTING_DEPTH + 1, MAX_NESTING_DEPTH / 2 + 1);
        for hostile in [
            format!("a = {}", "[".repeat(deep)),
            format!("a = {}", "{a = ".repeat(deep)),
            format!("{}b = 1", "a.".repeat(deep)),
            format!("[{}b]", "a.".repeat(deep)),
            format!("a = {{ {}b = {}", "a.".repeat(half), "[".repeat(half)),
            format!("a = {}", "{ a.a.a = ".repeat(deep / 3 + 1)),
        ] {
            assert!(check_toml(&hostile).is_err(), "{hostile}");
        }
    }
}
