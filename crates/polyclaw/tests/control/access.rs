//! Authentication and scopes.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::plane::{Plane, free_port, wait};

#[test]
fn missing_token_and_foreign_host_or_origin_are_refused() {
    let plane = Plane::new();
    plane.create("one");
    let get = |headers: &[(&str, &str)]| plane.call("GET", "/instances", None, headers);
    let mode = fs::metadata(plane.home().join("cp/token")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    for path in [
        "/instances",
        "/instances/one",
        "/instances/one/config",
        "/health",
        "/metrics",
        "/openapi.json",
        "/tokens",
        "/audit",
        "/instances/one/gateway/sessions",
        "/instances/one/logs",
    ] {
        assert_eq!(
            plane.call("GET", path, None, &[("authorization", "")]).refusal(),
            (401, "unauthorized"),
            "{path}"
        );
        let wrong = plane.call("GET", path, None, &[("authorization", "Bearer wrong")]);
        assert_eq!(wrong.refusal(), (401, "unauthorized"), "{path}");
    }
    assert_eq!(get(&[("host", "evil.example.com")]).refusal(), (403, "host_not_allowed"));
    assert_eq!(get(&[("origin", "https://evil.example.com")]).refusal(), (403, "origin_not_allowed"));
    assert_eq!(get(&[("origin", &plane.url())]).status, 200);
    for (path, expected) in
        [("/nothing", (404, "unknown_route")), ("/instances/one/nothing", (404, "unknown_route"))]
    {
        assert_eq!(plane.get(path).refusal(), expected);
    }
    assert_eq!(plane.call("DELETE", "/version", None, &[]).refusal(), (405, "method_not_allowed"));
    for method in ["TRACE", "PROPFIND"] {
        let refused = plane.call(method, "/instances/one/gateway/sessions", None, &[]);
        assert_eq!(refused.refusal(), (405, "method_not_allowed"), "{method}");
    }
    assert_eq!(plane.get("/version").ok()["scope"], "admin", "the holder of the server's own token");
    let large = json!({ "name": "x".repeat(2 << 20) });
    assert_eq!(plane.post("/instances", large).refusal(), (413, "body_too_large"));
    let plain =
        plane.call("POST", "/instances", Some(json!({ "name": "x" })), &[("content-type", "text/plain")]);
    assert_eq!(plain.refusal(), (415, "unsupported_content_type"));
}

#[test]
fn every_documented_route_requires_token_and_scope() {
    let plane = Plane::new();
    plane.create("one");
    let read = plane.post("/tokens", json!({ "name": "r", "scope": "read" })).ok();
    let bearer = format!("Bearer {}", read["secret"].as_str().unwrap());
    let document = plane.get("/openapi.json").ok();
    for (path, method) in
        [("/api/instances", "get"), ("/api/instances", "post"), ("/api/instances/{id}", "get")]
    {
        assert!(document["paths"][path][method].is_object(), "{method} {path}");
    }
    // A login has the access of the token that it was created with.
    let looks = ["/config/validate", "/config/diff"];
    let mut routes = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.strip_prefix("/api").unwrap().replace("{id}", "one");
        for method in item.as_object().unwrap().keys().map(|method| method.to_uppercase()) {
            let call = |bearer: &str| plane.call(&method, &path, None, &[("authorization", bearer)]).status;
            let promised = &item[method.to_lowercase()]["responses"];
            let text_of = |status: u16| {
                // Responses of an instance are passed through.
                let known = promised[&status.to_string()].is_object() || path.contains("/gateway/");
                assert!(known, "{method} {path} answers {status}, which is not documented");
                status
            };
            assert_eq!(text_of(call("")), 401, "{method} {path}");
            let changes = method != "GET"
                && !looks.iter().any(|end| path.ends_with(end))
                && !path.starts_with("/logins");
            // Fetching messages leases them.
            let takes = path.ends_with("/messages/pending");
            // The scope `read` does not show tokens, the audit log or paths on the machine.
            let closed = ["/tokens", "/audit", "/import"].iter().any(|begin| path.starts_with(begin));
            let guarded = changes || takes || closed;
            assert_eq!(text_of(call(&bearer)) == 403, guarded, "{method} {path}");
            assert_eq!(promised["default"].is_object(), path.contains("/gateway/"), "{method} {path}");
            routes += 1;
        }
    }
    assert!(routes > 25, "{routes}");
}

