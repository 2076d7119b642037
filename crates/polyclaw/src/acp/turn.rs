//! Reports one turn, and the turns that resume its task, to the editor as it happens.

use std::collections::HashSet;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use polyclaw_api::approvals::{ApprovalDecisionBody, ApprovalList, ApprovalView};
use polyclaw_api::messages::TurnReply;
use polyclaw_api::stream::{MissedFrames, ReaderNotice, StreamEvent};
use polyclaw_api::turns::TurnView;
use polyclaw_domain::approval::{ApprovalDecision, ApprovalState};
use polyclaw_domain::frame::FrameKind;
use polyclaw_domain::id::{ApprovalId, TurnId};
use polyclaw_domain::job::JobState;
use polyclaw_domain::message::{MessageRole, tool_calls};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::EditorConnection;
use super::progress::{DelegateStreams, StreamProgress};
use super::session::message_chunk;
use crate::client::encode_segment;
use crate::stream::{FrameStream, StreamFrame};

const MESSAGE_CHUNK_KIND: &str = "agent_message_chunk";
const ALLOW_OPTION: &str = "allow";

pub struct EditorTurn<'a> {
    editor: &'a EditorConnection,
    session: &'a str,
    turn: TurnId,
    progress: StreamProgress,
    delegate_streams: DelegateStreams,
    /// Tool calls that the editor knows.
    calls: HashSet<String>,
    /// ID of the last received frame.
    last_frame_id: Option<String>,
    /// Approval requests that the editor knows.
    asked: HashSet<ApprovalId>,
    /// Unanswered approval requests. They outlive a stream, because the person still sees them.
    open: FuturesUnordered<BoxFuture<'a, ()>>,
}

impl<'a> EditorTurn<'a> {
    pub fn new(editor: &'a EditorConnection, session: &'a str, turn: TurnId) -> Self {
        Self {
            editor,
            session,
            turn,
            progress: StreamProgress::default(),
            delegate_streams: DelegateStreams::default(),
            calls: HashSet::new(),
            last_frame_id: None,
            asked: HashSet::new(),
            open: FuturesUnordered::new(),
        }
    }

    /// Returns where to resume a broken stream.
    pub fn last_frame_id(&self) -> Option<&str> {
        self.last_frame_id.as_deref()
    }

    /// Returns when the turn has ended or the stream broke.
    pub async fn follow_stream(&mut self, mut frames: FrameStream) {
        loop {
            // While the editor asks, the request may be answered elsewhere or the turn stopped.
            let frame = tokio::select! {
                frame = frames.next() => frame,
                Some(()) = self.open.next() => continue,
            };
            let Some(frame) = frame else { return };
            self.record_position(&frame);
            match frame.event {
                StreamEvent::Notice(ReaderNotice { event: MissedFrames::Gap, .. }) => {
                    self.recover_after_gap().await;
                }
                StreamEvent::Frame(frame) => {
                    if !self.handle_frame(frame.kind).await {
                        return;
                    }
                }
                StreamEvent::Opened(_) | StreamEvent::Notice(_) => {}
            }
        }
    }

    /// Handles a frame. Returns whether more follows.
    async fn handle_frame(&mut self, frame: FrameKind) -> bool {
        match frame {
            FrameKind::Started { turn_id, resumes, .. } if resumes.contains(&self.turn) => {
                self.turn = turn_id;
                self.progress.resume_in_new_turn();
            }
            FrameKind::ApprovalAsked { approval_id, turn_id, tool, arguments, question, .. }
                if turn_id == self.turn =>
            {
                let request = PermissionRequest { approval: approval_id, tool, arguments, question };
                self.queue_permission_request(request).await;
            }
            FrameKind::ToolStarted { ref turn_id, .. } | FrameKind::ToolEnded { ref turn_id, .. }
                if *turn_id == self.turn && self.progress.has_missed() =>
            {
                self.send_stored_steps().await;
                // The next step streams from its start.
                self.progress.restart_step();
                self.apply_frame(frame);
            }
            FrameKind::Ended { turn_id, state, .. } if turn_id == self.turn && state != JobState::Steered => {
                return false;
            }
            frame => self.apply_frame(frame),
        }
        true
    }

