//! Reads transcript files of OpenClaw and stores them as conversations.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use polyclaw_domain::channel::INTERNAL_CHANNEL;
use polyclaw_domain::id::{AgentId, MessageId, SessionId, TurnId};
use polyclaw_domain::message::{MessageOrigin, MessageRole};
use polyclaw_domain::openclaw::{self, AgentRenames, ImportedLine, OpenclawAgentFiles, TranslationNotes};
use polyclaw_domain::port::IdGenerator;
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::session::Session;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::time::Millis;
use polyclaw_store::messages::{self, SessionMessage};
use polyclaw_store::{Db, DbTarget, Tx, sessions};
use serde_json::{Map, Value};

use super::source;
use crate::error::{Error, Result};
use crate::instance_paths::InstancePaths;

/// The size limit of all transcripts together. Transcripts beyond it are not imported, and the report says so.
const MAX_TRANSCRIPT_BYTES: u64 = 256 * 1024 * 1024;

#[derive(Clone)]
pub struct ImportedConversation {
    key: SessionKey,
    agent: AgentId,
    pub messages: Vec<ImportedLine>,
    updated: Millis,
}

/// State while transcripts are read.
struct TranscriptContext<'a> {
    left: u64,
    redactor: &'a Redactor,
    notes: &'a mut TranslationNotes,
}

pub fn read_conversations(
    root: &Path,
    agents: &[OpenclawAgentFiles],
    renamed: &AgentRenames,
    (redactor, notes): (&Redactor, &mut TranslationNotes),
) -> Vec<ImportedConversation> {
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    let mut reading = TranscriptContext { left: MAX_TRANSCRIPT_BYTES, redactor, notes };
    for files in agents.iter().filter(|files| files.has_folder()) {
        let folder = root.join("agents").join(&files.called);
        let database = folder.join("agent/openclaw-agent.sqlite");
        if database.exists() {
            let place = format!("agents/{}/agent/openclaw-agent.sqlite", files.called);
            reading.notes.note_ignored(
                &place,
                "conversations are imported only from transcripts: export them there first",
            );
        }
        let list = folder.join("sessions/sessions.json");
        let place = format!("agents/{}/sessions/sessions.json", files.called);
        let listed = match list.exists().then(|| source::read_json5(&list)) {
            Some(Ok(Value::Object(listed))) => listed,
            Some(_) => {
                reading.notes.note_ignored(&place, "it cannot be read");
                continue;
            }
            None => Map::new(),
        };
        for file in list_unlisted_transcripts(&folder.join("sessions"), &listed) {
            let place = format!("agents/{}/sessions/{file}", files.called);
            reading.notes.note_ignored(&place, "no sessions.json refers to it");
        }
        for (name, entry) in listed {
            let read = read_conversation(&folder, (&name, &entry), files, renamed, &mut reading);
            match read {
                Ok(one) if known.insert(one.key.clone()) => found.push(one),
                Ok(_) => {
                    reading.notes.note_ignored(
                        &format!("{place}.{name:?}"),
                        "another conversation has the same session key here",
                    );
                }
                Err(why) => reading.notes.note_ignored(&format!("{place}.{name:?}"), why),
            }
        }
    }
    found
}

/// Lists transcripts that no conversation refers to.
fn list_unlisted_transcripts(folder: &Path, listed: &Map<String, Value>) -> Vec<String> {
    let named: BTreeSet<String> =
        listed.values().filter_map(|entry| Some(format!("{}.jsonl", entry["sessionId"].as_str()?))).collect();
    let there = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = there.filter_map(|entry| entry.file_name().into_string().ok());
    let mut left: Vec<String> =
        names.filter(|name| name.ends_with(".jsonl") && !named.contains(name)).collect();
    left.sort();
    left
}