#[test]
fn token_allows_its_scope_until_it_is_revoked() {
    let plane = Plane::new();
    plane.create("one");
    let make = |scope: &str| plane.post("/tokens", json!({ "name": scope, "scope": scope })).ok();
    let (read, operate, admin) = (make("read"), make("operate"), make("admin"));
    let as_ = |token: &Value, method: &str, path: &str, body: Option<Value>| {
        let bearer = format!("Bearer {}", token["secret"].as_str().unwrap());
        plane.call(method, path, body, &[("authorization", &bearer)]).status
    };
    let port = free_port();
    let body = || Some(json!({ "name": "two", "port": port }));
    for (token, statuses) in
        [(&read, [200, 403, 403, 403]), (&operate, [200, 200, 403, 403]), (&admin, [200, 409, 201, 200])]
    {
        let bearer = format!("Bearer {}", token["secret"].as_str().unwrap());
        let version = plane.call("GET", "/version", None, &[("authorization", &bearer)]).ok();
        assert_eq!(version["scope"], token["scope"], "{version}");
        let found = [
            as_(token, "GET", "/instances", None),
            as_(token, "POST", "/instances/one/start", None),
            as_(token, "POST", "/instances", body()),
            as_(token, "GET", "/tokens", None),
        ];
        assert_eq!(found, statuses, "{}", token["name"]);
    }
    assert_eq!(as_(&read, "GET", "/instances/one/gateway/sessions", None), 200);
    assert_eq!(as_(&read, "POST", "/instances/one/gateway/sessions", Some(json!({}))), 403);
    assert_eq!(as_(&operate, "POST", "/instances/one/gateway/sessions", Some(json!({}))), 201);
    let listed = plane.get("/tokens").ok();
    assert!(!listed.to_string().contains(read["secret"].as_str().unwrap()), "a token is shown once");
    assert_eq!(plane.delete(&format!("/tokens/{}", read["id"].as_str().unwrap())).status, 204);
    assert_eq!(as_(&read, "GET", "/instances", None), 401);
    assert_eq!(plane.delete("/tokens/nothing").refusal(), (404, "unknown_token"));
    let registry = fs::read(plane.home().join("cp/registry.db")).unwrap();
    let log = fs::read(plane.home().join("cp/registry.db-wal")).unwrap_or_default();
    for token in [&read, &operate, &admin] {
        let secret = token["secret"].as_str().unwrap().as_bytes();
        assert!(
            ![&registry, &log].iter().any(|bytes| bytes.windows(secret.len()).any(|window| window == secret))
        );
    }
}

#[test]
fn gateway_changes_need_admin_and_messages_need_operate() {
    let plane = Plane::new();
    plane.started("one");
    let make = |scope: &str| plane.post("/tokens", json!({ "name": scope, "scope": scope })).ok();
    let (operate, admin) = (make("operate"), make("admin"));
    let as_ = |token: &Value, method: &str, path: &str, body: &Value| {
        let bearer = format!("Bearer {}", token["secret"].as_str().unwrap());
        let path = format!("/instances/one/gateway/{path}");
        plane.call(method, &path, Some(body.clone()), &[("authorization", &bearer)]).status
    };
    let session = "sessions/agent%3Amain%3Aweb%3Adm%3Ame";
    for (method, path, body, status) in [
        ("POST", &*format!("{session}/messages"), json!({ "text": "hi" }), 202),
        ("POST", &format!("{session}/stop"), json!({}), 200),
        ("POST", &format!("{session}/commands"), json!({ "text": "/status" }), 200),
        ("POST", "approvals/none", json!({ "decision": "deny" }), 404),
        ("POST", "runs/none/dismiss", json!({}), 404),
    ] {
        assert_eq!(as_(&operate, method, path, &body), status, "{method} {path}");
    }
    for (method, path, body, status) in [
        ("POST", "agents", json!({ "agent_id": "ops", "name": "Ops" }), 201),
        ("PATCH", "agents/ops", json!({ "policy": { "tools": { "deny": [] } } }), 200),
        ("POST", "memory", json!({ "content": "a fact" }), 201),
        ("POST", "config/reload", json!({}), 200),
        ("POST", "sessions/cleanup", json!({ "dry_run": false }), 200),
        ("DELETE", "agents/ops", json!({}), 204),
        ("DELETE", session, json!({}), 204),
    ] {
        assert_eq!(as_(&operate, method, path, &body), 403, "{method} {path}");
        assert_eq!(as_(&admin, method, path, &body), status, "{method} {path}");
    }
}

#[test]
fn gateway_does_not_proxy_instance_logins() {
    let plane = Plane::new();
    plane.started("one");
    for path in ["logins", "api/v1/logins"] {
        let refused = plane.post(&format!("/instances/one/gateway/{path}"), json!({}));
        assert_eq!(refused.refusal(), (404, "unknown_route"), "{path}");
    }
    let token = plane.post("/tokens", json!({ "name": "x", "scope": "operate" })).ok();
    let bearer = format!("Bearer {}", token["secret"].as_str().unwrap());
    let login = plane.call("POST", "/logins", None, &[("authorization", &bearer)]);
    assert!(login.ok()["code"].is_string(), "a login of the control plane ends with the token");
}