    fn record_position(&mut self, frame: &StreamFrame) {
        let opened = match &frame.event {
            StreamEvent::Opened(opened) => Some(opened),
            _ => None,
        };
        let opened = opened.filter(|opened| {
            self.last_frame_id.as_deref().is_none_or(|heard| !heard.starts_with(&opened.epoch))
        });
        let opened = opened.map(|opened| format!("{}-{}", opened.epoch, opened.seq));
        if let Some(place) = frame.id.clone().or(opened) {
            self.last_frame_id = Some(place);
        }
    }

    /// Recovers after missed frames, or after the instance restarted and repeats the step. The step is held back
    /// until it is known from its start, and pending approvals are requested again.
    async fn recover_after_gap(&mut self) {
        self.progress.mark_missed();
        self.delegate_streams.mark_missed();
        self.send_stored_steps().await;
        let Ok(client) = self.editor.current_client() else { return };
        let Ok(listed) = client.get_as::<ApprovalList>("/approvals").await else { return };
        for approval in listed.approvals {
            if approval.state == ApprovalState::Pending && approval.turn_id == self.turn {
                let ApprovalView { id, tool, arguments, question, .. } = approval;
                self.queue_permission_request(PermissionRequest { approval: id, tool, arguments, question })
                    .await;
            }
        }
    }

    /// Sends the stored text of completed steps. The last step is sent when the turn has ended.
    async fn send_stored_steps(&mut self) {
        let Ok(client) = self.editor.current_client() else { return };
        let path = format!("/turns/{}", encode_segment(self.turn.as_str()));
        let Ok(turn) = client.get_as::<TurnView>(&path).await else { return };
        let steps = turn.steps.unwrap_or_default();
        let answers = steps.iter().filter(|step| step.role == MessageRole::Assistant);
        for (number, answer) in (0_u64..).zip(answers) {
            if number >= self.progress.step() && tool_calls(&answer.parts).next().is_some() {
                let rest = self.progress.complete_text(&answer.text);
                self.send_text(rest.as_deref());
                self.end_paragraph();
                self.progress.skip_step(number);
            }
        }
    }

    /// Applies a frame of the turn. Frames of other turns are ignored.
    fn apply_frame(&mut self, frame: FrameKind) {
        match frame {
            FrameKind::Delta { turn_id, step, text } if turn_id == self.turn => {
                let news = self.progress.push_piece(step as u64, &text);
                self.send_text(news.as_deref());
            }
            FrameKind::Reasoning { turn_id, text, .. }
                if turn_id == self.turn && !self.progress.has_missed() =>
            {
                self.send_update(message_chunk("agent_thought_chunk", &text));
            }
            FrameKind::Started { turn_id, .. } | FrameKind::Restarted { turn_id } if turn_id == self.turn => {
                self.progress.restart_step();
            }
            FrameKind::DelegateStarted(speaker) if speaker.turn_id == self.turn => {
                self.delegate_streams.start(&speaker.run_id);
            }
            FrameKind::DelegateDelta { speaker, text } if speaker.turn_id == self.turn => {
                let news = self.delegate_streams.push_piece(&speaker.run_id, &text);
                self.send_text(news.as_deref());
            }
            FrameKind::DelegateEnded { speaker, text, .. } if speaker.turn_id == self.turn => {
                let news = self.delegate_streams.end(&speaker.run_id, &text);
                self.send_text(news.as_deref());
            }
            FrameKind::ToolStarted { turn_id, call_id, name, arguments } if turn_id == self.turn => {
                self.end_paragraph();
                self.send_tool_call(&call_id, "in_progress", (&name, &arguments));
            }
            FrameKind::ToolEnded { turn_id, call_id, is_error, text, .. } if turn_id == self.turn => {
                let status = if is_error { "failed" } else { "completed" };
                self.send_update(json!({
                    "sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": status,
                    "content": [{ "type": "content", "content": { "type": "text", "text": text } }],
                }));
            }
            _ => {}
        }
    }

