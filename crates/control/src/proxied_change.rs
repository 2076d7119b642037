//! Changes of an instance that are made through the control plane. A change is audited before it is forwarded, so
//! that nothing changes unrecorded, and again with its result. Both entries have the hash of the changed resource
//! where it can be read. A message to an agent gets one entry, because there are many and nothing to hash. A socket
//! gets one entry when it first carries more than reads.

use std::time::Duration;

use hyper::Method;
use polyclaw_domain::audit::{AuditEntry, content_hash};
use polyclaw_domain::instance::TokenAccess;
use polyclaw_store::registry::InstanceRecord;

use crate::access::ControlCaller;
use crate::control::Control;
use crate::error::Result;

const HASH_TIMEOUT: Duration = Duration::from_secs(3);
/// How much of a path is recorded.
const MAX_SHOWN_PATH_LEN: usize = 200;
/// Resources of an instance that can be read by id.
const RESOURCE_NOUNS: [&str; 6] = ["agents", "approvals", "memory", "runs", "sessions", "teams"];

/// The kind of a forwarded call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxiedCallKind {
    Read,
    /// Sends a message to an agent.
    Message,
    /// Works with what exists: starts, ends or answers something.
    Work,
    /// Creates, changes or removes part of an instance: agents, rules, memory, cron jobs, pairings.
    Change,
}

impl ProxiedCallKind {
    /// Classifies a call as the instance receives it. Unknown calls count as changes.
    pub fn from_request(method: &Method, path: &str) -> Self {
        let words: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        match (method, words.as_slice()) {
            (&Method::GET | &Method::HEAD | &Method::OPTIONS, _) => Self::Read,
            (&Method::POST, ["v1", "chat", "completions"] | ["v1", "responses"]) => Self::Message,
            (method, ["api", "v1", words @ ..]) => Self::from_api_request(method, words),
            _ => Self::Change,
        }
    }

    fn from_api_request(method: &Method, words: &[&str]) -> Self {
        match (method, words) {
            (&Method::POST, ["route", "explain"]) => Self::Read,
            (&Method::POST, ["sessions", _, "messages"]) => Self::Message,
            (&Method::POST, ["sessions"] | ["approvals", _] | ["teams", _, "shutdown"]) => Self::Work,
            // A team works for the person who asked its lead: writing to it over the API has the owner's authority.
            (&Method::POST, ["teams", _, "tasks", _, "claim" | "start" | "release"]) => Self::Work,
            (&Method::POST, ["sessions", _, "commands" | "compact" | "new" | "stop"]) => Self::Work,
            (&Method::POST, ["runs" | "outbox", _, "dismiss" | "resend"] | ["cron", _, "run"]) => Self::Work,
            // Selects the agent and the model of a session, as chat commands do.
            (&Method::PATCH, ["sessions", _]) => Self::Work,
            _ => Self::Change,
        }
    }

    pub fn required_access(self) -> TokenAccess {
        match self {
            Self::Read => TokenAccess::Read,
            Self::Message | Self::Work => TokenAccess::Operate,
            Self::Change => TokenAccess::Admin,
        }
    }
}

/// Tools with the API call that has the same effect.
const TOOL_EQUIVALENT_CALLS: [(&str, Method, &str); 10] = [
    ("agent_create", Method::POST, "/api/v1/agents"),
    ("agent_update", Method::PATCH, "/api/v1/agents/id"),
    ("cron_add", Method::POST, "/api/v1/cron"),
    ("cron_remove", Method::DELETE, "/api/v1/cron/id"),
    ("cron_run", Method::POST, "/api/v1/cron/id/run"),
    ("memory_forget", Method::DELETE, "/api/v1/memory/id"),
    ("memory_store", Method::POST, "/api/v1/memory"),
    ("session_set_agent", Method::PATCH, "/api/v1/sessions/id"),
    ("session_set_model", Method::PATCH, "/api/v1/sessions/id"),
    ("sessions_send", Method::POST, "/api/v1/sessions/id/messages"),
];

