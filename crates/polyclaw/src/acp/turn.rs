//! One turn and those that take its task up, told to the editor as it happens.

use std::collections::HashSet;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};

use super::Editor;
use super::session::chunk;
use super::told::{Speeches, Told};
use crate::client::segment;
use crate::stream::{Frame, Frames};

const SAYS: &str = "agent_message_chunk";
const ALLOW: &str = "allow";

pub struct Turn<'a> {
    editor: &'a Editor,
    session: &'a str,
    turn: String,
    told: Told,
    speeches: Speeches,
    /// Calls that the editor knows of.
    calls: HashSet<String>,
    /// The frame that was heard last.
    heard: Option<String>,
    /// Questions that the editor knows of.
    asked: HashSet<String>,
    /// Those that nobody has answered. They outlive a stream: the person still sees them.
    open: FuturesUnordered<BoxFuture<'a, ()>>,
}

impl<'a> Turn<'a> {
    pub fn new(editor: &'a Editor, session: &'a str, turn: &str) -> Self {
        Self {
            editor,
            session,
            turn: turn.to_owned(),
            told: Told::default(),
            speeches: Speeches::default(),
            calls: HashSet::new(),
            heard: None,
            asked: HashSet::new(),
            open: FuturesUnordered::new(),
        }
    }

    /// Where a stream that broke is to go on.
    pub fn heard(&self) -> Option<&str> {
        self.heard.as_deref()
    }

    /// Returns when the turn has ended, or when the stream broke.
    pub async fn follow(&mut self, mut frames: Frames) {
        loop {
            // A question may be answered elsewhere, or the turn stopped, while the editor is asked.
            let frame = tokio::select! {
                frame = frames.next() => frame,
                Some(()) = self.open.next() => continue,
            };
            let Some(frame) = frame else { return };
            self.hear(&frame);
            self.take_up(&frame.data);
            if frame.kind == "replay.gap" {
                self.catch_up().await;
            }
            if frame.data["turn_id"].as_str() != Some(&self.turn) {
                continue;
            }
            match frame.kind.as_str() {
                "approval.asked" => self.ask(&frame.data).await,
                "tool.started" | "tool.ended" if self.told.has_missed() => {
                    self.fill().await;
                    // The next step is heard from its beginning.
                    self.told.restart();
                    self.take(&frame);
                }
                "turn.ended" if frame.data["state"] != "steered" => return,
                _ => self.take(&frame),
            }
        }
    }

    fn hear(&mut self, frame: &Frame) {
        let opened = frame.data["epoch"].as_str().filter(|_| frame.kind == "stream.opened");
        let is_new = |epoch: &&str| self.heard.as_deref().is_none_or(|heard| !heard.starts_with(*epoch));
        let opened = opened.filter(is_new).map(|epoch| format!("{epoch}-{}", frame.data["seq"]));
        if let Some(place) = frame.id.clone().or(opened) {
            self.heard = Some(place);
        }
    }

    /// Nobody kept what was missed, or another life of the instance does it anew: the step waits until it is known from
    /// its beginning, and what is still asked is asked.
    async fn catch_up(&mut self) {
        self.told.miss();
        self.speeches.miss();
        self.fill().await;
        let Ok(client) = self.editor.client() else { return };
        let mut listed = client.get("/approvals").await.unwrap_or_default();
        for approval in listed["approvals"].as_array_mut().into_iter().flatten() {
            if approval["state"] == "pending" && approval["turn_id"] == *self.turn {
                approval["approval_id"] = approval["id"].take();
                self.ask(approval).await;
            }
        }
    }

    /// Tells what is stored of the steps that are over. The last one is told when the turn has ended.
    async fn fill(&mut self) {
        let Ok(client) = self.editor.client() else { return };
        let turn = client.get(&format!("/turns/{}", segment(&self.turn))).await.unwrap_or_default();
        let steps = turn["steps"].as_array().into_iter().flatten();
        let answers = steps.filter(|step| step["role"] == "assistant");
        for (number, answer) in (0_u64..).zip(answers) {
            let mut parts = answer["parts"].as_array().into_iter().flatten();
            if number >= self.told.step() && parts.any(|part| part["type"] == "tool_call") {
                let rest = self.told.complete(answer["text"].as_str().unwrap_or_default());
                self.say(rest.as_deref());
                self.close();
                self.told.pass(number);
            }
        }
    }

    /// A later turn goes on with the task of ours.
    fn take_up(&mut self, data: &Value) {
        let mut resumed = data["resumes"].as_array().into_iter().flatten();
        if resumed.any(|turn| *turn == *self.turn) {
            self.turn = data["turn_id"].as_str().unwrap_or_default().to_owned();
            self.told.take_up();
        }
    }

