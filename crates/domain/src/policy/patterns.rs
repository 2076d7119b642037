//! Entries of a tool policy: tools, groups, profiles and patterns.

use super::{ToolPolicy, ToolProfile};
use crate::config::suggest_word;
use crate::glob::glob_matches;
use crate::team::tools::tool_alias;

/// Tool groups and their tools. They contain exactly the built-in tools, so that tool names in a config can be checked
/// before anything runs.
const TOOL_GROUPS: [(&str, &[&str]); 11] = [
    (
        "group:fs",
        &["read_file", "write_file", "edit_file", "list_dir", "search_files", "apply_patch", "image_view"],
    ),
    ("group:runtime", &["shell"]),
    (
        "group:sessions",
        &[
            "sessions_list",
            "sessions_history",
            "sessions_send",
            "sessions_spawn",
            "sessions_yield",
            "agents_wait",
            "delegate_to_agent",
        ],
    ),
    ("group:instances", &["instance_send", "delegate_to_instance"]),
    ("group:messaging", &["message"]),
    ("group:cron", &["cron_list", "cron_add", "cron_remove", "cron_run"]),
    ("group:web", &["http_fetch", "web_search"]),
    ("group:memory", &["memory_store", "memory_search", "memory_forget"]),
    ("group:team", &["team_*", "task_*", "teammate_*", "send_message", "Team*", "Task*", "SendMessage"]),
    (
        "group:agents",
        &[
            "models_list",
            "session_set_model",
            "agents_list",
            "session_set_agent",
            "agent_create",
            "agent_update",
        ],
    ),
    ("group:other", &["todo", "read_skill"]),
];

const MINIMAL_TOOLS: &[&str] = &["todo", "models_list", "agents_list"];
const MESSAGING_TOOLS: &[&str] = &[
    "todo",
    "models_list",
    "agents_list",
    "session_set_*",
    "read_skill",
    "group:messaging",
    "group:sessions",
    "group:memory",
    "group:team",
];
const CODING_TOOLS: &[&str] = &[
    "todo",
    "models_list",
    "agents_list",
    "session_set_*",
    "read_skill",
    "group:fs",
    "group:runtime",
    "group:web",
    "group:memory",
    "group:team",
];

impl ToolProfile {
    /// From the smallest to the largest.
    pub(super) const ALL: [Self; 4] = [Self::Minimal, Self::Messaging, Self::Coding, Self::Full];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Messaging => "messaging",
            Self::Coding => "coding",
            Self::Full => "full",
        }
    }

    fn profile_entries(self) -> &'static [&'static str] {
        match self {
            Self::Minimal => MINIMAL_TOOLS,
            Self::Messaging => MESSAGING_TOOLS,
            Self::Coding => CODING_TOOLS,
            Self::Full => &["*"],
        }
    }

    pub fn includes_tool(self, tool: &str) -> bool {
        self.profile_entries().iter().any(|entry| entry_covers_tool(entry, tool))
    }
}

/// Returns whether a list entry covers a tool: by its name, group or pattern. A tool with an alias matches by either
/// name.
pub fn entry_covers_tool(entry: &str, tool: &str) -> bool {
    match entry.starts_with("group:") {
        true => group_members(entry).is_some_and(|tools| tools.iter().any(|one| glob_matches(one, tool))),
        false => {
            glob_matches(entry, tool) || tool_alias(tool).is_some_and(|alias| glob_matches(entry, alias))
        }
    }
}

fn group_members(group: &str) -> Option<&'static [&'static str]> {
    TOOL_GROUPS.iter().find(|(name, _)| *name == group).map(|(_, tools)| *tools)
}

pub(super) fn first_matching_entry<'a>(list: &'a [String], tool: &str) -> Option<&'a str> {
    list.iter().map(String::as_str).find(|entry| entry_covers_tool(entry, tool))
}

/// A policy entry without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidPolicyEntry {
    /// Relative to the policy: `allow[0]`.
    pub path: String,
    pub message: String,
    pub hint: String,
}

/// Returns entries that name no known tool or group, and entries that can never take effect. `tools` are known names
/// besides those of the groups. Entries that contain a name of `servers` are not checked, because only the server knows
/// its tools.
pub fn find_invalid_entries(
    policy: &ToolPolicy,
    tools: &[&str],
    servers: &[String],
) -> Vec<InvalidPolicyEntry> {
    let lists = [("allow", &policy.allow), ("deny", &policy.deny)];
    let listed = lists.into_iter().flat_map(|(list, entries)| {
        entries.iter().enumerate().map(move |(at, entry)| (format!("{list}[{at}]"), entry.as_str()))
    });
    let modes = policy.approvals.keys().map(|entry| (format!("approvals.{entry}"), entry.as_str()));
    let words: Vec<(String, &str)> = listed.chain(modes).collect();
    let strange = words.iter().filter_map(|(path, entry)| check_known_entry(path, entry, tools, servers));
    let idle = words.iter().filter_map(|(path, entry)| check_profile_conflict(policy, path, entry));
    let empty =
        words.iter().filter_map(|(path, entry)| matches_nothing(policy, (path, entry), tools, servers));
    strange.chain(idle).chain(empty).collect()
}

