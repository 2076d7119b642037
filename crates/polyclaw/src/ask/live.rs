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
    output: Output,
}

impl<'a> Live<'a> {
    pub fn new(client: &'a Client, turn: String, output: Output) -> Self {
        Self { client, turn, text: String::new(), output }
    }

    /// Returns when the turn has ended, or when the stream broke.
    pub async fn follow(&mut self, stream: Response) {
        let mut frames = Frames::new(stream);
        while let Some(frame) = frames.next().await {
            self.take_up(&frame.data);
            if frame.data["turn_id"].as_str() != Some(&self.turn) {
                continue;
            }
            match frame.kind.as_str() {
                "turn.delta" => self.show(frame.data["text"].as_str().unwrap_or_default()),
                "turn.restarted" => self.start_over(),
                "tool.started" if !self.text.is_empty() => self.start_over(),
                "approval.asked" => self.ask(&frame).await,
                "turn.ended" if frame.data["state"] != "steered" => return,
                _ => {}
            }
        }
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

    /// Whoever sits here decides about the call; no answer is a no.
    async fn ask(&self, frame: &Frame) {
        let (tool, arguments) = (cell(&frame.data["tool"]), safe(&frame.data["arguments"].to_string()));
        let _ = write!(std::io::stderr(), "\n{tool} wants to run {arguments}\nLet it run once? [y/N] ");
        let mut line = String::new();
        let _ = BufReader::new(tokio::io::stdin()).read_line(&mut line).await;
        let yes = matches!(line.trim(), "y" | "Y" | "yes");
        let decision = if yes { "approve" } else { "deny" };
        let id = segment(frame.data["approval_id"].as_str().unwrap_or_default());
        if let Err(failure) =
            self.client.post(&format!("/approvals/{id}"), &json!({ "decision": decision })).await
        {
            let _ = writeln!(std::io::stderr(), "{failure}");
        }
    }
}
