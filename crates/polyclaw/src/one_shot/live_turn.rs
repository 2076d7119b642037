//! Prints an answer as it streams, and asks for approvals on the terminal.

use std::io::Write;

use polyclaw_api::approvals::ApprovalDecisionBody;
use polyclaw_api::stream::StreamEvent;
use polyclaw_domain::approval::ApprovalDecision;
use polyclaw_domain::frame::{DelegateSpeaker, FrameKind};
use polyclaw_domain::id::{ApprovalId, TurnId};
use polyclaw_domain::job::JobState;
use reqwest::Response;
use serde::de::IgnoredAny;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::client::{ApiClient, encode_segment};
use crate::output::{CliOutput, visible_line};
use crate::stream::FrameStream;

/// The terminal output of a turn and of the turns that resumed its task.
pub struct LiveTurn<'a> {
    client: &'a ApiClient,
    turn: TurnId,
    /// Text shown since the last step.
    text: String,
    /// Text of another agent shown while it streams.
    speech: String,
    /// ID of the unanswered approval request on the terminal.
    question: Option<ApprovalId>,
    output: CliOutput,
}

impl<'a> LiveTurn<'a> {
    pub fn new(client: &'a ApiClient, turn: TurnId, output: CliOutput) -> Self {
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
                    Some(frame) => match &frame.event {
                        StreamEvent::Frame(frame) if !self.apply_frame(&frame.kind) => return,
                        _ => {}
                    },
                    None => return,
                },
                line = lines.next_line(), if self.question.is_some() => {
                    self.send_decision(&line.ok().flatten().unwrap_or_default()).await;
                }
            }
        }
    }

    /// Applies a frame. Returns whether more follows.
    fn apply_frame(&mut self, frame: &FrameKind) -> bool {
        match frame {
            // A later turn resumes the task of this one.
            FrameKind::Started { turn_id, resumes, .. } if resumes.contains(&self.turn) => {
                self.turn = turn_id.clone();
            }
            FrameKind::ApprovalDecided { approval_id, .. } if Some(approval_id) == self.question.as_ref() => {
                self.close_question("no longer needed");
            }
            FrameKind::Delta { turn_id, text, .. } if *turn_id == self.turn => self.print_text(text),
            FrameKind::Restarted { turn_id } if *turn_id == self.turn => self.restart_text(),
            FrameKind::ToolStarted { turn_id, .. } if *turn_id == self.turn && !self.text.is_empty() => {
                self.restart_text();
            }
            FrameKind::DelegateDelta { speaker, text } if speaker.turn_id == self.turn => {
                self.print_delegate_text(speaker, text);
            }
            FrameKind::DelegateStarted(speaker)
                if speaker.turn_id == self.turn && !self.speech.is_empty() =>
            {
                self.end_delegate_text();
            }
            FrameKind::DelegateEnded { speaker, text, .. } if speaker.turn_id == self.turn => {
                self.finish_delegate_text(speaker, text);
            }
            FrameKind::ApprovalAsked { approval_id, turn_id, tool, question, requested_by, .. }
                if *turn_id == self.turn =>
            {
                self.print_question(requested_by, tool, question);
                self.question = Some(approval_id.clone());
            }
            FrameKind::Ended { turn_id, state, .. }
                if *turn_id == self.turn && *state != JobState::Steered =>
            {
                self.close_question("the turn has ended");
                return false;
            }
            _ => {}
        }
        true
    }

    fn print_text(&mut self, text: &str) {
        self.text += text;
        let _ = self.output.print_piece(&visible_line(text));
    }

    /// Prints another agent's text under its name.
    fn print_delegate_text(&mut self, speaker: &DelegateSpeaker, text: &str) {
        if self.speech.is_empty() && !text.is_empty() {
            let _ = self.output.print_piece(&format!("{}: ", visible_line(&speaker.name)));
        }
        self.speech += text;
        let _ = self.output.print_piece(&visible_line(text));
    }

    /// Prints the part of another agent's text that did not stream, and ends it.
    fn finish_delegate_text(&mut self, speaker: &DelegateSpeaker, whole: &str) {
        let rest = whole.strip_prefix(self.speech.as_str()).map(str::to_owned);
        if rest.is_none() {
            self.end_delegate_text();
        }
        self.print_delegate_text(speaker, rest.as_deref().unwrap_or(whole));
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

    fn print_question(&self, requested_by: &str, tool: &str, question: &str) {
        let (by, tool, question) = (visible_line(requested_by), visible_line(tool), visible_line(question));
        let _ = write!(std::io::stderr(), "\n{by} wants to run {tool}\n{question}\nAllow once? [y/N] ");
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
        let decision = if yes { ApprovalDecision::Approve } else { ApprovalDecision::Deny };
        let body = ApprovalDecisionBody { decision, reason: None, fingerprint: None };
        let path = format!("/approvals/{}", encode_segment(id.as_str()));
        if let Err(failure) = self.client.post_as::<_, IgnoredAny>(&path, &body).await {
            let _ = writeln!(std::io::stderr(), "{failure}");
        }
    }
}
