//! Reports one turn, and the turns that resume its task, to the editor as it happens.

use std::collections::HashSet;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
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
    turn: String,
    progress: StreamProgress,
    delegate_streams: DelegateStreams,
    /// Tool calls that the editor knows.
    calls: HashSet<String>,
    /// ID of the last received frame.
    last_frame_id: Option<String>,
    /// Approval requests that the editor knows.
    asked: HashSet<String>,
    /// Unanswered approval requests. They outlive a stream, because the person still sees them.
    open: FuturesUnordered<BoxFuture<'a, ()>>,
}

impl<'a> EditorTurn<'a> {
    pub fn new(editor: &'a EditorConnection, session: &'a str, turn: &str) -> Self {
        Self {
            editor,
            session,
            turn: turn.to_owned(),
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
            self.follow_resumed_turn(&frame.data);
            if frame.kind == "replay.gap" {
                self.recover_after_gap().await;
            }
            if frame.data["turn_id"].as_str() != Some(&self.turn) {
                continue;
            }
            match frame.kind.as_str() {
                "approval.requested" => self.queue_permission_request(&frame.data).await,
                "tool.started" | "tool.ended" if self.progress.has_missed() => {
                    self.send_stored_steps().await;
                    // The next step streams from its start.
                    self.progress.restart_step();
                    self.apply_frame(&frame);
                }
                "turn.ended" if frame.data["state"] != "steered" => return,
                _ => self.apply_frame(&frame),
            }
        }
    }

    fn record_position(&mut self, frame: &StreamFrame) {
        let opened = frame.data["epoch"].as_str().filter(|_| frame.kind == "stream.opened");
        let is_new =
            |epoch: &&str| self.last_frame_id.as_deref().is_none_or(|heard| !heard.starts_with(*epoch));
        let opened = opened.filter(is_new).map(|epoch| format!("{epoch}-{}", frame.data["seq"]));
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
        let mut listed = client.get("/approvals").await.unwrap_or_default();
        for approval in listed["approvals"].as_array_mut().into_iter().flatten() {
            if approval["state"] == "pending" && approval["turn_id"] == *self.turn {
                approval["approval_id"] = approval["id"].take();
                self.queue_permission_request(approval).await;
            }
        }
    }

    /// Sends the stored text of completed steps. The last step is sent when the turn has ended.
    async fn send_stored_steps(&mut self) {
        let Ok(client) = self.editor.current_client() else { return };
        let turn = client.get(&format!("/turns/{}", encode_segment(&self.turn))).await.unwrap_or_default();
        let steps = turn["steps"].as_array().into_iter().flatten();
        let answers = steps.filter(|step| step["role"] == "assistant");
        for (number, answer) in (0_u64..).zip(answers) {
            let mut parts = answer["parts"].as_array().into_iter().flatten();
            if number >= self.progress.step() && parts.any(|part| part["type"] == "tool_call") {
                let rest = self.progress.complete_text(answer["text"].as_str().unwrap_or_default());
                self.send_text(rest.as_deref());
                self.end_paragraph();
                self.progress.skip_step(number);
            }
        }
    }

    /// Switches to a later turn if it resumes the task of this one.
    fn follow_resumed_turn(&mut self, data: &Value) {
        let mut resumed = data["resumes"].as_array().into_iter().flatten();
        if resumed.any(|turn| *turn == *self.turn) {
            self.turn = data["turn_id"].as_str().unwrap_or_default().to_owned();
            self.progress.resume_in_new_turn();
        }
    }

