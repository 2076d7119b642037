//! The config of one instance: its types (whose doc comments are the reference for users), how a file is parsed into
//! them, and the JSON Schema generated from them.
//!
//! Parsing is a pipeline: text → a tree with line numbers (`document`) → the tree checked against the schema, key by
//! key (`schema_walk`) → the typed [`Config`] → the rules between values (`report_errors` of each section). The schema
//! that editors use is therefore the one that decides. To add a section, add a file with a type, a field in [`Config`]
//! and a line in `Config::report_errors`.

mod a2a;
mod agents;
mod budget;
mod channels;
mod cron;
mod delivery;
mod document;
mod expand;
mod gateway;
mod hooks;
mod key_names;
mod lanes;
mod mcp;
mod memory;
mod models;
mod observability;
mod providers;
mod report;
mod routing;
mod sandbox;
mod schema_walk;
mod secret;
mod session;
mod skills;
mod store;
mod telemetry;
mod tools;
mod turns;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use a2a::{A2aConfig, RemoteAgentConfig};
pub use agents::{AgentConfig, AgentDefaults, AgentsConfig};
pub use budget::BudgetConfig;
pub use channels::{
    AccountsInUse, ChannelsConfig, DEFAULT_ACCOUNT, DiscordConfig, MatrixConfig, SlackConfig, SlackMode,
    TelegramConfig, WebhookConfig, WebhookMapping, WebhookPost, WhatsappConfig,
};
pub use cron::{CatchUp, CronJobConfig, DeliverTo, HeartbeatConfig};
pub use delivery::DeliveryConfig;
pub use expand::{ExternalReference, ReferenceLookup};
pub use gateway::{GatewayAuth, GatewayConfig};
pub use hooks::{HookConfig, HookEvent};
pub(crate) use key_names::nearest_word;
pub use key_names::suggest_word;
pub use lanes::LanesConfig;
pub use mcp::{McpApproval, McpConfig, McpSandbox, McpServer, McpTools};
pub use memory::MemoryConfig;
pub use models::ModelConfig;
pub use observability::{LogFormat, LogLevel, ObservabilityConfig};
pub use providers::{ProviderConfig, ProviderKind};
pub use report::{ConfigError, ConfigErrors, UnknownAgent};
pub use routing::{BroadcastConfig, BroadcastStrategy, IntentClassifierConfig, RoutingConfig};
pub use sandbox::{SandboxConfig, WorkerPoolConfig};
pub use secret::Secret;
pub use session::{MaintenanceConfig, MaintenanceMode, SessionConfig};
pub use skills::SkillsConfig;
pub use store::StoreConfig;
pub use telemetry::TelemetryConfig;
pub use tools::{SearchKind, ToolsConfig, WebSearch};
pub use turns::TurnsConfig;

use document::ConfigNode;
use report::ConfigReport;
use schema_walk::SchemaWalker;

use crate::id::AgentId;
use crate::provider::ModelRef;
use crate::route::Binding;

/// The version of the file format that this program reads and writes.
const SCHEMA_VERSION: u32 = 1;

