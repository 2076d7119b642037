//! Which agent answers what.

use serde_json::{Map, Value, json};

use super::names::Renamed;
use super::notes::Notes;
use super::part::Part;
use super::{put, session};
use crate::channel;

pub(super) fn bindings(whole: &mut Part, renamed: &Renamed, channels: &Value, notes: &mut Notes) -> Value {
    let path = whole.at("bindings");
    let Some(items) = whole.list("bindings", notes) else { return Value::Null };
    let mut bindings = Vec::new();
    for (at, item) in items.into_iter().enumerate() {
        let part = Part::of(&format!("{path}[{at}]"), item, notes);
        let place = part.path().to_owned();
        let Some(found) = binding(part, renamed, notes) else { continue };
        match missing_account(&found["match"], channels) {
            Some(why) => notes.ignore(&place, why),
            None => bindings.push(found),
        }
    }
    Value::Array(bindings)
}

/// Why a binding leads nowhere: its account was left out.
fn missing_account(wanted: &Value, channels: &Value) -> Option<String> {
    let (channel, account) = (wanted["channel"].as_str()?, wanted["account_id"].as_str()?);
    let has_accounts = !["web", "cli", "api"].contains(&channel);
    let is_there = account == "*" || channels[channel].get(account).is_some();
    (has_accounts && !is_there)
        .then(|| format!("the {channel} account {account:?} did not come along, so its binding is left out"))
}

fn binding(mut part: Part, renamed: &Renamed, notes: &mut Notes) -> Option<Value> {
    let path = part.path().to_owned();
    if part.text("type", notes).is_some_and(|kind| kind != "route") {
        part.rest("only bindings to agents are known here", notes);
        notes.ignore(&format!("{path}.type"), "only bindings to agents are known here");
        return None;
    }
    let named = part.text("agentId", notes)?;
    let Some(agent) = renamed.find(&named) else {
        part.rest("its agent is not there", notes);
        notes.ignore(&format!("{path}.agentId"), format!("there is no agent {named:?}"));
        return None;
    };
    let wanted = wanted(part.part("match", notes), notes)?;
    let mut table = Map::new();
    put(&mut table, "agent_id", agent.as_str());
    put(&mut table, "match", wanted);
    let mut own = part.part("session", notes);
    put(&mut table, "dm_scope", session::scope(&mut own, notes));
    own.rest("a binding has a scope of direct messages", notes);
    if part.take("comment").is_some() {
        notes.ignore(&part.at("comment"), "a binding has no comment");
    }
    part.rest("a binding has an agent and what it matches", notes);
    Some(Value::Object(table))
}

fn wanted(mut part: Part, notes: &mut Notes) -> Option<Map<String, Value>> {
    let mut table = Map::new();
    let at = part.at("channel");
    let channel = part.text("channel", notes).map(|channel| channel.to_lowercase());
    let Some(channel) = channel.filter(|channel| channel::known().contains(&&**channel)) else {
        notes.ignore(&at, "a binding names a channel that is known here");
        part.rest("it names no channel that is known here", notes);
        return None;
    };
    put(&mut table, "channel", channel);
    put(&mut table, "account_id", part.text("accountId", notes).map(|account| account.to_lowercase()));
    put(&mut table, "guild_id", part.text("guildId", notes));
    put(&mut table, "team_id", part.text("teamId", notes));
    put(&mut table, "roles", part.texts("roles", notes));
    let mut peer = part.part("peer", notes);
    if !peer.is_empty() {
        let kind = match peer.text("kind", notes).as_deref() {
            Some("direct" | "dm") => "direct",
            Some("group") => "group",
            Some("channel" | "room") => "channel",
            _ => {
                notes.ignore(peer.path(), "a conversation is direct, a group or a channel");
                return None;
            }
        };
        let id = peer.text("id", notes).unwrap_or_else(|| "*".to_owned());
        put(&mut table, "peer", json!({ "kind": kind, "id": id }));
    }
    peer.rest("a conversation has a kind and an id", notes);
    // A rule that is said more loosely than it was meant would send others' messages there.
    if !part.is_empty() {
        part.rest("nothing like it can be matched, so that the whole binding is left out", notes);
        return None;
    }
    Some(table)
}

pub(super) fn broadcast(whole: &mut Part, renamed: &Renamed, notes: &mut Notes) -> Value {
    let mut part = whole.part("broadcast", notes);
    let mut table = Map::new();
    match part.text("strategy", notes).as_deref() {
        Some(strategy @ ("parallel" | "sequential")) => {
            put(&mut table, "strategy", strategy);
            // There agents never see what the others answered.
            put(&mut table, "see_previous", false);
        }
        Some(_) => notes.ignore(&part.at("strategy"), "it is parallel or sequential"),
        None => {}
    }
    for (path, peer, value) in part.values() {
        let named: Vec<String> = serde_json::from_value(value).unwrap_or_default();
        let agents = renamed.listed(&path, &named, notes);
        if agents.is_empty() {
            notes.ignore(&path, "nobody is left to answer there");
        }
        put(&mut table, &peer, agents);
    }
    Value::Object(table)
}
