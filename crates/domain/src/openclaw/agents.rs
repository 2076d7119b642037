//! Agents, of both generations: a list whose entries have ids, or a table whose keys are the ids.

use serde_json::{Map, Value, json};

use super::models::Models;
use super::names::{Renamed, name_all};
use super::notes::Notes;
use super::part::Part;
use super::{put, tools};
use crate::id::AgentId;

/// Folders of a workspace that are not an agent's.
const RESERVED: [&str; 2] = ["skills", "agents"];

/// Where the files of an agent are, and where they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    pub id: AgentId,
    /// Its id there.
    pub called: String,
    /// As it is written there, for it or for all.
    pub workspace: Option<String>,
    /// Where else it may be below the home there, the likeliest first.
    pub usual: Vec<String>,
    /// Below our workspace; that itself for an agent that is alone.
    pub dir: Option<String>,
}

impl Files {
    /// Whether its id can be the name of a folder and of nothing else.
    pub fn has_folder(&self) -> bool {
        !self.called.starts_with('.') && !self.called.contains(['/', '\\', '\0'])
    }
}

pub(super) struct Roster {
    pub agents: Value,
    pub heartbeats: Value,
    pub files: Vec<Files>,
    pub renamed: Renamed,
}

pub(super) fn read(whole: &mut Part, models: &mut Models, notes: &mut Notes) -> Roster {
    let mut section = whole.part("agents", notes);
    // The first generation had one agent, in a section of its own.
    let older = whole.part("agent", notes);
    let own = section.part("defaults", notes);
    let mut defaults = if own.is_empty() { older } else { own.over(&older) };
    for (alias, model) in short_names(&mut defaults, notes) {
        models.alias(alias, model);
    }
    let listed = listed(&mut section, notes);
    let renamed = name_all(&listed, notes);
    let shared = defaults.text("workspace", notes);
    let mut roster = Roster { agents: json!({}), heartbeats: json!({}), files: Vec::new(), renamed };
    let every = defaults.part("heartbeat", notes);
    let mut table = Map::new();
    let mut whole = section_defaults(defaults, &roster.renamed, models, notes);
    if let Some(default) = section.text("default", notes).and_then(|id| roster.renamed.find(&id).cloned()) {
        put(&mut table, "default", default.as_str());
    }
    let mut list: Vec<Value> = Vec::new();
    for (called, part) in listed {
        let Some(id) = roster.renamed.find(&called).cloned() else { continue };
        list.push(agent(&mut roster, (id, called), part, &every, models, notes));
    }
    if list.is_empty() {
        roster.renamed.add_main();
        let main = (AgentId::main(), "main".to_owned());
        list.push(agent(&mut roster, main, Part::default(), &every, models, notes));
    }
    let default = one_default(&mut list, &table);
    place(&mut roster.files, &mut list, default, shared.as_deref());
    distinct_names(&mut list, notes);
    whole.retain(|_, value| !super::is_empty(value));
    put(&mut table, "defaults", whole);
    put(&mut table, "list", list);
    section.rest("agents have defaults and a list", notes);
    roster.agents = Value::Object(table);
    roster
}

/// Several agents and none that answers first: the first one does, as it did there. Where it is in the list comes back.
fn one_default(list: &mut [Value], table: &Map<String, Value>) -> usize {
    let marked = list.iter().position(|agent| agent["default"] == true);
    // A second one would be refused.
    for other in list.iter_mut().skip(marked.map_or(usize::MAX, |at| at + 1)) {
        if other["default"] == true {
            other["default"] = json!(false);
        }
    }
    let named = || table.get("default").and_then(|id| list.iter().position(|agent| agent["id"] == *id));
    if let Some(at) = marked.or_else(named) {
        return at;
    }
    if let Some(first) = list.first_mut() {
        first["default"] = json!(true);
    }
    0
}

/// Two agents of one name could not be told apart.
fn distinct_names(list: &mut [Value], notes: &mut Notes) {
    let mut seen: Vec<String> =
        list.iter().filter_map(|agent| agent["id"].as_str().map(str::to_owned)).collect();
    for agent in list {
        let id = agent["id"].as_str().unwrap_or_default().to_owned();
        let Some(name) = agent["name"].as_str().map(str::to_owned) else { continue };
        if name != id && seen.contains(&name) {
            notes.change(&format!("agents.{id}.name"), "another agent is called that: it goes by its id");
            agent["name"] = json!(id);
        }
        seen.push(name);
    }
}

