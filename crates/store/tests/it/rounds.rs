use polyclaw_domain::job::JobPriority;
use polyclaw_store::broadcasts::{self, Broadcast, BroadcastTarget, TargetOutcome};
use polyclaw_store::{Db, Result};
use serde_json::json;

use crate::rows::{NOW, address, agent, key, turn};

on_every_engine!(broadcast_is_open_until_it_is_closed, broadcast_target_outcome_is_recorded_once);

pub fn round(id: &str) -> Broadcast {
    let target_of = |name: &str| BroadcastTarget { agent: agent(name), session: key(name), outcome: None };
    Broadcast {
        id: id.into(),
        text: "what do you think?".into(),
        parts: vec![],
        address: address(),
        meta: Some(json!({ "sender": "1" })),
        priority: JobPriority::Group,
        is_sequential: true,
        see_previous: false,
        targets: vec![target_of("b"), target_of("a")],
        created_at: NOW,
    }
}

async fn broadcast_is_open_until_it_is_closed(db: Db) -> Result<()> {
    for id in ["r2", "r1"] {
        db.write(move |tx| broadcasts::insert(tx, &round(id))).await?;
    }
    assert_eq!(db.read(broadcasts::list_open).await?, ["r1", "r2"]);
    assert_eq!(db.read(|tx| broadcasts::get(tx, "r1")).await?, Some(round("r1")));
    assert_eq!(db.read(|tx| broadcasts::get(tx, "r3")).await?, None);
    db.write(|tx| broadcasts::close(tx, "r1")).await?;
    assert_eq!(db.read(broadcasts::list_open).await?, ["r2"]);
    assert_eq!(db.write(|tx| broadcasts::delete_closed_before(tx, NOW)).await?, 0, "not old enough");
    assert_eq!(
        db.write(|tx| broadcasts::delete_closed_before(tx, NOW.plus(1))).await?,
        1,
        "the open one stays"
    );
    assert_eq!(db.read(|tx| broadcasts::get(tx, "r1")).await?, None);
    Ok(())
}

async fn broadcast_target_outcome_is_recorded_once(db: Db) -> Result<()> {
    db.write(|tx| broadcasts::insert(tx, &round("r"))).await?;
    for taken in [TargetOutcome::Turn(turn("t1")), TargetOutcome::Turn(turn("t2")), TargetOutcome::Refused] {
        db.write(move |tx| broadcasts::record_target_outcome(tx, "r", 0, &taken)).await?;
    }
    db.write(|tx| broadcasts::record_target_outcome(tx, "r", 1, &TargetOutcome::Refused)).await?;
    let targets = db.read(|tx| broadcasts::get(tx, "r")).await?.unwrap().targets;
    let taken: Vec<_> = targets.into_iter().map(|target| target.outcome).collect();
    assert_eq!(taken, [Some(TargetOutcome::Turn(turn("t1"))), Some(TargetOutcome::Refused)]);
    Ok(())
}
