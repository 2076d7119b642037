use std::sync::Arc;
use std::thread;
use std::time::Duration;

use polyclaw_domain::id::{TeamId, TeamMessageId};
use polyclaw_domain::team::TeamStatus::{Active, Shutdown};
use polyclaw_domain::team_message::{TeamMessage, TeamMessageKind, TeamMessageState};
use polyclaw_store::{Db, Result, Tx, team_messages, teams};
use tokio::sync::Notify;

use crate::rows::{NOW, turn};

on_every_engine!(
    team_messages_are_ordered_and_read_when_their_turn_succeeds,
    team_message_is_stored_once,
    requeued_team_message_waits_for_the_next_turn,
    team_message_is_copied_once,
    message_of_a_failed_turn_is_shown_again,
    team_message_in_prompt_at_shutdown_is_settled_by_turn,
    turn_failing_during_team_end_leaves_no_queued_message,
);

async fn team_message_in_prompt_at_shutdown_is_settled_by_turn(db: Db) -> Result<()> {
    post(&db, vec![letter("a", "bob"), letter("b", "cat"), letter("c", "bob"), letter("d", "lead")]).await?;
    show(&db, "a", "t1").await?;
    show(&db, "b", "t2").await?;
    show(&db, "d", "t2").await?;
    let end = |tx: &mut Tx<'_>| {
        teams::set_status(tx, &TeamId::new("t"), (&[Active], Shutdown), NOW)?;
        team_messages::mark_undeliverable(tx, &TeamId::new("t"))
    };
    assert_eq!(ids(&db.write(end).await?), ["c"], "what no turn shows");
    assert_eq!(
        ids(&db.write(|tx| team_messages::finish_by_turn(tx, &turn("t1"), Some(NOW))).await?),
        [""; 0]
    );
    let left = db.write(|tx| team_messages::finish_by_turn(tx, &turn("t2"), None)).await?;
    assert_eq!(ids(&left), ["b"], "what its turn showed in vain");
    for (id, state) in [
        ("a", TeamMessageState::Read),
        ("b", TeamMessageState::Undeliverable),
        ("c", TeamMessageState::Undeliverable),
        ("d", TeamMessageState::Queued),
    ] {
        assert_eq!(
            db.read(move |tx| team_messages::get(tx, &TeamMessageId::new(id))).await?.unwrap().state,
            state,
            "{id}"
        );
    }
    Ok(())
}

async fn requeued_team_message_waits_for_the_next_turn(db: Db) -> Result<()> {
    post(&db, vec![letter("a", "bob"), letter("b", "bob"), letter("c", "lead")]).await?;
    for id in ["a", "b", "c"] {
        show(&db, id, "t1").await?;
    }
    let put_back = |id: &'static str, of: &'static str| {
        db.write(move |tx| team_messages::requeue(tx, &TeamMessageId::new(id), &turn(of)))
    };
    put_back("a", "t2").await?;
    put_back("b", "t1").await?;
    let before =
        |at: i64| db.read(move |tx| team_messages::list_in_prompt_before(tx, &turn("t1"), NOW.plus(at)));
    assert_eq!((before(0).await?.len(), before(1).await?.len()), (0, 2), "what t1 shows");
    let due = |of: &'static str| {
        db.read(move |tx| team_messages::list_for_prompt(tx, &TeamId::new("t"), "bob", &turn(of), 9))
    };
    assert_eq!(ids(&due("t2").await?), ["b"], "the other is still shown by its own turn");
    assert_eq!(ids(&due("t1").await?), ["a", "b"]);
    db.write(|tx| teams::set_status(tx, &TeamId::new("t"), (&[Active], Shutdown), NOW)).await?;
    put_back("a", "t1").await?;
    put_back("c", "t1").await?;
    let left = db.write(|tx| team_messages::finish_by_turn(tx, &turn("t1"), None)).await?;
    assert_eq!(ids(&left), ["a"], "nobody shows it to a member any more, and the lead reads on");
    Ok(())
}

fn ids(messages: &[TeamMessage]) -> Vec<&str> {
    messages.iter().map(|message| message.id.as_str()).collect()
}

fn letter(id: &str, to: &str) -> TeamMessage {
    TeamMessage {
        id: TeamMessageId::new(id),
        team: TeamId::new("t"),
        from: "ann".into(),
        to: to.into(),
        kind: TeamMessageKind::Message,
        content: format!("text of {id}"),
        summary: "short".into(),
        request_id: Some("r".into()),
        approve: Some(true),
        reason: None,
        state: TeamMessageState::Queued,
        turn: None,
        created_at: NOW,
        read_at: None,
    }
}

async fn post(db: &Db, messages: Vec<TeamMessage>) -> Result<Vec<bool>> {
    db.write(move |tx| {
        if teams::get(tx, &TeamId::new("t"))?.is_none() {
            teams::insert(tx, &crate::teams::team("t", "web"))?;
        }
        messages.iter().map(|message| team_messages::insert_once(tx, message)).collect()
    })
    .await
}