    fn take(&mut self, frame: &Frame) {
        let data = &frame.data;
        let text = data["text"].as_str().unwrap_or_default();
        match frame.kind.as_str() {
            "turn.delta" => {
                let step = data["step"].as_u64().unwrap_or(self.told.step());
                let news = self.told.hear(step, text);
                self.say(news.as_deref());
            }
            "turn.reasoning" if !self.told.has_missed() => self.tell(chunk("agent_thought_chunk", text)),
            "turn.started" | "turn.restarted" => self.told.restart(),
            kind @ ("delegate.started" | "delegate.delta" | "delegate.ended") => {
                let news = self.speeches.take(kind, data["run_id"].as_str().unwrap_or_default(), text);
                self.say(news.as_deref());
            }
            "tool.started" => {
                self.close();
                let call = data["call_id"].as_str().unwrap_or_default().to_owned();
                self.call(&call, "in_progress", data);
            }
            "tool.ended" => {
                let status = if data["is_error"] == true { "failed" } else { "completed" };
                self.tell(json!({
                    "sessionUpdate": "tool_call_update", "toolCallId": data["call_id"], "status": status,
                    "content": [{ "type": "content", "content": { "type": "text", "text": text } }],
                }));
            }
            _ => {}
        }
    }

    fn say(&self, news: Option<&str>) {
        if let Some(news) = news {
            self.tell(chunk(SAYS, news));
        }
    }

    /// What was told stays; what comes is a new paragraph.
    fn close(&mut self) {
        let end = self.told.close();
        self.say(end);
    }

    /// The part of the answer that did not stream.
    pub fn complete(&mut self, reply: &Value) {
        if reply["state"] == "done" {
            let rest = self.told.complete(reply["text"].as_str().unwrap_or_default());
            self.say(rest.as_deref());
        }
    }

    fn tell(&self, update: Value) {
        self.editor.tell(self.session, update);
    }

    /// A call in the editor: a new card, or news of one that waited for a person.
    fn call(&mut self, call: &str, status: &str, data: &Value) {
        let is_new = self.calls.insert(call.to_owned());
        let update = if is_new { "tool_call" } else { "tool_call_update" };
        let name = data["name"].as_str().or(data["tool"].as_str()).unwrap_or_default();
        self.tell(json!({
            "sessionUpdate": update, "toolCallId": call, "title": name, "kind": kind(name), "status": status,
            "rawInput": data["arguments"],
        }));
    }

    /// Lets the editor ask the person there, once.
    async fn ask(&mut self, data: &Value) {
        let id = data["approval_id"].as_str().unwrap_or_default();
        if self.asked.insert(id.to_owned()) {
            let call = self.shown(id, data).await;
            self.open.push(decide(self.editor, self.session, (id.to_owned(), call)).boxed());
        }
    }

    /// What a person is to decide about, as the editor shows it.
    async fn shown(&mut self, id: &str, data: &Value) -> Value {
        let stored = match self.editor.client() {
            Ok(client) => client.get(&format!("/approvals/{}", segment(id))).await.unwrap_or_default(),
            Err(_) => Value::Null,
        };
        let call = stored["call_id"].as_str().unwrap_or(id).to_owned();
        self.call(&call, "pending", data);
        let question = data["question"].as_str().unwrap_or_default();
        json!({
            "toolCallId": call, "title": data["tool"], "kind": kind(data["tool"].as_str().unwrap_or_default()),
            "status": "pending", "rawInput": data["arguments"],
            "content": [{ "type": "content", "content": { "type": "text", "text": question } }],
        })
    }
}

/// Asks the person at the editor; no answer is a no.
async fn decide(editor: &Editor, session: &str, (approval, call): (String, Value)) {
    let options = json!([
        { "optionId": ALLOW, "name": "Let it run once", "kind": "allow_once" },
        { "optionId": "deny", "name": "Do not run it", "kind": "reject_once" },
    ]);
    let params = json!({ "sessionId": session, "toolCall": call, "options": options });
    let said = editor.peer.ask("session/request_permission", params).await.unwrap_or_default();
    let yes = said["outcome"]["outcome"] == "selected" && said["outcome"]["optionId"] == ALLOW;
    let body = &json!({ "decision": if yes { "approve" } else { "deny" } });
    let path = &format!("/approvals/{}", segment(&approval));
    if let Err(fault) = editor.insist(|client| async move { client.post(path, body).await }).await {
        tracing::warn!(code = %fault.code, "the answer to a question came to nothing");
    }
}

/// What kind of tool it is, for the editor's pictures.
fn kind(tool: &str) -> &'static str {
    match tool {
        "read_file" | "image_view" | "list_dir" | "read_skill" => "read",
        "write_file" | "edit_file" | "apply_patch" => "edit",
        "search_files" | "web_search" => "search",
        "shell" => "execute",
        "http_fetch" => "fetch",
        _ => "other",
    }
}
