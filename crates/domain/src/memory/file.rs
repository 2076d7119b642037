//! Memory files: JSON Lines, which is exact, and Markdown, which people can read and edit. Hand-written Markdown is
//! read too: every item or paragraph becomes a memory under its heading.

use serde_json::{Map, Value};

use super::{DEFAULT_MEMORY_KIND, MemoryEntry, derived_key};
use crate::agent::MemoryScope;
use crate::id::{AgentId, MemoryId};
use crate::session_key::SessionKey;
use crate::time::Millis;

/// Starts the comment with the JSON of a memory without its text.
const ENTRY_MARK: &str = "<!-- polyclaw ";
const ENTRY_MARK_END: &str = " -->";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct MemoryFileError {
    pub line: usize,
    pub reason: String,
}

/// The owner of memories that are read from a hand-written file.
#[derive(Clone, Debug)]
pub struct MemoryFileOwner {
    pub agent: AgentId,
    pub session: SessionKey,
    pub scope: MemoryScope,
    pub now: Millis,
}

pub fn to_jsonl(memories: &[MemoryEntry]) -> String {
    let lines = memories.iter().filter_map(|memory| serde_json::to_string(memory).ok());
    lines.map(|line| line + "\n").collect()
}

pub fn from_jsonl(text: &str) -> Result<Vec<MemoryEntry>, MemoryFileError> {
    let lines = (1..).zip(text.split('\n')).filter(|(_, line)| !line.trim().is_empty());
    let read = |(line, text): (usize, &str)| {
        serde_json::from_str(text).map_err(|error| MemoryFileError { line, reason: error.to_string() })
    };
    lines.map(read).collect()
}

pub fn to_markdown(memories: &[MemoryEntry]) -> String {
    let mut text = String::from("# Memory\n");
    for memory in memories {
        let mut head = serde_json::to_value(memory).unwrap_or_default();
        if let Some(head) = head.as_object_mut() {
            head.remove("content");
            head.insert("lines".to_owned(), memory.content.split('\n').count().into());
        }
        // A `>` in a key must not end the comment.
        let head = head.to_string().replace('>', "\\u003e");
        let title = memory.key.replace(['\n', '\r'], " ");
        text.push_str(&format!("\n## {title}\n{ENTRY_MARK}{head}{ENTRY_MARK_END}\n{}\n", memory.content));
    }
    text
}

/// Parses the output of `to_markdown` exactly, and hand-written Markdown as items and paragraphs.
pub fn from_markdown(text: &str, owner: &MemoryFileOwner) -> Result<Vec<MemoryEntry>, MemoryFileError> {
    let lines: Vec<&str> = text.split('\n').collect();
    let (mut memories, mut loose, mut heading, mut at) =
        (Vec::new(), LooseMemoryParser::new(owner), String::new(), 0);
    while let Some(line) = lines.get(at) {
        at += 1;
        if let Some(head) = line.strip_prefix(ENTRY_MARK) {
            let (memory, length) = parse_marked_entry(head, &lines[at..])
                .map_err(|why| MemoryFileError { line: at, reason: why })?;
            memories.push(memory);
            at += length;
        } else if let Some(title) = line.strip_prefix('#') {
            loose.finish_item(&heading, &mut memories);
            heading = title.trim_start_matches('#').trim().to_owned();
        } else {
            loose.push_line(line, &heading, &mut memories);
        }
    }
    loose.finish_item(&heading, &mut memories);
    Ok(memories)
}

/// Parses one memory from its comment and the following lines. Returns the number of these lines too.
fn parse_marked_entry(head: &str, after: &[&str]) -> Result<(MemoryEntry, usize), String> {
    let head = head.strip_suffix(ENTRY_MARK_END).ok_or("the comment is incomplete")?;
    let mut head: Map<String, Value> = serde_json::from_str(head).map_err(|error| error.to_string())?;
    let count = head.remove("lines").and_then(|count| count.as_u64()).and_then(|n| usize::try_from(n).ok());
    let count = count.ok_or("the number of its lines is missing")?;
    let content = after.get(..count).ok_or("its lines are incomplete")?.join("\n");
    head.insert("content".to_owned(), content.into());
    let memory = serde_json::from_value(Value::Object(head)).map_err(|error| error.to_string())?;
    Ok((memory, count))
}

/// Collects items and paragraphs line by line.
struct LooseMemoryParser<'a> {
    owner: &'a MemoryFileOwner,
    text: String,
    /// The collected text started as a list item.
    is_item: bool,
}

impl<'a> LooseMemoryParser<'a> {
    fn new(owner: &'a MemoryFileOwner) -> Self {
        Self { owner, text: String::new(), is_item: false }
    }

