//! Decides who must approve a call: the requester, or an owner. Calls that change permissions or the instructions of
//! later turns need an owner, regardless of the requester and of the number of agents in between.

use super::{ApprovalMode, PolicyLayers};
use crate::authority::Authority;
use crate::briefing::is_instruction_file;
use crate::policy::entry_covers_tool;
use crate::tool::{ToolCall, ToolConsent, ToolRisk, ToolSpec};

/// A program can write whatever its sandbox allows, including the instruction files of agents.
const SHELL_TOOL: &str = "shell";

/// Tools that need an owner's approval in turns with one of these authorities, besides tools that always ask. An agent
/// may do for an operator what the API lets operators do. What non-owners store stays in their own conversations.
const OWNER_APPROVAL_TOOLS: [(&str, &[Authority]); 9] = [
    ("agent_create", &[Authority::NonOwner, Authority::Operator]),
    ("agent_update", &[Authority::NonOwner, Authority::Operator]),
    ("cron_add", &[Authority::NonOwner, Authority::Operator]),
    ("cron_remove", &[Authority::NonOwner, Authority::Operator]),
    ("cron_run", &[Authority::NonOwner]),
    ("memory_forget", &[Authority::Operator]),
    ("memory_store", &[Authority::Operator]),
    ("session_set_model", &[Authority::NonOwner]),
    (SHELL_TOOL, &[Authority::NonOwner, Authority::Operator]),
];

/// Who must approve a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredApprover {
    /// The person who requested the turn, or an owner.
    Requester,
    Owner,
}

/// Returns who must approve calls of this tool, if approval is needed.
pub fn required_approver(tool: &ToolSpec, authority: Authority) -> RequiredApprover {
    let is_unconfined =
        tool.consent == ToolConsent::AskPerson && tool.risk == ToolRisk::High && !tool.confined;
    match tool.consent == ToolConsent::ByCall || is_unconfined || needs_owner_approval(&tool.name, authority)
    {
        true => RequiredApprover::Owner,
        false => RequiredApprover::Requester,
    }
}

/// Returns whether an owner must approve because the people the turn works for may not do the same themselves.
pub(super) fn lacks_authority(tool: &ToolSpec, layers: &PolicyLayers<'_>) -> bool {
    let authority = Authority::lowest_of_senders(layers.senders);
    needs_owner_approval(&tool.name, authority)
        && !(tool.name == SHELL_TOOL && tool.confined && is_waived(layers))
}

fn needs_owner_approval(tool: &str, authority: Authority) -> bool {
    OWNER_APPROVAL_TOOLS.iter().any(|(name, whose)| *name == tool && whose.contains(&authority))
}

/// Returns whether the config explicitly disables approval for programs.
fn is_waived(layers: &PolicyLayers<'_>) -> bool {
    let text = [&layers.rules.policy, layers.agent.policy].into_iter().flat_map(|policy| &policy.approvals);
    let mut named = text.filter(|(entry, _)| *entry != "*" && entry_covers_tool(entry, SHELL_TOOL));
    named.any(|(_, mode)| *mode == ApprovalMode::Never)
}

/// Returns whether a call writes an instruction file of agents, which through the API needs an owner or admin.
pub fn writes_instructions(call: &ToolCall) -> bool {
    let given = |field: &str| call.arguments[field].as_str().unwrap_or_default();
    match call.name.as_str() {
        "write_file" | "edit_file" => is_instruction_file(given("path")),
        "apply_patch" => {
            let headings =
                given("patch").lines().filter_map(|line| line.strip_prefix("*** ")?.split_once(':'));
            headings.into_iter().any(|(_, path)| is_instruction_file(path.trim()))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn writes(name: &str, arguments: serde_json::Value) -> bool {
        writes_instructions(&ToolCall { id: "1".into(), name: name.into(), arguments })
    }

    #[test]
    fn briefing_files_are_recognised_under_any_path_spelling() {
        for path in [
            "AGENTS.md",
            "./SOUL.md",
            "x/../AGENTS.md",
            "agents.MD",
            "agents/main/notes.txt",
            "skills/x/SKILL.md",
            "ops/skills/x/SKILL.md",
            "/home/me/workspace/HEARTBEAT.md",
            "ops//USER.md",
            // On Unix this is one folder name, not three.
            "skills/x\\..\\../SKILL.md",
            "notes\\today.md",
        ] {
            assert!(writes("write_file", json!({ "path": path, "content": "" })), "{path}");
            assert!(writes(
                "apply_patch",
                json!({ "patch": format!("*** Begin Patch\n*** Add File: {path}\n+x") })
            ));
        }
        assert!(writes("write_file", json!({ "path": "notes\n.md", "content": "" })));
        for path in ["notes.md", "skills/../notes.md", "docs/agents/x.md", "skills.md", "AGENTS.md.txt", ""] {
            assert!(!writes("edit_file", json!({ "path": path })), "{path}");
        }
        assert!(!writes("read_file", json!({ "path": "AGENTS.md" })));
    }
}
