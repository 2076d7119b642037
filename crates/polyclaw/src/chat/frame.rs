//! Applies live frames to the transcript. A repeated frame changes nothing.

use polyclaw_api::stream::StreamEvent;
use polyclaw_domain::frame::{DelegateSpeaker, FrameKind};
use polyclaw_domain::job::JobState;
use serde_json::Value;

use super::entry::{
    self, ApprovalCard, NoteTone, ToolCard, ToolState, TranscriptEntry, UserMessage, UserMessageState,
};
use super::state::{ChatEffect, ChatState};
use super::transcript::internal_author;
use crate::stream::StreamFrame;

/// Maximum bytes of one tool's output that are retained.
const RETAINED_OUTPUT_BYTES: usize = 16 * 1024;

impl ChatState {
    pub(super) fn apply_frame(&mut self, frame: &StreamFrame) -> Vec<ChatEffect> {
        if frame.is_gap() {
            self.discard_partial_texts();
            return self.request_reload();
        }
        match &frame.event {
            StreamEvent::Frame(frame) => self.apply_frame_kind(&frame.kind),
            StreamEvent::Opened(_) | StreamEvent::Notice(_) => Vec::new(),
        }
    }

    fn apply_frame_kind(&mut self, kind: &FrameKind) -> Vec<ChatEffect> {
        if kind.turn_id().is_some_and(|turn| self.has_ended(turn.as_str())) {
            return Vec::new();
        }
        match kind {
            FrameKind::Accepted { .. } => self.apply_accepted(kind),
            FrameKind::Started { turn_id, agent_id, .. } => self.apply_started(turn_id.as_str(), agent_id),
            FrameKind::Delta { turn_id, step, text } => self.apply_delta(turn_id.as_str(), *step, text),
            FrameKind::Reasoning { turn_id, step, text } => {
                self.apply_reasoning(turn_id.as_str(), *step, text);
            }
            FrameKind::Restarted { .. } => self.discard_streamed(),
            FrameKind::Retrying { model, attempt, .. } => {
                let text = format!("{model} did not answer. Retrying ({attempt})…");
                self.add_note(text, NoteTone::Plain);
            }
            FrameKind::Notice { text, .. } => self.add_note(text.clone(), NoteTone::Plain),
            FrameKind::DelegateStarted(speaker) => self.append_delegate_text(speaker, None),
            FrameKind::DelegateDelta { speaker, text } => self.append_delegate_text(speaker, Some(text)),
            FrameKind::DelegateEnded { speaker, text, .. } => self.complete_delegate_text(speaker, text),
            FrameKind::ToolStarted { turn_id, call_id, name, arguments } => {
                self.apply_tool_started(turn_id.as_str(), call_id, (name, arguments));
            }
            FrameKind::ToolOutput { call_id, text, .. } => self.apply_tool_output(call_id, text),
            FrameKind::ToolEnded { .. } => self.apply_tool_ended(kind),
            FrameKind::ApprovalAsked { approval_id, turn_id, tool, arguments, question, requested_by } => {
                self.add_question(ApprovalCard {
                    id: approval_id.to_string(),
                    turn: turn_id.to_string(),
                    requested_by: requested_by.clone(),
                    tool: tool.clone(),
                    arguments: entry::question_text(tool, question, arguments),
                    state: "pending".to_owned(),
                });
            }
            FrameKind::ApprovalDecided { approval_id, state } => {
                self.apply_decision(approval_id.as_str(), state);
            }
            FrameKind::Ended { .. } => self.apply_turn_ended(kind),
            FrameKind::Team { .. } => return self.team_changed(),
            // No frame carries this change, so the stored session is reloaded.
            FrameKind::Changed => return self.request_reload(),
            FrameKind::Unknown => {}
        }
        Vec::new()
    }

