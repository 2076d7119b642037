//! The audit log.

use serde_json::json;

use crate::plane::{Plane, until};

#[test]
fn every_change_is_audited_and_tampered_row_is_detected() {
    let mut plane = Plane::new();
    plane.started("one");
    let etag = plane.get("/instances/one/config").etag.unwrap();
    let body = json!({ "turns": { "max_rounds": 9 } });
    plane.call("PATCH", "/instances/one/config", Some(body), &[("if-match", &etag)]).ok();
    let token = plane.post("/tokens", json!({ "name": "x", "scope": "admin" })).ok();
    let bearer = format!("Bearer {}", token["secret"].as_str().unwrap());
    plane.call("POST", "/instances/one/archive", None, &[("authorization", &bearer)]).ok();
    let listed = plane.get("/audit").ok();
    let entries = listed["entries"].as_array().unwrap();
    let actions: Vec<&str> = entries.iter().rev().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(
        actions,
        ["instance.create", "instance.start", "config.write", "token.make", "instance.archive"]
    );
    assert_eq!(entries[0]["who"], format!("token:{}", token["id"].as_str().unwrap()));
    let write = entries.iter().find(|entry| entry["action"] == "config.write").unwrap();
    assert!(write["before"].is_string() && write["after"].is_string() && write["before"] != write["after"]);
    let (code, verdict) = plane.run(&["audit", "verify"]);
    assert_eq!((code, &verdict["ok"]["intact"], &verdict["ok"]["entries"]), (0, &json!(true), &json!(5)));
    plane.end();
    let (code, _) = plane.run(&["audit", "verify"]);
    assert_eq!(code, 0, "works without a control plane");
    let registry = rusqlite::Connection::open(plane.home().join("cp/registry.db")).unwrap();
    for sql in ["UPDATE audit SET actor = 'nobody' WHERE seq = 3", "DELETE FROM audit WHERE seq = 3"] {
        let refused = registry.execute(sql, []).unwrap_err().to_string();
        assert!(refused.contains("only added to"), "{refused}");
    }
    // The trigger can be dropped with access to the file; the chain still reveals the change.
    registry
        .execute_batch("DROP TRIGGER audit_is_not_changed; UPDATE audit SET actor = 'nobody' WHERE seq = 3")
        .unwrap();
    drop(registry);
    let (code, broken) = plane.run(&["audit", "verify"]);
    assert_eq!((code, broken["error"]["code"].as_str()), (1, Some("audit_broken")));
    assert!(broken["error"]["message"].as_str().unwrap().starts_with("entry 3 "), "{broken}");
}

/// An audit log of three entries whose control plane has ended, and its registry.
fn ended() -> (Plane, rusqlite::Connection) {
    let mut plane = Plane::new();
    for name in ["one", "two", "three"] {
        plane.create(name);
    }
    let note = plane.home().join("cp/audit.head");
    let noted = || std::fs::read_to_string(&note).unwrap_or_default();
    until(&|| format!("the head is written: {}", noted()), || noted().starts_with("3 "));
    plane.end();
    let registry = rusqlite::Connection::open(plane.home().join("cp/registry.db")).unwrap();
    (plane, registry)
}

#[test]
fn truncated_audit_log_is_detected() {
    const CUT: &str = "DROP TRIGGER audit_is_not_cut; DELETE FROM audit WHERE seq";
    const BACK: &str = "DROP TRIGGER audit_head_goes_on; UPDATE audit_head SET entries = 2,
        hash = (SELECT hash FROM audit WHERE seq = 2)";
    for (sql, missing) in [
        (format!("{CUT} = 3"), 3),
        (format!("{CUT} > 0"), 1),
        // The row is restored as well, but not the head file.
        (format!("{CUT} = 3; {BACK}"), 3),
    ] {
        let (mut plane, registry) = ended();
        registry.execute_batch(&sql).unwrap();
        let found = |plane: &Plane, at: i64| {
            let (code, broken) = plane.run(&["audit", "verify"]);
            assert_eq!((code, broken["error"]["code"].as_str()), (1, Some("audit_broken")), "{sql}");
            let message = broken["error"]["message"].as_str().unwrap();
            assert!(message.starts_with(&format!("entry {at} ")), "{sql}: {message}");
        };
        found(&plane, missing);
        plane.serve();
        plane.create("four");
        let grown = if sql.contains("audit_head SET") { 3 } else { 4 };
        found(&plane, grown);
    }
}

#[test]
fn audit_rows_cannot_be_replaced() {
    let (_plane, registry) = ended();
    for sql in [
        "INSERT OR REPLACE INTO audit SELECT * FROM audit WHERE seq = 2",
        "REPLACE INTO audit_head VALUES (1, 2, 'x')",
        "UPDATE audit_head SET entries = 2",
        "DELETE FROM audit_head",
    ] {
        let refused = registry.execute(sql, []).unwrap_err().to_string();
        assert!(refused.contains("only added to"), "{sql}: {refused}");
    }
    registry
        .execute_batch(
            "PRAGMA foreign_keys = OFF;
             INSERT INTO message_events (seq, message, kind, state, created_at) VALUES (7, 1, 'queued', 'queued', 1)",
        )
        .unwrap();
    let sql = "INSERT OR REPLACE INTO message_events (seq, message, kind, state, created_at)
        VALUES (7, 1, 'failed', 'failed', 1)";
    let refused = registry.execute(sql, []).unwrap_err().to_string();
    assert!(refused.contains("only added to"), "{refused}");
}
