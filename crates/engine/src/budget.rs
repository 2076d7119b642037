//! Budgets: a model call reserves before it starts and commits its usage in the transaction that stores it. Without
//! budgets nothing is checked or stored.

mod out_of_turn;

use std::sync::Arc;

use polyclaw_domain::agent::AgentBudget;
use polyclaw_domain::budget::{self, BudgetAmount, BudgetScope, DailyLimits, ModelPrice, NanoUsd};
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::delivery::{self, DeliveryPolicy};
use polyclaw_domain::event::EventKind;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::provider::{ModelRef, ModelReply, Prompt, TokenUsage};
use polyclaw_domain::session::Session;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::team::TeamRole;
use polyclaw_domain::time::Millis;
use polyclaw_store::budgets::{self, BudgetLimit, BudgetUsage};
use polyclaw_store::jobs::{ClaimStatus, TurnClaim};
use polyclaw_store::outbox::{self, OutboxMessage};
use polyclaw_store::{Tx, agents, events, sessions, teams, usage};
use serde_json::json;

use crate::core::Engine;
use crate::error::Result;
use crate::hub::FrameKind;
use crate::prompt::TurnContext;
use crate::reply_text::turn::BudgetFailure;
use crate::settings::EngineSettings;
use crate::turn::{TurnAbort, TurnResult, check_claim, or_lost, turn_event};
use crate::worker::RunningTurn;

pub(crate) use out_of_turn::{OutOfTurnCall, estimate_if_affordable, record_spending};

/// Maximum number of ancestor sessions whose budgets are checked.
const MAX_ANCESTOR_DEPTH: usize = 16;

/// The reservation of one call, and whom to notify when a budget runs low.
#[derive(Clone, Debug)]
pub(crate) struct BudgetReservation {
    limits: Vec<BudgetLimit>,
    amount: BudgetAmount,
    resets: Millis,
    notify: Vec<(ChatAddress, DeliveryPolicy)>,
    locale: Locale,
    ttl_ms: i64,
}

/// A model call that no transaction has stored yet. Its usage is unknown while it is in flight.
#[derive(Clone, Debug)]
pub(crate) struct UnstoredModelCall {
    pub model: String,
    pub usage: TokenUsage,
    pub cost: Option<NanoUsd>,
    pub reservation: Option<Arc<BudgetReservation>>,
}

impl UnstoredModelCall {
    pub fn in_flight(model: &ModelRef, reservation: Option<Arc<BudgetReservation>>) -> Self {
        Self { model: model.to_string(), usage: TokenUsage::default(), cost: None, reservation }
    }

    pub fn from_reply(
        engine: &Engine,
        reply: &ModelReply,
        reservation: Option<Arc<BudgetReservation>>,
    ) -> Self {
        let cost = engine.settings().prices.get(&reply.model).and_then(|price| price.usage_cost(reply.usage));
        Self { model: reply.model.to_string(), usage: reply.usage, cost, reservation }
    }

    /// Stores the call's usage and charges it to its scopes. Returns notices for people.
    pub fn record_usage(
        &self,
        tx: &mut Tx<'_>,
        claim: &TurnClaim,
        now: Millis,
    ) -> polyclaw_store::Result<Vec<String>> {
        let notices = match &self.reservation {
            Some(reservation) => self.settle_reservation(tx, claim, reservation, now)?,
            None => Vec::new(),
        };
        let call = usage::ModelCallUsage {
            session: &claim.session,
            turn: &claim.turn,
            agent: &claim.agent,
            model: &self.model,
            usage: self.usage,
            cost_nanos: self.cost,
        };
        usage::record(tx, &call, now)?;
        Ok(notices)
    }