    fn apply_accepted(&mut self, frame: &FrameKind) {
        let FrameKind::Accepted { message_id, turn_id, origin, text, waiting } = frame else { return };
        let (id, turn) = (message_id.as_str(), turn_id.as_str());
        if let Some(origin) = internal_author(origin) {
            return self.add_internal_message(id, origin, text);
        }
        let state = if *waiting { UserMessageState::Waiting } else { UserMessageState::Accepted };
        if self
            .find_user_message(|message| {
                message.id.as_deref() == Some(id) && message.state != UserMessageState::Sending
            })
            .is_some()
        {
            return;
        }
        let ours = |message: &UserMessage| {
            message.id.as_deref() == Some(id)
                || (message.id.is_none()
                    && message.state == UserMessageState::Sending
                    && message.text.trim() == text.trim())
        };
        if self.find_user_message(ours).is_none() {
            let message = UserMessage { text: text.clone(), key: String::new(), id: None, turn: None, state };
            self.entries.push(TranscriptEntry::User(message));
        }
        let newest = |message: &UserMessage| ours(message) || (message.id.is_none() && message.text == *text);
        if let Some(message) = self.find_user_message(newest) {
            (message.id, message.turn, message.state) = (Some(id.to_owned()), Some(turn.to_owned()), state);
        }
    }

    fn add_internal_message(&mut self, id: &str, origin: String, text: &str) {
        let is_known = |entry: &TranscriptEntry| matches!(entry, TranscriptEntry::InternalMessage { id: known, .. } if known == id);
        if !self.entries.iter().any(is_known) {
            self.insert_entry(TranscriptEntry::InternalMessage {
                id: id.to_owned(),
                origin,
                text: text.to_owned(),
            });
        }
    }

    fn apply_started(&mut self, turn: &str, agent: &str) {
        self.running = Some(turn.to_owned());
        agent.clone_into(&mut self.agent);
        for entry in &mut self.entries {
            if let TranscriptEntry::User(message) = entry
                && message.turn.as_deref() == Some(turn)
            {
                message.state = UserMessageState::Accepted;
            }
        }
    }

    fn apply_delta(&mut self, turn: &str, step: usize, piece: &str) {
        let Some(step) = self.new_piece(turn, step) else { return };
        let open = self.entries.iter_mut().rev().find_map(|entry| match entry {
            TranscriptEntry::Answer { turn: own, step: at, text, open: true }
                if own == turn && *at == step =>
            {
                Some(text)
            }
            _ => None,
        });
        if let Some(text) = open {
            return text.push_str(piece);
        }
        self.close_open_texts(turn);
        self.insert_entry(TranscriptEntry::Answer {
            turn: turn.to_owned(),
            step,
            text: piece.to_owned(),
            open: true,
        });
    }

    fn apply_reasoning(&mut self, turn: &str, step: usize, piece: &str) {
        let Some(step) = self.new_piece(turn, step) else { return };
        let open = self.entries.iter_mut().rev().find_map(|entry| match entry {
            TranscriptEntry::Reasoning { turn: own, step: at, text, open: true }
                if own == turn && *at == step =>
            {
                Some(text)
            }
            _ => None,
        });
        if let Some(text) = open {
            return text.push_str(piece);
        }
        self.insert_entry(TranscriptEntry::Reasoning {
            turn: turn.to_owned(),
            step,
            text: piece.to_owned(),
            open: true,
        });
    }

    /// Returns the step of a new piece of an answer, or `None` if the stored session already contains the piece.
    fn new_piece(&mut self, turn: &str, step: usize) -> Option<Option<u64>> {
        let step = Some(step as u64);
        if self.stored_turns.has_answer(turn, step) {
            return None;
        }
        self.running = Some(turn.to_owned());
        Some(step)
    }

