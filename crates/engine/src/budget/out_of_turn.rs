//! Calls outside of any turn. They have no claim that a reservation could end with, so the scopes are checked
//! before the call and charged after it: at worst, such calls overspend by those that run concurrently.

use polyclaw_domain::budget::{self as rules, BudgetAmount, BudgetScope};
use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::locale::Locale;
use polyclaw_domain::provider::{ModelRef, Prompt, TokenUsage};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::budgets::{self, BudgetLimit};
use polyclaw_store::{Tx, agents, events, usage};
use serde_json::json;

use super::budget_limit;
use crate::core::Engine;

/// Session, agent and model of such a call.
#[derive(Clone, Debug)]
pub(crate) struct OutOfTurnCall {
    pub session: SessionKey,
    pub agent: AgentId,
    pub model: ModelRef,
}

impl OutOfTurnCall {
    fn budget_limits(&self, engine: &Engine, tx: &mut Tx<'_>) -> polyclaw_store::Result<Vec<BudgetLimit>> {
        let (settings, now) = (engine.settings(), engine.now());
        let spec = agents::get(tx, &self.agent)?.map(|stored| stored.spec);
        let scopes = [
            (BudgetScope::Instance, Some(&settings.budget)),
            (BudgetScope::Agent(self.agent.to_string()), spec.as_ref().map(|spec| &spec.budget)),
            (BudgetScope::Session(self.session.to_string()), Some(&settings.session_budget)),
        ];
        let set =
            scopes.into_iter().filter_map(|(scope, budget)| budget_limit(&settings, scope, budget?, now));
        Ok(set.collect())
    }
}

/// Estimates a call if all its budgets have something left. The error is for the log.
pub(crate) async fn estimate_if_affordable(
    engine: &Engine,
    aside: &OutOfTurnCall,
    prompt: &Prompt,
) -> Result<BudgetAmount, String> {
    let price = engine.settings().prices.get(&aside.model).copied();
    let (tokens, nanos) = rules::estimate_call(prompt, price);
    let amount = BudgetAmount { tokens, nanos: nanos.unwrap_or(0) };
    let (asked, looked) = (aside.clone(), engine.clone());
    let read = move |tx: &mut Tx<'_>| {
        for one in asked.budget_limits(&looked, tx)? {
            let usage = budgets::get_usage(tx, &one)?;
            let used = usage.spent.plus(usage.reserved);
            if one.limits.nanos.is_some() && price.is_none() {
                return Ok(Some(rules::unpriced_model_refusal(Locale::English, &asked.model.to_string())));
            }
            if one.limits.reached_limit(used).is_some() {
                return Ok(Some(format!("the budget of {} is used up", one.scope.name())));
            }
        }
        Ok(None)
    };
    match engine.db().read(read).await {
        Ok(None) => Ok(amount),
        Ok(Some(why)) => Err(why),
        Err(error) => Err(error.to_string()),
    }
}

/// Stores the call's usage in the background. Unknown usage is charged as estimated.
pub(crate) fn record_spending(
    engine: &Engine,
    aside: OutOfTurnCall,
    usage: TokenUsage,
    estimate: BudgetAmount,
) {
    let cost = engine.settings().prices.get(&aside.model).and_then(|price| price.usage_cost(usage));
    let (engine, turn) = (engine.clone(), TurnId::new(engine.next_id()));
    tokio::spawn(async move {
        let (looked, now) = (engine.clone(), engine.now());
        let write = move |tx: &mut Tx<'_>| {
            let allowances = aside.budget_limits(&looked, tx)?;
            let known = usage.input_tokens.zip(usage.output_tokens);
            let amount = known.map_or(estimate, |(input, output)| BudgetAmount {
                tokens: i64::try_from(input + output).unwrap_or(i64::MAX),
                nanos: cost.unwrap_or(estimate.nanos),
            });
            for (scope, _) in budgets::commit_usage(tx, &turn, &allowances, amount, known.is_none())? {
                let data = json!({ "scope": scope.name() });
                let session = Some(aside.session.clone());
                let warned = NewEvent {
                    kind: EventKind::BudgetWarned,
                    session,
                    turn: None,
                    agent: None,
                    trace: None,
                    data,
                };
                events::record(tx, &warned, now)?;
            }
            let (session, agent, model) = (&aside.session, &aside.agent, aside.model.to_string());
            let call =
                usage::ModelCallUsage { session, turn: &turn, agent, model: &model, usage, cost_nanos: cost };
            usage::record(tx, &call, now)
        };
        if let Err(error) = engine.write_with_retry(write).await {
            tracing::error!(%error, "could not store the usage of a model call; budgets do not include it");
        }
    });
}