    fn settle_reservation(
        &self,
        tx: &mut Tx<'_>,
        claim: &TurnClaim,
        reservation: &BudgetReservation,
        now: Millis,
    ) -> polyclaw_store::Result<Vec<String>> {
        let known = self.usage.input_tokens.zip(self.usage.output_tokens);
        // Unknown usage is charged as reserved, so that it is not underestimated as far as we can tell.
        let amount = known.map_or(reservation.amount, |(input, output)| BudgetAmount {
            tokens: i64::try_from(input + output).unwrap_or(i64::MAX),
            nanos: self.cost.unwrap_or(reservation.amount.nanos),
        });
        let warned = budgets::commit_usage(tx, &claim.turn, &reservation.limits, amount, known.is_none())?;
        let mut notices = Vec::new();
        for (scope, reached) in warned {
            let text = budget::daily_warning(reservation.locale, &scope, reached, reservation.resets);
            let data = json!({ "scope": scope.name(), "notice": text, "resets_at": reservation.resets });
            events::record(tx, &turn_event(claim, EventKind::BudgetWarned, data), now)?;
            reservation.push_notices(tx, claim, &text, now)?;
            notices.push(text);
        }
        Ok(notices)
    }
}

impl BudgetReservation {
    /// Sends a notice through the gate to every conversation that waits for this turn.
    fn push_notices(
        &self,
        tx: &mut Tx<'_>,
        claim: &TurnClaim,
        text: &str,
        now: Millis,
    ) -> polyclaw_store::Result<()> {
        for (n, (address, policy)) in
            self.notify.iter().enumerate().filter(|(_, (to, _))| !to.is_pull_channel())
        {
            let Ok(outgoing) = delivery::apply_gate(Some(address.clone()), *policy, text.to_owned()) else {
                continue;
            };
            let about = (&claim.session, &claim.turn);
            outbox::push(tx, &OutboxMessage::new_notice(about, n, &outgoing, (now, self.ttl_ms)))?;
        }
        Ok(())
    }
}

/// Reserves for one call, or aborts the turn with a text that names the exhausted budget. Sets a token limit on the
/// prompt if it has none, so that the maximum cost is known in advance.
pub(crate) async fn reserve_budget(
    engine: &Engine,
    running: &RunningTurn,
    context: &TurnContext,
    prompt: &mut Prompt,
) -> TurnResult<Option<Arc<BudgetReservation>>> {
    let settings = engine.settings();
    let mut all = own_limits(&settings, context, engine.now());
    if context.session.owner.is_some() {
        all.extend(inherited_limits(engine, context).await?);
        all.sort_by(|a, b| a.scope.cmp(&b.scope));
        all.dedup_by(|a, b| a.scope == b.scope);
    }
    let is_teamwork = all.iter().any(|one| matches!(one.scope, BudgetScope::Team(_)));
    let per_turn = turn_cost_limit(&settings, &context.spec.budget, is_teamwork);
    all.retain(|one| !one.limits.is_unlimited());
    if all.is_empty() && per_turn.is_none() {
        return Ok(None);
    }
    let in_dollars = per_turn.is_some() || all.iter().any(|one| one.limits.nanos.is_some());
    let dearest = highest_price(&settings, &context.candidates);
    if let Err(model) = &dearest
        && in_dollars
    {
        return Err(budget_abort("budget_unpriced", BudgetFailure::UnpricedModel(model.to_string())));
    }
    if let Some(limit) = per_turn.filter(|limit| context.cost >= *limit) {
        let failure = BudgetFailure::TurnLimit { used: context.cost, limit };
        return Err(budget_abort("budget_exhausted", failure));
    }
    prompt.max_tokens.get_or_insert(budget::DEFAULT_ANSWER_TOKENS);
    let (tokens, nanos) = budget::estimate_call(prompt, dearest.ok());
    let amount = BudgetAmount { tokens, nanos: nanos.unwrap_or(0) };
    let resets = settings.calendar.day_start(settings.calendar.day_number(engine.now()) + 1);
    let reservation = BudgetReservation {
        limits: all,
        amount,
        resets,
        notify: notice_targets(context),
        locale: settings.locale_for(&context.session),
        ttl_ms: settings.delivery_ttl_ms,
    };
    store_reservation(engine, running, reservation).await.map(Some)
}

