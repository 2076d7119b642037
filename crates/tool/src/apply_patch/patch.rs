//! Parses patches and applies hunks to a text. Performs no I/O.

/// Maximum size of a patch.
const MAX_PATCH_LEN: usize = 1024 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub enum FileChange {
    Add(String),
    Update(Vec<PatchHunk>),
    Delete,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct PatchHunk {
    /// A line above the change, to search from.
    heading: Option<String>,
    old: Vec<String>,
    new: Vec<String>,
}

type PatchResult<T> = Result<T, String>;

pub fn parse(text: &str) -> PatchResult<Vec<(String, FileChange)>> {
    if text.len() > MAX_PATCH_LEN {
        return Err(format!("the patch has {} bytes; the limit is {MAX_PATCH_LEN}", text.len()));
    }
    let mut lines = text.trim().lines().peekable();
    if lines.next().map(str::trim_end) != Some("*** Begin Patch") {
        return Err("the patch must start with the line *** Begin Patch".to_owned());
    }
    let mut changes = Vec::new();
    loop {
        let Some(line) = lines.next() else { return Err("the line *** End Patch is missing".to_owned()) };
        let line = line.trim_end();
        if line == "*** End Patch" {
            break;
        }
        let mut own = Vec::new();
        while let Some(next) = lines.next_if(|next| !next.starts_with("*** ")) {
            own.push(next);
        }
        // Empty lines before the next header are for readability and match nothing.
        while own.pop_if(|last| last.is_empty()).is_some() {}
        changes.push(parse_change(line, &own)?);
    }
    match (changes.is_empty(), lines.next()) {
        (true, _) => Err("the patch changes nothing".to_owned()),
        (_, Some(line)) => Err(format!("unexpected line after *** End Patch: {line:?}")),
        (false, None) => Ok(changes),
    }
}

fn parse_change(line: &str, body: &[&str]) -> PatchResult<(String, FileChange)> {
    let of = |verb: &str| {
        line.strip_prefix(verb).map(str::trim).filter(|path| !path.is_empty()).map(str::to_owned)
    };
    if let Some(path) = of("*** Add File:") {
        return Ok((path, FileChange::Add(added_text(body)?)));
    }
    if let Some(path) = of("*** Update File:") {
        return Ok((path, FileChange::Update(parse_hunks(body)?)));
    }
    match of("*** Delete File:") {
        Some(path) if body.is_empty() => Ok((path, FileChange::Delete)),
        Some(path) => Err(format!("no lines are allowed after *** Delete File: {path}")),
        None => {
            Err(format!("unknown line {line:?}; use *** Add File:, *** Update File: or *** Delete File:"))
        }
    }
}

fn added_text(body: &[&str]) -> PatchResult<String> {
    let line = |line: &&str| line.strip_prefix('+').map(|rest| format!("{rest}\n"));
    let lines: Option<String> = body.iter().map(line).collect();
    lines.ok_or_else(|| "every line of a new file must start with +".to_owned())
}

fn parse_hunks(body: &[&str]) -> PatchResult<Vec<PatchHunk>> {
    let mut hunks: Vec<PatchHunk> = Vec::new();
    for line in body {
        if let Some(heading) = line.strip_prefix("@@") {
            let heading = Some(heading.trim().to_owned()).filter(|heading| !heading.is_empty());
            hunks.push(PatchHunk { heading, ..PatchHunk::default() });
            continue;
        }
        if hunks.is_empty() {
            hunks.push(PatchHunk::default());
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        match line.split_at_checked(1) {
            // Empty lines of a file often lose their leading space.
            None => {
                hunk.old.push(String::new());
                hunk.new.push(String::new());
            }
            Some((" ", rest)) => {
                hunk.old.push(rest.to_owned());
                hunk.new.push(rest.to_owned());
            }
            Some(("-", rest)) => hunk.old.push(rest.to_owned()),
            Some(("+", rest)) => hunk.new.push(rest.to_owned()),
            _ => return Err(format!("line {line:?} does not start with a space, - or +")),
        }
    }
    match hunks.iter().all(|hunk| hunk.old == hunk.new) {
        true => Err("the patch contains no changes".to_owned()),
        false => Ok(hunks),
    }
}

/// Applies the hunks in order, each one after the position of the previous one.
pub fn apply_hunks(text: &str, hunks: &[PatchHunk]) -> PatchResult<String> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    let mut at = 0;
    for (n, hunk) in hunks.iter().enumerate() {
        let from = find_heading(&lines, at, hunk, n)?;
        let place = find_hunk(&lines, from, hunk, n)?;
        let new: Vec<&str> = hunk.new.iter().map(String::as_str).collect();
        lines.splice(place..place + hunk.old.len(), new);
        at = place + hunk.new.len();
    }
    Ok(lines.join("\n"))
}

fn find_heading(lines: &[&str], at: usize, hunk: &PatchHunk, n: usize) -> PatchResult<usize> {
    let Some(heading) = &hunk.heading else { return Ok(at) };
    let found = lines[at..].iter().position(|line| line.trim() == heading);
    found.map(|found| at + found + 1).ok_or_else(|| format!("hunk {}: line {heading:?} was not found", n + 1))
}

fn find_hunk(lines: &[&str], from: usize, hunk: &PatchHunk, n: usize) -> PatchResult<usize> {
    if hunk.old.is_empty() {
        // A hunk without old lines has no position: insert it after the heading, else at the end, before the empty
        // piece after the last newline.
        let end = lines.len() - usize::from(lines.last() == Some(&""));
        return Ok(if hunk.heading.is_some() { from } else { end.max(from) });
    }
    let fits = |at: &usize| lines[*at..].iter().zip(&hunk.old).all(|(line, old)| line == old);
    let last = (lines.len() + 1).saturating_sub(hunk.old.len());
    let mut places = (from..last).filter(fits);
    match (places.next(), places.next()) {
        (None, _) if lines.iter().any(|line| line.ends_with('\r')) => {
            Err(format!("hunk {} does not match; the lines of this file end with \\r\\n", n + 1))
        }
        (None, _) => {
            Err(format!("hunk {} does not match: read the file again and copy its lines exactly", n + 1))
        }
        (Some(_), Some(_)) if hunk.heading.is_none() => {
            Err(format!("hunk {} matches in several places: add context lines, or a line after @@", n + 1))
        }
        (Some(at), _) => Ok(at),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn patched(text: &str, body: &str) -> PatchResult<String> {
        let whole = format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch");
        let FileChange::Update(hunks) = parse(&whole)?.remove(0).1 else { panic!("an update") };
        apply_hunks(text, &hunks)
    }

    #[test]
    fn hunks_are_applied_in_order() {
        let text = "one\ntwo\nthree\nfour\n";
        assert_eq!(patched(text, " one\n-two\n+2\n@@\n-four\n+4\n+5").unwrap(), "one\n2\nthree\n4\n5\n");
        assert_eq!(patched(text, "@@\n+five").unwrap(), "one\ntwo\nthree\nfour\nfive\n");
        assert_eq!(patched(text, "@@ two\n+half").unwrap(), "one\ntwo\nhalf\nthree\nfour\n");
        assert_eq!(patched("a\n\nb\n", " a\n\n-b\n+c").unwrap(), "a\n\nc\n", "an empty line needs no space");
        assert_eq!(patched("x", "-x\n+y").unwrap(), "y");
    }

    #[test]
    fn patch_errors_name_the_reason() {
        assert!(patched("a\n", "-b\n+c").unwrap_err().contains("does not match"));
        assert!(patched("a\nb\na\n", "-a\n+c").unwrap_err().contains("several places"));
        assert_eq!(patched("a\nb\na\n", "@@ b\n-a\n+c").unwrap(), "a\nb\nc\n");
        assert!(patched("a\r\nb\r\n", "-a\n+c").unwrap_err().contains("\\r\\n"));
        assert!(patched("a\n", "@@ nothing\n-a\n+c").unwrap_err().contains("was not found"));
        assert!(patched("a\n", " a").unwrap_err().contains("contains no changes"));
        assert!(patched("a\n", "a").unwrap_err().contains("does not start with"));
        for bad in [
            "",
            "*** Begin Patch",
            "*** Begin Patch\n*** End Patch",
            "*** Begin Patch\n*** Move File: x\n*** End Patch",
            "*** Begin Patch\n*** Add File: x\nline\n*** End Patch",
            "*** Begin Patch\n*** Delete File: x\n-line\n*** End Patch",
            "*** Begin Patch\n*** Delete File: x\n*** End Patch\nmore",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn patch_parser_never_panics(text in any::<String>(), body in "([ +@*-]{0,3}[a-c\\n]{0,4}){0,8}") {
            let _ = patched(&text, &body);
            let _ = parse(&text);
        }

        #[test]
        fn replacing_every_line_gives_the_new_text(old in "[a-z]{1,5}(\\n[a-z]{1,5}){0,6}", new in "[A-Z]{1,5}(\\n[A-Z]{1,5}){0,6}") {
            let minus: String = old.lines().map(|line| format!("-{line}\n")).collect();
            let plus: String = new.lines().map(|line| format!("+{line}\n")).collect();
            prop_assert_eq!(patched(&old, &format!("{minus}{plus}")).unwrap(), new);
        }
    }
}