    /// Appends text of another agent. Without text the agent starts over, and its earlier text is discarded.
    fn append_delegate_text(&mut self, speaker: &DelegateSpeaker, piece: Option<&str>) {
        let run = speaker.run_id.as_str();
        if self.is_result_stored(run) {
            return;
        }
        let open = self.entries.iter_mut().rev().find_map(|entry| match entry {
            TranscriptEntry::DelegateText { run: own, text, open: true, .. } if own == run => Some(text),
            _ => None,
        });
        match (open, piece) {
            (Some(text), Some(piece)) => text.push_str(piece),
            (Some(text), None) => text.clear(),
            (None, piece) => {
                // An agent created since the chat started gets the server's name for it, now and after a reload.
                let name = self.faces.entry(speaker.agent_id.clone()).or_insert_with(|| speaker.name.clone());
                let (name, text) = (name.clone(), piece.unwrap_or_default().to_owned());
                self.insert_entry(TranscriptEntry::DelegateText {
                    turn: speaker.turn_id.to_string(),
                    run: run.to_owned(),
                    name,
                    text,
                    open: true,
                    is_stored: false,
                });
            }
        }
    }

    /// Returns whether a run's result is in the stored session, so that no more text follows.
    fn is_result_stored(&self, run: &str) -> bool {
        let is_it = |entry: &TranscriptEntry| matches!(entry, TranscriptEntry::DelegateText { run: own, is_stored: true, .. } if own == run);
        self.entries.iter().any(is_it)
    }

    /// Replaces the streamed text with the agent's complete text.
    fn complete_delegate_text(&mut self, speaker: &DelegateSpeaker, whole: &str) {
        self.append_delegate_text(speaker, None);
        self.append_delegate_text(speaker, Some(whole));
        for entry in &mut self.entries {
            match entry {
                TranscriptEntry::DelegateText { run, open, .. } if run == speaker.run_id.as_str() => {
                    *open = false;
                }
                _ => {}
            }
        }
    }

    /// Inserts an entry of the running turn before the messages that wait for it.
    fn insert_entry(&mut self, entry: TranscriptEntry) {
        let waits = |entry: &&TranscriptEntry| matches!(entry, TranscriptEntry::User(message) if matches!(message.state, UserMessageState::Waiting | UserMessageState::Sending));
        let waiting = self.entries.iter().rev().take_while(waits).count();
        self.entries.insert(self.entries.len() - waiting, entry);
    }

    /// Discards the text streamed since the last step, because a fallback model starts over.
    fn discard_streamed(&mut self) {
        self.entries.retain(|entry| {
            !matches!(
                entry,
                TranscriptEntry::Answer { open: true, .. } | TranscriptEntry::Reasoning { open: true, .. }
            )
        });
    }

    /// Closes the step's texts; further text becomes a new entry.
    fn close_open_texts(&mut self, turn: &str) {
        for entry in &mut self.entries {
            match entry {
                TranscriptEntry::Answer { turn: own, open, .. }
                | TranscriptEntry::Reasoning { turn: own, open, .. }
                    if own == turn =>
                {
                    *open = false;
                }
                _ => {}
            }
        }
    }

    fn apply_tool_started(&mut self, turn: &str, call: &str, (name, arguments): (&str, &Value)) {
        self.close_open_texts(turn);
        if self.find_tool(call).is_some() {
            return;
        }
        self.insert_entry(TranscriptEntry::Tool(ToolCard {
            call_id: call.to_owned(),
            name: name.to_owned(),
            arguments: entry::arguments_line(arguments),
            output: String::new(),
            sandbox: None,
            state: ToolState::Running,
        }));
    }

    fn apply_tool_output(&mut self, call: &str, piece: &str) {
        let Some(tool) = self.find_tool(call).filter(|tool| tool.state == ToolState::Running) else { return };
        tool.output.push_str(piece);
        if tool.output.len() > RETAINED_OUTPUT_BYTES {
            let cut = tool.output.len() - RETAINED_OUTPUT_BYTES / 2;
            let start = (cut..tool.output.len()).find(|at| tool.output.is_char_boundary(*at)).unwrap_or(cut);
            tool.output.replace_range(..start, "");
        }
    }

