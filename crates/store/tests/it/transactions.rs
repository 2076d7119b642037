//! What `Db` promises about transactions, on whichever engine.

use std::sync::Arc;

use polyclaw_store::{Db, Error, Result, messages, sessions};
use tokio::sync::Notify;

use crate::rows::{key, message, session, with_sessions};

on_every_engine!(
    failed_closure_rolls_back_its_writes,
    swallowed_error_still_fails_the_transaction,
    dropped_caller_does_not_undo_its_write,
    concurrent_callers_are_all_answered,
    reader_sees_every_earlier_commit,
);

async fn count(db: &Db) -> Result<i64> {
    db.read(sessions::count).await
}

async fn failed_closure_rolls_back_its_writes(db: Db) -> Result<()> {
    let failed: Result<()> = db
        .write(|tx| {
            sessions::ensure(tx, &session("p"))?;
            Err(Error::Corrupt("on purpose".into()))
        })
        .await;
    assert!(matches!(failed, Err(Error::Corrupt(_))), "{failed:?}");
    assert_eq!(count(&db).await?, 0);
    with_sessions(&db, &["p"]).await?;
    assert_eq!(count(&db).await?, 1);
    Ok(())
}

async fn swallowed_error_still_fails_the_transaction(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    db.write(|tx| messages::insert(tx, &message("m", "p", 1, "t"))).await?;
    let swallowed = db
        .write(|tx| {
            sessions::ensure(tx, &session("q"))?;
            let _ = messages::insert(tx, &message("m", "p", 2, "t"));
            Ok(())
        })
        .await;
    assert!(matches!(swallowed, Err(Error::Conflict(_))), "{swallowed:?}");
    assert_eq!(count(&db).await?, 1, "`Ok` would have meant that the session is there");
    Ok(())
}

async fn dropped_caller_does_not_undo_its_write(db: Db) -> Result<()> {
    let started_signal = Arc::new(Notify::new());
    let tell = Arc::clone(&started_signal);
    let caller = db.write(move |tx| {
        tell.notify_one();
        sessions::ensure(tx, &session("p")).map(drop)
    });
    tokio::select! {
        biased;
        () = started_signal.notified() => {}
        done = caller => done?,
    }
    // The next write is behind it on SQLite; elsewhere it may still be under way.
    while count(&db).await? == 0 {
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn concurrent_callers_are_all_answered(db: Db) -> Result<()> {
    let callers: Vec<_> = (0..64)
        .map(|n| {
            let db = db.clone();
            tokio::spawn(async move {
                db.write(move |tx| {
                    sessions::ensure(tx, &session(&format!("p{n}")))?;
                    if n % 4 == 0 { Err(Error::Corrupt("on purpose".into())) } else { Ok(n) }
                })
                .await
            })
        })
        .collect();
    for (n, caller) in callers.into_iter().enumerate() {
        let answer = caller.await.unwrap();
        assert_eq!(answer.is_ok(), n % 4 != 0, "caller {n}: {answer:?}");
    }
    assert_eq!(count(&db).await?, 48, "those that failed undid only their own");
    let failed = db.read(|tx| sessions::get(tx, &key("p4"))).await?;
    assert_eq!(failed, None);
    Ok(())
}

async fn reader_sees_every_earlier_commit(db: Db) -> Result<()> {
    for n in 1..=20 {
        db.write(move |tx| sessions::ensure(tx, &session(&format!("p{n}"))).map(drop)).await?;
        assert_eq!(count(&db).await?, n);
    }
    Ok(())
}