/// Returns the access needed to approve a tool call: the same as for doing it directly. A tool without an equivalent
/// call, above all a command on the machine, may do anything and needs full access.
pub fn access_to_approve(tool: &str) -> TokenAccess {
    let twin = TOOL_EQUIVALENT_CALLS.iter().find(|(name, ..)| *name == tool);
    twin.map_or(ProxiedCallKind::Change, |(_, method, path)| ProxiedCallKind::from_request(method, path))
        .required_access()
}

/// A recorded change whose result is still open.
pub struct ProxiedChange {
    one: InstanceRecord,
    entry: AuditEntry,
    resource: Option<String>,
}

impl Control {
    /// Records a call that is about to be forwarded. Returns `None` if it only reads or needs no second entry.
    pub async fn record_proxied_change(
        &self,
        by: &ControlCaller,
        word: &str,
        (method, path, body): (&Method, &str, &[u8]),
    ) -> Result<Option<ProxiedChange>> {
        let action = match ProxiedCallKind::from_request(method, path) {
            ProxiedCallKind::Read => return Ok(None),
            ProxiedCallKind::Message => "gateway.message",
            ProxiedCallKind::Change if is_dry_run(path, body) => return Ok(None),
            ProxiedCallKind::Work | ProxiedCallKind::Change => "gateway.ask",
        };
        let one = self.find_active(word).await?;
        let entry = self.proxied_entry(by, action, &one, &format!("{method} {path}"));
        if action != "gateway.ask" {
            self.record_audit(entry).await?;
            return Ok(None);
        }
        let thing = resource_path(path);
        let before = self.hash_resource(&one, thing.as_deref()).await;
        let entry = AuditEntry { before, ..entry };
        self.record_audit(entry.clone()).await?;
        Ok(Some(ProxiedChange { one, entry, resource: thing }))
    }

    /// Records that a socket carries more than reads.
    pub async fn record_socket(&self, by: &ControlCaller, word: &str, path: &str) -> Result<()> {
        let one = self.find_active(word).await?;
        self.record_audit(self.proxied_entry(by, "gateway.socket", &one, path)).await
    }

    fn proxied_entry(
        &self,
        by: &ControlCaller,
        action: &str,
        one: &InstanceRecord,
        asked: &str,
    ) -> AuditEntry {
        let shown: String = asked.chars().take(MAX_SHOWN_PATH_LEN).collect();
        AuditEntry { detail: format!("{}: {shown}", one.name), ..self.audit_entry(by, action, &one.id) }
    }

    /// Records the result of a change.
    pub async fn record_proxied_result(&self, change: ProxiedChange, status: u16) -> Result<()> {
        let ProxiedChange { one, entry, resource: thing } = change;
        let entry = AuditEntry {
            action: "gateway.done".to_owned(),
            after: self.hash_resource(&one, thing.as_deref()).await,
            detail: format!("{} → {status}", entry.detail),
            at: self.now(),
            ..entry
        };
        self.record_audit(entry).await
    }

    /// Hashes a resource as the instance shows it. Returns `None` if it cannot be read.
    async fn hash_resource(&self, one: &InstanceRecord, thing: Option<&str>) -> Option<String> {
        let (status, shown) = self.request_instance(one, Method::GET, thing?, HASH_TIMEOUT).await.ok()?;
        (status == 200).then(|| content_hash(shown.to_string().as_bytes()))
    }
}

/// Whether the call is a dry run.
fn is_dry_run(path: &str, body: &[u8]) -> bool {
    let asked = || serde_json::from_slice::<serde_json::Value>(body);
    path == "/api/v1/sessions/cleanup" && asked().is_ok_and(|asked| asked["dry_run"] == true)
}

