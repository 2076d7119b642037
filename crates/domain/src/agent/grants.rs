//! Compares the permissions of two agent specs. Every struct is destructured completely: a field that is added later
//! does not compile until somebody decides here whether it grants anything.

use super::{
    AgentBudget, AgentPolicy, AgentSpec, AgentWorkspace, ContextPolicy, DelegationPolicy, MemberTools,
    MemoryScope, ModelSettings, SandboxSettings, SkillPolicy, SubagentPolicy, ToolIsolation, ToolPolicy,
};
use crate::id::AgentId;
use crate::policy::{ApprovalMode, entry_covers_tool};

/// Returns whether `to` may do something that `from` may not. In doubt, the answer is yes.
pub fn widens_permissions(from: &AgentSpec, to: &AgentSpec, default: &AgentId) -> bool {
    !widened_fields(from, to, default).is_empty()
}

/// Returns the fields in which `to` may do more than `from`. The default agent has high-risk tools even if they are not
/// named.
pub fn widened_fields(from: &AgentSpec, to: &AgentSpec, default: &AgentId) -> Vec<&'static str> {
    let AgentSpec {
        // Name, description and identity grant nothing.
        agent_id: _,
        name: _,
        description: _,
        identity: _,
        defaults,
        policy,
        // Compared as a whole, together with whose memory it is.
        context_policy: _,
        workspace,
        isolation,
        sandbox,
        budget,
        mcp,
        subagents,
        delegation,
        priority,
    } = to;
    let ModelSettings {
        model: _,
        fallbacks: _,
        temperature: _,
        max_tokens: _,
        reasoning_effort: _,
        system_prompt: _,
    } = defaults;
    let AgentPolicy { tools, skills } = policy;
    let is_open = from.agent_id == *default && is_open(&from.policy.tools);
    let becomes_default = to.agent_id == *default && from.agent_id != *default;
    let found = [
        ("agent_id", becomes_default),
        ("policy.tools", has_more_tools(&from.policy.tools, tools, is_open)),
        ("policy.tools.approval", asks_approval_less(&from.policy.tools, tools)),
        ("policy.skills", has_more_skills(&from.policy.skills, skills)),
        ("context_policy", remembers_more(from, to)),
        ("workspace", reaches_other_files(from, workspace, &to.agent_id)),
        ("isolation", from.isolation == ToolIsolation::Process && *isolation == ToolIsolation::InProcess),
        ("sandbox", is_looser(&from.sandbox, sandbox)),
        ("budget", may_spend_more(&from.budget, budget)),
        ("mcp", !is_within(&from.mcp, mcp)),
        ("subagents", spawns_more(&from.subagents, subagents)),
        ("delegation", delegates_more(from.delegation.as_ref(), delegation.as_ref())),
        ("priority", *priority > from.priority),
    ];
    found.into_iter().filter(|(_, is_wider)| *is_wider).map(|(field, _)| field).collect()
}

fn is_open(tools: &ToolPolicy) -> bool {
    tools.profile.is_none() && tools.allow.is_empty()
}

fn has_more_tools(from: &ToolPolicy, to: &ToolPolicy, is_open: bool) -> bool {
    let ToolPolicy { profile, allow, deny, approval: _, approvals: _ } = to;
    let keeps_denied = from.deny.iter().all(|entry| deny.contains(entry));
    if is_open {
        return !keeps_denied;
    }
    let keeps_profile = from.profile == *profile;
    let is_granted = |entry: &String| {
        let covering = |known: &String| {
            known == entry || (known != "*" && !entry.contains('*') && entry_covers_tool(known, entry))
        };
        from.allow.iter().any(covering)
    };
    let keeps_list = match from.allow.is_empty() {
        // An open list contains no high-risk tool; an explicit one may. A list narrows a profile.
        true => allow.is_empty() || (profile.is_some() && keeps_profile),
        false => !allow.is_empty() && allow.iter().all(is_granted),
    };
    !(keeps_denied && keeps_profile && keeps_list)
}

