//! Translates agents of both config generations: a list whose entries have ids, or a table whose keys are the ids.

use serde_json::{Map, Value, json};

use super::agent_names::{AgentRenames, rename_agents};
use super::models::OpenclawModels;
use super::notes::TranslationNotes;
use super::source_table::SourceTable;
use super::{insert_nonempty, tools};
use crate::id::AgentId;

/// Workspace folders that belong to no agent.
const RESERVED_FOLDERS: [&str; 2] = ["skills", "agents"];

/// Source and target folders of an agent's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenclawAgentFiles {
    pub id: AgentId,
    /// Its id in OpenClaw.
    pub called: String,
    /// The workspace as configured there, for this agent or for all.
    pub workspace: Option<String>,
    /// Other possible folders below the source home, most likely first.
    pub usual: Vec<String>,
    /// Target below our workspace. `None` is the workspace itself, for a single agent.
    pub dir: Option<String>,
}

impl OpenclawAgentFiles {
    /// Returns whether the id is safe as a folder name.
    pub fn has_folder(&self) -> bool {
        !self.called.starts_with('.') && !self.called.contains(['/', '\\', '\0'])
    }
}

pub(super) struct AgentRoster {
    pub agents: Value,
    pub heartbeats: Value,
    pub files: Vec<OpenclawAgentFiles>,
    pub renamed: AgentRenames,
}

pub(super) fn translate_agents(
    whole: &mut SourceTable,
    models: &mut OpenclawModels,
    notes: &mut TranslationNotes,
) -> AgentRoster {
    let mut section = whole.take_table("agents", notes);
    // The first generation had one agent, in a section of its own.
    let older = whole.take_table("agent", notes);
    let own = section.take_table("defaults", notes);
    let mut defaults = if own.is_empty() { older } else { own.overlay_on(&older) };
    for (alias, model) in read_model_aliases(&mut defaults, notes) {
        models.add_alias(alias, model);
    }
    let listed = read_agent_list(&mut section, notes);
    let renamed = rename_agents(&listed, notes);
    let shared = defaults.take_text("workspace", notes);
    let mut roster = AgentRoster { agents: json!({}), heartbeats: json!({}), files: Vec::new(), renamed };
    let every = defaults.take_table("heartbeat", notes);
    let mut table = Map::new();
    let mut whole = translate_defaults(defaults, &roster.renamed, models, notes);
    if let Some(default) =
        section.take_text("default", notes).and_then(|id| roster.renamed.find_agent(&id).cloned())
    {
        insert_nonempty(&mut table, "default", default.as_str());
    }
    let mut list: Vec<Value> = Vec::new();
    for (called, part) in listed {
        let Some(id) = roster.renamed.find_agent(&called).cloned() else { continue };
        list.push(translate_agent(&mut roster, (id, called), part, &every, models, notes));
    }
    if list.is_empty() {
        roster.renamed.add_main();
        let main = (AgentId::main(), "main".to_owned());
        list.push(translate_agent(&mut roster, main, SourceTable::default(), &every, models, notes));
    }
    let default = ensure_one_default(&mut list, &table);
    assign_folders(&mut roster.files, &mut list, default, shared.as_deref());
    ensure_distinct_names(&mut list, notes);
    whole.retain(|_, value| !super::is_empty(value));
    insert_nonempty(&mut table, "defaults", whole);
    insert_nonempty(&mut table, "list", list);
    section.note_rest("agents have only defaults and a list", notes);
    roster.agents = Value::Object(table);
    roster
}

