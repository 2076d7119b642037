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
    (has_accounts && !is_there)
        .then(|| format!("the {channel} account {account:?} did not come along, so its binding is left out"))
}

fn translate_binding(
    mut part: SourceTable,
    renamed: &AgentRenames,
    notes: &mut TranslationNotes,
) -> Option<Value> {
    let path = part.path().to_owned();
    if part.take_text("type", notes).is_some_and(|kind| kind != "route") {
        part.note_rest("only bindings to agents are known here", notes);
        notes.note_ignored(&format!("{path}.type"), "only bindings to agents are known here");
        return None;
    }
    let named = part.take_text("agentId", notes)?;
    let Some(agent) = renamed.find_agent(&named) else {
        part.note_rest("its agent is not there", notes);
        notes.note_ignored(&format!("{path}.agentId"), format!("there is no agent {named:?}"));
        return None;
    };
    let wanted = translate_match(part.take_table("match", notes), notes)?;
    let mut table = Map::new();
    insert_nonempty(&mut table, "agent_id", agent.as_str());
    insert_nonempty(&mut table, "match", wanted);
    let mut own = part.take_table("session", notes);
    insert_nonempty(&mut table, "dm_scope", session::translate_dm_scope(&mut own, notes));
    own.note_rest("a binding has a scope of direct messages", notes);
    if part.take_value("comment").is_some() {
        notes.note_ignored(&part.key_path("comment"), "a binding has no comment");
    }
    part.note_rest("a binding has an agent and what it matches", notes);
    Some(Value::Object(table))
}

fn translate_match(mut part: SourceTable, notes: &mut TranslationNotes) -> Option<Map<String, Value>> {
    let mut table = Map::new();
    let at = part.key_path("channel");
    let channel = part.take_text("channel", notes).map(|channel| channel.to_lowercase());
    let Some(channel) = channel.filter(|channel| channel::known_channels().contains(&&**channel)) else {
        notes.note_ignored(&at, "a binding names a channel that is known here");
        part.note_rest("it names no channel that is known here", notes);
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
                notes.note_ignored(peer.path(), "a conversation is direct, a group or a channel");
                return None;
            }
        };
        let id = peer.take_text("id", notes).unwrap_or_else(|| "*".to_owned());
        insert_nonempty(&mut table, "peer", json!({ "kind": kind, "id": id }));
    }
    peer.note_rest("a conversation has a kind and an id", notes);
    // A binding with fewer conditions would route messages of others there.
    if !part.is_empty() {
        part.note_rest("nothing like it can be matched, so that the whole binding is left out", notes);
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
        Some(_) => notes.note_ignored(&part.key_path("strategy"), "it is parallel or sequential"),
        None => {}
    }
    for (path, peer, value) in part.into_values() {
        let named: Vec<String> = serde_json::from_value(value).unwrap_or_default();
        let agents = renamed.rename_list(&path, &named, notes);
        if agents.is_empty() {
            notes.note_ignored(&path, "nobody is left to answer there");
        }
        insert_nonempty(&mut table, &peer, agents);
    }
    Value::Object(table)
}
