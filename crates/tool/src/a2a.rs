//! Agents elsewhere, asked by A2A 0.3 (JSON-RPC over HTTP). The same addresses are out of reach as for `http_fetch`.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use polyclaw_domain::a2a::{Looked, RemoteFault, RemoteState, RemoteTask, Remotes};
use polyclaw_domain::config::{RemoteAgent, Secret};
use polyclaw_domain::plain;
use polyclaw_domain::port::Pending;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Response, Url};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::http_fetch::{Web, explain, is_public};

/// One call: a task is not waited for in it.
const LONGEST: Duration = Duration::from_secs(30);
/// What one answer may hold.
const MOST_BYTES: usize = 1024 * 1024;

pub struct RemoteAgents {
    web: Web,
    agents: BTreeMap<String, Remote>,
}

struct Remote {
    url: String,
    token: Option<Secret>,
}

impl fmt::Debug for RemoteAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.agents.keys()).finish()
    }
}

impl RemoteAgents {
    pub fn new(agents: &BTreeMap<String, RemoteAgent>, allow_private: bool) -> Self {
        let rule = if allow_private { |_| true } else { is_public };
        let remote = |agent: &RemoteAgent| Remote { url: agent.url.clone(), token: agent.token.clone() };
        let agents = agents.iter().map(|(name, agent)| (name.clone(), remote(agent))).collect();
        Self { web: Web::new(rule), agents }
    }

    async fn ask(&self, name: &str, method: &str, params: Value) -> Looked {
        let remote = self.agents.get(name).ok_or_else(|| refused("there is no such remote agent"))?;
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let called = tokio::time::timeout(LONGEST, self.call(remote, &body)).await;
        let answer = called.unwrap_or(Err(Error::OutOfTime(LONGEST.as_secs())));
        let answer = answer.map_err(|error| RemoteFault {
            message: error.to_string(),
            is_refusal: matches!(error, Error::Address(_)),
        })?;
        if let Some(message) = answer["error"]["message"].as_str() {
            return Err(refused(&plain::line(message, 500)));
        }
        read(&answer["result"]).ok_or_else(|| refused("its answer is not A2A"))
    }

    async fn call(&self, remote: &Remote, body: &Value) -> Result<Value> {
        let url = Url::parse(&remote.url).map_err(|error| Error::Fetch(error.to_string()))?;
        let mut headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (ACCEPT, HeaderValue::from_static("application/json")),
        ]);
        if let Some(token) = &remote.token {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
            let mut value = value.map_err(|_| Error::Fetch("its token can not be sent".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let response = self.web.send_body(&Method::POST, &url, &headers, body.to_string().into()).await?;
        if !response.status().is_success() {
            return Ok(json!({ "error": { "message": format!("it answered {}", response.status()) } }));
        }
        let bytes = whole(response).await?;
        serde_json::from_slice(&bytes).map_err(|_| Error::Fetch("its answer is not JSON".to_owned()))
    }
}

fn refused(message: &str) -> RemoteFault {
    RemoteFault { message: message.to_owned(), is_refusal: true }
}

async fn whole(mut response: Response) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| Error::Fetch(explain(&error)))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MOST_BYTES {
            return Err(Error::Fetch(format!("its answer has more than {MOST_BYTES} bytes")));
        }
    }
    Ok(bytes)
}

/// A task, or a message that is the whole answer.
fn read(result: &Value) -> Option<RemoteTask> {
    if result["kind"] == "message" {
        return Some(RemoteTask { id: None, state: RemoteState::Completed, text: texts(&result["parts"]) });
    }
    let state = RemoteState::parse(result["status"]["state"].as_str()?);
    let artifacts = result["artifacts"].as_array().into_iter().flatten();
    let made: Vec<String> = artifacts.map(|artifact| texts(&artifact["parts"])).collect();
    let made = made.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
    let said = texts(&result["status"]["message"]["parts"]);
    let text = if made.is_empty() { said } else { made };
    Some(RemoteTask { id: Some(result["id"].as_str()?.to_owned()), state, text })
}

fn texts(parts: &Value) -> String {
    let text = |part: &Value| match part["kind"].as_str() {
        Some("text") => part["text"].as_str().map(str::to_owned),
        Some("data") => Some(part["data"].to_string()),
        _ => None,
    };
    let all: Vec<String> = parts.as_array().into_iter().flatten().filter_map(text).collect();
    plain::block(&all.join("\n"), MOST_BYTES)
}

impl Remotes for RemoteAgents {
    fn is_known(&self, name: &str) -> bool {
        self.agents.contains_key(name)
    }

    fn send<'a>(&'a self, name: &'a str, message_id: &'a str, text: &'a str) -> Pending<'a, Looked> {
        let message = json!({
            "kind": "message", "role": "user", "messageId": message_id,
            "parts": [{ "kind": "text", "text": text }],
        });
        let configuration = json!({ "blocking": false, "acceptedOutputModes": ["text/plain"] });
        let params = json!({ "message": message, "configuration": configuration });
        Box::pin(self.ask(name, "message/send", params))
    }

    fn look<'a>(&'a self, name: &'a str, task: &'a str) -> Pending<'a, Looked> {
        Box::pin(self.ask(name, "tasks/get", json!({ "id": task, "historyLength": 0 })))
    }

    fn cancel<'a>(&'a self, name: &'a str, task: &'a str) -> Pending<'a, Looked> {
        Box::pin(self.ask(name, "tasks/cancel", json!({ "id": task })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_read_with_what_it_made_and_a_message_is_an_end() {
        let task = json!({
            "kind": "task", "id": "t1", "status": { "state": "completed" },
            "artifacts": [
                { "artifactId": "a", "parts": [{ "kind": "text", "text": "one" }, { "kind": "file" }] },
                { "artifactId": "b", "parts": [{ "kind": "data", "data": { "n": 2 } }] },
            ],
        });
        let text = "one\n\n{\"n\":2}".to_owned();
        let done = RemoteTask { id: Some("t1".to_owned()), state: RemoteState::Completed, text };
        assert_eq!(read(&task), Some(done));
        let message = json!({ "kind": "message", "parts": [{ "kind": "text", "text": "hi" }] });
        let told = RemoteTask { id: None, state: RemoteState::Completed, text: "hi".to_owned() };
        assert_eq!(read(&message), Some(told));
        for odd in [json!(null), json!({}), json!({ "id": 1, "status": { "state": "working" } })] {
            assert_eq!(read(&odd), None, "{odd}");
        }
    }

    #[tokio::test]
    async fn a_private_address_is_not_asked_unless_allowed() {
        let agent = RemoteAgent { url: "http://127.0.0.1:9/a2a".to_owned(), token: None };
        let agents = BTreeMap::from([("near".to_owned(), agent)]);
        let fault = RemoteAgents::new(&agents, false).send("near", "m", "hi").await.unwrap_err();
        assert!(fault.is_refusal && fault.message.contains("not a public address"), "{fault:?}");
        let fault = RemoteAgents::new(&agents, true).send("near", "m", "hi").await.unwrap_err();
        assert!(!fault.is_refusal, "nobody is there: {fault:?}");
    }
}
