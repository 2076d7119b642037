//! Translates session settings.

use serde_json::{Map, Value};

use super::insert_nonempty;
use super::notes::TranslationNotes;
use super::source_table::SourceTable;

const DM_SCOPES: [&str; 4] = ["main", "per-peer", "per-channel-peer", "per-account-channel-peer"];

pub(super) fn translate_dm_scope(part: &mut SourceTable, notes: &mut TranslationNotes) -> Option<String> {
    let scope = part.take_text("dmScope", notes)?;
    if DM_SCOPES.contains(&scope.as_str()) {
        return Some(scope);
    }
    notes.note_ignored(&part.key_path("dmScope"), "there is no such scope");
    None
}

pub(super) fn translate_session(whole: &mut SourceTable, notes: &mut TranslationNotes) -> Value {
    let mut part = whole.take_table("session", notes);
    let mut table = Map::new();
    insert_nonempty(&mut table, "main_key", part.take_text("mainKey", notes));
    insert_nonempty(&mut table, "dm_scope", translate_dm_scope(&mut part, notes));
    insert_nonempty(
        &mut table,
        "identity_links",
        translate_links(part.take_table("identityLinks", notes), notes),
    );
    insert_nonempty(
        &mut table,
        "maintenance",
        translate_maintenance(part.take_table("maintenance", notes), notes),
    );
    part.note_rest("there is no such setting for conversations", notes);
    Value::Object(table)
}

fn translate_links(part: SourceTable, notes: &mut TranslationNotes) -> Map<String, Value> {
    let mut links = Map::new();
    let mut known: Vec<String> = Vec::new();
    for (path, person, value) in part.into_values() {
        let ids: Vec<String> = serde_json::from_value(value).unwrap_or_default();
        let is_one = |id: &str| id.split_once(':').is_some_and(|(at, id)| !at.is_empty() && !id.is_empty());
        let (good, bad): (Vec<String>, Vec<String>) =
            ids.into_iter().partition(|id| is_one(id) && !known.contains(id));
        if !bad.is_empty() || good.is_empty() || person.contains(':') {
            notes.note_ignored(
                &path,
                "a person is a name without ':' and a list of ids like telegram:1, each used once",
            );
        }
        if !good.is_empty() && !person.contains(':') {
            known.extend(good.clone());
            insert_nonempty(&mut links, &person, good);
        }
    }
    links
}

fn translate_maintenance(mut part: SourceTable, notes: &mut TranslationNotes) -> Map<String, Value> {
    let mut table = Map::new();
    match part.take_text("mode", notes).as_deref() {
        Some(mode @ ("warn" | "enforce")) => insert_nonempty(&mut table, "mode", mode),
        Some(_) => notes.note_ignored(&part.key_path("mode"), "expected warn or enforce"),
        None => {}
    }
    let (at, stated) = (part.key_path("pruneAfter"), part.take_text("pruneAfter", notes));
    let days = stated.as_deref().map(|text| text.strip_suffix('d').unwrap_or(text).parse::<u64>());
    match days {
        Some(Ok(days)) => insert_nonempty(&mut table, "prune_after_days", days.clamp(1, 3650)),
        Some(Err(_)) => notes.note_ignored(&at, "expected a number of days"),
        None => {
            insert_nonempty(&mut table, "prune_after_days", part.take_bounded("pruneDays", (1, 3650), notes));
        }
    }
    insert_nonempty(&mut table, "max_entries", part.take_bounded("maxEntries", (1, 1_000_000), notes));
    part.note_rest("only age and number are supported as limits", notes);
    table
}
