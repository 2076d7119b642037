//! What tools may do. Names differ; a rule that would let more through than it did is not taken over.

use serde_json::{Map, Value, json};

use super::names::Renamed;
use super::notes::Notes;
use super::part::Part;
use super::put;
use super::secrets::Secrets;
use crate::policy::{self, ToolPolicy};

/// Tools and groups by their names there, and ours. What is not here must have the same name.
const NAMES: [(&str, &str); 8] = [
    ("read", "read_file"),
    ("write", "write_file"),
    ("edit", "edit_file"),
    ("exec", "shell"),
    ("bash", "shell"),
    ("process", "shell"),
    ("web_fetch", "http_fetch"),
    ("memory_get", "memory_search"),
];

pub(super) fn read(
    whole: &mut Part,
    renamed: &Renamed,
    secrets: &mut Secrets<'_>,
    notes: &mut Notes,
) -> Value {
    let mut part = whole.part("tools", notes);
    let mut between = part.part("agentToAgent", notes);
    let mut relay = Map::new();
    if between.flag("enabled", notes) == Some(true) {
        put(&mut relay, "enabled", true);
    }
    let listed = between.texts("allow", notes);
    put(&mut relay, "allow", renamed.listed(&between.at("allow"), &listed, notes));
    between.rest("agents may write to each other or not", notes);
    let mut web = part.part("web", notes);
    let search = web_search(web.part("search", notes), secrets, notes);
    web.rest("of the web only the search service is set here", notes);
    let mut rules = policy(part, notes);
    put(&mut rules, "web_search", search);
    put(&mut rules, "agent_to_agent", relay);
    Value::Object(rules)
}

/// The search service, where it is one that is known here and has its key.
fn web_search(mut part: Part, secrets: &mut Secrets<'_>, notes: &mut Notes) -> Value {
    if part.is_empty() {
        return Value::Null;
    }
    let is_off = part.flag("enabled", notes) == Some(false);
    let kind = part.text("provider", notes).unwrap_or_else(|| "brave".to_owned());
    let key = part.take("apiKey").and_then(|key| secrets.reference(&part.at("apiKey"), &key, notes));
    let key = key.or_else(|| secrets.usual("BRAVE_API_KEY", notes).filter(|_| kind == "brave"));
    let place = part.path().to_owned();
    part.rest("a search service has a kind and a key", notes);
    match key {
        Some(key) if !is_off && ["brave", "tavily"].contains(&kind.as_str()) => {
            json!({ "kind": kind, "api_key": key })
        }
        _ => {
            notes.ignore(&place, "it is off, its key is not here, or the service is not known here");
            Value::Null
        }
    }
}

/// The rules of one scope.
pub(super) fn policy(mut part: Part, notes: &mut Notes) -> Map<String, Value> {
    let mut table = Map::new();
    let at = part.at("profile");
    match part.text("profile", notes) {
        Some(profile) if ["minimal", "coding", "messaging", "full"].contains(&profile.as_str()) => {
            put(&mut table, "profile", profile);
        }
        Some(_) => notes.ignore(&at, "there is no such profile"),
        None => {}
    }
    let (allow, some) = names(&mut part, "allow", notes);
    let (mut deny, _) = names(&mut part, "deny", notes);
    // A list of which nothing is left would allow everything.
    if allow.is_empty() && some {
        notes.change(&part.at("allow"), "none of these tools is here, so that the agent has none");
        deny = vec!["*".to_owned()];
    }
    put(&mut table, "allow", allow);
    put(&mut table, "deny", deny);
    part.rest("tools have a profile and lists of what is allowed and denied", notes);
    table
}

/// The names we have for those of a list, and whether it named any.
fn names(part: &mut Part, key: &str, notes: &mut Notes) -> (Vec<String>, bool) {
    let at = part.at(key);
    let stated = part.texts(key, notes);
    let mut found: Vec<String> = Vec::new();
    for name in &stated {
        let ours = NAMES.iter().find(|(there, _)| there == name).map_or(name.as_str(), |(_, here)| *here);
        let rule: ToolPolicy = serde_json::from_value(json!({ "allow": [ours] })).unwrap_or_default();
        if !policy::check(&rule, &[], &[]).is_empty() {
            notes.ignore(&at, format!("there is no tool {name:?}"));
        } else if !found.iter().any(|other| other == ours) {
            found.push(ours.to_owned());
        }
    }
    (found, !stated.is_empty())
}
