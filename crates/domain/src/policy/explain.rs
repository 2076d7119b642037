//! Explains a policy rule: its name, where it is set, and the line that would change it.

use serde::Serialize;

use super::{PolicyLayer, PolicyLayers, PolicyRule, PolicyStep, ToolPolicy, ToolProfile};

/// The decision of one layer, for people and for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolPolicyReason {
    pub layer: PolicyLayer,
    pub allows: bool,
    /// A stable name: `agent.deny`, `risk.not_granted`.
    pub rule: String,
    /// The setting that decided; null if none is set.
    pub set_in: Option<String>,
    /// The line that would change the decision; null if nothing can or need be changed.
    pub change: Option<String>,
    /// The reason as a sentence.
    pub reason: String,
}

impl ToolPolicyReason {
    pub fn for_step(tool: &str, step: &PolicyStep<'_>, layers: &PolicyLayers<'_>) -> Self {
        let place = PolicyLocation { step, layers };
        let change = if step.rule.is_allowed() { None } else { place.suggest_change(tool) };
        Self {
            layer: step.layer,
            allows: step.rule.is_allowed(),
            rule: format!("{}.{}", place.layer_word(), name(step.rule)),
            set_in: place.set_in(),
            reason: describe_step(tool, step),
            change,
        }
    }

    /// Returns the tool result for a model that calls an unavailable tool.
    pub fn refusal_text(&self, tool: &str) -> String {
        let place = self.set_in.as_ref().map(|place| format!(" Set in: {place}.")).unwrap_or_default();
        let change = self.change.as_ref().map(|line| format!(" To change it: {line}.")).unwrap_or_default();
        format!(
            "The tool '{tool}' is not available here: {} (rule {}).{place}{change}",
            self.reason, self.rule
        )
    }
}

fn name(rule: PolicyRule<'_>) -> &'static str {
    match rule {
        PolicyRule::Open => "open",
        PolicyRule::Allowed(_) | PolicyRule::NotListed => "allow",
        PolicyRule::InProfile(_) | PolicyRule::NotInProfile(_) => "profile",
        PolicyRule::Disabled(_) => "disabled",
        PolicyRule::Denied(_) => "deny",
        PolicyRule::NotGranted => "not_granted",
        PolicyRule::NotInherited => "not_had",
        PolicyRule::PlanNotApproved => "not_approved",
        PolicyRule::NeverInChild => "never",
        PolicyRule::NotInChild => "not_by_default",
        PolicyRule::NoRoom => "no_room",
        PolicyRule::NobodyToAsk => "nobody_to_ask",
    }
}

fn describe_step(tool: &str, step: &PolicyStep<'_>) -> String {
    match step.rule {
        PolicyRule::Open => "no rule denies it".to_owned(),
        PolicyRule::Allowed(entry) => format!("{entry:?} is on the allow list"),
        PolicyRule::InProfile(profile) => format!("the profile {:?} includes it", profile.as_str()),
        PolicyRule::Disabled(entry) => format!("{entry:?} is disabled"),
        PolicyRule::Denied(entry) => format!("{entry:?} is on the deny list"),
        PolicyRule::NotInProfile(profile) => {
            format!("the profile {:?} does not include it", profile.as_str())
        }
        PolicyRule::NotListed => "the allow list does not include it".to_owned(),
        PolicyRule::NotGranted => {
            format!(
                "{tool} is a high-risk tool; outside the default agent's own sessions it must be allowed by name, \
                 group or profile"
            )
        }
        PolicyRule::NotInherited => "the turn that started this session did not have it".to_owned(),
        PolicyRule::PlanNotApproved => {
            "the plan of this team member is not approved yet; submit it with SendMessage, type \
             plan_approval_request, and wait for the lead's answer"
                .to_owned()
        }
        PolicyRule::NeverInChild => {
            "it is never available in a session that was spawned by another session".to_owned()
        }
        PolicyRule::NotInChild => {
            "in a session that was spawned by another session, it must be allowed by name".to_owned()
        }
        PolicyRule::NoRoom => "this session has reached max_spawn_depth".to_owned(),
        PolicyRule::NobodyToAsk => {
            "it needs a person's approval, and nobody in this conversation can be asked".to_owned()
        }
    }
}

struct PolicyLocation<'a> {
    step: &'a PolicyStep<'a>,
    layers: &'a PolicyLayers<'a>,
}

