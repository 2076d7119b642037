//! How live frames change the transcript. A frame that repeats what is there already changes nothing.

use serde_json::Value;

use super::entry::{self, Entry, Question, Said, SaidState, Tone, Tool, ToolState};
use super::model::{Effect, Model};
use super::place::GAP;
use super::reload::CHANGED;
use super::transcript::told_by;
use crate::stream::Frame;

/// Output of one tool that is kept for its card.
const KEPT_OUTPUT: usize = 16 * 1024;

fn retrying(data: &Value) -> String {
    let model = data["model"].as_str().unwrap_or("the model");
    format!("{model} did not answer. Retrying ({})…", data["attempt"])
}

impl Model {
    pub(super) fn apply(&mut self, frame: &Frame) -> Vec<Effect> {
        let data = &frame.data;
        let turn = data["turn_id"].as_str().unwrap_or_default();
        if !turn.is_empty() && self.has_ended(turn) {
            return Vec::new();
        }
        match frame.kind.as_str() {
            "message.accepted" => self.accepted(data, turn),
            "turn.started" => self.started(data, turn),
            "turn.delta" => self.delta(data, turn),
            "turn.reasoning" => self.reason(data, turn),
            "turn.restarted" => self.restart(),
            "turn.retrying" => self.note(retrying(data), Tone::Plain),
            "turn.notice" => {
                self.note(data["text"].as_str().unwrap_or_default().to_owned(), Tone::Plain);
            }
            "delegate.started" => self.speak(data, None),
            "delegate.delta" => self.speak(data, data["text"].as_str()),
            "delegate.ended" => self.spoken(data),
            "tool.started" => self.tool_started(data),
            "tool.output" => self.tool_output(data),
            "tool.ended" => self.tool_ended(data),
            "approval.asked" => self.ask(data["approval_id"].as_str().unwrap_or_default(), data),
            "approval.decided" => self.decided(data),
            "turn.ended" => self.turn_ended(data, turn),
            "team.changed" => return self.team_changed(),
            // Something happened that no frame tells: the stored conversation says what.
            CHANGED => return self.read_again(),
            GAP => {
                self.forget_growing();
                return self.read_again();
            }
            _ => {}
        }
        Vec::new()
    }

    fn accepted(&mut self, data: &Value, turn: &str) {
        let id = data["message_id"].as_str().unwrap_or_default();
        let text = data["text"].as_str().unwrap_or_default();
        if let Some(origin) = told_by(data) {
            return self.told(id, origin, text);
        }
        let state = if data["waiting"] == true { SaidState::Waiting } else { SaidState::Taken };
        if self.said(|said| said.id.as_deref() == Some(id) && said.state != SaidState::Sending).is_some() {
            return;
        }
        let ours = |said: &Said| {
            said.id.as_deref() == Some(id)
                || (said.id.is_none() && said.state == SaidState::Sending && said.text.trim() == text.trim())
        };
        if self.said(ours).is_none() {
            let said = Said { text: text.to_owned(), key: String::new(), id: None, turn: None, state };
            self.entries.push(Entry::User(said));
        }
        let newest = |said: &Said| ours(said) || (said.id.is_none() && said.text == text);
        if let Some(said) = self.said(newest) {
            (said.id, said.turn, said.state) = (Some(id.to_owned()), Some(turn.to_owned()), state);
        }
    }

    fn told(&mut self, id: &str, origin: String, text: &str) {
        let is_known = |entry: &Entry| matches!(entry, Entry::Told { id: known, .. } if known == id);
        if !self.entries.iter().any(is_known) {
            self.put(Entry::Told { id: id.to_owned(), origin, text: text.to_owned() });
        }
    }

    fn started(&mut self, data: &Value, turn: &str) {
        self.running = Some(turn.to_owned());
        if let Some(agent) = data["agent_id"].as_str() {
            agent.clone_into(&mut self.agent);
        }
        for entry in &mut self.entries {
            if let Entry::User(said) = entry
                && said.turn.as_deref() == Some(turn)
            {
                said.state = SaidState::Taken;
            }
        }
    }