/// The config of one instance. Everything has a default; an empty file is a valid config.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The version of this file's format. Currently always 1.
    pub schema: u32,
    pub gateway: GatewayConfig,
    pub store: StoreConfig,
    /// Model providers, by a name of your choice: `[providers.openai]`. Without any, API keys in the environment, then
    /// local model servers, then the embedded model are used.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Properties of single models, by their full name: `[models."openai/gpt-5-mini"]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, ModelConfig>,
    pub agents: AgentsConfig,
    pub budget: BudgetConfig,
    /// Which agent answers, by where the message was written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<Binding>,
    pub broadcast: BroadcastConfig,
    pub routing: RoutingConfig,
    /// Cron jobs: messages that agents get at set times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cron: Vec<CronJobConfig>,
    /// Agents that check their `HEARTBEAT.md` periodically: `[heartbeat.<agent>]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub heartbeat: BTreeMap<String, HeartbeatConfig>,
    /// Programs and URLs that are notified of events.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookConfig>,
    pub session: SessionConfig,
    pub memory: MemoryConfig,
    pub skills: SkillsConfig,
    pub tools: ToolsConfig,
    pub mcp: McpConfig,
    pub a2a: A2aConfig,
    pub sandbox: SandboxConfig,
    pub workers: WorkerPoolConfig,
    pub lanes: LanesConfig,
    pub turns: TurnsConfig,
    /// Limits of agent teams.
    pub teams: crate::team::TeamLimits,
    pub delivery: DeliveryConfig,
    pub channels: ChannelsConfig,
    pub observability: ObservabilityConfig,
    pub telemetry: TelemetryConfig,
    /// All resolved secrets of the file, so that they can be redacted everywhere.
    #[serde(skip)]
    pub secrets: Vec<Secret>,
    /// Rules that name agents which are not in the file.
    #[serde(skip)]
    pub unknown_agents: Vec<UnknownAgent>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            schema: SCHEMA_VERSION,
            gateway: GatewayConfig::default(),
            store: StoreConfig::default(),
            providers: BTreeMap::new(),
            models: BTreeMap::new(),
            agents: AgentsConfig::default(),
            budget: BudgetConfig::default(),
            bindings: Vec::new(),
            broadcast: BroadcastConfig::default(),
            routing: RoutingConfig::default(),
            cron: Vec::new(),
            heartbeat: BTreeMap::new(),
            hooks: Vec::new(),
            session: SessionConfig::default(),
            memory: MemoryConfig::default(),
            skills: SkillsConfig::default(),
            tools: ToolsConfig::default(),
            mcp: McpConfig::default(),
            a2a: A2aConfig::default(),
            sandbox: SandboxConfig::default(),
            workers: WorkerPoolConfig::default(),
            lanes: LanesConfig::default(),
            turns: TurnsConfig::default(),
            teams: crate::team::TeamLimits::default(),
            delivery: DeliveryConfig::default(),
            channels: ChannelsConfig::default(),
            observability: ObservabilityConfig::default(),
            telemetry: TelemetryConfig::default(),
            secrets: Vec::new(),
            unknown_agents: Vec::new(),
        }
    }
}

impl Config {
    /// Checks that every agent named in a rule is in the file or in `known`.
    pub fn check_agents(&self, known: &[AgentId]) -> Result<(), ConfigErrors> {
        let known: BTreeSet<&AgentId> = known.iter().collect();
        let unknown = self.unknown_agents.iter().filter(|unknown| !known.contains(&unknown.id));
        let errors: Vec<ConfigError> = unknown.map(|unknown| unknown.error.clone()).collect();
        if errors.is_empty() { Ok(()) } else { Err(ConfigErrors(errors)) }
    }

    /// Returns the context window of a model in tokens: the configured one or the default.
    pub fn context_window(&self, model: &ModelRef) -> u64 {
        self.models.get(&model.to_string()).cloned().unwrap_or_default().context_window
    }

    fn report_errors(&self, report: &mut ConfigReport) {
        report.know_agents(self.agents.ids());
        if self.schema != SCHEMA_VERSION {
            let message = format!(
                "this file has schema {}; this program supports schema {SCHEMA_VERSION}",
                self.schema
            );
            report.add_error("schema", message, "use the polyclaw version that wrote it, or set schema = 1");
        }
        self.gateway.report_errors(report);
        self.telemetry.report_errors(report);
        self.store.report_errors(report);
        providers::check_providers(&self.providers, report);
        models::check_models(&self.models, &self.providers, report);
        self.agents.report_errors(&self.providers, report);
        routing::check_bindings(&self.bindings, &self.agents, &self.channels, report);
        self.broadcast.report_errors(&self.agents, report);
        if let Some(model) = &self.routing.intent_classifier.model {
            providers::check_model(model, "routing.intent_classifier.model", &self.providers, report);
        }
        self.session.report_errors(report);
        self.session.check_shared_dms(&self.channels, &self.bindings, report);
        self.tools.report_errors(&self.mcp.server_names(), report);
        let written = self.tools.agent_to_agent.allow.iter().enumerate();
        let plain = written.filter(|(_, entry)| !entry.contains('*'));
        self.agents.check_agent_list(plain, "tools.agent_to_agent.allow", report);
        self.memory.report_errors(&self.providers, report);
        self.skills.report_errors(report);
        self.mcp.report_errors(&self.agents, report);
        self.a2a.report_errors(&self.agents, report);
        self.sandbox.report_errors(report);
        self.workers.report_errors(report);
        self.channels.report_errors(&self.agents, report);
        hooks::check_hooks(&self.hooks, report);
        cron::check_cron_jobs(&self.cron, &self.agents, &self.channels, report);
        cron::check_heartbeats(&self.heartbeat, &self.agents, &self.channels, report);
    }
}