    fn apply_frame(&mut self, frame: &StreamFrame) {
        let data = &frame.data;
        let text = data["text"].as_str().unwrap_or_default();
        match frame.kind.as_str() {
            "turn.delta" => {
                let step = data["step"].as_u64().unwrap_or(self.progress.step());
                let news = self.progress.push_piece(step, text);
                self.send_text(news.as_deref());
            }
            "turn.reasoning" if !self.progress.has_missed() => {
                self.send_update(message_chunk("agent_thought_chunk", text));
            }
            "turn.started" | "turn.restarted" => self.progress.restart_step(),
            kind @ ("delegate.started" | "delegate.delta" | "delegate.ended") => {
                let news = self.delegate_streams.apply_frame(
                    kind,
                    data["run_id"].as_str().unwrap_or_default(),
                    text,
                );
                self.send_text(news.as_deref());
            }
            "tool.started" => {
                self.end_paragraph();
                let call = data["call_id"].as_str().unwrap_or_default().to_owned();
                self.send_tool_call(&call, "in_progress", data);
            }
            "tool.ended" => {
                let status = if data["is_error"] == true { "failed" } else { "completed" };
                self.send_update(json!({
                    "sessionUpdate": "tool_call_update", "toolCallId": data["call_id"], "status": status,
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
    pub fn send_final_rest(&mut self, reply: &Value) {
        if reply["state"] == "done" {
            let rest = self.progress.complete_text(reply["text"].as_str().unwrap_or_default());
            self.send_text(rest.as_deref());
        }
    }

    fn send_update(&self, update: Value) {
        self.editor.send_update(self.session, update);
    }

    /// Shows a tool call in the editor: as a new card, or as an update of one that waited for approval.
    fn send_tool_call(&mut self, call: &str, status: &str, data: &Value) {
        let is_new = self.calls.insert(call.to_owned());
        let update = if is_new { "tool_call" } else { "tool_call_update" };
        let name = data["name"].as_str().or(data["tool"].as_str()).unwrap_or_default();
        self.send_update(json!({
            "sessionUpdate": update, "toolCallId": call, "title": name, "kind": tool_kind(name), "status": status,
            "rawInput": data["arguments"],
        }));
    }

    /// Lets the editor ask the person for approval, once per request.
    async fn queue_permission_request(&mut self, data: &Value) {
        let id = data["approval_id"].as_str().unwrap_or_default();
        if self.asked.insert(id.to_owned()) {
            let call = self.pending_tool_call(id, data).await;
            self.open.push(request_permission(self.editor, self.session, (id.to_owned(), call)).boxed());
        }
    }

    /// Returns the tool call to decide on, as the editor shows it.
    async fn pending_tool_call(&mut self, id: &str, data: &Value) -> Value {
        let stored = match self.editor.current_client() {
            Ok(client) => client.get(&format!("/approvals/{}", encode_segment(id))).await.unwrap_or_default(),
            Err(_) => Value::Null,
        };
        let call = stored["call_id"].as_str().unwrap_or(id).to_owned();
        self.send_tool_call(&call, "pending", data);
        let question = data["question"].as_str().unwrap_or_default();
        json!({
            "toolCallId": call, "title": data["tool"], "kind": tool_kind(data["tool"].as_str().unwrap_or_default()),
            "status": "pending", "rawInput": data["arguments"],
            "content": [{ "type": "content", "content": { "type": "text", "text": question } }],
        })
    }
}

/// Asks the person at the editor. No answer counts as a denial.
async fn request_permission(editor: &EditorConnection, session: &str, (approval, call): (String, Value)) {
    let options = json!([
        { "optionId": ALLOW_OPTION, "name": "Allow once", "kind": "allow_once" },
        { "optionId": "deny", "name": "Deny", "kind": "reject_once" },
    ]);
    let params = json!({ "sessionId": session, "toolCall": call, "options": options });
    let reply = editor.peer.send_request("session/request_permission", params).await.unwrap_or_default();
    let yes = reply["outcome"]["outcome"] == "selected" && reply["outcome"]["optionId"] == ALLOW_OPTION;
    let body = &json!({ "decision": if yes { "approve" } else { "deny" } });
    let path = &format!("/approvals/{}", encode_segment(&approval));
    if let Err(fault) =
        editor.retry_while_unavailable(|client| async move { client.post(path, body).await }).await
    {
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