async fn store_reservation(
    engine: &Engine,
    running: &RunningTurn,
    reservation: BudgetReservation,
) -> TurnResult<Arc<BudgetReservation>> {
    let reservation = Arc::new(reservation);
    if reservation.limits.is_empty() {
        return Ok(reservation);
    }
    let (claim, wanted, now) = (running.claim.clone(), Arc::clone(&reservation), engine.now());
    let write = move |tx: &mut Tx<'_>| match check_claim(tx, &claim)? {
        ClaimStatus::Valid => {
            budgets::reserve_budget(tx, &claim, &wanted.limits, wanted.amount, now).map(Some)
        }
        _ => Ok(None),
    };
    match or_lost(engine.write_with_retry(write).await)? {
        None => Err(TurnAbort::Cancelled),
        Some(None) => Ok(reservation),
        Some(Some((scope, reached))) => {
            let failure = BudgetFailure::DailyLimit { scope, reached, resets: reservation.resets };
            Err(budget_abort("budget_exhausted", failure))
        }
    }
}

/// Releases the reservation of a call that got no answer.
pub(crate) async fn release_reservation(
    engine: &Engine,
    claim: &TurnClaim,
    reservation: Option<&BudgetReservation>,
) -> TurnResult<()> {
    if reservation.is_none_or(|reservation| reservation.limits.is_empty()) {
        return Ok(());
    }
    let turn = claim.turn.clone();
    or_lost(engine.write_with_retry(move |tx| budgets::release_reservations(tx, &turn)).await)
}

/// Publishes notices to live clients. Chat channels get them from the outbox.
pub(crate) fn publish_budget_notices(engine: &Engine, claim: &TurnClaim, notices: Vec<String>) {
    if notices.is_empty() {
        return;
    }
    for text in notices {
        engine.hub.publish(&claim.session, FrameKind::Notice { turn_id: claim.turn.clone(), text });
    }
    engine.outbox_wake.notify_one();
}

fn budget_abort(code: &'static str, failure: BudgetFailure) -> TurnAbort {
    TurnAbort::Failed { code, reason: failure.into() }
}

fn notice_targets(context: &TurnContext) -> Vec<(ChatAddress, DeliveryPolicy)> {
    let policy = |wanted| DeliveryPolicy {
        requested: wanted,
        session_delivers: context.session.delivers,
        session_sends: context.session.sends,
    };
    context.waiting_addresses().into_iter().map(|(address, wanted)| (address, policy(wanted))).collect()
}

/// The lowest limit of what one turn may cost.
fn turn_cost_limit(settings: &EngineSettings, agent: &AgentBudget, is_teamwork: bool) -> Option<NanoUsd> {
    let team = is_teamwork.then_some(&settings.team_budget);
    let budgets = [agent, &settings.budget, &settings.session_budget].into_iter().chain(team);
    budgets.filter_map(|budget| budget.usd_per_turn).map(budget::usd_to_nanos).min()
}

fn own_limits(settings: &EngineSettings, context: &TurnContext, now: Millis) -> Vec<BudgetLimit> {
    let session = BudgetScope::Session(context.session.key.to_string());
    let agent = BudgetScope::Agent(context.spec.agent_id.to_string());
    let scopes = [
        (BudgetScope::Instance, &settings.budget),
        (agent, &context.spec.budget),
        (session, &settings.session_budget),
    ];
    scopes.into_iter().filter_map(|(scope, budget)| budget_limit(settings, scope, budget, now)).collect()
}

fn budget_limit(
    settings: &EngineSettings,
    scope: BudgetScope,
    budget: &AgentBudget,
    now: Millis,
) -> Option<BudgetLimit> {
    Some(limit_for_day(settings, scope, budget, now)).filter(|allowance| !allowance.limits.is_unlimited())
}

fn limit_for_day(
    settings: &EngineSettings,
    scope: BudgetScope,
    budget: &AgentBudget,
    now: Millis,
) -> BudgetLimit {
    let day = settings.calendar.day_number(now);
    BudgetLimit {
        scope,
        limits: DailyLimits::from_budget(budget),
        day,
        since: settings.calendar.day_start(day),
    }
}