/// Returns the resource that a path belongs to. A change of a team's task is a change of the team.
fn resource_path(path: &str) -> Option<String> {
    let mut parts = path.strip_prefix("/api/v1/")?.split('/');
    let noun = parts.next().filter(|noun| RESOURCE_NOUNS.contains(noun))?;
    let id = parts.next().filter(|id| !id.is_empty())?;
    Some(format!("/api/v1/{noun}/{id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxied_requests_are_classified_by_effect() {
        for (method, path, expected) in [
            (Method::GET, "/api/v1/agents", ProxiedCallKind::Read),
            (Method::OPTIONS, "/api/v1/agents", ProxiedCallKind::Read),
            (Method::POST, "/api/v1/route/explain", ProxiedCallKind::Read),
            (Method::POST, "/v1/chat/completions", ProxiedCallKind::Message),
            (Method::POST, "/v1/responses", ProxiedCallKind::Message),
            (Method::POST, "/api/v1/sessions/agent%3Amain%3Amain/messages", ProxiedCallKind::Message),
            (Method::POST, "/api/v1/sessions", ProxiedCallKind::Work),
            (Method::POST, "/api/v1/sessions/k/stop", ProxiedCallKind::Work),
            (Method::PATCH, "/api/v1/sessions/k", ProxiedCallKind::Work),
            (Method::POST, "/api/v1/approvals/a", ProxiedCallKind::Work),
            (Method::POST, "/api/v1/runs/r/dismiss", ProxiedCallKind::Work),
            (Method::POST, "/api/v1/outbox/1/resend", ProxiedCallKind::Work),
            (Method::POST, "/api/v1/cron/c/run", ProxiedCallKind::Work),
            (Method::POST, "/api/v1/teams/t/shutdown", ProxiedCallKind::Work),
            (Method::POST, "/api/v1/teams/t/tasks/1/claim", ProxiedCallKind::Work),
            (Method::POST, "/api/v1/teams", ProxiedCallKind::Change),
            (Method::POST, "/api/v1/teams/t/messages", ProxiedCallKind::Change),
            (Method::POST, "/api/v1/teams/t/members", ProxiedCallKind::Change),
            (Method::POST, "/api/v1/teams/t/tasks", ProxiedCallKind::Change),
            (Method::POST, "/api/v1/teams/t/tasks/1/complete", ProxiedCallKind::Change),
            (Method::DELETE, "/api/v1/sessions/k", ProxiedCallKind::Change),
            (Method::POST, "/api/v1/sessions/cleanup", ProxiedCallKind::Change),
            (Method::POST, "/api/v1/agents", ProxiedCallKind::Change),
            (Method::PATCH, "/api/v1/agents/ops", ProxiedCallKind::Change),
            (Method::PUT, "/api/v1/agents/ops/files/SOUL.md", ProxiedCallKind::Change),
            (Method::POST, "/api/v1/memory", ProxiedCallKind::Change),
            (Method::POST, "/api/v1/cron", ProxiedCallKind::Change),
            (Method::POST, "/api/v1/pairing", ProxiedCallKind::Change),
            (Method::POST, "/api/v1/config/reload", ProxiedCallKind::Change),
            (Method::POST, "/api/v1/nothing/known", ProxiedCallKind::Change),
            (Method::POST, "/sessions", ProxiedCallKind::Change),
        ] {
            assert_eq!(ProxiedCallKind::from_request(&method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn approving_a_call_needs_the_access_of_that_call() {
        for (tool, needed) in [
            ("agent_create", TokenAccess::Admin),
            ("agent_update", TokenAccess::Admin),
            ("cron_add", TokenAccess::Admin),
            ("memory_store", TokenAccess::Admin),
            ("cron_run", TokenAccess::Operate),
            ("session_set_agent", TokenAccess::Operate),
            ("sessions_send", TokenAccess::Operate),
            ("shell", TokenAccess::Admin),
            ("write_file", TokenAccess::Admin),
            ("some_server__its_tool", TokenAccess::Admin),
        ] {
            assert_eq!(access_to_approve(tool), needed, "{tool}");
        }
    }

    #[test]
    fn cleanup_dry_run_is_detected() {
        let cleanup = "/api/v1/sessions/cleanup";
        assert!(is_dry_run(cleanup, br#"{"dry_run":true}"#));
        assert!(!is_dry_run(cleanup, b"{}") && !is_dry_run("/api/v1/agents", br#"{"dry_run":true}"#));
    }

    #[test]
    fn resource_path_is_the_nearest_readable_route() {
        for (path, expected) in [
            ("/api/v1/agents/ops", Some("/api/v1/agents/ops")),
            ("/api/v1/teams/t/tasks/1/claim", Some("/api/v1/teams/t")),
            ("/api/v1/agents", None),
            ("/api/v1/config/reload", None),
            ("/v1/responses", None),
        ] {
            assert_eq!(resource_path(path).as_deref(), expected, "{path}");
        }
    }
}
