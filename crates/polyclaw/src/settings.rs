//! What the config says, in the words of the engine.

use std::collections::HashMap;
use std::sync::Arc;

use polyclaw_domain::budget::{Calendar, Price};
use polyclaw_domain::config::Config;
use polyclaw_domain::job::Lane;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::redact::Redactor;
use polyclaw_domain::turn::Limits;
use polyclaw_engine::Settings;
use polyclaw_engine::maintenance::Upkeep;
use polyclaw_engine::reception::Rules;
use polyclaw_provider::embedded;

use crate::choice::Choice;
use crate::home::Home;

pub fn engine(config: &Config, choice: &Choice, home: &Home, redactor: Arc<Redactor>) -> Settings {
    let defaults = Settings::defaults(home.workspace());
    let turns = &config.turns;
    let mut slots = defaults.slots.clone();
    let lanes = &config.lanes;
    let fixed = [
        (Lane::Subagent, lanes.subagent),
        (Lane::Teammate, lanes.teammate),
        (Lane::Cron, lanes.cron),
        (Lane::InternalAnnounce, lanes.internal_announce),
    ];
    for (lane, count) in fixed.into_iter().chain(lanes.main.map(|count| (Lane::Main, count))) {
        slots.insert(lane, count.into());
    }
    Settings {
        slots,
        limits: Limits { rounds: turns.max_rounds, repeats: turns.repeat_limit },
        stall_ms: u64::from(turns.stall_seconds) * 1000,
        turn_ms: u64::from(turns.timeout_minutes) * 60_000,
        attempts: turns.attempts,
        lease_ms: i64::from(turns.lease_seconds) * 1000,
        automatic_budget: turns.automatic_budget,
        delivery_ttl_ms: i64::from(config.delivery.ttl_minutes) * 60_000,
        default_agent: config.agents.default_id(),
        default_model: choice.model.clone(),
        no_model_hint: choice.sentence(),
        context_windows: context_windows(config),
        tools: config.tools.rules(),
        providers: providers(choice),
        mcp_servers: config.mcp.names(),
        prices: prices(config),
        budget: config.budget.instance(),
        session_budget: config.budget.session.clone(),
        calendar: Calendar { offset_ms: i64::from(config.budget.utc_offset_minutes) * 60_000 },
        upkeep: Upkeep { rules: config.session.maintenance.clone(), folder: home.archive() },
        reception: Arc::new(Rules::of(config)),
        redactor,
        ..defaults
    }
}

/// Those a model can be of; none where they are still looked for.
fn providers(choice: &Choice) -> Vec<String> {
    let names: Vec<String> = choice.providers.iter().map(|provider| provider.name.clone()).collect();
    let inside = embedded::chat_model().provider;
    if names.is_empty() { names } else { names.into_iter().chain([inside]).collect() }
}

/// What the config says models cost. The one inside Polyclaw costs nothing.
fn prices(config: &Config) -> HashMap<ModelRef, Price> {
    let named =
        config.models.iter().filter_map(|(name, model)| Some((ModelRef::parse(name).ok()?, model.price()?)));
    [(embedded::chat_model(), Price::FREE)].into_iter().chain(named).collect()
}

fn context_windows(config: &Config) -> HashMap<ModelRef, usize> {
    let known = config.models.iter().filter_map(|(name, model)| {
        Some((ModelRef::parse(name).ok()?, usize::try_from(model.context_window).ok()?))
    });
    known.collect()
}