/// Returns the budgets above a session that its calls count against: of its ancestors, of their agents, and of the
/// teams in which the session or an ancestor is a member.
async fn inherited_limits(engine: &Engine, context: &TurnContext) -> TurnResult<Vec<BudgetLimit>> {
    let (settings, now, own) = (engine.settings(), engine.now(), context.session.clone());
    let read = move |tx: &mut Tx<'_>| {
        let mut allowances = Vec::new();
        allowances.extend(team_budget_limit(tx, &settings, &own, now)?);
        for above in ancestor_sessions(tx, own.owner.clone())? {
            allowances.extend(team_budget_limit(tx, &settings, &above, now)?);
            let (session, agent) = (above.key, above.active_agent);
            let scope = BudgetScope::Session(session.to_string());
            allowances.extend(budget_limit(&settings, scope, &settings.session_budget, now));
            if let Some(stored) = agents::get(tx, &agent)? {
                let scope = BudgetScope::Agent(agent.to_string());
                allowances.extend(budget_limit(&settings, scope, &stored.spec.budget, now));
            }
        }
        Ok(allowances)
    };
    engine.db().read(read).await.map_err(|error| TurnAbort::Lost(error.into()))
}

fn ancestor_sessions(tx: &mut Tx<'_>, mut next: Option<SessionKey>) -> polyclaw_store::Result<Vec<Session>> {
    let mut found = Vec::new();
    while let Some(key) = next.take().filter(|_| found.len() < MAX_ANCESTOR_DEPTH) {
        let Some(session) = sessions::get(tx, &key)? else { break };
        next = session.owner.clone();
        found.push(session);
    }
    Ok(found)
}

/// Budget of a team member. With only a per-turn limit set, the daily limit is unbounded.
fn team_budget_limit(
    tx: &mut Tx<'_>,
    settings: &EngineSettings,
    session: &Session,
    now: Millis,
) -> polyclaw_store::Result<Option<BudgetLimit>> {
    if settings.team_budget == AgentBudget::default() || session.team_role != Some(TeamRole::Member) {
        return Ok(None);
    }
    let team = match teams::find_member_by_session(tx, &session.key)? {
        Some(member) => teams::get(tx, &member.team)?,
        None => None,
    };
    Ok(team.map(|team| limit_for_day(settings, BudgetScope::Team(team.name), &settings.team_budget, now)))
}

/// Returns the highest price of any candidate, or the first candidate without a known price.
fn highest_price(
    settings: &EngineSettings,
    candidates: &[ModelRef],
) -> std::result::Result<ModelPrice, ModelRef> {
    candidates.iter().try_fold(ModelPrice::FREE, |dearest, model| {
        let price = settings.prices.get(model).ok_or_else(|| model.clone())?;
        Ok(ModelPrice {
            input: dearest.input.max(price.input),
            output: dearest.output.max(price.output),
            cached: None,
        })
    })
}

/// A budget and its usage.
#[derive(Clone, Debug)]
pub struct BudgetBalance {
    pub scope: BudgetScope,
    pub limits: DailyLimits,
    pub usage: BudgetUsage,
    pub resets: Millis,
}

/// Maximum number of session budgets shown.
const MAX_SHOWN_SESSIONS: usize = 20;

impl Engine {
    /// Lists all budgets with their usage today.
    pub async fn list_budgets(&self) -> Result<Vec<BudgetBalance>> {
        let (settings, now) = (self.settings(), self.now());
        let resets = settings.calendar.day_start(settings.calendar.day_number(now) + 1);
        let read = move |tx: &mut Tx<'_>| {
            let mut all: Vec<BudgetLimit> = Vec::new();
            all.extend(budget_limit(&settings, BudgetScope::Instance, &settings.budget, now));
            for stored in agents::list(tx)? {
                let scope = BudgetScope::Agent(stored.spec.agent_id.to_string());
                all.extend(budget_limit(&settings, scope, &stored.spec.budget, now));
            }
            if !DailyLimits::from_budget(&settings.session_budget).is_unlimited() {
                for scope in
                    budgets::list_session_scopes(tx, settings.calendar.day_number(now), MAX_SHOWN_SESSIONS)?
                {
                    all.extend(budget_limit(&settings, scope, &settings.session_budget, now));
                }
            }
            for team in teams::list_open(tx)? {
                all.extend(budget_limit(&settings, BudgetScope::Team(team.name), &settings.team_budget, now));
            }
            let balance = |tx: &mut Tx<'_>, one: BudgetLimit| {
                let usage = budgets::get_usage(tx, &one)?;
                Ok(BudgetBalance { scope: one.scope, limits: one.limits, usage, resets })
            };
            all.into_iter().map(|one| balance(tx, one)).collect()
        };
        Ok(self.db().read(read).await?)
    }
}
