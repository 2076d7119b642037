use polyclaw_domain::locale::Locale;
use polyclaw_domain::pairing::{CODE_EXPIRY_MS, MAX_PENDING_CODES, PairingCode};
use polyclaw_domain::time::Millis;
use polyclaw_store::pairings::{self, Pairing, PairingSender};
use polyclaw_store::{Db, Error, Result};

use crate::rows::{NOW, address};

on_every_engine!(
    unknown_sender_has_one_pending_pairing_code,
    at_most_three_pairings_are_pending_per_account,
    pairing_code_is_approved_once_before_expiry,
    approved_pairing_can_be_revoked,
    database_constraints_limit_pending_pairings
);

fn sender(id: &str, account: &str) -> PairingSender {
    PairingSender { channel: "test".into(), account: account.into(), id: id.into() }
}

fn pairing(sender: PairingSender) -> Pairing {
    let code = PairingCode::from_nonce(&format!("{sender:?}"));
    Pairing {
        locale: Locale::Chinese,
        sender,
        name: Some("Mallory".into()),
        code,
        is_approved: false,
        address: address(),
        created_at: NOW,
        expires_at: NOW.plus(CODE_EXPIRY_MS),
    }
}

async fn begin(db: &Db, id: &str, account: &str, at: Millis) -> Result<bool> {
    let wanted = Pairing { expires_at: at.plus(CODE_EXPIRY_MS), ..pairing(sender(id, account)) };
    db.write(move |tx| pairings::insert_pending(tx, &wanted, at)).await
}

async fn unknown_sender_has_one_pending_pairing_code(db: Db) -> Result<()> {
    let code = pairing(sender("1", "a")).code;
    let waiting = |at: Millis| db.read(move |tx| pairings::find_pending_code(tx, &sender("1", "a"), at));
    assert_eq!(waiting(NOW).await?, None);
    assert!(begin(&db, "1", "a", NOW).await?);
    let again = begin(&db, "1", "a", NOW).await;
    assert!(matches!(again, Err(Error::Conflict(_))), "{again:?}");
    db.write(|tx| pairings::mark_code_sent(tx, &sender("1", "a"), NOW.plus(5))).await?;
    assert_eq!(waiting(NOW.plus(CODE_EXPIRY_MS - 1)).await?, Some((code.clone(), NOW.plus(5))));
    assert_eq!(waiting(NOW.plus(CODE_EXPIRY_MS)).await?, None, "expired");
    assert_eq!(db.read(|tx| pairings::list(tx, NOW)).await?, [pairing(sender("1", "a"))]);
    Ok(())
}

async fn at_most_three_pairings_are_pending_per_account(db: Db) -> Result<()> {
    for n in 0..MAX_PENDING_CODES {
        assert!(begin(&db, &n.to_string(), "a", NOW).await?);
    }
    assert!(!begin(&db, "late", "a", NOW.plus(CODE_EXPIRY_MS - 1)).await?);
    assert!(begin(&db, "late", "b", NOW).await?, "another account has its own");
    let first = pairing(sender("1", "a")).code;
    db.write(move |tx| pairings::approve(tx, &first, NOW)).await?;
    assert!(begin(&db, "late", "a", NOW).await?, "one was let in");
    assert!(!begin(&db, "later", "a", NOW).await?);
    assert!(begin(&db, "later", "a", NOW.plus(CODE_EXPIRY_MS)).await?, "the others expired");
    Ok(())
}

async fn pairing_code_is_approved_once_before_expiry(db: Db) -> Result<()> {
    let (one, two) = (sender("1", "a"), sender("2", "a"));
    let codes = (pairing(one.clone()).code, pairing(two.clone()).code);
    begin(&db, "1", "a", NOW).await?;
    begin(&db, "2", "a", NOW).await?;
    let paired = |who: PairingSender| db.read(move |tx| pairings::is_paired(tx, &who));
    let approve = |code: PairingCode, at: Millis| db.write(move |tx| pairings::approve(tx, &code, at));
    assert!(!paired(one.clone()).await?);
    let approved = approve(codes.0.clone(), NOW.plus(CODE_EXPIRY_MS - 1)).await?.unwrap();
    assert_eq!((approved.sender.clone(), approved.is_approved), (one.clone(), true));
    assert!(paired(one.clone()).await? && !paired(two.clone()).await?);
    assert_eq!(approve(codes.0, NOW).await?, None, "used");
    assert_eq!(approve(codes.1, NOW.plus(CODE_EXPIRY_MS)).await?, None, "expired");
    assert!(paired(one).await?, "who was let in stays");
    assert!(!paired(sender("1", "b")).await?, "in one account only");
    Ok(())
}

async fn approved_pairing_can_be_revoked(db: Db) -> Result<()> {
    begin(&db, "1", "a", NOW).await?;
    let code = pairing(sender("1", "a")).code;
    db.write(move |tx| pairings::approve(tx, &code, NOW)).await?;
    assert!(db.write(|tx| pairings::revoke(tx, &sender("1", "a"))).await?);
    assert!(!db.write(|tx| pairings::revoke(tx, &sender("1", "a"))).await?);
    assert!(!db.read(|tx| pairings::is_paired(tx, &sender("1", "a"))).await?);
    Ok(())
}

async fn database_constraints_limit_pending_pairings(db: Db) -> Result<()> {
    let fourth = db.write(|tx| {
        tx.execute(
            "INSERT INTO pairings (channel, account, sender, code, state, slot, address_json, notified_at, created_at,
               expires_at) VALUES ('c', 'a', 's', 'x', 'pending', 4, '{}', 1, 1, 1)",
            &[],
        )
    });
    assert!(fourth.await.is_err());
    let twice = db.write(|tx| {
        for sender in ["1", "2"] {
            tx.execute(
                "INSERT INTO pairings (channel, account, sender, code, state, slot, address_json, notified_at,
                   created_at, expires_at) VALUES ('c', 'a', $1, $1, 'pending', 1, '{}', 1, 1, 1)",
                &[sender.into()],
            )?;
        }
        Ok(())
    });
    assert!(matches!(twice.await, Err(Error::Conflict(_))));
    Ok(())
}
