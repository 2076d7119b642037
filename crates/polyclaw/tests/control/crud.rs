//! Create, archive, clone and delete instances.

use std::fs;

use serde_json::{Value, json};

use crate::plane::{Plane, free_port, is_alive, processes_of};

#[test]
fn new_instance_has_readable_config_and_own_folders() {
    let plane = Plane::new();
    let body = json!({ "name": "one", "port": free_port(), "provider": "openai", "model": "gpt-x" });
    let answer = plane.post("/instances", body);
    assert_eq!(answer.status, 201);
    let folder = plane.folder(&answer.body);
    for name in ["memory", "teams", "logs", "workspace/skills", "workspace/agents"] {
        assert!(folder.join(name).is_dir(), "{name}");
    }
    let config = plane.get("/instances/one/config").ok();
    assert_eq!(config["config"]["agents"]["defaults"]["model"], "openai/gpt-x");
    assert_eq!(config["config"]["gateway"]["port"], answer.body["port"]);
    assert!(
        config["toml"].as_str().unwrap().contains("# Who answers as a model."),
        "the comments of a new config"
    );
    let by_id = plane.get(&format!("/instances/{}", answer.body["id"].as_str().unwrap())).ok();
    assert_eq!(by_id, plane.get("/instances/one").ok(), "id and name find the same instance");
}

