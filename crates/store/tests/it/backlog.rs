use polyclaw_domain::backlog::{BacklogTask, ResumeToken};
use polyclaw_domain::id::MessageId;
use polyclaw_domain::job::JobState;
use polyclaw_store::{Db, Result, backlog, jobs, messages};

use crate::rows::{NOW, claim, claimer, end, job, key, message, queue, turn, with_sessions};

on_every_engine!(interrupted_tasks_wait_in_order_and_are_assigned_once, waiting_backlog_can_be_cancelled,);

fn token(n: u32) -> ResumeToken {
    ResumeToken {
        message_id: MessageId::new(format!("m{n}")),
        turn_id: turn(&format!("t{n}")),
        steer_count: n,
    }
}

async fn interrupted(db: &Db, count: u32) -> Result<()> {
    with_sessions(db, &["p", "q"]).await?;
    for n in 1..=count {
        queue(db, vec![job(&format!("t{n}"), "p")]).await?;
        let claimed = claim(db, claimer("one/1")).await?.unwrap();
        end(db, &claimed, JobState::Steered).await?;
        db.write(move |tx| {
            messages::insert(tx, &message(&format!("m{n}"), "p", n.into(), &format!("t{n}")))?;
            backlog::push(tx, &key("p"), &token(n), NOW)
        })
        .await?;
    }
    Ok(())
}

async fn interrupted_tasks_wait_in_order_and_are_assigned_once(db: Db) -> Result<()> {
    interrupted(&db, 3).await?;
    let waiting = db.read(|tx| backlog::list_waiting(tx, &key("p"))).await?;
    let tasks: Vec<_> = waiting.iter().map(|row| row.task.clone()).collect();
    let expected = |n| BacklogTask { token: token(n), task: format!("text of m{n}") };
    assert_eq!(tasks, [expected(1), expected(2), expected(3)]);
    assert!(!db.read(|tx| backlog::has_waiting(tx, &key("q"))).await?);
    let first = waiting[..2].to_vec();
    db.write(move |tx| first.iter().try_for_each(|row| backlog::assign_to_turn(tx, row, &turn("next"))))
        .await?;
    db.read(move |tx| {
        let taken = backlog::list_assigned_to_turn(tx, &turn("next"))?;
        assert_eq!(taken.iter().map(|row| row.task.clone()).collect::<Vec<_>>(), [expected(1), expected(2)]);
        assert_eq!(backlog::list_waiting(tx, &key("p"))?.len(), 1);
        assert_eq!(jobs::get(tx, &turn("t1"))?.unwrap().continued_by, Some(turn("next")));
        assert_eq!(jobs::get(tx, &turn("t3"))?.unwrap().continued_by, None);
        Ok(())
    })
    .await
}

async fn waiting_backlog_can_be_cancelled(db: Db) -> Result<()> {
    interrupted(&db, 3).await?;
    let given_up = db.write(|tx| {
        let waiting = backlog::list_waiting(tx, &key("p"))?;
        backlog::assign_to_turn(tx, &waiting[0], &turn("next"))?;
        backlog::cancel_waiting(tx, &key("p"))
    });
    assert_eq!(given_up.await?, 2);
    db.read(|tx| {
        assert!(!backlog::has_waiting(tx, &key("p"))?);
        assert_eq!(backlog::list_assigned_to_turn(tx, &turn("next"))?.len(), 1);
        let states = ["t1", "t2", "t3"].map(|id| jobs::get(tx, &turn(id)).unwrap().unwrap().state);
        assert_eq!(states, [JobState::Steered, JobState::Cancelled, JobState::Cancelled]);
        Ok(())
    })
    .await
}
