//! What is wrong with a spec, what it means in plain words, and whether it may do more than another.

use super::{AgentSpec, SandboxMode};
use crate::command;
use crate::config::suggest;
use crate::id::AgentId;
use crate::policy::{self, ApprovalMode, ToolPolicy};
use crate::provider::ModelRef;

/// What an instance has, for a spec to be held against.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub tools: Vec<String>,
    /// Providers by name; empty where they are only found later.
    pub providers: Vec<String>,
    pub mcp_servers: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub path: String,
    pub message: String,
    pub hint: String,
}

const LONGEST_NAME: usize = 80;

/// What an open list means for the agent by default.
const EVERY_TOOL: &str =
    "ALL there are, those of high risk too: it runs programs, reads the web, makes agents";

/// Everything that is wrong with a spec, at once.
pub fn review(spec: &AgentSpec, known: &Known) -> Vec<Problem> {
    let tools: Vec<&str> = known.tools.iter().map(String::as_str).collect();
    let words = policy::check(&spec.policy.tools, &tools, &spec.mcp);
    let words = words.into_iter().map(|unknown| Problem {
        path: format!("policy.tools.{}", unknown.path),
        message: unknown.message,
        hint: unknown.hint,
    });
    named(spec)
        .into_iter()
        .chain(shadowing(spec))
        .chain(words)
        .chain(models(spec, known))
        .chain(servers(spec, known))
        .collect()
}

fn named(spec: &AgentSpec) -> Option<Problem> {
    let is_plain = !spec.name.trim().is_empty()
        && spec.name.chars().count() <= LONGEST_NAME
        && !spec.name.chars().any(char::is_control);
    (!is_plain).then(|| Problem {
        path: "name".to_owned(),
        message: format!("a name is one line of 1 to {LONGEST_NAME} characters"),
        hint: String::new(),
    })
}

/// `/<id>` asks an agent, so an id that is a command could never be asked.
fn shadowing(spec: &AgentSpec) -> Option<Problem> {
    command::is_taken(&spec.agent_id).then(|| Problem {
        path: "agent_id".to_owned(),
        message: format!("/{} is a command", spec.agent_id),
        hint: "give it another id".to_owned(),
    })
}

fn models(spec: &AgentSpec, known: &Known) -> Vec<Problem> {
    let own = spec.defaults.model.iter().map(|model| ("defaults.model".to_owned(), model));
    let others = spec.defaults.fallbacks.iter().enumerate();
    let others = others.map(|(at, model)| (format!("defaults.fallbacks[{at}]"), model));
    own.chain(others).filter_map(|(path, model)| strange(path, model, &known.providers)).collect()
}

fn strange(path: String, model: &ModelRef, providers: &[String]) -> Option<Problem> {
    if providers.is_empty() || providers.contains(&model.provider) {
        return None;
    }
    let names: Vec<&str> = providers.iter().map(String::as_str).collect();
    let message = format!("{model} is of provider {:?}, which is not configured", model.provider);
    Some(Problem { path, message, hint: suggest(&model.provider, &names) })
}

fn servers(spec: &AgentSpec, known: &Known) -> Vec<Problem> {
    let names: Vec<&str> = known.mcp_servers.iter().map(String::as_str).collect();
    let unknown = spec
        .mcp
        .iter()
        .enumerate()
        .filter(|(_, server)| *server != "*" && !known.mcp_servers.contains(server));
    let problem = |(at, server): (usize, &String)| Problem {
        path: format!("mcp[{at}]"),
        message: format!("there is no MCP server {server:?}"),
        hint: suggest(server, &names),
    };
    unknown.map(problem).collect()
}

