use polyclaw_domain::event::{EventKind, NewEvent};
use polyclaw_domain::id::TraceId;
use polyclaw_store::{Db, Result, events};
use serde_json::json;

use crate::rows::{NOW, agent, key, turn};

on_every_engine!(events_are_listed_in_order_and_filtered);

async fn events_are_listed_in_order_and_filtered(db: Db) -> Result<()> {
    db.write(|tx| {
        for n in 0..6 {
            let event = NewEvent {
                kind: if n % 2 == 0 { EventKind::TurnSteered } else { EventKind::GateSuppressed },
                session: (n != 5).then(|| key(if n < 3 { "p" } else { "q" })),
                turn: (n == 0).then(|| turn("t")),
                agent: (n == 0).then(|| agent("ops")),
                trace: (n == 0).then(|| TraceId::new("x")),
                data: json!({ "n": n }),
            };
            events::record(tx, &event, NOW.plus(n))?;
        }
        Ok(())
    })
    .await?;
    db.read(|tx| {
        let all = events::list(tx, 0, None, None, 99)?;
        let last: Vec<i64> = events::list_latest(tx, 2)?.iter().map(|event| event.seq).collect();
        assert_eq!(last, [all[4].seq, all[5].seq], "the last ones, in order");
        let first = &all[0];
        assert_eq!((first.kind.as_str(), first.created_at), ("turn.steered", NOW));
        assert_eq!((first.turn.as_deref(), first.agent.as_deref()), (Some("t"), Some("ops")));
        assert_eq!((first.trace.as_deref(), first.session.as_deref()), (Some("x"), Some(key("p").as_str())));
        let mut list = |after, kind, peer: Option<&str>, limit| -> Result<Vec<i64>> {
            let found = events::list(tx, after, kind, peer.map(key).as_ref(), limit)?;
            Ok(found.iter().filter_map(|event| event.data["n"].as_i64()).collect())
        };
        assert_eq!(list(0, None, None, 99)?, [0, 1, 2, 3, 4, 5]);
        assert_eq!(list(all[1].seq, None, None, 2)?, [2, 3]);
        assert_eq!(list(0, Some("delivery.suppressed"), None, 99)?, [1, 3, 5]);
        assert_eq!(list(0, None, Some("p"), 99)?, [0, 1, 2]);
        assert_eq!(list(0, Some("turn.steered"), Some("q"), 99)?, [4]);
        Ok(())
    })
    .await
}
