//! A rule in words: which one it is, where it is set, and the line that would change it.

use serde::Serialize;

use super::{Layer, Layers, Profile, Rule, Step, ToolPolicy};

/// What one layer said, for people and for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    pub layer: Layer,
    pub allows: bool,
    /// A stable word: `agent.deny`, `risk.not_granted`.
    pub rule: String,
    /// The setting that decided; null where nothing is set.
    pub set_in: Option<String>,
    /// The line that would change it; null where nothing can or need be changed.
    pub change: Option<String>,
    /// The same as a sentence.
    pub says: String,
}

impl Reason {
    pub fn of(tool: &str, step: &Step<'_>, layers: &Layers<'_>) -> Self {
        let place = Place { step, layers };
        let change = if step.rule.allows() { None } else { place.change(tool) };
        Self {
            layer: step.layer,
            allows: step.rule.allows(),
            rule: format!("{}.{}", place.word(), name(step.rule)),
            set_in: place.set_in(),
            says: says(tool, step),
            change,
        }
    }

    /// What a model gets that calls a tool it does not have.
    pub fn refusal(&self, tool: &str) -> String {
        let place = self.set_in.as_ref().map(|place| format!(" Set in: {place}.")).unwrap_or_default();
        let change = self.change.as_ref().map(|line| format!(" To change it: {line}.")).unwrap_or_default();
        format!("The tool '{tool}' is not available here: {} (rule {}).{place}{change}", self.says, self.rule)
    }
}

fn name(rule: Rule<'_>) -> &'static str {
    match rule {
        Rule::Open => "open",
        Rule::Allowed(_) | Rule::NotListed => "allow",
        Rule::InProfile(_) | Rule::NotInProfile(_) => "profile",
        Rule::Disabled(_) => "disabled",
        Rule::Denied(_) => "deny",
        Rule::NotGranted => "not_granted",
        Rule::NotLent => "not_had",
        Rule::PlanNotApproved => "not_approved",
        Rule::NeverInChild => "never",
        Rule::NotInChild => "not_by_default",
        Rule::NoRoom => "no_room",
        Rule::NobodyToAsk => "nobody_to_ask",
    }
}

fn says(tool: &str, step: &Step<'_>) -> String {
    match step.rule {
        Rule::Open => "nothing is said against it".to_owned(),
        Rule::Allowed(entry) => format!("{entry:?} is on the allow list"),
        Rule::InProfile(profile) => format!("the profile {:?} lists it", profile.as_str()),
        Rule::Disabled(entry) => format!("{entry:?} is disabled"),
        Rule::Denied(entry) => format!("{entry:?} is on the deny list"),
        Rule::NotInProfile(profile) => format!("the profile {:?} does not list it", profile.as_str()),
        Rule::NotListed => "the allow list does not name it".to_owned(),
        Rule::NotGranted => {
            format!(
                "{tool} is of high risk, and outside the default agent's own sessions it must be allowed by name, group or profile"
            )
        }
        Rule::NotLent => "the turn that began this session did not have it".to_owned(),
        Rule::PlanNotApproved => {
            "the plan of this team member is not approved yet; send it with SendMessage, type plan_approval_request, and wait for the lead's answer".to_owned()
        }
        Rule::NeverInChild => "a session that another one spawned never has it".to_owned(),
        Rule::NotInChild => {
            "a session that another one spawned has it only where it is allowed by name".to_owned()
        }
        Rule::NoRoom => "this session is as deep as max_spawn_depth lets sessions be".to_owned(),
        Rule::NobodyToAsk => {
            "it needs a person's approval, and there is nobody in this conversation to be asked".to_owned()
        }
    }
}

struct Place<'a> {
    step: &'a Step<'a>,
    layers: &'a Layers<'a>,
}