/// A spec in plain words, for a person who is asked about it. The agent by default may do more with the same words.
pub fn in_words(spec: &AgentSpec, default: &AgentId) -> String {
    let model = spec.defaults.model.as_ref().map_or("the instance's default".to_owned(), ToString::to_string);
    let prompt = spec.defaults.system_prompt.as_deref().unwrap_or("none of its own");
    let mut lines = vec![
        format!("Agent {:?} (id {}): {}", spec.name, spec.agent_id, or(&spec.description, "no description")),
        format!("Model: {model}"),
        format!("Tools: {}", tools_in_words(&spec.policy.tools, spec.agent_id == *default)),
        format!("Asks a person: {}", asks_in_words(&spec.policy.tools)),
        format!("Files: {}", spec.workspace.dir.as_deref().unwrap_or("the instance's workspace")),
    ];
    match spec.sandbox.mode {
        SandboxMode::Off => lines.push("Its programs run WITHOUT a sandbox".to_owned()),
        SandboxMode::Workspace => {}
        SandboxMode::Strict => lines.push("Its programs have no network".to_owned()),
    }
    if !spec.mcp.is_empty() {
        lines.push(format!("MCP servers: {}", spec.mcp.join(", ")));
    }
    lines.push(format!("Told to: {prompt}"));
    lines.join("\n")
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

fn tools_in_words(policy: &ToolPolicy, is_default: bool) -> String {
    let base = match (policy.profile, policy.allow.is_empty()) {
        (Some(profile), true) => format!("the profile {:?}", profile.as_str()),
        (Some(profile), false) => {
            format!("of the profile {:?} only {}", profile.as_str(), policy.allow.join(", "))
        }
        (None, false) => policy.allow.join(", "),
        (None, true) if is_default => EVERY_TOOL.to_owned(),
        (None, true) => "all of low risk".to_owned(),
    };
    match policy.deny.is_empty() {
        true => base,
        false => format!("{base}, but never {}", policy.deny.join(", ")),
    }
}

fn asks_in_words(policy: &ToolPolicy) -> String {
    let word = |mode: ApprovalMode| match mode {
        ApprovalMode::Never => "never",
        ApprovalMode::Unsafe => "before what is unsafe",
        ApprovalMode::Always => "before every call",
    };
    let general = policy.approval.map_or("as the instance says", word);
    let single = policy.approvals.iter().map(|(entry, mode)| format!(", {entry} {}", word(*mode)));
    format!("{general}{}", single.collect::<String>())
}

/// Whether `to` may do something that `from` may not. Where that is not plain, the answer is yes.
pub fn widens(from: &AgentSpec, to: &AgentSpec) -> bool {
    let (old, new) = (&from.policy.tools, &to.policy.tools);
    let keeps_denied = old.deny.iter().all(|entry| new.deny.contains(entry));
    let keeps_profile = old.profile.is_none() && new.profile.is_none() || old.profile == new.profile;
    let keeps_list = match old.allow.is_empty() {
        // An open list has no tool of high risk; one that names some may.
        true => new.allow.is_empty(),
        false => !new.allow.is_empty() && new.allow.iter().all(|entry| old.allow.contains(entry)),
    };
    let asks_as_often = old.approval == new.approval && old.approvals == new.approvals;
    let same_reach = from.workspace == to.workspace
        && from.isolation == to.isolation
        && from.sandbox == to.sandbox
        && from.context_policy == to.context_policy;
    let same_money = from.budget == to.budget;
    let same_servers = to.mcp.iter().all(|server| from.mcp.contains(server));
    let same_skills = from.policy.skills == to.policy.skills;
    !(keeps_denied
        && keeps_profile
        && keeps_list
        && asks_as_often
        && same_reach
        && same_money
        && same_servers
        && same_skills)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(more: serde_json::Value) -> AgentSpec {
        let mut whole = json!({ "agent_id": "ops", "name": "Ops" });
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    fn known() -> Known {
        Known {
            tools: vec!["look".into()],
            providers: vec!["openai".into()],
            mcp_servers: vec!["files".into()],
        }
    }

    #[test]
    fn everything_wrong_is_said_at_once_with_the_nearest_right_word() {
        let bad = spec(json!({
            "defaults": { "model": "opnai/x", "fallbacks": ["openai/y", "else/z"] },
            "policy": { "tools": { "allow": ["lok", "group:fz"], "deny": ["shell"] } },
            "mcp": ["fils"],
        }));
        let said: Vec<String> = review(&bad, &known())
            .into_iter()
            .map(|p| format!("{}: {}; {}", p.path, p.message, p.hint))
            .collect();
        assert_eq!(
            said,
            [
                "policy.tools.allow[0]: there is no tool \"lok\"; did you mean \"look\"?",
                "policy.tools.allow[1]: there is no \"group:fz\"; did you mean \"group:fs\"?",
                "defaults.model: opnai/x is of provider \"opnai\", which is not configured; did you mean \"openai\"?",
                "defaults.fallbacks[1]: else/z is of provider \"else\", which is not configured; there is only \"openai\"",
                "mcp[0]: there is no MCP server \"fils\"; did you mean \"files\"?",
            ]
        );
        assert!(
            review(
                &spec(json!({ "policy": { "tools": { "allow": ["look", "files_x"] } }, "mcp": ["files"] })),
                &known()
            )
            .is_empty()
        );
        assert_eq!(review(&spec(json!({ "name": "a\nb" })), &known())[0].path, "name");
    }

    #[test]
    fn more_tools_fewer_questions_or_another_place_widen() {
        let tools = |policy: serde_json::Value| spec(json!({ "policy": { "tools": policy } }));
        let base = tools(json!({ "allow": ["read_file", "shell"], "deny": ["x"] }));
        for narrower in [
            json!({ "allow": ["read_file"], "deny": ["x", "shell"] }),
            json!({ "allow": ["shell"], "deny": ["x"] }),
        ] {
            assert!(!widens(&base, &tools(narrower.clone())), "{narrower}");
        }
        for wider in [
            json!({ "allow": [], "deny": ["x"] }),
            json!({ "allow": ["shell", "http_fetch"], "deny": ["x"] }),
            json!({ "allow": ["shell"] }),
            json!({ "allow": ["shell"], "deny": ["x"], "approval": "never" }),
            json!({ "allow": ["shell"], "deny": ["x"], "profile": "full" }),
        ] {
            assert!(widens(&base, &tools(wider.clone())), "{wider}");
        }
        let open = spec(json!({}));
        assert!(
            widens(&open, &tools(json!({ "allow": ["*", "shell"] }))),
            "a list can grant what is of high risk"
        );
        assert!(
            widens(&open, &spec(json!({ "workspace": "/" })))
                && widens(&open, &spec(json!({ "sandbox": { "mode": "off" } })))
        );
        assert!(!widens(
            &open,
            &spec(json!({ "description": "other words", "defaults": { "system_prompt": "x" } }))
        ));
    }

    #[test]
    fn plain_words_leave_nothing_dangerous_out() {
        let main = AgentId::main();
        let open = spec(json!({}));
        assert!(in_words(&open, &main).contains("Tools: all of low risk"));
        assert!(in_words(&open, &open.agent_id).contains("Tools: ALL there are, those of high risk too"));
        let listed = spec(json!({
            "policy": { "tools": { "allow": ["shell"], "approval": "never", "approvals": { "shell": "never" } } },
            "sandbox": { "mode": "off" }, "workspace": "/",
        }));
        let words = in_words(&listed, &main);
        for said in ["Tools: shell", "Asks a person: never, shell never", "Files: /", "WITHOUT a sandbox"] {
            assert!(words.contains(said), "{words}");
        }
    }
}
