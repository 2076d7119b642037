//! Budgets, tested through turns that spend from them.

use std::sync::Arc;
use std::time::Duration;

use polyclaw_domain::agent::{AgentBudget, AgentSpec};
use polyclaw_domain::budget::{BudgetAmount, BudgetScope, ModelPrice, usd_to_nanos};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::job::{JobLane, JobState};
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::provider::{ModelRef, TokenUsage};
use polyclaw_engine::{BudgetBalance, EngineSettings};
use polyclaw_store::agents::{self, AgentSource};
use polyclaw_store::usage::UsageGroupKey;
use polyclaw_store::{events, sessions, usage};
use polyclaw_testkit::world::{DurableWorld, World};
use polyclaw_testkit::{KillPointFaults, ScriptStep, ScriptedProvider};
use serde_json::json;

const DAY: i64 = 86_400_000;

fn tokens(per_day: u64) -> AgentBudget {
    AgentBudget { tokens_per_day: Some(per_day), ..AgentBudget::default() }
}

fn model() -> ModelRef {
    ModelRef::parse("scripted/model").unwrap()
}

/// Every call of the scripted model uses 10 input and 5 output tokens.
async fn world(change: impl FnOnce(&mut EngineSettings)) -> World {
    let world = World::new().await;
    let mut settings = world.ground.settings.clone();
    change(&mut settings);
    world.engine.reload_settings(settings);
    world
}

async fn balance(world: &World, scope: &BudgetScope) -> BudgetBalance {
    let all = world.engine.list_budgets().await.unwrap();
    all.into_iter().find(|balance| balance.scope == *scope).expect("a budget")
}

