//! Prints an answer as it streams, and asks for approvals on the terminal.

use std::io::Write;

use reqwest::Response;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::client::{ApiClient, encode_segment};
use crate::output::{CliOutput, cell_text, visible_line};
use crate::stream::{FrameStream, StreamFrame};

/// The terminal output of a turn and of the turns that resumed its task.
pub struct LiveTurn<'a> {
    client: &'a ApiClient,
    turn: String,
    /// Text shown since the last step.
    text: String,
    /// Text of another agent shown while it streams.
    speech: String,
    /// ID of the unanswered approval request on the terminal.
    question: Option<String>,
    output: CliOutput,
}

impl<'a> LiveTurn<'a> {
    pub fn new(client: &'a ApiClient, turn: String, output: CliOutput) -> Self {
        Self { client, turn, text: String::new(), speech: String::new(), question: None, output }
    }

    /// Returns when the turn has ended or the stream broke.
    pub async fn follow_stream(&mut self, stream: Response) {
        let mut frames = FrameStream::new(stream);
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        loop {
            // Waits for frames as well, because a request can close without an answer.
            tokio::select! {
                frame = frames.next() => match frame {
                    Some(frame) if self.apply_frame(&frame) => {}
                    _ => return,
                },
                line = lines.next_line(), if self.question.is_some() => {
                    self.send_decision(&line.ok().flatten().unwrap_or_default()).await;
                }
            }
        }
    }

    /// Applies a frame. Returns whether more follows.
    fn apply_frame(&mut self, frame: &StreamFrame) -> bool {
        self.follow_resumed_turn(&frame.data);
        if frame.kind == "approval.decided" && frame.data["approval_id"].as_str() == self.question.as_deref()
        {
            self.close_question("no longer needed");
        }
        if frame.data["turn_id"].as_str() != Some(&self.turn) {
            return true;
        }
        match frame.kind.as_str() {
            "turn.delta" => self.print_text(frame.data["text"].as_str().unwrap_or_default()),
            "turn.restarted" => self.restart_text(),
            "tool.started" if !self.text.is_empty() => self.restart_text(),
            "delegate.delta" => self.print_delegate_text(&frame.data),
            "delegate.started" if !self.speech.is_empty() => self.end_delegate_text(),
            "delegate.ended" => self.finish_delegate_text(&frame.data),
            "approval.requested" => self.print_question(frame),
            "turn.ended" if frame.data["state"] != "steered" => {
                self.close_question("the turn has ended");
                return false;
            }
            _ => {}
        }
        true
    }

    /// Switches to a later turn if it resumes the task of this one.
    fn follow_resumed_turn(&mut self, data: &Value) {
        let resumed = data["resumes"].as_array().into_iter().flatten();
        if resumed.clone().any(|turn| *turn == *self.turn) {
            self.turn = data["turn_id"].as_str().unwrap_or_default().to_owned();
        }
    }

    fn print_text(&mut self, text: &str) {
        self.text += text;
        let _ = self.output.print_piece(&visible_line(text));
    }

    /// Prints another agent's text under its name.
    fn print_delegate_text(&mut self, data: &Value) {
        let text = data["text"].as_str().unwrap_or_default();
        if self.speech.is_empty() && !text.is_empty() {
            let _ = self.output.print_piece(&format!("{}: ", cell_text(&data["name"])));
        }
        self.speech += text;
        let _ = self.output.print_piece(&visible_line(text));
    }

    /// Prints the part of another agent's text that did not stream, and ends it.
    fn finish_delegate_text(&mut self, data: &Value) {
        let whole = data["text"].as_str().unwrap_or_default();
        let rest = whole.strip_prefix(self.speech.as_str()).map(str::to_owned);
        if rest.is_none() {
            self.end_delegate_text();
        }
        let (name, text) = (&data["name"], rest.unwrap_or_else(|| whole.to_owned()));
        self.print_delegate_text(&serde_json::json!({ "name": name, "text": text }));
        self.end_delegate_text();
    }

    fn end_delegate_text(&mut self) {
        self.speech.clear();
        let _ = self.output.print_piece("\n\n");
    }

    /// Starts a new line, because the shown text is not the final answer.
    fn restart_text(&mut self) {
        self.text.clear();
        let _ = self.output.print_piece("\n");
    }

    /// Prints the part of the final text that did not stream.
    pub fn print_rest(&mut self, text: &str) {
        let rest = match text.strip_prefix(self.text.trim_end()) {
            Some(rest) => visible_line(rest.trim_end()),
            None => format!("\n{}", visible_line(text)),
        };
        let _ = self.output.print_piece(&rest);
    }

    fn print_question(&mut self, frame: &StreamFrame) {
        let (tool, asked) = (
            cell_text(&frame.data["tool"]),
            visible_line(frame.data["question"].as_str().unwrap_or_default()),
        );
        let asked_by = cell_text(&frame.data["requested_by"]);
        let _ = write!(std::io::stderr(), "\n{asked_by} wants to run {tool}\n{asked}\nAllow once? [y/N] ");
        self.question = frame.data["approval_id"].as_str().map(str::to_owned);
    }

    fn close_question(&mut self, why: &str) {
        if self.question.take().is_some() {
            let _ = writeln!(std::io::stderr(), "({why})");
        }
    }

    /// Sends the person's decision. An empty answer counts as a denial.
    async fn send_decision(&mut self, line: &str) {
        let Some(id) = self.question.take() else { return };
        let yes = matches!(line.trim().to_lowercase().as_str(), "y" | "yes");
        let decision = if yes { "approve" } else { "deny" };
        let path = format!("/approvals/{}", encode_segment(&id));
        if let Err(failure) = self.client.post(&path, &json!({ "decision": decision })).await {
            let _ = writeln!(std::io::stderr(), "{failure}");
        }
    }
}
