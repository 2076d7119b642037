//! An answer on the terminal as it comes, and the questions that come with it.

use std::io::Write;

use reqwest::Response;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::client::{Client, segment};
use crate::output::{Output, cell, safe};
use crate::stream::{Frame, Frames};

/// What is on the terminal of one turn and of those that took its task up.
pub struct Live<'a> {
    client: &'a Client,
    turn: String,
    /// Shown since the last step.
    text: String,
    /// What another agent has said on the terminal, while it speaks.
    speech: String,
    /// The question on the terminal that nobody has answered.
    question: Option<String>,
    output: Output,
}

impl<'a> Live<'a> {
    pub fn new(client: &'a Client, turn: String, output: Output) -> Self {
        Self { client, turn, text: String::new(), speech: String::new(), question: None, output }
    }

    /// Returns when the turn has ended, or when the stream broke.
    pub async fn follow(&mut self, stream: Response) {
        let mut frames = Frames::new(stream);
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        loop {
            // A question can close while nobody answers, so both are waited for.
            tokio::select! {
                frame = frames.next() => match frame {
                    Some(frame) if self.take(&frame) => {}
                    _ => return,
                },
                line = lines.next_line(), if self.question.is_some() => {
                    self.decide(&line.ok().flatten().unwrap_or_default()).await;
                }
            }
        }
    }

    /// Whether there is more to come.
    fn take(&mut self, frame: &Frame) -> bool {
        self.take_up(&frame.data);
        if frame.kind == "approval.decided" && frame.data["approval_id"].as_str() == self.question.as_deref()
        {
            self.close("it is no longer asked");
        }
        if frame.data["turn_id"].as_str() != Some(&self.turn) {
            return true;
        }
        match frame.kind.as_str() {
            "turn.delta" => self.show(frame.data["text"].as_str().unwrap_or_default()),
            "turn.restarted" => self.start_over(),
            "tool.started" if !self.text.is_empty() => self.start_over(),
            "delegate.delta" => self.speak(&frame.data),
            "delegate.started" if !self.speech.is_empty() => self.leave_off(),
            "delegate.ended" => self.spoken(&frame.data),
            "approval.asked" => self.ask(frame),
            "turn.ended" if frame.data["state"] != "steered" => {
                self.close("the turn is over");
                return false;
            }
            _ => {}
        }
        true
    }

    /// A later turn goes on with the task of ours.
    fn take_up(&mut self, data: &Value) {
        let resumed = data["resumes"].as_array().into_iter().flatten();
        if resumed.clone().any(|turn| *turn == *self.turn) {
            self.turn = data["turn_id"].as_str().unwrap_or_default().to_owned();
        }
    }

    fn show(&mut self, text: &str) {
        self.text += text;
        let _ = self.output.piece(&safe(text));
    }

    /// Another agent speaks, under its name.
    fn speak(&mut self, data: &Value) {
        let text = data["text"].as_str().unwrap_or_default();
        if self.speech.is_empty() && !text.is_empty() {
            let _ = self.output.piece(&format!("{}: ", cell(&data["name"])));
        }
        self.speech += text;
        let _ = self.output.piece(&safe(text));
    }

    /// The part of it that did not stream, and that is all.
    fn spoken(&mut self, data: &Value) {
        let whole = data["text"].as_str().unwrap_or_default();
        let rest = whole.strip_prefix(self.speech.as_str()).map(str::to_owned);
        if rest.is_none() {
            self.leave_off();
        }
        let (name, text) = (&data["name"], rest.unwrap_or_else(|| whole.to_owned()));
        self.speak(&serde_json::json!({ "name": name, "text": text }));
        self.leave_off();
    }

    fn leave_off(&mut self) {
        self.speech.clear();
        let _ = self.output.piece("\n\n");
    }

    /// What was shown is not the final answer: it goes on in a new line.
    fn start_over(&mut self) {
        self.text.clear();
        let _ = self.output.piece("\n");
    }

    /// The part of the final text that did not stream.
    pub fn complete(&mut self, text: &str) {
        let rest = match text.strip_prefix(self.text.trim_end()) {
            Some(rest) => safe(rest.trim_end()),
            None => format!("\n{}", safe(text)),
        };
        let _ = self.output.piece(&rest);
    }

    fn ask(&mut self, frame: &Frame) {
        let (tool, asked) =
            (cell(&frame.data["tool"]), safe(frame.data["question"].as_str().unwrap_or_default()));
        let asked_by = cell(&frame.data["asked_by"]);
        let _ =
            write!(std::io::stderr(), "\n{asked_by} wants to run {tool}\n{asked}\nLet it run once? [y/N] ");
        self.question = frame.data["approval_id"].as_str().map(str::to_owned);
    }

    fn close(&mut self, why: &str) {
        if self.question.take().is_some() {
            let _ = writeln!(std::io::stderr(), "({why})");
        }
    }

    /// Whoever sits here decides about the call; no answer is a no.
    async fn decide(&mut self, line: &str) {
        let Some(id) = self.question.take() else { return };
        let yes = matches!(line.trim().to_lowercase().as_str(), "y" | "yes");
        let decision = if yes { "approve" } else { "deny" };
        let path = format!("/approvals/{}", segment(&id));
        if let Err(failure) = self.client.post(&path, &json!({ "decision": decision })).await {
            let _ = writeln!(std::io::stderr(), "{failure}");
        }
    }
}
