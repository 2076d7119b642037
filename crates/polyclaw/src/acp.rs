//! The Agent Client Protocol, version 1: an editor on the other end of stdin and stdout, an instance behind us. A session
//! of the editor is a session of the instance, so it is found again by `polyclaw sessions`, by the chat page and by
//! `session/load`.

mod prompt;
mod session;
mod told;
mod turn;
mod wire;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use polyclaw_domain::redact::quote_safely;
use serde_json::{Value, json};
use tokio::io::BufReader;

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::failure::{Exit, Failure};
use wire::{Incoming, Line, Peer};

const PROTOCOL: u32 = 1;
/// One message of the editor: as much as an instance takes.
const LARGEST_MESSAGE: usize = 32 * 1024 * 1024;
/// How long an instance that went away may take to come back.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

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
    /// How often each session was cancelled.
    cancels: Mutex<HashMap<String, u64>>,
}

/// Serves until the editor closes its end. What agents do then goes on.
pub async fn serve(context: Context, agent: Option<String>) -> anyhow::Result<()> {
    let editor = Arc::new(Editor { context, agent, peer: Peer::on_stdout(), cancels: Mutex::default() });
    let mut stdin = BufReader::new(tokio::io::stdin());
    while let Some(line) = wire::next_line(&mut stdin, LARGEST_MESSAGE).await? {
        let Line::Whole(line) = line else {
            editor.peer.refuse_line(-32600, "the message is too large");
            continue;
        };
        match Incoming::read(&line) {
            Some(Incoming::Answer(answer)) => editor.peer.take(answer),
            Some(Incoming::Call { id, method, params }) => {
                let cancels = editor.count(&method, &params);
                let editor = Arc::clone(&editor);
                // Each by itself: a prompt takes long, and what cancels it comes behind it.
                tokio::spawn(async move {
                    let done = editor.call(&method, &params, cancels).await;
                    if let Some(id) = id {
                        editor.peer.answer(&id, done);
                    }
                });
            }
            None if line.trim_ascii().is_empty() => {}
            None => editor.peer.refuse_line(-32700, "a line is one JSON object"),
        }
    }
    Ok(())
}

impl Editor {
    async fn call(&self, method: &str, params: &Value, cancels: u64) -> Done {
        match method {
            "initialize" => Ok(initialize()),
            "session/new" => self.begin(params).await,
            "session/load" => self.load(params).await,
            "session/prompt" => self.prompt(params, cancels).await,
            "session/cancel" => self.cancel(session_of(params)?).await,
            _ => {
                let message = format!("there is no method '{}'", quote_safely(method));
                Err(Fault { number: -32601, message, code: "unknown_method".to_owned() })
            }
        }
    }

    /// How often a session was cancelled up to this call. Counted as lines come in: calls run beside each other, and one
    /// that cancels may overtake what it is to cancel.
    fn count(&self, method: &str, params: &Value) -> u64 {
        let Some(session) = params["sessionId"].as_str() else { return 0 };
        let mut cancels = self.cancels.lock().unwrap_or_else(PoisonError::into_inner);
        if method == "session/cancel" {
            *cancels.entry(session.to_owned()).or_default() += 1;
        }
        cancels.get(session).copied().unwrap_or_default()
    }

    /// Whether a session was cancelled again since.
    fn is_cancelled(&self, session: &str, since: u64) -> bool {
        let cancels = self.cancels.lock().unwrap_or_else(PoisonError::into_inner);
        cancels.get(session).is_some_and(|count| *count > since)
    }

    /// Whichever daemon runs now: an editor lives longer than one.
    fn client(&self) -> Result<Client, Fault> {
        Ok(Client::new(&self.context)?)
    }

    /// A call that may be made twice, made again while the instance is away.
    async fn insist<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        call: impl Fn(Client) -> F,
    ) -> Result<T, Fault> {
        let mut gone_since: Option<Instant> = None;
        loop {
            let failure = match call(self.client()?).await {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            let gone = gone_since.get_or_insert_with(Instant::now).elapsed();
            if failure.exit != Exit::Unavailable || gone > PATIENCE {
                return Err(failure.into());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn cancel(&self, session: &str) -> Done {
        let path = &format!("/sessions/{}/stop", segment(session));
        self.insist(|client| async move { client.post(path, &json!({})).await }).await
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Global;
    use crate::home::Home;
    use crate::output::Output;

    #[tokio::test]
    async fn a_cancel_counts_for_the_prompts_that_came_before_it() {
        let global = Global { json: false, url: None, token: None };
        let context = Context { home: Home::at("none".into()), output: Output::new(false), global };
        let editor = Editor { context, agent: None, peer: Peer::on_stdout(), cancels: Mutex::default() };
        let (one, other) = (json!({ "sessionId": "a" }), json!({ "sessionId": "b" }));
        let before = editor.count("session/prompt", &one);
        assert!(!editor.is_cancelled("a", before));
        editor.count("session/cancel", &one);
        assert!(editor.is_cancelled("a", before));
        let after = editor.count("session/prompt", &one);
        assert!(!editor.is_cancelled("a", after), "what comes behind it is not meant");
        assert!(!editor.is_cancelled("b", editor.count("session/prompt", &other)));
    }
}
