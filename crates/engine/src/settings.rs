//! Settings of the engine, built from the config.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use polyclaw_domain::a2a::RemoteAgentClient;
use polyclaw_domain::agent::{AgentBudget, AgentSpec};
use polyclaw_domain::budget::{BudgetCalendar, ModelPrice};
use polyclaw_domain::config::{A2aConfig, Config, MaintenanceConfig};
use polyclaw_domain::cron_job::CronJob;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::job::JobLane;
use polyclaw_domain::locale::{ConversationLanguage, LanguageSetting, Locale};
use polyclaw_domain::policy::ToolRules;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::relay::AgentToAgent;
use polyclaw_domain::safety::InstanceExposure;
use polyclaw_domain::session::Session;
use polyclaw_domain::span::Telemetry;
use polyclaw_domain::turn::TurnLimits;

use crate::inbound;
use crate::maintenance::RetentionConfig;

#[derive(Clone, Debug)]
pub struct EngineSettings {
    pub slots: HashMap<JobLane, usize>,
    pub limits: TurnLimits,
    /// A turn is stopped after this long without a token, tool output or child event.
    pub stall_ms: u64,
    pub turn_ms: u64,
    pub attempts: u32,
    pub lease_ms: i64,
    pub automatic_budget: u32,
    pub delivery_ttl_ms: i64,
    /// Language of replies and notices, unless a conversation has its own.
    pub language: LanguageSetting,
    /// Parent folder of the agents' workspaces.
    pub workspace: PathBuf,
    /// Skill folders named in the config. Agents follow the instructions in them, so they are trusted.
    pub skill_folders: Vec<PathBuf>,
    pub default_agent: AgentId,
    /// Defaults for agents created at run time.
    pub agent_template: AgentSpec,
    /// The agent that exists without being written in the config. It can be changed at run time; unchanged fields
    /// follow the config's defaults.
    pub implicit_agent: Option<AgentSpec>,
    /// Agents that config rules name and that are stored in the database, with the path of the rule.
    pub agents_in_rules: Vec<(AgentId, String)>,
    /// Model of agents that name none.
    pub default_model: Option<ModelRef>,
    /// Hint shown when no model is configured.
    pub no_model_hint: String,
    pub context_windows: HashMap<ModelRef, usize>,
    pub default_context_window: usize,
    /// Instance-wide tool rules.
    pub tools: ToolRules,
    /// Whether agents may write into each other's sessions.
    pub agent_to_agent: AgentToAgent,
    /// Conversations that agents may write to: patterns of `channel:account:peer`.
    pub message_to: Vec<String>,
    /// Provider names. Empty if providers are only discovered later.
    pub providers: Vec<String>,
    pub mcp_servers: Vec<String>,
    /// Settings that make the whole instance less safe.
    pub exposure: InstanceExposure,
    /// Agents exposed over A2A, and the address under which others reach this instance.
    pub a2a: A2aConfig,
    /// Client for remote agents.
    pub remotes: Option<Arc<dyn RemoteAgentClient>>,
    /// Configured model prices.
    pub prices: HashMap<ModelRef, ModelPrice>,
    /// Budget of the whole instance.
    pub budget: AgentBudget,
    /// Budget of each session, including everything started for it.
    pub session_budget: AgentBudget,
    /// Budget shared by the members of each team.
    pub team_budget: AgentBudget,
    /// When a budget's day starts.
    pub calendar: BudgetCalendar,
    /// Cron jobs defined in the config.
    pub cron_jobs: Vec<CronJob>,
    /// Rules that decide who may write, which agent answers, and in which session.
    pub inbound: Arc<inbound::InboundRules>,
    /// Retention of unused sessions.
    pub retention: RetentionConfig,
    /// Limits of teams.
    pub teams: polyclaw_domain::team::TeamLimits,
    /// Folder in which people can read the state and messages of teams; `None` writes none.
    pub teams_folder: Option<PathBuf>,
    /// Redacts secrets from everything before it is stored, logged or shown.
    pub redactor: Arc<Redactor>,
    /// Receives spans.
    pub telemetry: Telemetry,
}

impl EngineSettings {
    /// Returns how many turns of a lane may run concurrently.
    pub fn lane_slots(&self, lane: JobLane) -> usize {
        self.slots.get(&lane).copied().unwrap_or(1)
    }

    /// Whether this agent exists without being written in the config.
    pub fn is_implicit(&self, id: &AgentId) -> bool {
        self.implicit_agent.as_ref().is_some_and(|spec| spec.agent_id == *id)
    }

    pub fn with_workspace(workspace: PathBuf) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            slots: JobLane::ALL.into_iter().map(|lane| (lane, lane.default_slots(cores))).collect(),
            limits: TurnLimits { rounds: 50, repeats: 4 },
            stall_ms: 120_000,
            turn_ms: 30 * 60_000,
            attempts: 3,
            lease_ms: 30_000,
            automatic_budget: 20,
            delivery_ttl_ms: 15 * 60_000,
            language: LanguageSetting::Auto,
            retention: RetentionConfig {
                rules: MaintenanceConfig::default(),
                folder: workspace.join("archive"),
            },
            workspace,
            skill_folders: Vec::new(),
            default_agent: AgentId::main(),
            agent_template: AgentSpec::with_id(AgentId::main()),
            implicit_agent: None,
            agents_in_rules: Vec::new(),
            default_model: None,
            no_model_hint: "No model is configured.".to_owned(),
            context_windows: HashMap::new(),
            default_context_window: 128_000,
            tools: ToolRules::default(),
            agent_to_agent: AgentToAgent::default(),
            message_to: Vec::new(),
            providers: Vec::new(),
            mcp_servers: Vec::new(),
            exposure: InstanceExposure::from_config(&Config::default(), false),
            a2a: A2aConfig::default(),
            remotes: None,
            prices: HashMap::new(),
            budget: AgentBudget::default(),
            session_budget: AgentBudget::default(),
            team_budget: AgentBudget::default(),
            calendar: BudgetCalendar::default(),
            cron_jobs: Vec::new(),
            inbound: Arc::new(inbound::InboundRules::from_config(&Config::default())),
            teams: polyclaw_domain::team::TeamLimits::default(),
            teams_folder: None,
            redactor: Arc::default(),
            telemetry: Telemetry::default(),
        }
    }

    /// Returns the first model to try for an agent, unless the session overrides it.
    pub fn agent_model(&self, spec: &AgentSpec) -> Option<ModelRef> {
        spec.defaults.model.clone().or_else(|| self.default_model.clone())
    }

    /// Returns the language of replies and notices in a conversation.
    pub fn locale_for(&self, session: &Session) -> Locale {
        session.language.resolve(self.language)
    }

    /// Returns the language of a reply to a message. If the conversation decides none, the message does.
    pub fn locale_for_text(&self, language: ConversationLanguage, text: &str) -> Locale {
        let detected = language.detected.or_else(|| Locale::detect(text));
        ConversationLanguage { detected, ..language }.resolve(self.language)
    }

    pub fn context_window(&self, model: &ModelRef) -> usize {
        self.context_windows.get(model).copied().unwrap_or(self.default_context_window)
    }
}
