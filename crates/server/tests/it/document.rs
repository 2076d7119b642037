//! The document and the router are one thing: what the document names answers, with the errors it promises.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::instance::Instance;

/// The table of `interfaces.md`, whole.
const PROMISED: &[&str] = &[
    "DELETE /api/v1/agents/{id}",
    "DELETE /api/v1/cron/{id}",
    "DELETE /api/v1/memory/{id}",
    "DELETE /api/v1/sessions/{key}",
    "GET /api/v1/agents",
    "GET /api/v1/agents/{id}",
    "GET /api/v1/agents/{id}/tools",
    "GET /api/v1/approvals",
    "GET /api/v1/cron",
    "GET /api/v1/cron/{id}",
    "GET /api/v1/events",
    "GET /api/v1/health",
    "GET /api/v1/memory",
    "GET /api/v1/metrics",
    "GET /api/v1/models",
    "GET /api/v1/openapi.json",
    "GET /api/v1/outbox",
    "GET /api/v1/pairing",
    "GET /api/v1/ready",
    "GET /api/v1/sessions",
    "GET /api/v1/sessions/{key}",
    "GET /api/v1/sessions/{key}/backlog",
    "GET /api/v1/sessions/{key}/stream",
    "GET /api/v1/sessions/{key}/transcript",
    "GET /api/v1/sessions/{key}/tree",
    "GET /api/v1/skills",
    "GET /api/v1/teams",
    "GET /api/v1/teams/{name}",
    "GET /api/v1/teams/{name}/members/{member}/plan",
    "GET /api/v1/teams/{name}/messages",
    "GET /api/v1/teams/{name}/tasks",
    "GET /api/v1/tools",
    "GET /api/v1/turns",
    "GET /api/v1/turns/{id}",
    "GET /api/v1/usage",
    "GET /api/v1/ws",
    "PATCH /api/v1/agents/{id}",
    "PATCH /api/v1/cron/{id}",
    "PATCH /api/v1/sessions/{key}",
    "POST /api/v1/agents",
    "POST /api/v1/approvals/{id}",
    "POST /api/v1/cron",
    "POST /api/v1/memory",
    "POST /api/v1/outbox/{id}/dismiss",
    "POST /api/v1/outbox/{id}/resend",
    "POST /api/v1/pairing",
    "POST /api/v1/route/explain",
    "POST /api/v1/sessions",
    "POST /api/v1/sessions/{key}/messages",
    "POST /api/v1/sessions/{key}/new",
    "POST /api/v1/sessions/{key}/stop",
    "POST /api/v1/teams",
    "POST /api/v1/teams/{name}/members",
    "POST /api/v1/teams/{name}/members/{member}/plan",
    "POST /api/v1/teams/{name}/messages",
    "POST /api/v1/teams/{name}/shutdown",
    "POST /api/v1/teams/{name}/tasks",
    "POST /api/v1/teams/{name}/tasks/{id}/claim",
    "POST /api/v1/teams/{name}/tasks/{id}/complete",
    "POST /api/v1/teams/{name}/tasks/{id}/release",
    "POST /api/v1/teams/{name}/tasks/{id}/start",
];

/// What there is besides, for the command line and the command center.
const BEYOND: &[&str] = &[
    "DELETE /api/v1/memory",
    "DELETE /api/v1/pairing",
    "DELETE /api/v1/teams/{name}/tasks/{id}",
    "GET /api/v1/agents/{id}/files/{name}",
    "GET /api/v1/approvals/{id}",
    "GET /api/v1/channels",
    "GET /api/v1/delegations",
    "GET /api/v1/media/{hash}",
    "GET /api/v1/history",
    "GET /api/v1/mcp",
    "GET /api/v1/memory/status",
    "GET /api/v1/memory/{id}",
    "GET /api/v1/runs",
    "GET /api/v1/runs/{id}",
    "GET /api/v1/sessions/{key}/context",
    "GET /api/v1/status",
    "GET /api/v1/teams/{name}/log",
    "GET /api/v1/tools/{name}/explain",
    "POST /api/v1/config/reload",
    "POST /api/v1/cron/{id}/run",
    "DELETE /api/v1/logins/{id}",
    "GET /api/v1/logins",
    "POST /api/v1/logins",
    "POST /api/v1/memory/import",
    "POST /api/v1/runs/{id}/dismiss",
    "POST /api/v1/sessions/cleanup",
    "POST /api/v1/sessions/{key}/commands",
    "POST /api/v1/sessions/{key}/compact",
    "PUT /api/v1/agents/{id}/files/{name}",
    "POST /api/v1/teams/{name}/tasks/{id}/assign",
    "POST /api/v1/teams/{name}/tasks/{id}/reopen",
    "PUT /api/v1/teams/{name}/lead",
];

fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &Value)| {
        let methods = item.as_object().unwrap().iter().filter(|(_, operation)| operation.is_object());
        methods
            .map(|(method, operation)| (method.to_uppercase(), path.clone(), operation.clone()))
            .collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

#[tokio::test]
async fn openapi_document_matches_the_routes() {
    let instance = Instance::start().await;
    let answer = instance.get("/api/v1/openapi.json").await;
    let document = answer.ok();
    assert_eq!(document["openapi"], "3.1.0");
    let operations = operations(document);
    let named: BTreeSet<String> =
        operations.iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    let promised: BTreeSet<String> = PROMISED.iter().chain(BEYOND).map(|route| (*route).to_owned()).collect();
    assert_eq!(named, promised);
    for (method, path, operation) in operations {
        let promised = &operation["responses"];
        assert!(promised["401"]["content"].is_object(), "{method} {path} promises no error shape");
        assert!(promised["default"].is_null(), "{method} {path} promises anything at all");
        let path = path.replace("{key}", "agent%3Anobody%3Anone").replace("{id}", "none");
        let request = instance.request(method.parse().unwrap(), &path);
        let response = request.send().await.unwrap();
        assert_ne!(response.status(), 405, "{method} {path}");
        let status = response.status().as_str().to_owned();
        assert!(promised[&status].is_object(), "{method} {path} answers {status} and does not say so");
        if response.status() == 404 {
            let body: Value = response.json().await.unwrap();
            assert_ne!(body["error"]["code"], "unknown_route", "{method} {path}");
        }
    }
}

#[tokio::test]
async fn openapi_document_references_resolve() {
    let instance = Instance::start().await;
    let answer = instance.get("/api/v1/openapi.json").await;
    let document = answer.ok();
    let mut found = BTreeSet::new();
    references(document, &mut found);
    assert!(
        found.contains("#/components/schemas/ErrorBody") && found.contains("#/components/schemas/AgentSpec")
    );
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    let bodies =
        operations(document).into_iter().filter(|(method, ..)| method == "POST" || method == "PATCH");
    let without =
        ["/stop", "/new", "/compact", "/resend", "/dismiss", "/logins", "/run", "/reload", "/reopen"];
    for (method, path, operation) in bodies {
        let expected = !without.iter().any(|end| path.ends_with(end));
        assert_eq!(operation["requestBody"].is_object(), expected, "{method} {path}");
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[tokio::test]
async fn openapi_document_describes_socket_frames() {
    let instance = Instance::start().await;
    let answer = instance.get("/api/v1/openapi.json").await;
    let frame = answer.ok()["components"]["schemas"]["Frame"].to_string();
    for word in [
        "turn.delta",
        "turn.ended",
        "delegate.started",
        "approval.requested",
        "replay.gap",
        "session_key",
        "is_whole",
    ] {
        assert!(frame.contains(word), "{word} is not in {frame}");
    }
}
