//! Requests to a homeserver.

use std::time::Duration;

use polyclaw_domain::channel::SendOutcome;
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::session::{Login, Session, is_stranger};
use crate::answer::{self, Answer, Refusal};
use crate::client;

/// Longest answer that is read: news of many rooms after a long absence.
const MAX_BODY: usize = 16 << 20;

pub(super) struct Api {
    client: Client,
    base: Url,
    login: Login,
}

/// One request, so that it can be made again after logging in again.
pub(super) struct Ask<'a> {
    pub method: Method,
    pub path: &'a [&'a str],
    pub query: &'a [(&'a str, &'a str)],
    pub body: Option<&'a Value>,
    /// How long it may take, where that is not what every request may.
    pub patience: Option<Duration>,
}

/// Why there is no good answer.
pub(super) enum Trouble {
    /// Nothing was asked: it cannot log in.
    Login(String),
    Wire(reqwest::Error),
    Refused(Refusal),
}

impl<'a> Ask<'a> {
    pub fn get(path: &'a [&'a str]) -> Self {
        Self { method: Method::GET, path, query: &[], body: None, patience: None }
    }

    pub fn put(path: &'a [&'a str], body: &'a Value) -> Self {
        Self { method: Method::PUT, body: Some(body), ..Self::get(path) }
    }

    pub fn post(path: &'a [&'a str], body: &'a Value) -> Self {
        Self { method: Method::POST, body: Some(body), ..Self::get(path) }
    }
}

impl Trouble {
    pub fn reason(self) -> String {
        match self {
            Self::Login(reason) => reason,
            Self::Wire(error) => answer::cause(error),
            Self::Refused(Refusal { status: Some(status), reason, .. }) if status == 401 => {
                format!("{reason}: correct its access_token")
            }
            Self::Refused(refusal) => refusal.reason,
        }
    }

    /// The same request will be refused again: it is about something that is not there or not allowed.
    pub fn is_final(&self) -> bool {
        let Self::Refused(Refusal { status: Some(status), .. }) = self else { return false };
        matches!(status.as_u16(), 400 | 403 | 404 | 410)
    }
}

impl Api {
    pub fn new(client: Client, base: Url, login: Login) -> Self {
        Self { client, base, login }
    }

    pub async fn session(&self) -> Result<Session, Trouble> {
        self.login.session().await.map_err(Trouble::Login)
    }

    pub async fn ask(&self, ask: &Ask<'_>) -> Result<Value, Trouble> {
        self.call(ask).await?.granted().map_err(Trouble::Refused)
    }

    /// Asks for something of a known shape. Half an answer is none: what is missing in it would be taken for what is
    /// not there.
    pub async fn fetch<T: DeserializeOwned>(&self, ask: &Ask<'_>) -> Result<T, Trouble> {
        serde_json::from_value(self.ask(ask).await?).map_err(|_| Trouble::Refused(Refusal::garbled()))
    }

    /// Sends a message under a key that the homeserver knows again.
    pub async fn send(&self, ask: &Ask<'_>) -> SendOutcome {
        match self.call(ask).await {
            Ok(answer) => answer.sent(true, |body| body.get("event_id")),
            Err(Trouble::Wire(error)) => answer::failure(error),
            Err(trouble) => SendOutcome::Retry { reason: trouble.reason(), after_ms: None },
        }
    }

    /// A request for a file, from the own homeserver, wherever it was put first.
    pub async fn file(&self, address: &str) -> Option<RequestBuilder> {
        let (server, id) = address.strip_prefix("mxc://")?.split_once('/')?;
        let session = self.session().await.ok()?;
        let url = path(&self.base, &["v1", "media", "download", server, id]);
        Some(self.client.get(url).bearer_auth(session.token.expose()))
    }

    /// A token that is no longer known is replaced once, where there is a password.
    async fn call(&self, ask: &Ask<'_>) -> Result<Answer, Trouble> {
        let session = self.session().await?;
        let answer = self.call_as(&session, ask).await?;
        if !is_stranger(&answer) || !self.login.forget(&session.token).await {
            return Ok(answer);
        }
        self.call_as(&self.session().await?, ask).await
    }

    async fn call_as(&self, session: &Session, ask: &Ask<'_>) -> Result<Answer, Trouble> {
        let mut url = path(&self.base, ask.path);
        if !ask.query.is_empty() {
            url.query_pairs_mut().extend_pairs(ask.query);
        }
        let mut request = self.client.request(ask.method.clone(), url).bearer_auth(session.token.expose());
        if let Some(body) = ask.body {
            request = request.json(body);
        }
        if let Some(patience) = ask.patience {
            request = request.timeout(patience);
        }
        let response = request.send().await.map_err(Trouble::Wire)?;
        Ok(read(response).await)
    }
}

/// An answer, with the homeserver's word for what is wrong: a word and nothing else.
pub(super) async fn read(response: Response) -> Answer {
    let mut answer = Answer::read(response, MAX_BODY).await;
    let code = answer.body["errcode"].as_str().unwrap_or_default();
    let code: String = code.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.')).collect();
    answer.words = Some(code).filter(|code| !code.is_empty());
    answer.retry_after_ms = answer.retry_after_ms.or(answer.body["retry_after_ms"].as_u64());
    answer
}

pub(super) fn path(base: &Url, parts: &[&str]) -> Url {
    client::below(base, ["_matrix", "client"].iter().chain(parts))
}
