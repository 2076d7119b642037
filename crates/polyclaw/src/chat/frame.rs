//! Applies live frames to the transcript. A repeated frame changes nothing.

use serde_json::Value;

use super::entry::{
    self, ApprovalCard, NoteTone, ToolCard, ToolState, TranscriptEntry, UserMessage, UserMessageState,
};
use super::reload::SESSION_CHANGED_KIND;
use super::state::{ChatEffect, ChatState};
use super::stream_position::REPLAY_GAP_KIND;
use super::transcript::internal_author;
use crate::stream::StreamFrame;

/// Maximum bytes of one tool's output that are retained.
const RETAINED_OUTPUT_BYTES: usize = 16 * 1024;

fn retry_text(data: &Value) -> String {
    let model = data["model"].as_str().unwrap_or("the model");
    format!("{model} did not answer. Retrying ({})…", data["attempt"])
}

impl ChatState {
    pub(super) fn apply_frame(&mut self, frame: &StreamFrame) -> Vec<ChatEffect> {
        let data = &frame.data;
        let turn = data["turn_id"].as_str().unwrap_or_default();
        if !turn.is_empty() && self.has_ended(turn) {
            return Vec::new();
        }
        match frame.kind.as_str() {
            "message.accepted" => self.apply_accepted(data, turn),
            "turn.started" => self.apply_started(data, turn),
            "turn.delta" => self.apply_delta(data, turn),
            "turn.reasoning" => self.apply_reasoning(data, turn),
            "turn.restarted" => self.discard_streamed(),
            "turn.retrying" => self.add_note(retry_text(data), NoteTone::Plain),
            "turn.notice" => {
                self.add_note(data["text"].as_str().unwrap_or_default().to_owned(), NoteTone::Plain);
            }
            "delegate.started" => self.append_delegate_text(data, None),
            "delegate.delta" => self.append_delegate_text(data, data["text"].as_str()),
            "delegate.ended" => self.complete_delegate_text(data),
            "tool.started" => self.apply_tool_started(data),
            "tool.output" => self.apply_tool_output(data),
            "tool.ended" => self.apply_tool_ended(data),
            "approval.requested" => self.add_question(data["approval_id"].as_str().unwrap_or_default(), data),
            "approval.decided" => self.apply_decision(data),
            "turn.ended" => self.apply_turn_ended(data, turn),
            "team.changed" => return self.team_changed(),
            // No frame carries this change, so the stored session is reloaded.
            SESSION_CHANGED_KIND => return self.request_reload(),
            REPLAY_GAP_KIND => {
                self.discard_partial_texts();
                return self.request_reload();
            }
            _ => {}
        }
        Vec::new()
    }

    fn apply_accepted(&mut self, data: &Value, turn: &str) {
        let id = data["message_id"].as_str().unwrap_or_default();
        let text = data["text"].as_str().unwrap_or_default();
        if let Some(origin) = internal_author(data) {
            return self.add_internal_message(id, origin, text);
        }
        let state =
            if data["waiting"] == true { UserMessageState::Waiting } else { UserMessageState::Accepted };
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
            let message =
                UserMessage { text: text.to_owned(), key: String::new(), id: None, turn: None, state };
            self.entries.push(TranscriptEntry::User(message));
        }
        let newest = |message: &UserMessage| ours(message) || (message.id.is_none() && message.text == text);
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

    fn apply_started(&mut self, data: &Value, turn: &str) {
        self.running = Some(turn.to_owned());
        if let Some(agent) = data["agent_id"].as_str() {
            agent.clone_into(&mut self.agent);
        }
        for entry in &mut self.entries {
            if let TranscriptEntry::User(message) = entry
                && message.turn.as_deref() == Some(turn)
            {
                message.state = UserMessageState::Accepted;
            }
        }
    }

