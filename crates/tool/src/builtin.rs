//! The toolbox: one list of tools, and one rule that decides who sees and who may call each.

use std::sync::Arc;

use polyclaw_domain::id::TurnId;
use polyclaw_domain::port::Pending;
use polyclaw_domain::sandbox::{Facts, Files};
use polyclaw_domain::tool::{Consent, Progress, ToolCall, ToolOutcome, ToolScope, ToolSpec, Toolbox};

use crate::arguments::read;
use crate::error::{Error, Result};
use crate::http_fetch::{Web, is_public};
use crate::sandbox::{self, Sandboxes};
use crate::workspace::Turnstile;
use crate::{edit_file, folder, http_fetch, list_dir, read_file, search_files, shell, text, write_file};

#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Lets `http_fetch` reach this machine and private networks.
    pub allow_private: bool,
    /// Names of tools that nobody gets.
    pub disabled: Vec<String>,
    /// How programs are started.
    pub sandbox: sandbox::Settings,
}

/// The tools that come with Polyclaw.
pub struct Builtin {
    tools: Vec<Tool>,
    turnstile: Arc<Turnstile>,
    web: Web,
    allow_private: bool,
    sandboxes: Arc<Sandboxes>,
    /// `shell` where it is confined.
    confined_shell: Arc<ToolSpec>,
}

struct Tool {
    kind: Kind,
    spec: Arc<ToolSpec>,
}

#[derive(Clone, Copy)]
enum Kind {
    ReadFile,
    WriteFile,
    EditFile,
    ListDir,
    SearchFiles,
    Shell,
    HttpFetch,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::ReadFile,
        Self::WriteFile,
        Self::EditFile,
        Self::ListDir,
        Self::SearchFiles,
        Self::Shell,
        Self::HttpFetch,
    ];

    fn spec(self) -> ToolSpec {
        match self {
            Self::ReadFile => read_file::spec(),
            Self::WriteFile => write_file::spec(),
            Self::EditFile => edit_file::spec(),
            Self::ListDir => list_dir::spec(),
            Self::SearchFiles => search_files::spec(),
            Self::Shell => shell::spec(),
            Self::HttpFetch => http_fetch::spec(),
        }
    }
}

impl Builtin {
    pub fn new(settings: Settings) -> Self {
        let tools = Kind::ALL.map(|kind| Tool { kind, spec: Arc::new(kind.spec()) });
        let is_enabled = |tool: &Tool| !settings.disabled.contains(&tool.spec.name);
        let rule = if settings.allow_private { |_| true } else { is_public };
        Self {
            tools: tools.into_iter().filter(is_enabled).collect(),
            turnstile: Arc::default(),
            web: Web::new(rule),
            allow_private: settings.allow_private,
            sandboxes: Arc::new(Sandboxes::new(settings.sandbox)),
            confined_shell: Arc::new(shell::confined_spec()),
        }
    }

    pub fn sandboxes(&self) -> Arc<Sandboxes> {
        Arc::clone(&self.sandboxes)
    }

    pub fn allows_private(&self) -> bool {
        self.allow_private
    }

    /// The one filter. A tool that needs a person's word is not there where nobody can be asked.
    fn open_to<'a>(&'a self, scope: &'a ToolScope) -> impl Iterator<Item = (Kind, &'a Arc<ToolSpec>)> {
        let listed = self.tools.iter().map(|tool| match tool.kind {
            Kind::Shell if scope.sandbox.is_on() => (tool.kind, &self.confined_shell),
            kind => (kind, &tool.spec),
        });
        listed.filter(|(_, spec)| scope.can_ask || spec.consent != Consent::AskPerson)
    }

    /// What held for a call that started no program.
    fn facts(&self, scope: &ToolScope, call: &ToolCall) -> Facts {
        let kind = self.tools.iter().find(|tool| tool.spec.name == call.name).map(|tool| tool.kind);
        let is_of_files = !matches!(kind, None | Some(Kind::Shell | Kind::HttpFetch));
        let files = is_of_files.then(|| Files { resolved: folder::RESOLVED.to_owned() });
        Facts {
            mode: scope.sandbox.mode,
            isolation: scope.isolation,
            worker: None,
            crashes: 0,
            files,
            program: None,
        }
    }

    async fn dispatch(
        &self,
        scope: &ToolScope,
        call: &ToolCall,
        progress: Progress<'_>,
    ) -> Result<ToolOutcome> {
        let found = self.open_to(scope).find(|(_, spec)| spec.name == call.name);
        let (kind, _) = found.ok_or_else(|| Error::UnknownTool(text::cut(&call.name, 80)))?;
        let given = &call.arguments;
        match kind {
            Kind::ReadFile => read_file::run(scope, read(given)?).await,
            Kind::WriteFile => write_file::run(scope, read(given)?, &self.turnstile).await,
            Kind::EditFile => edit_file::run(scope, read(given)?, &self.turnstile).await,
            Kind::ListDir => list_dir::run(scope, read(given)?).await,
            Kind::SearchFiles => search_files::run(scope, read(given)?).await,
            Kind::Shell => shell::run(scope, read(given)?, &self.sandboxes, progress).await,
            Kind::HttpFetch => http_fetch::run(&self.web, read(given)?).await,
        }
    }
}

impl Toolbox for Builtin {
    fn list(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        self.open_to(scope).map(|(_, spec)| Arc::clone(spec)).collect()
    }

    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        progress: Progress<'a>,
    ) -> Pending<'a, ToolOutcome> {
        Box::pin(async move {
            let outcome: ToolOutcome = self.dispatch(scope, call, progress).await.unwrap_or_else(|error| {
                let code = error.code();
                tracing::debug!(turn.id = %turn, agent.id = %scope.agent, error.code = code, "tool call refused");
                error.into()
            });
            let facts = outcome.facts.or_else(|| Some(self.facts(scope, call)));
            ToolOutcome { facts, ..outcome }
        })
    }
}
