use proptest::prelude::*;

use super::*;
use crate::tool::ToolEffect;

fn tool(name: &str, risk: ToolRisk, consent: ToolConsent) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: serde_json::json!({ "type": "object" }),
        effect: ToolEffect::Pure,
        risk,
        consent,
        confined: true,
    }
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

fn policy(allow: &[&str], deny: &[&str]) -> ToolPolicy {
    ToolPolicy { allow: words(allow), deny: words(deny), ..ToolPolicy::default() }
}

#[derive(Clone, Debug)]
struct Case {
    rules: ToolRules,
    agent: ToolPolicy,
    is_default: bool,
    lent: Option<InheritedTools>,
    depth: u32,
    has_room: bool,
    senders: Vec<String>,
    can_ask: bool,
    awaits_plan: bool,
}

impl Default for Case {
    fn default() -> Self {
        let (rules, agent) = (ToolRules::default(), ToolPolicy::default());
        Self {
            rules,
            agent,
            is_default: true,
            lent: None,
            depth: 0,
            has_room: true,
            senders: Vec::new(),
            can_ask: true,
            awaits_plan: false,
        }
    }
}

impl Case {
    fn with<T>(&self, look: impl FnOnce(&PolicyLayers<'_>) -> T) -> T {
        let id = AgentId::main();
        look(&PolicyLayers {
            rules: &self.rules,
            agent: PolicyAgent { id: &id, policy: &self.agent, is_default: self.is_default, in_config: true },
            inherited: self.lent.as_ref(),
            spawn_depth: self.depth,
            has_room: self.has_room,
            senders: &self.senders,
            can_ask: self.can_ask,
            awaits_plan: self.awaits_plan,
        })
    }

    fn has(&self, tool: &ToolSpec) -> bool {
        self.with(|layers| allows_tool(tool, layers))
    }

    fn decided(&self, tool: &ToolSpec) -> ToolPolicyReason {
        self.with(|layers| {
            let step = policy_steps(tool, layers).find(|step| !step.rule.is_allowed()).expect("a refusal");
            ToolPolicyReason::for_step(&tool.name, &step, layers)
        })
    }
}

fn plain(name: &str) -> ToolSpec {
    tool(name, ToolRisk::Low, ToolConsent::NotNeeded)
}

fn shell() -> ToolSpec {
    tool("shell", ToolRisk::High, ToolConsent::AskPerson)
}

#[test]
fn policy_entries_cover_tools_by_name_group_and_pattern() {
    for (entry, name, covered) in [
        ("shell", "shell", true),
        ("group:fs", "read_file", true),
        ("group:fs", "shell", false),
        ("group:team", "team_create", true),
        ("group:nothing", "shell", false),
        ("read_*", "read_file", true),
        ("*_file", "read_file", true),
        ("*a*e", "read_file", true),
        ("re*le*", "read_file", true),
        ("ab*ba", "aba", false),
        ("*", "anything", true),
        ("read_", "read_file", false),
    ] {
        assert_eq!(entry_covers_tool(entry, name), covered, "{entry} {name}");
    }
    assert!(ToolProfile::Full.includes_tool("everything") && ToolProfile::Coding.includes_tool("shell"));
    assert!(
        !ToolProfile::Messaging.includes_tool("shell") && !ToolProfile::Minimal.includes_tool("read_file")
    );
}

#[test]
fn session_has_only_tools_inherited_and_allowed_by_own_agent() {
    let owner = Case { agent: policy(&[], &["write_file"]), ..Case::default() };
    let all = ["read_file", "write_file", "edit_file"].map(plain);
    let shell = shell();
    let inherit = |case: &Case| {
        let listed = all.iter().chain([&shell]).map(|tool| -> &ToolSpec { tool });
        case.with(|layers| InheritedTools::from_layers(listed, layers, crate::agent::SandboxMode::Workspace))
    };
    let inherited = inherit(&owner);
    let full = ToolPolicy {
        profile: Some(ToolProfile::Full),
        approval: Some(ApprovalMode::Never),
        ..policy(&[], &["edit_file"])
    };
    let child = Case { agent: full, depth: 1, lent: Some(inherited.clone()), ..Case::default() };
    let had = |case: &Case| all.iter().map(|tool| case.has(tool)).collect::<Vec<_>>();
    assert_eq!(had(&child), [true, false, false], "its owner has no write_file, its agent no edit_file");
    assert_eq!(child.decided(&all[1]).rule, "inherited.not_had");
    // What a person had to agree to there, a person has to agree to here: its own agent asks nobody.
    assert!(inherited.asks.contains("shell") && child.has(&shell));
    assert!(child.with(|layers| needs_approval(&shell, layers)));
    let alone = Case { can_ask: false, ..child.clone() };
    assert_eq!(alone.decided(&shell).rule, "approval.nobody_to_ask");
    // A child passes on no more than that, whatever its own children may do.
    let below = Case {
        agent: policy(&["*", "shell"], &[]),
        depth: 2,
        lent: Some(inherit(&child)),
        ..Case::default()
    };
    assert_eq!(had(&below), [true, false, false]);
}

#[test]
fn high_risk_tool_needs_explicit_grant() {
    let granted = |agent: ToolPolicy, is_default, depth| {
        Case { agent, is_default, depth, ..Case::default() }.has(&shell())
    };
    let full = ToolPolicy { profile: Some(ToolProfile::Full), ..ToolPolicy::default() };
    assert!(granted(ToolPolicy::default(), true, 0), "the default agent, with a person");
    assert!(!granted(ToolPolicy::default(), false, 0) && !granted(ToolPolicy::default(), true, 1));
    assert!(!granted(policy(&["*"], &[]), false, 0), "a bare star is not a name");
    for meant in [policy(&["*", "shell"], &[]), policy(&["group:runtime"], &[]), policy(&["sh*"], &[]), full]
    {
        assert!(granted(meant.clone(), false, 0) && granted(meant, true, 1));
    }
}

/// The tools of a session by depth: at the top, in a child below the maximum depth, in a leaf.
#[test]
fn available_tools_depend_on_spawn_depth() {
    type Row = (&'static str, ToolRisk, [Option<&'static str>; 3]);
    const NEVER: Option<&str> = Some("subagents.never");
    const NAMED: Option<&str> = Some("subagents.not_by_default");
    let table: [Row; 11] = [
        ("sessions_spawn", ToolRisk::Low, [None, None, Some("subagents.no_room")]),
        ("sessions_list", ToolRisk::Low, [None, None, NAMED]),
        ("sessions_history", ToolRisk::Low, [None, None, NAMED]),
        ("sessions_send", ToolRisk::Low, [None, NAMED, NAMED]),
        ("sessions_yield", ToolRisk::Low, [None, None, None]),
        ("agents_wait", ToolRisk::Low, [None, None, None]),
        ("read_file", ToolRisk::Low, [None, None, None]),
        ("shell", ToolRisk::High, [None, Some("risk.not_granted"), Some("risk.not_granted")]),
        ("agent_create", ToolRisk::Low, [None, NEVER, NEVER]),
        ("cron_add", ToolRisk::Low, [None, NEVER, NEVER]),
        ("message", ToolRisk::Low, [None, NEVER, NEVER]),
    ];
    for (name, risk, refused) in table {
        let tool = tool(name, risk, ToolConsent::NotNeeded);
        for ((depth, has_room), expected) in [(0, true), (1, true), (2, false)].into_iter().zip(refused) {
            let case = Case { depth, has_room, ..Case::default() };
            let decided = (!case.has(&tool)).then(|| case.decided(&tool).rule);
            assert_eq!(decided.as_deref(), expected, "{name} at depth {depth}");
        }
    }
}

