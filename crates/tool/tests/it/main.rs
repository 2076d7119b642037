//! The tools as the engine calls them: through the port.

#![allow(clippy::unwrap_used)] // The whole binary is tests; clippy only knows the marked functions.

mod briefing;
mod confinement;
mod files;
mod http;
mod images;
mod listing;
mod machine;
mod replaced_paths;
mod search;
mod shell;
mod site;
mod trees;
mod worker;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use polyclaw_domain::agent::AgentSpec;
use polyclaw_domain::id::{AgentId, TurnId};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_domain::tool::{ToolCall, ToolOutcome, ToolScope, Toolbox};
use polyclaw_tool::sandbox::{self, NamespaceMode};
use polyclaw_tool::{BuiltinSettings, BuiltinToolbox};
use serde_json::Value;
use tempfile::TempDir;

/// A home with a workspace in it, and something beside the workspace that must stay untouched.
struct Bench {
    home: TempDir,
    tools: BuiltinToolbox,
    scope: ToolScope,
    progress: Mutex<String>,
}

/// Where a copy of the helper lies that other users can run.
const HELPER_VARIABLE: &str = "POLYCLAW_TEST_SANDBOX_HELPER";

/// The helper of this crate in place of the whole program.
fn confining(home: &Path) -> sandbox::SandboxLauncherSettings {
    sandbox::SandboxLauncherSettings {
        helper: vec![
            std::env::var(HELPER_VARIABLE)
                .unwrap_or_else(|_| env!("CARGO_BIN_EXE_polyclaw-sandbox").to_owned()),
        ],
        temporary: home.join("tmp"),
        hidden: vec![home.to_owned(), home.join("secret")],
        ways: vec![NamespaceMode::Own, NamespaceMode::Bare],
        ..sandbox::SandboxLauncherSettings::default()
    }
}

impl Bench {
    fn new() -> Self {
        Self::with(BuiltinSettings::default())
    }

    fn with(mut settings: BuiltinSettings) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("ws")).unwrap();
        fs::write(home.path().join("secret"), "secret").unwrap();
        settings.sandbox = confining(home.path());
        let spec = AgentSpec::with_id(AgentId::main());
        let scope =
            ToolScope::for_session(&spec, SessionKey::main(&spec.agent_id), &home.path().join("ws"), true);
        Self { home, tools: BuiltinToolbox::new(settings), scope, progress: Mutex::default() }
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.scope.workspace.join(inside)
    }

    fn text(&self, inside: &str) -> String {
        fs::read_to_string(self.path(inside)).unwrap()
    }

    async fn call(&self, name: &str, arguments: Value) -> ToolOutcome {
        let call = ToolCall { id: "call-1".to_owned(), name: name.to_owned(), arguments };
        let progress = |text: &str| self.progress.lock().unwrap().push_str(text);
        self.tools.run(&self.scope, &TurnId::new("turn-1"), &call, &progress).await
    }

    async fn ok(&self, name: &str, arguments: Value) -> String {
        let outcome = self.call(name, arguments).await;
        assert!(!outcome.is_error, "{}", outcome.content);
        outcome.content
    }

    async fn refused(&self, name: &str, arguments: Value) -> String {
        let outcome = self.call(name, arguments).await;
        assert!(outcome.is_error, "{}", outcome.content);
        outcome.content
    }
}
