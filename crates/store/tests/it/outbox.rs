use polyclaw_domain::delivery::OutboxState;
use polyclaw_domain::id::{NodeId, OutboxId};
use polyclaw_domain::time::Millis;
use polyclaw_store::account_leases::{self, LeaseHolder};
use polyclaw_store::outbox::{self, DeliveryOutcome, OutboxMessage};
use polyclaw_store::{Db, Error, Result};

use crate::rows::{ENDED, LEASE_MS, NOW, parcel};

on_every_engine!(
    outbox_parts_of_a_session_are_sent_in_order,
    outbox_part_is_marked_sending_by_one_node,
    outbox_part_key_is_unique,
    delivery_outcome_of_a_part_is_stored,
    outbox_orphans_of_dead_senders_are_found,
    outbox_list_is_filtered_by_state_and_paginated,
    outbox_part_is_due_only_at_account_lease_holder,
);

async fn push(db: &Db, parcels: Vec<OutboxMessage>) -> Result<()> {
    db.write(move |tx| parcels.iter().try_for_each(|message| outbox::push(tx, message))).await
}

async fn due(db: &Db, now: Millis) -> Result<Vec<String>> {
    due_at(db, "one/1", now).await
}

async fn due_at(db: &Db, node: &'static str, now: Millis) -> Result<Vec<String>> {
    let found = db.read(move |tx| outbox::list_due(tx, &NodeId::new(node), now, 10)).await?;
    Ok(found.iter().map(|message| message.id.to_string()).collect())
}

async fn next_due(db: &Db) -> Result<Option<Millis>> {
    db.read(|tx| outbox::next_due_at(tx, &NodeId::new("one/1"), NOW)).await
}

async fn begin(db: &Db, id: &'static str, node: &'static str, lease_ms: i64) -> Result<bool> {
    db.write(move |tx| outbox::mark_sending(tx, &OutboxId::new(id), &NodeId::new(node), NOW, lease_ms)).await
}

async fn settle(db: &Db, id: &'static str, state: OutboxState, next_at: Millis) -> Result<bool> {
    let outcome =
        DeliveryOutcome { state, platform_id: Some("77".into()), error: Some("slow".into()), next_at };
    db.write(move |tx| outbox::record_outcome(tx, &OutboxId::new(id), &outcome, NOW.plus(1))).await
}

async fn outbox_parts_of_a_session_are_sent_in_order(db: Db) -> Result<()> {
    assert_eq!(next_due(&db).await?, None);
    let later = OutboxMessage { created_at: NOW.plus(5), ..parcel("03", "q") };
    push(&db, vec![parcel("01", "p"), parcel("02", "p"), later]).await?;
    assert_eq!(due(&db, NOW.minus(1)).await?, [] as [&str; 0]);
    assert_eq!(due(&db, NOW).await?, ["01"]);
    assert_eq!(due(&db, NOW.plus(5)).await?, ["01", "03"], "another session does not wait");
    assert!(begin(&db, "01", "one/1", LEASE_MS).await?);
    assert_eq!(due(&db, NOW).await?, [] as [&str; 0], "the first is on its way");
    assert!(settle(&db, "01", OutboxState::Pending, NOW.plus(60)).await?);
    assert_eq!(due(&db, NOW).await?, [] as [&str; 0], "the first is tried again before the second");
    assert_eq!(next_due(&db).await?, Some(NOW.plus(5)), "what waits for another is not due");
    assert!(settle(&db, "01", OutboxState::Failed, NOW).await?);
    assert_eq!(due(&db, NOW).await?, ["02"]);
    let expired = |now| db.read(move |tx| outbox::list_expired(tx, now));
    let past = parcel("02", "p").expires_at.plus(1);
    assert!(expired(past.minus(1)).await?.is_empty());
    assert_eq!(expired(past).await?.len(), 2);
    assert_eq!(db.read(outbox::count_unsent).await?, 2);
    Ok(())
}

async fn outbox_part_is_marked_sending_by_one_node(db: Db) -> Result<()> {
    push(&db, vec![parcel("01", "p")]).await?;
    let nodes = ["a/1", "b/1", "c/1", "d/1", "e/1", "f/1", "g/1", "h/1"];
    let tries = nodes.map(|node| {
        let db = db.clone();
        tokio::spawn(async move { begin(&db, "01", node, LEASE_MS).await })
    });
    let mut start = 0;
    for one in tries {
        start += usize::from(one.await.unwrap()?);
    }
    assert_eq!(start, 1);
    let stored = db.read(|tx| outbox::get(tx, &OutboxId::new("01"))).await?.unwrap();
    assert_eq!((stored.state, stored.attempts), (OutboxState::Sending, 1));
    assert_eq!(next_due(&db).await?, None);
    Ok(())
}