/// Makes the first agent the default if none is marked, as OpenClaw did. Returns the index of the default agent.
fn ensure_one_default(list: &mut [Value], table: &Map<String, Value>) -> usize {
    let marked = list.iter().position(|agent| agent["default"] == true);
    // A second default would be rejected.
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

/// Renames agents with duplicate names, which could not be distinguished.
fn ensure_distinct_names(list: &mut [Value], notes: &mut TranslationNotes) {
    let mut seen: Vec<String> =
        list.iter().filter_map(|agent| agent["id"].as_str().map(str::to_owned)).collect();
    for agent in list {
        let id = agent["id"].as_str().unwrap_or_default().to_owned();
        let Some(name) = agent["name"].as_str().map(str::to_owned) else { continue };
        if name != id && seen.contains(&name) {
            notes.note_changed(
                &format!("agents.{id}.name"),
                "another agent has this name; the id is used as its name",
            );
            agent["name"] = json!(id);
        }
        seen.push(name);
    }
}

fn read_agent_list(section: &mut SourceTable, notes: &mut TranslationNotes) -> Vec<(String, SourceTable)> {
    let mut listed: Vec<(String, SourceTable)> = section.take_table("entries", notes).into_tables(notes);
    let path = section.key_path("list");
    let Some(items) = section.take_list("list", notes) else { return listed };
    for (at, item) in items.into_iter().enumerate() {
        let mut part = SourceTable::from_value(&format!("{path}[{at}]"), item, notes);
        match part.take_text("id", notes) {
            Some(id) if listed.iter().any(|(other, _)| *other == id) => {
                part.note_rest("another agent has the same id", notes);
                notes.note_ignored(&format!("{path}[{at}].id"), "another agent has the same id");
            }
            Some(id) => listed.push((id, part)),
            None => part.note_rest("it has no id", notes),
        }
    }
    listed
}

/// Reads `models: {"provider/model": {alias: "short"}}`.
fn read_model_aliases(defaults: &mut SourceTable, notes: &mut TranslationNotes) -> Vec<(String, String)> {
    let mut names = Vec::new();
    for (model, mut part) in defaults.take_table("models", notes).into_tables(notes) {
        if let Some(alias) = part.take_text("alias", notes) {
            notes.note_changed(&part.key_path("alias"), "models are referenced without the short name");
            names.push((alias, model));
        }
        part.note_rest("the providers list the available models", notes);
    }
    names
}

fn translate_defaults(
    mut part: SourceTable,
    renamed: &AgentRenames,
    models: &mut OpenclawModels,
    notes: &mut TranslationNotes,
) -> Map<String, Value> {
    let mut table = Map::new();
    translate_model(&mut part, &mut table, models, notes);
    let children = part.take_table("subagents", notes);
    insert_nonempty(&mut table, "subagents", translate_subagents(children, renamed, models, notes));
    part.note_rest("there is no such default for agents", notes);
    table
}

/// Translates a model, or a table of a model and its fallbacks. A single model has no fallbacks.
fn translate_model(
    part: &mut SourceTable,
    table: &mut Map<String, Value>,
    models: &mut OpenclawModels,
    notes: &mut TranslationNotes,
) {
    let path = part.key_path("model");
    match part.take_value("model") {
        Some(Value::String(text)) => {
            insert_nonempty(table, "model", models.resolve_model(&path, &text, notes));
            table.insert("fallbacks".to_owned(), json!([]));
        }
        Some(other) => {
            let mut choice = SourceTable::from_value(&path, other, notes);
            let first = choice.take_text("primary", notes);
            let first =
                first.and_then(|text| models.resolve_model(&choice.key_path("primary"), &text, notes));
            insert_nonempty(table, "model", first);
            let others = choice.take_texts("fallbacks", notes);
            let at = choice.key_path("fallbacks");
            let others = others.iter().filter_map(|text| models.resolve_model(&at, text, notes));
            insert_nonempty(table, "fallbacks", others.collect::<Vec<_>>());
            choice.note_rest("a model has only a primary model and fallbacks", notes);
        }
        None => {}
    }
}

fn translate_subagents(
    mut part: SourceTable,
    renamed: &AgentRenames,
    models: &mut OpenclawModels,
    notes: &mut TranslationNotes,
) -> Map<String, Value> {
    let mut table = Map::new();
    let allowed = part.take_texts("allowAgents", notes);
    insert_nonempty(
        &mut table,
        "allow_agents",
        renamed.rename_list(&part.key_path("allowAgents"), &allowed, notes),
    );
    insert_nonempty(&mut table, "max_spawn_depth", part.take_bounded("maxSpawnDepth", (1, 5), notes));
    insert_nonempty(
        &mut table,
        "max_children_per_agent",
        part.take_bounded("maxChildrenPerAgent", (1, 20), notes),
    );
    insert_nonempty(&mut table, "max_concurrent", part.take_bounded("maxConcurrent", (1, 1_000), notes));
    insert_nonempty(
        &mut table,
        "run_timeout_seconds",
        part.take_bounded("runTimeoutSeconds", (1, 86_400), notes),
    );
    insert_nonempty(
        &mut table,
        "archive_after_minutes",
        part.take_bounded("archiveAfterMinutes", (0, 1_000_000), notes),
    );
    if let Some(text) = part.take_text("model", notes) {
        insert_nonempty(&mut table, "model", models.resolve_model(&part.key_path("model"), &text, notes));
    }
    let at = part.key_path("thinking");
    match part.take_text("thinking", notes).as_deref() {
        Some(effort @ ("low" | "medium" | "high")) => insert_nonempty(&mut table, "thinking", effort),
        Some("minimal") => insert_nonempty(&mut table, "thinking", "low"),
        Some("xhigh") => insert_nonempty(&mut table, "thinking", "high"),
        Some(_) => notes.note_ignored(&at, "only low, medium and high are supported"),
        None => {}
    }
    part.note_rest("there is no such setting for sub-agents", notes);
    table
}

fn translate_agent(
    roster: &mut AgentRoster,
    (id, called): (AgentId, String),
    mut part: SourceTable,
    every: &SourceTable,
    models: &mut OpenclawModels,
    notes: &mut TranslationNotes,
) -> Value {
    let mut table = Map::new();
    insert_nonempty(&mut table, "id", id.as_str());
    insert_nonempty(&mut table, "name", part.take_text("name", notes));
    insert_nonempty(&mut table, "description", part.take_text("description", notes));
    insert_nonempty(&mut table, "default", part.take_flag("default", notes));
    insert_nonempty(&mut table, "system_prompt", part.take_text("systemPrompt", notes));
    translate_model(&mut part, &mut table, models, notes);
    let mut shown = part.take_table("identity", notes);
    let mut identity = Map::new();
    for key in ["name", "emoji", "avatar"] {
        insert_nonempty(&mut identity, key, shown.take_text(key, notes));
    }
    shown.note_rest("an identity has only a name, an emoji and an avatar", notes);
    insert_nonempty(&mut table, "identity", identity);
    insert_nonempty(&mut table, "tools", tools::translate_policy(part.take_table("tools", notes), notes));
    insert_nonempty(&mut table, "skills", translate_skills(&mut part, notes));
    let children = translate_subagents(part.take_table("subagents", notes), &roster.renamed, models, notes);
    insert_nonempty(&mut table, "subagents", children);
    translate_heartbeat(&mut roster.heartbeats, &id, part.take_table("heartbeat", notes), every, notes);
    let workspace = part.take_text("workspace", notes);
    roster.files.push(OpenclawAgentFiles { id, called, workspace, usual: Vec::new(), dir: None });
    part.take_table("sandbox", notes)
        .note_rest("sandbox settings differ: set sandbox.mode to off, workspace or strict yourself", notes);
    part.note_rest("there is no such setting for agents", notes);
    Value::Object(table)
}

/// Translates skills: no list allows every skill, an empty list none.
fn translate_skills(part: &mut SourceTable, notes: &mut TranslationNotes) -> Value {
    let stated = part.take_value("skills");
    let is_none = stated.as_ref().and_then(Value::as_array).is_some_and(Vec::is_empty);
    let mut again = SourceTable::from_value(part.path(), json!({ "skills": stated }), notes);
    match (is_none, again.take_texts("skills", notes)) {
        (true, _) => json!({ "deny": ["*"] }),
        (false, names) if names.is_empty() => Value::Null,
        (false, names) => json!({ "allow": names }),
    }
}

fn translate_heartbeat(
    all: &mut Value,
    id: &AgentId,
    own: SourceTable,
    every: &SourceTable,
    notes: &mut TranslationNotes,
) {
    if own.is_empty() && every.is_empty() {
        return;
    }
    let mut part = own.overlay_on(every);
    let pace = part.take_text("every", notes).unwrap_or_else(|| "30m".to_owned());
    part.note_rest("a heartbeat has only an interval, and reports to the agent's main conversation", notes);
    // An interval of 0 means never.
    if !pace.starts_with('0') {
        all[id.as_str()] = json!({ "every": pace });
    }
}

/// Determines source and target folders. A configured shared folder is the default agent's own; the others are inside
/// it or, in the older layout, next to it.
fn assign_folders(all: &mut [OpenclawAgentFiles], list: &mut [Value], default: usize, shared: Option<&str>) {
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
        files.dir = (!alone).then(|| choose_folder(others, files));
        if let (Some(dir), Value::Object(table)) = (&files.dir, agent) {
            insert_nonempty(table, "workspace", dir.as_str());
        }
    }
}

/// Agents that shared a folder share one again.
fn choose_folder(others: &[OpenclawAgentFiles], files: &OpenclawAgentFiles) -> String {
    let same = others.iter().find(|other| files.workspace.is_some() && other.workspace == files.workspace);
    let id = &files.id;
    same.and_then(|other| other.dir.clone()).unwrap_or_else(|| {
        match RESERVED_FOLDERS.contains(&id.as_str()) {
            true => format!("{id}-files"),
            false => id.to_string(),
        }
    })
}
