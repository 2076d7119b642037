use polyclaw_domain::id::NodeId;
use polyclaw_store::account_leases::{self, ChannelAccount, LeaseHolder};
use polyclaw_store::{Db, Result};

use crate::rows::{ENDED, LEASE_MS, NOW};

on_every_engine!(
    account_lease_is_exclusive_until_released,
    expired_account_lease_is_acquired_by_another_node,
    restarted_node_keeps_its_account_lease,
    concurrent_nodes_acquire_an_account_lease_once,
);

fn account() -> ChannelAccount {
    ("telegram".to_owned(), "main".to_owned())
}

async fn take(db: &Db, node: &'static str, lease_ms: i64) -> Result<bool> {
    let node_name = node.split('/').next().map(str::to_owned);
    let taker = LeaseHolder { node: NodeId::new(node), node_name, now: NOW, lease_ms };
    db.write(move |tx| account_leases::acquire_or_renew(tx, &account(), &taker)).await
}

/// Who has it.
async fn holder(db: &Db) -> Result<Option<String>> {
    let all = db.read(|tx| account_leases::list(tx, NOW)).await?;
    Ok(all.into_iter().find(|(known, _)| *known == account()).map(|(_, node)| node.to_string()))
}

async fn account_lease_is_exclusive_until_released(db: Db) -> Result<()> {
    assert!(take(&db, "one/1", LEASE_MS).await?);
    assert!(!take(&db, "two/1", LEASE_MS).await?);
    assert!(take(&db, "one/1", LEASE_MS).await?, "renewed");
    assert_eq!(holder(&db).await?.as_deref(), Some("one/1"));
    db.write(|tx| account_leases::release_all_of_node(tx, &NodeId::new("two/1"))).await?;
    assert_eq!(holder(&db).await?.as_deref(), Some("one/1"), "nobody lets go of what is another's");
    db.write(|tx| account_leases::release_all_of_node(tx, &NodeId::new("one/1"))).await?;
    assert_eq!(holder(&db).await?, None);
    assert!(take(&db, "two/1", LEASE_MS).await?);
    Ok(())
}

async fn expired_account_lease_is_acquired_by_another_node(db: Db) -> Result<()> {
    assert!(take(&db, "one/1", ENDED).await?);
    assert_eq!(holder(&db).await?, None);
    assert!(take(&db, "two/1", LEASE_MS).await?);
    assert!(!take(&db, "one/1", LEASE_MS).await?, "it was only slow, and comes too late");
    Ok(())
}

async fn restarted_node_keeps_its_account_lease(db: Db) -> Result<()> {
    assert!(take(&db, "one/1", LEASE_MS).await?);
    assert!(take(&db, "one/2", LEASE_MS).await?);
    assert_eq!(holder(&db).await?.as_deref(), Some("one/2"));
    assert!(!take(&db, "on/1", LEASE_MS).await?, "a name that only begins alike");
    Ok(())
}

async fn concurrent_nodes_acquire_an_account_lease_once(db: Db) -> Result<()> {
    let nodes = ["a/1", "b/1", "c/1", "d/1", "e/1", "f/1", "g/1", "h/1"];
    let tries = nodes.map(|node| {
        let db = db.clone();
        tokio::spawn(async move { take(&db, node, LEASE_MS).await })
    });
    let mut taken = 0;
    for one in tries {
        taken += usize::from(one.await.unwrap()?);
    }
    assert_eq!(taken, 1);
    Ok(())
}
