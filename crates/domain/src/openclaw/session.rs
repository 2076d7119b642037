//! How conversations are kept apart.

use serde_json::{Map, Value};

use super::notes::Notes;
use super::part::Part;
use super::put;

const SCOPES: [&str; 4] = ["main", "per-peer", "per-channel-peer", "per-account-channel-peer"];

pub(super) fn scope(part: &mut Part, notes: &mut Notes) -> Option<String> {
    let scope = part.text("dmScope", notes)?;
    if SCOPES.contains(&scope.as_str()) {
        return Some(scope);
    }
    notes.ignore(&part.at("dmScope"), "there is no such scope");
    None
}

pub(super) fn read(whole: &mut Part, notes: &mut Notes) -> Value {
    let mut part = whole.part("session", notes);
    let mut table = Map::new();
    put(&mut table, "main_key", part.text("mainKey", notes));
    put(&mut table, "dm_scope", scope(&mut part, notes));
    put(&mut table, "identity_links", links(part.part("identityLinks", notes), notes));
    put(&mut table, "maintenance", maintenance(part.part("maintenance", notes), notes));
    part.rest("conversations have no such setting", notes);
    Value::Object(table)
}

fn links(part: Part, notes: &mut Notes) -> Map<String, Value> {
    let mut links = Map::new();
    let mut known: Vec<String> = Vec::new();
    for (path, person, value) in part.values() {
        let ids: Vec<String> = serde_json::from_value(value).unwrap_or_default();
        let is_one = |id: &str| id.split_once(':').is_some_and(|(at, id)| !at.is_empty() && !id.is_empty());
        let (good, bad): (Vec<String>, Vec<String>) =
            ids.into_iter().partition(|id| is_one(id) && !known.contains(id));
        if !bad.is_empty() || good.is_empty() || person.contains(':') {
            notes
                .ignore(&path, "a person is a name without ':', and ids like telegram:1, each of one person");
        }
        if !good.is_empty() && !person.contains(':') {
            known.extend(good.clone());
            put(&mut links, &person, good);
        }
    }
    links
}

fn maintenance(mut part: Part, notes: &mut Notes) -> Map<String, Value> {
    let mut table = Map::new();
    match part.text("mode", notes).as_deref() {
        Some(mode @ ("warn" | "enforce")) => put(&mut table, "mode", mode),
        Some(_) => notes.ignore(&part.at("mode"), "it is warn or enforce"),
        None => {}
    }
    let (at, stated) = (part.at("pruneAfter"), part.text("pruneAfter", notes));
    let days = stated.as_deref().map(|text| text.strip_suffix('d').unwrap_or(text).parse::<u64>());
    match days {
        Some(Ok(days)) => put(&mut table, "prune_after_days", days.clamp(1, 3650)),
        Some(Err(_)) => notes.ignore(&at, "it is not a number of days"),
        None => put(&mut table, "prune_after_days", part.bounded("pruneDays", (1, 3650), notes)),
    }
    put(&mut table, "max_entries", part.bounded("maxEntries", (1, 1_000_000), notes));
    part.rest("unused conversations go by age and number", notes);
    table
}