#[test]
fn ports_are_assigned_once_and_invalid_ones_refused() {
    let plane = Plane::new();
    let port = |name: &str| plane.post("/instances", json!({ "name": name })).ok()["port"].as_u64().unwrap();
    let (first, second) = (port("one"), port("two"));
    assert!(first != second && (18801..=18999).contains(&first) && (18801..=18999).contains(&second));
    for (body, expected) in [
        (json!({ "name": "x", "port": first }), (409, "instance_port_taken")),
        (json!({ "name": "x", "port": 0 }), (400, "bad_port")),
        (json!({ "name": "x", "port": 80 }), (400, "bad_port")),
        (json!({ "name": "x", "port": plane.port }), (400, "bad_port")),
        (json!({ "name": "one" }), (409, "name_taken")),
    ] {
        assert_eq!(plane.post("/instances", body.clone()).refusal(), expected, "{body}");
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let used = json!({ "name": "x", "port": listener.local_addr().unwrap().port() });
    assert_eq!(plane.post("/instances", used).refusal(), (409, "port_in_use"));
}

/// Every port that could be assigned belongs to another instance in the registry, though nothing listens there.
#[test]
fn create_without_free_port_asks_for_a_port() {
    const TAKE: &str = "INSERT INTO instances (id, name, folder, port, desired_state, restart, created_at)
        SELECT 'i' || ?1, 'n' || ?1, 'cp/instances/i' || ?1, ?1, 'stopped', 'never', 1
        WHERE NOT EXISTS (SELECT 1 FROM instances WHERE port = ?1)";
    let mut plane = Plane::new();
    plane.kill();
    let registry = rusqlite::Connection::open(plane.home().join("cp/registry.db")).unwrap();
    for port in polyclaw_domain::instance::ASSIGNABLE_PORTS {
        registry.execute(TAKE, [port]).unwrap();
    }
    drop(registry);
    fs::create_dir_all(plane.home().join("cp/instances/i18805/workspace")).unwrap();
    plane.serve();
    let refused = plane.post("/instances", json!({ "name": "one" }));
    assert_eq!(refused.refusal(), (503, "no_port_left"));
    assert!(refused.body["error"]["hint"].as_str().unwrap().contains("choose a port"), "{}", refused.body);
    plane.create("one");
    plane.post("/instances/n18805/archive", json!({})).ok();
    let given = plane.post("/instances", json!({ "name": "two" }));
    let is_free = std::net::TcpListener::bind(("127.0.0.1", 18805)).is_ok();
    assert!(given.body["port"] == 18805 || !is_free, "{}", given.body);
}

#[test]
fn refused_instance_creation_leaves_nothing_behind() {
    let plane = Plane::new();
    let folders = || fs::read_dir(plane.home().join("cp/instances")).unwrap().count();
    let long = "x".repeat(65);
    for name in ["", "-bad", "has spaces", "a/b", "..", long.as_str()] {
        assert_eq!(plane.post("/instances", json!({ "name": name })).refusal(), (400, "bad_name"), "{name}");
    }
    let unknown = json!({ "name": "one", "provider": "nonsense", "model": "m" });
    assert_eq!(plane.post("/instances", unknown).refusal(), (400, "bad_config"));
    assert_eq!(plane.post("/instances", json!({ "nme": "one" })).refusal(), (400, "invalid_body"));
    assert_eq!((folders(), plane.get("/instances").ok()["instances"].as_array().unwrap().len()), (0, 0));
}

#[test]
fn instance_is_archived_then_unarchived_or_deleted() {
    let plane = Plane::new();
    let pid = plane.started("one")["pid"].as_i64().unwrap();
    assert_eq!(plane.delete("/instances/one").refusal(), (409, "not_archived"));
    let archived = plane.post("/instances/one/archive", json!({})).ok();
    assert_eq!((&archived["status"], is_alive(pid)), (&json!("archived"), false), "it is stopped first");
    assert!(archived["archived_at"].is_string());
    let names = |path: &str| -> Vec<String> {
        let list = plane.get(path).ok();
        list["instances"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(names("/instances").is_empty());
    plane.create("two");
    assert_eq!(names("/instances?include_archived=true"), ["two", "one"], "active ones first");
    assert_eq!(plane.get("/instances/one").ok()["status"], "archived");
    assert_eq!(plane.get("/instances/one/details").ok()["instance"]["status"], "archived");
    for verb in ["start", "archive"] {
        let refused = plane.post(&format!("/instances/one/{verb}"), json!({}));
        assert_eq!(refused.refusal(), (409, "instance_archived"), "{verb}");
    }
    let id = archived["id"].as_str().unwrap();
    let namesake = plane.create("one");
    let back = |word: &str| plane.post(&format!("/instances/{word}/unarchive"), json!({}));
    assert_eq!(back(id).refusal(), (409, "name_taken"), "its id finds it, and its name is in use");
    plane.post(&format!("/instances/{}/archive", namesake["id"].as_str().unwrap()), json!({})).ok();
    plane.post("/instances", json!({ "name": "three", "port": archived["port"] })).ok();
    let returned = back(id).ok();
    assert_eq!(returned["status"], "stopped");
    assert_ne!(returned["port"], archived["port"], "its port belongs to three now, so it gets another");
    assert_eq!(plane.start("one")["status"], "running");
    plane.post("/instances/one/archive", json!({})).ok();
    let folder = plane.folder(&archived);
    assert_eq!(plane.delete(&format!("/instances/{id}")).status, 204);
    assert!(!folder.exists() && processes_of(&folder).is_empty());
    assert_eq!(plane.get(&format!("/instances/{id}")).refusal(), (404, "unknown_instance"));
}

#[test]
fn clone_copies_files_without_tokens_or_sessions() {
    let plane = Plane::new();
    let one = plane.started("one");
    let from = plane.folder(&one);
    fs::write(from.join("workspace/SOUL.md"), "Be kind.").unwrap();
    std::os::unix::fs::symlink("/etc/hostname", from.join("workspace/link")).unwrap();
    let answer = plane.post("/instances/one/clone", json!({ "new_name": "two", "port": free_port() }));
    assert_eq!(answer.status, 201);
    let two = answer.body;
    assert!(two["id"] != one["id"] && two["port"] != one["port"] && two["status"] == "stopped");
    let to = plane.folder(&two);
    assert_eq!(fs::read_to_string(to.join("workspace/SOUL.md")).unwrap(), "Be kind.");
    assert!(
        fs::symlink_metadata(to.join("workspace/link")).unwrap().is_symlink(),
        "the target of the link is not copied"
    );
    assert!(
        !to.join("token").exists() && !to.join("node").exists() && !to.join("memory/sessions.db").exists()
    );
    assert_eq!(plane.start("two")["status"], "running");
    let token = |folder: &std::path::Path| fs::read_to_string(folder.join("token")).unwrap();
    assert_ne!(token(&from), token(&to));
    for (body, expected) in [
        (json!({ "new_name": "two" }), (409, "name_taken")),
        (json!({ "new_name": "three", "port": one["port"] }), (409, "instance_port_taken")),
        (json!({ "new_name": "a b" }), (400, "bad_name")),
    ] {
        assert_eq!(plane.post("/instances/one/clone", body.clone()).refusal(), expected, "{body}");
    }
}

#[test]
fn instance_list_is_paginated() {
    let plane = Plane::new();
    ["a", "b", "c"].iter().for_each(|name| drop(plane.create(name)));
    let mut names: Vec<Value> = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = plane.get(&format!("/instances?limit=2{cursor}")).ok();
        names.extend(page["instances"].as_array().unwrap().iter().map(|one| one["name"].clone()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(plane.get("/instances?cursor=nonsense").refusal(), (400, "invalid_parameter"));
}

#[test]
fn half_created_folders_are_removed_at_server_start() {
    let mut plane = Plane::new();
    plane.create("one");
    plane.kill();
    let instances = plane.home().join("cp/instances");
    for (folder, mark) in
        [("half", ".creating"), ("unknown", "config.toml"), (".removed-gone", "config.toml")]
    {
        fs::create_dir_all(instances.join(folder)).unwrap();
        fs::write(instances.join(folder).join(mark), "").unwrap();
    }
    plane.serve();
    let left = |name: &str| instances.join(name).exists();
    assert_eq!((left("half"), left("unknown"), left(".removed-gone")), (false, true, false));
    assert_eq!(plane.status("one"), "stopped");
}

#[test]
fn repeated_idempotency_key_creates_one_instance() {
    let plane = Plane::new();
    let port = free_port();
    let create = |key: &str, name: &str| {
        plane.call(
            "POST",
            "/instances",
            Some(json!({ "name": name, "port": port })),
            &[("idempotency-key", key)],
        )
    };
    let first = create("k1", "one");
    let again = create("k1", "one");
    assert_eq!((first.status, again.status, again.replayed), (201, 201, true));
    assert_eq!(first.body, again.body);
    assert_eq!(create("k1", "other").refusal(), (422, "idempotency_key_used"));
    assert_eq!(create("k2", "one").refusal(), (409, "name_taken"), "another key is another call");
}

#[test]
fn ambiguous_name_of_archived_instances_is_refused() {
    let plane = Plane::new();
    let archived = || {
        let made = plane.create("one");
        plane.post("/instances/one/archive", json!({})).ok();
        format!("/instances/{}", made["id"].as_str().unwrap())
    };
    let first = archived();
    plane.create("one");
    assert_eq!(
        plane.delete("/instances/one").refusal(),
        (409, "not_archived"),
        "the name refers to the active one"
    );
    assert_eq!(plane.post("/instances/one/unarchive", json!({})).refusal(), (409, "name_taken"));
    plane.post("/instances/one/archive", json!({})).ok();
    assert_eq!(plane.delete("/instances/one").refusal(), (409, "ambiguous_name"));
    assert_eq!(plane.post("/instances/one/unarchive", json!({})).refusal(), (409, "ambiguous_name"));
    assert_eq!(plane.delete(&first).status, 204);
    plane.post("/instances/one/unarchive", json!({})).ok();
}

#[test]
fn empty_leftover_folder_is_removed_and_full_one_kept() {
    let mut plane = Plane::new();
    plane.kill();
    let instances = plane.home().join("cp/instances");
    let (empty, full) = (instances.join("empty"), instances.join("full"));
    std::fs::create_dir(&empty).unwrap();
    std::fs::create_dir_all(full.join("workspace")).unwrap();
    plane.serve();
    assert!(!empty.exists() && full.exists());
}
