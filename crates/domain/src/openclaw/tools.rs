//! Translates tool policies. Names differ; a rule that would allow more than before is not imported.

use serde_json::{Map, Value, json};

use super::agent_names::AgentRenames;
use super::insert_nonempty;
use super::notes::TranslationNotes;
use super::secrets::SecretCollector;
use super::source_table::SourceTable;
use crate::policy::{self, ToolPolicy};

/// Tools and groups by their names there, and our names. Other names must be the same.
const TOOL_NAMES: [(&str, &str); 8] = [
    ("read", "read_file"),
    ("write", "write_file"),
    ("edit", "edit_file"),
    ("exec", "shell"),
    ("bash", "shell"),
    ("process", "shell"),
    ("web_fetch", "http_fetch"),
    ("memory_get", "memory_search"),
];

pub(super) fn translate_tools(
    whole: &mut SourceTable,
    renamed: &AgentRenames,
    secrets: &mut SecretCollector<'_>,
    notes: &mut TranslationNotes,
) -> Value {
    let mut part = whole.take_table("tools", notes);
    let mut between = part.take_table("agentToAgent", notes);
    let mut relay = Map::new();
    if between.take_flag("enabled", notes) == Some(true) {
        insert_nonempty(&mut relay, "enabled", true);
    }
    let listed = between.take_texts("allow", notes);
    insert_nonempty(&mut relay, "allow", renamed.rename_list(&between.key_path("allow"), &listed, notes));
    between.note_rest("only enabled and allow are supported", notes);
    let mut web = part.take_table("web", notes);
    let search = translate_web_search(web.take_table("search", notes), secrets, notes);
    web.note_rest("only the search service is supported", notes);
    let mut rules = translate_policy(part, notes);
    insert_nonempty(&mut rules, "web_search", search);
    insert_nonempty(&mut rules, "agent_to_agent", relay);
    Value::Object(rules)
}

/// Translates the search service, if it is supported here and has its key.
fn translate_web_search(
    mut part: SourceTable,
    secrets: &mut SecretCollector<'_>,
    notes: &mut TranslationNotes,
) -> Value {
    if part.is_empty() {
        return Value::Null;
    }
    let is_off = part.take_flag("enabled", notes) == Some(false);
    let kind = part.take_text("provider", notes).unwrap_or_else(|| "brave".to_owned());
    let key = part
        .take_value("apiKey")
        .and_then(|key| secrets.translate_reference(&part.key_path("apiKey"), &key, notes));
    let key = key.or_else(|| secrets.default_reference("BRAVE_API_KEY", notes).filter(|_| kind == "brave"));
    let place = part.path().to_owned();
    part.note_rest("a search service has only a kind and a key", notes);
    match key {
        Some(key) if !is_off && ["brave", "tavily"].contains(&kind.as_str()) => {
            json!({ "kind": kind, "api_key": key })
        }
        _ => {
            notes.note_ignored(
                &place,
                "it is disabled, its key is not available, or the service is not supported",
            );
            Value::Null
        }
    }
}

/// Translates the policy of one scope.
pub(super) fn translate_policy(mut part: SourceTable, notes: &mut TranslationNotes) -> Map<String, Value> {
    let mut table = Map::new();
    let at = part.key_path("profile");
    match part.take_text("profile", notes) {
        Some(profile) if ["minimal", "coding", "messaging", "full"].contains(&profile.as_str()) => {
            insert_nonempty(&mut table, "profile", profile);
        }
        Some(_) => notes.note_ignored(&at, "there is no such profile"),
        None => {}
    }
    let (allow, some) = translate_names(&mut part, "allow", notes);
    let (mut deny, _) = translate_names(&mut part, "deny", notes);
    // An empty allow list would allow everything.
    if allow.is_empty() && some {
        notes.note_changed(&part.key_path("allow"), "none of these tools exists here, so the agent has none");
        deny = vec!["*".to_owned()];
    }
    insert_nonempty(&mut table, "allow", allow);
    insert_nonempty(&mut table, "deny", deny);
    part.note_rest("only a profile and the lists allow and deny are supported", notes);
    table
}

/// Translates the names in a list. Also returns whether the list had any.
fn translate_names(part: &mut SourceTable, key: &str, notes: &mut TranslationNotes) -> (Vec<String>, bool) {
    let at = part.key_path(key);
    let stated = part.take_texts(key, notes);
    let mut found: Vec<String> = Vec::new();
    for name in &stated {
        let ours =
            TOOL_NAMES.iter().find(|(there, _)| there == name).map_or(name.as_str(), |(_, here)| *here);
        let rule: ToolPolicy = serde_json::from_value(json!({ "allow": [ours] })).unwrap_or_default();
        if !policy::find_invalid_entries(&rule, &[], &[]).is_empty() {
            notes.note_ignored(&at, format!("there is no tool {name:?}"));
        } else if !found.iter().any(|other| other == ours) {
            found.push(ours.to_owned());
        }
    }
    (found, !stated.is_empty())
}
