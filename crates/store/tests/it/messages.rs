use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{MessageId, SessionId};
use polyclaw_domain::message::{MessageAttachment, MessageOrigin, MessagePart, MessageRole};
use polyclaw_domain::tool::ToolCall;
use polyclaw_store::messages::{self, SessionMessage};
use polyclaw_store::{Db, Error, Result, jobs, sessions};
use serde_json::json;

use crate::rows::{NOW, address, agent, job, key, message, session, turn, with_sessions};

on_every_engine!(
    message_round_trips_with_all_fields,
    text_of_any_content_round_trips,
    idempotency_key_is_unique_per_session,
    newest_idempotency_key_of_a_session_is_found,
    message_positions_are_unique_per_session,
    queued_messages_move_behind_messages_stored_meanwhile,
    history_is_ordered_by_position_without_queued_messages,
    message_page_shows_one_session_id_without_queued_messages,
    sender_address_is_known_until_session_id_is_renewed,
);

async fn store(db: &Db, rows: Vec<SessionMessage>) -> Result<()> {
    db.write(move |tx| rows.iter().try_for_each(|row| messages::insert(tx, row))).await
}

async fn message_round_trips_with_all_fields(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    let call = ToolCall { id: "c1".into(), name: "read".into(), arguments: json!({ "path": "ä\u{0}" }) };
    let parts = vec![
        MessagePart::ToolCall(call),
        MessagePart::ToolResult { call_id: "c0".into(), name: "read".into(), is_error: true },
        MessagePart::Attachment(MessageAttachment {
            name: "a".into(),
            media_type: "text/plain".into(),
            url: None,
            text: Some("ä\u{0}".into()),
            media: None,
        }),
    ];
    let whole = SessionMessage {
        role: MessageRole::Assistant,
        parts,
        origin: MessageOrigin::Agent(agent("ops")),
        deliver: false,
        address: Some(ChatAddress { thread: Some("7".into()), ..address() }),
        meta: Some(json!({ "internal": true, "hop": 1 })),
        idempotency_key: Some("announce:1".into()),
        ..message("m", "p", 4, "t")
    };
    store(&db, vec![whole.clone()]).await?;
    let found = db.read(|tx| messages::get(tx, &MessageId::new("m"))).await?.unwrap();
    assert_eq!(format!("{found:?}"), format!("{whole:?}"));
    assert_eq!(db.read(|tx| messages::list_by_turn(tx, &turn("t"))).await?.len(), 1);
    assert_eq!(db.read(|tx| messages::last_position(tx, &key("p"))).await?, 4);
    assert_eq!(db.read(|tx| messages::last_position(tx, &key("nobody"))).await?, 0);
    Ok(())
}

async fn text_of_any_content_round_trips(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    let huge = "дом 家 🏠\r\n".repeat(400_000);
    let texts = [huge.as_str(), "", "'; DROP TABLE messages; --", "$1 ?1 %s \\ \u{fffd}\u{202e}", "a\u{0}b"];
    let rows = texts.iter().zip(1..).map(|(text, ticket)| SessionMessage {
        text: (*text).to_owned(),
        ..message(&format!("m{ticket}"), "p", ticket, "t")
    });
    store(&db, rows.collect()).await?;
    let lines = db.read(|tx| messages::load_history(tx, (&key("p"), &session("p").id), 0, None)).await?;
    let found: Vec<_> = lines.into_iter().map(|line| line.text).collect();
    // The one character PostgreSQL's text can not hold.
    let nul = if db.engine_name() == "postgres" { "a\u{fffd}b" } else { "a\u{0}b" };
    assert!(found[0] == huge, "the huge text came back changed");
    assert_eq!(found[1..4], texts[1..4]);
    assert_eq!(found[4], nul);
    Ok(())
}

async fn idempotency_key_is_unique_per_session(db: Db) -> Result<()> {
    with_sessions(&db, &["p", "q"]).await?;
    let keyed = |id, peer, ticket| SessionMessage {
        idempotency_key: Some("k".into()),
        ..message(id, peer, ticket, &format!("t-{id}"))
    };
    store(&db, vec![keyed("m1", "p", 1), keyed("m2", "q", 1), message("m3", "p", 2, "t")]).await?;
    store(&db, vec![message("m4", "p", 3, "t")]).await?;
    let again = store(&db, vec![message("m5", "p", 4, "t"), keyed("m6", "p", 5)]).await;
    assert!(matches!(again, Err(Error::Conflict(_))), "{again:?}");
    db.read(|tx| {
        let found = messages::find_by_key(tx, &key("p"), "k")?;
        assert_eq!(found, Some((MessageId::new("m1"), turn("t-m1"))));
        assert_eq!(messages::find_by_key(tx, &key("p"), "other")?, None);
        assert!(messages::get(tx, &MessageId::new("m5"))?.is_none(), "its transaction was undone");
        Ok(())
    })
    .await
}

async fn newest_idempotency_key_of_a_session_is_found(db: Db) -> Result<()> {
    with_sessions(&db, &["p", "q"]).await?;
    let keyed = |id: &str, peer, ticket, begin: &str| SessionMessage {
        idempotency_key: Some(format!("{begin}-{id}")),
        ..message(id, peer, ticket, &format!("t-{id}"))
    };
    let of_p = vec![
        keyed("m1", "p", 1, "a"),
        keyed("m2", "p", 2, "a"),
        keyed("m3", "p", 3, "b"),
        message("m4", "p", 4, "t"),
    ];
    store(&db, of_p).await?;
    store(&db, vec![keyed("m5", "q", 1, "a")]).await?;
    db.read(move |tx| {
        assert_eq!(messages::find_last_key(tx, &key("p"))?.as_deref(), Some("b-m3"));
        assert_eq!(messages::find_last_key(tx, &key("q"))?.as_deref(), Some("a-m5"));
        assert_eq!(messages::find_last_key(tx, &key("nobody"))?, None);
        Ok(())
    })
    .await
}

