//! SIGKILL while a delegate streams to a WebSocket client, which reconnects: it sees the
//! texts of both agents, each once.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_testkit::model_server::ModelServer;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::daemon::{Daemon, Home, TOKEN};
use crate::streaming::{CALLER, EXPERT, agents, answer};

const SESSION: &str = "agent:main:web:dm:reader";
const PATIENCE: Duration = Duration::from_secs(120);

const DEATHS: [(KillPoint, usize); 6] = [
    (KillPoint::MidStream, 1),
    (KillPoint::MidStream, 2),
    (KillPoint::ToolRan, 1),
    (KillPoint::ResultStored, 1),
    (KillPoint::FinishBefore, 1),
    (KillPoint::FinishCommitted, 1),
];

/// The view of a client: streamed texts are overwritten, completed texts stay.
#[derive(Default)]
struct Reader {
    /// The last frame number, and the epoch of its server process.
    position: Option<(String, u64)>,
    /// Texts of delegates, by run.
    spoken: HashMap<String, String>,
    /// Texts of the agent itself, by turn.
    answers: HashMap<String, String>,
    /// How often the end of each was reported.
    ends: HashMap<String, usize>,
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

impl Reader {
    async fn connect(&mut self, daemon: &Daemon) -> Option<Socket> {
        let url = format!("{}/api/v1/ws", daemon.url.replace("http", "ws"));
        let mut request = url.into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {TOKEN}").parse().unwrap());
        let (mut socket, _) = connect_async(request).await.ok()?;
        let mut params = json!({ "session_key": SESSION });
        if let Some((epoch, seq)) = &self.position {
            (params["epoch"], params["after"]) = (json!(epoch), json!(seq));
        }
        let ask = json!({ "type": "req", "id": "s", "method": "subscribe", "params": params });
        socket.send(Message::text(ask.to_string())).await.ok()?;
        Some(socket)
    }

    /// Follows until the socket breaks, or everything was seen.
    async fn follow(&mut self, mut socket: Socket) {
        while !self.has_seen_all()
            && let Ok(Some(Ok(message))) = tokio::time::timeout(Duration::from_secs(1), socket.next()).await
        {
            if let Message::Text(text) = message {
                self.take(&serde_json::from_str(&text).unwrap());
            }
        }
    }

    fn take(&mut self, frame: &Value) {
        if let (Some(epoch), Some(seq)) = (frame["result"]["epoch"].as_str(), frame["result"]["seq"].as_u64())
        {
            // Numbers of another process mean nothing: missed texts are in the stored conversation.
            if self.position.as_ref().is_none_or(|(known, _)| known != epoch) {
                self.position = Some((epoch.to_owned(), seq));
            }
        }
        if let (Some(seq), Some(position)) = (frame["seq"].as_u64(), &mut self.position) {
            position.1 = seq;
        }
        let text = |name: &str| frame[name].as_str().unwrap_or_default().to_owned();
        match frame["event"].as_str().unwrap_or_default() {
            "delegate.started" => drop(self.spoken.insert(text("run_id"), String::new())),
            "delegate.delta" => self.spoken.entry(text("run_id")).or_default().push_str(&text("text")),
            "delegate.ended" => {
                self.spoken.insert(text("run_id"), text("text"));
                *self.ends.entry(text("run_id")).or_default() += 1;
            }
            "turn.ended" if frame["state"] == "done" => {
                self.answers.insert(text("turn_id"), text("text"));
                *self.ends.entry(text("turn_id")).or_default() += 1;
            }
            _ => {}
        }
    }

    /// Texts of the time without a connection are in the stored conversation.
    async fn load(&mut self, daemon: &Daemon) {
        let key = SESSION.replace(':', "%3A");
        let stored = daemon.get(&format!("/api/v1/sessions/{key}/transcript?limit=200")).await;
        for line in stored["messages"].as_array().into_iter().flatten() {
            let text = line["text"].as_str().unwrap_or_default();
            if line["role"] == "assistant" && !text.is_empty() {
                self.answers.insert(line["turn_id"].as_str().unwrap_or_default().to_owned(), text.to_owned());
            }
            // The result of a delegation contains the text.
            let answer = text.find('{').and_then(|at| serde_json::from_str::<Value>(text[at..].trim()).ok());
            if let Some(answer) = answer.filter(|answer| line["role"] == "tool" && answer["streamed"] == true)
            {
                let reply = answer["response"].as_str().unwrap_or_default().to_owned();
                self.spoken.insert(answer["run_id"].as_str().unwrap_or_default().to_owned(), reply);
            }
        }
    }

    fn has_seen_all(&self) -> bool {
        self.answers.values().any(|text| text == CALLER)
    }
}

async fn dies_at(point: KillPoint, passing: usize) {
    let case = format!("{}:{passing}", point.as_str());
    let model = ModelServer::start();
    model.answer_with(answer);
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(&folder.path().join("home"), &agents(&model));
    let mut reader = Reader::default();
    let mut daemon = home.start(Some(&case)).await;
    let socket = reader.connect(&daemon).await.unwrap();
    daemon.say(SESSION, "ask the expert", 0).await.unwrap();
    reader.follow(socket).await;
    assert!(daemon.dies(PATIENCE).await, "{case} was never reached");
    let daemon = home.start(None).await;
    let began = Instant::now();
    while !reader.has_seen_all() {
        assert!(began.elapsed() < PATIENCE, "{case}: the answer does not come");
        let socket = reader.connect(&daemon).await.unwrap();
        reader.load(&daemon).await;
        reader.follow(socket).await;
    }
    reader.load(&daemon).await;
    let expert = EXPERT.strip_prefix("Expert: ").unwrap_or_default();
    assert_eq!(reader.spoken.values().collect::<Vec<_>>(), [expert], "{case}");
    assert_eq!(reader.answers.values().collect::<Vec<_>>(), [CALLER], "{case}");
    assert!(reader.ends.values().all(|count| *count == 1), "{case}: {:?}", reader.ends);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconnecting_reader_sees_delegate_text_once_after_kill() {
    let mut cases = tokio::task::JoinSet::new();
    for (point, passing) in DEATHS {
        cases.spawn(dies_at(point, passing));
    }
    while let Some(case) = cases.join_next().await {
        case.unwrap();
    }
}
