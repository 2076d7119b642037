//! Merges the stored session with live events. A load from the server contains everything before its request. Later
//! events are deferred until it arrives and are then applied on top, so older data never overwrites newer data.

use std::collections::{HashMap, HashSet};

use polyclaw_api::approvals::ApprovalView;
use polyclaw_api::sessions::SessionView;
use polyclaw_api::transcript::SessionMessageView;
use polyclaw_domain::approval::ApprovalState;
use polyclaw_domain::frame::FrameKind;
use polyclaw_domain::message::{MessageRole, tool_calls};

use super::entry::{ApprovalCard, ToolState, TranscriptEntry, UserMessage, UserMessageState};
use super::state::{ChatEffect, ChatEvent, ChatState};
use super::transcript::{TranscriptRow, from_transcript};

/// State of loading the stored session.
#[derive(Debug)]
pub struct TranscriptReload {
    /// The session must be loaded as soon as the connection is up.
    pub is_due: bool,
    /// Events since the load was requested; `None` if no load is pending.
    since: Option<Vec<ChatEvent>>,
}

impl Default for TranscriptReload {
    fn default() -> Self {
        Self { is_due: true, since: None }
    }
}

/// Facts about turns from the stored session.
#[derive(Debug, Default)]
pub struct StoredTurns {
    /// Number of the model's answers, by turn.
    answers: HashMap<String, usize>,
    /// Turns with a final answer.
    ended: HashSet<String>,
}

impl StoredTurns {
    fn from_messages(messages: &[SessionMessageView]) -> Self {
        let mut known = Self::default();
        for message in messages.iter().filter(|message| message.role == MessageRole::Assistant) {
            let turn = message.turn_id.to_string();
            if tool_calls(&message.parts).next().is_none() {
                known.ended.insert(turn.clone());
            }
            *known.answers.entry(turn).or_default() += 1;
        }
        known
    }

    pub fn has_ended(&self, turn: &str) -> bool {
        self.ended.contains(turn)
    }

    /// Returns whether an answer of a turn is stored. Unknown, and so false, without a step number.
    pub fn has_answer(&self, turn: &str, step: Option<u64>) -> bool {
        let stored = self.answers.get(turn).copied().unwrap_or_default();
        step.is_some_and(|step| step < stored as u64)
    }
}

/// Returns whether the event makes the loaded session outdated.
fn is_stale(event: &ChatEvent) -> bool {
    is_gap(event)
        || matches!(event, ChatEvent::Frame(frame) if frame.frame_kind() == Some(&FrameKind::Changed))
}

fn is_gap(event: &ChatEvent) -> bool {
    matches!(event, ChatEvent::Frame(frame) if frame.is_gap())
}

impl ChatState {
    /// Requests a load. Events from here on are deferred.
    pub(super) fn request_reload(&mut self) -> Vec<ChatEffect> {
        self.reload.is_due = false;
        match self.reload.since {
            Some(_) => Vec::new(),
            None => {
                self.reload.since = Some(Vec::new());
                vec![ChatEffect::Reload]
            }
        }
    }

    /// Defers an event while a load is pending; otherwise returns it.
    pub(super) fn defer_event(&mut self, event: ChatEvent) -> Option<ChatEvent> {
        let Some(since) = &mut self.reload.since else { return Some(event) };
        if is_gap(&event) {
            // Earlier frames belong to texts with a missing part.
            since.retain(|event| !matches!(event, ChatEvent::Frame(_)));
        }
        since.push(event);
        None
    }

    /// Applies the deferred events. An event that makes the session outdated came after the request, so the session
    /// is loaded again.
    pub(super) fn replay_deferred(&mut self) -> Vec<ChatEffect> {
        let waited = self.reload.since.take().unwrap_or_default();
        let (stale, rest): (Vec<ChatEvent>, Vec<ChatEvent>) = waited.into_iter().partition(is_stale);
        if stale.iter().any(is_gap) {
            self.discard_partial_texts();
        }
        let mut effects: Vec<ChatEffect> =
            rest.into_iter().flat_map(|event| self.handle_event(event)).collect();
        if !stale.is_empty() {
            effects.extend(self.request_reload());
        }
        effects
    }

    /// Discards growing texts after missed frames, because a part of them is missing.
    pub(super) fn discard_partial_texts(&mut self) {
        self.entries.retain(|entry| {
            !matches!(
                entry,
                TranscriptEntry::Answer { open: true, .. }
                    | TranscriptEntry::Reasoning { open: true, .. }
                    | TranscriptEntry::DelegateText { open: true, .. }
            )
        });
        for entry in &mut self.entries {
            match entry {
                TranscriptEntry::Tool(tool) if tool.state == ToolState::Running => tool.output.clear(),
                _ => {}
            }
        }
    }

