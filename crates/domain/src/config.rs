//! The config of one instance: its types (whose doc comments are the reference for users), how a file is
//! read into them, and the JSON Schema made from them.
//!
//! Reading goes one way: text → a tree that knows its lines (`document`) → the tree checked against the
//! schema, key by key (`shape`) → the typed [`Config`] → the rules between values (each section's `check`).
//! The schema that editors get is therefore the one that decides. A new section is a file with a type, a
//! field in [`Config`] and a line in `Config::check`.

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
mod lanes;
mod mcp;
mod memory;
mod models;
mod name;
mod observability;
mod providers;
mod report;
mod routing;
mod sandbox;
mod secret;
mod session;
mod shape;
mod skills;
mod store;
mod telemetry;
mod tools;
mod turns;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use a2a::{A2a, RemoteAgent};
pub use agents::{Agent, AgentDefaults, Agents};
pub use budget::Budget;
pub use channels::{
    AccountsInUse, Channels, DEFAULT_ACCOUNT, Discord, Mapping, Matrix, Post, Slack, SlackMode, Telegram,
    Webhook, Whatsapp,
};
pub use cron::{CatchUp, Cron, DeliverTo, Heartbeat};
pub use delivery::Delivery;
pub use expand::{Lookup, Source};
pub use gateway::{Auth, Gateway};
pub use hooks::{Hook, HookEvent};
pub use lanes::Lanes;
pub use mcp::{Mcp, McpApproval, McpSandbox, McpServer, McpTools};
pub use memory::Memory;
pub use models::Model;
pub(crate) use name::nearest;
pub use name::suggest;
pub use observability::{LogFormat, LogLevel, Observability};
pub use providers::{Provider, ProviderKind};
pub use report::{ConfigError, ConfigErrors, UnknownAgent};
pub use routing::{Broadcast, Classifier, Routing, Strategy};
pub use sandbox::{SandboxConfig, Workers};
pub use secret::Secret;
pub use session::{Maintenance, Mode, Session};
pub use skills::Skills;
pub use store::Store;
pub use telemetry::Telemetry;
pub use tools::{SearchKind, Tools, WebSearch};
pub use turns::Turns;

use document::Node;
use report::Report;
use shape::Shape;

use crate::id::AgentId;
use crate::provider::ModelRef;
use crate::route::Binding;

/// The version of the file format that this program reads and writes.
const SCHEMA: u32 = 1;

/// The config of one instance. Everything has a default; an empty file is a valid config.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The version of this file's format. Always 1 today.
    pub schema: u32,
    pub gateway: Gateway,
    pub store: Store,
    /// The services that answer as models, by a name of your choice: `[providers.openai]`. With none, keys in
    /// the environment, then local model servers, then the embedded model are used.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<String, Provider>,
    /// What is known about single models, by their full name: `[models."openai/gpt-5-mini"]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Model>,
    pub agents: Agents,
    pub budget: Budget,
    /// Which agent answers what, by where it was written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<Binding>,
    pub broadcast: Broadcast,
    pub routing: Routing,
    /// Messages that agents get at set times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cron: Vec<Cron>,
    /// Agents that look at their `HEARTBEAT.md` now and then: `[heartbeat.<agent>]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub heartbeat: BTreeMap<String, Heartbeat>,
    /// Programs and addresses that are told what happens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    pub session: Session,
    pub memory: Memory,
    pub skills: Skills,
    pub tools: Tools,
    pub mcp: Mcp,
    pub a2a: A2a,
    pub sandbox: SandboxConfig,
    pub workers: Workers,
    pub lanes: Lanes,
    pub turns: Turns,
    /// Teams of agents: how many, how large, how long.
    pub teams: crate::team::Limits,
    pub delivery: Delivery,
    pub channels: Channels,
    pub observability: Observability,
    pub telemetry: Telemetry,
    /// Every secret that the file names, as it was resolved: what must not be seen anywhere.
    #[serde(skip)]
    pub secrets: Vec<Secret>,
    /// Rules that name agents the file does not have.
    #[serde(skip)]
    pub unknown_agents: Vec<UnknownAgent>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            schema: SCHEMA,
            gateway: Gateway::default(),
            store: Store::default(),
            providers: BTreeMap::new(),
            models: BTreeMap::new(),
            agents: Agents::default(),
            budget: Budget::default(),
            bindings: Vec::new(),
            broadcast: Broadcast::default(),
            routing: Routing::default(),
            cron: Vec::new(),
            heartbeat: BTreeMap::new(),
            hooks: Vec::new(),
            session: Session::default(),
            memory: Memory::default(),
            skills: Skills::default(),
            tools: Tools::default(),
            mcp: Mcp::default(),
            a2a: A2a::default(),
            sandbox: SandboxConfig::default(),
            workers: Workers::default(),
            lanes: Lanes::default(),
            turns: Turns::default(),
            teams: crate::team::Limits::default(),
            delivery: Delivery::default(),
            channels: Channels::default(),
            observability: Observability::default(),
            telemetry: Telemetry::default(),
            secrets: Vec::new(),
            unknown_agents: Vec::new(),
        }
    }
}

impl Config {
    /// That every agent a rule names is one of the file's, or of these.
    pub fn check_agents(&self, known: &[AgentId]) -> Result<(), ConfigErrors> {
        let known: BTreeSet<&AgentId> = known.iter().collect();
        let unknown = self.unknown_agents.iter().filter(|unknown| !known.contains(&unknown.id));
        let errors: Vec<ConfigError> = unknown.map(|unknown| unknown.error.clone()).collect();
        if errors.is_empty() { Ok(()) } else { Err(ConfigErrors(errors)) }
    }