async fn set_budget(world: &World, id: &str, budget: AgentBudget) {
    let mut spec = AgentSpec::with_id(AgentId::parse(id).unwrap());
    spec.budget = budget;
    let now = world.engine.now();
    world.engine.db().write(move |tx| agents::upsert(tx, &spec, AgentSource::Config, now)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn exhausted_budget_refuses_call_with_scope_and_reset_time() {
    let world = world(|settings| settings.budget = tokens(20)).await;
    assert_eq!(world.send_and_wait("one").await.state, JobState::Done);
    assert_eq!(world.send_and_wait("two").await.state, JobState::Done, "15 of 20 are used");
    let refused = world.send_and_wait("three").await;
    assert_eq!(refused.error_code.as_deref(), Some("budget_exhausted"));
    let text = &refused.text;
    assert!(text.contains("this instance") && text.contains("30 of 20 tokens"), "{text}");
    assert!(text.contains("resets at 2027-01-16T00:00:00.000Z") && text.contains("[budget]"), "{text}");
    // The next day.
    world.ground.clock.set_time(DAY);
    assert_eq!(world.send_and_wait("four").await.state, JobState::Done);
    assert_eq!(balance(&world, &BudgetScope::Instance).await.usage.spent.tokens, 15);
}

#[tokio::test(start_paused = true)]
async fn agent_budget_does_not_affect_other_agents() {
    let world = world(|_| {}).await;
    world.ground.add_agent("ops").await;
    set_budget(&world, "main", tokens(1)).await;
    world.send_and_wait("one").await;
    assert_eq!(world.send_and_wait("two").await.error_code.as_deref(), Some("budget_exhausted"));
    let mut inbound = World::inbound("other", "hi");
    inbound.agent = AgentId::parse("ops").unwrap();
    let accepted = world.engine.accept_message(inbound).await.unwrap();
    assert_eq!(world.wait_answer(&accepted).await.state, JobState::Done);
}

#[tokio::test(start_paused = true)]
async fn cost_uses_model_price_and_missing_price_is_reported() {
    let usd = |per_day| AgentBudget { usd_per_day: Some(per_day), ..AgentBudget::default() };
    let unpriced = world(|settings| settings.budget = usd(1.0)).await;
    let refused = unpriced.send_and_wait("one").await;
    assert_eq!(refused.error_code.as_deref(), Some("budget_unpriced"));
    assert!(refused.text.contains("[models.\"scripted/model\"]"), "{}", refused.text);
    // 10 tokens at $1 and 5 at $2: $20 a call.
    let price = ModelPrice { input: 1e6, output: 2e6, cached: None };
    let world = world(|settings| {
        settings.budget = usd(30.0);
        settings.prices.insert(model(), price);
    })
    .await;
    world.send_and_wait("one").await;
    world.send_and_wait("two").await;
    let refused = world.send_and_wait("three").await;
    assert!(refused.text.contains("$40.00 of $30.00"), "{}", refused.text);
    let spent = balance(&world, &BudgetScope::Instance).await.usage;
    assert_eq!(
        (spent.spent, spent.reserved),
        (BudgetAmount { tokens: 30, nanos: usd_to_nanos(40.0) }, BudgetAmount::default())
    );
    let totals = world
        .engine
        .db()
        .read(|tx| usage::sum_totals(tx, polyclaw_domain::time::Millis(0), UsageGroupKey::Agent))
        .await;
    let totals = totals.unwrap();
    assert_eq!((totals[0].cost_nanos, totals[0].unpriced_calls), (Some(usd_to_nanos(40.0)), 0));
}

#[tokio::test(start_paused = true)]
async fn turn_cost_limit_ends_turn() {
    let model_that_goes_on = ScriptedProvider::new(|prompt| {
        vec![ScriptStep::Call("look".into(), json!({ "n": prompt.messages.len() }))]
    });
    let world = World::with_provider(model_that_goes_on).await;
    let mut settings = world.ground.settings.clone();
    settings.prices.insert(model(), ModelPrice { input: 1e5, output: 0.0, cached: None });
    world.engine.reload_settings(settings);
    set_budget(&world, "main", AgentBudget { usd_per_turn: Some(2.5), ..AgentBudget::default() }).await;
    let answer = world.send_and_wait("go").await;
    assert_eq!(answer.error_code.as_deref(), Some("budget_exhausted"));
    assert!(answer.text.contains("cost $3.00") && answer.text.contains("$2.50"), "{}", answer.text);
    assert_eq!(
        answer.usage,
        TokenUsage {
            input_tokens: Some(30),
            output_tokens: Some(15),
            cached_tokens: answer.usage.cached_tokens
        }
    );
}

#[tokio::test(start_paused = true)]
async fn budget_warning_at_80_percent_is_sent_once_a_day() {
    let world = world(|settings| settings.budget = tokens(30)).await;
    world.send_and_wait("one").await;
    world.wait_settled().await;
    assert_eq!(world.ground.fake_channel.visible_messages().len(), 1);
    world.send_and_wait("two").await;
    world.wait_settled().await;
    let visible = world.ground.fake_channel.visible_messages();
    assert!(
        visible.iter().any(|(_, text)| text.contains("Over 80 % of the daily budget of this instance")),
        "{visible:?}"
    );
    assert_eq!(visible.len(), 3);
    let warned = || world.engine.db().read(|tx| events::list(tx, 0, Some("budget.warned"), None, 10));
    assert_eq!(warned().await.unwrap().len(), 1);
    world.send_and_wait("refused").await;
    assert_eq!(warned().await.unwrap().len(), 1);
    world.ground.clock.set_time(DAY);
    world.send_and_wait("three").await;
    world.send_and_wait("four").await;
    assert_eq!(warned().await.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn session_budget_includes_its_child_sessions() {
    let world = world(|settings| settings.session_budget = tokens(20)).await;
    world.send_and_wait("parent").await;
    let owner = World::session_key("me");
    let child = |name: &'static str, owner| {
        let key = World::session_key(name);
        let now = world.engine.now();
        let id = polyclaw_domain::id::SessionId::new(name);
        let new_session = polyclaw_domain::session::Session::new_for_person(key, id, AgentId::main(), now);
        let session = polyclaw_domain::session::Session { owner: Some(owner), ..new_session };
        world.engine.db().write(move |tx| sessions::ensure(tx, &session).map(drop))
    };
    child("child", owner.clone()).await.unwrap();
    child("grandchild", World::session_key("child")).await.unwrap();
    let message = world.send_text("grandchild", "work").await.unwrap();
    assert_eq!(world.wait_answer(&message).await.state, JobState::Done);
    assert_eq!(balance(&world, &BudgetScope::Session(owner.to_string())).await.usage.spent.tokens, 30);
    let message = world.send_text("child", "more").await.unwrap();
    assert_eq!(world.wait_answer(&message).await.error_code.as_deref(), Some("budget_exhausted"));
    assert_eq!(world.send_and_wait("parent again").await.error_code.as_deref(), Some("budget_exhausted"));
    let stranger = world.send_text("stranger", "hi").await.unwrap();
    assert_eq!(world.wait_answer(&stranger).await.state, JobState::Done);
}

/// Members share the team budget, also with their sub-agents; the lead is a normal session.
#[tokio::test(start_paused = true)]
async fn team_budget_includes_members_and_their_subagents() {
    let model = ScriptedProvider::new(|prompt| {
        let text = crate::families::said(prompt);
        match () {
            () if text.contains("begin one below") && !text.contains("accepted") => {
                vec![ScriptStep::Call("sessions_spawn".into(), json!({ "task": "do part below" }))]
            }
            () => vec![ScriptStep::Say("ok".into())],
        }
    });
    let world = World::with_provider(model).await;
    let mut settings = world.ground.settings.clone();
    settings.team_budget = tokens(40);
    world.engine.reload_settings(settings);
    world.send_and_wait("hello").await;
    crate::teams::chaos::team(&world).await;
    let scope = BudgetScope::Team("web".into());
    assert_eq!(balance(&world, &scope).await.usage.spent.tokens, 0, "the lead pays for itself");
    let joins = async |name: &str, task: &str| {
        let new = polyclaw_engine::team::NewMember {
            name: name.into(),
            task: Some(task.into()),
            ..Default::default()
        };
        let by = polyclaw_engine::team::TeamActor::Operator { call: format!("c-{name}") };
        let joined = world.engine.spawn_teammate(&by, "web", new).await.unwrap();
        tokio::time::sleep(Duration::from_secs(20)).await;
        joined.session_key
    };
    let ann = joins("ann", "begin one below").await;
    let spent = balance(&world, &scope).await.usage.spent.tokens;
    // Two calls of its own, one of its sub-agent and one for the announce; 15 tokens each.
    assert!(spent >= 45, "{spent}");
    let bob = joins("bob", "work").await;
    let last = async |key: &polyclaw_domain::session_key::SessionKey| {
        let key = key.clone();
        let all = world.engine.db().read(move |tx| polyclaw_store::jobs::list(tx, Some(&key), None, 9)).await;
        all.unwrap().remove(0).error_code
    };
    assert_eq!(last(&bob).await.as_deref(), Some("budget_exhausted"), "what ann spent is gone for bob, too");
    assert_ne!(ann, bob);
    assert_eq!(world.send_and_wait("and you?").await.state, JobState::Done, "the lead can still say so");
}

/// Fifty sessions at once. Each call reserves its prompt and the longest answer, far more than it uses.
#[tokio::test(start_paused = true)]
async fn fifty_concurrent_calls_overspend_at_most_one_reservation() {
    let slow = ScriptedProvider::new(|_| {
        vec![ScriptStep::Pause(Duration::from_secs(1)), ScriptStep::Say("ok".into())]
    });
    let world = World::with_provider(slow).await;
    let mut settings = world.ground.settings.clone();
    settings.budget = tokens(25_000);
    settings.slots.insert(JobLane::Main, 50);
    world.engine.reload_settings(settings);
    let mut sent = Vec::new();
    for n in 0..50 {
        sent.push(world.send_text(&format!("p{n}"), "go").await.unwrap());
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let reserved = balance(&world, &BudgetScope::Instance).await.usage.reserved.tokens;
    let one = 12_000;
    assert!((25_000..25_000 + one).contains(&reserved), "{reserved} reserved at once");
    let (mut done, mut refused) = (0, 0);
    for accepted in &sent {
        match world.wait_answer(accepted).await.error_code.as_deref() {
            None => done += 1,
            Some("budget_exhausted") => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((done, refused), (3, 47));
    let usage = balance(&world, &BudgetScope::Instance).await.usage;
    assert_eq!((usage.spent.tokens, usage.reserved.tokens), (45, 0));
}

#[tokio::test(start_paused = true)]
async fn crash_releases_reservation_and_usage_is_settled_once() {
    let pause = || ScriptStep::Pause(Duration::from_millis(5));
    for point in [
        KillPoint::PromptBuilt,
        KillPoint::MidStream,
        KillPoint::ReplyReceived,
        KillPoint::StepStored,
        KillPoint::FinishBefore,
        KillPoint::FinishCommitted,
    ] {
        let author = move |prompt: &polyclaw_domain::provider::Prompt| match prompt.messages.len() {
            1 => vec![ScriptStep::Say("a".into()), pause(), ScriptStep::Call("look".into(), json!({}))],
            _ => vec![ScriptStep::Say("a".into()), pause(), ScriptStep::Say("done".into())],
        };
        let mut ground =
            DurableWorld::from_db(polyclaw_store::Db::in_memory().unwrap(), ScriptedProvider::new(author))
                .await;
        ground.settings.budget = tokens(1_000_000);
        let faults = KillPointFaults::at_point(point, 1);
        let world = ground.start_engine(Arc::clone(&faults));
        let accepted = world.send_text("me", "go").await.unwrap();
        faults.wait_killed().await;
        let world = world.kill().await.start_engine(KillPointFaults::no_kill());
        let answer = world.wait_answer(&accepted).await;
        assert_eq!(answer.state, JobState::Done, "{point:?}");
        assert_eq!(answer.usage.input_tokens, Some(20), "{point:?}: two calls were stored");
        let usage = balance(&world, &BudgetScope::Instance).await.usage;
        assert_eq!((usage.spent.tokens, usage.reserved.tokens), (30, 0), "{point:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn interrupted_call_is_charged_its_reservation_as_unknown_usage() {
    let model = ScriptedProvider::new(|prompt| match prompt.messages.len() {
        1 => vec![ScriptStep::Call("look".into(), json!({}))],
        _ => vec![ScriptStep::Say("let me see".into()), ScriptStep::Hang],
    });
    let world = World::with_provider(model).await;
    let mut settings = world.ground.settings.clone();
    settings.budget = tokens(1_000_000);
    world.engine.reload_settings(settings);
    let answer = world.send_and_wait("go").await;
    assert_eq!(answer.error_code.as_deref(), Some("stalled"));
    assert_eq!(answer.usage.input_tokens, None, "one call of two is not known");
    let usage = balance(&world, &BudgetScope::Instance).await.usage;
    assert_eq!((usage.unknown_calls, usage.reserved.tokens), (1, 0));
    assert!(usage.spent.tokens > 8_000, "{usage:?}");
    let totals = world
        .engine
        .db()
        .read(|tx| usage::sum_totals(tx, polyclaw_domain::time::Millis(0), UsageGroupKey::Model))
        .await;
    let totals = totals.unwrap();
    assert_eq!((totals[0].calls, totals[0].unknown_calls, totals[0].input_tokens), (2, 1, Some(10)));
}

#[tokio::test(start_paused = true)]
async fn failed_turn_keeps_usage_of_its_calls() {
    let model = ScriptedProvider::new(|prompt| match prompt.messages.len() {
        1 => vec![ScriptStep::Call("look".into(), json!({}))],
        _ => vec![ScriptStep::Say("  ".into())],
    });
    let world = World::with_provider(model).await;
    let answer = world.send_and_wait("go").await;
    assert_eq!((answer.error_code.as_deref(), answer.usage.input_tokens), (Some("empty_reply"), Some(40)));
}

#[tokio::test(start_paused = true)]
async fn failed_model_call_costs_nothing() {
    let error = polyclaw_domain::provider::ProviderError {
        class: polyclaw_domain::provider::ErrorClass::Overload,
        model: "scripted/model".into(),
        message: "busy".into(),
        retry_after_ms: None,
    };
    let world =
        World::with_provider(ScriptedProvider::new(move |_| vec![ScriptStep::Fail(error.clone())])).await;
    let mut settings = world.ground.settings.clone();
    settings.budget = tokens(1_000_000);
    world.engine.reload_settings(settings);
    assert_eq!(world.send_and_wait("go").await.error_code.as_deref(), Some("provider_failed"));
    let usage = balance(&world, &BudgetScope::Instance).await.usage;
    assert_eq!((usage.spent, usage.reserved), (BudgetAmount::default(), BudgetAmount::default()));
}