fn listed(section: &mut Part, notes: &mut Notes) -> Vec<(String, Part)> {
    let mut listed: Vec<(String, Part)> = section.part("entries", notes).parts(notes);
    let path = section.at("list");
    let Some(items) = section.list("list", notes) else { return listed };
    for (at, item) in items.into_iter().enumerate() {
        let mut part = Part::of(&format!("{path}[{at}]"), item, notes);
        match part.text("id", notes) {
            Some(id) if listed.iter().any(|(other, _)| *other == id) => {
                part.rest("another agent has the same id", notes);
                notes.ignore(&format!("{path}[{at}].id"), "another agent has the same id");
            }
            Some(id) => listed.push((id, part)),
            None => part.rest("it has no id", notes),
        }
    }
    listed
}

/// `models: {"provider/model": {alias: "short"}}`.
fn short_names(defaults: &mut Part, notes: &mut Notes) -> Vec<(String, String)> {
    let mut names = Vec::new();
    for (model, mut part) in defaults.part("models", notes).parts(notes) {
        if let Some(alias) = part.text("alias", notes) {
            notes.change(&part.at("alias"), "what used the short name has the model itself");
            names.push((alias, model));
        }
        part.rest("models are offered by their providers", notes);
    }
    names
}

fn section_defaults(
    mut part: Part,
    renamed: &Renamed,
    models: &mut Models,
    notes: &mut Notes,
) -> Map<String, Value> {
    let mut table = Map::new();
    model(&mut part, &mut table, models, notes);
    let children = part.part("subagents", notes);
    put(&mut table, "subagents", subagents(children, renamed, models, notes));
    part.rest("agents have no such default", notes);
    table
}

/// A model, or a table of one and those to try after it. A single one has no others to try.
fn model(part: &mut Part, table: &mut Map<String, Value>, models: &mut Models, notes: &mut Notes) {
    let path = part.at("model");
    match part.take("model") {
        Some(Value::String(text)) => {
            put(table, "model", models.resolve(&path, &text, notes));
            table.insert("fallbacks".to_owned(), json!([]));
        }
        Some(other) => {
            let mut choice = Part::of(&path, other, notes);
            let first = choice.text("primary", notes);
            let first = first.and_then(|text| models.resolve(&choice.at("primary"), &text, notes));
            put(table, "model", first);
            let others = choice.texts("fallbacks", notes);
            let at = choice.at("fallbacks");
            let others = others.iter().filter_map(|text| models.resolve(&at, text, notes));
            put(table, "fallbacks", others.collect::<Vec<_>>());
            choice.rest("a model is one, and those to try after it", notes);
        }
        None => {}
    }
}

fn subagents(
    mut part: Part,
    renamed: &Renamed,
    models: &mut Models,
    notes: &mut Notes,
) -> Map<String, Value> {
    let mut table = Map::new();
    let allowed = part.texts("allowAgents", notes);
    put(&mut table, "allow_agents", renamed.listed(&part.at("allowAgents"), &allowed, notes));
    put(&mut table, "max_spawn_depth", part.bounded("maxSpawnDepth", (1, 5), notes));
    put(&mut table, "max_children_per_agent", part.bounded("maxChildrenPerAgent", (1, 20), notes));
    put(&mut table, "max_concurrent", part.bounded("maxConcurrent", (1, 1_000), notes));
    put(&mut table, "run_timeout_seconds", part.bounded("runTimeoutSeconds", (1, 86_400), notes));
    put(&mut table, "archive_after_minutes", part.bounded("archiveAfterMinutes", (0, 1_000_000), notes));
    if let Some(text) = part.text("model", notes) {
        put(&mut table, "model", models.resolve(&part.at("model"), &text, notes));
    }
    let at = part.at("thinking");
    match part.text("thinking", notes).as_deref() {
        Some(effort @ ("low" | "medium" | "high")) => put(&mut table, "thinking", effort),
        Some("minimal") => put(&mut table, "thinking", "low"),
        Some("xhigh") => put(&mut table, "thinking", "high"),
        Some(_) => notes.ignore(&at, "it is low, medium or high"),
        None => {}
    }
    part.rest("sub-agents have no such setting", notes);
    table
}

