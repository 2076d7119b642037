//! Cached histories of recently active sessions, so that a long history is not read for every turn. Stored lines of a
//! conversation never change; only newer ones are read.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use polyclaw_domain::id::SessionId;
use polyclaw_domain::message::MessagePart;
use polyclaw_domain::prompt::TranscriptLine;
use polyclaw_domain::session_key::SessionKey;
use serde_json::Value;

/// Maximum size of the cache. The least recently used session is evicted first.
const MAX_CACHE_BYTES: usize = 8 * 1024 * 1024;

/// Memory per line besides its text.
const LINE_OVERHEAD_BYTES: usize = 256;

/// Memory per line part or JSON value besides its text.
const PART_OVERHEAD_BYTES: usize = 128;

#[derive(Default)]
pub(crate) struct HistoryCache(Mutex<HistoryCacheState>);

#[derive(Default)]
struct HistoryCacheState {
    histories: HashMap<SessionKey, (u64, CachedHistory)>,
    bytes: usize,
    uses: u64,
}

/// Lines of one conversation after its last compaction.
pub(crate) struct CachedHistory {
    pub session_id: SessionId,
    pub through: i64,
    pub lines: Vec<TranscriptLine>,
}

impl CachedHistory {
    /// Position up to which the history is complete.
    pub fn last_ticket(&self) -> i64 {
        self.lines.last().map_or(self.through, |line| line.position)
    }

    fn size_bytes(&self) -> usize {
        let parts = |line: &TranscriptLine| line.parts.iter().map(part_bytes).sum::<usize>();
        self.lines.iter().map(|line| line.text.len() + LINE_OVERHEAD_BYTES + parts(line)).sum()
    }
}

fn part_bytes(part: &MessagePart) -> usize {
    PART_OVERHEAD_BYTES
        + match part {
            MessagePart::ToolCall(call) => call.id.len() + call.name.len() + value_bytes(&call.arguments),
            MessagePart::ToolResult { call_id, name, .. } => call_id.len() + name.len(),
            MessagePart::Attachment(file) => file.name.len() + file.text.as_ref().map_or(0, String::len),
        }
}

/// Estimates the memory of a JSON value, which is many times that of its text.
fn value_bytes(value: &Value) -> usize {
    PART_OVERHEAD_BYTES
        + match value {
            Value::String(text) => text.len(),
            Value::Array(list) => list.iter().map(value_bytes).sum(),
            Value::Object(map) => map.iter().map(|(key, value)| key.len() + value_bytes(value)).sum(),
            _ => 0,
        }
}

impl HistoryCache {
    /// Takes the history out of the cache. A session has one turn at a time, which puts it back with more lines.
    pub fn take_history(&self, session: &SessionKey) -> Option<CachedHistory> {
        self.lock().remove(session)
    }

    pub fn insert(&self, session: SessionKey, history: CachedHistory) {
        let mut kept = self.lock();
        kept.remove(&session);
        kept.uses += 1;
        kept.bytes += history.size_bytes();
        let now = kept.uses;
        kept.histories.insert(session, (now, history));
        while kept.bytes > MAX_CACHE_BYTES
            && let Some(oldest) = kept.oldest_session()
        {
            kept.remove(&oldest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HistoryCacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HistoryCacheState {
    fn remove(&mut self, session: &SessionKey) -> Option<CachedHistory> {
        let (_, history) = self.histories.remove(session)?;
        self.bytes -= history.size_bytes();
        Some(history)
    }

    fn oldest_session(&self) -> Option<SessionKey> {
        let oldest = self.histories.iter().min_by_key(|(_, (used, _))| *used);
        oldest.map(|(session, _)| session.clone())
    }
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::id::AgentId;
    use polyclaw_domain::message::{MessageOrigin, MessageRole};

    use super::*;

    fn history(bytes: usize) -> CachedHistory {
        let line = TranscriptLine {
            position: 7,
            role: MessageRole::User,
            origin: MessageOrigin::User,
            text: "x".repeat(bytes),
            parts: vec![],
            author: None,
        };
        CachedHistory { session_id: SessionId::new("s"), through: 0, lines: vec![line] }
    }

    #[test]
    fn history_cache_size_includes_call_arguments() {
        let mut long = history(10);
        let arguments = serde_json::json!({ "content": "x".repeat(MAX_CACHE_BYTES) });
        let call = polyclaw_domain::tool::ToolCall { id: "c".into(), name: "write_file".into(), arguments };
        long.lines[0].parts.push(MessagePart::ToolCall(call));
        let key = SessionKey::for_direct(&AgentId::main(), "chat", "a");
        let histories = HistoryCache::default();
        histories.insert(key.clone(), long);
        assert!(histories.take_history(&key).is_none(), "too large to keep at all");
    }

    #[test]
    fn history_cache_evicts_least_recently_used_session() {
        let key = |name| SessionKey::for_direct(&AgentId::main(), "chat", name);
        let histories = HistoryCache::default();
        for name in ["a", "b", "c"] {
            histories.insert(key(name), history(MAX_CACHE_BYTES / 3 - LINE_OVERHEAD_BYTES));
        }
        let again = histories.take_history(&key("a")).unwrap();
        assert_eq!(again.last_ticket(), 7);
        histories.insert(key("a"), again);
        histories.insert(key("d"), history(1));
        assert!(histories.take_history(&key("b")).is_none(), "it was used least");
        assert!(histories.take_history(&key("a")).is_some() && histories.take_history(&key("c")).is_some());
        assert!(histories.take_history(&key("a")).is_none(), "taken is taken");
        histories.insert(key("e"), history(MAX_CACHE_BYTES));
        assert!(histories.take_history(&key("e")).is_none(), "too large to keep at all");
    }
}
