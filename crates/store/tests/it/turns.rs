use polyclaw_domain::job::JobState;
use polyclaw_store::jobs::TurnJob;
use polyclaw_store::turns::{self, TurnListFilter};
use polyclaw_store::{Db, Result};

use crate::rows::{job, key, next, queue, with_sessions};

on_every_engine!(turns_are_listed_newest_first_with_stable_pages);

async fn turns_are_listed_newest_first_with_stable_pages(db: Db) -> Result<()> {
    with_sessions(&db, &["p", "q", "r", "s"]).await?;
    queue(&db, vec![job("t1", "p"), job("t2", "q"), job("t3", "r")]).await?;
    next(&db).await?;
    let list = |filter: TurnListFilter| {
        let db = db.clone();
        async move { db.read(move |tx| turns::list(tx, &filter)).await }
    };
    let names = |turns: Vec<(i64, TurnJob)>| -> Vec<String> {
        turns.into_iter().map(|(_, job)| job.turn.to_string()).collect()
    };
    let two = TurnListFilter { limit: 2, ..TurnListFilter::default() };
    let first = list(two.clone()).await?;
    assert_eq!(names(first.clone()), ["t3", "t2"]);
    queue(&db, vec![job("t4", "s")]).await?;
    let rest = list(TurnListFilter { before: first.last().map(|(seq, _)| *seq), ..two.clone() }).await?;
    assert_eq!(names(rest), ["t1"], "a turn that came in between shifts nothing");
    assert_eq!(names(list(TurnListFilter { session: Some(key("q")), ..two.clone() }).await?), ["t2"]);
    assert_eq!(names(list(TurnListFilter { state: Some(JobState::Running), ..two }).await?), ["t1"]);
    Ok(())
}