#[test]
fn child_regains_default_removed_tools_only_by_name() {
    let allow = ["*", "sessions_*", "shell", "agent_create", "cron_*", "message"];
    let rules = ToolRules { subagents: policy(&allow, &[]), ..ToolRules::default() };
    let case = Case { rules, agent: policy(&allow, &[]), depth: 2, has_room: false, ..Case::default() };
    for name in ["sessions_send", "sessions_list", "sessions_history"] {
        assert!(case.has(&plain(name)), "{name}");
    }
    assert!(case.has(&tool("shell", ToolRisk::High, ToolConsent::NotNeeded)));
    for name in ["agent_create", "cron_add", "message", "sessions_spawn"] {
        assert!(!case.has(&plain(name)), "{name}");
    }
    let star = ToolRules { subagents: policy(&["*"], &[]), ..ToolRules::default() };
    let case = Case { rules: star, depth: 1, ..Case::default() };
    assert!(!case.has(&plain("sessions_send")), "a bare star is not a name");
    let change = case.decided(&plain("sessions_send")).change;
    assert_eq!(
        change.as_deref(),
        Some(r#"allow = ["*", "sessions_send"] under [tools.subagents] in config.toml"#)
    );
}

#[test]
fn subagent_rules_only_narrow_child_tools() {
    let mut case = Case { depth: 1, agent: policy(&["*", "message"], &[]), ..Case::default() };
    assert_eq!(case.decided(&plain("message")).rule, "subagents.never");
    assert!(case.has(&plain("read_file")));
    case.rules.subagents = policy(&[], &["group:fs"]);
    assert_eq!(case.decided(&plain("read_file")).rule, "subagents.deny");
    case.depth = 0;
    assert!(case.has(&plain("read_file")));
}

#[test]
fn sender_rule_applies_to_every_sender_of_turn() {
    let mut case = Case::default();
    case.rules.senders.insert("webhook:ci:*".to_owned(), policy(&["read_file"], &[]));
    case.senders = words(&["cli:default:me", "webhook:ci:build"]);
    assert!(case.has(&plain("read_file")));
    let refused = case.decided(&plain("write_file"));
    assert_eq!(refused.rule, "sender.allow");
    assert_eq!(refused.set_in.as_deref(), Some("tools.senders.\"webhook:ci:*\".allow in config.toml"));
    case.senders.pop();
    assert!(case.has(&plain("write_file")));
}

#[test]
fn tool_needing_approval_is_hidden_if_nobody_can_approve() {
    let mut case = Case { can_ask: false, ..Case::default() };
    assert_eq!(case.decided(&shell()).rule, "approval.nobody_to_ask");
    assert!(!case.has(&tool("agent_create", ToolRisk::Low, ToolConsent::ByCall)));
    case.agent.approvals.insert("shell".to_owned(), ApprovalMode::Never);
    assert!(case.has(&shell()), "it does not ask any more");
    case.agent.approval = Some(ApprovalMode::Always);
    assert!(!case.has(&plain("read_file")) && case.has(&shell()));
}

#[test]
fn agent_approval_mode_cannot_weaken_instance_mode() {
    use ApprovalMode::{Always, Never, Unsafe};
    for (instance, agent, asked) in [
        (None, None, true),
        (None, Some(Never), false),
        (Some(Unsafe), Some(Never), true),
        (Some(Never), Some(Always), true),
        (Some(Never), None, false),
    ] {
        let mut case = Case::default();
        case.rules.policy.approval = instance;
        case.agent.approval = agent;
        assert_eq!(case.with(|layers| needs_approval(&shell(), layers)), asked, "{instance:?} {agent:?}");
    }
}

#[test]
fn refusal_text_names_rule_location_and_fix() {
    let mut case = Case { agent: policy(&["read_file"], &[]), ..Case::default() };
    assert_eq!(
        case.decided(&shell()).refusal_text("shell"),
        "The tool 'shell' is not available here: the allow list does not include it (rule agent.allow). \
         Set in: tools.allow of the agent \"main\" in config.toml. To change it: \
         tools.allow = [\"read_file\", \"shell\"] under [[agents.list]] with id = \"main\" in config.toml."
    );
    case.agent = ToolPolicy::default();
    case.is_default = false;
    let line = case.decided(&shell()).change.unwrap();
    assert!(line.starts_with("tools.allow = [\"*\", \"shell\"]"), "{line}");
    case.agent = ToolPolicy { profile: Some(ToolProfile::Messaging), ..ToolPolicy::default() };
    assert!(case.decided(&shell()).change.unwrap().contains("tools.profile = \"coding\""));
    case.rules.disabled = words(&["shell", "x"]);
    assert_eq!(case.decided(&shell()).change.unwrap(), "disabled = [\"x\"] under [tools] in config.toml");
}

#[test]
fn invalid_policy_entry_is_reported_with_suggestion() {
    let problems = |policy: &ToolPolicy| -> Vec<String> {
        let found = find_invalid_entries(policy, &["everything_echo"], &["files".to_owned()]);
        found.into_iter().map(|one| format!("{}: {}; {}", one.path, one.message, one.hint)).collect()
    };
    assert!(
        problems(&policy(&["everything_echo", "files_x", "team_create", "*x", "group:fs"], &[])).is_empty()
    );
    assert_eq!(
        problems(&policy(&["shel"], &["group:webb"])),
        [
            "allow[0]: there is no tool \"shel\"; did you mean \"shell\"?",
            "deny[0]: there is no \"group:webb\"; did you mean \"group:web\"?"
        ]
    );
    assert!(problems(&policy(&["cron_edit"], &[]))[0].contains("there is no tool"));
    assert!(problems(&policy(&["image_view"], &[])).is_empty());
    for profile in [ToolProfile::Messaging, ToolProfile::Coding, ToolProfile::Full] {
        let reads = ToolPolicy { profile: Some(profile), ..policy(&["read_skill"], &[]) };
        assert!(problems(&reads).is_empty() && profile.includes_tool("read_skill"), "{profile:?}");
    }
    let idle = ToolPolicy { profile: Some(ToolProfile::Minimal), ..policy(&["shell"], &[]) };
    assert!(problems(&idle)[0].contains("not in the profile"));
    assert!(problems(&policy(&["message", "cron_add", "group:cron", "group:messaging"], &[])).is_empty());
}

fn any_policy() -> impl Strategy<Value = ToolPolicy> {
    let entry = prop_oneof![
        Just("shell"),
        Just("read_file"),
        Just("group:fs"),
        Just("group:runtime"),
        Just("*"),
        Just("*_file")
    ];
    let list = || prop::collection::vec(entry.clone().prop_map(str::to_owned), 0..3);
    let profile = prop::option::of(prop::sample::select(ToolProfile::ALL.to_vec()));
    let mode = prop::sample::select(vec![ApprovalMode::Never, ApprovalMode::Unsafe, ApprovalMode::Always]);
    (list(), list(), profile, prop::option::of(mode)).prop_map(|(allow, deny, profile, approval)| {
        ToolPolicy { allow, deny, profile, approval, approvals: BTreeMap::new() }
    })
}

fn any_tool() -> impl Strategy<Value = ToolSpec> {
    let name = prop::sample::select(vec!["shell", "read_file", "todo", "message", "other"]);
    let risk = prop::sample::select(vec![ToolRisk::Low, ToolRisk::High]);
    let consent =
        prop::sample::select(vec![ToolConsent::NotNeeded, ToolConsent::AskPerson, ToolConsent::ByCall]);
    (name, risk, consent).prop_map(|(name, risk, consent)| tool(name, risk, consent))
}

prop_compose! {
    fn any_case()(
        instance in any_policy(), agent in any_policy(), subagents in any_policy(), sender in any_policy(),
        is_default in any::<bool>(), depth in 0u32..3, has_room in any::<bool>(), can_ask in any::<bool>(),
    ) -> Case {
        let senders = BTreeMap::from([("chat:*".to_owned(), sender)]);
        let rules = ToolRules { policy: instance, disabled: Vec::new(), subagents, senders };
        let senders = words(&["chat:a:b"]);
        Case { rules, agent, is_default, lent: None, depth, has_room, senders, can_ask, awaits_plan: false }
    }
}

proptest! {
    #[test]
    fn no_policy_layer_widens_access(case in any_case(), tool in any_tool()) {
        if case.has(&tool) {
            let without = |change: fn(&mut Case)| {
                let mut less = case.clone();
                change(&mut less);
                // Without the approval layer, nobody needs to be there to be asked.
                less.can_ask = true;
                less.has(&tool)
            };
            let trusted = |case: &mut Case| {
                case.agent = ToolPolicy::default();
                case.is_default = true;
                case.depth = 0;
            };
            prop_assert!(without(|case| case.rules.policy = ToolPolicy::default()));
            prop_assert!(without(|case| case.rules.subagents = ToolPolicy::default()));
            prop_assert!(without(|case| case.rules.senders.clear()));
            prop_assert!(without(trusted));
        }
    }

    #[test]
    fn deny_wins_in_every_layer(mut case in any_case(), tool in any_tool(), place in 0..4) {
        let policy = match place {
            0 => &mut case.rules.policy,
            1 => &mut case.agent,
            2 => { case.depth = 1; &mut case.rules.subagents }
            _ => case.rules.senders.get_mut("chat:*").expect("there"),
        };
        policy.deny.push(tool.name.clone());
        policy.allow.push(tool.name.clone());
        prop_assert!(!case.has(&tool));
    }

    #[test]
    fn policy_explanation_matches_decision(case in any_case(), tool in any_tool()) {
        let told = case.with(|layers| policy_steps(&tool, layers).map(|step| ToolPolicyReason::for_step(&tool.name, &step, layers)).collect::<Vec<_>>());
        prop_assert_eq!(told.iter().all(|reason| reason.allows), case.has(&tool));
    }

    #[test]
    fn pattern_built_from_text_matches_it(text in "[a-z_]{0,12}", at in 0usize..12) {
        let at = at.min(text.len());
        let pattern = format!("{}*{}", &text[..at], &text[at..]);
        prop_assert!(glob_matches(&text, &text) && glob_matches(&pattern, &text));
    }
}