#[test]
fn wrong_tokens_are_rate_limited_and_valid_ones_are_not() {
    let plane = Plane::new();
    let guess = |n: u32| {
        plane.call("GET", "/instances", None, &[("authorization", &format!("Bearer guess{n}"))]).status
    };
    let statuses: Vec<u16> = (0..36).map(guess).collect();
    assert_eq!((statuses[0], statuses[35]), (401, 429));
    assert_eq!(plane.get("/instances").status, 200);
    let made = plane.post("/tokens", json!({ "name": "r", "scope": "read" })).ok();
    let bearer = format!("Bearer {}", made["secret"].as_str().unwrap());
    let known = plane.call("GET", "/instances", None, &[("authorization", &bearer)]);
    assert_eq!(known.status, 200, "callers with a known token are not delayed");
}

#[test]
fn instance_token_cannot_call_operator_routes() {
    let plane = Plane::new();
    let pid = plane.started("one")["pid"].as_i64().unwrap();
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let value =
        |name: &str| environment.split('\0').find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='));
    let own = value("POLYCLAW_CP_TOKEN").unwrap();
    assert_eq!(value("POLYCLAW_CP_URL"), Some(plane.url().as_str()));
    assert!(value("POLYCLAW_INSTANCE_ID").is_some() && !environment.contains(&plane.token()));
    let refused = plane.call("GET", "/instances", None, &[("authorization", &format!("Bearer {own}"))]);
    assert_eq!(refused.refusal(), (403, "wrong_scope"));
}

#[test]
fn no_token_option_is_refused_off_loopback() {
    let plane = Plane::idle();
    let port = free_port().to_string();
    let (code, reply) = plane.run(&["control", "serve", "--no-token", "--bind", "0.0.0.0", "--port", &port]);
    assert_eq!((code, reply["error"]["code"].as_str()), (2, Some("usage")));
    assert!(!plane.home().join("cp").exists(), "it fails before it creates or opens anything");
}

/// Both halves of a browser's login.
struct Browser {
    id: String,
    cookie: String,
    key: String,
}

impl Browser {
    /// Logs in with a one-time code created by the caller with this header.
    fn log_in(plane: &Plane, authorization: &str) -> Self {
        let login = plane.call("POST", "/logins", None, &[("authorization", authorization)]).ok();
        let answer = redeem(plane, login["code"].as_str().unwrap());
        let cookie = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        assert!(!cookie.contains(&plane.token()));
        let body: serde_json::Value = wait(answer.json()).unwrap();
        let text = |field: &str| body[field].as_str().unwrap().to_owned();
        Self { id: text("id"), key: text("key"), cookie: cookie.split(';').next().unwrap().to_owned() }
    }

    fn call(&self, plane: &Plane, method: &str, path: &str) -> u16 {
        let shown = [("authorization", ""), ("cookie", self.cookie.as_str()), ("polyclaw-login", &self.key)];
        plane.call(method, path, None, &shown).status
    }

    /// Calls as another program that received the cookie would.
    fn replay(&self, plane: &Plane, method: &str, path: &str) -> u16 {
        plane.call(method, path, None, &[("authorization", ""), ("cookie", &self.cookie)]).status
    }
}

fn redeem(plane: &Plane, code: &str) -> reqwest::Response {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    wait(client.post(format!("{}/login", plane.url())).json(&json!({ "code": code })).send()).unwrap()
}

#[test]
fn browser_login_link_works_once() {
    let plane = Plane::new();
    let login = plane.post("/logins", json!({})).ok();
    let link = format!("{}{}", plane.url(), login["path"].as_str().unwrap());
    let client =
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    wait(async {
        // The page is in the folder of its files; it exchanges the code for a login itself.
        let opened = client.get(&link).send().await.unwrap();
        let place = opened.headers()["location"].to_str().unwrap();
        assert_eq!(opened.status().as_u16(), 303);
        assert!(place.starts_with("/app/?code=") && !opened.headers().contains_key("set-cookie"), "{place}");
        let page = client.get(format!("{}/api/docs", plane.url())).send().await.unwrap();
        let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.contains("default-src 'self'") && !policy.contains("unsafe-inline"), "{policy}");
    });
    let code = login["code"].as_str().unwrap();
    assert_eq!([redeem(&plane, code), redeem(&plane, code)].map(|one| one.status().as_u16()), [201, 401]);
    let document = plane.get("/openapi.json").ok();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    assert!(document["paths"]["/api/instances/{id}/config"]["patch"].is_object());
}

