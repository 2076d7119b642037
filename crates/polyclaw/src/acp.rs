//! The Agent Client Protocol (ACP), version 1. The editor is on stdin and stdout; an instance answers its requests.
//! An editor session is a session of the instance, so `polyclaw sessions`, the chat page and `session/load` find it
//! again.

mod progress;
mod prompt;
mod session;
mod turn;
mod wire;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use polyclaw_api::sessions::StopResult;
use polyclaw_domain::redact::quote_safely;
use serde_json::{Value, json};
use tokio::io::BufReader;

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::failure::{CommandFailure, FailureExit};
use wire::{EditorMessage, EditorPeer, WireLine};

const ACP_PROTOCOL_VERSION: u32 = 1;
/// Maximum size of one editor message; the same limit as an instance's.
const MAX_MESSAGE_BYTES: usize = 32 * 1024 * 1024;
/// How long to wait for an instance that went away to come back.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const RECONNECT_RETRY_AFTER: Duration = Duration::from_millis(200);

/// A failed call, as reported to the editor.
#[derive(Debug)]
pub struct AcpError {
    number: i32,
    message: String,
    code: String,
}

impl AcpError {
    fn invalid_params(message: impl Into<String>) -> Self {
        Self { number: -32602, message: message.into(), code: "usage".to_owned() }
    }
}

impl From<CommandFailure> for AcpError {
    fn from(failure: CommandFailure) -> Self {
        let failure = failure.redacted();
        let number = match failure.exit {
            FailureExit::Usage => -32602,
            FailureExit::NotFound => -32002,
            _ => -32603,
        };
        let hint = failure.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        Self { number, message: format!("{}{hint}", failure.message), code: failure.code }
    }
}

type AcpResult = Result<Value, AcpError>;

/// A connection to one editor.
struct EditorConnection {
    context: CommandContext,
    /// Agent that answers in new conversations.
    agent: Option<String>,
    peer: EditorPeer,
    /// Number of cancellations of each session.
    cancels: Mutex<HashMap<String, u64>>,
}

/// Serves until the editor closes its end. Turns that run then continue in the instance.
pub async fn serve(context: CommandContext, agent: Option<String>) -> anyhow::Result<()> {
    let editor = Arc::new(EditorConnection {
        context,
        agent,
        peer: EditorPeer::on_stdout(),
        cancels: Mutex::default(),
    });
    let mut stdin = BufReader::new(tokio::io::stdin());
    while let Some(line) = wire::next_line(&mut stdin, MAX_MESSAGE_BYTES).await? {
        let WireLine::Whole(line) = line else {
            editor.peer.refuse_line(-32600, "the message is too large");
            continue;
        };
        match EditorMessage::parse(&line) {
            Some(EditorMessage::Answer(answer)) => editor.peer.resolve_response(answer),
            Some(EditorMessage::Call { id, method, params }) => {
                let cancels = editor.count_cancels(&method, &params);
                let editor = Arc::clone(&editor);
                // Each call runs in its own task: a prompt takes long, and its cancellation arrives behind it.
                tokio::spawn(async move {
                    let done = editor.dispatch_method(&method, &params, cancels).await;
                    if let Some(id) = id {
                        editor.peer.send_result(&id, done);
                    }
                });
            }
            None if line.trim_ascii().is_empty() => {}
            None => editor.peer.refuse_line(-32700, "each line must be one JSON object"),
        }
    }
    Ok(())
}

impl EditorConnection {
    async fn dispatch_method(&self, method: &str, params: &Value, cancels: u64) -> AcpResult {
        match method {
            "initialize" => Ok(initialize_result()),
            "session/new" => self.create_session(params).await,
            "session/load" => self.load_session(params).await,
            "session/prompt" => self.prompt_session(params, cancels).await,
            "session/cancel" => self.cancel_session(session_id_param(params)?).await,
            _ => {
                let message = format!("unknown method '{}'", quote_safely(method));
                Err(AcpError { number: -32601, message, code: "unknown_method".to_owned() })
            }
        }
    }

    /// Returns how often the session was cancelled up to this call. Counted in the order of the incoming lines: calls
    /// run concurrently, and a cancellation may overtake the call that it cancels.
    fn count_cancels(&self, method: &str, params: &Value) -> u64 {
        let Some(session) = params["sessionId"].as_str() else { return 0 };
        let mut cancels = self.cancels.lock().unwrap_or_else(PoisonError::into_inner);
        if method == "session/cancel" {
            *cancels.entry(session.to_owned()).or_default() += 1;
        }
        cancels.get(session).copied().unwrap_or_default()
    }

    /// Returns whether the session was cancelled again since.
    fn is_cancelled(&self, session: &str, since: u64) -> bool {
        let cancels = self.cancels.lock().unwrap_or_else(PoisonError::into_inner);
        cancels.get(session).is_some_and(|count| *count > since)
    }

    /// Returns a client of the daemon that runs now. An editor may outlive several daemons.
    fn current_client(&self) -> Result<ApiClient, AcpError> {
        Ok(ApiClient::new(&self.context)?)
    }

    /// Repeats an idempotent call while the instance is unavailable.
    async fn retry_while_unavailable<T, F: Future<Output = Result<T, CommandFailure>>>(
        &self,
        call: impl Fn(ApiClient) -> F,
    ) -> Result<T, AcpError> {
        let mut gone_since: Option<Instant> = None;
        loop {
            let failure = match call(self.current_client()?).await {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            let gone = gone_since.get_or_insert_with(Instant::now).elapsed();
            if failure.exit != FailureExit::Unavailable || gone > RECONNECT_TIMEOUT {
                return Err(failure.into());
            }
            tokio::time::sleep(RECONNECT_RETRY_AFTER).await;
        }
    }

    async fn cancel_session(&self, session: &str) -> AcpResult {
        let path = &format!("/sessions/{}/stop", encode_segment(session));
        let stopped: StopResult = self
            .retry_while_unavailable(|client| async move { client.post_as(path, &json!({})).await })
            .await?;
        Ok(json!(stopped))
    }
}

fn initialize_result() -> Value {
    json!({
        "protocolVersion": ACP_PROTOCOL_VERSION,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
        },
        "agentInfo": { "name": "polyclaw", "title": "Polyclaw", "version": env!("CARGO_PKG_VERSION") },
        "authMethods": [],
    })
}

fn session_id_param(params: &Value) -> Result<&str, AcpError> {
    params["sessionId"].as_str().ok_or_else(|| AcpError::invalid_params("sessionId is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::GlobalOptions;
    use crate::home::Home;
    use crate::output::CliOutput;

    #[tokio::test]
    async fn session_cancel_applies_only_to_earlier_prompts() {
        let global = GlobalOptions { json: false, url: None, token: None };
        let context = CommandContext { home: Home::at("none".into()), output: CliOutput::new(false), global };
        let editor = EditorConnection {
            context,
            agent: None,
            peer: EditorPeer::on_stdout(),
            cancels: Mutex::default(),
        };
        let (one, other) = (json!({ "sessionId": "a" }), json!({ "sessionId": "b" }));
        let before = editor.count_cancels("session/prompt", &one);
        assert!(!editor.is_cancelled("a", before));
        editor.count_cancels("session/cancel", &one);
        assert!(editor.is_cancelled("a", before));
        let after = editor.count_cancels("session/prompt", &one);
        assert!(!editor.is_cancelled("a", after), "what comes behind it is not meant");
        assert!(!editor.is_cancelled("b", editor.count_cancels("session/prompt", &other)));
    }
}