/// Parses a config file. `file` is the name shown in messages. A name that ends in `.json` or `.json5`, or text that
/// starts like JSON, is parsed as JSON5 with camelCase keys, everything else as TOML. Reports all errors together.
///
/// Agents that rules name but the file does not define are returned in `unknown_agents`: see [`Config::check_agents`].
pub fn load_with_unknown_agents(
    text: &str,
    file: &str,
    lookup: ReferenceLookup<'_>,
) -> Result<Config, ConfigErrors> {
    let mut report = ConfigReport::new(file);
    let config = read(text, file, lookup, &mut report);
    if report.is_clean() { Ok(config) } else { Err(report.into_errors()) }
}

/// Like [`load_with_unknown_agents`], but every agent that the file does not define is an error.
pub fn load(text: &str, file: &str, lookup: ReferenceLookup<'_>) -> Result<Config, ConfigErrors> {
    let mut report = ConfigReport::new(file);
    let config = read(text, file, lookup, &mut report);
    report.refuse_agents(config.unknown_agents.iter().map(|unknown| unknown.error.clone()));
    if report.is_clean() { Ok(config) } else { Err(report.into_errors()) }
}

/// Parses what can be parsed; `report` receives the errors.
fn read(text: &str, file: &str, lookup: ReferenceLookup<'_>, report: &mut ConfigReport) -> Config {
    let root = match document::parse_document(text, file) {
        Ok(root) => root,
        Err(syntax) => {
            report.add_syntax_error(syntax);
            return Config::default();
        }
    };
    let mut config = build_config(root, document::is_json(text, file), lookup, report);
    config.secrets = report.take_secrets();
    config.report_errors(report);
    config.unknown_agents = report.take_unknown_agents();
    config
}

/// Builds the typed config of a tree. Invalid values or sections are left at their defaults, so that the rest can still
/// be checked.
fn build_config(
    root: ConfigNode,
    json: bool,
    lookup: ReferenceLookup<'_>,
    report: &mut ConfigReport,
) -> Config {
    let schema = config_schema();
    let mut value = SchemaWalker::new(&schema, json, lookup, report).build_value(root);
    if let Some(sections) = value.as_object_mut() {
        sections.retain(|section, own| {
            let is_readable = report.is_section_sound(section)
                || (!report.is_section_broken(section) && is_section_readable(section, own));
            if !is_readable {
                report.mark_section_broken(section);
            }
            is_readable
        });
    }
    agents::inherit_defaults(&mut value);
    serde_json::from_value(value).unwrap_or_else(|error| {
        report.add_error("", format!("cannot read this config: {error}"), "");
        Config::default()
    })
}

/// Returns whether the remaining values of a section can be deserialized.
fn is_section_readable(section: &str, own: &serde_json::Value) -> bool {
    serde_json::from_value::<Config>(serde_json::json!({ section: own })).is_ok()
}

impl Config {
    /// Checks that the default model can answer: without configured providers it must be one that is detected at
    /// startup. A daemon starts anyway and reports the problem when it is asked; commands that write a config reject it
    /// immediately.
    pub fn check_default_model(&self, file: &str) -> Result<(), ConfigErrors> {
        let named = self.agents.defaults.model.as_ref().map(|choice| &choice.model);
        let Some(model) = named.filter(|model| !providers::needs_no_section(&model.provider)) else {
            return Ok(());
        };
        if !self.providers.is_empty() {
            return Ok(());
        }
        let mut report = ConfigReport::new(file);
        report.add_error(
            "agents.defaults.model",
            format!("{model} uses provider {:?}, which is not configured", model.provider),
            format!("add a section [providers.{}], or use a model of another provider", model.provider),
        );
        Err(report.into_errors())
    }
}

/// Returns the JSON Schema of the file, for editors and for `polyclaw config schema`.
pub fn config_schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Config);
    schema.insert("title".to_owned(), "Polyclaw config".into());
    schema.to_value()
}

/// Returns the commented file that is written for a new home. Its values equal the defaults.
pub fn first_run_text() -> &'static str {
    include_str!("config/first_run.toml")
}