/// An omitted mode is the instance's, which is unknown here: only the same mode or `always` is not less strict.
fn asks_approval_less(from: &ToolPolicy, to: &ToolPolicy) -> bool {
    let is_less = |old: Option<ApprovalMode>, new: Option<ApprovalMode>| match (old, new) {
        (_, Some(ApprovalMode::Always)) => false,
        (Some(old), Some(new)) => new < old,
        (old, new) => old != new,
    };
    let of = |policy: &ToolPolicy, entry: &str| policy.approvals.get(entry).copied();
    let entries = from.approvals.keys().chain(to.approvals.keys());
    is_less(from.approval, to.approval)
        || entries.into_iter().any(|entry| is_less(of(from, entry), of(to, entry)))
}

fn has_more_skills(from: &SkillPolicy, to: &SkillPolicy) -> bool {
    let SkillPolicy { allow, deny } = to;
    let keeps_list = from.allow.is_empty() || (!allow.is_empty() && is_within(&from.allow, allow));
    !(keeps_list && from.deny.iter().all(|entry| deny.contains(entry)))
}

/// Memories of another agent count as more than this one has.
fn remembers_more(from: &AgentSpec, to: &AgentSpec) -> bool {
    let is_another = from.agent_id != to.agent_id;
    let (from, to) = (&from.context_policy, &to.context_policy);
    let ContextPolicy { memory, scope, recall_budget_tokens: _, kinds } = to;
    if is_another && *memory && *scope == MemoryScope::Agent {
        return true;
    }
    let reach = |scope: MemoryScope| match scope {
        MemoryScope::Session => 0,
        MemoryScope::Agent => 1,
        MemoryScope::Shared => 2,
    };
    let keeps_kinds = from.kinds.is_empty() || (!kinds.is_empty() && is_within(&from.kinds, kinds));
    *memory && (!from.memory || reach(*scope) > reach(from.scope) || !keeps_kinds)
}

/// Every agent has a folder of its own unless another is configured.
fn reaches_other_files(from: &AgentSpec, to: &AgentWorkspace, id: &AgentId) -> bool {
    let AgentWorkspace { dir, overlay: _ } = to;
    let is_another_own_folder = dir.is_none() && from.agent_id != *id;
    is_another_own_folder || (dir.is_some() && *dir != from.workspace.dir)
}

fn is_looser(from: &SandboxSettings, to: &SandboxSettings) -> bool {
    let SandboxSettings { mode, memory_mb, cpu_seconds, processes, file_mb, disk_mb, listen } = to;
    let limits = [
        (from.memory_mb, *memory_mb),
        (from.cpu_seconds, *cpu_seconds),
        (from.processes, *processes),
        (from.file_mb, *file_mb),
        (from.disk_mb, *disk_mb),
    ];
    let listens_now = *listen && !from.listen;
    *mode < from.mode || listens_now || limits.into_iter().any(|(old, new)| is_more(old, new))
}

fn may_spend_more(from: &AgentBudget, to: &AgentBudget) -> bool {
    let AgentBudget { tokens_per_day, usd_per_day, usd_per_turn } = to;
    is_more(from.tokens_per_day, *tokens_per_day)
        || is_more(from.usd_per_day, *usd_per_day)
        || is_more(from.usd_per_turn, *usd_per_turn)
}

fn spawns_more(from: &SubagentPolicy, to: &SubagentPolicy) -> bool {
    let SubagentPolicy {
        allow_agents,
        max_spawn_depth,
        max_children_per_agent,
        max_concurrent,
        run_timeout_seconds,
        archive_after_minutes: _,
        model: _,
        thinking: _,
        member_tools,
    } = to;
    !lists_no_more(&from.allow_agents, allow_agents)
        || *max_spawn_depth > from.max_spawn_depth
        || *max_children_per_agent > from.max_children_per_agent
        || *max_concurrent > from.max_concurrent
        || *run_timeout_seconds > from.run_timeout_seconds
        || (*member_tools == MemberTools::Own && from.member_tools == MemberTools::Lead)
}

