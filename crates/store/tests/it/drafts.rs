use polyclaw_domain::channel::ChatAddress;
use polyclaw_store::drafts::StoredDraft;
use polyclaw_store::{Db, Result, drafts};

use crate::rows::{NOW, turn};

on_every_engine!(drafts_are_stored_until_their_turn_ends);

fn address(peer: &str) -> ChatAddress {
    ChatAddress { channel: "chat".into(), account: "a".into(), peer: peer.into(), thread: None }
}

async fn drafts_are_stored_until_their_turn_ends(db: Db) -> Result<()> {
    for peer in ["x", "x", "y", "z"] {
        db.write(move |tx| drafts::insert(tx, &turn("t"), &address(peer), NOW)).await?;
    }
    db.write(|tx| drafts::set_platform_id(tx, &turn("t"), &address("x"), "m1")).await?;
    db.write(|tx| drafts::delete(tx, &turn("t"), &address("z"))).await?;
    let known = db.read(|tx| drafts::list_by_turn(tx, &turn("t"))).await?;
    let start_run = |peer, id: Option<&str>| StoredDraft {
        address: address(peer),
        platform_id: id.map(Into::into),
        at: NOW,
    };
    assert_eq!(known, [start_run("x", Some("m1")), start_run("y", None)]);
    db.write(|tx| drafts::delete_by_turn(tx, &turn("t"))).await?;
    assert!(db.read(|tx| drafts::list_by_turn(tx, &turn("t"))).await?.is_empty());
    Ok(())
}
