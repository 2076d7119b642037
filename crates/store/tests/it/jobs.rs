use polyclaw_domain::backlog::{ResumeToken, SessionLoad};
use polyclaw_domain::id::{MessageId, TraceId};
use polyclaw_domain::job::{JobLane, JobPriority, JobState};
use polyclaw_domain::provider::TokenUsage;
use polyclaw_store::jobs::{self, JoiningInput, NewTurnJob, TurnJobEnd};
use polyclaw_store::{Db, Error, Result, backlog, messages};

use crate::rows::{NOW, claim, claimer, end, ended, job, key, message, next, queue, turn, with_sessions};

on_every_engine!(
    input_joins_a_turn_only_before_it_starts,
    session_load_counts_waiting_inputs_and_backlog,
    session_has_one_queued_and_one_running_turn,
    stop_request_marks_running_turn_and_cancels_queued_one,
    ended_turn_stores_usage_reply_and_error,
    steered_turn_is_answered_by_its_last_successor,
    jobs_are_listed_newest_first_and_filtered,
    turn_held_for_a_person_is_claimed_after_resume,
);

async fn input_joins_a_turn_only_before_it_starts(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    let quiet =
        NewTurnJob { lane: JobLane::InternalAnnounce, priority: JobPriority::Background, ..job("t", "p") };
    queue(&db, vec![quiet]).await?;
    let join = |steers, lane, priority| {
        let joining =
            JoiningInput { is_steering: steers, lane, priority, hop: 3, trace: TraceId::new("joined") };
        db.write(move |tx| jobs::add_input(tx, &turn("t"), &joining))
    };
    let stands = || async {
        let job = db.read(|tx| jobs::get(tx, &turn("t"))).await?.unwrap();
        Ok::<_, Error>((job.hop, job.trace == TraceId::new("joined")))
    };
    join(false, JobLane::Main, JobPriority::Webhook).await?;
    assert!(!db.read(|tx| jobs::is_steered(tx, &key("p"))).await?);
    assert_eq!(next(&db).await?, None, "an announce stays in its lane");
    assert_eq!(stands().await?, (3, false), "as many hops as the longest way had");
    join(true, JobLane::Main, JobPriority::Direct).await?;
    assert_eq!(stands().await?, (0, true), "a person begins anew");
    join(false, JobLane::Cron, JobPriority::Background).await?;
    assert!(db.read(|tx| jobs::is_steered(tx, &key("p"))).await?);
    let claimed = claim(&db, claimer("one/1")).await?.unwrap();
    assert_eq!((claimed.inputs, claimed.has_person, claimed.lane), (4, true, JobLane::Main));
    let late = join(true, JobLane::Main, JobPriority::Direct).await;
    assert!(matches!(late, Err(Error::Other(_))), "{late:?}");
    assert!(!db.read(|tx| jobs::is_steered(tx, &key("p"))).await?);
    Ok(())
}

async fn session_load_counts_waiting_inputs_and_backlog(db: Db) -> Result<()> {
    with_sessions(&db, &["p", "q"]).await?;
    assert_eq!(db.read(|tx| jobs::session_load(tx, &key("p"))).await?, SessionLoad::default());
    queue(&db, vec![job("t1", "p"), job("other", "q")]).await?;
    assert_eq!(next(&db).await?.as_deref(), Some("t1"));
    db.write(|tx| {
        jobs::insert(tx, &NewTurnJob { held: true, inputs: 3, ..job("t2", "p") })?;
        messages::insert(tx, &message("m", "p", 1, "t0"))?;
        let token = ResumeToken { message_id: MessageId::new("m"), turn_id: turn("t0"), steer_count: 1 };
        backlog::push(tx, &key("p"), &token, NOW)
    })
    .await?;
    let load = db.read(|tx| jobs::session_load(tx, &key("p"))).await?;
    assert_eq!(load, SessionLoad { running: Some(turn("t1")), queued: Some(turn("t2")), waiting: 4 });
    Ok(())
}

async fn session_has_one_queued_and_one_running_turn(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    queue(&db, vec![job("t1", "p")]).await?;
    let second = queue(&db, vec![job("t2", "p")]).await;
    assert!(matches!(second, Err(Error::Conflict(_))), "{second:?}");
    let first = claim(&db, claimer("one/1")).await?.unwrap();
    queue(&db, vec![job("t3", "p")]).await?;
    let both = claim(&db, claimer("two/1")).await;
    assert!(matches!(both, Err(Error::Conflict(_))), "{both:?}");
    end(&db, &first, JobState::Done).await?;
    assert_eq!(next(&db).await?.as_deref(), Some("t3"));
    Ok(())
}