    /// How many tokens of context a model takes, where the config says so or not.
    pub fn context_window(&self, model: &ModelRef) -> u64 {
        self.models.get(&model.to_string()).cloned().unwrap_or_default().context_window
    }

    fn check(&self, report: &mut Report) {
        report.know_agents(self.agents.ids());
        if self.schema != SCHEMA {
            let message =
                format!("this file is of schema {}, this program reads schema {SCHEMA}", self.schema);
            report.error("schema", message, "use the polyclaw that wrote it, or write schema = 1");
        }
        self.gateway.check(report);
        self.telemetry.check(report);
        self.store.check(report);
        providers::check(&self.providers, report);
        models::check(&self.models, &self.providers, report);
        self.agents.check(&self.providers, report);
        routing::check_bindings(&self.bindings, &self.agents, &self.channels, report);
        self.broadcast.check(&self.agents, report);
        if let Some(model) = &self.routing.intent_classifier.model {
            providers::check_model(model, "routing.intent_classifier.model", &self.providers, report);
        }
        self.session.check(report);
        self.session.check_shared(&self.channels, &self.bindings, report);
        self.tools.check(&self.mcp.names(), report);
        let written = self.tools.agent_to_agent.allow.iter().enumerate();
        let plain = written.filter(|(_, entry)| !entry.contains('*'));
        self.agents.check_listed(plain, "tools.agent_to_agent.allow", report);
        self.memory.check(&self.providers, report);
        self.skills.check(report);
        self.mcp.check(&self.agents, report);
        self.a2a.check(&self.agents, report);
        self.sandbox.check(report);
        self.workers.check(report);
        self.channels.check(&self.agents, report);
        hooks::check(&self.hooks, report);
        cron::check(&self.cron, &self.agents, &self.channels, report);
        cron::check_heartbeats(&self.heartbeat, &self.agents, &self.channels, report);
    }
}

/// Reads a config from the text of a file. `file` is the name shown in messages; a name ending in `.json` or
/// `.json5`, or text that starts like JSON, is read as JSON5 with camelCase keys, everything else as TOML.
/// Reports every error it finds at once.
///
/// Agents that rules name and the file does not have are left in `unknown_agents`: see [`Config::check_agents`].
pub fn load_open(text: &str, file: &str, lookup: Lookup<'_>) -> Result<Config, ConfigErrors> {
    let mut report = Report::new(file);
    let config = read(text, file, lookup, &mut report);
    if report.is_clean() { Ok(config) } else { Err(report.into_errors()) }
}

/// The same where the agents that were made while the instance ran are at hand: every other name is an error.
pub fn load(text: &str, file: &str, lookup: Lookup<'_>) -> Result<Config, ConfigErrors> {
    let mut report = Report::new(file);
    let config = read(text, file, lookup, &mut report);
    report.refuse_agents(config.unknown_agents.iter().map(|unknown| unknown.error.clone()));
    if report.is_clean() { Ok(config) } else { Err(report.into_errors()) }
}

/// What can be read of a text; the report has what is wrong with the rest.
fn read(text: &str, file: &str, lookup: Lookup<'_>, report: &mut Report) -> Config {
    let root = match document::read(text, file) {
        Ok(root) => root,
        Err(syntax) => {
            report.syntax(syntax);
            return Config::default();
        }
    };
    let mut config = shaped(root, document::is_json(text, file), lookup, report);
    config.secrets = report.take_secrets();
    config.check(report);
    config.unknown_agents = report.take_unknown_agents();
    config
}

/// The typed config of a tree. What could not be read is left at its default, or else its section, so that the rest
/// can still be checked.
fn shaped(root: Node, json: bool, lookup: Lookup<'_>, report: &mut Report) -> Config {
    let schema = schema();
    let mut value = Shape::new(&schema, json, lookup, report).fit(root);
    if let Some(sections) = value.as_object_mut() {
        sections.retain(|section, own| {
            let is_readable =
                report.is_sound(section) || (!report.is_given_up(section) && can_be_read(section, own));
            if !is_readable {
                report.give_up(section);
            }
            is_readable
        });
    }
    agents::inherit(&mut value);
    serde_json::from_value(value).unwrap_or_else(|error| {
        report.error("", format!("this config cannot be read: {error}"), "");
        Config::default()
    })
}

/// Whether what is left of a section is still one.
fn can_be_read(section: &str, own: &serde_json::Value) -> bool {
    serde_json::from_value::<Config>(serde_json::json!({ section: own })).is_ok()
}

impl Config {
    /// That the default model could answer: with no provider configured it is one of those that are found at start. A
    /// daemon starts without, and says so when it is asked; whoever writes a config is told at once.
    pub fn check_default_model(&self, file: &str) -> Result<(), ConfigErrors> {
        let named = self.agents.defaults.model.as_ref().map(|choice| &choice.model);
        let Some(model) = named.filter(|model| !providers::needs_no_section(&model.provider)) else {
            return Ok(());
        };
        if !self.providers.is_empty() {
            return Ok(());
        }
        let mut report = Report::new(file);
        report.error(
            "agents.defaults.model",
            format!("{model} is of provider {:?}, which is not configured", model.provider),
            format!("add a section [providers.{}], or name a model of another", model.provider),
        );
        Err(report.into_errors())
    }
}

/// The JSON Schema of the file, for editors and for `polyclaw config schema`.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Config);
    schema.insert("title".to_owned(), "Polyclaw config".into());
    schema.to_value()
}

/// The commented file that is written for a new home. It says what the defaults say.
pub fn first_run_text() -> &'static str {
    include_str!("config/first_run.toml")
}
