//! Translates bindings and broadcasts.

use serde_json::{Map, Value, json};

use super::agent_names::AgentRenames;
use super::notes::TranslationNotes;
use super::source_table::SourceTable;
use super::{insert_nonempty, session};
use crate::channel;

pub(super) fn translate_bindings(
    whole: &mut SourceTable,
    renamed: &AgentRenames,
    channels: &Value,
    notes: &mut TranslationNotes,
) -> Value {
    let path = whole.key_path("bindings");
    let Some(items) = whole.take_list("bindings", notes) else { return Value::Null };
    let mut bindings = Vec::new();
    for (at, item) in items.into_iter().enumerate() {
        let part = SourceTable::from_value(&format!("{path}[{at}]"), item, notes);
        let place = part.path().to_owned();
        let Some(found) = translate_binding(part, renamed, notes) else { continue };
        match missing_account(&found["match"], channels) {
            Some(why) => notes.note_ignored(&place, why),
            None => bindings.push(found),
        }
    }
    Value::Array(bindings)
}

/// Returns why a binding has no effect: its account was omitted.
fn missing_account(wanted: &Value, channels: &Value) -> Option<String> {
    let (channel, account) = (wanted["channel"].as_str()?, wanted["account_id"].as_str()?);
    let has_accounts = !["web", "cli", "api"].contains(&channel);
    let is_there = account == "*" || channels[channel].get(account).is_some();
    (has_accounts && !is_there).then(|| {
        format!("its binding is omitted, because the {channel} account {account:?} was not imported")
    })
}

fn translate_binding(
    mut part: SourceTable,
    renamed: &AgentRenames,
    notes: &mut TranslationNotes,
) -> Option<Value> {
    let path = part.path().to_owned();
    if part.take_text("type", notes).is_some_and(|kind| kind != "route") {
        part.note_rest("only bindings to agents are supported", notes);
        notes.note_ignored(&format!("{path}.type"), "only bindings to agents are supported");
        return None;
    }
    let named = part.take_text("agentId", notes)?;
    let Some(agent) = renamed.find_agent(&named) else {
        part.note_rest("its agent does not exist", notes);
        notes.note_ignored(&format!("{path}.agentId"), format!("there is no agent {named:?}"));
        return None;
    };
    let wanted = translate_match(part.take_table("match", notes), notes)?;
    let mut table = Map::new();
    insert_nonempty(&mut table, "agent_id", agent.as_str());
    insert_nonempty(&mut table, "match", wanted);
    let mut own = part.take_table("session", notes);
    insert_nonempty(&mut table, "dm_scope", session::translate_dm_scope(&mut own, notes));
    own.note_rest("a binding has only dm_scope", notes);
    if part.take_value("comment").is_some() {
        notes.note_ignored(&part.key_path("comment"), "bindings have no comments");
    }
    part.note_rest("a binding has only an agent and what it matches", notes);
    Some(Value::Object(table))
}

fn translate_match(mut part: SourceTable, notes: &mut TranslationNotes) -> Option<Map<String, Value>> {
    let mut table = Map::new();
    let at = part.key_path("channel");
    let channel = part.take_text("channel", notes).map(|channel| channel.to_lowercase());
    let Some(channel) = channel.filter(|channel| channel::known_channels().contains(&&**channel)) else {
        notes.note_ignored(&at, "the channel is not supported");
        part.note_rest("its channel is not supported", notes);
        return None;
    };
    insert_nonempty(&mut table, "channel", channel);
    insert_nonempty(
        &mut table,
        "account_id",
        part.take_text("accountId", notes).map(|account| account.to_lowercase()),
    );
    insert_nonempty(&mut table, "guild_id", part.take_text("guildId", notes));
    insert_nonempty(&mut table, "team_id", part.take_text("teamId", notes));
    insert_nonempty(&mut table, "roles", part.take_texts("roles", notes));
    let mut peer = part.take_table("peer", notes);
    if !peer.is_empty() {
        let kind = match peer.take_text("kind", notes).as_deref() {
            Some("direct" | "dm") => "direct",
            Some("group") => "group",
            Some("channel" | "room") => "channel",
            _ => {
                notes.note_ignored(peer.path(), "expected direct, group or channel");
                return None;
            }
        };
        let id = peer.take_text("id", notes).unwrap_or_else(|| "*".to_owned());
        insert_nonempty(&mut table, "peer", json!({ "kind": kind, "id": id }));
    }
    peer.note_rest("a conversation has only a kind and an id", notes);
    // A binding with fewer conditions would route messages of others there.
    if !part.is_empty() {
        part.note_rest("this condition is not supported, so the whole binding is omitted", notes);
        return None;
    }
    Some(table)
}

pub(super) fn translate_broadcast(
    whole: &mut SourceTable,
    renamed: &AgentRenames,
    notes: &mut TranslationNotes,
) -> Value {
    let mut part = whole.take_table("broadcast", notes);
    let mut table = Map::new();
    match part.take_text("strategy", notes).as_deref() {
        Some(strategy @ ("parallel" | "sequential")) => {
            insert_nonempty(&mut table, "strategy", strategy);
            // In OpenClaw, agents never see what the others answered.
            insert_nonempty(&mut table, "see_previous", false);
        }
        Some(_) => notes.note_ignored(&part.key_path("strategy"), "expected parallel or sequential"),
        None => {}
    }
    for (path, peer, value) in part.into_values() {
        let named: Vec<String> = serde_json::from_value(value).unwrap_or_default();
        let agents = renamed.rename_list(&path, &named, notes);
        if agents.is_empty() {
            notes.note_ignored(&path, "no agent is left to answer there");
        }
        insert_nonempty(&mut table, &peer, agents);
    }
    Value::Object(table)
}
