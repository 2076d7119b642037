//! The Agent Client Protocol, version 1: an editor on the other end of stdin and stdout, an instance behind us. A session
//! of the editor is a session of the instance, so it is found again by `polyclaw sessions`, by the chat page and by
//! `session/load`.

mod prompt;
mod session;
mod turn;
mod wire;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::failure::{Exit, Failure};
use wire::{Incoming, Peer};

const PROTOCOL: u32 = 1;
/// One message of the editor: whoever sends more does not speak the protocol.
const LARGEST_MESSAGE: usize = 16 * 1024 * 1024;

/// What the editor is told of a call that failed.
#[derive(Debug)]
pub struct Fault {
    number: i32,
    message: String,
    code: String,
}

impl Fault {
    fn params(message: impl Into<String>) -> Self {
        Self { number: -32602, message: message.into(), code: "usage".to_owned() }
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        let failure = failure.cleaned();
        let number = match failure.exit {
            Exit::Usage => -32602,
            Exit::NotFound => -32002,
            _ => -32603,
        };
        let hint = failure.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        Self { number, message: format!("{}{hint}", failure.message), code: failure.code }
    }
}

type Done = Result<Value, Fault>;

/// One editor.
struct Editor {
    context: Context,
    /// Who answers in new conversations.
    agent: Option<String>,
    peer: Peer,
}

/// Serves until the editor closes its end. What agents do then goes on.
pub async fn serve(context: Context, agent: Option<String>) -> anyhow::Result<()> {
    let editor = Arc::new(Editor { context, agent, peer: Peer::on_stdout() });
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        if line.len() > LARGEST_MESSAGE {
            return Err(Failure::usage("a message of the editor is too large").into());
        }
        match Incoming::read(&line) {
            Some(Incoming::Answer(answer)) => editor.peer.take(answer),
            Some(Incoming::Call { id, method, params }) => {
                let editor = Arc::clone(&editor);
                // Each by itself: a prompt takes long, and what cancels it comes behind it.
                tokio::spawn(async move {
                    let done = editor.call(&method, params).await;
                    if let Some(id) = id {
                        editor.peer.answer(&id, done);
                    }
                });
            }
            None if line.trim().is_empty() => {}
            None => editor.peer.refuse_line(),
        }
    }
    Ok(())
}

impl Editor {
    async fn call(&self, method: &str, params: Value) -> Done {
        match method {
            "initialize" => Ok(initialize()),
            "session/new" => self.begin(&params).await,
            "session/load" => self.load(&params).await,
            "session/prompt" => self.prompt(&params).await,
            "session/cancel" => self.cancel(&params).await,
            _ => {
                let method: String = method.chars().take(80).collect();
                let message = format!("there is no method '{method}'");
                Err(Fault { number: -32601, message, code: "unknown_method".to_owned() })
            }
        }
    }

    /// Whichever daemon runs now: an editor lives longer than one.
    fn client(&self) -> Result<Client, Fault> {
        Ok(Client::new(&self.context)?)
    }

    async fn cancel(&self, params: &Value) -> Done {
        let path = format!("/sessions/{}/stop", segment(session_of(params)?));
        Ok(self.client()?.post(&path, &json!({})).await?)
    }
}

fn initialize() -> Value {
    json!({
        "protocolVersion": PROTOCOL,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
        },
        "agentInfo": { "name": "polyclaw", "title": "Polyclaw", "version": env!("CARGO_PKG_VERSION") },
        "authMethods": [],
    })
}

fn session_of(params: &Value) -> Result<&str, Fault> {
    params["sessionId"].as_str().ok_or_else(|| Fault::params("sessionId is missing"))
}
