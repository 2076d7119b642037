use polyclaw_domain::time::Millis;
use polyclaw_store::{Db, Result, schedules};

use crate::rows::NOW;

on_every_engine!(a_schedule_begins_when_it_is_first_seen_and_never_goes_back);

async fn last(db: &Db, rule: &'static str, now: Millis) -> Result<Millis> {
    db.write(move |tx| schedules::last_due(tx, "daily", rule, now)).await
}

async fn advance(db: &Db, due: Millis) -> Result<()> {
    db.write(move |tx| schedules::advance(tx, "daily", due, NOW)).await
}

async fn a_schedule_begins_when_it_is_first_seen_and_never_goes_back(db: Db) -> Result<()> {
    assert_eq!(db.read(|tx| schedules::find(tx, "daily")).await?, None);
    assert_eq!(last(&db, "every 1d", NOW).await?, NOW);
    assert_eq!(last(&db, "every 1d", NOW.plus(5)).await?, NOW, "it was seen before");
    advance(&db, NOW.plus(100)).await?;
    advance(&db, NOW.plus(50)).await?;
    assert_eq!(last(&db, "every 1d", NOW.plus(200)).await?, NOW.plus(100));
    assert_eq!(last(&db, "every 2d", NOW.plus(200)).await?, NOW.plus(200), "another rule begins anew");
    assert_eq!(db.read(|tx| schedules::find(tx, "daily")).await?, Some(NOW.plus(200)));
    Ok(())
}