/// Returns whether more can be delegated. A delegate works with its own rights, and so do those it delegates to.
/// Unless the list or the depth grows, a chain of any length reaches no further agents.
fn delegates_more(from: Option<&DelegationPolicy>, to: Option<&DelegationPolicy>) -> bool {
    let Some(DelegationPolicy { allow_agents, max_concurrent, max_depth }) = to else { return false };
    let Some(from) = from else { return !allow_agents.is_empty() };
    !lists_no_more(&from.allow_agents, allow_agents)
        || *max_concurrent > from.max_concurrent
        || *max_depth > from.max_depth
}

/// `*` matches every local agent and no remote one.
fn lists_no_more(from: &[String], to: &[String]) -> bool {
    let is_every = from.iter().any(|entry| entry == "*");
    to.iter()
        .all(|entry| from.contains(entry) || (is_every && crate::a2a::remote_agent_name(entry).is_none()))
}

fn is_within(from: &[String], to: &[String]) -> bool {
    to.iter().all(|entry| from.contains(entry) || from.iter().any(|known| known == "*"))
}

/// No limit is more than any limit.
fn is_more<T: PartialOrd>(old: Option<T>, new: Option<T>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => new > old,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    fn spec(more: Value) -> AgentSpec {
        let mut whole = json!({ "agent_id": "ops", "name": "Ops" });
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    fn tools(policy: Value) -> AgentSpec {
        spec(json!({ "policy": { "tools": policy } }))
    }

    fn is_wider(from: &AgentSpec, to: &AgentSpec) -> bool {
        widens_permissions(from, to, &AgentId::main())
    }

    #[test]
    fn more_tools_or_fewer_approvals_widen_grants() {
        let base = tools(json!({ "allow": ["read_file", "shell"], "deny": ["x"] }));
        for narrower in [
            json!({ "allow": ["read_file"], "deny": ["x", "shell"] }),
            json!({ "allow": ["shell"], "deny": ["x"] }),
            json!({ "allow": ["shell"], "deny": ["x"], "approval": "always" }),
        ] {
            assert!(!is_wider(&base, &tools(narrower.clone())), "{narrower}");
        }
        for wider in [
            json!({ "allow": [], "deny": ["x"] }),
            json!({ "allow": ["shell", "http_fetch"], "deny": ["x"] }),
            json!({ "allow": ["shell"] }),
            json!({ "allow": ["shell"], "deny": ["x"], "approval": "never" }),
            json!({ "allow": ["shell"], "deny": ["x"], "approvals": { "shell": "never" } }),
            json!({ "allow": ["shell"], "deny": ["x"], "profile": "full" }),
        ] {
            assert!(is_wider(&base, &tools(wider.clone())), "{wider}");
        }
        let groups = tools(json!({ "allow": ["group:fs", "*"] }));
        assert!(!is_wider(&groups, &tools(json!({ "allow": ["read_file"] }))), "a group has its tools");
        assert!(is_wider(&groups, &tools(json!({ "allow": ["shell"] }))), "a bare star grants no high risk");
        assert!(is_wider(&spec(json!({})), &tools(json!({ "allow": ["*", "shell"] }))));
        let coding = tools(json!({ "profile": "coding" }));
        assert!(!is_wider(&coding, &tools(json!({ "profile": "coding", "allow": ["shell"] }))));
    }

    #[test]
    fn switching_to_default_agent_widens_grants() {
        let main = AgentSpec::with_id(AgentId::main());
        let with_shell = AgentSpec { agent_id: AgentId::main(), ..tools(json!({ "allow": ["shell"] })) };
        assert!(!is_wider(&main, &with_shell));
        let found = widened_fields(&spec(json!({})), &main, &AgentId::main());
        assert_eq!(found, ["agent_id", "context_policy", "workspace"]);
    }

    #[test]
    fn switching_agent_widens_files_and_memories() {
        let another = |more: Value| AgentSpec { agent_id: AgentId::parse("hr").unwrap(), ..spec(more) };
        let found =
            |to: &AgentSpec| widened_fields(&spec(json!({ "workspace": "/shared" })), to, &AgentId::main());
        assert_eq!(found(&another(json!({}))), ["context_policy", "workspace"]);
        let without_memory = json!({ "workspace": "/shared", "context_policy": { "memory": false } });
        assert!(found(&another(without_memory)).is_empty(), "the same folder, and nothing remembered");
        assert!(found(&spec(json!({}))).is_empty(), "the same agent, back in its own folder");
    }

    /// A value for each field that grants something, with more than the base has.
    const MORE: &str = r#"{
        "policy": { "tools": { "allow": ["shell"], "approval": "never" }, "skills": { "allow": ["a", "b"] } },
        "context_policy": { "memory": true, "scope": "shared" },
        "workspace": "/",
        "isolation": "in_process",
        "sandbox": { "mode": "off" },
        "budget": { "usd_per_day": 2.0 },
        "mcp": ["files"],
        "subagents": { "allow_agents": ["*"] },
        "delegation": { "allow_agents": ["shop"] },
        "priority": 10
    }"#;

    fn base() -> Value {
        json!({
            "policy": { "tools": { "allow": ["read_file"] }, "skills": { "allow": ["a"] } },
            "context_policy": { "memory": true, "scope": "agent" },
            "isolation": "process",
            "budget": { "usd_per_day": 1.0 },
        })
    }

    #[test]
    fn every_granting_field_is_compared() {
        let more: Value = serde_json::from_str(MORE).unwrap();
        for (field, value) in more.as_object().unwrap() {
            let mut changed = base();
            changed[field] = value.clone();
            let found = widened_fields(&spec(base()), &spec(changed.clone()), &AgentId::main());
            assert!(found.iter().any(|name| name.starts_with(field.as_str())), "{field}: {found:?}");
            assert!(
                !is_wider(&spec(changed), &spec(base())) || ["workspace", "policy"].contains(&field.as_str()),
                "back again: {field}"
            );
        }
        let found = widened_fields(&spec(base()), &spec(more), &AgentId::main());
        assert_eq!(found.len(), 12, "{found:?}");
    }

    /// The serialised spec has no field that the tests above and the names below omit.
    #[test]
    fn every_spec_field_is_classified_as_granting_or_not() {
        let schema = serde_json::to_value(schemars::schema_for!(AgentSpec)).unwrap();
        let fields: BTreeSet<&str> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let more: Value = serde_json::from_str(MORE).unwrap();
        let granting = more.as_object().unwrap().keys().map(String::as_str);
        let known: BTreeSet<&str> =
            granting.chain(["agent_id", "name", "description", "identity", "defaults"]).collect();
        assert_eq!(fields, known);
    }

    #[test]
    fn listening_or_larger_disk_limit_widens_grants() {
        let sandbox = |sandbox: Value| spec(json!({ "sandbox": sandbox }));
        let base = sandbox(json!({ "disk_mb": 100 }));
        assert!(is_wider(&base, &sandbox(json!({ "disk_mb": 100, "listen": true }))));
        assert!(is_wider(&base, &sandbox(json!({ "disk_mb": 200 }))) && is_wider(&base, &sandbox(json!({}))));
        assert!(!is_wider(&base, &sandbox(json!({ "disk_mb": 50, "mode": "strict" }))));
    }

    #[test]
    fn delegation_grants_are_compared_by_agent_and_depth() {
        let to = |delegation: Value| spec(json!({ "delegation": delegation }));
        let one = to(json!({ "allow_agents": ["shop"], "max_depth": 2 }));
        for (other, is_more) in [
            (json!({ "allow_agents": ["shop"], "max_depth": 2 }), false),
            (json!({ "allow_agents": ["shop"], "max_depth": 1 }), false),
            (json!({ "allow_agents": [] }), false),
            (json!({ "allow_agents": ["shop"], "max_depth": 3 }), true),
            (json!({ "allow_agents": ["shop", "bank"] }), true),
            (json!({ "allow_agents": ["*"] }), true),
            (json!({ "allow_agents": ["a2a:bank"] }), true),
        ] {
            assert_eq!(is_wider(&one, &to(other.clone())), is_more, "{other}");
        }
        let all = to(json!({ "allow_agents": ["*"], "max_depth": 2 }));
        assert!(!is_wider(&all, &one) && is_wider(&all, &to(json!({ "allow_agents": ["a2a:bank"] }))));
        assert!(is_wider(&spec(json!({})), &one) && !is_wider(&one, &spec(json!({}))));
    }
}