    fn apply_delta(&mut self, data: &Value, turn: &str) {
        let Some((step, piece)) = self.new_piece(data, turn) else { return };
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

    fn apply_reasoning(&mut self, data: &Value, turn: &str) {
        let Some((step, piece)) = self.new_piece(data, turn) else { return };
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

    /// Returns a new piece of an answer with its step, or `None` if the stored session already contains it.
    fn new_piece<'a>(&mut self, data: &'a Value, turn: &str) -> Option<(Option<u64>, &'a str)> {
        let step = data["step"].as_u64();
        if self.stored_turns.has_answer(turn, step) {
            return None;
        }
        self.running = Some(turn.to_owned());
        Some((step, data["text"].as_str().unwrap_or_default()))
    }

    /// Appends text of another agent. Without text the agent starts over, and its earlier text is discarded.
    fn append_delegate_text(&mut self, data: &Value, piece: Option<&str>) {
        let run = data["run_id"].as_str().unwrap_or_default();
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
                let agent = data["agent_id"].as_str().unwrap_or_default().to_owned();
                let reply = data["name"].as_str().unwrap_or_default();
                // An agent created since the chat started gets the server's name for it, now and after a reload.
                let name = self.faces.entry(agent).or_insert_with(|| reply.to_owned()).clone();
                let text = piece.unwrap_or_default().to_owned();
                let turn = data["turn_id"].as_str().unwrap_or_default().to_owned();
                self.insert_entry(TranscriptEntry::DelegateText {
                    turn,
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
    fn complete_delegate_text(&mut self, data: &Value) {
        self.append_delegate_text(data, None);
        self.append_delegate_text(data, data["text"].as_str());
        for entry in &mut self.entries {
            match entry {
                TranscriptEntry::DelegateText { run, open, .. } if data["run_id"] == **run => *open = false,
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

    fn apply_tool_started(&mut self, data: &Value) {
        self.close_open_texts(data["turn_id"].as_str().unwrap_or_default());
        if self.find_tool(data).is_some() {
            return;
        }
        self.insert_entry(TranscriptEntry::Tool(ToolCard {
            call_id: data["call_id"].as_str().unwrap_or_default().to_owned(),
            name: data["name"].as_str().unwrap_or_default().to_owned(),
            arguments: entry::arguments_line(&data["arguments"]),
            output: String::new(),
            sandbox: None,
            state: ToolState::Running,
        }));
    }

    fn apply_tool_output(&mut self, data: &Value) {
        let piece = data["text"].as_str().unwrap_or_default().to_owned();
        let Some(tool) = self.find_tool(data).filter(|tool| tool.state == ToolState::Running) else { return };
        tool.output.push_str(&piece);
        if tool.output.len() > RETAINED_OUTPUT_BYTES {
            let cut = tool.output.len() - RETAINED_OUTPUT_BYTES / 2;
            let start = (cut..tool.output.len()).find(|at| tool.output.is_char_boundary(*at)).unwrap_or(cut);
            tool.output.replace_range(..start, "");
        }
    }

    fn apply_tool_ended(&mut self, data: &Value) {
        self.apply_tool_started(data);
        let text = data["text"].as_str().unwrap_or_default().to_owned();
        let state = if data["is_error"] == true { ToolState::Failed } else { ToolState::Ok };
        if let Some(tool) = self.find_tool(data) {
            (tool.output, tool.state) = (text, state);
            tool.sandbox = entry::describe_sandbox(&data["sandbox"]);
        }
    }

    fn find_tool(&mut self, data: &Value) -> Option<&mut ToolCard> {
        let wanted = data["call_id"].as_str()?;
        self.entries.iter_mut().rev().find_map(|entry| match entry {
            TranscriptEntry::Tool(tool) if tool.call_id == wanted => Some(tool),
            _ => None,
        })
    }

    pub(super) fn add_question(&mut self, id: &str, data: &Value) {
        if self
            .entries
            .iter()
            .any(|entry| matches!(entry, TranscriptEntry::Approval(known) if known.id == id))
        {
            return;
        }
        self.insert_entry(TranscriptEntry::Approval(ApprovalCard {
            id: id.to_owned(),
            turn: data["turn_id"].as_str().unwrap_or_default().to_owned(),
            requested_by: data["requested_by"].as_str().unwrap_or_default().to_owned(),
            tool: data["tool"].as_str().unwrap_or_default().to_owned(),
            arguments: entry::question_text(data),
            state: "pending".to_owned(),
        }));
    }

    fn apply_decision(&mut self, data: &Value) {
        for entry in &mut self.entries {
            if let TranscriptEntry::Approval(question) = entry
                && data["approval_id"] == *question.id
            {
                data["state"].as_str().unwrap_or("decided").clone_into(&mut question.state);
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

    fn apply_turn_ended(&mut self, data: &Value, turn: &str) {
        self.remember_end(turn);
        if self.running.as_deref() == Some(turn) {
            self.running = None;
        }
        if let Some(model) = data["model"].as_str() {
            model.clone_into(&mut self.model);
        }
        self.close_questions(turn);
        let text = data["text"].as_str().map(str::to_owned);
        match data["state"].as_str() {
            Some("done") => {
                self.set_answer(turn, text);
                if data["truncated"] == true {
                    self.insert_note(entry::TRUNCATED_NOTE.to_owned(), NoteTone::Plain);
                }
            }
            Some("failed") => {
                self.insert_note(text.unwrap_or_else(|| "The turn failed.".to_owned()), NoteTone::Bad);
            }
            Some("cancelled") => self.insert_note("Stopped.".to_owned(), NoteTone::Plain),
            Some("steered") => {
                self.insert_note("Paused for your newer message.".to_owned(), NoteTone::Plain);
            }
            _ => {}
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
