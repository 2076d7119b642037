//! Translates cron jobs.

use serde_json::{Map, Value};

use super::agent_names::AgentRenames;
use super::insert_nonempty;
use super::notes::TranslationNotes;
use super::source_table::SourceTable;
use crate::config::CronJobConfig;
use crate::time::Millis;

pub(super) fn translate_cron_jobs(
    file: Option<Value>,
    renamed: &AgentRenames,
    channels: &Value,
    notes: &mut TranslationNotes,
) -> Value {
    let Some(file) = file else { return Value::Null };
    let mut part = SourceTable::from_value("cron/jobs.json", file, notes);
    let jobs = part.take_list("jobs", notes);
    if part.take_value("version").is_none() && jobs.is_none() {
        notes.note_ignored("cron/jobs.json", "it contains no jobs");
    }
    part.note_rest("only jobs are supported", notes);
    let Some(jobs) = jobs else { return Value::Null };
    let mut found: Vec<Value> = Vec::new();
    for (at, job) in jobs.into_iter().enumerate() {
        let part = SourceTable::from_value(&format!("cron/jobs.json.jobs[{at}]"), job, notes);
        let taken: Vec<&str> = found.iter().filter_map(|job| job["id"].as_str()).collect();
        let job = self::translate_job(part, (&taken, at), renamed, channels, notes);
        found.extend(job);
    }
    Value::Array(found)
}

fn translate_job(
    mut part: SourceTable,
    (taken, at): (&[&str], usize),
    renamed: &AgentRenames,
    channels: &Value,
    notes: &mut TranslationNotes,
) -> Option<Value> {
    let path = part.path().to_owned();
    let (id, name) = (part.take_text("id", notes), part.take_text("name", notes));
    let mut table = Map::new();
    insert_nonempty(&mut table, "id", unique_job_id(&name.or(id).unwrap_or_default(), taken, at));
    translate_schedule(part.take_table("schedule", notes), &mut table, notes);
    let mut payload = part.take_table("payload", notes);
    payload.take_text("kind", notes);
    let text = payload.take_text("message", notes).or_else(|| payload.take_text("text", notes));
    let older = legacy_delivery(&mut payload, notes);
    let older = SourceTable::from_value(payload.path(), older, notes);
    payload.note_rest("a job has only a message for an agent", notes);
    insert_nonempty(&mut table, "message", text);
    if let Some(named) = part.take_text("agentId", notes) {
        match renamed.find_agent(&named) {
            Some(agent) => insert_nonempty(&mut table, "agent", agent.as_str()),
            None => notes.note_ignored(&part.key_path("agentId"), format!("there is no agent {named:?}")),
        }
    }
    insert_nonempty(&mut table, "enabled", part.take_flag("enabled", notes));
    let delivery = part.take_table("delivery", notes);
    let delivery = if delivery.is_empty() { older } else { delivery };
    insert_nonempty(&mut table, "deliver_to", translate_target(delivery, channels, notes));
    // State of the job in OpenClaw.
    for key in ["state", "createdAtMs", "updatedAtMs", "createdAt", "updatedAt"] {
        part.take_value(key);
    }
    part.note_rest("a job has only a time, an agent and a message", notes);
    let job: Option<CronJobConfig> = serde_json::from_value(Value::Object(table.clone())).ok();
    if job.is_some_and(|job| job.parse_schedule().is_ok()) {
        return Some(Value::Object(table));
    }
    notes.note_ignored(&path, "its time or message is missing or cannot be parsed");
    None
}

/// The first generation stored the delivery target with the message.
fn legacy_delivery(payload: &mut SourceTable, notes: &mut TranslationNotes) -> Value {
    let mut table = Map::new();
    insert_nonempty(&mut table, "channel", payload.take_text("channel", notes));
    insert_nonempty(&mut table, "to", payload.take_text("to", notes));
    match payload.take_flag("deliver", notes) {
        Some(false) => Value::Null,
        _ => Value::Object(table),
    }
}

fn unique_job_id(wanted: &str, taken: &[&str], at: usize) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let id: String = wanted.chars().map(word).take(48).collect();
    let id = id.trim_matches('-');
    match id {
        "" => format!("job-{at}"),
        id if taken.contains(&id) => format!("{id}-{at}"),
        id => id.to_owned(),
    }
}

fn translate_schedule(mut part: SourceTable, table: &mut Map<String, Value>, notes: &mut TranslationNotes) {
    let kind = part.take_text("kind", notes);
    insert_nonempty(table, "timezone", part.take_text("tz", notes));
    let rule = match kind.as_deref() {
        Some("every") => {
            part.take_number("everyMs", notes).map(|length| format!("every {}s", (length / 1000).max(1)))
        }
        Some("at") => {
            let moment = part.take_number("atMs", notes).and_then(|at| i64::try_from(at).ok()).map(Millis);
            let written = part.take_text("at", notes);
            moment.map(|at| at.to_string()).or(written).map(|moment| format!("at {moment}"))
        }
        _ => part.take_text("expr", notes),
    };
    insert_nonempty(table, "schedule", rule);
    for key in ["anchorMs", "staggerMs"] {
        if part.take_value(key).is_some() {
            notes.note_ignored(&part.key_path(key), "run times are computed from the schedule");
        }
    }
    part.note_rest("a time is a cron expression, an interval or a point in time", notes);
}

/// Translates a target only if its account was imported; otherwise the answer stays in the conversation.
fn translate_target(mut part: SourceTable, channels: &Value, notes: &mut TranslationNotes) -> Value {
    let (mode, channel) = (part.take_text("mode", notes), part.take_text("channel", notes));
    let (peer, account) = (part.take_text("to", notes), part.take_text("accountId", notes));
    let path = part.path().to_owned();
    part.note_rest("delivery has only a channel and a conversation", notes);
    let (Some(channel), Some(peer)) = (channel, peer) else { return Value::Null };
    let account = account.map(|account| account.to_lowercase()).or_else(|| only_account(&channels[&channel]));
    let name = account.clone().unwrap_or_else(|| crate::config::DEFAULT_ACCOUNT.to_owned());
    let known = channels[&channel].get(&name).is_some();
    if mode.as_deref() == Some("none") {
        return Value::Null;
    }
    if !known {
        notes.note_ignored(&path, "its account was not imported, so answers are only stored");
        return Value::Null;
    }
    let peer = peer.strip_prefix(&format!("{channel}:")).unwrap_or(&peer).to_owned();
    let mut table = Map::new();
    insert_nonempty(&mut table, "channel", channel);
    insert_nonempty(&mut table, "account", account);
    insert_nonempty(&mut table, "peer", peer);
    Value::Object(table)
}

/// Returns the only account of a channel, for targets that name none.
fn only_account(accounts: &Value) -> Option<String> {
    let accounts = accounts.as_object()?;
    accounts.keys().next().filter(|_| accounts.len() == 1).cloned()
}