fn read_conversation(
    folder: &Path,
    (name, entry): (&str, &Value),
    files: &OpenclawAgentFiles,
    renamed: &AgentRenames,
    reading: &mut TranscriptContext<'_>,
) -> std::result::Result<ImportedConversation, &'static str> {
    let full = if name == "main" { format!("agent:{}:main", files.called) } else { name.to_owned() };
    let key =
        openclaw::translate_session_key(&full, renamed).ok_or("Polyclaw has no such kind of conversation")?;
    let id = entry["sessionId"].as_str().filter(|id| is_plain_file_name(id)).ok_or("it has no transcript")?;
    let path = folder.join("sessions").join(format!("{id}.jsonl"));
    let file = crate::file::open_regular_file(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => "its transcript does not exist",
        _ => "its transcript cannot be read",
    })?;
    let size = file.metadata().map_err(|_| "its transcript cannot be read")?.len();
    reading.left = reading.left.checked_sub(size).ok_or("the transcripts together exceed the size limit")?;
    let (mut messages, mut broken) = (Vec::new(), 0);
    for line in BufReader::new(file.take(size)).split(b'\n') {
        let line = line.map_err(|_| "its transcript cannot be read")?;
        // A line cut short by a crash does not discard the others.
        match serde_json::from_slice::<Value>(&line) {
            Ok(value) => messages.extend(openclaw::parse_line(&value)),
            Err(_) => broken += usize::from(!line.trim_ascii().is_empty()),
        }
    }
    // Secrets that people pasted are redacted, as in any chat.
    messages.iter_mut().for_each(|message| reading.redactor.redact_in_place(&mut message.text));
    if broken > 0 {
        let place = format!("agents/{}/sessions/{id}.jsonl", files.called);
        reading.notes.note_ignored(&place, format!("{broken} of its lines are damaged and were skipped"));
    }
    if messages.is_empty() {
        return Err("it has no messages");
    }
    let stated = entry["updatedAt"].as_i64().map(Millis);
    let updated = messages.iter().rev().find_map(|message| message.at).or(stated).unwrap_or(Millis(0));
    Ok(ImportedConversation { key, agent: files.id.clone(), messages, updated })
}

/// Whether the id is a plain file name that cannot leave its folder.
fn is_plain_file_name(id: &str) -> bool {
    !id.is_empty()
        && !id.starts_with('.')
        && id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

pub async fn write_conversations(
    place: &InstancePaths,
    ids: &dyn IdGenerator,
    conversations: Vec<ImportedConversation>,
) -> Result<()> {
    if conversations.is_empty() {
        return Ok(());
    }
    let db = Db::open(&DbTarget::Sqlite(place.database_file())).map_err(Error::Store)?;
    for one in conversations {
        let session = SessionId::new(ids.next_id());
        let messages = one.to_session_messages(&session, ids);
        db.write(move |tx| store_conversation(tx, &one, &session, &messages)).await?;
    }
    Ok(())
}

impl ImportedConversation {
    /// Starts a new turn with each user message, followed by its answers.
    fn to_session_messages(&self, session: &SessionId, ids: &dyn IdGenerator) -> Vec<SessionMessage> {
        let mut turn = TurnId::new(ids.next_id());
        let mut at = self.messages.iter().find_map(|line| line.at).unwrap_or(self.updated);
        let made = self.messages.iter().map(|line| {
            if line.role == MessageRole::User {
                turn = TurnId::new(ids.next_id());
            }
            at = line.at.unwrap_or(at);
            let origin = if line.role == MessageRole::User {
                MessageOrigin::User
            } else {
                MessageOrigin::Agent(self.agent.clone())
            };
            SessionMessage {
                id: MessageId::new(ids.next_id()),
                session: self.key.clone(),
                session_id: session.clone(),
                position: 0,
                role: line.role,
                text: line.text.clone(),
                parts: Vec::new(),
                origin,
                channel: INTERNAL_CHANNEL.to_owned(),
                deliver: false,
                address: None,
                meta: None,
                idempotency_key: None,
                turn: turn.clone(),
                created_at: at,
            }
        });
        made.collect()
    }
}

fn store_conversation(
    tx: &mut Tx<'_>,
    one: &ImportedConversation,
    session: &SessionId,
    messages: &[SessionMessage],
) -> polyclaw_store::Result<()> {
    let began = messages.first().map_or(one.updated, |first| first.created_at);
    sessions::ensure(
        tx,
        &Session::new_for_person(one.key.clone(), session.clone(), one.agent.clone(), began),
    )?;
    let first = sessions::allocate_positions(tx, &one.key, messages.len(), one.updated)?.unwrap_or(1);
    for (ticket, message) in (first..).zip(messages) {
        messages::insert_at(tx, message, ticket)?;
    }
    Ok(())
}