async fn due(db: &Db, to: &'static str, of: &'static str) -> Result<Vec<String>> {
    let found =
        db.read(move |tx| team_messages::list_for_prompt(tx, &TeamId::new("t"), to, &turn(of), 10)).await?;
    Ok(found.into_iter().map(|message| message.id.to_string()).collect())
}

async fn show(db: &Db, id: &'static str, of: &'static str) -> Result<()> {
    db.write(move |tx| team_messages::mark_in_prompt(tx, &TeamMessageId::new(id), &turn(of), NOW)).await
}

async fn team_messages_are_ordered_and_read_when_their_turn_succeeds(db: Db) -> Result<()> {
    post(&db, vec![letter("c", "bob"), letter("a", "bob"), letter("b", "bob"), letter("d", "cat")]).await?;
    assert_eq!(due(&db, "bob", "t1").await?, ["c", "a", "b"], "as they were written");
    show(&db, "c", "t1").await?;
    assert_eq!(due(&db, "bob", "t1").await?, ["c", "a", "b"], "its own turn shows it with every call");
    assert_eq!(due(&db, "bob", "t2").await?, ["a", "b"], "no other does");
    assert_eq!(db.write(|tx| team_messages::finish_by_turn(tx, &turn("t1"), Some(NOW.plus(1)))).await?, []);
    let read = db.read(|tx| team_messages::get(tx, &TeamMessageId::new("c"))).await?.unwrap();
    assert_eq!(
        (read.state, read.read_at, read.turn),
        (TeamMessageState::Read, Some(NOW.plus(1)), Some(turn("t1")))
    );
    assert_eq!(due(&db, "bob", "t1").await?, ["a", "b"]);
    assert_eq!(db.read(|tx| team_messages::count_waiting(tx, &TeamId::new("t"), "cat")).await?, (1, 0));
    assert_eq!(
        ids(&db.write(|tx| team_messages::mark_undeliverable(tx, &TeamId::new("t"))).await?),
        ["a", "b", "d"]
    );
    assert_eq!(db.read(|tx| team_messages::count_waiting(tx, &TeamId::new("t"), "cat")).await?, (0, 0));
    Ok(())
}

async fn team_message_is_stored_once(db: Db) -> Result<()> {
    assert_eq!(post(&db, vec![letter("a", "bob"), letter("a", "bob")]).await?, [true, false]);
    assert_eq!(due(&db, "bob", "t1").await?, ["a"]);
    let stored = db.read(|tx| team_messages::get(tx, &TeamMessageId::new("a"))).await?;
    assert_eq!(stored, Some(letter("a", "bob")));
    Ok(())
}

async fn team_message_is_copied_once(db: Db) -> Result<()> {
    post(&db, vec![letter("b", "bob"), letter("a", "cat")]).await?;
    let left = |limit| db.read(move |tx| team_messages::list_uncopied(tx, &TeamId::new("t"), limit));
    assert_eq!(ids(&left(9).await?), ["b", "a"], "in order");
    assert_eq!(ids(&left(1).await?), ["b"]);
    db.write(|tx| team_messages::mark_copied(tx, &TeamMessageId::new("b"))).await?;
    post(&db, vec![letter("b", "bob")]).await?;
    assert_eq!(ids(&left(9).await?), ["a"], "the same letter, written again");
    Ok(())
}

async fn message_of_a_failed_turn_is_shown_again(db: Db) -> Result<()> {
    post(&db, vec![letter("a", "bob")]).await?;
    show(&db, "a", "t1").await?;
    show(&db, "a", "t2").await?;
    assert_eq!(due(&db, "bob", "t2").await?, Vec::<String>::new(), "one turn has it");
    db.write(|tx| team_messages::finish_by_turn(tx, &turn("t1"), None)).await?;
    assert_eq!(due(&db, "bob", "t2").await?, ["a"]);
    let between =
        db.read(|tx| team_messages::list_peer_summaries(tx, &TeamId::new("t"), "ann", NOW, 9)).await?;
    assert_eq!(between, [("bob".to_owned(), "short".to_owned())]);
    Ok(())
}

async fn turn_failing_during_team_end_leaves_no_queued_message(db: Db) -> Result<()> {
    post(&db, vec![letter("a", "bob")]).await?;
    show(&db, "a", "t1").await?;
    let started_signal = Arc::new(Notify::new());
    let tell = Arc::clone(&started_signal);
    let end = db.write(move |tx| {
        teams::set_status(tx, &TeamId::new("t"), (&[Active], Shutdown), NOW)?;
        let left = team_messages::mark_undeliverable(tx, &TeamId::new("t"))?;
        tell.notify_one();
        // The turn ends before this is committed, where it does not wait for it.
        thread::sleep(Duration::from_millis(300));
        Ok(left)
    });
    let close = async {
        started_signal.notified().await;
        db.write(|tx| team_messages::finish_by_turn(tx, &turn("t1"), None)).await
    };
    let (ended, closed) = tokio::join!(end, close);
    assert_eq!((ids(&ended?), ids(&closed?)), (vec![], vec!["a"]));
    let stored = db.read(|tx| team_messages::get(tx, &TeamMessageId::new("a"))).await?.unwrap();
    assert_eq!(stored.state, TeamMessageState::Undeliverable);
    Ok(())
}
