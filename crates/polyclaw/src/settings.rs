//! Translates the config into engine settings.

use std::collections::HashMap;
use std::sync::Arc;

use polyclaw_domain::a2a::RemoteAgentClient;
use polyclaw_domain::budget::{BudgetCalendar, ModelPrice};
use polyclaw_domain::config::{CatchUp, Config, DeliverTo};
use polyclaw_domain::cron_job::{CronJob, CronJobKind};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::job::JobLane;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::safety::InstanceExposure;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::turn::TurnLimits;
use polyclaw_engine::EngineSettings;
use polyclaw_engine::inbound::InboundRules;
use polyclaw_engine::maintenance::RetentionConfig;
use polyclaw_provider::embedded;
use polyclaw_tool::RemoteAgents;

use crate::home::Home;
use crate::model_selection::ModelSelection;

pub fn engine_settings(
    config: &Config,
    choice: &ModelSelection,
    home: &Home,
    redactor: Arc<Redactor>,
) -> EngineSettings {
    let defaults = EngineSettings::with_workspace(home.workspace_dir());
    let turns = &config.turns;
    let mut slots = defaults.slots.clone();
    let lanes = &config.lanes;
    let fixed = [
        (JobLane::Subagent, lanes.subagent),
        (JobLane::Teammate, lanes.teammate),
        (JobLane::Cron, lanes.cron),
        (JobLane::InternalAnnounce, lanes.internal_announce),
    ];
    for (lane, count) in fixed.into_iter().chain(lanes.main.map(|count| (JobLane::Main, count))) {
        slots.insert(lane, count.into());
    }
    EngineSettings {
        slots,
        limits: TurnLimits { rounds: turns.max_rounds, repeats: turns.repeat_limit },
        stall_ms: u64::from(turns.stall_seconds) * 1000,
        turn_ms: u64::from(turns.timeout_minutes) * 60_000,
        attempts: turns.attempts,
        lease_ms: i64::from(turns.lease_seconds) * 1000,
        automatic_budget: turns.automatic_budget,
        delivery_ttl_ms: i64::from(config.delivery.ttl_minutes) * 60_000,
        language: config.delivery.language,
        skill_folders: config.skills.skill_folders(home.path()),
        default_agent: config.agents.default_agent_id(),
        agent_template: config.agents.base_spec(),
        implicit_agent: config.agents.implicit_agent(),
        agents_in_rules: config
            .unknown_agents
            .iter()
            .map(|one| (one.id.clone(), one.error.path.clone()))
            .collect(),
        default_model: choice.model.clone(),
        no_model_hint: choice.describe_selection(),
        context_windows: context_windows(config),
        tools: config.tools.tool_rules(),
        agent_to_agent: config.tools.agent_to_agent.clone(),
        message_to: config.tools.message_to.clone(),
        providers: provider_names(choice),
        mcp_servers: config.mcp.server_names(),
        exposure: InstanceExposure::from_config(config, rustix::process::geteuid().is_root()),
        a2a: config.a2a.clone(),
        remotes: remote_agents(config),
        prices: model_prices(config),
        budget: config.budget.instance_budget(),
        session_budget: config.budget.session.clone(),
        team_budget: config.budget.team.clone(),
        calendar: BudgetCalendar { offset_ms: i64::from(config.budget.utc_offset_minutes) * 60_000 },
        cron_jobs: configured_cron_jobs(config),
        retention: RetentionConfig { rules: config.session.maintenance.clone(), folder: home.archive_dir() },
        inbound: Arc::new(InboundRules::from_config(config)),
        teams: config.teams.clone(),
        teams_folder: Some(home.teams_dir()),
        redactor,
        ..defaults
    }
}

fn remote_agents(config: &Config) -> Option<Arc<dyn RemoteAgentClient>> {
    let allow_private = config.tools.allow_private_addresses;
    let agents = &config.a2a.remote;
    (!agents.is_empty()).then(|| Arc::new(RemoteAgents::new(agents, allow_private)) as _)
}

/// Builds the cron jobs and heartbeats. The config was validated, so an entry without a valid schedule is skipped.
fn configured_cron_jobs(config: &Config) -> Vec<CronJob> {
    let default = config.agents.default_agent_id();
    let address = |to: &Option<DeliverTo>| to.as_ref().map(|to| to.resolve_address(&config.channels));
    let jobs = config
        .cron
        .iter()
        .filter_map(|job| CronJob::from_config(job, &default, address(&job.deliver_to)).ok());
    let beats = config.heartbeat.iter().filter_map(|(agent, beat)| {
        let agent = AgentId::parse(agent).ok()?;
        Some(CronJob {
            id: format!("heartbeat:{agent}"),
            written: beat.every.clone(),
            timezone: beat.timezone.clone(),
            schedule: beat.parse_schedule().ok()?,
            session: SessionKey::from_parts(&agent, &[&config.session.main_key]),
            agent,
            kind: CronJobKind::Heartbeat,
            address: address(&beat.deliver_to),
            // The next heartbeat makes up for a missed one.
            catch_up: CatchUp::Skip,
            enabled: true,
            requested_by: Vec::new(),
        })
    });
    jobs.chain(beats).collect()
}

/// Returns the providers that a model may belong to. Empty while providers are still being searched for.
fn provider_names(choice: &ModelSelection) -> Vec<String> {
    let names: Vec<String> = choice.providers.iter().map(|provider| provider.name.clone()).collect();
    let inside = embedded::chat_model().provider;
    if names.is_empty() { names } else { names.into_iter().chain([inside]).collect() }
}

/// Returns the configured prices of models. The built-in model is free.
fn model_prices(config: &Config) -> HashMap<ModelRef, ModelPrice> {
    let named =
        config.models.iter().filter_map(|(name, model)| Some((ModelRef::parse(name).ok()?, model.price()?)));
    [(embedded::chat_model(), ModelPrice::FREE)].into_iter().chain(named).collect()
}

fn context_windows(config: &Config) -> HashMap<ModelRef, usize> {
    let known = config.models.iter().filter_map(|(name, model)| {
        Some((ModelRef::parse(name).ok()?, usize::try_from(model.context_window).ok()?))
    });
    known.collect()
}