fn agent(
    roster: &mut Roster,
    (id, called): (AgentId, String),
    mut part: Part,
    every: &Part,
    models: &mut Models,
    notes: &mut Notes,
) -> Value {
    let mut table = Map::new();
    put(&mut table, "id", id.as_str());
    put(&mut table, "name", part.text("name", notes));
    put(&mut table, "description", part.text("description", notes));
    put(&mut table, "default", part.flag("default", notes));
    put(&mut table, "system_prompt", part.text("systemPrompt", notes));
    model(&mut part, &mut table, models, notes);
    let mut shown = part.part("identity", notes);
    let mut identity = Map::new();
    for key in ["name", "emoji", "avatar"] {
        put(&mut identity, key, shown.text(key, notes));
    }
    shown.rest("an agent shows a name, an emoji and a picture", notes);
    put(&mut table, "identity", identity);
    put(&mut table, "tools", tools::policy(part.part("tools", notes), notes));
    put(&mut table, "skills", skills(&mut part, notes));
    let children = subagents(part.part("subagents", notes), &roster.renamed, models, notes);
    put(&mut table, "subagents", children);
    heartbeat(&mut roster.heartbeats, &id, part.part("heartbeat", notes), every, notes);
    let workspace = part.text("workspace", notes);
    roster.files.push(Files { id, called, workspace, usual: Vec::new(), dir: None });
    part.part("sandbox", notes)
        .rest("sandboxes differ: set sandbox.mode to off, workspace or strict yourself", notes);
    part.rest("an agent has no such setting", notes);
    Value::Object(table)
}

/// No list is every skill there is; an empty one is none.
fn skills(part: &mut Part, notes: &mut Notes) -> Value {
    let stated = part.take("skills");
    let is_none = stated.as_ref().and_then(Value::as_array).is_some_and(Vec::is_empty);
    let mut again = Part::of(part.path(), json!({ "skills": stated }), notes);
    match (is_none, again.texts("skills", notes)) {
        (true, _) => json!({ "deny": ["*"] }),
        (false, names) if names.is_empty() => Value::Null,
        (false, names) => json!({ "allow": names }),
    }
}

fn heartbeat(all: &mut Value, id: &AgentId, own: Part, every: &Part, notes: &mut Notes) {
    if own.is_empty() && every.is_empty() {
        return;
    }
    let mut part = own.over(every);
    let pace = part.text("every", notes).unwrap_or_else(|| "30m".to_owned());
    part.rest("a heartbeat has a pace, and says what it finds in the agent's main conversation", notes);
    // Nothing, as it is written there: never.
    if !pace.starts_with('0') {
        all[id.as_str()] = json!({ "every": pace });
    }
}

/// Where the files of each agent are and go. The folder that is stated for all is the default agent's own; those of the
/// others are in it, or, as it was before, beside the default one.
fn place(all: &mut [Files], list: &mut [Value], default: usize, shared: Option<&str>) {
    let alone = all.len() == 1;
    for at in 0..all.len() {
        let (others, rest) = all.split_at_mut(at);
        let (Some(files), Some(agent)) = (rest.first_mut(), list.get_mut(at)) else { continue };
        let own = files.has_folder().then(|| format!("workspace-{}", files.called));
        let stated = files.workspace.take();
        files.usual = match (&stated, shared) {
            (Some(_), _) => Vec::new(),
            (None, Some(_)) if at == default => Vec::new(),
            (None, None) if at == default => std::iter::once("workspace".to_owned()).chain(own).collect(),
            (None, _) => own.into_iter().collect(),
        };
        let below = |folder: &str| match at == default {
            true => Some(folder.to_owned()),
            false => files.has_folder().then(|| format!("{folder}/{}", files.called)),
        };
        files.workspace = stated.or_else(|| shared.and_then(below));
        files.dir = (!alone).then(|| dir(others, files));
        if let (Some(dir), Value::Object(table)) = (&files.dir, agent) {
            put(table, "workspace", dir.as_str());
        }
    }
}

/// Agents that shared a folder do so here.
fn dir(others: &[Files], files: &Files) -> String {
    let same = others.iter().find(|other| files.workspace.is_some() && other.workspace == files.workspace);
    let id = &files.id;
    same.and_then(|other| other.dir.clone()).unwrap_or_else(|| match RESERVED.contains(&id.as_str()) {
        true => format!("{id}-files"),
        false => id.to_string(),
    })
}