async fn stop_request_marks_running_turn_and_cancels_queued_one(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    let stop = || db.write(|tx| jobs::request_stop(tx, &key("p")));
    let cancel = || db.write(|tx| jobs::cancel_queued(tx, &key("p"), NOW));
    assert_eq!((stop().await?, cancel().await?), (None, None));
    queue(&db, vec![job("t1", "p")]).await?;
    let running = claim(&db, claimer("one/1")).await?.unwrap();
    assert!(!db.read(|tx| jobs::get(tx, &turn("t1"))).await?.unwrap().cancel);
    queue(&db, vec![NewTurnJob { held: true, ..job("t2", "p") }]).await?;
    assert_eq!(stop().await?, Some(turn("t1")));
    assert!(db.read(|tx| jobs::get(tx, &turn("t1"))).await?.unwrap().cancel);
    assert_eq!(db.read(|tx| jobs::get(tx, &turn("t2"))).await?.unwrap().state, JobState::Queued);
    end(&db, &running, JobState::Cancelled).await?;
    assert_eq!((stop().await?, cancel().await?), (None, Some(turn("t2"))));
    let stopped = db.read(|tx| jobs::get(tx, &turn("t2"))).await?.unwrap();
    assert_eq!((stopped.state, stopped.ended_at), (JobState::Cancelled, Some(NOW)));
    assert_eq!(stopped.error_code.as_deref(), Some("stopped"));
    Ok(())
}

async fn ended_turn_stores_usage_reply_and_error(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    queue(&db, vec![job("t", "p")]).await?;
    let claimed = claim(&db, claimer("one/1")).await?.unwrap();
    let usage = TokenUsage { input_tokens: Some(5), output_tokens: None, cached_tokens: Some(0) };
    let text = TurnJobEnd {
        model: Some("m".into()),
        usage,
        reply: Some(MessageId::new("r")),
        error_code: Some("stalled"),
        error: Some("no token for 120 s".into()),
        ..ended(JobState::Failed)
    };
    db.write(move |tx| jobs::end_turn(tx, &claimed, &text, NOW.plus(9))).await?;
    let stored = db.read(|tx| jobs::get(tx, &turn("t"))).await?.unwrap();
    assert_eq!((stored.state, stored.attempt, stored.usage), (JobState::Failed, 1, usage));
    assert_eq!((stored.model.as_deref(), stored.reply), (Some("m"), Some(MessageId::new("r"))));
    assert_eq!(stored.error_code.as_deref(), Some("stalled"));
    assert_eq!(stored.error.as_deref(), Some("no token for 120 s"));
    // PostgreSQL starts a turn by its own clock.
    assert!(stored.started_at.is_some());
    assert_eq!(stored.ended_at, Some(NOW.plus(9)));
    Ok(())
}

async fn steered_turn_is_answered_by_its_last_successor(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    db.write(|tx| messages::insert(tx, &message("m", "p", 1, "t1"))).await?;
    for (id, successor) in [("t1", "t2"), ("t2", "t3")] {
        queue(&db, vec![job(id, "p")]).await?;
        let claimed = claim(&db, claimer("one/1")).await?.unwrap();
        end(&db, &claimed, JobState::Steered).await?;
        db.write(move |tx| {
            let token = ResumeToken { message_id: MessageId::new("m"), turn_id: turn(id), steer_count: 1 };
            backlog::push(tx, &key("p"), &token, NOW)?;
            let waiting = backlog::list_waiting(tx, &key("p"))?;
            waiting.iter().try_for_each(|row| backlog::assign_to_turn(tx, row, &turn(successor)))
        })
        .await?;
    }
    assert!(db.read(|tx| jobs::find_answering(tx, &turn("t1"))).await?.is_none(), "it has not begun");
    queue(&db, vec![job("t3", "p")]).await?;
    let answers = db.read(|tx| jobs::find_answering(tx, &turn("t1"))).await?.unwrap();
    assert_eq!(answers.turn, turn("t3"));
    Ok(())
}

async fn jobs_are_listed_newest_first_and_filtered(db: Db) -> Result<()> {
    with_sessions(&db, &["p", "q", "r"]).await?;
    queue(&db, vec![job("t1", "p"), job("t2", "q"), job("t3", "r")]).await?;
    next(&db).await?;
    db.read(|tx| {
        let mut list = |peer: Option<&str>, state, limit| -> Result<Vec<String>> {
            let found = jobs::list(tx, peer.map(key).as_ref(), state, limit)?;
            Ok(found.iter().map(|job| job.turn.to_string()).collect())
        };
        assert_eq!(list(None, None, 9)?, ["t3", "t2", "t1"]);
        assert_eq!(list(None, None, 1)?, ["t3"]);
        assert_eq!(list(Some("q"), None, 9)?, ["t2"]);
        assert_eq!(list(None, Some(JobState::Running), 9)?, ["t1"]);
        assert_eq!(jobs::count_by_state(tx)?, [("queued".to_owned(), 2), ("running".to_owned(), 1)]);
        Ok(())
    })
    .await
}

async fn turn_held_for_a_person_is_claimed_after_resume(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    queue(&db, vec![job("t", "p")]).await?;
    let waits = || db.read(|tx| jobs::is_held_for_person(tx, &turn("t")));
    assert!(!waits().await?);
    db.write(|tx| jobs::hold_for_person(tx, &turn("t"))).await?;
    assert!(waits().await?);
    assert_eq!(next(&db).await?, None);
    assert!(db.write(|tx| jobs::resume_held(tx, &turn("t"), false)).await?);
    assert!(!waits().await?);
    assert_eq!(next(&db).await?.as_deref(), Some("t"));
    Ok(())
}
