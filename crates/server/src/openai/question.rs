//! Turns a client request into a turn: finds the session, imports history and adds the new input.

use std::collections::HashSet;

use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::hex::encode_hex;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::job::JobState;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::ToolCall;
use polyclaw_engine::TurnAnswer;
use polyclaw_engine::ingress::{AcceptedMessage, IngressMessage, ToolResult};
use polyclaw_store::messages;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::access::AccessLevel;
use crate::error::{Error, Result};
use crate::extract::bounded_key;
use crate::openai::content::{ClientConversation, ClientFunction};
use crate::openai::idempotency::RepeatMarker;
use crate::openai::models;
use crate::state::AppState;
use crate::turn_follower::TurnFollower;

pub struct ClientQuestion {
    pub by: AccessLevel,
    pub model: String,
    pub user: Option<String>,
    pub conversation: ClientConversation,
    pub tools: Vec<ClientFunction>,
    /// The session of the response that this one continues.
    pub continues: Option<SessionKey>,
    pub repeat: RepeatMarker,
    /// The token limit of the answer.
    pub max_tokens: Option<u32>,
}

/// A request whose message is stored durably.
pub struct AcceptedQuestion {
    pub accepted: AcceptedMessage,
    pub follow: TurnFollower,
    pub calls: ClientToolCalls,
}

/// The client's tools, and the call ids that the client sees.
#[derive(Clone)]
pub struct ClientToolCalls {
    names: HashSet<String>,
    /// The id of the one-request session, if the client names no `user`. Call ids carry it, so that results find the
    /// session.
    run: Option<String>,
}

impl ClientToolCalls {
    /// Returns the calls that the client must run, with the ids it will send back.
    pub fn client_calls(&self, answer: &TurnAnswer) -> Vec<ToolCall> {
        let ours = answer.calls.iter().filter(|call| self.names.contains(&call.name));
        let outward = |call: &ToolCall| match &self.run {
            Some(run) => ToolCall { id: format!("{}-{run}", call.id), ..call.clone() },
            None => call.clone(),
        };
        ours.map(outward).collect()
    }
}

/// The session that a request goes to.
struct QuestionTarget {
    key: SessionKey,
    run: Option<String>,
    is_fresh: bool,
    /// Calls of the session that wait for results.
    open: Vec<ToolCall>,
}

pub async fn accept_question(app: &AppState, question: ClientQuestion) -> Result<AcceptedQuestion> {
    if !question.conversation.has_new_input() {
        return Err(Error::InvalidBody("the last message must be from the user or a tool".to_owned()));
    }
    let agent = models::agent_for_model(app, &question.model)?;
    let place = find_target(app, &agent, &question).await?;
    let idempotency_key = question.repeat.idempotency_key(app, &place.key, &question.conversation).await?;
    // Results of an accepted request are not matched again, because its calls are no longer open.
    let tool_results = match is_already_accepted(app, &place.key, idempotency_key.as_deref()).await? {
        true => question.conversation.results.iter().map(unmatched_result).collect(),
        false => match_results(&question.conversation, &place)?,
    };
    let names = question.tools.iter().map(|tool| tool.name.clone()).collect();
    let calls = ClientToolCalls { names, run: place.run.clone() };
    let mut meta = message_meta(&question);
    question.by.authority().write_to_meta(&mut meta);
    let (text, parts) = (question.conversation.new_text(), question.conversation.new_images()?);
    if place.is_fresh && !question.conversation.history.is_empty() {
        app.engine.import_history(&place.key, &agent, question.conversation.history).await?;
    }
    let peer = question.user.or(place.run).unwrap_or_default();
    let address = ChatAddress { channel: "api".into(), account: "openai".into(), peer, thread: None };
    let inbound = IngressMessage {
        idempotency_key,
        parts,
        meta,
        tool_results,
        ..IngressMessage::from_person(place.key, agent, address, text)
    };
    let inbound = app.engine.resolve_addressee(inbound).await?;
    let watch = app.engine.hub.subscribe(&inbound.session);
    let accepted = app.engine.accept_message(inbound).await?;
    let follow = TurnFollower::new(app.engine.clone(), watch, &accepted);
    Ok(AcceptedQuestion { accepted, follow, calls })
}

