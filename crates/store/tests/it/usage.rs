use polyclaw_domain::provider::TokenUsage;
use polyclaw_domain::time::Millis;
use polyclaw_store::usage::{self, GroupedUsage, ModelCallUsage, UsageGroupKey};
use polyclaw_store::{Db, Result};

use crate::rows::{NOW, agent, key, turn};

on_every_engine!(usage_totals_sum_known_values_and_count_unknown_calls);

async fn usage_totals_sum_known_values_and_count_unknown_calls(db: Db) -> Result<()> {
    let calls = [
        ("ops", "b-model", "p", Some(10), Some(1), NOW),
        ("ops", "B-model", "q", Some(20), None, NOW),
        ("main", "b-model", "p", None, None, NOW),
        ("main", "a_model", "p", Some(7), Some(7), NOW.minus(1)),
    ];
    db.write(move |tx| {
        for (name, model, peer, input_tokens, output_tokens, at) in calls {
            let usage = TokenUsage { input_tokens, output_tokens, cached_tokens: None };
            let (session, turn, agent) = (key(peer), turn("t"), agent(name));
            let call = ModelCallUsage {
                session: &session,
                turn: &turn,
                agent: &agent,
                model,
                usage,
                cost_nanos: output_tokens.map(|_| 5),
            };
            usage::record(tx, &call, at)?;
        }
        Ok(())
    })
    .await?;
    let totals = |since: Millis, by| db.read(move |tx| usage::sum_totals(tx, since, by));
    let total = |group: &str, calls, unknown_calls, input_tokens, output_tokens| GroupedUsage {
        group: group.into(),
        calls,
        unknown_calls,
        unpriced_calls: unknown_calls,
        input_tokens,
        output_tokens,
        cached_tokens: None,
        cost_nanos: (calls > unknown_calls).then_some((calls - unknown_calls) * 5),
    };
    let by_agent = [total("main", 1, 1, None, None), total("ops", 2, 1, Some(30), Some(1))];
    assert_eq!(totals(NOW, UsageGroupKey::Agent).await?, by_agent);
    let by_model = [
        total("B-model", 1, 1, Some(20), None),
        total("a_model", 1, 0, Some(7), Some(7)),
        total("b-model", 2, 1, Some(10), Some(1)),
    ];
    assert_eq!(totals(NOW.minus(1), UsageGroupKey::Model).await?, by_model);
    assert_eq!(totals(NOW, UsageGroupKey::Session).await?.len(), 2);
    assert!(totals(NOW.plus(1), UsageGroupKey::Session).await?.is_empty());
    // The four calls are within a minute of 08:00 UTC: eight hours behind they are on two days.
    let days = |offset| totals(NOW.minus(1), UsageGroupKey::Day(offset));
    assert_eq!(days(0).await?.iter().map(|day| day.calls).collect::<Vec<_>>(), [4]);
    let split = days(-8 * 3_600_000).await?;
    assert_eq!(
        split.iter().map(|day| (day.group.as_str(), day.calls)).collect::<Vec<_>>(),
        [("20832", 1), ("20833", 3)]
    );
    let spent = db.read(|tx| usage::sum_by_turn(tx, &turn("t"))).await?;
    assert_eq!(
        (spent.usage.input_tokens, spent.cost_nanos, spent.model.as_deref()),
        (None, 10, Some("a_model"))
    );
    Ok(())
}