    fn push_line(&mut self, line: &str, heading: &str, memories: &mut Vec<MemoryEntry>) {
        let line = line.trim_end();
        let item = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark));
        let item = item.or_else(|| self.strip_list_number(line));
        if item.is_some() || line.is_empty() {
            self.finish_item(heading, memories);
            self.is_item = item.is_some();
        }
        let line = item.unwrap_or(line).trim();
        if !line.is_empty() {
            if !self.text.is_empty() {
                self.text.push(' ');
            }
            self.text.push_str(line);
        }
    }

    /// Returns the text of `1. text` or `1) text`. Inside a paragraph only a 1 starts a list: "on the\n12. of May"
    /// continues it.
    fn strip_list_number<'b>(&self, line: &'b str) -> Option<&'b str> {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = line.split_at(digits);
        let rest = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "))?;
        let begins = self.text.is_empty() || self.is_item || number == "1";
        (begins && (1..=3).contains(&digits)).then_some(rest)
    }

    fn finish_item(&mut self, heading: &str, memories: &mut Vec<MemoryEntry>) {
        let content = std::mem::take(&mut self.text);
        if content.is_empty() {
            return;
        }
        let metadata = (!heading.is_empty()).then(|| ("heading".to_owned(), heading.into()));
        let key = derived_key("import", &format!("{heading} {content}"));
        memories.push(MemoryEntry {
            // The id is derived from the text, so that importing a file twice gives the same memories.
            id: MemoryId::new(format!("{}-{key}", self.owner.agent)),
            agent: self.owner.agent.clone(),
            session: self.owner.session.clone(),
            scope: self.owner.scope,
            key,
            kind: DEFAULT_MEMORY_KIND.to_owned(),
            content,
            metadata: metadata.into_iter().collect(),
            created_at: self.owner.now,
            updated_at: self.owner.now,
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn owner() -> MemoryFileOwner {
        let agent = AgentId::main();
        let session = SessionKey::main(&agent);
        MemoryFileOwner { agent, session, scope: MemoryScope::Agent, now: Millis(7) }
    }

    fn memory(key: &str, content: &str) -> MemoryEntry {
        MemoryEntry {
            id: MemoryId::new("m1"),
            agent: AgentId::main(),
            session: SessionKey::for_direct(&AgentId::main(), "chat", "a b"),
            scope: MemoryScope::Session,
            key: key.into(),
            kind: "fact".into(),
            content: content.into(),
            metadata: [("tag".to_owned(), "-->".into())].into_iter().collect(),
            created_at: Millis(1_800_000_000_123),
            updated_at: Millis(1_800_000_000_456),
        }
    }

    #[test]
    fn handwritten_markdown_becomes_one_memory_per_item() {
        let text = "# MEMORY\n\nAna is the owner.\nShe lives in Porto.\n\n## Likes\n- tea,\n  green\n* hiking\n\n1. Ben\n2) Eva,\n   his wife\n\nBorn on\n12. May 1984.\n";
        let read = from_markdown(text, &owner()).unwrap();
        let shown: Vec<_> = read.iter().map(|m| m.content.as_str()).collect();
        assert_eq!(
            shown,
            [
                "Ana is the owner. She lives in Porto.",
                "tea, green",
                "hiking",
                "Ben",
                "Eva, his wife",
                "Born on 12. May 1984."
            ]
        );
        assert_eq!(read[1].metadata["heading"], "Likes");
        assert_eq!(from_markdown(text, &owner()).unwrap(), read, "the same file is the same memories");
    }

    #[test]
    fn truncated_memory_file_is_refused_with_line() {
        let whole = to_markdown(&[memory("k", "one\ntwo\nthree")]);
        let cut = whole.rsplit_once("\nthree").unwrap().0;
        let error = from_markdown(cut, &owner()).unwrap_err();
        assert_eq!((error.line, error.reason.as_str()), (4, "its lines are incomplete"));
        assert_eq!(from_jsonl("\n{\"id\":1}\n").unwrap_err().line, 2);
    }

    proptest! {
        #[test]
        fn memories_round_trip_in_both_formats(texts in prop::collection::vec(("\\PC{0,20}", any::<String>()), 0..6)) {
            let memories: Vec<_> = texts.iter().map(|(key, content)| memory(key, content)).collect();
            prop_assert_eq!(from_jsonl(&to_jsonl(&memories)).unwrap(), memories.clone());
            prop_assert_eq!(from_markdown(&to_markdown(&memories), &owner()).unwrap(), memories);
        }

        #[test]
        fn markdown_syntax_in_memory_text_round_trips(text in "(#|<!-- polyclaw |-->|- |\n|a|\r){0,30}") {
            let memories = vec![memory("k", &text), memory("l", "next")];
            prop_assert_eq!(from_markdown(&to_markdown(&memories), &owner()).unwrap(), memories);
        }
    }
}