async fn find_target(app: &AppState, agent: &AgentId, question: &ClientQuestion) -> Result<QuestionTarget> {
    let known =
        |key: SessionKey, run: Option<String>, open| QuestionTarget { key, run, is_fresh: false, open };
    if let Some(key) = &question.continues {
        let open = open_calls(app, key, question).await?;
        return Ok(known(key.clone(), run_of_session(key), open));
    }
    if let Some(user) = &question.user {
        let key = bounded_key(SessionKey::for_direct(agent, "openai", user), "user")?;
        let open = open_calls(app, &key, question).await?;
        return Ok(known(key, None, open));
    }
    if let Some(run) = question.conversation.results.first().and_then(|(id, _)| id.rsplit_once('-')) {
        let key = bounded_key(session_key_of_run(agent, run.1), "tool_call_id")?;
        let open = app.engine.list_open_calls(&key).await?;
        let repeat = question.repeat.idempotency_key(app, &key, &question.conversation).await?;
        if !open.is_empty() || is_already_accepted(app, &key, repeat.as_deref()).await? {
            return Ok(known(key, Some(run.1.to_owned()), open));
        }
    }
    let run = match question.repeat.client_key() {
        // A repeated request gets the same session.
        Some(key) => encode_hex(&Sha256::digest(key)[..13]),
        None => app.engine.next_id().replace('-', ""),
    };
    Ok(QuestionTarget {
        key: session_key_of_run(agent, &run),
        run: Some(run),
        is_fresh: true,
        open: Vec::new(),
    })
}

/// Whether the session already has a message with this key.
async fn is_already_accepted(app: &AppState, session: &SessionKey, key: Option<&str>) -> Result<bool> {
    let Some(key) = key.map(str::to_owned) else { return Ok(false) };
    let session = session.clone();
    Ok(app.engine.db().read(move |tx| messages::find_by_key(tx, &session, &key)).await?.is_some())
}

/// Returns the calls that wait for results. Skips the query if the request has none.
async fn open_calls(app: &AppState, key: &SessionKey, question: &ClientQuestion) -> Result<Vec<ToolCall>> {
    match question.conversation.results.is_empty() {
        true => Ok(Vec::new()),
        false => Ok(app.engine.list_open_calls(key).await?),
    }
}

fn session_key_of_run(agent: &AgentId, run: &str) -> SessionKey {
    SessionKey::from_parts(agent, &["openai", "run", run])
}

fn run_of_session(key: &SessionKey) -> Option<String> {
    match key.parts().as_slice() {
        [_, _, channel, kind, run] if channel == "openai" && kind == "run" => Some(run.clone()),
        _ => None,
    }
}

/// Matches each result with its call. A result without a call is rejected, because models reject it too.
fn match_results(conversation: &ClientConversation, place: &QuestionTarget) -> Result<Vec<ToolResult>> {
    let suffix = place.run.as_ref().map(|run| format!("-{run}")).unwrap_or_default();
    let result = |(given, content): &(String, String)| {
        let id = given.strip_suffix(&suffix).unwrap_or(given);
        let call = match place.is_fresh {
            true => conversation.find_call(given),
            false => place.open.iter().find(|call| call.id == id),
        };
        let call =
            call.ok_or_else(|| Error::invalid_field("tool_call_id", format!("no open call '{given}'")))?;
        Ok(ToolResult { call_id: call.id.clone(), name: call.name.clone(), content: content.clone() })
    };
    conversation.results.iter().map(result).collect()
}

fn unmatched_result((id, content): &(String, String)) -> ToolResult {
    ToolResult { call_id: id.clone(), name: String::new(), content: content.clone() }
}

/// Returns the message metadata: the client's tools, instructions and token limit.
fn message_meta(question: &ClientQuestion) -> Option<Value> {
    let mut meta = Map::new();
    if !question.tools.is_empty() {
        let tools = question.tools.iter().map(ClientFunction::tool_meta).collect();
        meta.insert("client_tools".to_owned(), Value::Array(tools));
    }
    if let Some(instructions) = question.conversation.instructions() {
        meta.insert("instructions".to_owned(), Value::String(instructions));
    }
    if let Some(tokens) = question.max_tokens {
        meta.insert("max_tokens".to_owned(), tokens.into());
    }
    (!meta.is_empty()).then_some(Value::Object(meta))
}

/// Converts a failed turn to an error, because its reply is only a sentence for people.
pub fn ensure_done(answer: TurnAnswer) -> Result<TurnAnswer> {
    if answer.state == JobState::Done {
        return Ok(answer);
    }
    let code = answer.error_code.unwrap_or_else(|| answer.state.as_str().to_owned());
    let sentence = if answer.text.is_empty() { "The turn was stopped.".to_owned() } else { answer.text };
    Err(Error::TurnFailed { code, sentence })
}