    fn delta(&mut self, data: &Value, turn: &str) {
        let Some((step, piece)) = self.piece(data, turn) else { return };
        let open = self.entries.iter_mut().rev().find_map(|entry| match entry {
            Entry::Answer { turn: own, step: at, text, open: true } if own == turn && *at == step => {
                Some(text)
            }
            _ => None,
        });
        if let Some(text) = open {
            return text.push_str(piece);
        }
        self.close(turn);
        self.put(Entry::Answer { turn: turn.to_owned(), step, text: piece.to_owned(), open: true });
    }

    fn reason(&mut self, data: &Value, turn: &str) {
        let Some((step, piece)) = self.piece(data, turn) else { return };
        let open = self.entries.iter_mut().rev().find_map(|entry| match entry {
            Entry::Reasoning { turn: own, step: at, text, open: true } if own == turn && *at == step => {
                Some(text)
            }
            _ => None,
        });
        if let Some(text) = open {
            return text.push_str(piece);
        }
        self.put(Entry::Reasoning { turn: turn.to_owned(), step, text: piece.to_owned(), open: true });
    }

    /// A piece of an answer that the stored conversation did not have yet, and which answer of the turn it is of.
    fn piece<'a>(&mut self, data: &'a Value, turn: &str) -> Option<(Option<u64>, &'a str)> {
        let step = data["step"].as_u64();
        if self.known.has_answer(turn, step) {
            return None;
        }
        self.running = Some(turn.to_owned());
        Some((step, data["text"].as_str().unwrap_or_default()))
    }

    /// Another agent says more here; or begins, and what it said before no longer counts.
    fn speak(&mut self, data: &Value, piece: Option<&str>) {
        let run = data["run_id"].as_str().unwrap_or_default();
        if self.is_told(run) {
            return;
        }
        let open = self.entries.iter_mut().rev().find_map(|entry| match entry {
            Entry::Speech { run: own, text, open: true, .. } if own == run => Some(text),
            _ => None,
        });
        match (open, piece) {
            (Some(text), Some(piece)) => text.push_str(piece),
            (Some(text), None) => text.clear(),
            (None, piece) => {
                let agent = data["agent_id"].as_str().unwrap_or_default().to_owned();
                let told = data["name"].as_str().unwrap_or_default();
                // One that is new since the chat began is named as the server names it, now and after a reload.
                let name = self.faces.entry(agent).or_insert_with(|| told.to_owned()).clone();
                let text = piece.unwrap_or_default().to_owned();
                let turn = data["turn_id"].as_str().unwrap_or_default().to_owned();
                self.put(Entry::Speech {
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

    /// Whether the result of a run is in the conversation as it is stored: nothing more comes of it.
    fn is_told(&self, run: &str) -> bool {
        let is_it =
            |entry: &Entry| matches!(entry, Entry::Speech { run: own, is_stored: true, .. } if own == run);
        self.entries.iter().any(is_it)
    }

    /// The whole of what it said, whatever part of it streamed.
    fn spoken(&mut self, data: &Value) {
        self.speak(data, None);
        self.speak(data, data["text"].as_str());
        for entry in &mut self.entries {
            match entry {
                Entry::Speech { run, open, .. } if data["run_id"] == **run => *open = false,
                _ => {}
            }
        }
    }

    /// What the running turn does stands before the messages that wait for it.
    fn put(&mut self, entry: Entry) {
        let waits = |entry: &&Entry| matches!(entry, Entry::User(said) if matches!(said.state, SaidState::Waiting | SaidState::Sending));
        let waiting = self.entries.iter().rev().take_while(waits).count();
        self.entries.insert(self.entries.len() - waiting, entry);
    }

    /// A fallback model starts over: what streamed since the last step no longer counts.
    fn restart(&mut self) {
        self.entries.retain(|entry| {
            !matches!(entry, Entry::Answer { open: true, .. } | Entry::Reasoning { open: true, .. })
        });
    }

    /// A step is over: what follows is another piece of text.
    fn close(&mut self, turn: &str) {
        for entry in &mut self.entries {
            match entry {
                Entry::Answer { turn: own, open, .. } | Entry::Reasoning { turn: own, open, .. }
                    if own == turn =>
                {
                    *open = false;
                }
                _ => {}
            }
        }
    }

    fn tool_started(&mut self, data: &Value) {
        self.close(data["turn_id"].as_str().unwrap_or_default());
        if self.tool(data).is_some() {
            return;
        }
        self.put(Entry::Tool(Tool {
            call_id: data["call_id"].as_str().unwrap_or_default().to_owned(),
            name: data["name"].as_str().unwrap_or_default().to_owned(),
            arguments: entry::arguments(&data["arguments"]),
            output: String::new(),
            sandbox: None,
            state: ToolState::Running,
        }));
    }

    fn tool_output(&mut self, data: &Value) {
        let piece = data["text"].as_str().unwrap_or_default().to_owned();
        let Some(tool) = self.tool(data).filter(|tool| tool.state == ToolState::Running) else { return };
        tool.output.push_str(&piece);
        if tool.output.len() > KEPT_OUTPUT {
            let cut = tool.output.len() - KEPT_OUTPUT / 2;
            let start = (cut..tool.output.len()).find(|at| tool.output.is_char_boundary(*at)).unwrap_or(cut);
            tool.output.replace_range(..start, "");
        }
    }

    fn tool_ended(&mut self, data: &Value) {
        self.tool_started(data);
        let text = data["text"].as_str().unwrap_or_default().to_owned();
        let state = if data["is_error"] == true { ToolState::Failed } else { ToolState::Ok };
        if let Some(tool) = self.tool(data) {
            (tool.output, tool.state) = (text, state);
            tool.sandbox = entry::confinement(&data["sandbox"]);
        }
    }

    fn tool(&mut self, data: &Value) -> Option<&mut Tool> {
        let wanted = data["call_id"].as_str()?;
        self.entries.iter_mut().rev().find_map(|entry| match entry {
            Entry::Tool(tool) if tool.call_id == wanted => Some(tool),
            _ => None,
        })
    }

    pub(super) fn ask(&mut self, id: &str, data: &Value) {
        if self.entries.iter().any(|entry| matches!(entry, Entry::Approval(known) if known.id == id)) {
            return;
        }
        self.put(Entry::Approval(Question {
            id: id.to_owned(),
            turn: data["turn_id"].as_str().unwrap_or_default().to_owned(),
            asked_by: data["asked_by"].as_str().unwrap_or_default().to_owned(),
            tool: data["tool"].as_str().unwrap_or_default().to_owned(),
            arguments: entry::asked(data),
            state: "pending".to_owned(),
        }));
    }

    fn decided(&mut self, data: &Value) {
        for entry in &mut self.entries {
            if let Entry::Approval(question) = entry
                && data["approval_id"] == *question.id
            {
                data["state"].as_str().unwrap_or("decided").clone_into(&mut question.state);
            }
        }
    }

    /// Nothing waits for an answer any more.
    fn close_questions(&mut self, turn: &str) {
        for entry in &mut self.entries {
            match entry {
                Entry::Approval(question) if question.turn == turn && question.is_open() => {
                    "no longer asked: the turn is over".clone_into(&mut question.state);
                }
                _ => {}
            }
        }
    }

    fn turn_ended(&mut self, data: &Value, turn: &str) {
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
                self.answered(turn, text);
                if data["truncated"] == true {
                    self.tell(entry::CUT.to_owned(), Tone::Plain);
                }
            }
            Some("failed") => self.tell(text.unwrap_or_else(|| "The turn failed.".to_owned()), Tone::Bad),
            Some("cancelled") => self.tell("Stopped.".to_owned(), Tone::Plain),
            Some("steered") => self.tell("Set aside for your newer message.".to_owned(), Tone::Plain),
            _ => {}
        }
        self.close(turn);
    }

    fn tell(&mut self, text: String, tone: Tone) {
        self.put(Entry::Note { text, tone });
    }

    /// The stored text is the answer, whatever part of it streamed.
    fn answered(&mut self, turn: &str, answer: Option<String>) {
        let Some(answer) = answer.filter(|answer| !answer.trim().is_empty()) else { return };
        let streamed = self.entries.iter_mut().rev().find_map(|entry| match entry {
            Entry::Answer { turn: own, text, open: true, .. } if own == turn => Some(text),
            _ => None,
        });
        match streamed {
            Some(text) => *text = answer,
            None => self.put(Entry::Answer { turn: turn.to_owned(), step: None, text: answer, open: false }),
        }
    }
}
