use polyclaw_domain::tool::{ToolCall, ToolEffect};
use polyclaw_store::intents::{self, ReplayDecision};
use polyclaw_store::{Db, Result, Tx};
use serde_json::json;

use crate::rows::{NOW, turn};

on_every_engine!(call_with_effect_never_starts_twice, concurrent_nodes_start_a_call_with_effect_once);

fn call(id: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "send".into(), arguments: json!({}) }
}

async fn begin(db: &Db, of: &'static str, id: &'static str, effect: ToolEffect) -> Result<ReplayDecision> {
    db.write(move |tx| intents::start_call(tx, &turn(of), &call(id), effect, NOW)).await
}

async fn call_with_effect_never_starts_twice(db: Db) -> Result<()> {
    for effect in [ToolEffect::Pure, ToolEffect::Idempotent] {
        assert_eq!(begin(&db, "harmless", effect.as_str(), effect).await?, ReplayDecision::Run);
        assert_eq!(begin(&db, "harmless", effect.as_str(), effect).await?, ReplayDecision::Run);
    }
    assert_eq!(begin(&db, "t", "c", ToolEffect::Effect).await?, ReplayDecision::Run);
    assert_eq!(begin(&db, "t", "c", ToolEffect::Effect).await?, ReplayDecision::Unknown);
    assert_eq!(
        begin(&db, "t", "c", ToolEffect::Pure).await?,
        ReplayDecision::Unknown,
        "what was stored counts"
    );
    let is_open = || db.read(|tx: &mut Tx<'_>| intents::is_unfinished(tx, &turn("t"), "c"));
    assert!(is_open().await?);
    let open = |of: &'static str| db.read(move |tx: &mut Tx<'_>| intents::list_unfinished(tx, &turn(of)));
    assert_eq!(open("t").await?, [("c".to_owned(), false)]);
    let harmless = open("harmless").await?;
    assert!(harmless.len() == 2 && harmless.iter().all(|(id, reads_only)| *reads_only == (id == "pure")));
    db.write(|tx| intents::finish_call(tx, &turn("t"), "c", ReplayDecision::Run, NOW)).await?;
    assert!(!is_open().await? && open("t").await?.is_empty(), "its result is stored");
    assert_eq!(
        begin(&db, "t", "c", ToolEffect::Effect).await?,
        ReplayDecision::Unknown,
        "also when it is over"
    );
    assert_eq!(begin(&db, "t", "c2", ToolEffect::Effect).await?, ReplayDecision::Run);
    assert_eq!(begin(&db, "t2", "c", ToolEffect::Effect).await?, ReplayDecision::Run);
    Ok(())
}

async fn concurrent_nodes_start_a_call_with_effect_once(db: Db) -> Result<()> {
    let attempts: Vec<_> = (0..16)
        .map(|_| {
            tokio::spawn({
                let db = db.clone();
                async move { begin(&db, "t", "c", ToolEffect::Effect).await }
            })
        })
        .collect();
    let mut ran = 0;
    for attempt in attempts {
        ran += usize::from(matches!(attempt.await.unwrap(), Ok(ReplayDecision::Run)));
    }
    assert_eq!(ran, 1);
    Ok(())
}