    fn send_text(&self, news: Option<&str>) {
        if let Some(news) = news {
            self.send_update(message_chunk(MESSAGE_CHUNK_KIND, news));
        }
    }

    /// Ends the paragraph: sent text stays and further text starts a new paragraph.
    fn end_paragraph(&mut self) {
        let end = self.progress.end_step();
        self.send_text(end);
    }

    /// Sends the part of the answer that did not stream.
    pub fn send_final_rest(&mut self, reply: &TurnReply) {
        if reply.state == JobState::Done {
            let rest = self.progress.complete_text(&reply.text);
            self.send_text(rest.as_deref());
        }
    }

    fn send_update(&self, update: Value) {
        self.editor.send_update(self.session, update);
    }

    /// Shows a tool call in the editor: as a new card, or as an update of one that waited for approval.
    fn send_tool_call(&mut self, call: &str, status: &str, (name, arguments): (&str, &Value)) {
        let is_new = self.calls.insert(call.to_owned());
        let update = if is_new { "tool_call" } else { "tool_call_update" };
        self.send_update(json!({
            "sessionUpdate": update, "toolCallId": call, "title": name, "kind": tool_kind(name), "status": status,
            "rawInput": arguments,
        }));
    }

    /// Lets the editor ask the person for approval, once per request.
    async fn queue_permission_request(&mut self, request: PermissionRequest) {
        if self.asked.insert(request.approval.clone()) {
            let call = self.pending_tool_call(&request).await;
            self.open.push(request_permission(self.editor, self.session, (request.approval, call)).boxed());
        }
    }

    /// Returns the tool call to decide on, as the editor shows it.
    async fn pending_tool_call(&mut self, request: &PermissionRequest) -> Value {
        let PermissionRequest { approval, tool, arguments, question } = request;
        let stored = match self.editor.current_client() {
            Ok(client) => client.get_as::<ApprovalView>(&approval_path(approval)).await.ok(),
            Err(_) => None,
        };
        let call = stored.map_or_else(|| approval.to_string(), |stored| stored.call_id);
        self.send_tool_call(&call, "pending", (tool, arguments));
        json!({
            "toolCallId": call, "title": tool, "kind": tool_kind(tool), "status": "pending", "rawInput": arguments,
            "content": [{ "type": "content", "content": { "type": "text", "text": question } }],
        })
    }
}

/// An approval request for the person at the editor.
struct PermissionRequest {
    approval: ApprovalId,
    tool: String,
    arguments: Value,
    question: String,
}

fn approval_path(id: &ApprovalId) -> String {
    format!("/approvals/{}", encode_segment(id.as_str()))
}

/// Asks the person at the editor. No answer counts as a denial.
async fn request_permission(editor: &EditorConnection, session: &str, (approval, call): (ApprovalId, Value)) {
    let options = json!([
        { "optionId": ALLOW_OPTION, "name": "Allow once", "kind": "allow_once" },
        { "optionId": "deny", "name": "Deny", "kind": "reject_once" },
    ]);
    let params = json!({ "sessionId": session, "toolCall": call, "options": options });
    let reply = editor.peer.send_request("session/request_permission", params).await.unwrap_or_default();
    let yes = reply["outcome"]["outcome"] == "selected" && reply["outcome"]["optionId"] == ALLOW_OPTION;
    let decision = if yes { ApprovalDecision::Approve } else { ApprovalDecision::Deny };
    let body = &ApprovalDecisionBody { decision, reason: None, fingerprint: None };
    let path = &approval_path(&approval);
    let sent = editor
        .retry_while_unavailable(|client| async move { client.post_as::<_, IgnoredAny>(path, body).await });
    if let Err(fault) = sent.await {
        tracing::warn!(code = %fault.code, "could not send the decision on an approval request");
    }
}

/// Returns the kind of a tool, for the editor's icons.
fn tool_kind(tool: &str) -> &'static str {
    match tool {
        "read_file" | "image_view" | "list_dir" | "read_skill" => "read",
        "write_file" | "edit_file" | "apply_patch" => "edit",
        "search_files" | "web_search" => "search",
        "shell" => "execute",
        "http_fetch" => "fetch",
        _ => "other",
    }
}