#[test]
fn stolen_login_cookie_alone_is_unauthorized() {
    let plane = Plane::new();
    plane.create("one");
    let owner = format!("Bearer {}", plane.token());
    let browser = Browser::log_in(&plane, &owner);
    assert_eq!(browser.call(&plane, "GET", "/instances"), 200);
    for (method, path) in [
        ("GET", "/instances"),
        ("GET", "/tokens"),
        ("POST", "/tokens"),
        ("POST", "/logins"),
        ("GET", "/instances/one/messages/pending"),
        ("POST", "/instances/one/start"),
        ("GET", "/instances/one/gateway/agents"),
    ] {
        assert_eq!(browser.replay(&plane, method, path), 401, "{method} {path}");
    }
}

#[test]
fn logins_are_listed_and_revoked_and_survive_restart() {
    let mut plane = Plane::new();
    let owner = format!("Bearer {}", plane.token());
    let reader = plane.post("/tokens", json!({ "name": "reader", "scope": "read" })).ok();
    let bearer = format!("Bearer {}", reader["secret"].as_str().unwrap());
    let (mine, theirs) = (Browser::log_in(&plane, &owner), Browser::log_in(&plane, &bearer));
    let ids = |authorization: &str| {
        let listed = plane.call("GET", "/logins", None, &[("authorization", authorization)]).ok();
        listed["logins"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let (all, own): (Vec<String>, Vec<String>) = (ids(&owner), ids(&bearer));
    assert_eq!((all.len(), own), (2, vec![theirs.id.clone()]), "a reader sees its own logins");
    let foreign = format!("/logins/{}", mine.id);
    assert_eq!(plane.call("DELETE", &foreign, None, &[("authorization", &bearer)]).status, 404);
    plane.kill();
    plane.serve();
    assert_eq!(mine.call(&plane, "GET", "/instances"), 200);
    assert_eq!(mine.call(&plane, "DELETE", &format!("/logins/{}", theirs.id)), 204);
    assert_eq!(
        (theirs.call(&plane, "GET", "/instances"), mine.call(&plane, "GET", "/instances")),
        (401, 200)
    );
    assert_eq!(mine.call(&plane, "DELETE", "/logins/current"), 204);
    assert_eq!(mine.call(&plane, "GET", "/instances"), 401);
}

#[test]
fn only_allowed_hosts_reach_control_plane_and_hint_names_option() {
    let mut plane = Plane::idle();
    let named = |plane: &Plane, host: &str| plane.call("GET", "/version", None, &[("host", host)]);
    plane.environment = vec![("POLYCLAW_CP_ALLOWED_HOSTS", "cp.example.com, 10.0.0.5".to_owned())];
    plane.serve_with(&["control", "serve", "--allow-host", "Other.example.com"]);
    for host in ["cp.example.com", "10.0.0.5:18800", "other.example.com", "localhost"] {
        assert_eq!(named(&plane, host).status, 200, "{host}");
    }
    let refused = named(&plane, "evil.example.com");
    assert_eq!(refused.refusal(), (403, "host_not_allowed"));
    assert!(refused.body["error"]["hint"].as_str().unwrap().contains("--allow-host"), "{}", refused.body);
    let unknown = plane.get("/nothing");
    assert!(unknown.body["error"]["hint"].as_str().unwrap().contains("GET /api/openapi.json"));
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", plane.port)).unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example.com\r\n\r\n").unwrap();
    let mut line = [0; 12];
    stream.read_exact(&mut line).unwrap();
    assert_eq!(&line, b"HTTP/1.1 400");
}

#[test]
fn browser_login_has_scope_of_its_token_until_revoked() {
    let plane = Plane::new();
    plane.create("one");
    let reader = plane.post("/tokens", json!({ "name": "reader", "scope": "read" })).ok();
    let bearer = format!("Bearer {}", reader["secret"].as_str().unwrap());
    let browser = Browser::log_in(&plane, &bearer);
    assert_eq!(browser.call(&plane, "GET", "/instances"), 200);
    let refused = [("POST", "/instances/one/start"), ("GET", "/tokens")];
    assert_eq!(refused.map(|(method, path)| browser.call(&plane, method, path)), [403, 403]);
    plane.call("DELETE", &format!("/tokens/{}", reader["id"].as_str().unwrap()), None, &[]);
    assert_eq!(browser.call(&plane, "GET", "/instances"), 401, "a login ends with its token");
}