    fn apply_tool_ended(&mut self, frame: &FrameKind) {
        let FrameKind::ToolEnded { turn_id, call_id, name, is_error, text, sandbox } = frame else { return };
        // A call that was rejected before it started has no arguments.
        self.apply_tool_started(turn_id.as_str(), call_id, (name, &Value::Null));
        if let Some(tool) = self.find_tool(call_id) {
            let state = if *is_error { ToolState::Failed } else { ToolState::Ok };
            (tool.output, tool.state) = (text.clone(), state);
            tool.sandbox = sandbox.as_ref().and_then(entry::describe_sandbox);
        }
    }

    fn find_tool(&mut self, call: &str) -> Option<&mut ToolCard> {
        self.entries.iter_mut().rev().find_map(|entry| match entry {
            TranscriptEntry::Tool(tool) if tool.call_id == call => Some(tool),
            _ => None,
        })
    }

    pub(super) fn add_question(&mut self, question: ApprovalCard) {
        let is_known = |entry: &TranscriptEntry| matches!(entry, TranscriptEntry::Approval(known) if known.id == question.id);
        if !self.entries.iter().any(is_known) {
            self.insert_entry(TranscriptEntry::Approval(question));
        }
    }

    fn apply_decision(&mut self, id: &str, state: &str) {
        for entry in &mut self.entries {
            if let TranscriptEntry::Approval(question) = entry
                && question.id == id
            {
                state.clone_into(&mut question.state);
            }
        }
    }

    /// Closes the turn's open approval requests.
    fn close_questions(&mut self, turn: &str) {
        for entry in &mut self.entries {
            match entry {
                TranscriptEntry::Approval(question) if question.turn == turn && question.is_open() => {
                    "no longer needed: the turn has ended".clone_into(&mut question.state);
                }
                _ => {}
            }
        }
    }

    fn apply_turn_ended(&mut self, frame: &FrameKind) {
        let FrameKind::Ended { turn_id, state, text, model, truncated, .. } = frame else { return };
        let turn = turn_id.as_str();
        self.remember_end(turn);
        if self.running.as_deref() == Some(turn) {
            self.running = None;
        }
        if let Some(model) = model {
            model.clone_into(&mut self.model);
        }
        self.close_questions(turn);
        match state {
            JobState::Done => {
                self.set_answer(turn, text.clone());
                if *truncated {
                    self.insert_note(entry::TRUNCATED_NOTE.to_owned(), NoteTone::Plain);
                }
            }
            JobState::Failed => {
                let text = text.clone().unwrap_or_else(|| "The turn failed.".to_owned());
                self.insert_note(text, NoteTone::Bad);
            }
            JobState::Cancelled => self.insert_note("Stopped.".to_owned(), NoteTone::Plain),
            JobState::Steered => {
                self.insert_note("Paused for your newer message.".to_owned(), NoteTone::Plain);
            }
            JobState::Queued | JobState::Running => {}
        }
        self.close_open_texts(turn);
    }

    fn insert_note(&mut self, text: String, tone: NoteTone) {
        self.insert_entry(TranscriptEntry::Note { text, tone });
    }

    /// Sets the stored text as the answer, whatever part of it streamed.
    fn set_answer(&mut self, turn: &str, answer: Option<String>) {
        let Some(answer) = answer.filter(|answer| !answer.trim().is_empty()) else { return };
        let streamed = self.entries.iter_mut().rev().find_map(|entry| match entry {
            TranscriptEntry::Answer { turn: own, text, open: true, .. } if own == turn => Some(text),
            _ => None,
        });
        match streamed {
            Some(text) => *text = answer,
            None => self.insert_entry(TranscriptEntry::Answer {
                turn: turn.to_owned(),
                step: None,
                text: answer,
                open: false,
            }),
        }
    }
}