async fn outbox_part_key_is_unique(db: Db) -> Result<()> {
    push(&db, vec![parcel("01", "p")]).await?;
    let again = push(&db, vec![OutboxMessage { part_key: "part-01".into(), ..parcel("02", "p") }]).await;
    assert!(matches!(again, Err(Error::Conflict(_))), "{again:?}");
    Ok(())
}

async fn delivery_outcome_of_a_part_is_stored(db: Db) -> Result<()> {
    push(&db, vec![parcel("01", "p")]).await?;
    assert!(begin(&db, "01", "one/1", LEASE_MS).await?);
    assert!(settle(&db, "01", OutboxState::Sent, NOW).await?);
    assert!(!settle(&db, "99", OutboxState::Sent, NOW).await?);
    assert!(!begin(&db, "01", "one/1", LEASE_MS).await?, "sent is sent");
    let stored = db.read(|tx| outbox::get(tx, &OutboxId::new("01"))).await?.unwrap();
    let expected = OutboxMessage {
        state: OutboxState::Sent,
        attempts: 1,
        platform_id: Some("77".into()),
        error: Some("slow".into()),
        updated_at: NOW.plus(1),
        ..parcel("01", "p")
    };
    assert_eq!(format!("{stored:?}"), format!("{expected:?}"));
    Ok(())
}

async fn outbox_orphans_of_dead_senders_are_found(db: Db) -> Result<()> {
    push(&db, vec![parcel("01", "p"), parcel("02", "q"), parcel("03", "r"), parcel("04", "s")]).await?;
    assert!(begin(&db, "01", "one/1", LEASE_MS).await?);
    assert!(begin(&db, "02", "two_/1", LEASE_MS).await?);
    assert!(begin(&db, "03", "gone/1", ENDED).await?);
    let orphans = |node: &'static str, node_name: &'static str| {
        let (db, node_name) = (db.clone(), (!node_name.is_empty()).then_some(node_name));
        async move {
            let found =
                db.write(move |tx| outbox::lock_orphans(tx, &NodeId::new(node), node_name, NOW)).await?;
            Ok::<_, Error>(found.iter().map(|message| message.id.to_string()).collect::<Vec<_>>())
        }
    };
    assert_eq!(orphans("one/1", "one").await?, ["03"]);
    assert_eq!(orphans("one/2", "one").await?, ["03", "01"], "the longest gone first");
    assert_eq!(orphans("two_/2", "two_").await?, ["03", "02"]);
    assert_eq!(orphans("two2/1", "two2").await?, ["03"]);
    assert_eq!(orphans("____/1", "____").await?, ["03"]);
    assert_eq!(orphans("one/1", "").await?.len(), 2, "where one process has the file, all others are gone");
    assert!(settle(&db, "03", OutboxState::Unknown, NOW).await?);
    assert_eq!(orphans("one/1", "one").await?, [] as [&str; 0]);
    Ok(())
}

async fn outbox_list_is_filtered_by_state_and_paginated(db: Db) -> Result<()> {
    push(&db, ["01", "02", "03"].map(|id| parcel(id, id)).to_vec()).await?;
    assert!(begin(&db, "02", "one/1", LEASE_MS).await?);
    db.read(|tx| {
        let mut list = |state, after, limit| -> Result<Vec<String>> {
            Ok(outbox::list(tx, state, after, limit)?.iter().map(|message| message.id.to_string()).collect())
        };
        assert_eq!(list(None, "", 9)?, ["01", "02", "03"]);
        assert_eq!(list(None, "01", 1)?, ["02"]);
        assert_eq!(list(Some(OutboxState::Sending), "", 9)?, ["02"]);
        Ok(())
    })
    .await
}

async fn outbox_part_is_due_only_at_account_lease_holder(db: Db) -> Result<()> {
    push(&db, vec![parcel("01", "p"), parcel("02", "q")]).await?;
    let address = parcel("01", "p").address;
    let account = (address.channel, address.account);
    let take = async |node: &'static str, lease_ms| {
        let (account, node, node_name) = (account.clone(), NodeId::new(node), Some(node.to_owned()));
        let taker = LeaseHolder { node, node_name, now: NOW, lease_ms };
        db.write(move |tx| account_leases::acquire_or_renew(tx, &account, &taker)).await
    };
    assert_eq!(due_at(&db, "two/1", NOW).await?, ["01", "02"], "nobody has it");
    assert!(take("one/1", LEASE_MS).await?);
    assert_eq!(due_at(&db, "one/1", NOW).await?, ["01", "02"]);
    assert_eq!(due_at(&db, "two/1", NOW).await?, [] as [&str; 0]);
    let next = db.read(|tx| outbox::next_due_at(tx, &NodeId::new("two/1"), NOW)).await?;
    assert_eq!(next, None, "and does not wake it");
    assert!(take("one/1", ENDED).await?);
    assert_eq!(due_at(&db, "two/1", NOW).await?, ["01", "02"], "the lease has ended");
    Ok(())
}
