//! Parses the front matter of a `SKILL.md`, a subset of YAML: unindented keys, with a value on the same line, on
//! indented lines below, or as a block (`>` and `|`). Content nested below other keys is skipped, so a document that
//! would exhaust a full YAML parser is harmless.

use super::{MAX_DESCRIPTION_CHARS, SkillFinding, is_skill_name};
use crate::sanitize;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontMatter {
    pub name: String,
    pub description: String,
}

const FRONT_MATTER_HINT: &str = "start the file with ---, name: …, description: …, ---";

/// Parses the front matter and returns all findings. A returned value is valid.
pub fn parse_front_matter(text: &str) -> (Option<FrontMatter>, Vec<SkillFinding>) {
    let Some(head) = front_matter_text(text) else {
        let what =
            "it has no front matter: the file must start with a line ---, and a second such line must end it";
        return (None, vec![SkillFinding::error("skill_front_matter", what, FRONT_MATTER_HINT).at_line(1)]);
    };
    let mut findings = Vec::new();
    let name = check_skill_name(find_value(head, "name"), &mut findings);
    let description = check_description(find_value(head, "description"), &mut findings);
    (name.zip(description).map(|(name, description)| FrontMatter { name, description }), findings)
}

fn front_matter_text(text: &str) -> Option<&str> {
    let text = text.trim_start_matches('\u{feff}');
    let rest = text.strip_prefix("---")?;
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'))?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some(&rest[..at]);
        }
        at += line.len();
    }
    None
}

fn check_skill_name(value: Option<(usize, String)>, findings: &mut Vec<SkillFinding>) -> Option<String> {
    let Some((line, name)) = value.filter(|(_, name)| !name.is_empty()) else {
        findings.push(SkillFinding::error(
            "skill_name_missing",
            "it has no name",
            "add name: to the front matter",
        ));
        return None;
    };
    if !is_skill_name(&name) {
        let what = format!("{:?} is not a valid skill name", sanitize::to_single_line(&name, 80));
        let hint = "use up to 64 lower-case letters, digits and -, like code-review";
        findings.push(SkillFinding::error("skill_name", what, hint).at_line(line));
        return None;
    }
    Some(name)
}

fn check_description(value: Option<(usize, String)>, findings: &mut Vec<SkillFinding>) -> Option<String> {
    let Some((line, description)) = value.filter(|(_, text)| !sanitize::to_single_line(text, 2).is_empty())
    else {
        let hint = "describe in one sentence what it does and when to use it";
        findings.push(SkillFinding::error("skill_description_missing", "it has no description", hint));
        return None;
    };
    let length = description.chars().count();
    if length > MAX_DESCRIPTION_CHARS {
        let what =
            format!("its description has {length} characters; it is truncated to {MAX_DESCRIPTION_CHARS}");
        let hint = "move the details below the front matter";
        findings.push(SkillFinding::warning("skill_description_long", what, hint).at_line(line));
    }
    Some(sanitize::to_single_line(&description, MAX_DESCRIPTION_CHARS))
}

/// Returns the text of an unindented key, and its line.
fn find_value(head: &str, key: &str) -> Option<(usize, String)> {
    let lines: Vec<&str> = head.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':')))?;
    let own = lines[at].split_once(':').map_or("", |(_, rest)| rest).trim();
    let below =
        lines[at + 1..].iter().take_while(|line| line.trim().is_empty() || line.starts_with([' ', '\t']));
    let below: Vec<&str> = below.map(|line| line.trim()).collect();
    let text = match own.chars().next() {
        Some('>' | '|') => below.join("\n"),
        Some(quote @ ('"' | '\'')) => unquote(&[&[own][..], &below].concat().join(" "), quote),
        _ => {
            let own = own.split_once(" #").map_or(own, |(text, _)| text);
            std::iter::once(own).chain(below).collect::<Vec<_>>().join(" ")
        }
    };
    // The first line of the file is the opening `---`.
    Some((at + 2, text.trim().to_owned()))
}

fn unquote(text: &str, quote: char) -> String {
    let mut out = String::new();
    let mut chars = text.chars().skip(1).peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if quote == '"' => match chars.next() {
                Some('n' | 't' | 'r') => out.push(' '),
                Some(other) => out.push(other),
                None => {}
            },
            '\'' if quote == '\'' && chars.peek() == Some(&'\'') => out.extend(chars.next()),
            c if c == quote => break,
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(head: &str) -> Option<(String, String)> {
        parse_front_matter(&format!("---\n{head}\n---\nbody\n"))
            .0
            .map(|front| (front.name, front.description))
    }

    fn codes(text: &str) -> Vec<&'static str> {
        parse_front_matter(text).1.iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn front_matter_values_parse_in_common_yaml_forms() {
        let expected = Some(("a-b".to_owned(), "Does x: well.".to_owned()));
        for head in [
            "name: a-b\ndescription: Does x: well.",
            "description: \"Does x: well.\"\nname: 'a-b' # the name",
            "name: a-b\ndescription: >-\n  Does x:\n  well.",
            "name: a-b\ndescription: |\n  Does x:\n\n  well.\nlicense: MIT",
            "name: a-b\ndescription:\n  Does x:\n  well.",
            "name: a-b\nmetadata:\n  name: other\n  description: other\ndescription: Does x: well.",
            "name : a-b\r\ndescription: 'Does x: well.'\r",
        ] {
            assert_eq!(front(head), expected, "{head}");
        }
        assert_eq!(front("name: x\ndescription: 'it''s'"), Some(("x".to_owned(), "it's".to_owned())));
    }

    #[test]
    fn invalid_front_matter_is_reported_and_not_used() {
        for (text, expected) in [
            ("# a heading", &["skill_front_matter"][..]),
            ("---\nname: x\n", &["skill_front_matter"]),
            ("---\n---\n", &["skill_name_missing", "skill_description_missing"]),
            ("---\nname: Not A Name\ndescription: x\n---\n", &["skill_name"]),
            ("---\nname: ../../etc\ndescription: x\n---\n", &["skill_name"]),
            ("---\nname: x\ndescription: \"\u{202e}\"\n---\n", &["skill_description_missing"]),
            ("---\nnames: x\ndescription: y\n---\n", &["skill_name_missing"]),
        ] {
            assert_eq!(codes(text), expected, "{text:?}");
            assert!(parse_front_matter(text).0.is_none(), "{text:?}");
        }
        let long = format!("---\nname: x\ndescription: {}\n---\n", "y".repeat(10_000));
        assert_eq!(codes(&long), ["skill_description_long"]);
        assert!(parse_front_matter(&long).0.is_some_and(|front| front.description.chars().count() == 1_025));
    }

    #[test]
    fn yaml_anchors_and_aliases_are_treated_as_text() {
        let bomb = "name: x\ndescription: ok\na: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]";
        assert_eq!(front(bomb), Some(("x".to_owned(), "ok".to_owned())));
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_front_matter_parses_safely(text in ".{0,400}") {
            let (front, _) = parse_front_matter(&format!("---\n{text}\n---"));
            if let Some(front) = front {
                assert!(is_skill_name(&front.name));
                assert!(!front.description.contains('\n'));
            }
        }
    }
}
