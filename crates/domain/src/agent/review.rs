//! What is wrong with a spec.

use super::AgentSpec;
use crate::command;
use crate::config::suggest;
use crate::plain::is_hidden;
use crate::policy;
use crate::provider::ModelRef;

/// What an instance has, for a spec to be held against.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub tools: Vec<String>,
    /// Providers by name; empty where they are only found later.
    pub providers: Vec<String>,
    pub mcp_servers: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub path: String,
    pub message: String,
    pub hint: String,
}

const LONGEST_NAME: usize = 80;

/// Everything that is wrong with a spec, at once.
pub fn review(spec: &AgentSpec, known: &Known) -> Vec<Problem> {
    let tools: Vec<&str> = known.tools.iter().map(String::as_str).collect();
    let words = policy::check(&spec.policy.tools, &tools, &spec.mcp);
    let words = words.into_iter().map(|unknown| Problem {
        path: format!("policy.tools.{}", unknown.path),
        message: unknown.message,
        hint: unknown.hint,
    });
    named(spec)
        .into_iter()
        .chain(shadowing(spec))
        .chain(folder(spec))
        .chain(identity(spec))
        .chain(words)
        .chain(models(spec, known))
        .chain(servers(spec, known))
        .collect()
}

fn named(spec: &AgentSpec) -> Option<Problem> {
    let is_plain = !spec.name.trim().is_empty()
        && spec.name.chars().count() <= LONGEST_NAME
        && !spec.name.chars().any(|c| c.is_control() || is_hidden(c));
    (!is_plain).then(|| Problem {
        path: "name".to_owned(),
        message: format!("a name is one line of 1 to {LONGEST_NAME} characters"),
        hint: String::new(),
    })
}

/// `/<id>` asks an agent, so an id that is a command could never be asked.
fn shadowing(spec: &AgentSpec) -> Option<Problem> {
    command::is_taken(&spec.agent_id).then(|| Problem {
        path: "agent_id".to_owned(),
        message: format!("/{} is a command", spec.agent_id),
        hint: "give it another id".to_owned(),
    })
}

fn identity(spec: &AgentSpec) -> Vec<Problem> {
    let problem = |(field, message): (&str, &str)| Problem {
        path: format!("identity.{field}"),
        message: message.to_owned(),
        hint: String::new(),
    };
    spec.identity.problems().into_iter().map(problem).collect()
}

fn folder(spec: &AgentSpec) -> Option<Problem> {
    let (message, hint) = spec.workspace.problem()?;
    Some(Problem { path: "workspace".to_owned(), message, hint })
}

fn models(spec: &AgentSpec, known: &Known) -> Vec<Problem> {
    let own = spec.defaults.model.iter().map(|model| ("defaults.model".to_owned(), model));
    let others = spec.defaults.fallbacks.iter().enumerate();
    let others = others.map(|(at, model)| (format!("defaults.fallbacks[{at}]"), model));
    own.chain(others).filter_map(|(path, model)| strange(path, model, &known.providers)).collect()
}

fn strange(path: String, model: &ModelRef, providers: &[String]) -> Option<Problem> {
    if providers.is_empty() || providers.contains(&model.provider) {
        return None;
    }
    let names: Vec<&str> = providers.iter().map(String::as_str).collect();
    let message = format!("{model} is of provider {:?}, which is not configured", model.provider);
    Some(Problem { path, message, hint: suggest(&model.provider, &names) })
}

fn servers(spec: &AgentSpec, known: &Known) -> Vec<Problem> {
    let names: Vec<&str> = known.mcp_servers.iter().map(String::as_str).collect();
    let unknown = spec
        .mcp
        .iter()
        .enumerate()
        .filter(|(_, server)| *server != "*" && !known.mcp_servers.contains(server));
    let problem = |(at, server): (usize, &String)| Problem {
        path: format!("mcp[{at}]"),
        message: format!("there is no MCP server {server:?}"),
        hint: suggest(server, &names),
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

    fn known() -> Known {
        Known {
            tools: vec!["look".into()],
            providers: vec!["openai".into()],
            mcp_servers: vec!["files".into()],
        }
    }

    #[test]
    fn everything_wrong_is_said_at_once_with_the_nearest_right_word() {
        let bad = spec(json!({
            "defaults": { "model": "opnai/x", "fallbacks": ["openai/y", "else/z"] },
            "policy": { "tools": { "allow": ["lok", "group:fz"], "deny": ["shell"] } },
            "mcp": ["fils"],
        }));
        let said: Vec<String> = review(&bad, &known())
            .into_iter()
            .map(|p| format!("{}: {}; {}", p.path, p.message, p.hint))
            .collect();
        assert_eq!(
            said,
            [
                "policy.tools.allow[0]: there is no tool \"lok\"; did you mean \"look\"?",
                "policy.tools.allow[1]: there is no \"group:fz\"; did you mean \"group:fs\"?",
                "defaults.model: opnai/x is of provider \"opnai\", which is not configured; did you mean \"openai\"?",
                "defaults.fallbacks[1]: else/z is of provider \"else\", which is not configured; there is only \"openai\"",
                "mcp[0]: there is no MCP server \"fils\"; did you mean \"files\"?",
            ]
        );
        assert!(
            review(
                &spec(json!({ "policy": { "tools": { "allow": ["look", "files_x"] } }, "mcp": ["files"] })),
                &known()
            )
            .is_empty()
        );
        assert_eq!(review(&spec(json!({ "name": "a\nb" })), &known())[0].path, "name");
    }

    #[test]
    fn an_identity_is_a_name_a_sign_and_a_picture() {
        let paths = |identity: serde_json::Value| {
            let found = review(&spec(json!({ "identity": identity })), &known());
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
        assert_eq!(review(&spec(json!({ "name": "a\u{202e}b" })), &known())[0].path, "name");
    }
}
