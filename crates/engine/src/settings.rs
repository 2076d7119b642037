//! What the config says, in the engine's words.

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
use polyclaw_domain::policy::ToolRules;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::relay::AgentToAgent;
use polyclaw_domain::safety::InstanceExposure;
use polyclaw_domain::span::Telemetry;
use polyclaw_domain::turn::TurnLimits;

use crate::inbound;
use crate::maintenance::RetentionConfig;

#[derive(Clone, Debug)]
pub struct EngineSettings {
    pub slots: HashMap<JobLane, usize>,
    pub limits: TurnLimits,
    /// Without a token, tool output or child event for this long a turn is stopped.
    pub stall_ms: u64,
    pub turn_ms: u64,
    pub attempts: u32,
    pub lease_ms: i64,
    pub automatic_budget: u32,
    pub delivery_ttl_ms: i64,
    /// Agents' files are below this folder.
    pub workspace: PathBuf,
    /// Folders of skills that the config names: what is in them tells agents what to do.
    pub skill_folders: Vec<PathBuf>,
    pub default_agent: AgentId,
    /// What an agent that is made at run time has where it does not say otherwise.
    pub agent_template: AgentSpec,
    /// The agent that the config does not write but has: it can be changed at run time, and what is not changed
    /// stays as the config's defaults have it.
    pub implicit_agent: Option<AgentSpec>,
    /// Agents that rules of the config name and that live in the database, with the path of the rule.
    pub agents_in_rules: Vec<(AgentId, String)>,
    /// Used by agents that name no model of their own.
    pub default_model: Option<ModelRef>,
    /// What to say when there is no model at all.
    pub no_model_hint: String,
    pub context_windows: HashMap<ModelRef, usize>,
    pub default_context_window: usize,
    /// What the instance says about tools.
    pub tools: ToolRules,
    /// Whether agents may write into each other's sessions.
    pub agent_to_agent: AgentToAgent,
    /// Conversations that agents may write to: patterns of `channel:account:peer`.
    pub message_to: Vec<String>,
    /// Providers by name; empty where they are only found later.
    pub providers: Vec<String>,
    pub mcp_servers: Vec<String>,
    /// What makes the instance as a whole less safe.
    pub exposure: InstanceExposure,
    /// Agents that others may ask by A2A, and how others reach this instance.
    pub a2a: A2aConfig,
    /// Agents elsewhere.
    pub remotes: Option<Arc<dyn RemoteAgentClient>>,
    /// What models cost, where somebody said so.
    pub prices: HashMap<ModelRef, ModelPrice>,
    /// What the whole instance may spend.
    pub budget: AgentBudget,
    /// What each session may, with all that is begun for it.
    pub session_budget: AgentBudget,
    /// What the members of each team may spend together.
    pub team_budget: AgentBudget,
    /// When a day of a budget begins.
    pub calendar: BudgetCalendar,
    /// What agents do at set times.
    pub cron_jobs: Vec<CronJob>,
    /// Who may write, who answers, and in which session.
    pub inbound: Arc<inbound::InboundRules>,
    /// What becomes of sessions that nobody uses any more.
    pub retention: RetentionConfig,
    /// The bounds of teams.
    pub teams: polyclaw_domain::team::TeamLimits,
    /// Where people find what teams are and write to each other; nowhere if it is not set.
    pub teams_folder: Option<PathBuf>,
    /// What must not be seen: everything passes through it before it is stored, logged or shown.
    pub redactor: Arc<Redactor>,
    /// Where spans go.
    pub telemetry: Telemetry,
}

impl EngineSettings {
    /// How many turns of a lane run at once.
    pub fn lane_slots(&self, lane: JobLane) -> usize {
        self.slots.get(&lane).copied().unwrap_or(1)
    }

    /// Whether the config has this agent without writing it.
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

    /// The model an agent asks first where a session has none of its own.
    pub fn agent_model(&self, spec: &AgentSpec) -> Option<ModelRef> {
        spec.defaults.model.clone().or_else(|| self.default_model.clone())
    }

    pub fn context_window(&self, model: &ModelRef) -> usize {
        self.context_windows.get(model).copied().unwrap_or(self.default_context_window)
    }
}