async fn message_positions_are_unique_per_session(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    store(&db, vec![message("m1", "p", 1, "t")]).await?;
    let again = store(&db, vec![message("m2", "p", 1, "t")]).await;
    assert!(matches!(again, Err(Error::Conflict(_))), "{again:?}");
    let homeless = store(&db, vec![message("m3", "nobody", 1, "t")]).await;
    assert!(matches!(homeless, Err(Error::Other(_))), "{homeless:?}");
    Ok(())
}

async fn queued_messages_move_behind_messages_stored_meanwhile(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    let rows = [("a", 1, "old"), ("b", 2, "waits"), ("c", 3, "old"), ("d", 4, "waits"), ("e", 5, "old")];
    store(&db, rows.map(|(id, ticket, of)| message(id, "p", ticket, of)).to_vec()).await?;
    db.write(|tx| {
        sessions::allocate_positions(tx, &key("p"), 5, NOW)?;
        messages::move_to_end(tx, &key("p"), &turn("waits"), NOW)
    })
    .await?;
    let lines = db.read(|tx| messages::load_history(tx, (&key("p"), &session("p").id), 0, None)).await?;
    let order: Vec<_> = lines.iter().map(|line| (line.text.as_str(), line.position)).collect();
    let expected = [("text of a", 1), ("text of c", 3), ("text of e", 5), ("text of b", 6), ("text of d", 7)];
    assert_eq!(order, expected);
    let next = db.write(|tx| sessions::allocate_positions(tx, &key("p"), 1, NOW)).await?;
    assert_eq!(next, Some(8));
    Ok(())
}

async fn history_is_ordered_by_position_without_queued_messages(db: Db) -> Result<()> {
    with_sessions(&db, &["p", "q"]).await?;
    let mut rows: Vec<_> = [("c", 3, "t1"), ("a", 1, "t1"), ("b", 2, "t2"), ("d", 4, "t1")]
        .map(|(id, n, of)| message(id, "p", n, of))
        .into();
    rows.push(message("other", "q", 1, "t1"));
    rows.push(SessionMessage { session_id: SessionId::new("p-0"), ..message("before", "p", 5, "t0") });
    store(&db, rows).await?;
    db.read(|tx| {
        let mut tickets = |after, queued: Option<&str>| -> Result<Vec<i64>> {
            let lines =
                messages::load_history(tx, (&key("p"), &session("p").id), after, queued.map(turn).as_ref())?;
            Ok(lines.iter().map(|line| line.position).collect())
        };
        assert_eq!(tickets(0, None)?, [1, 2, 3, 4]);
        assert_eq!(tickets(0, Some("t2"))?, [1, 3, 4]);
        assert_eq!(tickets(3, Some("t2"))?, [4]);
        assert_eq!(tickets(4, None)?, [] as [i64; 0]);
        Ok(())
    })
    .await
}

async fn message_page_shows_one_session_id_without_queued_messages(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    let old = SessionMessage { session_id: SessionId::new("p-0"), ..message("old", "p", 1, "t0") };
    let mut rows = vec![old];
    rows.extend((2..=6).map(|n| message(&format!("m{n}"), "p", n, "t1")));
    rows.push(message("w", "p", 7, "waits"));
    store(&db, rows).await?;
    db.write(|tx| jobs::insert(tx, &job("waits", "p"))).await?;
    db.read(|tx| {
        let mut page = |id: &str, after, limit| -> Result<Vec<i64>> {
            let page = messages::list_page(tx, &key("p"), &SessionId::new(id), after, limit)?;
            Ok(page.iter().map(|message| message.position).collect())
        };
        assert_eq!(page("p-1", 0, 3)?, [2, 3, 4]);
        assert_eq!(page("p-1", 4, 3)?, [5, 6]);
        assert_eq!(page("p-0", 0, 9)?, [1]);
        let waiting = messages::list_waiting(tx, &key("p"))?;
        assert_eq!(waiting.iter().map(|message| message.position).collect::<Vec<_>>(), [7]);
        Ok(())
    })
    .await
}

async fn sender_address_is_known_until_session_id_is_renewed(db: Db) -> Result<()> {
    with_sessions(&db, &["p"]).await?;
    let from = |peer: &str| ChatAddress { peer: peer.into(), ..address() };
    let is_written = |peer: &str| {
        let from = from(peer);
        db.read(move |tx| messages::has_message_from(tx, &key("p"), &from))
    };
    assert!(!is_written("ann").await?);
    let text_of = |id: &str, ticket, peer| SessionMessage {
        address: Some(from(peer)),
        ..message(id, "p", ticket, "t")
    };
    store(&db, vec![text_of("a", 1, "ann"), text_of("b", 2, "ann")]).await?;
    assert!(is_written("ann").await?);
    assert!(!is_written("bob").await?);
    db.write(|tx| sessions::renew_session_id(tx, &key("p"), &SessionId::new("p-2"), NOW)).await?;
    assert!(!is_written("ann").await?, "not in this conversation");
    Ok(())
}
