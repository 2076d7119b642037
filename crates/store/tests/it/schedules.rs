use polyclaw_domain::config::{CatchUp, CronJobConfig};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::time::Millis;
use polyclaw_store::cron_jobs::{self, CronJobCreator};
use polyclaw_store::{Db, Result};

use crate::rows::NOW;

on_every_engine!(
    last_due_time_starts_at_first_sight_and_only_advances,
    cron_job_is_stored_updated_and_removed,
);

async fn last(db: &Db, rule: &'static str, now: Millis) -> Result<Millis> {
    db.write(move |tx| cron_jobs::get_or_init_last_due(tx, "daily", rule, now)).await
}

async fn advance(db: &Db, due: Millis) -> Result<()> {
    db.write(move |tx| cron_jobs::advance_last_due(tx, "daily", due, NOW)).await
}

async fn last_due_time_starts_at_first_sight_and_only_advances(db: Db) -> Result<()> {
    assert_eq!(db.read(|tx| cron_jobs::find_last_due(tx, "daily")).await?, None);
    assert_eq!(last(&db, "every 1d", NOW).await?, NOW);
    assert_eq!(last(&db, "every 1d", NOW.plus(5)).await?, NOW, "it was seen before");
    advance(&db, NOW.plus(100)).await?;
    advance(&db, NOW.plus(50)).await?;
    assert_eq!(last(&db, "every 1d", NOW.plus(200)).await?, NOW.plus(100));
    for (now, found) in [(150, 100), (40, 40)] {
        db.write(move |tx| cron_jobs::rewind_last_due(tx, "daily", NOW.plus(now))).await?;
        assert_eq!(last(&db, "every 1d", NOW.plus(200)).await?, NOW.plus(found));
    }
    assert_eq!(last(&db, "every 2d", NOW.plus(200)).await?, NOW.plus(200), "another rule begins anew");
    assert_eq!(db.read(|tx| cron_jobs::find_last_due(tx, "daily")).await?, Some(NOW.plus(200)));
    Ok(())
}

fn job(id: &str, schedule: &str) -> CronJobConfig {
    CronJobConfig {
        id: id.into(),
        schedule: schedule.into(),
        agent: Some(AgentId::main()),
        message: "look at the mail".into(),
        deliver_to: None,
        timezone: Some("Europe/Berlin".into()),
        catch_up: CatchUp::Once,
        enabled: false,
    }
}

async fn cron_job_is_stored_updated_and_removed(db: Db) -> Result<()> {
    let maker = CronJobCreator { agent: AgentId::main(), on_behalf_of: vec!["telegram:default:5".into()] };
    let add = |job: CronJobConfig| {
        let maker = maker.clone();
        db.write(move |tx| cron_jobs::insert(tx, &job, Some(&maker), NOW))
    };
    assert!(add(job("daily", "every 1d")).await?);
    assert!(add(job("b", "every 2d")).await?);
    assert!(!add(job("daily", "every 3d")).await?, "the name is taken");
    let stored = db.read(cron_jobs::list).await?;
    assert_eq!(stored.iter().map(|one| one.job.id.as_str()).collect::<Vec<_>>(), ["b", "daily"]);
    assert_eq!((&stored[1].job, &stored[1].created_by), (&job("daily", "every 1d"), &Some(maker)));
    assert_eq!(db.read(cron_jobs::count).await?, 2);
    let change =
        |id: &'static str| db.write(move |tx| cron_jobs::update(tx, &job(id, "every 4d"), NOW.plus(5)));
    assert!(change("daily").await?);
    assert!(!change("weekly").await?);
    let changed = db.read(|tx| cron_jobs::get(tx, "daily")).await?.unwrap();
    assert_eq!(
        (changed.job.schedule.as_str(), changed.created_at, changed.updated_at),
        ("every 4d", NOW, NOW.plus(5))
    );
    last(&db, "every 4d", NOW).await?;
    let remove = || db.write(|tx| cron_jobs::remove(tx, "daily"));
    assert!(remove().await? && !remove().await?);
    assert_eq!(
        db.read(|tx| cron_jobs::find_last_due(tx, "daily")).await?,
        None,
        "another of the name begins anew"
    );
    assert_eq!(db.read(|tx| cron_jobs::get(tx, "daily")).await?, None);
    Ok(())
}
