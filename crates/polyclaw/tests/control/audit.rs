//! The record of what was changed.

use serde_json::json;

use crate::plane::Plane;

#[test]
fn every_change_is_recorded_and_a_tampered_row_is_found() {
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
    assert_eq!((code, &verdict["ok"]["whole"], &verdict["ok"]["entries"]), (0, &json!(true), &json!(5)));
    plane.end();
    let (code, _) = plane.run(&["audit", "verify"]);
    assert_eq!(code, 0, "it needs no control plane");
    let registry = rusqlite::Connection::open(plane.home().join("cp/registry.db")).unwrap();
    for sql in ["UPDATE audit SET who = 'nobody' WHERE seq = 3", "DELETE FROM audit WHERE seq = 3"] {
        let refused = registry.execute(sql, []).unwrap_err().to_string();
        assert!(refused.contains("only added to"), "{refused}");
    }
    // Somebody with the file can take the rule away; the chain still shows it.
    registry
        .execute_batch("DROP TRIGGER audit_is_not_changed; UPDATE audit SET who = 'nobody' WHERE seq = 3")
        .unwrap();
    drop(registry);
    let (code, broken) = plane.run(&["audit", "verify"]);
    assert_eq!((code, broken["error"]["code"].as_str()), (1, Some("audit_broken")));
    assert!(broken["error"]["message"].as_str().unwrap().starts_with("entry 3 "), "{broken}");
}