impl PolicyLocation<'_> {
    fn layer_word(&self) -> &'static str {
        match self.step.layer {
            PolicyLayer::Instance => "tools",
            PolicyLayer::Agent => "agent",
            PolicyLayer::Risk => "risk",
            PolicyLayer::Inherited => "inherited",
            PolicyLayer::Plan => "plan",
            PolicyLayer::Subagents => "subagents",
            PolicyLayer::Sender => "sender",
            PolicyLayer::Approval => "approval",
        }
    }

    fn source_policy(&self) -> &ToolPolicy {
        let rules = self.layers.rules;
        match self.step.layer {
            PolicyLayer::Instance => &rules.policy,
            PolicyLayer::Agent
            | PolicyLayer::Risk
            | PolicyLayer::Inherited
            | PolicyLayer::Plan
            | PolicyLayer::Approval => self.layers.agent.policy,
            PolicyLayer::Subagents => &rules.subagents,
            PolicyLayer::Sender => {
                self.step.sender.and_then(|pattern| rules.senders.get(pattern)).unwrap_or(&rules.policy)
            }
        }
    }

    fn set_in(&self) -> Option<String> {
        let key = match self.step.rule {
            PolicyRule::Open
            | PolicyRule::NotInherited
            | PolicyRule::PlanNotApproved
            | PolicyRule::NeverInChild
            | PolicyRule::NobodyToAsk
            | PolicyRule::NoRoom => return None,
            PolicyRule::Allowed(_)
            | PolicyRule::NotListed
            | PolicyRule::NotGranted
            | PolicyRule::NotInChild => "allow",
            PolicyRule::InProfile(_) | PolicyRule::NotInProfile(_) => "profile",
            PolicyRule::Disabled(_) => "disabled",
            PolicyRule::Denied(_) => "deny",
        };
        let agent = &self.layers.agent;
        Some(match self.step.layer {
            PolicyLayer::Instance => format!("tools.{key} in config.toml"),
            PolicyLayer::Subagents => format!("tools.subagents.{key} in config.toml"),
            PolicyLayer::Sender => {
                format!("tools.senders.{:?}.{key} in config.toml", self.step.sender.unwrap_or_default())
            }
            _ if agent.in_config => format!("tools.{key} of the agent \"{}\" in config.toml", agent.id),
            _ => format!("policy.tools.{key} of the agent \"{}\"", agent.id),
        })
    }

    /// Returns a complete config line.
    fn suggest_change(&self, tool: &str) -> Option<String> {
        let policy = self.source_policy();
        match self.step.rule {
            PolicyRule::Disabled(entry) => {
                let left = list_without(&self.layers.rules.disabled, entry);
                Some(format!("disabled = {left} under [tools] in config.toml"))
            }
            PolicyRule::Denied(entry) => Some(self.setting_line("deny", &list_without(&policy.deny, entry))),
            PolicyRule::NotListed => Some(self.setting_line("allow", &list_with(&policy.allow, tool))),
            PolicyRule::NotGranted | PolicyRule::NotInChild if policy.allow.is_empty() => {
                Some(self.setting_line("allow", &list_with(&["*".to_owned()], tool)))
            }
            PolicyRule::NotGranted | PolicyRule::NotInChild => {
                Some(self.setting_line("allow", &list_with(&policy.allow, tool)))
            }
            PolicyRule::NotInProfile(_) => {
                let enough = ToolProfile::ALL.into_iter().find(|profile| profile.includes_tool(tool));
                enough.map(|profile| self.setting_line("profile", &format!("{:?}", profile.as_str())))
            }
            PolicyRule::NobodyToAsk => {
                let line = format!("approvals = {{ {tool} = \"never\" }}");
                Some(format!(
                    "ask in a chat where you can answer, or {}",
                    self.locate_line(&line, "approvals", &format!("{{\"{tool}\":\"never\"}}"))
                ))
            }
            _ => None,
        }
    }

    fn setting_line(&self, key: &str, value: &str) -> String {
        self.locate_line(&format!("{key} = {value}"), key, value)
    }

    fn locate_line(&self, line: &str, key: &str, json: &str) -> String {
        let agent = &self.layers.agent;
        match self.step.layer {
            PolicyLayer::Instance => format!("{line} under [tools] in config.toml"),
            PolicyLayer::Subagents => format!("{line} under [tools.subagents] in config.toml"),
            PolicyLayer::Sender => {
                format!(
                    "{line} under [tools.senders.{:?}] in config.toml",
                    self.step.sender.unwrap_or_default()
                )
            }
            _ if agent.in_config => {
                format!("tools.{line} under [[agents.list]] with id = \"{}\" in config.toml", agent.id)
            }
            _ => format!(
                "polyclaw agents set {} '{{\"policy\":{{\"tools\":{{\"{key}\":{json}}}}}}}'",
                agent.id
            ),
        }
    }
}

fn format_list<'a>(entries: impl Iterator<Item = &'a str>) -> String {
    let entries: Vec<String> = entries.map(|entry| format!("{entry:?}")).collect();
    format!("[{}]", entries.join(", "))
}

fn list_without(entries: &[String], entry: &str) -> String {
    format_list(entries.iter().map(String::as_str).filter(|one| *one != entry))
}

fn list_with(entries: &[String], entry: &str) -> String {
    format_list(entries.iter().map(String::as_str).chain([entry]))
}