    pub(super) fn load_conversation(
        &mut self,
        session: Option<&SessionView>,
        messages: &[SessionMessageView],
        approvals: &[ApprovalView],
    ) {
        self.stored_turns = StoredTurns::from_messages(messages);
        let mut rows = from_transcript(messages, &self.faces);
        let seen: HashSet<String> = self.entries.iter().filter_map(message_id).map(str::to_owned).collect();
        for entry in std::mem::take(&mut self.entries) {
            self.keep_local_entry(entry, &mut rows, &seen);
        }
        self.entries = rows.into_iter().map(|row| row.entry).collect();
        let running = session.and_then(|session| session.running_turn_id.as_ref());
        let running = running.filter(|turn| !self.has_ended(turn.as_str())).map(ToString::to_string);
        self.running = running;
        if let Some(session) = session {
            session.active_agent_id.as_str().clone_into(&mut self.agent);
            self.model = session.model.as_ref().map_or_else(|| self.model.clone(), ToString::to_string);
        }
        for one in approvals.iter().filter(|one| one.state == ApprovalState::Pending) {
            if one.session_key.as_str() == self.session {
                self.add_question(ApprovalCard::from_view(one));
            }
        }
    }

    /// Keeps entries that exist only locally: growing texts, other agents' texts, and messages that the server has
    /// not confirmed.
    fn keep_local_entry(
        &self,
        entry: TranscriptEntry,
        rows: &mut Vec<TranscriptRow>,
        seen: &HashSet<String>,
    ) {
        match &entry {
            TranscriptEntry::Answer { turn, step, open: true, .. }
            | TranscriptEntry::Reasoning { turn, step, open: true, .. }
                if !self.has_ended(turn) && !self.stored_turns.has_answer(turn, *step) =>
            {
                insert_row(rows, turn.clone(), entry);
            }
            TranscriptEntry::DelegateText { turn, run, .. } => {
                let is_this = |row: &TranscriptRow| matches!(&row.entry, TranscriptEntry::DelegateText { run: own, .. } if own == run);
                // A text of an earlier session must not appear in the next one.
                let is_here = !self.has_ended(turn) || rows.iter().any(|row| row.turn == *turn);
                if is_here && !rows.iter().any(is_this) {
                    insert_row(rows, turn.clone(), entry);
                }
            }
            TranscriptEntry::Tool(seen) => {
                let same = rows.iter_mut().find_map(|row| match &mut row.entry {
                    TranscriptEntry::Tool(tool) if tool.call_id == seen.call_id => Some(tool),
                    _ => None,
                });
                if let Some(tool) = same.filter(|tool| tool.state == ToolState::Running) {
                    tool.output.clone_from(&seen.output);
                }
            }
            TranscriptEntry::User(message)
                if message.id.is_none() && message.state != UserMessageState::Refused =>
            {
                match find_stored_copy(message, rows, seen) {
                    Some(stored) => stored.key.clone_from(&message.key),
                    None => rows.push(TranscriptRow { turn: String::new(), entry }),
                }
            }
            _ => {}
        }
    }
}

fn message_id(entry: &TranscriptEntry) -> Option<&str> {
    match entry {
        TranscriptEntry::User(message) => message.id.as_deref(),
        _ => None,
    }
}

/// Finds the stored copy of a local message whose confirmation has not arrived yet.
fn find_stored_copy<'a>(
    ours: &UserMessage,
    rows: &'a mut [TranscriptRow],
    seen: &HashSet<String>,
) -> Option<&'a mut UserMessage> {
    let is_new = |message: &UserMessage| {
        message.key.is_empty() && message.id.as_ref().is_some_and(|id| !seen.contains(id))
    };
    rows.iter_mut().find_map(|row| match &mut row.entry {
        TranscriptEntry::User(message) if is_new(message) && message.text.trim() == ours.text.trim() => {
            Some(message)
        }
        _ => None,
    })
}

/// Inserts an entry behind the stored entries of its turn.
fn insert_row(rows: &mut Vec<TranscriptRow>, turn: String, entry: TranscriptEntry) {
    let at = rows.iter().rposition(|row| row.turn == turn).map_or(rows.len(), |at| at + 1);
    rows.insert(at, TranscriptRow { turn, entry });
}
