//! What agents do at set times, from the file that lists it.

use serde_json::{Map, Value};

use super::names::Renamed;
use super::notes::Notes;
use super::part::Part;
use super::put;
use crate::config::Cron;
use crate::time::Millis;

pub(super) fn read(file: Option<Value>, renamed: &Renamed, channels: &Value, notes: &mut Notes) -> Value {
    let Some(file) = file else { return Value::Null };
    let mut part = Part::of("cron/jobs.json", file, notes);
    let jobs = part.list("jobs", notes);
    if part.take("version").is_none() && jobs.is_none() {
        notes.ignore("cron/jobs.json", "it lists no jobs");
    }
    part.rest("a file of schedules lists jobs", notes);
    let Some(jobs) = jobs else { return Value::Null };
    let mut found: Vec<Value> = Vec::new();
    for (at, job) in jobs.into_iter().enumerate() {
        let part = Part::of(&format!("cron/jobs.json.jobs[{at}]"), job, notes);
        let taken: Vec<&str> = found.iter().filter_map(|job| job["id"].as_str()).collect();
        let job = self::job(part, (&taken, at), renamed, channels, notes);
        found.extend(job);
    }
    Value::Array(found)
}

fn job(
    mut part: Part,
    (taken, at): (&[&str], usize),
    renamed: &Renamed,
    channels: &Value,
    notes: &mut Notes,
) -> Option<Value> {
    let path = part.path().to_owned();
    let (id, name) = (part.text("id", notes), part.text("name", notes));
    let mut table = Map::new();
    put(&mut table, "id", own_id(&name.or(id).unwrap_or_default(), taken, at));
    schedule(part.part("schedule", notes), &mut table, notes);
    let mut payload = part.part("payload", notes);
    payload.text("kind", notes);
    let said = payload.text("message", notes).or_else(|| payload.text("text", notes));
    let older = delivery_of(&mut payload, notes);
    let older = Part::of(payload.path(), older, notes);
    payload.rest("a schedule has a message for an agent", notes);
    put(&mut table, "message", said);
    if let Some(named) = part.text("agentId", notes) {
        match renamed.find(&named) {
            Some(agent) => put(&mut table, "agent", agent.as_str()),
            None => notes.ignore(&part.at("agentId"), format!("there is no agent {named:?}")),
        }
    }
    put(&mut table, "enabled", part.flag("enabled", notes));
    let delivery = part.part("delivery", notes);
    let delivery = if delivery.is_empty() { older } else { delivery };
    put(&mut table, "deliver_to", target(delivery, channels, notes));
    // What the other program remembers about its runs.
    for key in ["state", "createdAtMs", "updatedAtMs", "createdAt", "updatedAt"] {
        part.take(key);
    }
    part.rest("a schedule has a time, an agent and a message", notes);
    let job: Option<Cron> = serde_json::from_value(Value::Object(table.clone())).ok();
    if job.is_some_and(|job| job.schedule().is_ok()) {
        return Some(Value::Object(table));
    }
    notes.ignore(&path, "it has no time or no message that can be understood");
    None
}

/// The first generation had it with the message.
fn delivery_of(payload: &mut Part, notes: &mut Notes) -> Value {
    let mut table = Map::new();
    put(&mut table, "channel", payload.text("channel", notes));
    put(&mut table, "to", payload.text("to", notes));
    match payload.flag("deliver", notes) {
        Some(false) => Value::Null,
        _ => Value::Object(table),
    }
}

fn own_id(wanted: &str, taken: &[&str], at: usize) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let id: String = wanted.chars().map(word).take(48).collect();
    let id = id.trim_matches('-');
    match id {
        "" => format!("job-{at}"),
        id if taken.contains(&id) => format!("{id}-{at}"),
        id => id.to_owned(),
    }
}

fn schedule(mut part: Part, table: &mut Map<String, Value>, notes: &mut Notes) {
    let kind = part.text("kind", notes);
    put(table, "timezone", part.text("tz", notes));
    let rule = match kind.as_deref() {
        Some("every") => {
            part.number("everyMs", notes).map(|length| format!("every {}s", (length / 1000).max(1)))
        }
        Some("at") => {
            let moment = part.number("atMs", notes).and_then(|at| i64::try_from(at).ok()).map(Millis);
            let written = part.text("at", notes);
            moment.map(|at| at.to_string()).or(written).map(|moment| format!("at {moment}"))
        }
        _ => part.text("expr", notes),
    };
    put(table, "schedule", rule);
    for key in ["anchorMs", "staggerMs"] {
        if part.take(key).is_some() {
            notes.ignore(&part.at(key), "times follow from the schedule alone");
        }
    }
    part.rest("a time is a cron expression, a pace or a moment", notes);
}

/// Only to an account that came along; elsewhere the answer stays in the conversation.
fn target(mut part: Part, channels: &Value, notes: &mut Notes) -> Value {
    let (mode, channel) = (part.text("mode", notes), part.text("channel", notes));
    let (peer, account) = (part.text("to", notes), part.text("accountId", notes));
    let path = part.path().to_owned();
    part.rest("an answer goes to a channel and a conversation", notes);
    let (Some(channel), Some(peer)) = (channel, peer) else { return Value::Null };
    let account = account.map(|account| account.to_lowercase()).or_else(|| only_account(&channels[&channel]));
    let name = account.clone().unwrap_or_else(|| crate::config::DEFAULT_ACCOUNT.to_owned());
    let known = channels[&channel].get(&name).is_some();
    if mode.as_deref() == Some("none") {
        return Value::Null;
    }
    if !known {
        notes.ignore(&path, "its account is not here, so that answers stay inside");
        return Value::Null;
    }
    let peer = peer.strip_prefix(&format!("{channel}:")).unwrap_or(&peer).to_owned();
    let mut table = Map::new();
    put(&mut table, "channel", channel);
    put(&mut table, "account", account);
    put(&mut table, "peer", peer);
    Value::Object(table)
}

/// Where nothing names an account: the only one there is.
fn only_account(accounts: &Value) -> Option<String> {
    let accounts = accounts.as_object()?;
    accounts.keys().next().filter(|_| accounts.len() == 1).cloned()
}
