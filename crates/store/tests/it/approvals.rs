use polyclaw_domain::approval::ApprovalState::{self, Approved, Denied, Expired, Pending};
use polyclaw_domain::id::ApprovalId;
use polyclaw_store::approvals::{self, Approval};
use polyclaw_store::{Db, Result};
use serde_json::json;

use crate::rows::{NOW, key, turn};

on_every_engine!(a_call_is_asked_about_once, a_question_is_answered_once_and_in_time);

fn question(id: &str, call_id: &str) -> Approval {
    Approval {
        id: ApprovalId::new(id),
        session: key("p"),
        turn: turn("t"),
        call_id: call_id.into(),
        tool: "shell".into(),
        arguments: json!({ "command": "rm -rf \u{0}" }),
        state: Pending,
        reason: None,
        expires_at: NOW.plus(100),
        created_at: NOW,
    }
}

async fn ask(db: &Db, id: &'static str, call_id: &'static str) -> Result<Approval> {
    db.write(move |tx| approvals::ask(tx, &question(id, call_id))).await
}

async fn a_call_is_asked_about_once(db: Db) -> Result<()> {
    assert_eq!(format!("{:?}", ask(&db, "a1", "c1").await?), format!("{:?}", question("a1", "c1")));
    assert_eq!(ask(&db, "a2", "c1").await?.id, ApprovalId::new("a1"), "a restart finds its question");
    assert_eq!(ask(&db, "a3", "c2").await?.id, ApprovalId::new("a3"));
    let pending = db.read(|tx| approvals::pending(tx, NOW)).await?;
    assert_eq!(pending.iter().map(|q| q.id.as_str()).collect::<Vec<_>>(), ["a1", "a3"]);
    assert!(db.read(|tx| approvals::get(tx, &ApprovalId::new("a2"))).await?.is_none());
    Ok(())
}

async fn a_question_is_answered_once_and_in_time(db: Db) -> Result<()> {
    for (id, call_id) in [("a1", "c1"), ("a2", "c2"), ("a3", "c3")] {
        ask(&db, id, call_id).await?;
    }
    let decide = |id: &'static str, state: ApprovalState, after| {
        db.write(move |tx| approvals::decide(tx, &ApprovalId::new(id), state, Some("why"), NOW.plus(after)))
    };
    assert!(decide("a1", Denied, 99).await?);
    assert!(!decide("a1", Approved, 99).await?);
    assert!(!decide("a2", Approved, 100).await?, "too late");
    assert!(decide("a2", Expired, 100).await?);
    assert!(!decide("a2", Expired, 100).await?);
    assert!(!decide("nobody", Approved, 0).await?);
    let stored = db.read(|tx| approvals::get(tx, &ApprovalId::new("a1"))).await?.unwrap();
    assert_eq!((stored.state, stored.reason.as_deref()), (Denied, Some("why")));
    assert_eq!(ask(&db, "a9", "c2").await?.state, Expired, "asking again changes nothing");
    assert_eq!(db.read(|tx| approvals::pending(tx, NOW.plus(99))).await?.len(), 1);
    assert!(db.read(|tx| approvals::pending(tx, NOW.plus(100))).await?.is_empty(), "its time is over");
    Ok(())
}
