use polyclaw_domain::approval::ApprovalState::{self, Approved, Denied, Expired, Pending};
use polyclaw_domain::channel::ChatAddress;
use polyclaw_domain::id::ApprovalId;
use polyclaw_domain::todo::{TodoItem, TodoState};
use polyclaw_domain::tool::{ToolCall, ToolEffect};
use polyclaw_store::approvals::{self, StoredApproval};
use polyclaw_store::{Db, Result, Tx, intents, sessions, todos};
use serde_json::json;

use crate::rows::{NOW, key, session, turn};

on_every_engine!(
    approval_of_a_call_is_inserted_once,
    approval_is_decided_once_and_before_expiry,
    turn_waits_while_its_approval_is_pending,
    todo_list_is_replaced_and_deleted_with_its_session
);

fn question(id: &str, call_id: &str) -> StoredApproval {
    StoredApproval {
        id: ApprovalId::new(id),
        session: key("p"),
        turn: turn("t"),
        call_id: call_id.into(),
        tool: "shell".into(),
        arguments: json!({ "command": "rm -rf \u{0}" }),
        fingerprint: "f".into(),
        origin: Some(ChatAddress {
            channel: "chat".into(),
            account: "a".into(),
            peer: "p".into(),
            thread: Some("1".into()),
        }),
        question: "May it?".into(),
        requested_by: "ann".into(),
        state: Pending,
        reason: None,
        decided_by: None,
        expires_at: NOW.plus(100),
        created_at: NOW,
    }
}

async fn ask(db: &Db, id: &'static str, call_id: &'static str) -> Result<StoredApproval> {
    db.write(move |tx| approvals::insert_once(tx, &question(id, call_id))).await.map(|(asked, _)| asked)
}

async fn approval_of_a_call_is_inserted_once(db: Db) -> Result<()> {
    assert_eq!(format!("{:?}", ask(&db, "a1", "c1").await?), format!("{:?}", question("a1", "c1")));
    assert_eq!(ask(&db, "a2", "c1").await?.id, ApprovalId::new("a1"), "a restart finds its question");
    assert_eq!(ask(&db, "a3", "c2").await?.id, ApprovalId::new("a3"));
    let pending = db.read(approvals::list_pending).await?;
    assert_eq!(pending.iter().map(|q| q.id.as_str()).collect::<Vec<_>>(), ["a1", "a3"]);
    assert!(db.read(|tx| approvals::get(tx, &ApprovalId::new("a2"))).await?.is_none());
    Ok(())
}

async fn approval_is_decided_once_and_before_expiry(db: Db) -> Result<()> {
    for (id, call_id) in [("a1", "c1"), ("a2", "c2"), ("a3", "c3")] {
        ask(&db, id, call_id).await?;
    }
    let decide = |id: &'static str, state: ApprovalState, after| {
        db.write(move |tx| {
            let text = (Some("why"), Some("owner"));
            approvals::record_decision(tx, &ApprovalId::new(id), state, text, NOW.plus(after).into())
        })
    };
    assert!(decide("a1", Denied, 99).await?);
    assert!(!decide("a1", Approved, 99).await?);
    assert!(!decide("a2", Approved, 100).await?, "too late");
    assert!(decide("a2", Expired, 100).await?);
    assert!(!decide("a2", Expired, 100).await?);
    assert!(!decide("nobody", Approved, 0).await?);
    let stored = db.read(|tx| approvals::get(tx, &ApprovalId::new("a1"))).await?.unwrap();
    let notice = (stored.state, stored.reason.as_deref(), stored.decided_by.as_deref());
    assert_eq!(notice, (Denied, Some("why"), Some("owner")));
    assert_eq!(ask(&db, "a9", "c2").await?.state, Expired, "asking again changes nothing");
    assert_eq!(db.read(approvals::list_pending).await?.len(), 1);
    let measured = approvals::DecisionTime { now: NOW.plus(500), counted: NOW.plus(99) };
    let set_forward = move |tx: &mut Tx<'_>| {
        approvals::record_decision(tx, &ApprovalId::new("a3"), Approved, (None, None), measured)
    };
    assert!(db.write(set_forward).await?, "the clock was set: the time is what was measured");
    assert!(db.read(approvals::list_pending).await?.is_empty());
    Ok(())
}

async fn turn_waits_while_its_approval_is_pending(db: Db) -> Result<()> {
    let waits = |after| db.read(move |tx| approvals::is_turn_waiting(tx, &turn("t"), NOW.plus(after)));
    assert!(!waits(0).await?);
    ask(&db, "a1", "c1").await?;
    assert!(waits(0).await? && !waits(100).await?);
    db.write(|tx| approvals::record_decision(tx, &ApprovalId::new("a1"), Approved, (None, None), NOW.into()))
        .await?;
    assert!(waits(100).await?, "it has a yes to act upon");
    let call = ToolCall { id: "c1".into(), name: "shell".into(), arguments: json!({}) };
    assert!(!db.read(|tx| intents::is_started(tx, &turn("t"), "c1")).await?);
    db.write(move |tx| intents::start_call(tx, &turn("t"), &call, ToolEffect::Effect, NOW)).await?;
    assert!(db.read(|tx| intents::is_started(tx, &turn("t"), "c1")).await? && !waits(0).await?);
    Ok(())
}

async fn todo_list_is_replaced_and_deleted_with_its_session(db: Db) -> Result<()> {
    let item = |text: &str| TodoItem { text: text.into(), state: TodoState::Doing };
    db.write(|tx| sessions::ensure(tx, &session("p"))).await?;
    assert!(db.read(|tx| todos::get(tx, &key("p"))).await?.is_empty());
    for list in [vec![item("a"), item("b \u{0}")], vec![item("c")]] {
        let stored = list.clone();
        db.write(move |tx| todos::replace_list(tx, &key("p"), &stored, NOW)).await?;
        assert_eq!(db.read(|tx| todos::get(tx, &key("p"))).await?, list);
    }
    db.write(|tx| sessions::delete(tx, &key("p"))).await?;
    assert!(db.read(|tx| todos::get(tx, &key("p"))).await?.is_empty());
    Ok(())
}
