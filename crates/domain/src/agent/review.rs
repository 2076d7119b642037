//! Validates agent specs against an instance.

use super::AgentSpec;
use crate::command;
use crate::config::suggest_word;
use crate::policy;
use crate::provider::ModelRef;
use crate::sanitize::is_hidden;

/// What an instance provides, to validate specs against.
#[derive(Clone, Debug, Default)]
pub struct SpecReviewContext {
    pub tools: Vec<String>,
    /// Provider names; empty if they are only detected later.
    pub providers: Vec<String>,
    pub mcp_servers: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecProblem {
    pub path: String,
    pub message: String,
    pub hint: String,
}

const MAX_AGENT_NAME_CHARS: usize = 80;

/// Returns all problems of a spec.
pub fn review_spec(spec: &AgentSpec, known: &SpecReviewContext) -> Vec<SpecProblem> {
    let tools: Vec<&str> = known.tools.iter().map(String::as_str).collect();
    let words = policy::find_invalid_entries(&spec.policy.tools, &tools, &spec.mcp);
    let words = words.into_iter().map(|unknown| SpecProblem {
        path: format!("policy.tools.{}", unknown.path),
        message: unknown.message,
        hint: unknown.hint,
    });
    check_name(spec)
        .into_iter()
        .chain(check_command_clash(spec))
        .chain(check_workspace(spec))
        .chain(check_identity(spec))
        .chain(words)
        .chain(check_models(spec, known))
        .chain(check_mcp_servers(spec, known))
        .collect()
}

fn check_name(spec: &AgentSpec) -> Option<SpecProblem> {
    let is_plain = !spec.name.trim().is_empty()
        && spec.name.chars().count() <= MAX_AGENT_NAME_CHARS
        && !spec.name.chars().any(|c| c.is_control() || is_hidden(c));
    (!is_plain).then(|| SpecProblem {
        path: "name".to_owned(),
        message: format!("a name must be one line of 1 to {MAX_AGENT_NAME_CHARS} characters"),
        hint: String::new(),
    })
}

/// `/<id>` addresses an agent, so an id that is a command could never be addressed.
fn check_command_clash(spec: &AgentSpec) -> Option<SpecProblem> {
    command::is_reserved_id(&spec.agent_id).then(|| SpecProblem {
        path: "agent_id".to_owned(),
        message: format!("/{} is a command", spec.agent_id),
        hint: "use another id".to_owned(),
    })
}

fn check_identity(spec: &AgentSpec) -> Vec<SpecProblem> {
    let problem = |(field, message): (&str, &str)| SpecProblem {
        path: format!("identity.{field}"),
        message: message.to_owned(),
        hint: String::new(),
    };
    spec.identity.find_problems().into_iter().map(problem).collect()
}

fn check_workspace(spec: &AgentSpec) -> Option<SpecProblem> {
    let (message, hint) = spec.workspace.find_problem()?;
    Some(SpecProblem { path: "workspace".to_owned(), message, hint })
}

fn check_models(spec: &AgentSpec, known: &SpecReviewContext) -> Vec<SpecProblem> {
    let own = spec.defaults.model.iter().map(|model| ("defaults.model".to_owned(), model));
    let others = spec.defaults.fallbacks.iter().enumerate();
    let others = others.map(|(at, model)| (format!("defaults.fallbacks[{at}]"), model));
    own.chain(others).filter_map(|(path, model)| check_provider(path, model, &known.providers)).collect()
}

fn check_provider(path: String, model: &ModelRef, providers: &[String]) -> Option<SpecProblem> {
    if providers.is_empty() || providers.contains(&model.provider) {
        return None;
    }
    let names: Vec<&str> = providers.iter().map(String::as_str).collect();
    let message = format!("{model} uses provider {:?}, which is not configured", model.provider);
    Some(SpecProblem { path, message, hint: suggest_word(&model.provider, &names) })
}

fn check_mcp_servers(spec: &AgentSpec, known: &SpecReviewContext) -> Vec<SpecProblem> {
    let names: Vec<&str> = known.mcp_servers.iter().map(String::as_str).collect();
    let unknown = spec
        .mcp
        .iter()
        .enumerate()
        .filter(|(_, server)| *server != "*" && !known.mcp_servers.contains(server));
    let problem = |(at, server): (usize, &String)| SpecProblem {
        path: format!("mcp[{at}]"),
        message: format!("there is no MCP server {server:?}"),
        hint: suggest_word(server, &names),
    };
    unknown.map(problem).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(more: serde_json::Value) -> AgentSpec {
        let mut whole = json!({ "agent_id": "ops", "name": "Ops" });
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    fn known() -> SpecReviewContext {
        SpecReviewContext {
            tools: vec!["look".into()],
            providers: vec!["openai".into()],
            mcp_servers: vec!["files".into()],
        }
    }

    #[test]
    fn spec_review_reports_all_problems_with_suggestions() {
        let bad = spec(json!({
            "defaults": { "model": "opnai/x", "fallbacks": ["openai/y", "else/z"] },
            "policy": { "tools": { "allow": ["lok", "group:fz"], "deny": ["shell"] } },
            "mcp": ["fils"],
        }));
        let texts: Vec<String> = review_spec(&bad, &known())
            .into_iter()
            .map(|p| format!("{}: {}; {}", p.path, p.message, p.hint))
            .collect();
        assert_eq!(
            texts,
            [
                "policy.tools.allow[0]: there is no tool \"lok\"; did you mean \"look\"?",
                "policy.tools.allow[1]: there is no \"group:fz\"; did you mean \"group:fs\"?",
                "defaults.model: opnai/x uses provider \"opnai\", which is not configured; did you mean \"openai\"?",
                "defaults.fallbacks[1]: else/z uses provider \"else\", which is not configured; there is only \"openai\"",
                "mcp[0]: there is no MCP server \"fils\"; did you mean \"files\"?",
            ]
        );
        assert!(
            review_spec(
                &spec(json!({ "policy": { "tools": { "allow": ["look", "files_x"] } }, "mcp": ["files"] })),
                &known()
            )
            .is_empty()
        );
        assert_eq!(review_spec(&spec(json!({ "name": "a\nb" })), &known())[0].path, "name");
    }

    #[test]
    fn invalid_identity_name_emoji_or_avatar_is_reported() {
        let paths = |identity: serde_json::Value| {
            let found = review_spec(&spec(json!({ "identity": identity })), &known());
            found.into_iter().map(|problem| problem.path).collect::<Vec<_>>()
        };
        for fine in [
            json!({ "name": "Frida", "emoji": "🦊", "avatar": "https://example.org/f.png" }),
            json!({ "emoji": "👩\u{200d}💻", "avatar": "pictures/f.png" }),
            json!({ "emoji": "✈️" }),
        ] {
            assert!(paths(fine.clone()).is_empty(), "{fine}");
        }
        for (bad, path) in [
            (json!({ "emoji": "not an emoji at all" }), "identity.emoji"),
            (json!({ "emoji": "\u{202e}" }), "identity.emoji"),
            (json!({ "avatar": "javascript:alert(1)" }), "identity.avatar"),
            (json!({ "avatar": "../../etc/passwd" }), "identity.avatar"),
            (json!({ "name": "a\u{202e}b" }), "identity.name"),
        ] {
            assert_eq!(paths(bad.clone()), [path], "{bad}");
        }
        assert_eq!(review_spec(&spec(json!({ "name": "a\u{202e}b" })), &known())[0].path, "name");
    }
}