impl Place<'_> {
    fn word(&self) -> &'static str {
        match self.step.layer {
            Layer::Instance => "tools",
            Layer::Agent => "agent",
            Layer::Risk => "risk",
            Layer::Lent => "lent",
            Layer::Plan => "plan",
            Layer::Subagents => "subagents",
            Layer::Sender => "sender",
            Layer::Approval => "approval",
        }
    }

    fn policy(&self) -> &ToolPolicy {
        let rules = self.layers.rules;
        match self.step.layer {
            Layer::Instance => &rules.policy,
            Layer::Agent | Layer::Risk | Layer::Lent | Layer::Plan | Layer::Approval => {
                self.layers.agent.policy
            }
            Layer::Subagents => &rules.subagents,
            Layer::Sender => {
                self.step.sender.and_then(|pattern| rules.senders.get(pattern)).unwrap_or(&rules.policy)
            }
        }
    }

    fn set_in(&self) -> Option<String> {
        let key = match self.step.rule {
            Rule::Open
            | Rule::NotLent
            | Rule::PlanNotApproved
            | Rule::NeverInChild
            | Rule::NobodyToAsk
            | Rule::NoRoom => return None,
            Rule::Allowed(_) | Rule::NotListed | Rule::NotGranted | Rule::NotInChild => "allow",
            Rule::InProfile(_) | Rule::NotInProfile(_) => "profile",
            Rule::Disabled(_) => "disabled",
            Rule::Denied(_) => "deny",
        };
        let agent = &self.layers.agent;
        Some(match self.step.layer {
            Layer::Instance => format!("tools.{key} in config.toml"),
            Layer::Subagents => format!("tools.subagents.{key} in config.toml"),
            Layer::Sender => {
                format!("tools.senders.{:?}.{key} in config.toml", self.step.sender.unwrap_or_default())
            }
            _ if agent.in_config => format!("tools.{key} of the agent \"{}\" in config.toml", agent.id),
            _ => format!("policy.tools.{key} of the agent \"{}\"", agent.id),
        })
    }

    /// A whole line, as it would be written.
    fn change(&self, tool: &str) -> Option<String> {
        let policy = self.policy();
        match self.step.rule {
            Rule::Disabled(entry) => {
                let left = without(&self.layers.rules.disabled, entry);
                Some(format!("disabled = {left} under [tools] in config.toml"))
            }
            Rule::Denied(entry) => Some(self.line("deny", &without(&policy.deny, entry))),
            Rule::NotListed => Some(self.line("allow", &with(&policy.allow, tool))),
            Rule::NotGranted | Rule::NotInChild if policy.allow.is_empty() => {
                Some(self.line("allow", &with(&["*".to_owned()], tool)))
            }
            Rule::NotGranted | Rule::NotInChild => Some(self.line("allow", &with(&policy.allow, tool))),
            Rule::NotInProfile(_) => {
                let enough = Profile::ALL.into_iter().find(|profile| profile.lists(tool));
                enough.map(|profile| self.line("profile", &format!("{:?}", profile.as_str())))
            }
            Rule::NobodyToAsk => {
                let line = format!("approvals = {{ {tool} = \"never\" }}");
                Some(format!(
                    "ask in a chat where you can answer, or {}",
                    self.placed(&line, "approvals", &format!("{{\"{tool}\":\"never\"}}"))
                ))
            }
            _ => None,
        }
    }

    fn line(&self, key: &str, value: &str) -> String {
        self.placed(&format!("{key} = {value}"), key, value)
    }

    fn placed(&self, line: &str, key: &str, json: &str) -> String {
        let agent = &self.layers.agent;
        match self.step.layer {
            Layer::Instance => format!("{line} under [tools] in config.toml"),
            Layer::Subagents => format!("{line} under [tools.subagents] in config.toml"),
            Layer::Sender => {
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

fn list<'a>(entries: impl Iterator<Item = &'a str>) -> String {
    let entries: Vec<String> = entries.map(|entry| format!("{entry:?}")).collect();
    format!("[{}]", entries.join(", "))
}

fn without(entries: &[String], entry: &str) -> String {
    list(entries.iter().map(String::as_str).filter(|one| *one != entry))
}

fn with(entries: &[String], entry: &str) -> String {
    list(entries.iter().map(String::as_str).chain([entry]))
}