fn check_known_entry(
    path: &str,
    entry: &str,
    tools: &[&str],
    servers: &[String],
) -> Option<InvalidPolicyEntry> {
    let problem =
        |message: String, hint: String| Some(InvalidPolicyEntry { path: path.to_owned(), message, hint });
    if entry.starts_with("group:") {
        let groups: Vec<&str> = TOOL_GROUPS.iter().map(|(name, _)| *name).collect();
        return match group_members(entry) {
            Some(_) => None,
            None => problem(format!("there is no {entry:?}"), suggest_word(entry, &groups)),
        };
    }
    let mut known: Vec<&str> = TOOL_GROUPS.iter().flat_map(|(_, tools)| tools.iter().copied()).collect();
    known.extend(tools);
    known.sort_unstable();
    known.dedup();
    let is_known = entry.contains('*')
        || known.iter().any(|tool| glob_matches(tool, entry))
        || servers.iter().any(|server| entry.contains(server.as_str()));
    if is_known {
        return None;
    }
    known.retain(|tool| !tool.contains('*'));
    problem(format!("there is no tool {entry:?}"), suggest_word(entry, &known))
}

/// Reports an allow pattern that matches no tool, which would silently leave the agent without tools. Deny patterns may
/// match future tools.
fn matches_nothing(
    policy: &ToolPolicy,
    (path, entry): (&str, &str),
    tools: &[&str],
    servers: &[String],
) -> Option<InvalidPolicyEntry> {
    if !entry.contains('*') || !path.starts_with("allow") {
        return None;
    }
    let is_of_server = servers.iter().any(|server| entry.contains(server.as_str()) || entry.starts_with('*'));
    let known = TOOL_GROUPS.iter().flat_map(|(_, tools)| tools.iter().copied()).chain(tools.iter().copied());
    // With `*`, a server may have any name.
    let is_any = servers.iter().any(|server| server == "*");
    if is_of_server || is_any {
        return None;
    }
    let mut known = known.filter(|tool| policy.profile.is_none_or(|profile| profile.includes_tool(tool)));
    if known.any(|tool| glob_matches(entry, tool) || glob_matches(tool, entry)) {
        return None;
    }
    let hint = match policy.profile.map(ToolProfile::as_str) {
        Some(profile) => format!(
            "remove it: profile = \"{profile}\" alone gives the tools of the profile, and allow can only narrow them"
        ),
        None => {
            "remove it, or use names of existing tools; tools of an MCP server start with its name".to_owned()
        }
    };
    Some(InvalidPolicyEntry { path: path.to_owned(), message: format!("no tool matches {entry:?}"), hint })
}

/// Reports an allowed tool that is not in the profile of the same policy: the list only narrows the profile.
fn check_profile_conflict(policy: &ToolPolicy, path: &str, entry: &str) -> Option<InvalidPolicyEntry> {
    let profile = policy.profile.filter(|_| path.starts_with("allow"))?;
    let is_plain = !entry.contains('*') && !entry.starts_with("group:");
    (is_plain && !profile.includes_tool(entry)).then(|| InvalidPolicyEntry {
        path: path.to_owned(),
        message: format!(
            "{entry:?} is not in the profile {:?}, and allow can only narrow a profile",
            profile.as_str()
        ),
        hint: "use another profile, or remove profile and list groups".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(policy: serde_json::Value, servers: &[&str]) -> Vec<String> {
        let policy: ToolPolicy = serde_json::from_value(policy).unwrap();
        let servers: Vec<String> = servers.iter().map(|server| (*server).to_owned()).collect();
        find_invalid_entries(&policy, &[], &servers)
            .into_iter()
            .map(|one| format!("{}: {}", one.path, one.message))
            .collect()
    }

    #[test]
    fn allow_pattern_matching_no_tool_is_refused() {
        let seed = json!({ "profile": "coding", "allow": ["browser*"], "deny": [] });
        assert_eq!(said(seed, &[]), ["allow[0]: no tool matches \"browser*\""]);
        assert_eq!(
            said(json!({ "profile": "coding", "allow": ["cron_*"] }), &[]).len(),
            1,
            "none of the profile"
        );
        for fine in [
            json!({ "allow": ["*"] }),
            json!({ "allow": ["read_*", "Team*", "team_c*"] }),
            json!({ "deny": ["browser*"] }),
            json!({ "profile": "coding", "allow": ["memory_*"] }),
        ] {
            assert!(said(fine.clone(), &[]).is_empty(), "{fine}");
        }
        assert!(said(json!({ "allow": ["github_*"] }), &["github"]).is_empty(), "a server's tools");
    }
}
