use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::{MessageId, TraceId};
use polyclaw_store::{Db, Error, Result, ingress};

use crate::rows::{NOW, address};

const WEEK_MS: i64 = 7 * 24 * 60 * 60 * 1000;

on_every_engine!(platform_message_is_deduplicated_for_seven_days, automatic_turns_are_counted_per_trace);

async fn platform_message_is_deduplicated_for_seven_days(db: Db) -> Result<()> {
    let take = |account: &str, id: &'static str, at| {
        let address = ChatAddress { account: account.into(), ..address() };
        db.write(move |tx| {
            ingress::record_platform_id(tx, &address, id, &MessageId::new(format!("m-{id}")), at)
        })
    };
    let find = |id: &'static str| db.read(move |tx| ingress::find_duplicate(tx, &address(), id));
    take("a", "old", NOW.minus(WEEK_MS + 1)).await?;
    take("a", "1", NOW.minus(WEEK_MS)).await?;
    let again = take("a", "1", NOW).await;
    assert!(matches!(again, Err(Error::Conflict(_))), "{again:?}");
    take("b", "1", NOW).await?;
    assert_eq!(find("1").await?, Some(MessageId::new("m-1")));
    assert_eq!(find("2").await?, None);
    assert_eq!(db.write(|tx| ingress::delete_expired(tx, NOW)).await?, 1);
    assert_eq!(find("old").await?, None);
    assert_eq!(find("1").await?, Some(MessageId::new("m-1")), "seven days to the millisecond");
    Ok(())
}

async fn automatic_turns_are_counted_per_trace(db: Db) -> Result<()> {
    let count =
        |trace: &'static str| db.read(move |tx| ingress::get_automatic_turns(tx, &TraceId::new(trace)));
    for _ in 0..3 {
        db.write(|tx| ingress::increment_automatic_turns(tx, &TraceId::new("a"), NOW)).await?;
    }
    assert_eq!((count("a").await?, count("b").await?), (3, 0));
    Ok(())
}
