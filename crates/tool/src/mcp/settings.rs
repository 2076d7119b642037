//! What is to be known about one server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use polyclaw_domain::config::{McpApproval, McpServer, McpTools};
use polyclaw_domain::glob;

/// Variables that programs need to find each other, a home and a language. Nothing secret is in them.
const HANDED_ON: [&str; 6] = ["PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"];
/// A shorter value is a word that occurs anyway.
const SHORTEST_SECRET: usize = 6;

#[derive(Clone, PartialEq)]
pub struct Settings {
    pub reach: Reach,
    pub tools: McpTools,
    pub timeout: Duration,
    pub start: Duration,
    pub approval: McpApproval,
    pub trusted: bool,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum Reach {
    Program {
        /// Runs the program so that it can not outlive us: the words before its own.
        guard: Vec<String>,
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        cwd: PathBuf,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
    },
}

impl Settings {
    /// `None` for one that is switched off. `workspace` is where programs start that name no folder.
    pub fn of(server: &McpServer, workspace: PathBuf, guard: &[String]) -> Option<Self> {
        let exposed = |map: &BTreeMap<String, polyclaw_domain::config::Secret>| {
            map.iter()
                .map(|(name, value)| (name.clone(), value.expose().to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let reach = match (&server.command, &server.url) {
            (Some(command), _) => Reach::Program {
                guard: guard.to_vec(),
                command: command.clone(),
                args: server.args.clone(),
                env: exposed(&server.env),
                cwd: server.cwd.as_ref().map_or(workspace.clone(), |cwd| workspace.join(cwd)),
            },
            (None, Some(url)) => Reach::Http { url: url.clone(), headers: exposed(&server.headers) },
            (None, None) => return None,
        };
        server.enabled.then(|| Self {
            reach,
            tools: server.tools.clone(),
            timeout: Duration::from_secs(server.timeout_seconds.into()),
            start: Duration::from_secs(server.start_seconds.into()),
            approval: server.approval,
            trusted: server.trusted,
        })
    }

    pub fn offers(&self, tool: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|pattern| glob::matches(pattern, tool));
        !named(&self.tools.deny) && (self.tools.allow.is_empty() || named(&self.tools.allow))
    }

    /// A text of the server's without the secrets that it was given.
    pub fn redact(&self, text: &str) -> String {
        let (Reach::Program { env: secrets, .. } | Reach::Http { headers: secrets, .. }) = &self.reach;
        let mut text = text.to_owned();
        for secret in secrets.values() {
            let bare = secret.strip_prefix("Bearer ").unwrap_or(secret);
            if bare.len() >= SHORTEST_SECRET && text.contains(bare) {
                text = text.replace(bare, "***");
            }
        }
        text
    }
}

impl Reach {
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Program { .. } => "stdio",
            Self::Http { .. } => "http",
        }
    }
}

/// What a program gets of our own environment.
pub fn handed_on() -> impl Iterator<Item = (&'static str, std::ffi::OsString)> {
    HANDED_ON.into_iter().filter_map(|name| std::env::var_os(name).map(|value| (name, value)))
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::config::Secret;

    use super::*;

    fn settings(allow: &[&str], deny: &[&str]) -> Settings {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        let server = McpServer {
            command: Some("x".to_owned()),
            env: [("TOKEN".to_owned(), Secret::new("canary-4711")), ("N".to_owned(), Secret::new("1"))]
                .into(),
            tools: McpTools { allow: words(allow), deny: words(deny) },
            ..McpServer::default()
        };
        Settings::of(&server, PathBuf::from("/ws"), &[]).unwrap()
    }

    #[test]
    fn its_tools_are_those_allowed_and_not_denied() {
        assert!(settings(&[], &[]).offers("echo"));
        assert!(settings(&["get-*"], &[]).offers("get-sum") && !settings(&["get-*"], &[]).offers("echo"));
        assert!(!settings(&["*"], &["echo"]).offers("echo"));
    }

    #[test]
    fn its_secrets_do_not_come_back() {
        assert_eq!(settings(&[], &[]).redact("key=canary-4711, n=1"), "key=***, n=1");
    }

    #[test]
    fn one_that_is_switched_off_is_not_there() {
        let server = McpServer { command: Some("x".to_owned()), enabled: false, ..McpServer::default() };
        assert!(Settings::of(&server, PathBuf::new(), &[]).is_none());
    }
}
