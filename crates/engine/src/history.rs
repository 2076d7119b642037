//! Histories of the sessions that spoke last, kept so that a long one is not read anew for every turn. What is
//! stored up to a ticket never changes within a conversation; what came after it is read.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use polyclaw_domain::id::SessionId;
use polyclaw_domain::message::MessagePart;
use polyclaw_domain::prompt::TranscriptLine;
use polyclaw_domain::session_key::SessionKey;
use serde_json::Value;

/// What is kept in all; the session that spoke longest ago goes first.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// What a line costs beside its text.
const LINE_BYTES: usize = 256;

/// What a part of a line, and a value in a call's arguments, costs beside its text.
const PART_BYTES: usize = 128;

#[derive(Default)]
pub(crate) struct Histories(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    histories: HashMap<SessionKey, (u64, History)>,
    bytes: usize,
    uses: u64,
}

/// The lines of one conversation after its last compaction.
pub(crate) struct History {
    pub session_id: SessionId,
    pub through: i64,
    pub lines: Vec<TranscriptLine>,
}

impl History {
    /// The ticket up to which all is there.
    pub fn last(&self) -> i64 {
        self.lines.last().map_or(self.through, |line| line.ticket)
    }

    fn bytes(&self) -> usize {
        let parts = |line: &TranscriptLine| line.parts.iter().map(part_bytes).sum::<usize>();
        self.lines.iter().map(|line| line.text.len() + LINE_BYTES + parts(line)).sum()
    }
}

fn part_bytes(part: &MessagePart) -> usize {
    PART_BYTES
        + match part {
            MessagePart::ToolCall(call) => call.id.len() + call.name.len() + value_bytes(&call.arguments),
            MessagePart::ToolResult { call_id, name, .. } => call_id.len() + name.len(),
            MessagePart::Attachment(file) => file.name.len() + file.text.as_ref().map_or(0, String::len),
        }
}

/// A tree takes many times the memory of its text.
fn value_bytes(value: &Value) -> usize {
    PART_BYTES
        + match value {
            Value::String(text) => text.len(),
            Value::Array(list) => list.iter().map(value_bytes).sum(),
            Value::Object(map) => map.iter().map(|(key, value)| key.len() + value_bytes(value)).sum(),
            _ => 0,
        }
}

impl Histories {
    /// A session has one turn at a time: it takes the history, and brings it back longer.
    pub fn take(&self, session: &SessionKey) -> Option<History> {
        self.lock().take(session)
    }

    pub fn keep(&self, session: SessionKey, history: History) {
        let mut kept = self.lock();
        kept.take(&session);
        kept.uses += 1;
        kept.bytes += history.bytes();
        let now = kept.uses;
        kept.histories.insert(session, (now, history));
        while kept.bytes > MAX_BYTES
            && let Some(oldest) = kept.oldest()
        {
            kept.take(&oldest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn take(&mut self, session: &SessionKey) -> Option<History> {
        let (_, history) = self.histories.remove(session)?;
        self.bytes -= history.bytes();
        Some(history)
    }

    fn oldest(&self) -> Option<SessionKey> {
        let oldest = self.histories.iter().min_by_key(|(_, (used, _))| *used);
        oldest.map(|(session, _)| session.clone())
    }
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::id::AgentId;
    use polyclaw_domain::message::{MessageOrigin, MessageRole};

    use super::*;

    fn history(bytes: usize) -> History {
        let line = TranscriptLine {
            ticket: 7,
            role: MessageRole::User,
            origin: MessageOrigin::User,
            text: "x".repeat(bytes),
            parts: vec![],
            author: None,
        };
        History { session_id: SessionId::new("s"), through: 0, lines: vec![line] }
    }

    #[test]
    fn what_calls_were_made_with_counts_too() {
        let mut long = history(10);
        let arguments = serde_json::json!({ "content": "x".repeat(MAX_BYTES) });
        let call = polyclaw_domain::tool::ToolCall { id: "c".into(), name: "write_file".into(), arguments };
        long.lines[0].parts.push(MessagePart::ToolCall(call));
        let key = SessionKey::for_direct(&AgentId::main(), "chat", "a");
        let histories = Histories::default();
        histories.keep(key.clone(), long);
        assert!(histories.take(&key).is_none(), "too large to keep at all");
    }

    #[test]
    fn what_spoke_longest_ago_is_forgotten_first() {
        let key = |name| SessionKey::for_direct(&AgentId::main(), "chat", name);
        let histories = Histories::default();
        for name in ["a", "b", "c"] {
            histories.keep(key(name), history(MAX_BYTES / 3 - LINE_BYTES));
        }
        let again = histories.take(&key("a")).unwrap();
        assert_eq!(again.last(), 7);
        histories.keep(key("a"), again);
        histories.keep(key("d"), history(1));
        assert!(histories.take(&key("b")).is_none(), "it was used least");
        assert!(histories.take(&key("a")).is_some() && histories.take(&key("c")).is_some());
        assert!(histories.take(&key("a")).is_none(), "taken is taken");
        histories.keep(key("e"), history(MAX_BYTES));
        assert!(histories.take(&key("e")).is_none(), "too large to keep at all");
    }
}
